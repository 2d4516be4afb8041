"""Task 9.6, grouped_attention: query heads that share keys, which are not copied."""

import torch

from mha_classroom.checks.forms import like, near
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

SHARED = "Heads that share keys and values"


@and_in_float32
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

    large = case("large scores, all negative in sequence 0", 2, 6, 3, 3, 5, 11, 7, scale=1e5)
    large.inputs["queries"][0].abs_()
    large.inputs["keys"][0].abs_().neg_()
    return [
        case("4 query heads, 2 key heads, one query", 1, 4, 2, 1, 3, 2, 5),
        case("6 query heads, 2 key heads, one query", 2, 6, 2, 1, 11, 5, 7),
        case("6 query heads, 3 key heads, 2 queries", 2, 6, 3, 2, 13, 7, 5),
        case("one key head for all 5 query heads", 3, 5, 1, 3, 7, 11, 13),
        case("as many key heads as query heads", 2, 3, 3, 4, 5, 7, 2),
        case("8 query heads, 2 key heads, as many queries as keys", 2, 8, 2, 4, 4, 7, 5),
        case("one key", 2, 4, 2, 3, 1, 5, 2),
        large,
        from_projections(
            "queries, keys and values are transposed tensors, so they are not contiguous",
            *(2, 6, 3, 4, 5, 7, 2),
        ),
    ]


def grouped_stages(inputs):
    """With the axes (G, H / G, B, L, S), so that a loop over heads or groups finds its pieces."""
    queries, keys, values = inputs.values()
    q = queries.unflatten(1, (keys.shape[1], -1)).permute(1, 2, 0, 3, 4)
    k, v = (X.transpose(0, 1)[:, None] for X in (keys, values))
    scores = q @ k.mT
    scaled = scores * q.shape[-1] ** -0.5
    return {
        "the scores": scores,
        "the scaled scores": scaled,
        "the weights": scaled.softmax(-1),
        "what each head brings": scaled.softmax(-1) @ v,
    }


def build_grouped(
    key_head=lambda h, H, G: h // (H // G),
    scale=lambda q: q.shape[-1] ** -0.5,
    over=-1,
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
        return torch.stack(outputs, 1)

    return grouped_attention


def _scores(queries, keys, values):
    return (queries @ keys.mT * queries.shape[-1] ** -0.5).softmax(-1) @ values


def _results_in_steps(queries, keys, values):
    outputs = build_grouped()(queries, keys, values)
    return outputs.unflatten(1, (keys.shape[1], -1)).transpose(1, 2).flatten(1, 2)


def _copied(queries, keys, values):
    group = queries.shape[1] // keys.shape[1]
    return _scores(queries, keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1))


def _by_slices(queries, keys, values):
    """A loop over the key heads, each with all query heads of its group: @ copies the key head."""
    parts = (X.split(1, 1) for X in (keys, values))
    groups = zip(queries.chunk(keys.shape[1], 1), *parts, strict=True)
    return torch.cat([_scores(*group) for group in groups], 1)


def _means(queries, keys, values):
    means = queries.unflatten(1, (keys.shape[1], -1)).mean(2)
    return _scores(means, keys, values)


def _as_rows(
    rows=lambda q, G: q.reshape(q.shape[0], G, -1, q.shape[-1]),
    scale=lambda rows: rows.shape[-1] ** -0.5,
    over=-1,
    softmax=None,
    back=lambda out, B, H, L: out.reshape(B, H, L, -1),
):
    """One matrix with all queries of a group. rows: (B, G, H / G · L, d_k) of the queries, and
    back: the other way."""

    def grouped_attention(queries, keys, values):
        B, H, L, _ = queries.shape
        q = rows(queries, keys.shape[1])
        scores = q @ keys.mT * scale(q)
        weights = softmax(scores) if softmax else scores.softmax(over)
        return back(weights @ values, B, H, L)

    return grouped_attention


def _nan_where_large(inputs, value):
    """Right but for NaN where scores are large."""
    right = _as_rows()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    nan = value.isnan()
    large = inputs["queries"].abs().max() > 100
    tolerance = 1e-2 if large else 1e-4  # exp(-740) has few digits left, float32 has 7
    fits = (near(value.double(), right.double(), tolerance) | nan).all()
    return bool(fits) and (large or not bool(nan.any()))


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


