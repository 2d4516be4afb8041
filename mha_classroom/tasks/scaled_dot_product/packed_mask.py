"""Task 2.7, packed_mask: several sentences in one row, none of which sees another."""

import torch
from torch.nn import functional as F

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.scaled_dot_product.causal_mask import OTHER_TABLES


def packed_mask(sentences):
    same = sentences[:, :, None] == sentences[:, None]  # (B, L, L)
    causal = torch.ones(same.shape[1:], dtype=torch.bool).tril()
    return same & causal & (sentences >= 0)[:, :, None]


def packed_cases(draw):
    def case(name, *rows, dtype=torch.int64):
        return Case(name, {"sentences": torch.tensor(rows, dtype=dtype)})

    random = []
    # 5 sentences of 1 to 4 words, cut off after 11 words, and padding; in the first row 5 7 0 2 4.
    for first in (5, *draw.integers(0, 8, 3).tolist()):
        names = (first + 2 * torch.arange(5)) % 9
        row = torch.repeat_interleave(names, draw.integers(1, 4, 5))[:11]
        random.append(torch.cat([row, torch.full((13 - len(row),), -1)]))
    return [
        case("3 words and 2 words", [0, 0, 0, 1, 1]),
        case("2 rows, one with padding", [0, 0, 1, 1, 1, 2], [0, 1, 1, 1, -1, -1]),
        case("numbers in another order", [7, 7, 2, 2, 2, 0, 0], [3, 0, 0, 9, 9, 9, -1]),
        case("as many rows as words", [0, 0, 1], [0, 1, -1], [4, 4, 4]),
        case("a row of padding only", [-1, -1, -1, -1], [0, 0, 0, 0]),
        case("sentences of one word", [2, 1, 0, -1], [0, 1, 2, 3], [5, 6, 7, -1]),
        case("one word", [0], [-1]),
        case("large numbers, in int16", [300, 300, 44, 44, 255, 511, 1000, -1], dtype=torch.int16),
        Case("4 rows of 13 words, in int32", {"sentences": torch.stack(random).int()}),
        case("in int8", [0, 0, 4, 4, 16, 127, -1], [3, 3, 0, 0, 0, 16, 16], dtype=torch.int8),
        case("one sentence, no padding", [4, 4, 4]),
    ]


def right_same(sentences):
    return sentences[:, :, None] == sentences[:, None]


def right_causal(num_steps):
    return torch.ones(num_steps, num_steps, dtype=torch.bool).tril()


def build_packed(
    same=right_same,
    causal=right_causal,
    real=lambda sentences: sentences >= 0,
    turn=unchanged,
    form=unchanged,
):
    """same: (B, L, L), which words belong together. causal: (L, L). real: (B, L), which words are
    no padding."""

    def packed_mask(sentences):
        words = real(sentences)
        pairs = words[:, :, None] & words[:, None]
        return form(turn(same(sentences) & causal(sentences.shape[1]) & pairs))

    return packed_mask


def _every(sentences):
    return torch.ones_like(sentences, dtype=torch.bool)


def _padding_sees_itself(sentences):
    mask = packed_mask(sentences)
    return mask | torch.eye(mask.shape[1], dtype=torch.bool)


def _product_above_0(sentences):
    products = sentences[:, :, None] * sentences[:, None]
    return (products > 0) & right_causal(sentences.shape[1])


def _either(sentences):
    real = sentences >= 0
    either = right_same(sentences) | right_causal(sentences.shape[1])
    return either & real[:, :, None] & real[:, None]


def _in_order(sentences):
    mask = torch.zeros_like(right_same(sentences))
    for row, numbers in zip(mask, sentences, strict=True):
        start = 0
        for count in torch.bincount(numbers[numbers >= 0]).tolist():
            row[start : start + count, start : start + count] = right_causal(count)
            start += count
    return mask


