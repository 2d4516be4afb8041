"""Task 2.6, window_mask: each word sees the last few words, and no padding."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.scaled_dot_product.causal_mask import OTHER_TABLES


def window_mask(num_steps, window, valid_lens):
    steps = torch.arange(num_steps)
    back = steps[:, None] - steps  # how many words before the query the key stands
    real = steps < valid_lens[:, None]  # (B, L)
    # A real word sees only words before it, and those are real too.
    return (back >= 0) & (back < window) & real[:, :, None]


def window_cases(draw):
    def case(name, num_steps, window, valid_lens):
        lens = torch.as_tensor(valid_lens)
        return Case(name, {"num_steps": num_steps, "window": window, "valid_lens": lens})

    return [
        case("4 words, window 2, length 4", 4, 2, [4]),
        case("5 words, window 3, lengths 5 and 2", 5, 3, [5, 2]),
        case("a window of 1", 3, 1, [3, 2, 1, 3]),
        case("a window wider than the sentence", 4, 7, [4, 2, 3]),
        case("as many sequences as words", 3, 2, [2, 3, 1]),
        case("a sequence of length 0", 5, 2, [0, 5, 3]),
        case("padding in every sequence", 5, 3, [4, 2]),
        case("one word, in int32", 1, 1, torch.tensor([1, 0], dtype=torch.int32)),
        case("11 words, window 5", 11, 5, draw.lengths(4, 11)),
        case("130 words, window 100", 130, 100, [130, 67]),
    ]


def right_near(back, window):
    return (back >= 0) & (back < window)


def right_real(steps, lens):
    return steps < lens[:, None]


def right_join(near, real):
    return near & real[:, :, None] & real[:, None]


def build_window(near=right_near, real=right_real, join=right_join, turn=unchanged, form=unchanged):
    """near: (L, L) from how many words back the key stands, and the window. real: (B, L) from the
    positions and the lengths. join: the mask from both.
    """

    def window_mask(num_steps, window, valid_lens):
        steps = torch.arange(num_steps)
        seen = near(steps[:, None] - steps, window), real(steps, valid_lens)
        return form(turn(join(*seen)))

    return window_mask


def _last_words(num_steps, window, valid_lens):
    """The last real words, for every query."""
    steps, lens = torch.arange(num_steps), valid_lens[:, None, None]
    causal = torch.ones(num_steps, num_steps, dtype=torch.bool).tril()
    return causal & (steps < lens) & (steps >= lens - window) & (steps[:, None] < lens)


def _negative_start(num_steps, window, valid_lens):
    mask = torch.zeros(len(valid_lens), num_steps, num_steps, dtype=torch.bool)
    for row, length in zip(mask, valid_lens.tolist(), strict=True):
        for t in range(length):
            row[t, t - window + 1 : t + 1] = True
    return mask


def _wraps_round(low=None):
    """The window counted from the end where it begins before the sentence."""

    def window_mask(num_steps, window, valid_lens):
        mask = torch.zeros(len(valid_lens), num_steps, num_steps, dtype=torch.bool)
        for row, length in zip(mask, valid_lens.tolist(), strict=True):
            for t in range(length):
                for s in range(max(t - window + 1, -num_steps if low else t - window + 1), t + 1):
                    row[t, s] = True
        return mask

    return window_mask


def _one_table(num_steps, window, valid_lens):
    steps = torch.arange(num_steps)
    return right_near(steps[:, None] - steps, window)


def _narrow_only(num_steps, window, valid_lens):
    for back in range(window):
        torch.ones(num_steps - back)
    return build_window()(num_steps, window, valid_lens)


def _shortest_window(num_steps, window, valid_lens):
    shortest = int(valid_lens.min()) or window
    return build_window()(num_steps, min(window, shortest), valid_lens)


def _one_block(num_steps, window):
    blocks = torch.arange(num_steps) // window
    return blocks[:, None] == blocks


PADDING = "Hiding padding"
NOTHING = "Nothing to attend to"
AXES = "A mask with one axis too many, or too few"

WINDOW = {
    "one-word-too-many": known(
        "Your window is one word too wide.",
        "The word itself is one of the words in the window. With a window of 1, what is left "
        "besides the word itself?",
        near=lambda back, window: (back >= 0) & (back <= window),
    ),
    "one-word-too-few": known(
        "Your window is one word too narrow.",
        "A window of 1 shows a word itself, and a window of 2 the word before it too.",
        near=lambda back, window: (back >= 0) & (back < window - 1),
    ),
    "window-below-the-length": known(
        "You cut a wide window to one word less than there are: the last word does not see the "
        "first.",
        "The word itself is one of the words in the window. How wide is a window in which the last "
        "of L words sees all?",
        near=lambda back, window: right_near(back, min(window, len(back) - 1)),
    ),
    "looks-both-ways": known(
        "Your window reaches forward as far as back: words see later words.",
        "The task asks for the words before. A distance without its sign cannot tell the two "
        "directions apart.",
        near=lambda back, window: back.abs() < window,
    ),
    "looks-ahead": known(
        "Your window reaches forward, not back.",
        "Rows are queries, columns keys. Word 0, in the first row, has nobody before it, so it may "
        "see only itself.",
        near=lambda back, window: right_near(-back, window),
    ),
    "future-not-hidden": known(
        "Words too far back are hidden, but all later words are visible.",
        "A window has two ends. You have set the one in the past.",
        near=lambda back, window: back < window,
    ),
    "no-window": known(
        "Your mask is causal, and the window has no effect.",
        "Each word sees all words before it, however far away they are.",
        near=lambda back, window: back >= 0,
    ),
    "hides-itself": known(
        "None of your words sees itself: the window begins one word earlier.",
        "The word itself counts as one of the words in its window.",
        near=lambda back, window: (back > 0) & (back <= window),
    ),
    "hides-itself-and-no-more": known(
        "None of your words sees itself.",
        "A window of 1 leaves nothing then. The word itself counts as one of the words in its "
        "window.",
        near=lambda back, window: (back > 0) & (back < window),
    ),
    "only-the-end-of-the-window": known(
        "Each of your words sees only the word that is window - 1 back.",
        "That is where its window begins. What about the words from there to the word itself?",
        near=lambda back, window: back == window - 1,
    ),
    "first-words-for-all": known(
        "Your window stands still: it holds the first words of the sentence, whatever the query "
        "is.",
        "The window moves along with the query. For word t it ends at word t.",
        near=lambda back, window: (back >= 0) & (torch.arange(len(back)) < window),
    ),
    "nothing-in-a-wide-window": known(
        "From a window of 2 on your mask is False everywhere.",
        "Two conditions shut each other out. If you cut with tril and triu: does diagonal=1 of "
        "triu lie above or below the middle one, and on which side is the past?",
        near=lambda back, window: (back >= 0) & (back <= 1 - window),
    ),
    "starts-before-the-sentence": known(
        "The first words of a sentence see nothing: their windows begin before word 0.",
        "A slice that begins at -1 begins at the last place, so nothing is left of it. Where does "
        "the window of word 0 begin?",
        wrong=_negative_start,
    ),
    "window-wraps-round": known(
        "Where a window begins before the sentence, your first words see its last words.",
        "An index below 0 counts from the end. Where does the window of word 0 begin?",
        wrong=_wraps_round(low=True),
    ),
    "window-wraps-round-and-raises": known(
        "Where a window begins before the sentence, your first words see its last words, and a "
        "wide window raises.",
        "An index below 0 counts from the end, as far as there are words. Where does the window of "
        "word 0 begin?",
        wrong=_wraps_round(),
    ),
    "wide-window-raises": known(
        "A window wider than the sentence raises: you build a diagonal for each distance.",
        "Such a window hides nothing but the future. How many diagonals does a table of L rows "
        "have?",
        wrong=_narrow_only,
    ),
    "window-of-the-shortest": known(
        "The length of one sentence changes the window of another: you cut it to the shortest.",
        "A window is as wide for all. What is past a length is hidden by the length itself.",
        section=PADDING,
        wrong=_shortest_window,
    ),
    "all-visible": known(
        "Your mask knows about padding only: neither the window nor the future is hidden.",
        "How far key s stands before query t is t - s. Which distances are allowed?",
        near=lambda back, window: torch.ones_like(back, dtype=torch.bool),
    ),
    "padding-attends": known(
        "Nobody attends to padding, but padding attends to real words.",
        "The rows past each length have to be False from end to end: both the key and the query "
        "have to be real. Do you ask that of keys only, or that one of the two is real?",
        section=PADDING,
        join=lambda near, real: near & real[:, None],
    ),
    "lengths-ignored": known(
        "valid_lens has no effect: padding sees padding.",
        "Rows and columns past each length have to be False.",
        section=PADDING,
        real=lambda steps, lens: torch.ones(len(lens), len(steps), dtype=torch.bool),
    ),
    "longest-for-all": known(
        "All sequences get the length of the longest.",
        "Each sequence has a length of its own.",
        section=PADDING,
        real=lambda steps, lens: (steps < lens.max()).expand(len(lens), -1),
    ),
    "window-round-the-end": known(
        "The window of the first words goes on at the end of the sentence.",
        "A remainder turns -1 into the last place, and so does roll. Nothing stands before word 0.",
        near=lambda back, window: back % len(back) < window,
    ),
    "one-key-too-many": known(
        "One word past each length counts as real.",
        "Positions count from 0, so with a length of 3 the words 0, 1 and 2 are real.",
        section=PADDING,
        real=lambda steps, lens: steps <= lens[:, None],
    ),
    "one-key-too-few": known(
        "The last real word of each sequence counts as padding.",
        "A length of 3 means three real words: 0, 1 and 2.",
        section=PADDING,
        real=lambda steps, lens: steps < lens[:, None] - 1,
    ),
    "at-least-one-word": known(
        "In a sentence of length 0, word 0 counts as real.",
        "That keeps NaN away. But there is no word in it, and its rows are to be False from end "
        "to end.",
        section=NOTHING,
        real=lambda steps, lens: steps < lens.clamp(min=1)[:, None],
    ),
    "first-length-for-all": known(
        "Every sequence gets the length of the first.",
        "Each sequence of the batch has a length of its own, and so its own table.",
        section=AXES,
        real=lambda steps, lens: (steps < lens[0]).expand(len(lens), -1),
    ),
    "shortest-length-for-all": known(
        "Every sequence gets the shortest length.",
        "Each sequence of the batch has a length of its own, and so its own table. If you cut "
        "tables to their lengths one by one: mask = band makes no copy, so all of them cut the "
        "same table.",
        section=AXES,
        real=lambda steps, lens: (steps < lens.min()).expand(len(lens), -1),
    ),
    "one-table-without-lengths": known(
        "You return one table, and the lengths have no effect on it.",
        "Sentences differ in length, so each has a table of its own, (B, L, L), in which padding "
        "neither attends nor is attended to.",
        section=PADDING,
        wrong=_one_table,
    ),
    "lengths-without-an-axis": known(
        "You compare positions with lengths one by one, (L,) with (B,).",
        "Every position is to be compared with every length. For that the lengths need an axis of "
        "size 1 behind the batch.",
        section=AXES,
        real=lambda steps, lens: (steps < lens).expand(len(lens), -1),
    ),
    "either-is-enough": known(
        "You join the conditions with or: a place is True if one of them holds.",
        "A key has to pass all of them: not in the future, not too far back, not padding.",
        join=lambda near, real: near | (real[:, :, None] & real[:, None]),
    ),
    "last-words-for-all": known(
        "Your window stands still: it holds the last words of the sentence, whatever the query is.",
        "The window moves along with the query. For word t it ends at word t.",
        wrong=_last_words,
    ),
    "blocks-for-windows": known(
        "You cut the sentence into blocks, and words see the earlier words of their block.",
        "The window moves along with the query, word by word: two words in a row see nearly the "
        "same words.",
        near=lambda back, window: right_near(back, window) & _one_block(len(back), window),
    ),
    "padding-sees-itself": known(
        "Each word of padding attends to itself.",
        "That keeps NaN away in some libraries. This task asks for rows that are False from end "
        "to end, as in the rest of the lesson.",
        section=NOTHING,
        turn=lambda mask: mask | torch.eye(mask.shape[-1], dtype=torch.bool),
    ),
    "no-axis-for-the-batch": known(
        "Your mask has no axis for the batch.",
        "Sentences differ in length, so each has a table of its own: (B, L, L).",
        section=AXES,
        form=lambda mask: mask[0],
    ),
    **OTHER_TABLES,
}

TASK = Task(
    "02-window_mask",
    window_mask,
    window_cases,
    returns=("the result",),
    mistakes=read_again("Hiding the future", WINDOW),
    build=build_window,
    alone=(
        "all-visible",
        "shortest-length-for-all",
        "lengths-without-an-axis",
        "either-is-enough",
        "no-axis-for-the-batch",
        "mask-of-whole-numbers",
    ),
    uses=("02-causal_mask",),
    since=3,
    number=6,
)
