"""Task 1.4, additive_scores: scores by a small network."""

import torch

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged


def additive_scores(queries, keys, W_q, W_k, w_v):
    hidden = (queries @ W_q)[:, :, None] + (keys @ W_k)[:, None]  # (B, L, S, h)
    return torch.tanh(hidden) @ w_v


@and_in_float32
def additive_cases(draw):
    """Unequal widths, all sizes equal, saturated tanh."""

    def case(name, batch, lengths, widths, num_hiddens, scale=1.0):
        num_queries, num_keys = lengths
        query_size, key_size = widths
        inputs = {
            "queries": draw.normal(batch, num_queries, query_size, scale=scale),
            "keys": draw.normal(batch, num_keys, key_size, scale=scale),
            "W_q": draw.normal(query_size, num_hiddens),
            "W_k": draw.normal(key_size, num_hiddens),
            "w_v": draw.normal(num_hiddens),
        }
        if scale > 1:  # rounded so that float32 holds every sum before tanh
            inputs = {name: (8 * X).round() / 8 for name, X in inputs.items()}
        return Case(name, inputs)

    hand = {
        "queries": [[[1.0], [-1]]],
        "keys": [[[0.0, 0], [1, 0], [1, 2]]],
        "W_q": [[1.0, 0]],
        "W_k": [[1.0, 0], [0, 1]],
        "w_v": [1.0, 10],
    }
    hand = {name: torch.tensor(X, dtype=torch.float64) for name, X in hand.items()}
    return [
        Case("1 sentence, 2 queries of width 1, 3 keys of width 2", hand),
        case("2 sentences, widths 7 and 11", 2, (3, 5), (7, 11), 13),
        case("more queries than keys", 3, (7, 2), (3, 5), 11),
        case("as many queries as keys", 2, (5, 5), (3, 2), 7),
        case("one width everywhere", 2, (3, 5), (7, 7), 7),
        case("as many sentences as queries and keys", 3, (3, 3), (2, 5), 7),
        case("all sizes equal", 3, (3, 3), (3, 3), 3),
        case("h = 1", 2, (3, 5), (7, 2), 1),
        case("one query, one key", 2, (1, 1), (3, 2), 5),
        case("large numbers, where tanh levels off", 2, (3, 5), (7, 11), 13, scale=100.0),
    ]


def additive_stages(inputs):
    queries, keys, W_q, W_k, w_v = inputs.values()
    q, k = queries @ W_q, keys @ W_k
    hidden = q[:, :, None] + k[:, None]
    return {
        "the mapped": {"the mapped queries": q, "the mapped keys": k},
        "the sums of each query and key": hidden,
        "the results of tanh": torch.tanh(hidden),
        "the scores": torch.tanh(hidden) @ w_v,
    }


def build_additive(
    maps=lambda W_q, W_k: (W_q, W_k),
    each=unchanged,
    meet=lambda q, k: (q.unsqueeze(2), k.unsqueeze(1)),
    join=torch.add,
    activation=torch.tanh,
    weigh=lambda hidden, w_v: hidden @ w_v,
    scale=lambda h: 1.0,
    finish=unchanged,
):
    """maps: the matrices of queries and keys. each: of both after they are mapped. meet: the axes
    that let every query meet every key. join: the pair. activation: of the pair. weigh: h numbers
    become one. scale: of the scores. finish: their last change.
    """

    def additive_scores(queries, keys, W_q, W_k, w_v):
        W_q, W_k = maps(W_q, W_k)
        pair = join(*meet(each(queries @ W_q), each(keys @ W_k)))
        return finish(weigh(activation(pair), w_v) * scale(len(w_v)))

    return additive_scores


def _all_sentences_added(queries, keys, W_q, W_k, w_v):
    ways = (keys.roll(shift, 0) for shift in range(len(keys)))
    return sum(build_additive()(queries, others, W_q, W_k, w_v) for others in ways)


def _in_place(queries, keys, W_q, W_k, w_v):
    scores = build_additive()(queries, keys, W_q, W_k, w_v)
    queries.zero_()
    return scores


def _reshaped(queries, keys, W_q, W_k, w_v):
    scores = additive_scores(queries, keys, W_q, W_k, w_v)
    return scores.mT.reshape(scores.shape)


