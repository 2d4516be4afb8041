"""Task 5.3, count_bert: parameters of a whole BERT."""

from mha_classroom.checks.task import Case, Mistake, Task, read_again
from mha_classroom.tasks.parameter_counting.count_attention import (
    FORBIDDEN,
    build_attention,
    random_size,
)
from mha_classroom.tasks.parameter_counting.count_block import build_block
from mha_course import counting

__all__ = ["TASK"]


def bert_cases(draw):
    """The first two are small, the second leaves the defaults alone."""
    small = {"vocab_size": 7, "num_hiddens": 2, "num_layers": 3, "ffn_num_hiddens": 5}
    base = {"vocab_size": 30_522, "num_hiddens": 768, "num_layers": 12, "ffn_num_hiddens": 3072}
    sizes = {"max_len": 512, "num_segments": 1}  # both, since an answer gets them by position
    drawn = {name: random_size(draw, 8, 60) for name in (*small, *sizes)}
    return [
        Case("a tiny BERT", small | {"max_len": 11, "num_segments": 13}),
        Case("a tiny BERT, 512 positions and 2 segments by default", small),
        Case("more layers, one segment", small | {"num_layers": 19, **sizes}),
        Case("BERT-base", base),
        Case("drawn at random", drawn),
    ]


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
    def count_bert(V, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, num_segments=2):
        d, n = num_hiddens, num_layers
        tables = (words(V) + positions(max_len) + segments(num_segments)) * d
        rest = tables + norm(d) + pooler(d) + extra(V, d)
        return repeat_rest(n) * rest + layers(n) * block(d, ffn_num_hiddens)

    return count_bert


A_BERT = "A whole BERT"

BY_ITSELF = (
    "Does your count of a block pass the check of 5.2? There the block stands alone, which is "
    "easier to look at."
)

# Those of a block, which is there many times.
BLOCKS = read_again(
    "A block",
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
        parts={"block": build_block(norms=0)},
    ),
    Mistake(
        "one-layer-norm",
        "In every block two numbers a feature are missing, as much as one LayerNorm.",
        BY_ITSELF,
        parts={"block": build_block(norms=1)},
    ),
    Mistake(
        "three-layer-norms",
        "In every block two numbers a feature are too many, as much as one LayerNorm.",
        "A block has two. The one that follows the tables is there once, however many blocks "
        "there are.",
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
        parts={"block": build_block(ffn_biases=lambda d, f: (f, 0))},
    ),
    Mistake(
        "ffn-first-bias-forgotten",
        "In every block the bias of the first layer of the feed-forward network is missing.",
        "It is a linear layer like the second, and its bias is as long as what comes out of it.",
        parts={"block": build_block(ffn_biases=lambda d, f: (0, d))},
    ),
    Mistake(
        "ffn-biases-forgotten",
        "In every block the biases of the feed-forward network are missing.",
        "Its two layers have biases, like the matrices of attention, and not equally many.",
        parts={"block": build_block(ffn_biases=lambda d, f: (0, 0))},
    ),
    Mistake(
        "ffn-biases-of-inner-width",
        "In every block both biases of the feed-forward network have the inner width.",
        "A bias is as long as what comes out of its layer. The second layer leads back.",
        parts={"block": build_block(ffn_biases=lambda d, f: (f, f))},
    ),
    Mistake(
        "ffn-biases-of-outer-width",
        "In every block both biases of the feed-forward network are as wide as a word.",
        "A bias is as long as what comes out of its layer. What comes out of the first?",
        parts={"block": build_block(ffn_biases=lambda d, f: (d, d))},
    ),
    Mistake(
        "three-biases-forgotten",
        "In every block three numbers a feature are missing: attention has one bias for all of its "
        "four matrices.",
        BY_ITSELF,
        parts={"block": build_block(attention=build_attention(biases=lambda matrices, d: d))},
    ),
    Mistake(
        "output-projection-forgotten",
        "In every block attention has three matrices.",
        "W_q, W_k and W_v lead into the heads. Which one leads out?",
        parts={"block": build_block(attention=build_attention(matrices=3))},
    ),
    Mistake(
        "attention-forgotten",
        "Your blocks have no attention.",
        "A block is attention first, then the feed-forward network.",
        parts={"block": build_block(attention=lambda d: 0)},
    ),
    Mistake(
        "biases-forgotten",
        "Your blocks have no biases.",
        "Those of BERT do, in attention and in the feed-forward network. Few numbers in a block, "
        "but there are many blocks.",
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
        parts={"block": build_block(inner=lambda d, f: 4 * d)},
    ),
)


def _without_defaults(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments):
    """An answer that always wants all six sizes."""
    sizes = (vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments)
    return build_bert()(*sizes)


# An exception is recognised by its words, and these name the function as the learner calls it.
_without_defaults.__name__ = _without_defaults.__qualname__ = "count_bert"

