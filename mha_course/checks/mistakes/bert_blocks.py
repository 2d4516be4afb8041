"""The known mistakes of lesson 05 in the blocks of a BERT: how many, and what is in each."""

from mha_course.checks.mistakes.block_counting import build_block
from mha_course.checks.mistakes.parameter_counting import build_attention
from mha_course.checks.task import Mistake

__all__ = ["BLOCKS", "build_bert"]

A_BLOCK = "A block"
A_BERT = "A whole BERT"
BY_ITSELF = (
    "Does your count of a block pass the check of 5.2? There the block stands alone, which is "
    "easier to look at."
)
RIGHT_BLOCK = build_block()


def build_bert(
    words=lambda V: V,
    positions=lambda m: m,
    segments=lambda s: s,
    norm=lambda d: 2 * d,
    block=RIGHT_BLOCK,
    layers=lambda n: n,
    pooler=lambda d: d * d + d,
    extra=lambda V, d: 0,
    repeat_rest=lambda n: 1,
):
    """Return an answer to `05-count_bert`, right unless a part is replaced."""

    def count_bert(V, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, num_segments=2):
        d, n = num_hiddens, num_layers
        tables = (words(V) + positions(max_len) + segments(num_segments)) * d
        rest = tables + norm(d) + pooler(d) + extra(V, d)
        return repeat_rest(n) * rest + layers(n) * block(d, ffn_num_hiddens)

    return count_bert


BLOCKS = (
    Mistake(
        "one-block",
        "You count a single block.",
        "The blocks of a stack have equal shapes and different numbers: each was trained by "
        "itself.",
        A_BERT,
        parts={"layers": lambda n: 1},
    ),
    Mistake(
        "twelve-blocks",
        "You count 12 blocks, whatever num_layers is.",
        "12 is BERT-base. The argument may say something else.",
        A_BERT,
        parts={"layers": lambda n: 12},
    ),
    Mistake(
        "one-block-too-many",
        "You count one block too many.",
        "The tables and the pooler are no blocks: they are counted by themselves.",
        A_BERT,
        parts={"layers": lambda n: n + 1},
    ),
    Mistake(
        "one-block-too-few",
        "You count one block too few.",
        "range(1, n) has n - 1 entries, and the first block is a block like the others.",
        A_BERT,
        parts={"layers": lambda n: n - 1},
    ),
    Mistake(
        "layer-norms-forgotten",
        "In every block four numbers a feature are missing: its two LayerNorms, or the biases of "
        "its attention.",
        "A block has both, and a small thing in a block is there once for each layer. Does your "
        "count of a block pass the check of 5.2?",
        A_BLOCK,
        parts={"block": build_block(norms=0)},
    ),
    Mistake(
        "one-layer-norm",
        "In every block two numbers a feature are missing, as much as one LayerNorm.",
        BY_ITSELF,
        A_BLOCK,
        parts={"block": build_block(norms=1)},
    ),
    Mistake(
        "three-layer-norms",
        "In every block two numbers a feature are too many, as much as one LayerNorm.",
        "A block has two. The one that follows the tables is there once, however many blocks "
        "there are.",
        A_BLOCK,
        parts={"block": build_block(norms=3)},
    ),
    Mistake(
        "embedding-norm-in-every-block",
        "The LayerNorm that follows the tables is in every block of yours, and nowhere else.",
        "A block has two of its own. The one that follows the tables is there once, however many "
        "blocks there are.",
        A_BERT,
        parts={"block": build_block(norms=3), "norm": lambda d: 0},
    ),
    Mistake(
        "one-bias-forgotten",
        "In every block one number a feature is missing, as much as one bias of W_o or of the "
        "second layer of the feed-forward network.",
        BY_ITSELF,
        A_BLOCK,
        parts={"block": build_block(ffn_biases=lambda d, f: (f, 0))},
    ),
    Mistake(
        "ffn-first-bias-forgotten",
        "In every block the bias of the first layer of the feed-forward network is missing.",
        "It is a linear layer like the second, and its bias is as long as what comes out of it.",
        A_BLOCK,
        parts={"block": build_block(ffn_biases=lambda d, f: (0, d))},
    ),
    Mistake(
        "ffn-biases-forgotten",
        "In every block the biases of the feed-forward network are missing.",
        "Its two layers have biases, like the matrices of attention, and not equally many.",
        A_BLOCK,
        parts={"block": build_block(ffn_biases=lambda d, f: (0, 0))},
    ),
    Mistake(
        "ffn-biases-of-inner-width",
        "In every block both biases of the feed-forward network have the inner width.",
        "A bias is as long as what comes out of its layer. The second layer leads back.",
        A_BLOCK,
        parts={"block": build_block(ffn_biases=lambda d, f: (f, f))},
    ),
    Mistake(
        "ffn-biases-of-outer-width",
        "In every block both biases of the feed-forward network are as wide as a word.",
        "A bias is as long as what comes out of its layer. What comes out of the first?",
        A_BLOCK,
        parts={"block": build_block(ffn_biases=lambda d, f: (d, d))},
    ),
    Mistake(
        "three-biases-forgotten",
        "In every block three numbers a feature are missing: attention has one bias for all of its "
        "four matrices.",
        BY_ITSELF,
        A_BLOCK,
        parts={"block": build_block(attention=build_attention(biases=lambda matrices, d: d))},
    ),
    Mistake(
        "output-projection-forgotten",
        "In every block attention has three matrices.",
        "W_q, W_k and W_v lead into the heads. Which one leads out?",
        A_BLOCK,
        parts={"block": build_block(attention=build_attention(matrices=3))},
    ),
    Mistake(
        "attention-forgotten",
        "Your blocks have no attention.",
        "A block is attention first, then the feed-forward network.",
        A_BLOCK,
        parts={"block": build_block(attention=lambda d: 0)},
    ),
    Mistake(
        "biases-forgotten",
        "Your blocks have no biases.",
        "Those of BERT do, in attention and in the feed-forward network. Few numbers in a block, "
        "but there are many blocks.",
        A_BLOCK,
        parts={"block": build_block(attention=lambda d: 4 * d * d, ffn_biases=lambda d, f: ())},
    ),
    Mistake(
        "weights-only",
        "You count tables and matrices, and neither biases nor LayerNorms.",
        "They are 0.1 % of BERT-base. The paper's 110M allows for that, and a count to the last "
        "parameter does not.",
        A_BERT,
        parts={
            "block": build_block(
                attention=lambda d: 4 * d * d, ffn_biases=lambda d, f: (), norms=0
            ),
            "pooler": lambda d: d * d,
            "norm": lambda d: 0,
        },
    ),
    Mistake(
        "feed-forward-forgotten",
        "Your blocks have no feed-forward network.",
        "It holds over half of BERT's parameters: the bars in the lesson show it.",
        A_BERT,
        parts={"block": build_block(layers=0)},
    ),
    Mistake(
        "inner-width-taken-as-4d",
        "You take the inner width to be four times the width, whatever the argument says.",
        "That is so in BERT, so BERT-base cannot tell. The function is given both widths.",
        A_BLOCK,
        parts={"block": build_block(inner=lambda d, f: 4 * d)},
    ),
)