def _both_repeated(queries, keys, W_q, W_k, w_v):
    L, S = queries.shape[1], keys.shape[1]
    pairs = (queries @ W_q).repeat(1, S, 1) + (keys @ W_k).repeat(1, L, 1)
    return (torch.tanh(pairs) @ w_v).unflatten(1, (L, S))


def _in_two_orders(key_first):
    """Joins in one order and stacks in the other."""

    def additive_scores(queries, keys, W_q, W_k, w_v):
        q = queries[:, :, None].expand(-1, -1, keys.shape[1], -1)
        k = keys[:, None].expand(-1, queries.shape[1], -1, -1)
        joined = torch.cat([k, q] if key_first else [q, k], -1)
        stacked = torch.cat([W_q, W_k] if key_first else [W_k, W_q])
        return torch.tanh(joined @ stacked) @ w_v

    return additive_scores


def _query_matrix_where_it_fits(queries, keys, W_q, W_k, w_v):
    return additive_scores(queries, keys, W_q, W_q if W_q.shape == W_k.shape else W_k, w_v)


def _first_keys(scores):
    return scores * (torch.arange(scores.shape[2]) < scores.shape[1])


def _nan_where_large(inputs, result):
    """Whether the scores are right but for NaN where tanh has levelled off."""
    right = additive_scores(**inputs)
    if not torch.is_tensor(result) or result.shape != right.shape:
        return False
    lost = result.isnan()
    if result.dtype == torch.float32:  # there tanh levels off sooner, and digits are lost, too
        return bool(lost.any() or torch.allclose(result, right, atol=0.01))
    large = additive_stages(inputs)["the sums of each query and key"].abs().amax(-1) > 300
    return bool(torch.allclose(result[~lost], right[~lost]) and (large | ~lost).all())


