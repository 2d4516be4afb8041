"""Task 5.3, count_bert: parameters of a whole BERT."""

import numbers

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import (
    FORBIDDEN,
    POWER,
    XOR,
    build_attention,
    random_size,
)
from mha_classroom.tasks.parameter_counting.count_block import build_block
from mha_classroom.tasks.parameter_counting.number_types import in_floats
from mha_course import counting


def bert_cases(draw):
    """The first two are small, the second leaves the defaults alone."""
    small = {"vocab_size": 7, "num_hiddens": 2, "num_layers": 3, "ffn_num_hiddens": 5}
    base = {"vocab_size": 30_522, "num_hiddens": 768, "num_layers": 12, "ffn_num_hiddens": 3072}
    sizes = {"max_len": 640, "num_segments": 1}  # both, since an answer gets them by position
    drawn = {name: random_size(draw, 8, 60) for name in (*small, *sizes)}
    alike = {name: 5 if "hiddens" in name else 11 for name in drawn}
    large = dict(zip(small, (30_011, 513, 3, 2_049), strict=True))
    return [
        Case("a tiny BERT", small | {"max_len": 11, "num_segments": 13}),
        Case("a tiny BERT, 512 positions and 2 segments by default", small),
        Case("11 positions, and 2 segments by default", small | {"max_len": 11}),
        Case(
            "more layers, one segment, a larger inner width",
            small | {"num_layers": 19, "ffn_num_hiddens": 17, **sizes},
        ),
        Case("BERT-base", base),
        Case("drawn at random", drawn),
        Case("three tables of one size, an inner width equal to the width", alike),
        Case("a wide BERT of 3 layers", large),  # more than float32 holds
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
    poolers=lambda n: 1,
    extra=lambda V, d: 0,
    repeat_rest=lambda n: 1,
):
    def count_bert(V, num_hiddens, num_layers, ffn_num_hiddens, max_len=512, num_segments=2):
        d, n = num_hiddens, num_layers
        tables = (words(V) + positions(max_len) + segments(num_segments)) * d
        rest = tables + norm(d) + poolers(n) * pooler(d) + extra(V, d)
        return repeat_rest(n) * rest + layers(n) * block(d, ffn_num_hiddens)

    return count_bert


def bert_quantities(inputs):
    V, d, n, f = (inputs[name] for name in list(inputs)[:4])
    positions, segments = inputs.get("max_len", 512), inputs.get("num_segments", 2)
    block = RIGHT_BLOCK(d, f)
    terms = {
        "the table of words": V * d,
        "the table of positions": positions * d,
        "the table of segments": segments * d,
        "all three tables": (V + positions + segments) * d,
        "the pooler": d * d + d,
        "the matrix of the pooler": d * d,
        "one number for each feature (such as the pooler's bias)": d,
        "one LayerNorm": 2 * d,
        "one block": block,
        "all blocks": n * block,
        "the attention of all blocks": n * 4 * d * (d + 1),
        "the feed-forward networks of all blocks": n * (2 * d * f + f + d),
        "one LayerNorm in each block": 2 * n * d,
        "one number for each feature of each block": n * d,
    }
    return terms, {}


A_BERT = "A whole BERT"


def _norms_of_positions(V, d, n, f, max_len=512, num_segments=2):
    more = 2 * d * (max_len - 1)
    return build_bert()(V, d, n, f, max_len, num_segments) + (2 * n + 1) * more


def _attention_of_width_64(d, f):
    inner = d // 64 * 64
    return RIGHT_BLOCK(d, f) - 4 * d * d - 3 * d + 4 * d * inner + 3 * inner


def _rows_without_width(V, d, n, f, max_len=512, num_segments=2):
    return build_bert()(V, d, n, f, max_len, num_segments) - (V + max_len) * (d - 1)


BY_ITSELF = (
    "Does your count of a block pass the check of 5.2? There the block stands alone, which is "
    "easier to look at."
)

