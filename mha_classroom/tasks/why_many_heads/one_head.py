"""Task 3.1, one_head: projections of its own, then attention."""

import torch

from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.scaled_dot_product.scaled_dot_product_attention import LIBRARY
from mha_course.attention import scaled_dot_product_attention


def one_head(X, W_q, W_k, W_v):
    return scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)[0]


@and_in_float32
def head_cases(draw):
    tokens = torch.tensor([[[2.0, 0.0], [0.0, 4.0]]], dtype=torch.float64)

    def case(name, B, L, d_model, d_k, d_v, X=None):
        X = draw.normal(B, L, d_model) if X is None else X
        matrices = [draw.normal(d_model, d, scale=d_model**-0.5) for d in (d_k, d_k, d_v)]
        return Case(name, dict(zip(("X", "W_q", "W_k", "W_v"), (X, *matrices), strict=True)))

    one, zero = tokens.new_ones, tokens.new_zeros
    eye = torch.eye(2, dtype=torch.float64)
    three = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]]], dtype=torch.float64)
    digits = torch.arange(12, dtype=torch.float64).reshape(1, 2, 6) - 6
    return [
        Case(
            "2 words, d_k = 4, all scores are 0, so each word gets the average",
            {"X": tokens, "W_q": zero(2, 4), "W_k": one(2, 4), "W_v": eye},
        ),
        Case(
            "3 words, d_k = 4, values 1, 0 and 0, so that the output is the weight on word 0",
            {"X": three, "W_q": one(2, 4) / 2, "W_k": eye[:1].T.repeat(1, 4), "W_v": eye[:1].T},
        ),
        case("2 sequences, 5 words, d_model = 7, d_k = 3, d_v = 11", 2, 5, 7, 3, 11),
        case("as many words as sequences and features", 3, 3, 3, 3, 3),
        case("1 word: nothing but its own value", 2, 1, 5, 3, 2),
        case("X is a transposed tensor", 3, 7, 5, 2, 3, X=draw.normal(3, 5, 7).transpose(1, 2)),
        Case(
            "scores of 3000, 3001 and 3002",
            {
                "X": torch.tensor([[[1.0, 0], [1, 1], [1, 2]]]).double(),
                "W_q": torch.tensor([[3000.0], [0]]).double(),
                "W_k": torch.tensor([[1], [1 / 3000]]).double(),
                "W_v": torch.tensor([[0.0], [1]]).double(),
            },
        ),
        Case("scores of −6000, −3001 and −3000, and −3500 for −6000", far_below_0()),
        Case(
            "scores in the thousands",
            {"X": digits, "W_q": 9 * one(6, 4), "W_k": 2 * one(6, 4), "W_v": one(6, 3)},
        ),
    ]


def far_below_0():
    """A head of width 1 whose scores are −6000, −3001 and −3000 in every row of sequence 0. In
    sequence 1 they are −3500, −3001 and −3000: less their mean, their powers do not overflow."""
    return {
        "X": torch.tensor([[[1, x], [1, 0.001], [1, 0]] for x in (3, 0.5)]).double(),
        "W_q": torch.tensor([[-1000.0], [0.0]]).double(),
        "W_k": torch.tensor([[3.0], [1.0]]).double(),
        "W_v": torch.tensor([[0.0], [1.0]]).double(),
    }


def head_stages(inputs):
    X, W_q, W_k, W_v = inputs.values()
    q, k, v = X @ W_q, X @ W_k, X @ W_v
    scores = q @ k.mT
    weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
    return {
        "the projections": {"the queries": q, "the keys": k, "the values": v},
        "the scores": scores,
        "the scaled scores": scores / q.shape[-1] ** 0.5,
        "the weights": weights,
        "the weighted sums of the values": weights @ v,
    }


def build_head(
    project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_v),
    match=lambda q, k: q @ k.mT,
    scale=lambda scores, X, W_q, W_v: scores / W_q.shape[-1] ** 0.5,
    softmax=lambda scores, W_q: scores.softmax(-1),
    finish=lambda weights, v: weights @ v,
):
    """It takes several heads as well: X (B, 1, L, d_model) and matrices (H, d_model, d)."""

    def one_head(X, W_q, W_k, W_v):
        q, k, v = project(X, W_q, W_k, W_v)
        return finish(softmax(scale(match(q, k), X, W_q, W_v), W_q), v)

    return one_head


