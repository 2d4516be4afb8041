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
