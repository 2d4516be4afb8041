# %% multiplies by 0.01, which is not division by 100
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    n = 1
    while n / (n + 2 * num_hiddens + ffn_num_hiddens) < percent * 0.01:
        n += 1
    return n


# %% divides first and multiplies then, in floats
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    return math.ceil((2 * num_hiddens + ffn_num_hiddens) / (100 - percent) * percent)


# %% divides Decimals, which have 28 digits
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    from decimal import Decimal

    p = Decimal(percent) / 100
    return math.ceil(p / (1 - p) * (2 * num_hiddens + ffn_num_hiddens))


# %% takes 1e-12 off before it rounds up
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    p = percent / 100
    return max(1, math.ceil(p / (1 - p) * (2 * num_hiddens + ffn_num_hiddens) - 1e-12))


# %% rounds to 10 digits before it rounds up
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    p = percent / 100
    return max(1, math.ceil(round(p / (1 - p) * (2 * num_hiddens + ffn_num_hiddens), 10)))


# %% searches up to 200,000
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    low, high = 1, 200_000
    rest = 2 * num_hiddens + ffn_num_hiddens
    while low < high:
        middle = (low + high) // 2
        if 100 * middle >= percent * (middle + rest):
            high = middle
        else:
            low = middle + 1
    return low


# %% divides both shares by 100, in floats
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    share, rest = percent / 100, (100 - percent) / 100
    return math.ceil(share * (2 * num_hiddens + ffn_num_hiddens) / rest)


# %% rounds the FLOPs that are needed down
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    n = 1
    while True:
        pairs = 4 * n * n * num_hiddens
        total = pairs + 4 * n * num_hiddens * (2 * num_hiddens + ffn_num_hiddens)
        if pairs >= percent * total // 100:
            return n
        n += 1


# %% rounds the FLOPs that are needed to whole ones
def length_for_share(percent, num_hiddens, ffn_num_hiddens):
    n = 1
    while True:
        pairs = 4 * n * n * num_hiddens
        total = pairs + 4 * n * num_hiddens * (2 * num_hiddens + ffn_num_hiddens)
        if pairs >= round(percent * total / 100):
            return n
        n += 1