def _thirds(X, *matrices):
    q, k, v = (X @ torch.cat(matrices, -1)).chunk(3, -1)
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


ONE = "One head, with matrices of its own"
STANDS = "Where a word stands"


def less_the_largest_of_all(scores, W_q):
    """Of one sequence's table, or of all: only one is needed, so that nothing overflows."""
    powers = (scores - scores.amax((0, -2, -1), keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def less_the_mean(scores, W_q):
    powers = (scores - scores.mean(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def overflow_hidden(scores, W_q):
    return (scores.exp() / scores.exp().sum(-1, keepdim=True)).nan_to_num()


def rounded_root(scores, X, W_q, W_v):
    return scores / int(W_q.shape[-1] ** 0.5)


# What both this task and `loop_of_heads` say of an answer that goes this way.
LARGEST_OF_ALL = (
    "You take the largest score of several rows away from each of them, those of a whole table for "
    "instance, and not the largest of each row.",
    "In a row whose scores are all far below that, every exponential becomes 0, and 0 / 0 is not a "
    "number. (Keeping the divisor away from 0 only turns it into 0.) Each row has its own softmax.",
)
MEAN_SUBTRACTED = (
    "You take a number away from each row that lies below its largest score: the mean, the "
    "smallest, or another one between the scores.",
    "A score that is far above it still overflows: e to the power 710 is infinite, and inf / inf "
    "is NaN. What has to come out as 0, so that no power is above 1?",
)
OVERFLOW_HIDDEN = (
    "Your exponentials overflow when scores are in the thousands, and 0 takes the place of what "
    "comes of it: of inf, or of inf / inf, which is NaN.",
    "A largest score then gets no weight, where it should get most. Only differences between "
    "scores matter to a softmax: what can be taken away from a whole row before the exponential?",
)
CLAMPED = (
    "You keep scores within a bound before the exponential, or the exponentials themselves.",
    "Where all scores of a row are past it they become equal, and so do the weights. Only "
    "differences between scores matter to a softmax: what can be taken away from a whole row?",
)
ROUNDED = (
    "You divide the scores by the square root of d_k without what stands after the point.",
    "With d_k = 4 nobody notices: its root is a whole number. int, // and floor leave out the "
    "rest, and the root of 3 is 1.73.",
)
SQUEEZED = (
    "Your output has lost an axis of size 1.",
    "squeeze takes such axes away: a batch of one sequence has no batch any more, and what comes "
    "after this counts on it.",
)


def clamped(scores, W_q):
    return scores.clamp(-80, 80).softmax(-1)


def _causal(scores, W_q):
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1)


# Of `loop_of_heads` as well.
SHARED = {
    "not-scaled": known(
        "Your scores are not scaled, or their scale is undone by another factor.",
        "Their spread grows with the width of queries and keys, and softmax then puts nearly all "
        "the weight on one word (lesson 2).",
        scale=lambda scores, X, W_q, W_v: scores,
    ),
    "divided-by-width": known(
        "You divide the scores by the whole width of a query: by d_k, or by its root twice.",
        "The spread of a score is the root of that width, and dividing by more makes all weights "
        "nearly equal (lesson 2). Does a function that you call scale already?",
        scale=lambda scores, X, W_q, W_v: scores / W_q.shape[-1],
    ),
    "scaled-by-d_model": known(
        "You divide the scores by the square root of d_model, the width of a word.",
        "The scale follows from the vectors that meet in a score. How many numbers do they have?",
        scale=lambda scores, X, W_q, W_v: scores / X.shape[-1] ** 0.5,
    ),
    "scaled-by-d_v": known(
        "You divide the scores by the square root of d_v, the width of the values.",
        "Values take no part in a score. Which two vectors meet there, and how many numbers have "
        "they?",
        scale=lambda scores, X, W_q, W_v: scores / W_v.shape[-1] ** 0.5,
    ),
    "scaled-by-words": known(
        "You divide the scores by the square root of the number of words.",
        "How far scores spread depends on how many products are added in one score, not on how "
        "many scores there are.",
        scale=lambda scores, X, W_q, W_v: scores / X.shape[-2] ** 0.5,
    ),
    "multiplied-by-root": known(
        "You multiply the scores by the square root of d_k, or divide them by d_k ** -0.5, which "
        "is the same.",
        "Scores spread too far as they are. The scale is there to bring them closer together.",
        scale=lambda scores, X, W_q, W_v: scores * W_q.shape[-1] ** 0.5,
    ),
    "scaled-after-softmax": known(
        "It is not the scores that you scale, but the weights, the values or the output.",
        "Then the output is no average any more, and the softmax has seen the wide scores already.",
        scale=lambda scores, X, W_q, W_v: scores,
        softmax=lambda scores, W_q: scores.softmax(-1) / W_q.shape[-1] ** 0.5,
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each word shares out one unit of attention among the words that it looks at, so each row "
        "sums to 1.",
        softmax=lambda scores, W_q: scores.softmax(-2),
    ),
    "softmax-over-batch": known(
        "Your softmax runs over the sequences of the batch.",
        "Sequences share a batch to be fast, nothing else: no number of one may change another.",
        softmax=lambda scores, W_q: scores.softmax(0),
    ),
    "sigmoid": known(
        "You take the sigmoid of the scores.",
        "It looks at each score alone. What a head returns is an average, so the weights of a row "
        "have to sum to 1.",
        softmax=lambda scores, W_q: scores.sigmoid(),
    ),
    "no-softmax": known(
        "You use the scores as weights: there is no softmax.",
        "Scores may be negative and of any size. An average needs weights that are positive and "
        "sum to 1.",
        softmax=lambda scores, W_q: scores,
    ),
    "plain-normalisation": known(
        "You divide each score by the sum of its row, without the exponential.",
        "Scores may be negative: such a sum can be 0, and weights negative or huge.",
        softmax=lambda scores, W_q: scores / scores.sum(-1, keepdim=True),
    ),
    "future-hidden": known(
        "You hide the words that come later.",
        "That is for models that write text. Here every word may look at all of them.",
        softmax=_causal,
    ),
    "weights-transposed": known(
        "The values meet the transpose of the right weights: you turn the weights, or your table "
        "has the queries in its columns.",
        "Row i of the weights says what word i takes from the others. Turned over, it says what "
        "the others take from word i.",
        finish=lambda weights, v: weights.mT @ v,
    ),
    "queries-and-keys-swapped": known(
        "Queries and keys have changed places.",
        "A query says whom I ask for, a key where I stand. The word that asks owns the row of "
        "weights.",
        section=STANDS,
        project=lambda X, W_q, W_k, W_v: (X @ W_k, X @ W_q, X @ W_v),
    ),
    "keys-from-W_q": known(
        "Your queries meet each other, not the keys, or your keys are made with W_q, like the "
        "queries: W_k changes nothing.",
        "Then scores are symmetric: cats would look at dogs exactly as much as dogs at cats.",
        section=STANDS,
        project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_q, X @ W_v),
    ),
    "values-not-projected": known(
        "You average the words themselves: W_v is not used.",
        "What a word is found by and what it hands over are different things, each with a matrix.",
        project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X),
    ),
}
SHARED = read_again(ONE, SHARED)

HEAD = {
    "thirds-of-one-product": known(
        "You cut the product with all three matrices into thirds.",
        "Values may be wider or narrower than queries and keys. split takes the width of each "
        "piece.",
        section=ONE,
        wrong=_thirds,
    ),
    "nothing-projected": known(
        "The words attend to each other as they are: none of the three matrices is used.",
        "Without its matrices every head would make the same weights.",
        project=lambda X, W_q, W_k, W_v: (X, X, X),
    ),
    "softmax-overflows": known(
        "Your exponentials overflow when scores are in the thousands, and inf / inf is NaN.",
        "Only differences between scores matter to a softmax. What can be taken away from a whole "
        "row before the exponential?",
        softmax=lambda scores, W_q: scores.exp() / scores.exp().sum(-1, keepdim=True),
    ),
    "weights-returned-too": known(
        "You return the output and the weights.",
        "The task asks for the output alone. Heads are joined later, and weights cannot be.",
        finish=lambda weights, v: (weights @ v, weights),
    ),
    "weights-only": known(
        "You return the weights.",
        "They say where a head looks. The output is what it brings from there: (B, L, d_v).",
        finish=lambda weights, v: weights,
    ),
    "values-from-W_k": known(
        "Your values are made with W_k, like the keys: W_v changes nothing.",
        "What a word is found by and what it hands over are different things, each with a matrix.",
        wrong=build_head(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_k)),
    ),
    "values-of-keys": known(
        "Your values are the keys times W_v: W_k is used as well, and W_v meets d_k numbers.",
        "Keys and values are made side by side, from the same tensor. W_v has d_model rows: which "
        "tensor is that wide?",
        wrong=build_head(project=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_k @ W_v)),
    ),
    "matrices-transposed": known(
        "You multiply by the transposes of the matrices.",
        "nn.Linear keeps (out, in) and has to be turned. These are (in, out): which of their sizes "
        "meets the width of a word?",
        wrong=lambda X, W_q, W_k, W_v: build_head()(X, W_q.T, W_k.T, W_v.T),
    ),
    "matrix-on-the-left": known(
        "You multiply by the matrix from the left.",
        "Each row of X is a word, and it is the words that are projected. What does a matrix on "
        "the left mix?",
        wrong=lambda X, W_q, W_k, W_v: build_head()(W_q @ X, W_q, W_k, W_v),
    ),
    "keys-not-turned": known(
        "You multiply queries by keys as they stand, both (B, L, d_k).",
        "A score is one query times one key: the two axes that are summed over have to meet, and "
        "these are the features.",
        wrong=build_head(match=lambda q, k: q @ k),
    ),
    "keys-turned-with-T": known(
        "You turn the keys on all three axes, as .T does: the batch goes to the end.",
        "Each sequence has its own matrix of scores. Only words and features change places.",
        wrong=build_head(match=lambda q, k: q @ k.permute(2, 1, 0)),
    ),
    "largest-of-the-whole-table": known(
        *LARGEST_OF_ALL, wrong=build_head(softmax=less_the_largest_of_all)
    ),
    "largest-of-the-whole-table-and-no-division-by-0": known(
        *LARGEST_OF_ALL,
        wrong=build_head(softmax=lambda *given: less_the_largest_of_all(*given).nan_to_num()),
    ),
    "mean-subtracted": known(*MEAN_SUBTRACTED, wrong=build_head(softmax=less_the_mean)),
    "largest-of-each-column": known(
        "You take the largest score of each column away, not that of each row.",
        "Within a row each score then loses another number, and the weights change. Only one "
        "number for a whole row leaves the softmax as it is: which axis holds its keys?",
        wrong=build_head(
            softmax=lambda scores, W_q: (scores - scores.amax(-2, keepdim=True)).softmax(-1)
        ),
    ),
    "keys-of-all-sequences-added": known(
        "Each query meets the sum of the keys of all sequences.",
        "Sequences share a batch to be fast, nothing else: no number of one may change another. In "
        "einsum the two axes of the batch need one and the same letter.",
        wrong=build_head(match=lambda q, k: q @ k.sum(0, keepdim=True).mT),
    ),
    "overflow-hidden": known(*OVERFLOW_HIDDEN, wrong=build_head(softmax=overflow_hidden)),
    "scores-clamped": known(*CLAMPED, wrong=build_head(softmax=clamped)),
    "root-rounded-down": known(*ROUNDED, wrong=build_head(scale=rounded_root)),
    "squeezed": known(*SQUEEZED, wrong=lambda *given: one_head(*given).squeeze()),
    "squeezed-in-front": known(*SQUEEZED, wrong=lambda *given: one_head(*given).squeeze(0)),
    "all-sequences-as-one": known(
        "You make one long sequence of the whole batch: words attend to the words of other "
        "sequences, too.",
        "Sequences share a batch to be fast, nothing else: no number of one may change another. "
        "Each has its own matrix of scores.",
        wrong=lambda X, *W: build_head()(X.reshape(1, -1, X.shape[-1]), *W).reshape(
            *X.shape[:2], -1
        ),
    ),
    "attention-across-the-batch": known(
        "Your words attend to the words at the same place in other sequences.",
        "The first axis is the batch. Some libraries put words first, and no shape complains.",
        wrong=lambda X, *W: build_head()(X.transpose(0, 1), *W).transpose(0, 1),
    ),
}
HEAD = SHARED + read_again(ONE, HEAD)

MODULES = ("mha_course.multihead.MultiHeadAttention", "d2l.torch.MultiHeadAttention", *LIBRARY)

TASK = Task(
    "03-one_head",
    one_head,
    head_cases,
    returns=("the output", "the weights"),  # the second only if it is returned by mistake
    mistakes=HEAD,
    build=build_head,
    stages=head_stages,
    forbidden=MODULES,
    number=1,
)