ADDITIVE = {
    "no-tanh": known(
        "There is no tanh in your scores: is it left out, or its result not used?",
        "It comes between the mapped pair and w_v. Where the two are added and there is no tanh, "
        "the query's part of the score is the same for all keys, and only differences count: the "
        "query has no say.",
        activation=unchanged,
    ),
    "relu-for-tanh": known(
        "You use relu where the formula has tanh.",
        "relu cuts off what is negative and lets the rest grow without end. An additive score "
        "levels off on both sides.",
        activation=torch.relu,
    ),
    "sigmoid-for-tanh": known(
        "You use a sigmoid where the formula has tanh.",
        "Both level off, but a sigmoid stays between 0 and 1, tanh between -1 and 1.",
        activation=torch.sigmoid,
    ),
    "tanh-at-the-end": known(
        "You apply tanh to the finished score instead of the h numbers inside.",
        "Then all scores lie between -1 and 1, and softmax can hardly prefer one key. Inside, each "
        "of the h numbers levels off by itself, and w_v is applied afterwards.",
        activation=unchanged,
        finish=torch.tanh,
    ),
    "tanh-of-each": known(
        "You apply tanh to query and key separately, before they come together.",
        "Added afterwards, a score is a part from the query plus a part from the key: all keys "
        "share the query's part, and the query would have no say. tanh has to see both.",
        each=torch.tanh,
        activation=unchanged,
    ),
    "multiplied-not-added": known(
        "You multiply the mapped query with the mapped key.",
        "That is the idea of the other attention, the one with dot products. Here the name says "
        "what is done with the pair.",
        join=torch.mul,
    ),
    "subtracted-not-added": known(
        "You subtract the mapped key from the mapped query.",
        "A learned W_k could make up for that, but with the W_k given here the numbers are others.",
        join=torch.sub,
    ),
    "dot-product-in-disguise": known(
        "You take the dot product of the mapped query and the mapped key.",
        "That score grows without end when the query does, an additive one levels off. Where would "
        "tanh and w_v come in?",
        wrong=lambda queries, keys, W_q, W_k, w_v: (queries @ W_q) @ (keys @ W_k).mT,
    ),
    "softmax-included": known(
        "You return weights: each row adds up to 1.",
        "The task stops one step earlier, at the scores.",
        finish=lambda scores: scores.softmax(-1),
    ),
    "scaled": known(
        "You divide the scores by the square root of h.",
        "Additive scores are not scaled: what goes into the last sum is kept small by tanh.",
        scale=lambda h: h**-0.5,
    ),
    "vector-forgotten": known(
        "You add up the h numbers and leave w_v out.",
        "w_v says how much each of them counts, and with which sign. All of them with weight 1 is "
        "another score.",
        weigh=lambda hidden, w_v: hidden.sum(-1),
    ),
    "averaged-over-h": known(
        "You divide by h, or take the mean over the h numbers.",
        "The dot product with w_v adds them up, each times its entry of w_v; it does not divide.",
        weigh=lambda hidden, w_v: (hidden * w_v).mean(-1),
    ),
    "vector-inside-tanh": known(
        "You multiply by w_v before tanh instead of after it.",
        "Then no score can exceed h, whatever w_v says. It multiplies what tanh has squeezed.",
        activation=unchanged,
        weigh=lambda hidden, w_v: torch.tanh(hidden * w_v).sum(-1),
    ),
    "products-not-added-up": known(
        "Your result still has the axis of the h numbers: you multiply by w_v and stop there.",
        "A score is one number for each query and key. A dot product multiplies and adds up.",
        weigh=lambda hidden, w_v: hidden * w_v,
    ),
    "not-weighed": known(
        "Half of the way: you return the h numbers of each pair.",
        "A score is one number for each query and key. Which of the inputs has not been used, and "
        "how does it make one number of h?",
        weigh=lambda hidden, w_v: hidden,
    ),
    "axis-left-over": known(
        "Your result has an axis of length 1 at the end.",
        "A score is one number, so the result is (B, L, S).",
        weigh=lambda hidden, w_v: hidden @ w_v[:, None],
    ),
    "squeezed-too-far": known(
        "You squeeze every axis of length 1 out of the result.",
        "A batch of one sentence, one query or one key is still an axis, and whoever uses the "
        "result counts on it. Is there an axis that may go at all?",
        finish=torch.squeeze,
    ),
    "stacked-in-another-order-than-joined": known(
        "You join key and query in one order, and stack W_q and W_k in the other.",
        "In one product of the joined vector with the stacked matrices, what comes first in the "
        "one meets what comes first in the other.",
        wrong=_in_two_orders(key_first=True),
        shows=like(*map(_in_two_orders, (True, False))),
    ),
    "matrices-transposed": known(
        "Your W_q and W_k are used transposed: by you, or by a function such as F.linear?",
        "nn.Linear keeps its matrices that way, and so does the package. Here they are given as "
        "(width, h), ready for X @ W. Where width and h are equal, only the numbers tell.",
        section="The package version",
        maps=lambda W_q, W_k: (W_q.mT, W_k.mT),
    ),
    "matrices-swapped": known(
        "You map the queries with W_k and the keys with W_q.",
        "Queries and keys may have different widths, and each matrix fits one of them. Where the "
        "widths are equal, nothing but the numbers tells.",
        maps=lambda W_q, W_k: (W_k, W_q),
    ),
    "paired-one-to-one": known(
        "Your mapped queries and keys meet one to one: query 0 meets key 0 and no other.",
        "Every query has to meet every key. Where do the queries need an axis of length 1 for "
        "that, and where the keys?",
        meet=lambda q, k: (q, k),
    ),
    "queries-meet-other-sentences": known(
        "Your keys get no new axis, or get it in front, before that of the batch.",
        "Then sentences of the keys stand below queries, and with a batch of one nobody notices. "
        "A key is repeated along the queries: which axis is theirs?",
        wrong=build_additive(meet=lambda q, k: (q.unsqueeze(2), k.unsqueeze(0))),
    ),
    "queries-repeated-as-a-whole": known(
        "You repeat both as a whole: query 0, query 1 and so on, and beside them key 0, key 1 and "
        "so on.",
        "Each query has to meet every key, and a row of the result belongs to one query. So each "
        "query has to stand there S times in succession.",
        wrong=_both_repeated,
    ),
    "query-matrix-for-both-where-it-fits": known(
        "Where the widths are equal you map the keys with W_q, the matrix of the queries.",
        "Each of the two has a matrix of its own, whatever its width is.",
        wrong=_query_matrix_where_it_fits,
    ),
    "new-axes-at-the-same-place": known(
        "You give queries and keys their new axis at the same place.",
        "Then they still meet one to one. Broadcasting repeats an axis of length 1 to fit the "
        "other side: along which axis should a query be repeated, along which a key?",
        meet=lambda q, k: (q.unsqueeze(1), k.unsqueeze(1)),
    ),
    "keys-before-queries": known(
        "Your scores are (B, S, L): a row for each key.",
        "Rows ask, columns are asked: a row belongs to one query, since its weights have to add up "
        "to 1. Where L = S the shape does not show it.",
        meet=lambda q, k: (q.unsqueeze(1), k.unsqueeze(2)),
    ),
    "keys-before-queries-reshaped": known(
        "You compute the scores key by key, in the order of (B, S, L), and give them the shape "
        "(B, L, S).",
        "The shape is right, the numbers stand in other places: reshape deals them out row after "
        "row. Rows and columns have to change places.",
        wrong=_reshaped,
    ),
    "keys-of-the-first-sentence": known(
        "All sentences of the batch get the keys of the first.",
        "Every query meets the keys of its own sentence. With one sentence in the batch nobody "
        "notices.",
        wrong=lambda queries, keys, *maps: additive_scores(queries, keys[:1], *maps),
    ),
    "keys-of-all-sentences-added": known(
        "Your scores are sums over the sentences of the batch: each query meets the keys of all.",
        "Every query meets the keys of its own sentence only. In einsum, a letter that only one "
        "factor has, and not the result, is summed over.",
        wrong=_all_sentences_added,
    ),
    "as-many-keys-as-queries": known(
        "You score only as many keys as there are queries; what comes later stays 0.",
        "L and S may differ. A loop over keys has its own end, and zip ends with the shorter of "
        "two.",
        finish=_first_keys,
    ),
    "query-matrix-for-both": known(
        "You map the keys with W_q, the matrix of the queries.",
        "Queries and keys may have different widths, and each of them has a matrix of its own.",
        maps=lambda W_q, W_k: (W_q, W_q),
    ),
    "key-matrix-for-both": known(
        "You map the queries with W_k, the matrix of the keys.",
        "Queries and keys may have different widths, and each of them has a matrix of its own.",
        maps=lambda W_q, W_k: (W_k, W_k),
    ),
    "tanh-of-queries-only": known(
        "You apply tanh to the mapped queries and add the keys afterwards.",
        "tanh has to see the sum of both. Where does its bracket end?",
        join=lambda q, k: torch.tanh(q) + k,
        activation=unchanged,
    ),
    "tanh-of-keys-only": known(
        "You apply tanh to the mapped keys and add the queries afterwards.",
        "tanh has to see the sum of both. Where does its bracket end?",
        join=lambda q, k: q + torch.tanh(k),
        activation=unchanged,
    ),
    "tanh-of-powers": known(
        "You write tanh as a quotient, of powers of e for example, and large numbers give NaN.",
        "e to the power 710 is infinite, and inf / inf is NaN, like 0 / 0. On both sides tanh has "
        "levelled off long before; PyTorch has a function that knows.",
        activation=lambda z: (z.exp() - (-z).exp()) / (z.exp() + (-z).exp()),
        shows=_nan_where_large,
    ),
    "queries-changed-in-place": known(
        "You change the queries that you are given.",
        "Whoever calls the function still needs them. Functions whose names end in _, and +=, "
        "write into the tensor that they are given: work on a new one.",
        wrong=_in_place,
    ),
}

TASK = Task(
    "01-additive_scores",
    additive_scores,
    additive_cases,
    returns=("the result",),
    mistakes=read_again("Additive attention", ADDITIVE),
    build=build_additive,
    stages=additive_stages,
    forbidden=("mha_course.attention.AdditiveAttention", "d2l.torch.AdditiveAttention"),
    number=4,
    alone=(
        "keys-of-all-sentences-added",
        "as-many-keys-as-queries",
        "query-matrix-for-both",
        "key-matrix-for-both",
        "tanh-of-powers",
    ),
)
