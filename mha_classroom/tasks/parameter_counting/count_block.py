"""Task 5.2, count_block: parameters of a BERT block."""

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import (
    FORBIDDEN,
    POWER,
    XOR,
    build_attention,
    random_size,
)
from mha_classroom.tasks.parameter_counting.number_types import in_floats


def block_cases(draw):
    sizes = random_size(draw, 8, 90), random_size(draw, 91, 400)
    return [
        Case("width 2, inner width 5", {"num_hiddens": 2, "ffn_num_hiddens": 5}),
        Case("inner width below the width", {"num_hiddens": 5, "ffn_num_hiddens": 3}),
        Case("an inner width equal to the width", {"num_hiddens": 5, "ffn_num_hiddens": 5}),
        Case("BERT-base", {"num_hiddens": 768, "ffn_num_hiddens": 3072}),
        Case("drawn at random", dict(zip(("num_hiddens", "ffn_num_hiddens"), sizes, strict=True))),
        # more than float32 holds
        Case("a wide block", {"num_hiddens": 1_030, "ffn_num_hiddens": 7_001}),
    ]


def build_block(
    attention=lambda d: 4 * d * (d + 1),
    inner=lambda d, f: f,
    layers=2,
    ffn_biases=lambda d, f: (f, d),
    norms=2,
    norm_numbers=lambda d, f: 2 * d,
    extra=lambda d, f: 0,
):
    def count_block(num_hiddens, ffn_num_hiddens):
        d, f = num_hiddens, inner(num_hiddens, ffn_num_hiddens)
        feed_forward = layers * d * f + sum(ffn_biases(d, f)[:layers])
        return attention(d) + feed_forward + norms * norm_numbers(d, f) + extra(d, f)

    return count_block


def block_quantities(inputs):
    d, f = inputs.values()
    terms = {
        "the attention": 4 * d * (d + 1),
        "the biases of the attention, or both LayerNorms": 4 * d,
        "the feed-forward network": 2 * d * f + f + d,
        "one matrix of the feed-forward network": d * f,
        "the biases of the feed-forward network": f + d,
        "the bias of the first layer of the feed-forward network": f,
        "one matrix of the attention": d * d,
        "2 numbers for each feature": 2 * d,
        "one number for each feature": d,
    }
    return terms, {}


