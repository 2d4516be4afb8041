"""The known mistakes of lesson 05 that count the parameters of a whole BERT."""

from mha_course.checks.mistakes.bert_blocks import BLOCKS, build_bert
from mha_course.checks.task import Mistake

__all__ = ["BERT", "build_bert"]

A_BERT = "A whole BERT"


def without_defaults(vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments):
    """An answer that always wants all six sizes."""
    sizes = (vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments)
    return build_bert()(*sizes)


# An exception is recognised by its words, and these name the function as the learner calls it.
without_defaults.__name__ = without_defaults.__qualname__ = "count_bert"


BERT = BLOCKS + (
    Mistake(
        "pooler-forgotten",
        "You leave out the pooler.",
        "It stands above the last block: one more linear layer, with numbers of its own.",
        A_BERT,
        parts={"pooler": lambda d: 0},
    ),
    Mistake(
        "pooler-bias-forgotten",
        "One number a feature is missing. The bias of the pooler has as many, and so has the shift "
        "of the LayerNorm that follows the tables: one of the two is left out.",
        "They are a few hundred of a hundred million in BERT-base, which has to be hit exactly. "
        "Print these two parts one by one and hold them against the task's list.",
        A_BERT,
        parts={"pooler": lambda d: d * d},
    ),
    Mistake(
        "embedding-norm-without-shift",
        "The LayerNorm of the embeddings has a scale and no shift.",
        "Both are trained.",
        A_BERT,
        parts={"norm": lambda d: d},
        twin="pooler-bias-forgotten",
    ),
    Mistake(
        "embedding-norm-forgotten",
        "You leave out the LayerNorm that follows the tables.",
        "It belongs to no block, so a count of tables and blocks passes it by.",
        A_BERT,
        parts={"norm": lambda d: 0},
    ),
    Mistake(
        "two-norms-outside-the-blocks",
        "Two numbers a feature are too many, as much as one LayerNorm outside the blocks.",
        "One follows the tables, and no other stands outside a block: neither after the last "
        "block, as in other models, nor at the pooler.",
        A_BERT,
        parts={"norm": lambda d: 4 * d},
    ),
    Mistake(
        "norm-for-each-table",
        "You count a LayerNorm for each of the three tables.",
        "The three rows of a word are added up first. How many results are there to normalise?",
        A_BERT,
        parts={"norm": lambda d: 6 * d},
    ),
    Mistake(
        "tables-with-biases",
        "You count a bias for each of the three tables.",
        "A table is looked up: a word takes its row as it is. A bias needs a product to be added "
        "to.",
        A_BERT,
        parts={"extra": lambda V, d: 3 * d},
    ),
    Mistake(
        "word-table-forgotten",
        "You leave out the table of the vocabulary.",
        "Each entry of the vocabulary has a row, and the rows are trained.",
        A_BERT,
        parts={"words": lambda V: 0},
    ),
    Mistake(
        "positions-forgotten",
        "You leave out the table of positions.",
        "BERT learns a row for each place in the text, as it does for each entry of the "
        "vocabulary.",
        A_BERT,
        parts={"positions": lambda m: 0},
    ),
    Mistake(
        "positions-fixed",
        "Your table of positions has 512 rows, whatever max_len is.",
        "512 is what BERT was published with. The argument may say something else.",
        A_BERT,
        parts={"positions": lambda m: 512},
    ),
    Mistake(
        "segments-forgotten",
        "You leave out the table of segments.",
        "It has very few rows, and they are as wide as all others.",
        A_BERT,
        parts={"segments": lambda s: 0},
    ),
    Mistake(
        "segments-fixed",
        "Your table of segments has two rows, whatever num_segments is.",
        "Two is what BERT was published with. The argument may say something else.",
        A_BERT,
        parts={"segments": lambda s: 2},
    ),
    Mistake(
        "one-table-only",
        "Of the three tables you count the one of the vocabulary.",
        "A word is looked up three times: what it is, where it stands, and to which segment it "
        "belongs.",
        A_BERT,
        parts={"positions": lambda m: 0, "segments": lambda s: 0},
    ),
    Mistake(
        "counted-in-every-layer",
        "You count tables and pooler again for every block.",
        "What is there once? The tables stand below the stack, the pooler above it: words pass "
        "each of them a single time.",
        A_BERT,
        parts={"repeat_rest": lambda n: n},
    ),
    Mistake(
        "output-layer-counted",
        "You count another layer at the top, from the width to the vocabulary, with a bias.",
        "That layer guesses words while BERT is trained. Here nothing comes after the pooler.",
        A_BERT,
        parts={"extra": lambda V, d: V * d + V},
    ),
    Mistake(
        "guessing-layers-counted",
        "You count the layers that guess hidden words: one more linear layer, a LayerNorm, and a "
        "bias for each entry of the vocabulary.",
        "They are there while BERT is trained, and some libraries count them in. Here nothing "
        "comes after the pooler.",
        A_BERT,
        parts={"extra": lambda V, d: d * d + 3 * d + V},
    ),
    Mistake(
        "vocabulary-bias-counted",
        "You count a bias for each entry of the vocabulary.",
        "A table is looked up, without a bias. The layer that guesses words has one, and here "
        "nothing comes after the pooler.",
        A_BERT,
        parts={"extra": lambda V, d: V},
    ),
    Mistake(
        "pooler-counted-twice",
        "You count two layers like the pooler, each a matrix and a bias.",
        "The pooler is one linear layer. What comes after it is there while BERT is trained.",
        A_BERT,
        parts={"pooler": lambda d: 2 * (d * d + d)},
    ),
    Mistake(
        "word-table-counted-twice",
        "You count the vocabulary twice, as a table and as a layer that leads back to words.",
        "Here nothing leads back: nothing comes after the pooler.",
        A_BERT,
        parts={"words": lambda V: 2 * V},
    ),
    Mistake(
        "defaults-missing",
        "Your function cannot be called with four sizes.",
        "The task gives max_len and num_segments values of their own in the def line, so that a "
        "caller may leave them out.",
        A_BERT,
        without_defaults,
    ),
)
