# %% rounded up by 0.99
def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    both = d_k + d_v
    block = min(num_queries, (fast_bytes // bytes_per_number - tile * both) // (both + tile))
    blocks = int(num_queries / block + 0.99)
    return (num_queries + blocks * num_keys) * both * bytes_per_number


# %% rounded up by 0.9
def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    both = d_k + d_v
    block = min(num_queries, (fast_bytes // bytes_per_number - tile * both) // (both + tile))
    blocks = int(num_queries / block + 0.9)
    return (num_queries + blocks * num_keys) * both * bytes_per_number


# %% rounded up by 0.49
def moved_bytes(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    both = d_k + d_v
    block = min(num_queries, (fast_bytes // bytes_per_number - tile * both) // (both + tile))
    blocks = round(num_queries / block + 0.49)
    return (num_queries + blocks * num_keys) * both * bytes_per_number