# Those of a block, which is there many times.
BLOCKS = {
    "one-block": known(
        "You count a single block.",
        "The blocks of a stack have equal shapes and different numbers: each was trained by "
        "itself.",
        section=A_BERT,
        layers=lambda n: 1,
    ),
    "twelve-blocks": known(
        "You count 12 blocks, whatever num_layers is.",
        "12 is BERT-base. The argument may say something else.",
        section=A_BERT,
        layers=lambda n: 12,
    ),
    "one-block-too-many": known(
        "You count one block too many.",
        "The tables and the pooler are no blocks: they are counted by themselves.",
        section=A_BERT,
        layers=lambda n: n + 1,
    ),
    "one-block-too-few": known(
        "You count one block too few.",
        "range(1, n) has n - 1 entries, and the first block is a block like the others.",
        section=A_BERT,
        layers=lambda n: n - 1,
    ),
    "layer-norms-of-each-position": known(
        "Your LayerNorms have numbers of their own for each position.",
        "A LayerNorm has one scale and one shift for each feature, the same at every position.",
        wrong=_norms_of_positions,
    ),
    "heads-of-width-64": known(
        "You count whole heads of width 64: where 64 does not divide num_hiddens, features are "
        "lost.",
        "Each of the four matrices leads from all features to all features, however many heads "
        "share them. Is a number of heads needed at all?",
        block=_attention_of_width_64,
    ),
    "layer-norms-forgotten": known(
        "In every block four numbers a feature are missing: its two LayerNorms, or the biases of "
        "its attention.",
        "A block has both, and a small thing in a block is there once for each layer. Does your "
        "count of a block pass the check of 5.2?",
        block=build_block(norms=0),
    ),
    "one-layer-norm": known(
        "In every block two numbers a feature are missing, as much as one LayerNorm.",
        BY_ITSELF,
        block=build_block(norms=1),
    ),
    "three-layer-norms": known(
        "In every block two numbers a feature are too many, as much as one LayerNorm.",
        "A block has two. The one that follows the tables is there once, however many blocks "
        "there are.",
        block=build_block(norms=3),
    ),
    "embedding-norm-in-every-block": known(
        "You count three LayerNorms in every block, and none outside the blocks: does the one that "
        "follows the tables stand in your loop?",
        "A block has two of its own. The one that follows the tables is there once, however many "
        "blocks there are.",
        section=A_BERT,
        block=build_block(norms=3),
        norm=lambda d: 0,
    ),
    "one-bias-forgotten": known(
        "In every block one number a feature is missing, as much as one bias of W_o or of the "
        "second layer of the feed-forward network.",
        BY_ITSELF,
        block=build_block(ffn_biases=lambda d, f: (f, 0)),
    ),
    "ffn-first-bias-forgotten": known(
        "In every block the bias of the first layer of the feed-forward network is missing.",
        "It is a linear layer like the second, and its bias is as long as what comes out of it.",
        block=build_block(ffn_biases=lambda d, f: (0, d)),
    ),
    "ffn-biases-forgotten": known(
        "In every block as much is missing as the biases of the feed-forward network are.",
        "Its two layers have biases, like the matrices of attention, and not equally many.",
        block=build_block(ffn_biases=lambda d, f: (0, 0)),
    ),
    "ffn-biases-of-inner-width": known(
        "In every block both biases of the feed-forward network have the inner width.",
        "A bias is as long as what comes out of its layer. The second layer leads back.",
        block=build_block(ffn_biases=lambda d, f: (f, f)),
    ),
    "ffn-biases-of-outer-width": known(
        "In every block both biases of the feed-forward network are as wide as a token.",
        "A bias is as long as what comes out of its layer. What comes out of the first?",
        block=build_block(ffn_biases=lambda d, f: (d, d)),
    ),
    "ffn-biases-of-five-times-the-width": known(
        "In every block the two biases of the feed-forward network have 5 numbers a feature.",
        "So many they have where the inner width is 4 · d. A bias is as long as what comes out of "
        "its layer.",
        block=build_block(ffn_biases=lambda d, f: (4 * d, d)),
    ),
    "three-biases-forgotten": known(
        "In every block three numbers a feature are missing, as if attention had one bias for all "
        "of its four matrices.",
        BY_ITSELF,
        block=build_block(attention=build_attention(biases=lambda matrices, d: d)),
    ),
    "output-projection-forgotten": known(
        "In every block attention has three matrices.",
        "W_q, W_k and W_v lead into the heads. Which one leads out?",
        block=build_block(attention=build_attention(matrices=3)),
    ),
    "attention-forgotten": known(
        "Your blocks have no attention.",
        "A block is attention first, then the feed-forward network.",
        block=build_block(attention=lambda d: 0),
    ),
    "biases-forgotten": known(
        "In every block as much is missing as all its biases are, or as both LayerNorms and the "
        "biases of the feed-forward network are.",
        "Few numbers in a block, but there are many blocks.",
        block=build_block(attention=lambda d: 4 * d * d, ffn_biases=lambda d, f: ()),
    ),
    "weights-only": known(
        "You count tables and matrices, and neither biases nor LayerNorms.",
        "They are 0.1 % of BERT-base. The paper's 110M allows for that, and a count to the last "
        "parameter does not.",
        section=A_BERT,
        block=build_block(attention=lambda d: 4 * d * d, ffn_biases=lambda d, f: (), norms=0),
        pooler=lambda d: d * d,
        norm=lambda d: 0,
    ),
    "feed-forward-forgotten": known(
        "Your blocks have no feed-forward network.",
        "It holds over half of BERT's parameters: the bars in the lesson show it.",
        section=A_BERT,
        block=build_block(layers=0),
    ),
    "inner-width-taken-as-4d": known(
        "You take the inner width to be four times the width, whatever the argument says.",
        "That is so in BERT, so BERT-base cannot tell. The function is given both widths.",
        block=build_block(inner=lambda d, f: 4 * d),
    ),
    "widths-of-the-block-swapped": known(
        "In your blocks the width and the inner width have changed places.",
        "If you call count_block of 5.2: the width of a token comes first in its def line. If not: "
        "into which width does each layer lead?",
        block=lambda d, f: RIGHT_BLOCK(f, d),
    ),
}
BLOCKS = read_again("A block", BLOCKS)


