"""Task 5.4, attention_flops: floating-point operations of attention."""

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN, random_size
from mha_classroom.tasks.parameter_counting.number_types import small_numbers
from mha_course import counting


def flops_cases(draw):
    """Texts shorter and longer than the width, and as long."""
    return [
        Case("3 tokens of width 2", {"num_tokens": 3, "num_hiddens": 2}),
        Case("fewer tokens than features", {"num_tokens": 5, "num_hiddens": 12}),
        Case("as many tokens as features", {"num_tokens": 7, "num_hiddens": 7}),
        Case("one token", {"num_tokens": 1, "num_hiddens": 11}),
        Case("BERT-base, 512 tokens", {"num_tokens": 512, "num_hiddens": 768}),
        Case("a long text", {"num_tokens": 4097, "num_hiddens": 257}),
        Case(
            "drawn at random",
            {"num_tokens": random_size(draw, 8, 90), "num_hiddens": random_size(draw, 8, 90)},
        ),
    ]


def build_flops(
    projections=4,
    scores=lambda n, d: n * n,
    sums=lambda n, d: n * d,
    one_sum=lambda k: 2 * k,
    heads=1,
    width=lambda d: d,
    sizes=lambda n, d: (n, d),
    extra=lambda n, d: 0,
    projected=lambda n: n,
    tokens=lambda n: 1,
):
    """scores, sums: how many numbers each product over pairs has. one_sum: FLOPs of a sum of k
    products. width: of what the pairs multiply.
    projected: how many tokens are.
    """

    def attention_flops(num_tokens, num_hiddens):
        n, d = sizes(num_tokens, num_hiddens)
        k = width(d)
        pairs = scores(n, k) * one_sum(k) + sums(n, k) * one_sum(n)
        return (
            projections * projected(n) * d * one_sum(d) + heads * pairs + extra(n, d)
        ) // tokens(n)

    return attention_flops


def flops_quantities(inputs):
    n, d = inputs.values()
    terms = {
        "one projection": 2 * n * d * d,
        "one of the two products over pairs": 2 * n * n * d,
        "the additions of one projection": n * d * d,
        "the additions of one product over pairs": n * n * d,
    }
    return terms, {"the number of tokens": n, "the width": d}


def _pairs(count):
    """An answer with another count of FLOPs of the pairs."""
    return lambda n, d: 8 * n * d * d + count(n, d)


FEWER = "Do many heads lower the cost?"
PAIRS = "When do the pairs cost more than the rest?"

CAUSAL = (
    "Here the sequence attends to itself without a mask: every token meets every token, in both "
    "directions and itself."
)
NUMBER_TYPES = small_numbers(lambda n, d: 8 * n * d * d + 4 * n * n * d)
MORE = {
    1: ("one more operation", "the scaling, the mask, or a part of the softmax"),
    2: ("two more operations", "the scaling and the mask, or a part of the softmax"),
    3: ("three more operations", "the softmax, with an exp, a sum and a division"),
    4: ("four more operations", "the softmax and the scaling"),
    5: ("five more operations", "the softmax, the scaling or the mask"),
}