MISTAKES = {
    "keys-copied": known(
        "You copy keys and values for each query head: with a function that repeats, by an "
        "index, or by broadcasting.",
        "Copying changes no number. But shared heads are there to save memory, and the copies take "
        "as much as a full cache. Where one matrix of keys meets several heads, @ makes a copy for "
        "each of them before it multiplies. One matrix with all queries of a group needs no copy.",
        wrong=_copied,
    ),
    "keys-copied-in-a-loop": known(
        "Your loop takes one key head for all query heads of its group, and it is copied for each: "
        "by @, or by a function that repeats.",
        "Copying changes no number. But where a matrix with a head axis of 1 meets several heads, "
        "@ makes a copy for each of them before it multiplies. With one query head at a time, or "
        "one matrix with all queries of a group, nothing is copied.",
        wrong=_by_slices,
    ),
    "key-heads-in-turn": known(
        "The query heads take the key heads in turn: with 2 key heads 0, 1, 0, 1.",
        "Neighbouring query heads share one key head.",
        key_head=lambda h, H, G: h % G,
    ),
    "query-heads-in-steps": known(
        "A group takes every G-th query head, and the groups follow one another in your result.",
        "Neighbouring query heads share one key head. And the result has the heads in the order "
        "of the queries.",
        query_head=lambda h, H, G: h // (H // G) + h % (H // G) * G,
    ),
    "values-in-turn": known(
        "The keys are shared by neighbours, the values in turn.",
        "A head of values belongs to the head of keys with the same number.",
        value_head=lambda h, H, G: h % G,
    ),
    "heads-averaged": known(
        "You average the queries of a group, or its scores.",
        "Query heads share keys and values, and nothing else: each has its own weights and its own "
        "output.",
        wrong=_means,
    ),
    "heads-and-queries-mixed": known(
        "Heads and queries are mixed: you split one axis in an order in which it was not joined.",
        "If (heads, queries) were joined, heads · queries has to be split into (heads, queries) "
        "again. A reshape does not exchange axes. With one query nobody notices.",
        wrong=_as_rows(back=_queries_outside),
        shows=like(*MIXED),
    ),
    "groups-counted-for-their-size": known(
        "You take G for the number of query heads in a group.",
        "G is the number of groups. How many query heads share one key head? With 4 query heads "
        "and 2 key heads the two numbers are equal, and nobody notices.",
        key_head=lambda h, H, G: h // G,
    ),
    "groups-counted-for-their-size-to-the-last": known(
        "You take G for the number of query heads in a group, and the last group has the rest.",
        "G is the number of groups. How many query heads share one key head? With 4 query heads "
        "and 2 key heads the two numbers are equal, and nobody notices.",
        key_head=lambda h, H, G: min(h // G, G - 1),
    ),
    "results-in-steps": known(
        "In your result the first heads of all groups come first, then the second ones.",
        "What each head brings is right. The result has the heads in the order of the queries: "
        "all of a group, then those of the next.",
        wrong=_results_in_steps,
    ),
    "nothing-shared": known(
        "You multiply H heads with G as they are: queries with keys, or weights with values.",
        "The heads do not pair up by themselves. In both products either all rows of a group stand "
        "in one matrix, or a loop picks the key head of each query head.",
        wrong=_scores,
    ),
    "not-scaled": known(
        "The scores are not divided by √d_k.",
        "Sharing changes nothing in the attention itself.",
        scale=lambda q: 1.0,
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries or the heads, not over the keys.",
        "The weights of each query have to sum to 1 over the keys, on the last axis.",
        over=-2,
        shows=like(build_grouped(over=-2), _as_rows(over=-2), _as_rows(over=1)),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "exp-too-large": known(
        "Your exponentials overflow where scores are large, or all of them are 0 in a row: you "
        "subtract nothing, or a number that is not the largest score of its own row.",
        "Only differences within a row matter to a softmax. What can be subtracted from a whole "
        "row before the exponential?",
        wrong=_as_rows(softmax=lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True)),
        shows=_nan_where_large,
    ),
    "first-key-head-for-all": known(
        "All query heads use key head 0.",
        "That is multi-query attention. Here there may be several key heads.",
        key_head=lambda h, H, G: 0,
    ),
    "first-values-for-all": known(
        "All query heads use the values of head 0.",
        "A head of values belongs to the head of keys with the same number.",
        value_head=lambda h, H, G: 0,
    ),
    "scaled-by-the-width-of-values": known(
        "You divide the scores by √d_v, the width of a value.",
        "The values do not go into the scores. A score is the product of a query and a key, and "
        "d_k is the width of these.",
        scale=lambda q: 1.0,
        value_scale=lambda v: v.shape[-1] ** -0.5,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than √d_k, or multiplied by it.",
        "d_k is the last axis of the queries, the width of a query and a key. They are divided by "
        "its root, once.",
        scale=lambda q: 1 / q.shape[-1],
        shows=like(
            _as_rows(scale=lambda rows: rows.shape[-2] ** -0.5),
            *(
                build_grouped(scale=scale)
                for scale in (
                    lambda q: 1 / q.shape[-1],
                    lambda q: q.shape[-1] ** 0.5,
                    lambda q: q.shape[-2] ** -0.5,
                    lambda q: q.shape[1] ** -0.5,
                    lambda q: (q.shape[1] * q.shape[-1]) ** -0.5,
                    lambda q: q.shape[-1] ** -0.25,
                )
            ),
        ),
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
        reason="The queries, keys, values, scores and the output need no more: each query head "
        "meets one key head.",
    ),
    mistakes=read_again(SHARED, MISTAKES | ALONE),
    build=build_grouped,
    stages=grouped_stages,
    alone=tuple(ALONE),
    forbidden=("torch.nn.functional.scaled_dot_product_attention",),
    number=6,
)
