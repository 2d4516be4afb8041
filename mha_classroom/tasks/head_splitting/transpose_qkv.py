"""Task 4.1, transpose_qkv: each head gets its slice of every word."""

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_course import multihead


def point_out_slice(inputs, rows):
    """Which head and word the first wrong number is of, and where X has what belongs there; how
    many rows of which width are asked for, if the shape is wrong."""
    X, H = inputs.values()
    right = right_split(X, H)
    d = right.shape[-1]
    if rows.shape != right.shape:
        return f"Asked for are {len(right)} rows, {H} for each sequence, with heads of width {d}."
    row, word, i = place = first_wrong(rows, right)
    b, h = divmod(row, H)
    return (
        f"Row {row} is head {h} of sequence {b}. Its word {word} has X[{b}, {word}, {h * d + i}] = "
        f"{number_text(right[place].item(), 4)} in place {i}; yours is "
        f"{number_text(rows[place].item(), 4)}."
    )


def split_cases(draw):
    def case(name, X, num_heads):
        return Case(name, {"X": X, "num_heads": num_heads})

    turned = "X is a transposed tensor, so it is not contiguous"
    return [
        case("the lesson's example", _digits(3, 4)[None], 2),
        case("2 sequences, 5 words, 3 heads of width 7", draw.normal(2, 5, 21), 3),
        case("as many words as heads", draw.normal(2, 3, 15), 3),
        case("one head", draw.normal(3, 2, 5), 1),
        case("sequences of one word", draw.normal(3, 1, 6), 3),
        case("heads of width 1", draw.normal(2, 4, 3), 3),
        case("one word, one feature", draw.normal(1, 1, 1), 1),
        case(turned, draw.normal(3, 10, 7).transpose(1, 2), 5),
    ]


def whole_numbers(draw, *shape):
    """int64, and too large for a float to hold."""
    return draw.integers(2**53, 2**60, *shape)


@and_in_float32
def whole_number_cases(draw):
    inputs = {"X": whole_numbers(draw, 2, 3, 8), "num_heads": 2}
    return [*split_cases(draw), Case("X holds whole numbers (int64)", inputs)]


def _digits(num_words, num_hiddens):
    """The lesson's example: 12 is word 1, feature 2."""
    return (10 * torch.arange(num_words)[:, None] + torch.arange(num_hiddens)).double()


def right_split(X, H):
    return X.reshape(*X.shape[:2], H, -1).transpose(1, 2).flatten(0, 1)


def cut_words(X, H):
    """The first words for head 0, and so on."""
    return X.reshape(X.shape[0] * H, X.shape[1], -1)


def interleaved(X, H):
    """Features dealt out in turn."""
    return X.reshape(*X.shape[:2], -1, H).permute(0, 3, 1, 2).flatten(0, 1)


def interleaved_heads_first(X, H):
    return torch.cat([X[..., h::H] for h in range(H)])


def starting_at_h(X, H):
    d = X.shape[-1] // H
    return torch.stack([X[..., h : h + d] for h in range(H)], 1).flatten(0, 1)


def _stacked(pieces):
    return torch.stack(pieces, 1).flatten(0, 1)


STEP_1 = "Step 1: cut each word"
STEP_2 = "Step 2: heads to the front"
STEP_3 = "Step 3: batch and heads become one axis"
TRAP = "The trap"

WORDS_CUT = (
    "You cut the axis of words: each head gets some of the words.",
    "A head sees every word, and a slice of its features. Which axis of X holds these?",
    STEP_1,
)
AS_FLOATS = (
    "Your result holds floats whatever X holds: numbers are copied into a tensor that is made "
    "without saying its dtype, or converted, as by .float() or a product with floats.",
    "X may be of any dtype, and large whole numbers lose their last digits in a float. A new "
    "tensor can take its dtype from X.",
)


def as_it_lies(X):
    """X with its numbers in the order of memory, as if it were contiguous."""
    return X.as_strided(X.shape, torch.empty(X.shape, device="meta").stride())


# Of other tasks as well.
SQUEEZED = (
    "Your result has lost an axis of size 1.",
    "squeeze takes such axes away: one sequence, one word or a head of width 1 still has an axis, "
    "and what comes after this counts on it.",
)
FIRST_SEQUENCE = (
    "Your result holds the first sequence alone.",
    "With a batch of one nobody notices. Every sequence of the batch is to be there.",
)