FLOPS = {
    "macs-not-flops": known(
        "Your count is half of the right one, as if a multiplication and its addition were one.",
        "Both together are a MAC, and some tools count these. A FLOP is one or the other.",
        one_sum=lambda k: k,
    ),
    "first-addition-not-counted": known(
        "You count one addition less than multiplications in each sum.",
        "That is exact, and it is not what is agreed: only if everyone counts alike can two counts "
        "be compared. The task says how a product counts.",
        one_sum=lambda k: 2 * k - 1,
    ),
    "output-projection-forgotten": known(
        "You count three projections.",
        "Queries, keys and values are made by one each. What happens to the joined heads "
        "afterwards?",
        projections=3,
    ),
    "one-projection": known(
        "Your projections cost as much as one does: three of the four are missing, or factors.",
        "W_q, W_k, W_v and W_o each multiply every token, and each of these products counts.",
        projections=1,
    ),
    "three-times": known(
        "Your count is 3 times the right one, as that of training is: it goes through the layer "
        "forwards and backwards.",
        "Asked for is what the layer itself needs, once.",
        wrong=lambda n, d: 3 * (8 * n * d * d + 4 * n * n * d),
    ),
    "projections-as-macs": known(
        "Your projections cost half of what they should: two of the four are missing, or "
        "additions are left out there.",
        "Both kinds of operation are counted in every product, in the projections as in the pairs.",
        projections=2,
    ),
    "projections-of-pairs": known(
        "Your count is what six products over pairs cost, as if the projections squared the number "
        "of tokens instead of the width.",
        "A projection is (n, d) @ (d, d): n·d numbers come out, and each is a sum over d features.",
        wrong=lambda n, d: 8 * n * n * d + 4 * n * n * d,
    ),
    "projections-forgotten": known(
        "Your number is what the pairs of tokens cost, and nothing else.",
        "That is what the paper's table 1 does, and a short text spends most of its FLOPs "
        "elsewhere: tokens have to become queries, keys and values first.",
        section=PAIRS,
        projections=0,
    ),
    "table-of-the-paper": known(
        "You return n²·d, which stands in table 1 of the paper.",
        "The paper asks how the cost grows with a text, so it leaves out the projections and every "
        "fixed factor. How many products are there, and what does one multiplication come with?",
        projections=0,
        scores=lambda n, d: 0,
        one_sum=lambda k: k,
    ),
    "pairs-forgotten": known(
        "You count the products with a weight matrix and nothing else.",
        "Queries meet keys, and weights meet values. These products have no parameters, and they "
        "are computed all the same.",
        section=PAIRS,
        scores=lambda n, d: 0,
        sums=lambda n, d: 0,
    ),
    "half-the-pairs": known(
        "Your pairs of tokens cost half of what they should: one of their two products is "
        "missing, additions are left out there, or half of the pairs are not counted, as with a "
        "mask.",
        "Every token meets every token, and each pair takes part in two products: one for its "
        "score, one where its weight is used. "
        "Are all of the lesson's four rows in your sum, each with both kinds of operation?",
        sums=lambda n, d: 0,
    ),
    "scores-forgotten": known(
        scores=lambda n, d: 0,
        twin="half-the-pairs",
    ),
    "pairs-without-width": known(
        "In your count a pair of tokens costs 4 operations, however wide a token is.",
        "A score is a sum over all features of a query and a key. How many products is that?",
        width=lambda d: 1,
    ),
    "tokens-not-squared": known(
        "You count pairs as if there were as many as tokens.",
        "Every token meets every token, in the scores and in the weighted sums. How many pairs are "
        "that?",
        section=PAIRS,
        scores=lambda n, d: n,
        sums=lambda n, d: d,
    ),
    "tokens-doubled": known(
        "Your pairs of n tokens cost as much as 2 · n pairs do: do you write n * 2 for n ** 2?",
        "Every token meets every token, in the scores and in the weighted sums. How many pairs are "
        "that?",
        section=PAIRS,
        scores=lambda n, d: 2 * n,
        sums=lambda n, d: 2 * d,
    ),
    "three-for-the-tokens": known(
        "Each token has 3 pairs in your count, however many tokens there are.",
        "3 is the number of tokens in the example. How many tokens does a token of another text "
        "meet?",
        section=PAIRS,
        wrong=_pairs(lambda n, d: 12 * n * d),
    ),
    "whole-heads-of-64": known(
        "You count the pairs of whole heads of width 64, and leave out what remains of the width.",
        "Asked for are all features, however many heads they are cut into: how many heads there "
        "are has no effect on the count.",
        section=FEWER,
        wrong=_pairs(lambda n, d: 4 * n * n * (d // 64 * 64)),
    ),
    "tokens-cubed": known(
        "In one of the two products over pairs the number of tokens stands three times.",
        "The scores are (n, d) @ (d, n), the weighted sums (n, n) @ (n, d). Write the three sizes "
        "of each product side by side.",
        section=PAIRS,
        sums=lambda n, d: n * n,
    ),
    "tokens-cubed-twice": known(
        "In both products over pairs the number of tokens stands three times.",
        "The scores are (n, d) @ (d, n), the weighted sums (n, n) @ (n, d). Write the three sizes "
        "of each product side by side.",
        section=PAIRS,
        wrong=_pairs(lambda n, d: 4 * n**3),
    ),
    "pairs-up-to-the-diagonal": known(
        "Your pairs cost as much as n · (n + 1) / 2 of them: those of a token with itself and with "
        "what stands before it, or every two tokens once. Or is one of the two products counted "
        "for one token only?",
        CAUSAL,
        section=PAIRS,
        wrong=_pairs(lambda n, d: 2 * n * (n + 1) * d),
    ),
    "pairs-below-the-diagonal": known(
        "You count each pair of two tokens once, and none of a token with itself.",
        CAUSAL,
        section=PAIRS,
        wrong=_pairs(lambda n, d: 2 * n * (n - 1) * d),
    ),
    "one-token-projected": known(
        "You count the projections of a single token.",
        "W_q, W_k, W_v and W_o each multiply every token of the sequence.",
        projected=lambda n: 1,
    ),
    "pairs-not-squared": known(
        "Your count is what six projections cost, as if both products over pairs were such, too.",
        "In a projection every token meets a matrix of fixed size. Here every token meets every "
        "token: which size comes twice?",
        scores=lambda n, d: d * n,
        sums=lambda n, d: d * d,
    ),
    **{
        f"pairs-times-{heads}-heads": known(
            f"Your pairs cost {heads} times what they should, as with {heads} heads of full width.",
            f"{heads} heads make {heads} times as many scores, from vectors that are {heads} times "
            "shorter. What did the lesson's table find for 1 to 12 heads?",
            section=FEWER,
            heads=heads,
        )
        for heads in (8, 12)
    },
    "pairs-of-one-head": known(
        "You count the pairs of one head of width 64.",
        "Asked for are all heads together. How wide are they when they stand side by side?",
        section=FEWER,
        width=lambda d: 64,
    ),
    "tokens-and-width-swapped": known(
        "The number of tokens and the width have changed places, or your projections cost half of "
        "what they should and your pairs twice as much.",
        "Both can be squared, so the formula looks alike. A matrix has the width on both sides, "
        "the scores have the tokens. And a multiplication and its addition count as 2, once.",
        sizes=lambda n, d: (d, n),
    ),
    "biases-counted": known(
        "4 · n · d operations are too many in your count, as many as the biases add, or as n pairs "
        "of tokens cost.",
        "To leave out the biases is agreed: the task lists what is counted. Or do you count the "
        "pair of a token with itself twice?",
        extra=lambda n, d: 4 * n * d,
    ),
    "biases-counted-as-products": known(
        "8 · n · d operations are too many in your count: twice the four biases for each token.",
        "That comes of 2 FLOPs a parameter, the biases among them. To leave out the biases is "
        "agreed: the task lists what is counted.",
        extra=lambda n, d: 8 * n * d,
    ),
    "xor-for-power": known(
        "You write ^ for a power.",
        "In Python ^ compares two numbers bit by bit: 3 ^ 2 is 1. A power is written with two "
        "stars.",
        wrong=lambda n, d: 8 * n * (d ^ 2) + 4 * (n ^ 2) * d,
    ),
    **{
        f"{more}-more-for-each-score": known(
            f"You count {many} for each score, such as {what}.",
            "They are few beside the products, and leaving them out is agreed. The task lists "
            "what is counted.",
            extra=lambda n, d, more=more: more * n * n,
        )
        for more, (many, what) in MORE.items()
    },
    **NUMBER_TYPES,
    "per-token": known(
        "Your count is that of one token: the right one divided by the number of tokens.",
        "Asked for is the whole sequence.",
        tokens=lambda n: n,
    ),
    "width-squared-in-the-pairs": known(
        "In the products of pairs you square the width.",
        "(L, d) @ (d, L): the width is the axis that is summed over, and it counts once.",
        wrong=lambda n, d: 8 * n * d * d + 4 * n * n * d * d,
    ),
    "tokens-squared-in-the-projections": known(
        "In the projections you square the number of tokens.",
        "(L, d) @ (d, d): each token is projected by itself, so the tokens count once.",
        wrong=lambda n, d: 8 * n * n * d * d + 4 * n * n * d,
    ),
}

TASK = Task(
    "05-attention_flops",
    counting.attention_flops,
    flops_cases,
    returns=("the number of FLOPs",),
    mistakes=read_again("Counting operations: FLOPs", FLOPS),
    build=build_flops,
    # With one of the first three a pair looks like a simpler mistake: halves of MACs, for instance.
    alone=(
        "projections-as-macs",
        "tokens-and-width-swapped",
        "table-of-the-paper",
        *(f"{more}-more-for-each-score" for more in MORE),
    ),
    quantities=flops_quantities,
    forbidden=FORBIDDEN,
    number=4,
)