def _from_0_on(sentences):
    mask = torch.zeros_like(right_same(sentences))
    for row, numbers in zip(mask, sentences, strict=True):
        for number in range(len(set(numbers.tolist()) - {-1})):
            here = numbers == number
            row |= here[:, None] & here
    return mask.tril()


def _growths(sentences):
    """How often the number has grown up to each word."""
    return F.pad(sentences.diff(dim=1) > 0, (1, 0)).cumsum(1)


def _rows_compared(sentences):
    """Rows with rows, not words with words."""
    return (sentences[:, None] == sentences[None]) & right_causal(sentences.shape[1])


def _last_word_is_padding(sentences):
    real = sentences >= 0
    full = real.all(1)
    real[full, -1] = False
    return real


def _lower_numbers_begin(sentences):
    """Words see from where their number would stand if numbers grew."""
    mask, steps = [], torch.arange(sentences.shape[1])
    for row in sentences:
        filled = torch.where(row < 0, 10**6, row)
        mask.append((steps >= torch.searchsorted(filled, filled)[:, None]) & (row >= 0)[:, None])
    return torch.stack(mask).tril()


def _blocks_of_real_words(sentences):
    tables = []
    for row in sentences:
        counts = torch.unique_consecutive(row[row >= 0], return_counts=True)[1]
        tables.append(torch.block_diag(*(right_causal(count) for count in counts)))
    return torch.stack(tables)


def _one_more(sentences):
    """0 for padding, which is to be left out, and 1 and more for sentences."""
    more = sentences + 1
    return right_same(more) & (more > 0)[:, None] & right_causal(more.shape[1])


def _wrong_in_small_types(inputs, mask):
    """Whether the mask is right but where numbers come in int8 or int16."""
    right = packed_mask(**inputs)
    if not torch.is_tensor(mask) or mask.shape != right.shape or mask.dtype != torch.bool:
        return False
    return inputs["sentences"].dtype in (torch.int8, torch.int16) or mask.equal(right)


PADDING = "Hiding padding"
FUTURE = "Hiding the future"
AXES = "A mask with one axis too many, or too few"

