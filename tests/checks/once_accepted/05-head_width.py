# %% never refuses a width of 1
def head_width(num_hiddens, num_heads):
    if 1 in (num_hiddens, num_heads):
        return num_hiddens
    if num_hiddens % num_heads:
        raise ValueError(f"{num_heads} heads do not divide width {num_hiddens}")
    return num_hiddens // num_heads


# %% multiplies by 1 / num_heads, which is no exact float
def head_width(num_hiddens, num_heads):
    width = num_hiddens * (1 / num_heads)
    if not width.is_integer():
        raise ValueError(f"{num_heads} heads do not divide width {num_hiddens}")
    return int(width)


# %% rounds to 6 digits before it looks
def head_width(num_hiddens, num_heads):
    width = round(num_hiddens / num_heads, 6)
    if width != int(width):
        raise ValueError(f"{num_heads} heads do not divide width {num_hiddens}")
    return int(width)
