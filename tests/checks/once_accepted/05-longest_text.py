# %% rounds the share of a text to the nearest number
def longest_text(
    card_bytes,
    num_parameters,
    num_layers,
    num_kv_heads,
    head_width,
    bytes_per_number=2,
    batch_size=1,
):
    numbers = card_bytes // bytes_per_number - num_parameters
    per_layer = max(0, numbers) // num_layers
    return round(per_layer / batch_size) // (2 * num_kv_heads * head_width)