BLOCK = {
    "one-layer-norm": known(
        "Two numbers a feature are missing, as many as one LayerNorm has, or the shifts of both.",
        "Where in a block does a LayerNorm stand? What does it keep for each feature? And does "
        "every linear layer of yours have its bias?",
        norms=1,
    ),
    "layer-norms-without-shift": known(
        norm_numbers=lambda d, f: d,
        twin="one-layer-norm",
    ),
    "ffn-biases-forgotten": known(
        "As much is missing as the biases of the feed-forward network are.",
        "Its two layers have biases, like the matrices of attention, and not equally many.",
        ffn_biases=lambda d, f: (0, 0),
    ),
    "layer-norms-forgotten": known(
        "Four numbers a feature are missing. The two LayerNorms have as many together, and so have "
        "the biases of attention: is one of the two left out?",
        "They are small, but they are trained, so they are parameters. Print the attention, the "
        "feed-forward network and the LayerNorms one by one, and hold them against the task's "
        "list.",
        norms=0,
    ),
    "attention-biases-forgotten": known(
        attention=build_attention(default=False),
        twin="layer-norms-forgotten",
    ),
    "three-layer-norms": known(
        "Two numbers a feature are too many, as many as a third LayerNorm has.",
        "One follows attention, one follows the feed-forward network. The one that follows BERT's "
        "tables belongs to no block.",
        norms=3,
    ),
    "layer-norm-of-two-numbers": known(
        "In place of 4 numbers a feature you count 4 in all: one scale and one shift for a whole "
        "LayerNorm, or one number as the bias of a whole matrix of attention.",
        "Every feature of a token is scaled and shifted by numbers of its own, and every output "
        "of a matrix has a bias of its own.",
        norm_numbers=lambda d, f: 2,
    ),
    "layer-norm-of-inner-width": known(
        "You count one of the LayerNorms at the inner width.",
        "It stands behind the feed-forward network, not inside. How wide is a token when it comes "
        "out?",
        norms=1,
        extra=lambda d, f: 2 * f,
    ),
    "layer-norms-like-linear-layers": known(
        "You count a LayerNorm like a linear layer, as a matrix with a bias.",
        "It mixes no features: each is scaled and shifted by itself. How many numbers does that "
        "take for one feature?",
        norm_numbers=lambda d, f: d * d + d,
    ),
    "layer-norms-with-the-width-squared": known(
        "Your count is right for width 2, as in the example, and grows too fast: you count d · d "
        "numbers for a LayerNorm in place of 2 · d, or 2 · d · d for the biases of attention.",
        "Do you write d ** 2 for d * 2? How many numbers does a LayerNorm have for each feature, "
        "and how many biases has the attention?",
        wrong=build_block(norm_numbers=lambda d, f: d * d),
    ),
    "attention-sides-added": known(
        "Your attention has 12 numbers a feature, its biases among them, whatever the width is. "
        "That is right for width 2, as in the example: do you write d * 2 for d ** 2?",
        "A matrix of d by d has a number for every pair of an input and an output. Does your count "
        "of a layer pass the check of 5.1?",
        attention=build_attention(weights=lambda d: 2 * d),
    ),
    "one-bias-for-all-of-attention": known(
        "Three numbers a feature are missing, as if attention had one bias for all of its four "
        "matrices.",
        "Each matrix has its own. Does your count of a layer pass the check of 5.1?",
        attention=build_attention(biases=lambda matrices, d: d),
    ),
    "attention-biases-and-norms-forgotten": known(
        "Eight numbers a feature are missing, as many as the biases of attention and both "
        "LayerNorms have.",
        "Few numbers each, and trained like all others: a count is exact or it is an estimate.",
        attention=build_attention(default=False),
        norms=0,
    ),
    "biases-forgotten": known(
        "As much is missing as all biases of the linear layers are, or as both LayerNorms and the "
        "biases of the feed-forward network are.",
        "In BERT each linear layer has a bias, in attention and in the feed-forward network. It is "
        "as long as what comes out of its layer.",
        attention=build_attention(default=False),
        ffn_biases=lambda d, f: (0, 0),
    ),
    "weights-only": known(
        "You count the matrices and nothing else.",
        "The linear layers have biases, and there are two LayerNorms. They are a small part, and "
        "training sets them like everything else: a count is exact or it is an estimate.",
        attention=build_attention(default=False),
        ffn_biases=lambda d, f: (0, 0),
        norms=0,
    ),
    "ffn-biases-of-inner-width": known(
        "You count both biases of the feed-forward network at the inner width.",
        "A bias is as long as what comes out of its layer. The second layer leads back: how many "
        "features come out of it?",
        ffn_biases=lambda d, f: (f, f),
    ),
    "second-layer-square": known(
        "The second layer of your feed-forward network leads from the inner width to the inner "
        "width.",
        "It has to lead back: what comes out is added to the token and has its width.",
        ffn_biases=lambda d, f: (f, f),
        extra=lambda d, f: f * f - d * f,
    ),
    "ffn-biases-of-outer-width": known(
        "You count both biases of the feed-forward network at the width of a token.",
        "A bias is as long as what comes out of its layer, not as what goes in. What comes out of "
        "the first?",
        ffn_biases=lambda d, f: (d, d),
    ),
    "ffn-second-bias-forgotten": known(
        "One number a feature is missing, as much as the bias of the second layer of the "
        "feed-forward network, or that of W_o.",
        "Each linear layer has one, as long as what comes out of it. And a LayerNorm has two "
        "numbers for each feature.",
        ffn_biases=lambda d, f: (f, 0),
    ),
    "ffn-first-bias-forgotten": known(
        "As many numbers are missing as the first layer of the feed-forward network has biases: "
        "ffn_num_hiddens.",
        "Both of its layers have biases, each as many as numbers come out of it. Which are in your "
        "count?",
        ffn_biases=lambda d, f: (0, d),
    ),
    "first-layer-lost": known(
        "Of the feed-forward network you count one matrix, and a bias of num_hiddens numbers.",
        "It has two layers, each with a bias as long as what comes out of it. If you add them up "
        "in steps: = puts a new number in the place of what was there, and += adds to it.",
        layers=1,
        ffn_biases=lambda d, f: (d,),
    ),
    "one-feed-forward-layer": known(
        "You count one of the two layers of the feed-forward network.",
        "A token goes up to the inner width and has to come back to its own.",
        layers=1,
    ),
    "one-matrix-with-both-biases": known(
        "You count one matrix in the feed-forward network, and the biases of both layers.",
        "A token goes up to the inner width and has to come back to its own. Is the way back made "
        "with the same numbers?",
        wrong=build_block(extra=lambda d, f: -d * f),
    ),
    "feed-forward-forgotten": known(
        "You leave out the feed-forward network.",
        "It is the larger part of a block: the lesson's print-out shows it as linear1 and linear2.",
        layers=0,
    ),
    "attention-forgotten": known(
        "You leave out attention.",
        "A block is attention first, then the feed-forward network.",
        attention=lambda d: 0,
    ),
    "output-projection-forgotten": known(
        "You count three matrices in attention, with their biases.",
        "The print-out in the lesson has in_proj, which is three of them, and out_proj. Are both "
        "in your count?",
        attention=build_attention(matrices=3),
    ),
    "times-12-heads": known(
        "Your attention has 12 times its numbers, as 12 heads of full width have.",
        "The heads share the width of the block. Neither of the two arguments says how many there "
        "are: why can the task leave that out?",
        section="Parameters of an attention layer",
        attention=build_attention(factor=12),
    ),
    "xor-for-power": known(
        XOR,
        POWER,
        attention=build_attention(weights=lambda d: d ^ 2),
    ),
    "inner-width-taken-as-4d": known(
        "You take the inner width to be four times the width, whatever the argument says.",
        "That is so in BERT, so BERT-base cannot tell. The function is given both widths.",
        inner=lambda d, f: 4 * d,
    ),
    **in_floats(build_block()),
}

TASK = Task(
    "05-count_block",
    build_block(),
    block_cases,
    returns=("the number of parameters",),
    mistakes=read_again("A block", BLOCK),
    build=build_block,
    quantities=block_quantities,
    uses=("05-count_attention",),
    forbidden=FORBIDDEN,
    number=2,
)
