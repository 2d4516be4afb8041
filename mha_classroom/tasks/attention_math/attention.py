"""Task 1.3, attention: all queries at once."""

import torch

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import Task, and_in_float32, by_id, known, read_again
from mha_classroom.tasks.attention_math.attend import (
    BOTH,
    FINISHED,
    attention_stages,
    build_attention,
    case_of,
    enlarged,
)
from mha_classroom.tasks.attention_math.softmax import DIGITS, EDGE, SHIFT


def attention(queries, keys, values):
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


@and_in_float32
def attention_cases(draw):
    """Batches of unequal and of equal sizes, zero and large scores."""

    def case(name, batch, lengths, d, d_v, change=lambda *tensors: tensors):
        num_queries, num_keys = lengths
        queries, keys = change(draw.normal(batch, num_queries, d), draw.normal(batch, num_keys, d))
        return case_of(name, queries, keys, draw.normal(batch, num_keys, d_v))

    keys = [[[0.0, 0], [1, 1], [1, 0]]]
    values = [[[0.0, 0, 10, 1], [9, 0, 10, 2], [0, 9, 10, 3]]]
    large = [[[1000.0], [1001], [999]], [[-1e6], [-1e6 - 2], [-1e6]]]
    apart = [[[1.0], [3]], [[100], [300]]]
    transposed = (draw.normal(2, 7, 3).mT, draw.normal(2, 7, 5).mT, draw.normal(2, 11, 5).mT)
    return [
        case_of("1 sentence, 2 queries, 3 pairs", [[[1.0, 1], [1, -2]]], keys, values),
        case_of("2 sentences, queries of zeros", [[[0.0]], [[0]]], [[[1.0], [2]]] * 2, apart),
        case("2 sentences, 3 queries, 5 keys", 2, (3, 5), 7, 11),
        case("more queries than keys", 3, (7, 2), 5, 11),
        case("as many queries as keys", 2, (5, 5), 3, 7),
        case("as many keys as their width", 2, (3, 5), 5, 7),
        case("as many sentences as queries and keys", 3, (3, 3), 2, 5),
        case("all sizes equal", 3, (3, 3), 3, 3),
        case("3 queries, one key", 2, (3, 1), 3, 5),
        case_of("one score 3000 above the others", [[[1.0], [0]]], [[[0.0], [3000], [0]]], values),
        case_of(EDGE, [[[1.0], [0]]], [[[709.0], [709.5], [711]]], values),
        case_of(DIGITS, [[[1.0], [0]]], [[[300000.3], [300000], [299999.6]]], values),
        case_of("scores around 1000 and -1000", [[[1.0], [-1]]], large[:1], values),
        case_of("the second sentence far below the first", [[[1.0]], [[1]]], large, values * 2),
        case("large scores, all sizes equal", 3, (3, 3), 3, 3, change=enlarged),
        case_of("no tensor is contiguous", *transposed),
    ]


def _causal(queries, keys, values):
    scores = queries @ keys.mT
    later = torch.ones_like(scores).triu(1).bool()
    return torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1) @ values


def _as_one_sentence(queries, keys, values):
    joined = (X.reshape(1, -1, X.shape[-1]) for X in (queries, keys, values))
    return build_attention()(*joined).reshape(*queries.shape[:2], -1)


def _first_keys(queries, keys, values):
    count = queries.shape[1]
    if count > keys.shape[1]:
        raise IndexError(
            f"index {keys.shape[1]} is out of bounds for dimension 1 with size {keys.shape[1]}"
        )
    return build_attention()(queries, keys[:, :count], values[:, :count])


def _into_the_shape_of_queries(queries, keys, values):
    result = torch.zeros_like(queries)
    for sentence, output in enumerate(attention(queries, keys, values)):
        result[sentence] = output
    return result


def _less_the_largest_of_each_key(queries, keys, values):
    scores = queries @ keys.mT
    return (scores - scores.amax(1, keepdim=True)).softmax(-1) @ values


def _zeros_hidden(queries, keys, values):
    scores = queries @ keys.mT
    return scores.masked_fill(scores == 0, -torch.inf).softmax(-1) @ values