def _without_defaults(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments):
    """An answer that always wants all six sizes."""
    sizes = (vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments)
    return build_bert()(*sizes)


# An exception is recognised by its words, and these name the function as the learner calls it.
_without_defaults.__name__ = _without_defaults.__qualname__ = "count_bert"


def _other_default(name, rows):
    """Whether the count is right, or rows of a table are too many or too few where this argument
    is not given."""

    def shows(inputs, value):
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        excess, width = value - build_bert()(*inputs.values()), inputs["num_hiddens"]
        return excess == 0 if name in inputs else excess % width == 0 and excess + rows * width > 0

    return shows


def _sizes_swapped(
    vocab_size, num_hiddens, num_layers, ffn_num_hiddens, num_segments=2, max_len=512
):
    """An answer whose last two arguments stand in the other order."""
    sizes = (vocab_size, num_hiddens, num_layers, ffn_num_hiddens)
    return build_bert()(*sizes, max_len, num_segments)


DEFAULT = (
    "A caller who does not name the argument means what BERT was published with. Compare your def "
    "line with the one in the task."
)

BERT = {
    "pooler-forgotten": known(
        "You leave out the pooler.",
        "It stands above the last block: one more linear layer, with numbers of its own.",
        pooler=lambda d: 0,
    ),
    "pooler-in-every-block": known(
        "You count a pooler in every block.",
        "It stands above the last block, so there is one, however many blocks there are.",
        poolers=lambda n: n,
    ),
    "positions-for-each-segment": known(
        "You multiply the rows of positions with those of segments.",
        "Each table has its own rows: a token gets one row of each, and the three are added.",
        section=A_BERT,
        wrong=lambda V, d, n, f, max_len=512, num_segments=2: build_bert(
            positions=lambda m: m * num_segments, segments=lambda s: 0
        )(V, d, n, f, max_len, num_segments),
    ),
    "rows-without-width": known(
        "Only the table of segments is multiplied by the width: the others are counted as one "
        "number a row.",
        "In `a + b + c * d` the star belongs to c alone. Put the sum into brackets.",
        wrong=_rows_without_width,
    ),
    "pooler-bias-forgotten": known(
        "One number a feature is missing: the bias of the pooler, a row of one of the tables, or "
        "the shift of the LayerNorm that follows them, if you count its scale.",
        "They are a few hundred of a hundred million in BERT-base, which has to be hit exactly. "
        "Print these parts one by one and hold them against the task's list.",
        pooler=lambda d: d * d,
    ),
    "embedding-norm-without-shift": known(
        norm=lambda d: d,
        twin="pooler-bias-forgotten",
    ),
    "embedding-norm-forgotten": known(
        "Two numbers a feature are missing, as many as the LayerNorm has that follows the tables.",
        "It belongs to no block, so a count of tables and blocks passes it by. If it is in yours: "
        "has it a scale and a shift, and has the pooler its bias?",
        norm=lambda d: 0,
    ),
    "two-norms-outside-the-blocks": known(
        "Two numbers a feature are too many, as many as a second LayerNorm outside the blocks has, "
        "or two more rows of a table.",
        "One LayerNorm follows the tables, and no other stands outside a block: neither after the "
        "last block, as in other models, nor at the pooler. And how many rows each table has is "
        "given.",
        norm=lambda d: 4 * d,
    ),
    "norm-for-each-table": known(
        "Four numbers a feature are too many, as many as two LayerNorms have.",
        "Outside the blocks there is one. If each of your tables has its own: the three rows of a "
        "token are added up first.",
        norm=lambda d: 6 * d,
    ),
    "tables-with-biases": known(
        "Three numbers a feature are too many: has each of your tables a bias, or one more row?",
        "A table is looked up: a token takes its row as it is. A bias needs a product to be added "
        "to. And how many rows each table has is given.",
        extra=lambda V, d: 3 * d,
    ),
    "word-table-forgotten": known(
        "You leave out the table of the vocabulary.",
        "Each entry of the vocabulary has a row, and the rows are trained.",
        words=lambda V: 0,
    ),
    "positions-forgotten": known(
        "You leave out the table of positions.",
        "BERT learns a row for each place in the text, as it does for each entry of the "
        "vocabulary.",
        positions=lambda m: 0,
    ),
    "positions-fixed": known(
        "Your table of positions has 512 rows, whatever max_len is.",
        "512 is what BERT was published with. The argument may say something else.",
        positions=lambda m: 512,
    ),
    "segments-forgotten": known(
        "You leave out the table of segments.",
        "It has very few rows, and they are as wide as all others.",
        segments=lambda s: 0,
    ),
    "segments-fixed": known(
        "Your table of segments has two rows, whatever num_segments is.",
        "Two is what BERT was published with. The argument may say something else.",
        segments=lambda s: 2,
    ),
    "one-table-only": known(
        "Of the three tables you count the one of the vocabulary.",
        "A token is looked up three times: what it is, where it stands, and to which segment it "
        "belongs.",
        positions=lambda m: 0,
        segments=lambda s: 0,
    ),
    "counted-in-every-layer": known(
        "You count tables and pooler again for every block.",
        "What is there once? The tables stand below the stack, the pooler above it: tokens pass "
        "each of them a single time.",
        repeat_rest=lambda n: n,
    ),
    "output-layer-counted": known(
        "You count another layer at the top, from the width to the vocabulary, with a bias.",
        "That layer guesses words while BERT is trained. Here nothing comes after the pooler.",
        extra=lambda V, d: V * d + V,
    ),
    "guessing-layers-counted": known(
        "You count the layers that guess hidden words: one more linear layer, a LayerNorm, and a "
        "bias for each entry of the vocabulary.",
        "They are there while BERT is trained, and some libraries count them in. Here nothing "
        "comes after the pooler.",
        extra=lambda V, d: d * d + 3 * d + V,
    ),
    "two-classes-counted": known(
        "You count a layer with two outputs after the pooler.",
        "It guesses whether one sentence follows another, or sorts texts into two kinds. Here "
        "nothing comes after the pooler.",
        extra=lambda V, d: 2 * d + 2,
    ),
    "vocabulary-bias-counted": known(
        "You count a bias for each entry of the vocabulary.",
        "A table is looked up, without a bias. The layer that guesses words has one, and here "
        "nothing comes after the pooler.",
        extra=lambda V, d: V,
    ),
    "pooler-counted-twice": known(
        "You count two layers like the pooler, each a matrix and a bias.",
        "The pooler is one linear layer. What comes after it is there while BERT is trained.",
        pooler=lambda d: 2 * (d * d + d),
    ),
    "word-table-counted-twice": known(
        "The table of the vocabulary is in your count twice: do you count a layer that leads back "
        "to words?",
        "Here nothing leads back: nothing comes after the pooler.",
        words=lambda V: 2 * V,
    ),
    "sizes-swapped-in-def": known(
        "max_len and num_segments have changed places in your def line, or their defaults have.",
        "Who calls with five numbers means max_len by the fifth, and counts on your default for "
        "num_segments.",
        wrong=_sizes_swapped,
    ),
    "other-max-len-by-default": known(
        "When nothing is said about max_len, you take another number than the task does.",
        DEFAULT,
        wrong=lambda V, d, n, f, max_len=128, s=2: build_bert()(V, d, n, f, max_len, s),
        shows=_other_default("max_len", 512),
    ),
    "other-num-segments-by-default": known(
        "When nothing is said about num_segments, you take another number than the task does.",
        DEFAULT,
        wrong=lambda V, d, n, f, max_len=512, s=1: build_bert()(V, d, n, f, max_len, s),
        shows=_other_default("num_segments", 2),
    ),
    "xor-for-power": known(
        XOR,
        POWER,
        block=build_block(attention=build_attention(weights=lambda d: d ^ 2)),
        pooler=lambda d: (d ^ 2) + d,
    ),
    "tables-in-each-layer": known(
        "You count the tables once for each block.",
        "They are looked up once, before the first block.",
        wrong=lambda V, d, n, f, max_len=512, s=2: (
            build_bert()(V, d, n, f, max_len, s) + (n - 1) * (V + max_len + s) * d
        ),
    ),
    "always-BERT-base": known(
        "You return the number of BERT-base, whatever the arguments are.",
        "The function is asked for other BERTs as well. Which of its parts depend on which "
        "argument?",
        wrong=lambda *sizes, **more: 109_482_240,
    ),
    "defaults-missing": known(
        "Your function cannot be called with four sizes.",
        "The task gives max_len and num_segments values of their own in the def line, so that a "
        "caller may leave them out.",
        wrong=_without_defaults,
    ),
}
BERT = BLOCKS + read_again(A_BERT, BERT | in_floats(build_bert()))

TASK = Task(
    "05-count_bert",
    counting.count_bert,
    bert_cases,
    returns=("the number of parameters",),
    mistakes=BERT,
    build=build_bert,
    quantities=bert_quantities,
    uses=("05-count_attention", "05-count_block"),
    forbidden=FORBIDDEN,
    number=3,
)
