"""Task 7.7, shares_along: what each head brings from each token to the output of a layer."""

import torch

from mha_classroom.checks.forms import any_of
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.seeing_attention.most_attended import random_weights, table


@and_in_float32
def shares_cases(draw):
    """Heads that cancel, a short value, L = S and not, batches, a width that is not H · d_v."""

    def case(name, batch, heads, queries, keys, width, d_model, change=unchanged):
        given = {
            "weights": random_weights(draw, batch, heads, queries, keys, scale=1.0),
            "values": draw.normal(batch, heads, keys, width) + 0.6,
            "W_o": draw.normal(d_model, heads * width) + 0.3,
        }
        return Case(name, change(given))

    small = {
        "weights": table([0.9, 0.1])[None, None],
        "values": table([0.1, 0.0], [2.0, 1.0])[None, None],
        "W_o": table([1.0, 0.0], [0.0, 1.0]),
    }
    two = {
        "weights": torch.stack([table([0.5, 0.5], [1.0, 0.0]), table([0.2, 0.8], [0.6, 0.4])])[
            None
        ],
        "values": torch.stack([table([1.0], [3.0]), table([2.0], [-1.0])])[None],
        "W_o": table([1.0, 0.0], [1.0, 2.0]),
    }
    return [
        Case("one head, one query, 2 keys", small),
        Case("2 heads of width 1", two),
        case("one head", 1, 1, 3, 5, 2, 7),
        case("3 heads", 1, 3, 4, 5, 2, 6),
        case("2 texts, 3 heads", 2, 3, 4, 5, 2, 6),
        case("as many queries as keys", 2, 3, 5, 5, 2, 6),
        case("a width that is not H · d_v", 3, 2, 5, 4, 3, 11),
        case("as many heads as features", 2, 3, 5, 7, 3, 9),
        case("all axes equal", 3, 3, 3, 3, 3, 9),
        case("one token that gets most has a short value", 2, 3, 5, 5, 2, 6, _parked),
        case("heads that work against each other", 2, 2, 4, 5, 3, 6, _against),
        case("one query", 2, 5, 1, 7, 2, 10),
        case("small outputs", 2, 3, 4, 5, 2, 6, _small),
        case("values are not contiguous", 2, 3, 4, 5, 2, 6, _transposed),
    ]


def _parked(given):
    weights = given["weights"] * 0.1
    weights[..., 0] += 0.9
    values = given["values"].clone()
    values[:, :, 0] *= 0.01
    return {**given, "weights": weights, "values": values}


def _small(given):
    return {**given, "values": 1e-9 * given["values"]}


def _against(given):
    """The second head takes away most of what the first one brings."""
    weights, values, W_o = (given[name].clone() for name in ("weights", "values", "W_o"))
    weights[:, 1] = weights[:, 0]
    values[:, 1] = -0.7 * values[:, 0] + 0.2 * values[:, 1]
    W_o[:, 3:] = W_o[:, :3]
    return {"weights": weights, "values": values, "W_o": W_o}


def _transposed(given):
    values = given["values"].transpose(1, 2).contiguous().transpose(1, 2)
    return {**given, "values": values}


def _columns(W_o, num_heads):
    """(H, d_v, d_model): the columns of W_o that belong to each head."""
    return W_o.T.unflatten(0, (num_heads, -1))


def _brought(weights, vectors):
    """From each key through each head, (B, H, L, S, d_model)."""
    return weights[..., None] * vectors[:, :, None]


def _along(brought):
    """Of each vector the part along the output of the layer, (B, H, L, S)."""
    output = brought.sum(dim=(1, 3), keepdim=True)  # (B, 1, L, 1, d_model)
    return (brought * output).sum(dim=-1) / output.square().sum(dim=-1)


def shares_stages(inputs):
    weights, values, W_o = inputs.values()
    brought = _brought(weights, values @ _columns(W_o, weights.shape[1]))
    output = brought.sum(dim=(1, 3), keepdim=True)
    return {
        "what each token has to give through each head": values @ _columns(W_o, weights.shape[1]),
        "c, what each key brings to each query": brought,
        "o, the output of each query": output[:, 0, :, 0],
        "the products c · o": (brought * output).sum(dim=-1),
    }


def build_shares(
    scale=unchanged,
    columns=_columns,
    brought=_brought,
    measure=_along,
    finish=unchanged,
):
    """scale: of the weights, before anything. columns: of W_o for each head. brought: from the
    weights and what each token has to give, (B, H, S, d_model). measure: of what was brought.
    finish: of the shares.
    """

    def shares_along(weights, values, W_o):
        vectors = values @ columns(W_o, weights.shape[1])  # (B, H, S, d_model)
        return finish(measure(brought(scale(weights), vectors)))

    return shares_along