STRIDES = (
    "You read numbers in the order in which they lie in memory, with strides of your own for "
    "example. It is wrong where the tensor is not contiguous.",
    "A transposed tensor is no copy: its numbers lie where they lay before, and only its strides "
    "are others (X.stride() tells them). reshape and transpose go by them.",
)
SPLIT = {
    "features-in-front-and-reshaped": known(
        "You bring the features in front of the words, and reshape to (B · H, L, d) then.",
        "reshape deals numbers out as they lie in memory: a row mixes several words. "
        "Of the axes words, heads and features, which has to change its place?",
        wrong=lambda X, H: X.transpose(1, 2).reshape(len(X) * H, X.shape[1], -1),
    ),
    "first-sequence-only": known(
        *FIRST_SEQUENCE, section=STEP_3, wrong=lambda X, H: torch.stack(X[0].chunk(H, -1))
    ),
    "strides-of-a-contiguous-tensor": known(
        *STRIDES, wrong=lambda X, H: right_split(as_it_lies(X), H)
    ),
    "squeezed": known(*SQUEEZED, section=STEP_3, wrong=lambda X, H: right_split(X, H).squeeze()),
    "squeezed-in-front": known(
        *SQUEEZED, section=STEP_3, wrong=lambda X, H: right_split(X, H).squeeze(0)
    ),
    "batch-and-heads-swapped": known(
        "You swap the axes of batch and heads.",
        "With one sequence that is right by chance. With more, reshape deals out what lies there "
        "now: words of several sequences. Between B, L, H and d, which two have to change places?",
        section=STEP_2,
        wrong=lambda X, H: (
            X.reshape(*X.shape[:2], H, -1).transpose(0, 2).reshape(len(X) * H, X.shape[1], -1)
        ),
    ),
    "split-without-transpose": known(
        "You cut along the words: head 0 got the first words and never sees the last.",
        "reshape deals the numbers out as they lie in memory, and there a word comes before the "
        "next word. A head has to get its slice of every word.",
        wrong=cut_words,
    ),
    "view-after-permute": known(
        "You call view on a tensor whose axes were swapped.",
        "view only describes numbers as they lie in memory, and after the swap they do not lie in "
        "the order that you ask for. They have to be copied. Do not delete the swap: that silences "
        "the error and mixes words up.",
        wrong=lambda X, H: (
            X.unflatten(-1, (H, -1)).transpose(1, 2).view(-1, X.shape[1], X.shape[2] // H)
        ),
    ),
    "features-interleaved": known(
        "Your heads take features in turn, like cards dealt to players: head 0 gets features "
        "0, H, 2H and so on.",
        "Each head owns neighbouring features, since the columns of its own narrow matrix stand "
        "side by side in the wide one. Which of the two new axes comes first, head or feature?",
        section=STEP_1,
        wrong=interleaved,
    ),
    "count-and-width-swapped": known(
        "You cut each word into pieces of num_heads numbers, instead of into num_heads pieces.",
        "Number of heads and width of a head changed places: with 2 heads a word of width 6 has "
        "two pieces of 3, not three pieces of 2. Where the two are equal nobody notices.",
        section=STEP_1,
        wrong=lambda X, H: X.reshape(*X.shape[:2], -1, H).transpose(1, 2).flatten(0, 1),
    ),
    "slices-start-at-h": known(
        "The slice of head h starts at feature h.",
        "Each head before it owns as many features as a head is wide.",
        section=STEP_1,
        wrong=starting_at_h,
    ),
    "slices-one-short": known(
        "The slice of each head lacks its last feature.",
        "A slice a:b ends before feature b. How many features are in yours, and how wide is a "
        "head?",
        section=STEP_1,
        wrong=lambda X, H: torch.stack([x[..., :-1] for x in X.chunk(H, -1)], 1).flatten(0, 1),
    ),
    "heads-before-batch": known(
        "Your rows are ordered by head first, then by sequence.",
        "The rows of one sequence belong together: all heads of sequence 0, then all of sequence "
        "1. Lengths are spread in that order too: in another order, a row is masked by the length "
        "of another sequence.",
        section=STEP_3,
        wrong=lambda X, H: torch.cat(X.chunk(H, -1), 0),
    ),
    "features-interleaved-and-heads-before-batch": known(
        "Your heads take features in turn: head 0 gets features 0, H, 2H and so on. And your rows "
        "are ordered by head first, then by sequence.",
        "Each head owns neighbouring features, and all heads of sequence 0 come before those of "
        "sequence 1.",
        section=STEP_1,
        wrong=interleaved_heads_first,
    ),
    "heads-reversed": known(
        "Your heads stand in reverse order, the last one first.",
        "Head 0 owns the first features of every word.",
        section=STEP_1,
        wrong=lambda X, H: torch.stack(X.chunk(H, -1)[::-1], 1).flatten(0, 1),
    ),
    "words-cut-and-joined": known(*WORDS_CUT, wrong=lambda X, H: torch.cat(X.chunk(H, 1))),
    "words-cut-and-stacked": known(*WORDS_CUT, wrong=lambda X, H: _stacked(X.chunk(H, 1))),
    **{
        f"words-cut-by-split-and-{how}": known(
            *WORDS_CUT, wrong=lambda X, H, join=join: join(X.split(X.shape[1] // H, 1))
        )
        for how, join in (("joined", torch.cat), ("stacked", _stacked))
    },
    "floats-whatever-X-holds": known(
        *AS_FLOATS, section=STEP_3, wrong=lambda X, H: right_split(X.float(), H)
    ),
    "axes-not-joined": known(
        "You return four axes, with the heads still on one of their own.",
        "The numbers are where they should be. The task asks for batch and heads as one axis.",
        section=STEP_3,
        wrong=lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2),
    ),
    "words-and-features-swapped": known(
        "Words and features have changed places in each head: you return (B · H, d, L).",
        "Attention multiplies (words, features) matrices: words before features.",
        section=STEP_2,
        wrong=lambda X, H: right_split(X, H).mT,
    ),
    "heads-beside-words": known(
        "You joined batch and words instead of batch and heads.",
        "Every word became a problem of its own, with the heads in place of words: attention would "
        "compare the heads of one word. The axis of heads has to move before the first two axes "
        "are joined.",
        section=STEP_2,
        wrong=lambda X, H: X.unflatten(-1, (H, -1)).flatten(0, 1),
    ),
}

TASK = Task(
    "04-transpose_qkv",
    multihead.transpose_qkv,
    whole_number_cases,
    returns=("the result",),
    mistakes=read_again(TRAP, SPLIT),
    point_out=point_out_slice,
    forbidden=(
        "mha_course.multihead.transpose_qkv",
        "mha_course.multihead.split_heads",
        "d2l.torch.transpose_qkv",
    ),
    number=1,
)