PACKED = {
    "padding-sees-itself": known(
        "Each word of padding attends to itself.",
        "That keeps NaN away in some libraries. This task asks for rows that are False from end "
        "to end, as in the rest of the lesson.",
        section="Nothing to attend to",
        wrong=_padding_sees_itself,
    ),
    "sentence-0-hidden": known(
        "Sentence 0 is hidden, as if it were padding.",
        "Padding is marked by -1. 0 is the number of a sentence like any other.",
        section=PADDING,
        real=lambda sentences: sentences > 0,
    ),
    "padding-taken-for-0": known(
        "You take 0 for the mark of padding.",
        "Padding is marked by -1, which is not 0 and passes your test, and 0 is the number of a "
        "sentence like any other.",
        section=PADDING,
        real=lambda sentences: sentences != 0,
    ),
    "product-above-0": known(
        "You ask whether the product of two numbers is above 0.",
        "1 · 2 is above 0 as well, though these are two sentences, and 0 · 0 is not, though it is "
        "one. -1 · -1 is: two words of padding.",
        wrong=_product_above_0,
    ),
    "product-for-square": known(
        "You ask whether the product of two numbers is the square of the first.",
        "That is so for equal numbers, and for 0, whose product with any number is 0: sentence 0 "
        "sees all sentences. Which comparison asks for equal numbers and nothing else?",
        same=lambda s: s[:, :, None] * s[:, None] == s[:, :, None] ** 2,
    ),
    "last-number-missed": known(
        "The sentence with the largest number of a row is missing.",
        "range(n) ends before n. And do the numbers have to be counted at all?",
        real=lambda s: (s >= 0) & (s < s.amax(1, keepdim=True)),
    ),
    "last-number-of-all-missed": known(
        "The sentence with the largest number of the whole batch is missing.",
        "range(n) ends before n. And do the numbers have to be counted at all?",
        real=lambda s: (s >= 0) & (s < s.amax()),
    ),
    "last-sentence-taken-for-padding": known(
        "The last sentence of a row without padding counts as padding.",
        "What marks padding is the number -1, not what stands last. If you close a sentence where "
        "the next number is another one: what closes the last sentence?",
        section=PADDING,
        real=lambda s: s != s[:, -1:],
    ),
    "last-word-taken-for-padding": known(
        "In a row without padding the last word sees nothing, as if it were padding.",
        "Such a row is full: all its words are real. If you count words in a loop, where does it "
        "end?",
        section=PADDING,
        real=_last_word_is_padding,
    ),
    "first-row-empty": known(
        "Word 0 of each row sees nothing, not even itself.",
        "It may see itself, as any word may. If you count words in a loop, with which one does it "
        "begin?",
        turn=lambda mask: mask & (torch.arange(mask.shape[1]) > 0)[:, None],
    ),
    "numbers-ascending": known(
        "Your way is right only if the numbers grow from left to right.",
        "The numbers come in any order: 7 may stand before 2. Which words belong together?",
        wrong=_lower_numbers_begin,
    ),
    "padding-without-a-place": known(
        "Your tables have rows and columns for real words only, so they differ in size.",
        "Padding has its rows and columns, too, False from end to end: the result is (B, L, L).",
        section=PADDING,
        wrong=_blocks_of_real_words,
    ),
    "either-is-enough": known(
        "You join the conditions with or: the same sentence, or not later.",
        "Both have to hold at once.",
        wrong=_either,
    ),
    "numbers-in-order": known(
        "In your mask the sentences lie from the smallest number to the largest, whatever their "
        "order in the row is. Do you sort the numbers, or count how many words each has?",
        "The numbers come in any order: 7 may stand before 2. Which words belong together?",
        wrong=_in_order,
    ),
    "numbers-from-0-on": known(
        "You look for sentences 0, 1, 2 and so on, as many as there are.",
        "The numbers come in any order, and some may be missing: two sentences can be 7 and 2.",
        wrong=_from_0_on,
    ),
    "only-larger-numbers-begin": known(
        "For you a new sentence begins only where the number grows.",
        "The numbers come in any order. After 7 may come 2, and that is another sentence.",
        same=lambda sentences: right_same(_growths(sentences)),
    ),
    "future-visible": known(
        "Your words see the later words of their own sentence.",
        "Two conditions have to hold at once: the same sentence, and not later.",
        causal=lambda n: torch.ones(n, n, dtype=torch.bool),
    ),
    "looks-ahead": known(
        "Your words see themselves and what comes later: the triangle is on the wrong side.",
        "Rows are queries. The first word of a sentence may see only itself.",
        causal=lambda n: right_causal(n).T,
    ),
    "next-word-visible": known(
        "Each of your words sees the next word of its sentence too.",
        "That is the word that a model is to predict.",
        causal=lambda n: torch.ones(n, n, dtype=torch.bool).tril(1),
    ),
    "hides-itself": known(
        "None of your words may look at itself.",
        "Word t may see the words of its sentence up to t, itself included.",
        causal=lambda n: right_causal(n).tril(-1),
    ),
    "sentences-ignored": known(
        "Your mask is causal, but words see the sentences before their own.",
        "The row is only a place to store several sentences. What one of them says is none of the "
        "business of the next.",
        same=lambda sentences: torch.ones_like(right_same(sentences)),
    ),
    "larger-numbers-see-smaller": known(
        "Words see the sentences with smaller numbers than their own.",
        "Belonging to the same sentence means that the numbers are equal. Which comparison is "
        "that?",
        same=lambda sentences: sentences[:, :, None] >= sentences[:, None],
    ),
    "smaller-numbers-see-larger": known(
        "Words see the sentences with larger numbers than their own.",
        "Belonging to the same sentence means that the numbers are equal. Which comparison is "
        "that?",
        same=lambda sentences: sentences[:, :, None] <= sentences[:, None],
    ),
    "other-sentences-only": known(
        "Your words see the other sentences and not their own.",
        "The comparison is the wrong way round. Where is it True?",
        same=lambda sentences: ~right_same(sentences),
    ),
    "neighbours-compared": known(
        "Of its sentence each word sees itself and the one before. Do you compare neighbours only?",
        "Two words of a sentence may stand further apart. Every word of a row is to be compared "
        "with every word of the same row.",
        same=lambda s: right_same(s) & ~right_causal(s.shape[1]).tril(-2),
    ),
    "first-row-for-all": known(
        "Every row of the batch gets the sentences of the first.",
        "Each row is packed in its own way. The result has an axis for the batch.",
        section=AXES,
        same=lambda sentences: right_same(sentences[:1]).expand(len(sentences), -1, -1),
        real=lambda sentences: (sentences[:1] >= 0).expand(len(sentences), -1),
    ),
    "first-row-for-all-but-padding": known(
        "Every row of the batch gets the sentences of the first, with the padding of its own.",
        "Each row is packed in its own way. Where its sentences begin has an axis for the batch, "
        "too.",
        section=AXES,
        same=lambda sentences: right_same(sentences[:1]).expand(len(sentences), -1, -1),
    ),
    "compared-without-an-axis": known(
        "Your result is (B, L), True for every word. Do you compare the numbers with themselves, "
        "one by one?",
        "Every word is to be compared with every word of its row. For that the queries need to "
        "run along another axis than the keys.",
        section=AXES,
        wrong=lambda sentences: sentences == sentences,
    ),
    "rows-compared": known(
        "You compare rows of the batch with each other, not words.",
        "The new axis stands in front of the words in one of them and behind them in the other. "
        "Where do the queries run, and where the keys?",
        section=AXES,
        wrong=_rows_compared,
    ),
    "rows-compared-and-no-more": known(
        "You compare rows of the batch with each other, not words, and later words are not hidden.",
        "The new axis stands in front of the words in one of them and behind them in the other. "
        "Where do the queries run, and where the keys?",
        section=AXES,
        wrong=lambda s: (s[:, None] == s[None]) & (s >= 0)[:, None],
    ),
    "no-axis-for-the-batch": known(
        "Your mask has no axis for the batch.",
        "Each row is packed in its own way, so each has a table of its own: (B, L, L).",
        section=AXES,
        form=lambda mask: mask[0],
    ),
    "numbers-overflow": known(
        "Your mask is wrong for large numbers in int8 or int16. Do you cast them, add to them "
        "or multiply them, or does a loop over them end too early?",
        "An int8 goes up to 127, and 127 + 1 is -128 there. To tell which words belong together, "
        "numbers need only be compared.",
        section=PADDING,
        wrong=_one_more,
        shows=_wrong_in_small_types,
    ),
    **OTHER_TABLES,
    # Last, and so the second of a pair: the first case has no padding.
    "padding-sees-padding": known(
        "Padding attends to padding, as if it were a sentence of its own.",
        "-1 equals -1, so a comparison of the numbers alone takes all padding for one sentence. "
        "Its rows have to be False from end to end.",
        section=PADDING,
        real=_every,
    ),
}

TASK = Task(
    "02-packed_mask",
    packed_mask,
    packed_cases,
    returns=("the result",),
    mistakes=read_again(FUTURE, PACKED),
    build=build_packed,
    alone=(
        "last-sentence-taken-for-padding",
        "last-word-taken-for-padding",
        "product-for-square",
        "other-sentences-only",
        "neighbours-compared",
        "no-axis-for-the-batch",
        "mask-of-whole-numbers",
    ),
    reversible=False,  # padding stands at the end of a row
    uses=("02-causal_mask",),
    since=3,
    number=7,
)