ATTENTION = {
    "scores-returned": known(
        "Half of the way: you return the scores.",
        "They say how well each key fits. They are no shares of one whole yet, and no value has "
        "been averaged.",
        wrong=lambda queries, keys, values: queries @ keys.mT,
    ),
    **by_id(BOTH),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each query has one unit of attention to share out among the keys: the weights of a query "
        "sum to 1. No shape shows the difference, but a number that all values share, like 10 in "
        "the example, no longer comes out as it went in.",
        axis=-2,
    ),
    "largest-of-each-key": known(
        "You subtract from each score the largest of its column, over the queries.",
        "The scores of one row are then shifted by different amounts, which changes the "
        "differences between them. Which axis holds the keys of one query?",
        section=SHIFT,
        wrong=_less_the_largest_of_each_key,
        shows=like(
            _less_the_largest_of_each_key,
            build_attention(shift=lambda x, axis: x.amax(1, keepdim=True)),
        ),
    ),
    "scores-of-0-hidden": known(
        "A score of 0 gets no weight in your answer, as if it were padding.",
        "A score of 0 is a score like any other: a query of zeros gives every key the same weight.",
        wrong=_zeros_hidden,
    ),
    "distances": known(
        "You compare by distance: the nearer a key, the larger its score.",
        "The task asks for dot products. They reward long keys too, not only near ones.",
        **any_of(
            build_attention,
            score=(
                lambda queries, keys: -torch.cdist(queries, keys).square() / 2,
                lambda queries, keys: -torch.cdist(queries, keys).square(),
                lambda queries, keys: -torch.cdist(queries, keys),
            ),
        ),
    ),
    "softmax-over-the-batch": known(
        "Your softmax runs along the first axis: the weights of the same place in different "
        "sentences sum to 1.",
        "Sentences lie side by side and have nothing to do with each other. In a batch of one, all "
        "your weights are 1.",
        axis=0,
    ),
    "softmax-over-the-whole-table": known(
        "All weights of a sentence together sum to 1.",
        "Each query is a question of its own and has one unit of attention to share out, however "
        "many other queries there are. A number that all values share, like 10 in the example, "
        "should come out as it went in.",
        axis=(-2, -1),
    ),
    "one-maximum-for-all": known(
        "You subtract one and the same number from all scores of the batch.",
        "Queries whose scores lie far below it are left with powers that all round to 0, and 0 / 0 "
        "is NaN. Each row can be shifted by a number of its own.",
        section=SHIFT,
        shift=lambda x, axis: x.amax(),
    ),
    "one-maximum-a-sentence": known(
        "You subtract one and the same number from all scores of a sentence.",
        "Queries whose scores lie far below it are left with powers that all round to 0, and 0 / 0 "
        "is NaN. Each row can be shifted by a number of its own.",
        section=SHIFT,
        shift=lambda x, axis: x.amax((1, 2), keepdim=True),
    ),
    "weights-transposed": known(
        "Your weights meet the values the wrong way round: their rows stand for keys.",
        "Row i of the weights has to say what query i takes of each key. Yours says what each "
        "query takes of key i, and with L = S no error warns you. Do you transpose once too often, "
        "or once too seldom?",
        combine=lambda weights, values: weights.mT @ values,
    ),
    "queries-and-keys-swapped": known(
        "Your keys ask and your queries are asked.",
        "The scores need a row for each query. Where L and S differ the product with the values "
        "fails; where they agree it gives wrong numbers without a word.",
        score=lambda queries, keys: keys @ queries.mT,
    ),
    "keys-not-transposed": known(
        "You multiply the queries by the keys as they are.",
        "A product takes rows of the left with columns of the right, and here each key is a row. "
        "With as many keys as features there is no error, only wrong numbers.",
        score=lambda queries, keys: queries @ keys,
    ),
    "all-axes-reversed": known(
        "You transpose the keys with the batch: (d, S, B), their axes in reverse order.",
        "That is what .T does to three axes. Two of them have to change places, and the one that "
        "tells sentences apart has to stay.",
        score=lambda queries, keys: queries @ keys.permute(2, 1, 0),
    ),
    "keys-reshaped": known(
        "You reshape the keys to (B, d, S).",
        "The shape is right, the numbers are not: reshape deals them out row after row, so that "
        "a column holds parts of several keys. The axes have to change places.",
        score=lambda queries, keys: queries @ keys.reshape(keys.mT.shape),
    ),
    "keys-viewed": known(
        "You view the keys as (B, d, S).",
        "The shape is right, the numbers are not: view leaves them in the order in which they lie "
        "in memory, so that a column holds parts of several keys. The axes have to change places.",
        score=lambda queries, keys: queries @ keys.view(keys.mT.shape),
    ),
    "batch-as-one-sentence": known(
        "Your queries find the keys of all sentences of the batch, as if these lay end to end.",
        "Every query attends to the keys of its own sentence only. With one sentence in the batch "
        "nobody notices.",
        wrong=_as_one_sentence,
    ),
    "first-sentence-for-all": known(
        "All your queries attend to the first sentence.",
        "Every query attends to the keys and values of its own sentence. With one sentence in the "
        "batch nobody notices.",
        wrong=lambda queries, keys, values: torch.softmax(queries @ keys[0].T, dim=-1) @ values[0],
    ),
    "keys-of-the-first-sentence": known(
        "All sentences of the batch get the keys of the first.",
        "Every query meets the keys of its own sentence. With one sentence in the batch nobody "
        "notices.",
        wrong=lambda queries, keys, values: attention(queries, keys[:1].expand_as(keys), values),
    ),
    "later-keys-hidden": known(
        "Your queries do not see the keys that come after their own place.",
        "That is for models that write a text word by word. Here every query sees all keys.",
        wrong=_causal,
    ),
    "first-query-only": known(
        "You return the result of the first query of each sentence.",
        "All words ask, each for itself: the result has a row for every query.",
        finish=lambda result: result[:, 0],
    ),
    "batch-and-keys-exchanged": known(
        "You transpose the first two axes of the keys: batch and keys change places.",
        "transpose(0, 1) is right for one sentence alone. In a batch axis 0 tells sentences apart "
        "and has to stay.",
        score=lambda queries, keys: queries @ keys.transpose(0, 1),
    ),
    "keys-of-all-sentences-added": known(
        "Your scores are sums over the sentences of the batch: each query meets the keys of all.",
        "Every query attends to the keys of its own sentence only. In einsum, a letter that only "
        "one factor has, and not the result, is summed over.",
        score=lambda queries, keys: queries @ keys.sum(0).T,
    ),
    "values-of-the-first-sentence": known(
        "Your weights are right, but all sentences take the values of the first.",
        "Every query brings back values of its own sentence. With one sentence in the batch "
        "nobody notices.",
        combine=lambda weights, values: weights @ values[0],
    ),
    "values-of-all-sentences-added": known(
        "Your weights are right, but each sentence takes the values of all, added up.",
        "Every query brings back values of its own sentence. In einsum, a letter that only one "
        "factor has, and not the result, is summed over.",
        combine=lambda weights, values: weights @ values.sum(0),
    ),
    "as-many-keys-as-queries": known(
        "You use only as many keys as there are queries.",
        "L and S may differ. A loop over keys has its own end.",
        wrong=_first_keys,
    ),
    "result-as-wide-as-the-queries": known(
        "You collect the result in a tensor of the shape of the queries.",
        "What comes out is made of values, and these may be wider or narrower than queries and "
        "keys.",
        wrong=_into_the_shape_of_queries,
    ),
    "batch-of-one-squeezed": known(
        "A batch of one sentence loses its axis.",
        "One sentence is still a batch, and whoever uses the result counts on its axis.",
        finish=lambda result: result.squeeze(0),
    ),
    "sentences-joined": known(
        "Your result has one row after the other and no axis for the sentences.",
        "A batch comes out as a batch: (B, L, d_v).",
        finish=lambda result: result.flatten(0, 1),
    ),
    "result-transposed": known(
        "Your result is (B, d_v, L): each query is a column.",
        "Rows ask, so what a query brings back is a row.",
        finish=lambda result: result.mT,
    ),
}

TASK = Task(
    "01-attention",
    attention,
    attention_cases,
    returns=("the result",),
    mistakes=read_again("All queries at once", ATTENTION),
    build=build_attention,
    stages=attention_stages,
    uses=("01-softmax", "01-attend"),
    forbidden=FINISHED,
    number=3,
    alone=(
        "distances",
        "scores-cut-off",
        "softmax-over-the-whole-table",
        "last-pair-left-out",
        "batch-and-keys-exchanged",
        "keys-of-all-sentences-added",
        "values-of-all-sentences-added",
        "keys-of-the-first-sentence",
        "later-keys-hidden",
        "values-of-the-first-sentence",
        "batch-of-one-squeezed",
    ),
)