BERT = BLOCKS + read_again(
    A_BERT,
    Mistake(
        "pooler-forgotten",
        "You leave out the pooler.",
        "It stands above the last block: one more linear layer, with numbers of its own.",
        parts={"pooler": lambda d: 0},
    ),
    Mistake(
        "pooler-bias-forgotten",
        "One number a feature is missing. The bias of the pooler has as many, and so has the shift "
        "of the LayerNorm that follows the tables: one of the two is left out.",
        "They are a few hundred of a hundred million in BERT-base, which has to be hit exactly. "
        "Print these two parts one by one and hold them against the task's list.",
        parts={"pooler": lambda d: d * d},
    ),
    Mistake(
        "embedding-norm-without-shift",
        parts={"norm": lambda d: d},
        twin="pooler-bias-forgotten",
    ),
    Mistake(
        "embedding-norm-forgotten",
        "You leave out the LayerNorm that follows the tables.",
        "It belongs to no block, so a count of tables and blocks passes it by.",
        parts={"norm": lambda d: 0},
    ),
    Mistake(
        "two-norms-outside-the-blocks",
        "Two numbers a feature are too many, as much as one LayerNorm outside the blocks.",
        "One follows the tables, and no other stands outside a block: neither after the last "
        "block, as in other models, nor at the pooler.",
        parts={"norm": lambda d: 4 * d},
    ),
    Mistake(
        "norm-for-each-table",
        "You count a LayerNorm for each of the three tables.",
        "The three rows of a word are added up first. How many results are there to normalise?",
        parts={"norm": lambda d: 6 * d},
    ),
    Mistake(
        "tables-with-biases",
        "You count a bias for each of the three tables.",
        "A table is looked up: a word takes its row as it is. A bias needs a product to be added "
        "to.",
        parts={"extra": lambda V, d: 3 * d},
    ),
    Mistake(
        "word-table-forgotten",
        "You leave out the table of the vocabulary.",
        "Each entry of the vocabulary has a row, and the rows are trained.",
        parts={"words": lambda V: 0},
    ),
    Mistake(
        "positions-forgotten",
        "You leave out the table of positions.",
        "BERT learns a row for each place in the text, as it does for each entry of the "
        "vocabulary.",
        parts={"positions": lambda m: 0},
    ),
    Mistake(
        "positions-fixed",
        "Your table of positions has 512 rows, whatever max_len is.",
        "512 is what BERT was published with. The argument may say something else.",
        parts={"positions": lambda m: 512},
    ),
    Mistake(
        "segments-forgotten",
        "You leave out the table of segments.",
        "It has very few rows, and they are as wide as all others.",
        parts={"segments": lambda s: 0},
    ),
    Mistake(
        "segments-fixed",
        "Your table of segments has two rows, whatever num_segments is.",
        "Two is what BERT was published with. The argument may say something else.",
        parts={"segments": lambda s: 2},
    ),
    Mistake(
        "one-table-only",
        "Of the three tables you count the one of the vocabulary.",
        "A word is looked up three times: what it is, where it stands, and to which segment it "
        "belongs.",
        parts={"positions": lambda m: 0, "segments": lambda s: 0},
    ),
    Mistake(
        "counted-in-every-layer",
        "You count tables and pooler again for every block.",
        "What is there once? The tables stand below the stack, the pooler above it: words pass "
        "each of them a single time.",
        parts={"repeat_rest": lambda n: n},
    ),
    Mistake(
        "output-layer-counted",
        "You count another layer at the top, from the width to the vocabulary, with a bias.",
        "That layer guesses words while BERT is trained. Here nothing comes after the pooler.",
        parts={"extra": lambda V, d: V * d + V},
    ),
    Mistake(
        "guessing-layers-counted",
        "You count the layers that guess hidden words: one more linear layer, a LayerNorm, and a "
        "bias for each entry of the vocabulary.",
        "They are there while BERT is trained, and some libraries count them in. Here nothing "
        "comes after the pooler.",
        parts={"extra": lambda V, d: d * d + 3 * d + V},
    ),
    Mistake(
        "vocabulary-bias-counted",
        "You count a bias for each entry of the vocabulary.",
        "A table is looked up, without a bias. The layer that guesses words has one, and here "
        "nothing comes after the pooler.",
        parts={"extra": lambda V, d: V},
    ),
    Mistake(
        "pooler-counted-twice",
        "You count two layers like the pooler, each a matrix and a bias.",
        "The pooler is one linear layer. What comes after it is there while BERT is trained.",
        parts={"pooler": lambda d: 2 * (d * d + d)},
    ),
    Mistake(
        "word-table-counted-twice",
        "You count the vocabulary twice, as a table and as a layer that leads back to words.",
        "Here nothing leads back: nothing comes after the pooler.",
        parts={"words": lambda V: 2 * V},
    ),
    Mistake(
        "defaults-missing",
        "Your function cannot be called with four sizes.",
        "The task gives max_len and num_segments values of their own in the def line, so that a "
        "caller may leave them out.",
        wrong=_without_defaults,
    ),
)

TASK = Task(
    "05-count_bert",
    counting.count_bert,
    bert_cases,
    returns=("the number of parameters",),
    mistakes=BERT,
    build=build_bert,
    uses=("05-count_attention", "05-count_block"),
    forbidden=FORBIDDEN,
    number=3,
)