shares_along = build_shares()


def _by_length(brought):
    lengths = brought.norm(dim=-1)
    return lengths / lengths.sum(dim=(1, 3), keepdim=True)


def _by_length_in_head(brought):
    lengths = brought.norm(dim=-1)
    return lengths / lengths.sum(dim=3, keepdim=True)


def _in_head(brought):
    """Each head against its own result."""
    output = brought.sum(dim=3, keepdim=True)
    return (brought * output).sum(dim=-1) / output.square().sum(dim=-1)


def _by(top, bottom):
    def measure(brought):
        output = brought.sum(dim=(1, 3), keepdim=True)
        return top(brought, output) / bottom(brought, output)

    return measure


def _dot(brought, output):
    return (brought * output).sum(dim=-1)


def _by_more_than(small):
    return _by(_dot, lambda brought, output: output.square().sum(dim=-1) + small)


def _by_at_least(small):
    return _by(_dot, lambda brought, output: output.square().sum(dim=-1).clamp(min=small))


def _normalised(parts):
    return parts / parts.sum(dim=(1, 3), keepdim=True)


def _renormalised(brought):
    return _normalised(_along(brought).clamp(min=0))


def _over_queries(brought):
    output = brought.sum(dim=(1, 2, 3), keepdim=True)
    return _dot(brought, output) / output.square().sum(dim=-1)


def _whole_vectors(weights, values, W_o):
    """What each token has to give is measured without its weight."""
    vectors = values @ _columns(W_o, weights.shape[1])
    output = _brought(weights, vectors).sum(dim=(1, 3), keepdim=True)
    whole = _brought(torch.ones_like(weights), vectors)
    return _dot(whole, output) / output.square().sum(dim=-1)


def _over_queries_alone(brought):
    """The output of each key: summed over heads and queries."""
    output = brought.sum(dim=(1, 2), keepdim=True)
    return _dot(brought, output) / output.square().sum(dim=-1)


def _by_all_outputs(axes):
    """Divided by the squared length of all outputs together."""

    def measure(brought):
        output = brought.sum(dim=(1, 3), keepdim=True)
        return _dot(brought, output) / output.square().sum(dim=axes, keepdim=True)[..., 0]

    return measure


def _softmax_of_all_products(brought):
    products = _dot(brought, brought.sum(dim=(1, 3), keepdim=True))
    return products.flatten(1).softmax(dim=1).view_as(products)


def _softmax_of_the_products(brought):
    return _softmax_of_each_query(_dot(brought, brought.sum(dim=(1, 3), keepdim=True)))


def _softmax_of_each_query(parts):
    """Over heads and keys, (B, H, L, S)."""
    rows = parts.transpose(1, 2)
    return rows.flatten(2).softmax(dim=-1).view(rows.shape).transpose(1, 2)


def _joined_without_transpose(weights, values, W_o):
    """The output from the heads' results, reshaped to (B, L, H · d_v) with their axes as they
    are."""
    batch, heads, queries, _ = weights.shape
    output = (weights @ values).reshape(batch, queries, -1) @ W_o.T
    brought = _brought(weights, values @ _columns(W_o, heads))
    products = torch.einsum("bhlsm,blm->bhls", brought, output)
    return products / output.square().sum(dim=-1)[:, None, :, None]


def _width_of_d_model(weights, values, W_o):
    """Head by head d_model // H columns of W_o."""
    heads, width = weights.shape[1], len(W_o) // weights.shape[1]
    vectors = [values[:, h] @ W_o[:, h * width : (h + 1) * width].T for h in range(heads)]
    return _along(_brought(weights, torch.stack(vectors, dim=1)))


def _over_batch(brought):
    output = brought.sum(dim=(0, 1, 3), keepdim=True)
    return _dot(brought, output) / output.square().sum(dim=-1)


def _values_alone(weights, values, W_o):
    """Without W_o: the heads' values as if all wrote into the same places."""
    return _along(_brought(weights, values))


def _values_concatenated(weights, values, W_o):
    """Without W_o, the heads side by side: no head's vectors meet another's."""
    brought = _brought(weights, values)  # (B, H, L, S, d_v)
    result = brought.sum(dim=3, keepdim=True)
    return (brought * result).sum(dim=-1) / result.square().sum(dim=(1, 4), keepdim=True)[..., 0]


