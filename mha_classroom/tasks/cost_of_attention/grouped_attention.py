"""Task 9.6, grouped_attention: query heads that share keys, which are not copied."""

import torch

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

SHARED = "Heads that share keys and values"


def grouped_cases(draw):
    def case(name, B, H, G, L, S, d_k, d_v, scale=1.0):
        inputs = {
            "queries": draw.normal(B, H, L, d_k, scale=scale),
            "keys": draw.normal(B, G, S, d_k),
            "values": draw.normal(B, G, S, d_v),
        }
        return Case(name, inputs)

    def from_projections(name, B, H, G, L, S, d_k, d_v):
        """Heads that were split with a transpose, so that they are not contiguous."""
        inputs = {
            "queries": draw.normal(B, L, H, d_k).transpose(1, 2),
            "keys": draw.normal(B, S, G, d_k).transpose(1, 2),
            "values": draw.normal(B, S, G, d_v).transpose(1, 2),
        }
        return Case(name, inputs)

    return [
        case("4 query heads, 2 key heads, one query", 1, 4, 2, 1, 3, 2, 5),
        case("6 query heads, 2 key heads, one query", 2, 6, 2, 1, 11, 5, 7),
        case("6 query heads, 3 key heads, 2 queries", 2, 6, 3, 2, 13, 7, 5),
        case("one key head for all 5 query heads", 3, 5, 1, 3, 7, 11, 13),
        case("as many key heads as query heads", 2, 3, 3, 4, 5, 7, 2),
        case("8 query heads, 2 key heads, as many queries as keys", 2, 8, 2, 4, 4, 7, 5),
        case("one key", 2, 4, 2, 3, 1, 5, 2),
        case("large scores", 2, 6, 3, 3, 5, 11, 7, scale=300.0),
        from_projections(
            "queries, keys and values are transposed tensors, so they are not contiguous",
            *(2, 6, 3, 4, 5, 7, 2),
        ),
    ]


def build_grouped(
    key_head=lambda h, H, G: h // (H // G),
    scale=lambda q: q.shape[-1] ** -0.5,
    over=-1,
    stack=lambda outputs: torch.stack(outputs, 1),
    value_head=None,
    query_head=lambda h, H, G: h,
    value_scale=None,
):
    """key_head: which one query head h uses. query_head: the one that comes at place h.
    over: the axis of softmax in (B, L, S)."""

    def grouped_attention(queries, keys, values):
        H, G = queries.shape[1], keys.shape[1]
        outputs = []
        for h in range(H):
            k = keys[:, key_head(h, H, G)]
            v = values[:, (value_head or key_head)(h, H, G)]
            weights = queries[:, query_head(h, H, G)] @ k.mT * scale(queries)
            weights = weights * (value_scale(values) if value_scale else 1.0)
            weights = weights.softmax(over)
            outputs.append(weights @ v)
        return stack(outputs)

    return grouped_attention


def _scores(queries, keys, values):
    return (queries @ keys.mT * queries.shape[-1] ** -0.5).softmax(-1) @ values


def _copied(queries, keys, values):
    group = queries.shape[1] // keys.shape[1]
    return _scores(queries, keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1))


def _repeated(queries, keys, values):
    group = queries.shape[1] // keys.shape[1]
    return _scores(queries, keys.repeat(1, group, 1, 1), values.repeat(1, group, 1, 1))


def _broadcast(queries, keys, values):
    split = queries.unflatten(1, (keys.shape[1], -1))
    return _scores(split, keys[:, :, None], values[:, :, None]).flatten(1, 2)


def _by_slices(heads_of):
    """A loop over the key heads, each with all query heads of its group: @ copies the key head."""

    def grouped_attention(queries, keys, values):
        H, G = queries.shape[1], keys.shape[1]
        groups = []
        for g in range(G):
            some = queries[:, heads_of(g, H, G)]
            groups.append(_scores(some, keys[:, g : g + 1], values[:, g : g + 1]))
        return torch.cat(groups, 1)

    return grouped_attention


