# %% the optional arguments have changed places, with their defaults
def cache_bytes(num_tokens, num_layers, num_kv_heads, head_width, batch_size=2, bytes_per_number=1):
    numbers = 2 * num_kv_heads * head_width
    return numbers * num_layers * num_tokens * batch_size * bytes_per_number