def _rows(W_o, num_heads):
    """The rows of W_o for each head, where there are as many as columns; else its columns."""
    square = W_o.shape[0] == W_o.shape[1]
    return (W_o if square else W_o.T).unflatten(0, (num_heads, -1))


def _sliced_rows(weights, values, W_o):
    """Head by head d_v rows of W_o, as far as there are any."""
    width = values.shape[-1]
    brought = []
    for head in range(weights.shape[1]):
        rows = W_o[head * width : (head + 1) * width]  # (d_v, H · d_v)
        vectors = values[:, head] @ rows
        brought.append(weights[:, head, ..., None] * vectors[:, None])
    return _along(torch.stack(brought, dim=1))


def _rows_by(cut):
    """Rows of W_o for all heads at once; each way to cut them raises in words of its own where
    they do not fit.
    """

    def shares_along(weights, values, W_o):
        return _along(_brought(weights, values @ cut(W_o, weights.shape[1], values.shape[-1])))

    return shares_along


ROWS = (
    "You give each head rows of W_o.",
    "nn.Linear keeps (out, in). The heads are what goes in: on which axis are they?",
)

SHARES = {
    "by-length": known(
        "You compare lengths.",
        "Lengths must not be added: vectors can cancel. How far does each vector go in the "
        "direction of the output?",
        measure=_by_length,
    ),
    "lengths-not-divided": known(
        "You return the lengths of the vectors c.",
        "Lengths must not be added: vectors can cancel, and a length says nothing about the "
        "direction. How far does each vector go in the direction of the output?",
        measure=lambda brought: brought.norm(dim=-1),
    ),
    "by-length-in-each-head": known(
        "You compare lengths, in each head for itself.",
        "Lengths must not be added: vectors can cancel. And the output is the sum over all heads. "
        "How far does each vector go in its direction?",
        measure=_by_length_in_head,
    ),
    "each-head-for-itself": known(
        "In your answer the shares of each head sum to 1.",
        "That is the share of what one head brings. The output of the layer is the sum over all "
        "heads, and a head may bring more than another, or work against it.",
        measure=_in_head,
    ),
    "each-head-made-1": known(
        "You divide so that the shares of each head sum to 1.",
        "The output of the layer is the sum over all heads, and a head may bring more than "
        "another, or work against it. Over which axes do the shares sum to 1?",
        finish=lambda shares: shares / shares.sum(dim=-1, keepdim=True),
    ),
    "lengths-of-the-values": known(
        "You compare weights times the lengths of the values.",
        "W_o makes some values longer and others shorter, and lengths must not be added: vectors "
        "can cancel. How far does each vector go in the direction of the output?",
        wrong=lambda weights, values, W_o: _normalised(weights * values.norm(dim=-1)[:, :, None]),
    ),
    "weights-alone": known(
        "Your shares are the weights, divided by the number of heads.",
        "A large weight may fetch a short vector. Values and W_o have to come in.",
        wrong=lambda weights, values, W_o: weights / weights.shape[1],
    ),
    "weights-forgotten": known(
        "You leave the weights out: every key brings its whole vector to every query.",
        "A query gets of each vector as much as its weight says.",
        scale=torch.ones_like,
    ),
    "without-W_o": known(
        "You leave W_o out, and add up the values of all heads.",
        "Heads meet only after W_o. Before it, the same place in two heads has nothing to do with "
        "each other.",
        wrong=_values_alone,
    ),
    "heads-side-by-side": known(
        "You leave W_o out: your output is the heads side by side.",
        "What the layer passes on is that vector times W_o, and there the heads meet.",
        wrong=_values_concatenated,
    ),
    "rows-of-W_o": known(
        "Where W_o has as many rows as columns, you give each head rows of it.",
        ROWS[1],
        columns=_rows,
    ),
    "rows-sliced": known(*ROWS, wrong=_sliced_rows),
    "rows-and-each-head-for-itself": known(
        "You give each head rows of W_o, and divide by what that head alone brings.",
        "nn.Linear keeps (out, in), and the heads are what goes in: on which axis are they? And "
        "the output of the layer is the sum over all heads.",
        wrong=lambda weights, values, W_o: _in_head(
            _brought(weights, values @ W_o.reshape(weights.shape[1], values.shape[-1], -1))
        ),
    ),
    "width-of-d_model": known(
        "You give each head d_model // H columns of W_o.",
        "The width of a head is d_v, the last axis of values. The output of a layer may be wider "
        "or narrower than all heads together.",
        wrong=_width_of_d_model,
    ),
    "heads-joined-without-transpose": known(
        "You reshape the heads' results (B, H, L, d_v) to (B, L, H · d_v) without exchanging axes.",
        "Then your o mixes queries and heads: its row 0 holds the first queries of head 0. H has "
        "to stand beside d_v before the two become one (lesson 4).",
        wrong=_joined_without_transpose,
    ),
    "rows-by-view": known(
        *ROWS, wrong=_rows_by(lambda W_o, heads, width: W_o.reshape(heads, width, -1))
    ),
    "rows-by-split": known(
        *ROWS, wrong=_rows_by(lambda W_o, heads, width: torch.stack(W_o.split(width)))
    ),
    "rows-by-chunk": known(
        *ROWS, wrong=_rows_by(lambda W_o, heads, width: torch.stack(W_o.chunk(heads)))
    ),
    "rows-by-unflatten": known(
        *ROWS, wrong=_rows_by(lambda W_o, heads, width: W_o.unflatten(0, (heads, -1)))
    ),
    "heads-interleaved": known(
        "You deal the columns of W_o out to the heads in turn: head 0 gets 0, H, 2H and so on.",
        "The heads stand side by side (lesson 4): the first d_v columns are head 0's.",
        columns=lambda W_o, num_heads: W_o.T.unflatten(0, (-1, num_heads)).transpose(0, 1),
    ),
    "reshaped": known(
        "You reshape W_o, and each head gets numbers that are not its own.",
        "Columns of W_o belong to a head, and a reshape goes along the rows. Which axis do you "
        "have to cut, and which to exchange?",
        columns=lambda W_o, num_heads: W_o.reshape(num_heads, len(W_o), -1).mT,
    ),
    "reshaped-turned": known(
        "You reshape W_o.T to (H, d_model, d_v): each head has its own numbers, and they stand in "
        "wrong places.",
        "A row of W_o.T is d_model long, and this reshape cuts it into pieces of d_v. Which axis "
        "do you have to cut, and which to leave whole?",
        columns=lambda W_o, num_heads: W_o.T.reshape(num_heads, len(W_o), -1).mT,
    ),
    "first-head-for-all": known(
        "You use the columns of head 0 for all heads.",
        "Each head has d_v columns of its own.",
        columns=lambda W_o, num_heads: _columns(W_o, num_heads)[:1].expand(num_heads, -1, -1),
    ),
    "divided-by-length": known(
        "You divide by the length of the output, not by its square.",
        "That gives how far c goes along the output. What share of the output's own length is "
        "that?",
        measure=_by(_dot, lambda brought, output: output.norm(dim=-1)),
    ),
    "small-number-added": known(
        "You add a small number to what you divide by, or do not let it get smaller than that.",
        "No output is 0 here. Where outputs are small, all shares come out too near to 0.",
        **any_of(
            build_shares,
            measure=[
                by(10.0**-digits) for by in (_by_more_than, _by_at_least) for digits in range(3, 13)
            ],
        ),
    ),
    "not-divided": known(
        "You return the products with the output.",
        "They do not sum to 1. What is their sum?",
        measure=_by(_dot, lambda brought, output: 1.0),
    ),
    "cosines": known(
        "You return cosines.",
        "A cosine forgets how long the vector is, and so also the weight. A long one brings more.",
        **any_of(
            build_shares,
            measure=(
                _by(_dot, lambda brought, output: output.norm(dim=-1) * brought.norm(dim=-1)),
                _by(
                    _dot,
                    lambda brought, output: output.norm(dim=-1) * brought.norm(dim=-1).clamp(1e-12),
                ),
            ),
        ),
    ),
    "absolute-values": known(
        "You take absolute values of the parts, and divide by their sum.",
        "What points against the output takes something away. Its share is negative.",
        measure=lambda brought: _normalised(_along(brought).abs()),
    ),
    "signs-lost": known(
        "You take the absolute values of the shares.",
        "What points against the output takes something away. Its share is negative, and only with "
        "it do the shares sum to 1.",
        finish=torch.abs,
    ),
    "negative-as-0": known(
        "You set negative shares to 0.",
        "What points against the output takes something away. Its share is negative.",
        finish=lambda shares: shares.clamp(min=0),
    ),
    "negative-as-0-and-made-1": known(
        "You set negative shares to 0, and divide the rest by their sum.",
        "What points against the output takes something away. Its share is negative, and with it "
        "the shares sum to 1 by themselves.",
        measure=_renormalised,
    ),
    "squared": known(
        "You square the shares.",
        "Then they no longer sum to 1 over heads and keys, and a negative one looks positive. By "
        "what is c · o divided?",
        finish=torch.square,
    ),
    "mean-of-the-heads": known(
        "All your shares are H times too large. Is your output o the mean over the heads?",
        "W_o adds up what the heads bring (lesson 3). Over heads and keys the shares sum to 1.",
        finish=lambda shares: shares * shares.shape[1],
    ),
    "mean-of-all-parts": known(
        "All your shares are H · S times too large. Is your output o the mean over heads and keys?",
        "o is the sum of what all keys bring through all heads. Over heads and keys the shares sum "
        "to 1.",
        finish=lambda shares: shares * shares.shape[1] * shares.shape[3],
    ),
    "all-queries": known(
        "Your output o is summed over the queries as well.",
        "Each query has an output of its own: the sum of c over heads and keys, so that each "
        "query's shares sum to 1.",
        measure=_over_queries,
    ),
    "summed-over-queries": known(
        "Your output o is summed over heads and queries, not over heads and keys.",
        "o belongs to one query: it is the sum of what all the keys bring to it, through all "
        "heads.",
        measure=_over_queries_alone,
    ),
    **{
        id: known(
            f"You divide by the squared lengths of {whose} together.",
            "Each query has an output of its own, and its shares sum to 1. Over which axis is "
            "o · o added up?",
            measure=_by_all_outputs(axes),
        )
        for id, whose, axes in (
            ("all-outputs-together", "all outputs of the batch", (0, 1, 2, 3, 4)),
            ("outputs-of-a-text-together", "all outputs of a text", (1, 2, 3, 4)),
        )
    },
    "weights-twice": known(
        "Each of your shares is the right one times its weight.",
        "c has the weight in it already. The shares of a query sum to 1 without it.",
        wrong=lambda weights, values, W_o: weights * shares_along(weights, values, W_o),
    ),
    "weights-squared": known(
        "Your weights come in twice: c and o are made with their squares.",
        "A query gets of each vector as much as its weight says, once.",
        scale=torch.square,
    ),
    "c-without-weight": known(
        "Your o has the weights in it, and your c has not.",
        "c is what the key brings to this query, and a query gets as much of it as the weight "
        "says. Only then do the shares sum to 1 over heads and keys.",
        wrong=_whole_vectors,
    ),
    "queries-before-heads": known(
        "Your result has the queries before the heads: (B, L, H, S).",
        "The numbers are right. (B, H, L, S) was asked for, the axes of the weights.",
        finish=lambda shares: shares.transpose(1, 2),
    ),
    "softmax": known(
        "You apply softmax to make the shares sum to 1, all of a text at once.",
        "For each query they sum to 1 without help once c · o is divided by o · o: the parts along "
        "the output add up to the output.",
        **any_of(
            build_shares,
            {"finish": lambda shares: shares.flatten(1).softmax(dim=1).view_as(shares)},
            {"measure": _softmax_of_all_products},
        ),
    ),
    **{
        id: known(
            "You apply softmax to make the shares sum to 1.",
            "They sum to 1 without help once c · o is divided by o · o: the parts along the output "
            "add up to the output.",
            **how,
        )
        for id, how in (
            ("softmax-of-each-query", {"finish": _softmax_of_each_query}),
            ("softmax-of-the-products", {"measure": _softmax_of_the_products}),
        )
    },
    "texts-added": known(
        "You add up over the texts of the batch as well.",
        "Each text has an output of its own.",
        measure=_over_batch,
    ),
    "heads-added": known(
        "You add the shares of the heads up.",
        "They are right. The task asks for each head's own: (B, H, L, S).",
        finish=lambda shares: shares.sum(dim=1),
    ),
    "keys-added": known(
        "You add the shares of the keys up: one number for each head.",
        "They are right. The task asks for each key's own: (B, H, L, S).",
        finish=lambda shares: shares.sum(dim=-1),
    ),
}


TASK = Task(
    "07-shares_along",
    shares_along,
    shares_cases,
    mistakes=read_again("Weights are not an explanation", SHARES),
    build=build_shares,
    stages=shares_stages,
    number=7,
    since=2,
    alone=(
        "reshaped",
        "reshaped-turned",
        "small-number-added",
        "lengths-not-divided",
        "each-head-made-1",
        "signs-lost",
        "mean-of-all-parts",
        "cosines",
        "softmax",
        "softmax-of-each-query",
        "softmax-of-the-products",
        "all-outputs-together",
        "outputs-of-a-text-together",
        "summed-over-queries",
        "weights-squared",
        "squared",
        "negative-as-0-and-made-1",
        "queries-before-heads",
        "heads-added",
        "keys-added",
        "texts-added",
        "weights-forgotten",
    ),
)