def _neighbours(g, H, G):
    return slice(g * (H // G), (g + 1) * (H // G))


def _in_steps(g, H, G):
    return slice(g, None, G)


def _in_steps_to_their_places(queries, keys, values):
    output = queries.new_empty(*queries.shape[:3], values.shape[-1])
    G = keys.shape[1]
    for g in range(G):
        output[:, g::G] = _scores(queries[:, g::G], keys[:, g : g + 1], values[:, g : g + 1])
    return output


def _means(queries, keys, values):
    means = queries.unflatten(1, (keys.shape[1], -1)).mean(2)
    return _scores(means, keys, values)


def _as_rows(
    rows=lambda q, G: q.reshape(q.shape[0], G, -1, q.shape[-1]),
    scale=lambda rows: rows.shape[-1] ** -0.5,
    over=-1,
    back=lambda out, B, H, L: out.reshape(B, H, L, -1),
):
    """One matrix with all queries of a group. rows: (B, G, H / G · L, d_k) of the queries, and
    back: the other way."""

    def grouped_attention(queries, keys, values):
        B, H, L, _ = queries.shape
        q = rows(queries, keys.shape[1])
        weights = (q @ keys.mT * scale(q)).softmax(over)
        return back(weights @ values, B, H, L)

    return grouped_attention


def _queries_outside(out, B, H, L):
    return out.reshape(B, L, H, -1).transpose(1, 2)


def _queries_first(q, G):
    return q.transpose(1, 2).reshape(q.shape[0], G, -1, q.shape[-1])


def _inside_a_group(out, B, H, L):
    """(B, G, L, H / G) taken for the axes that it has."""
    G = out.shape[1]
    return out.reshape(B, G, L, H // G, -1).transpose(2, 3).reshape(B, H, L, -1)


MIXED = (
    _as_rows(back=_queries_outside),
    _as_rows(rows=_queries_first),
    _as_rows(rows=_queries_first, back=_queries_outside),
    _as_rows(back=_inside_a_group),
)


def _viewed(queries, keys, values):
    return _as_rows(rows=lambda q, G: q.view(q.shape[0], G, -1, q.shape[-1]))(queries, keys, values)


def _one_group_of_G(queries, keys, values):
    """Key head g for the query heads g · G to (g + 1) · G, as far as there are any."""
    H, G = queries.shape[1], keys.shape[1]
    right = build_grouped(key_head=lambda h, H, G: h // G)
    return right(queries[:, : min(H, G * G)], keys, values)


def _groups_of_G(inputs, value):
    """The shape of H = G · G heads, or a part of it; right where that is what there is."""
    if not torch.is_tensor(value):
        return False
    B, H, L, _ = inputs["queries"].shape
    G, d_v = inputs["keys"].shape[1], inputs["values"].shape[-1]
    if H == G * G:
        return like(build_grouped())(inputs, value)
    heads = value.shape[1] if value.dim() == 4 else 0
    want = _one_group_of_G(*inputs.values())
    if H < G * G or heads not in (len(want[0]), want.shape[1]):
        return tuple(value.shape) in ((B, min(H, G * G), L, d_v), (B, G * G, L, d_v))
    return like(_one_group_of_G)(inputs, value)


def _shape_is(*axes):
    """The `shows` of a mistake in the shape: one of these, for the inputs."""

    def shows(inputs, value):
        if not torch.is_tensor(value):
            return False
        B, H, L, _ = inputs["queries"].shape
        G, d_v = inputs["keys"].shape[1], inputs["values"].shape[-1]
        return tuple(value.shape) in [make(B, H, G, L, d_v) for make in axes]

    return shows


def _values_of_head_0(queries, keys, values):
    G = keys.shape[1]
    groups = []
    for g in range(G):
        some = queries[:, _neighbours(g, queries.shape[1], G)]
        groups.append(_scores(some, keys[:, g : g + 1], values[:, :1]))
    return torch.cat(groups, 1)


def _one_head_a_group(inputs, value):
    B, H, L, _ = inputs["queries"].shape
    G, d_v = inputs["keys"].shape[1], inputs["values"].shape[-1]
    return torch.is_tensor(value) and tuple(value.shape) == (B, G, L, d_v)


def _keys_for_values(queries, keys, values):
    return build_grouped()(queries, keys, keys)


SIZE = (
    "You take G for the number of query heads in a group.",
    "G is the number of groups. How many query heads share one key head? With 4 query heads and 2 "
    "key heads the two numbers are equal, and nobody notices.",
)

MISTAKES = {
    "keys-copied": known(
        "You copy keys and values for each query head: with a function that repeats, by an "
        "index, or by broadcasting.",
        "The numbers are right. But shared heads are there to save memory, and the copies take as "
        "much as a full cache. Where one matrix of keys meets several heads, @ makes a copy for "
        "each of them before it multiplies. One matrix with all queries of a group needs no copy.",
        wrong=_copied,
    ),
    "keys-copied-by-broadcasting": known(twin="keys-copied", wrong=_broadcast),
    "keys-copied-in-a-loop": known(
        "Your loop takes one key head for all query heads of its group, and @ copies it for each.",
        "The numbers are right. But where a matrix with a head axis of 1 meets several heads, @ "
        "makes a copy for each of them before it multiplies. With one query head at a time, or "
        "one matrix with all queries of a group, nothing is copied.",
        wrong=_by_slices(_neighbours),
    ),
    "key-heads-copied-in-turn": known(
        "You repeat the key heads as a whole: they come in the order 0, 1, 0, 1.",
        "Neighbouring query heads share one key head. And the copies take as much memory as a full "
        "cache, which sharing is there to save.",
        wrong=_repeated,
    ),
    "key-heads-in-turn": known(
        "The query heads take the key heads in turn: 0, 1, 0, 1.",
        "Neighbouring query heads share one key head.",
        key_head=lambda h, H, G: h % G,
    ),
    "key-heads-in-turn-in-a-loop": known(
        "Key head g serves the query heads g, g + G, g + 2G and so on.",
        "Neighbouring query heads share one key head. And where one key head meets several query "
        "heads, @ copies it for each of them.",
        wrong=_in_steps_to_their_places,
    ),
    "query-heads-in-steps": known(
        "A group takes every G-th query head, and the groups follow one another in your result.",
        "Neighbouring query heads share one key head. And the result has the heads in the order "
        "of the queries.",
        query_head=lambda h, H, G: h // (H // G) + h % (H // G) * G,
    ),
    "query-heads-in-steps-in-a-loop": known(
        "You give key head g the query heads g, g + G and so on, and join the groups one behind "
        "the other.",
        "Neighbouring query heads share one key head, and the heads of the result stand in the "
        "order of the queries. And @ copies a key head for each query head that it meets.",
        wrong=_by_slices(_in_steps),
    ),
    "groups-counted-for-their-size": known(
        "You take G for the number of query heads in a group.",
        "G is the number of groups. How many query heads share one key head? With 4 query heads "
        "and 2 key heads the two numbers are equal, and nobody notices.",
        key_head=lambda h, H, G: min(h // G, G - 1),
    ),
    "first-key-head-for-all": known(
        "All query heads use key head 0.",
        "That is multi-query attention. Here there may be several key heads.",
        key_head=lambda h, H, G: 0,
    ),
    "values-in-turn": known(
        "The keys are shared by neighbours, the values in turn.",
        "A head of values belongs to the head of keys with the same number.",
        value_head=lambda h, H, G: h % G,
    ),
    "heads-averaged": known(
        "You average the queries of a group.",
        "Query heads share keys and values, and nothing else: each has its own weights and its own "
        "output.",
        wrong=_means,
    ),
    "groups-not-joined": known(
        "The groups still stand on an axis of their own in your result.",
        "The task asks for the query heads as one axis, in their order.",
        stack=lambda outputs: torch.stack(outputs, 1)[:, :, None],
        shows=_shape_is(
            lambda B, H, G, L, d_v: (B, G, H // G, L, d_v),
            lambda B, H, G, L, d_v: (B, G, H // G * L, d_v),
            lambda B, H, G, L, d_v: (B, H, 1, L, d_v),
        ),
    ),
    "heads-behind-queries": known(
        "The heads stand behind the queries in your result, or are joined.",
        "The heads have to stay on the second axis.",
        stack=lambda outputs: torch.stack(outputs, 2),
        shows=_shape_is(
            lambda B, H, G, L, d_v: (B, L, H, d_v),
            lambda B, H, G, L, d_v: (B, L, H * d_v),
        ),
    ),
    "heads-in-front": known(
        "The heads stand before the batch in your result.",
        "torch.stack makes a new first axis unless told. The task asks for (B, H, L, d_v).",
        stack=lambda outputs: torch.stack(outputs, 0),
        shows=_shape_is(lambda B, H, G, L, d_v: (H, B, L, d_v)),
    ),
    "heads-stacked-in-length": known(
        "The heads are joined along the queries or along the batch.",
        "`cat` joins along an axis that is there. The heads need one of their own.",
        stack=lambda outputs: torch.cat(outputs, 1),
        shows=_shape_is(
            lambda B, H, G, L, d_v: (B, H * L, d_v),
            lambda B, H, G, L, d_v: (B * H, L, d_v),
            lambda B, H, G, L, d_v: (B, L, H * d_v),
        ),
    ),
    "view-of-what-lies-apart": known(
        "You use `view` on queries that are not contiguous.",
        "Heads that were split with a transpose do not lie one behind the other in memory. Your "
        "`view` works where they do. `reshape` copies if it has to, and one copy of the queries is "
        "allowed here.",
        wrong=_viewed,
    ),
    "heads-and-queries-mixed": known(
        "Heads and queries are mixed: you split one axis in an order in which it was not joined.",
        "If (heads, queries) were joined, heads · queries has to be split into (heads, queries) "
        "again. A reshape does not exchange axes. With one query nobody notices.",
        wrong=_as_rows(back=_queries_outside),
        shows=like(*MIXED),
    ),
    "one-key-head-a-group-of-G": known(*SIZE, wrong=_one_group_of_G, shows=_groups_of_G),
    "key-head-by-h-by-G": known(*SIZE, wrong=build_grouped(key_head=lambda h, H, G: h // G)),
    "one-query-head-a-group": known(
        "You use one query head for each key head and leave out the others.",
        "All H query heads attend, H / G of them with each key head.",
        wrong=lambda queries, keys, values: build_grouped()(
            queries[:, : keys.shape[1]], keys, values
        ),
        shows=_one_head_a_group,
    ),
    "nothing-shared": known(
        "You multiply queries and keys as they are, H heads with G.",
        "The heads do not pair up by themselves. Either all queries of a group become the rows of "
        "one matrix, or a loop picks the key head of each query head.",
        wrong=_scores,
    ),
    "keys-for-values": known(
        "You multiply the weights with the keys.",
        "The output is an average of values.",
        wrong=_keys_for_values,
        shows=like(_keys_for_values),
    ),
    "first-values-for-all": known(
        "All query heads use the values of head 0.",
        "A head of values belongs to the head of keys with the same number.",
        value_head=lambda h, H, G: 0,
    ),
    "first-values-for-all-in-a-loop": known(
        "All query heads use the values of head 0.",
        "A head of values belongs to the head of keys with the same number. And where a key head "
        "with an axis of 1 meets several query heads, @ copies it for each of them.",
        wrong=_values_of_head_0,
    ),
    "scaled-by-d_v": known(
        "The scores are divided by √d_v.",
        "The width that counts is that of a query and a key, d_k.",
        scale=lambda q: 1.0,
        value_scale=lambda v: v.shape[-1] ** -0.5,
    ),
    "multiplied-by-the-root": known(
        "The scores are multiplied by √d_k.",
        "They are divided by it.",
        scale=lambda q: q.shape[-1] ** 0.5,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than √d_k.",
        "d_k is the last axis of the queries, and its root is taken once.",
        scale=lambda q: q.shape[-2] ** -0.5,
        shows=like(
            _as_rows(scale=lambda rows: rows.shape[-2] ** -0.5),
            *(
                build_grouped(scale=scale)
                for scale in (
                    lambda q: q.shape[-2] ** -0.5,
                    lambda q: q.shape[1] ** -0.5,
                    lambda q: (q.shape[1] * q.shape[-1]) ** -0.5,
                    lambda q: q.shape[-1] ** -0.25,
                    lambda q: q.shape[-1] ** -1.5,
                )
            ),
        ),
    ),
    "softmax-over-rows": known(
        "Your softmax runs over the queries of a group.",
        "The weights of each query have to sum to 1 over the keys, on the last axis.",
        wrong=_as_rows(over=-2),
        shows=like(_as_rows(over=-2), _as_rows(over=1)),
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "Sharing changes nothing in the attention itself.",
        scale=lambda q: 1.0,
    ),
    "divided-by-d_k": known(
        "The scores are divided by d_k.",
        "They are divided by the root of it, as everywhere.",
        scale=lambda q: 1 / q.shape[-1],
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries.",
        "The weights of each query have to sum to 1 over the keys.",
        over=-2,
    ),
}

TASK = Task(
    "09-grouped_attention",
    build_grouped(),
    grouped_cases,
    run=run_small,
    examine=small_enough(
        shape=lambda inputs: (*inputs["queries"].shape[:3], inputs["values"].shape[-1]),
        limit=lambda inputs: max(
            *(X.numel() for X in inputs.values()),
            inputs["queries"][..., 0].numel() * inputs["values"].shape[-1],
            inputs["queries"][..., 0].numel() * inputs["keys"].shape[2],
        ),
        reason="The queries, keys, values, scores and the output need no more.",
    ),
    mistakes=read_again(SHARED, MISTAKES),
    build=build_grouped,
    alone=(
        "first-key-head-for-all",
        "first-values-for-all",
        "groups-not-joined",
        "heads-behind-queries",
        "heads-in-front",
        "heads-stacked-in-length",
        "scaled-by-d_v",
        "scaled-by-something-else",
        "multiplied-by-the-root",
    ),
    forbidden=("torch.nn.functional.scaled_dot_product_attention",),
    number=6,
)
