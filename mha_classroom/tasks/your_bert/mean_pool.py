"""Task 12.4, mean_pool: the mean of each text's words."""

import torch

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, in_float32, known, read_again, unchanged
from mha_course import sentences


def mean_cases(draw):
    def case(name, shape, mask=None, hidden=None):
        if mask is None:
            mask = draw.integers(0, 1, *shape[:2])
            mask[torch.arange(shape[0]), draw.integers(0, shape[1] - 1, shape[0])] = 1
        hidden = draw.normal(*shape) if hidden is None else hidden
        return Case(name, {"hidden": hidden, "attention_mask": torch.as_tensor(mask)})

    def first(lengths, L):
        return [[int(place < length) for place in range(L)] for length in lengths]

    small = torch.tensor([[[0, 2], [3, 6], [6, 1]], [[4, 7], [9, 8], [5, 3]]]).double()
    whole = draw.integers(-9, 9, 2, 5, 2).double()
    with_zeros = torch.tensor([[[0, 0], [3, 6], [6, 1]], [[4, 7], [0, 0], [5, 3]]]).double()
    between = [[0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0, 0, 0, 0, 1]]
    return [
        case("2 texts, of 3 tokens and of 1", (2, 3, 2), first([3, 1], 3), small),
        case("5 texts of unequal length", (5, 7, 3), first([7, 2, 5, 1, 4], 7)),
        case("no padding", (2, 3, 5), first([3, 3], 3)),
        case("padding everywhere in the batch", (3, 5, 2), first([3, 2, 4], 5)),
        case("padding in front and between", (3, 5, 2), between),
        case("as many texts as tokens and features", (3, 3, 3), first([2, 3, 1], 3)),
        case("one text", (1, 5, 3), first([3], 5)),
        case("tokens and padding mixed", (7, 11, 5)),
        case(
            "large numbers in the padding",
            (2, 3, 5),
            first([2, 1], 3),
            draw.normal(2, 3, 5) + torch.tensor([0, 0, 1e15])[:, None].double(),
        ),
        in_float32(case("numbers in float32", (2, 5, 2), first([4, 2], 5), 4 * whole)),
        case("a token of zeros", (2, 3, 2), first([3, 2], 3), with_zeros),
        case("one place, one feature", (3, 1, 1), first([1, 1, 1], 1)),
    ]


def mean_stages(inputs):
    words = inputs["hidden"] * inputs["attention_mask"][..., None]
    return {"the sum of each text's tokens": words.sum(1)}


def build_mean(
    words=lambda hidden, mask: hidden * mask[..., None],
    total=lambda words: words.sum(1),
    count=lambda mask, hidden: mask.sum(1, keepdim=True),
    finish=unchanged,
    visible=unchanged,
):
    def mean_pool(hidden, attention_mask):
        mask = visible(attention_mask)
        return finish(total(words(hidden, mask)) / count(mask, hidden))

    return mean_pool


def _loop(of_text):
    """An answer that makes each text's vector from its words, padding left out."""

    def mean_pool(hidden, attention_mask):
        texts = zip(hidden, attention_mask.bool(), strict=True)
        return torch.stack([of_text(text[words]) for text, words in texts])

    return mean_pool


def _without_ends(mask):
    """The first and the last word of each text hidden, where there are more than two."""
    places, inner = mask.cumsum(1) * mask, mask.clone()
    inner[(places == 1) | (places == mask.sum(1, keepdim=True))] = 0
    return torch.where(inner.sum(1, keepdim=True) > 0, inner, mask)


def _without_the_first_place(least):
    """least: what the number of words is raised to, where nothing is left."""

    def mean_pool(hidden, attention_mask):
        words, mask = hidden[:, 1:], attention_mask[:, 1:, None]
        return (words * mask).sum(1) / mask.sum(1).clamp(min=least)

    return mean_pool


def _one_for_all(hidden, attention_mask):
    return hidden[attention_mask == 1].mean(0)


def _in_place(hidden, attention_mask):
    hidden *= attention_mask[..., None]
    return hidden.sum(1) / attention_mask.sum(1, keepdim=True)


def _to_the_first_padding(or_all):
    """Each text up to the first 0 of the mask; without one argmin is 0."""

    def mean_pool(hidden, attention_mask):
        ends = attention_mask.argmin(1).tolist()
        ends = [end or attention_mask.shape[1] for end in ends] if or_all else ends
        return torch.stack([text[:end].mean(0) for text, end in zip(hidden, ends, strict=True)])

    return mean_pool


def _inverted_and_clamped(hidden, attention_mask):
    padding = 1 - attention_mask[..., None]
    return (hidden * padding).sum(1) / padding.sum(1).clamp(min=1)


MEAN = {
    "padding-counted": known(
        "You average over all places, padding included. (So does whoever takes padding to be where "
        "the hidden states are 0: they seldom are.)",
        "Then a text's vector depends on how long its neighbours in the batch are. Only tokens "
        "count, in the sum and in the number, and attention_mask says which places are tokens.",
        wrong=lambda hidden, attention_mask: hidden.mean(1),
    ),
    "padding-in-the-sum": known(
        "Padding is in your sum, whatever you divide by.",
        "The hidden states of padding are not zero: the layers compute something there, too.",
        words=lambda hidden, mask: hidden,
    ),
    "divided-by-length": known(
        "You divide by L, whatever the number of tokens of a text is.",
        "L counts all places of a row. The fewer tokens a text has, the smaller its vector would "
        "be. How many does each text have?",
        count=lambda mask, hidden: hidden.shape[1],
    ),
    "divided-by-batch": known(
        "You divide by the number of texts.",
        "The mean is over the tokens of one text. How many does each text have?",
        count=lambda mask, hidden: len(hidden),
    ),
    "divided-by-all-words": known(
        "You divide by the number of tokens in the whole batch.",
        "Each text has a number of its own. Along which axis of attention_mask is it found?",
        count=lambda mask, hidden: mask.sum(),
    ),
    "counted-over-texts": known(
        "You count over the texts of the batch: how many have a token at each place.",
        "Each text has a number of its own. Which axis of attention_mask runs along a text?",
        count=lambda mask, hidden: mask.sum(0)[:, None],
    ),
    "divided-by-longest": known(
        "You divide by the number of tokens of the longest text.",
        "Each text has a number of its own.",
        count=lambda mask, hidden: mask.sum(1).max(),
    ),
    "not-divided": known(
        "You return a sum: you do not divide.",
        "A mean is the sum divided by how many there are, so that long and short texts can be "
        "compared.",
        count=lambda mask, hidden: 1,
    ),
    "zeros-not-counted": known(
        "You divide by how many numbers are not 0.",
        "A token may have a 0 among its features, and it counts there like any other number. "
        "attention_mask says how many tokens there are.",
        count=lambda mask, hidden: (hidden * mask[..., None] != 0).sum(1),
    ),
    "mask-as-indices": known(
        "You index with a mask of whole numbers: its 1 and 0 are taken for places.",
        "Then rows 1 and 0 come, again and again. Only a mask of True and False chooses: "
        "attention_mask == 1 makes one.",
        wrong=lambda hidden, attention_mask: torch.stack(
            [text[mask].mean(0) for text, mask in zip(hidden, attention_mask, strict=True)]
        ),
    ),
    "divided-by-root": known(
        "You divide by the root of the number of tokens.",
        "That is done for variances. A mean divides by the number itself.",
        count=lambda mask, hidden: mask.sum(1, keepdim=True) ** 0.5,
    ),
    "divided-whole": known(
        "Your numbers are rounded down, as // does.",
        "The mask counts in whole numbers, the hidden states are fractions: / is the division "
        "for them.",
        wrong=lambda hidden, attention_mask: (
            (hidden * attention_mask[..., None]).sum(1) // attention_mask.sum(1, keepdim=True)
        ),
    ),
    "first-place-only": known(
        "You take the vector at the first place.",
        "[CLS] may stand there, which some models are trained to use. This task asks for the mean "
        "of all tokens.",
        wrong=lambda hidden, attention_mask: hidden[:, 0],
    ),
    "first-word-only": known(
        "You take the first token of each text that is not padding.",
        "This task asks for the mean of all tokens.",
        wrong=_loop(lambda words: words[0]),
    ),
    "last-word-only": known(
        "You take the last token of each text.",
        "This task asks for the mean of all tokens.",
        wrong=_loop(lambda words: words[-1]),
    ),
    "largest": known(
        "You take the largest number of each feature.",
        "That is another way to pool. This task asks for the mean.",
        wrong=_loop(lambda words: words.amax(0)),
    ),
    "largest-with-padding": known(
        "You take the largest number of each feature, padding included.",
        "This task asks for the mean, and of tokens only.",
        wrong=lambda hidden, attention_mask: hidden.amax(1),
    ),
    "median": known(
        "You take the median of each feature.",
        "This task asks for the mean.",
        wrong=_loop(lambda words: words.median(0).values),
    ),
    "only-between-the-ends": known(
        "You leave out the first and the last token of each text.",
        "[CLS] and [SEP] are tokens, too: attention_mask has a 1 for them. (Of a text of one "
        "token nothing is left, and the mean of nothing is NaN.)",
        wrong=_loop(lambda words: words[1:-1].mean(0)),
    ),
    "first-token-left-out": known(
        "You leave out the first place, or the first token, of each text.",
        "[CLS] is a token, too: attention_mask has a 1 for it.",
        wrong=_without_the_first_place(1),
        shows=like(
            _without_the_first_place(1),
            _without_the_first_place(0),
            _loop(lambda words: words[1:].mean(0)),
            _loop(lambda words: words[1:].sum(0) / max(len(words) - 1, 1)),
        ),
    ),
    "mask-beside-features": known(
        "Your mask meets the features, not the tokens.",
        "(B, L) has to reach (B, L, D) with its L on the middle axis. As many tokens as features, "
        "and nothing would warn you.",
        words=lambda hidden, mask: hidden * mask[:, None, :],
    ),
    "mask-without-axis": known(
        "You multiply (B, L, D) by the mask (B, L) as it is, or with a new axis in front.",
        "Axes are matched from the back: B meets L, and L meets D. The mask needs one more axis. "
        "Where?",
        words=lambda hidden, mask: hidden * mask,
    ),
    "count-without-axis": known(
        "You divide (B, D) by the counts (B,) as they are, or with a new axis in front.",
        "Axes are matched from the back, so the counts meet the features. They need one more axis. "
        "Where?",
        count=lambda mask, hidden: mask.sum(1),
    ),
    "mask-inverted": known(
        "You take the padding in place of the tokens.",
        "In attention_mask 1 is a token and 0 is padding.",
        visible=lambda mask: 1 - mask,
    ),
    "mask-inverted-and-clamped": known(
        "You take the padding in place of the tokens.",
        "In attention_mask 1 is a token and 0 is padding.",
        wrong=_inverted_and_clamped,
    ),
    "all-hidden": known(
        "Your vectors are 0. Is every place hidden, as it is by ~attention_mask?",
        "Of a whole number ~ makes another one: -2 of 1, -1 of 0, and both count as True. Only "
        "True and False are turned round by ~. Which comparison makes these of the mask?",
        wrong=lambda hidden, attention_mask: (hidden * 0).sum(1),
    ),
    "softmax-of-the-mask": known(
        "Your weights are the softmax of the mask.",
        "exp(0) is 1, so padding still counts, a token only e times as much. Which weight has a "
        "token in a mean, and which has padding?",
        wrong=lambda hidden, attention_mask: (
            attention_mask.to(hidden.dtype).softmax(1)[:, None] @ hidden
        )[:, 0],
    ),
    "cut-at-the-longest": known(
        "You cut all texts at the length of the longest, and average over what is left.",
        "The shorter ones still have padding in them. attention_mask says of each place whether "
        "there is a token.",
        wrong=lambda hidden, attention_mask: hidden[:, : attention_mask.sum(1).max()].mean(1),
    ),
    **{
        id: known(
            "You take each text up to the first 0 of its mask.",
            "That is right only where all padding stands at the end (and without padding argmin "
            "is 0). attention_mask says of each place by itself whether there is a token.",
            wrong=_to_the_first_padding(or_all),
        )
        for id, or_all in (("cut-at-the-first-padding", True), ("cut-at-argmin", False))
    },
    "axis-kept": known(
        "Your result has an axis of length 1 in the middle: (B, 1, d_model).",
        "The numbers are right. The tokens are gone, and so is their axis.",
        finish=lambda pooled: pooled[:, None],
    ),
    "over-features": known(
        "You take the mean of each token's features.",
        "(B, d_model) was asked for: the tokens' axis goes, the features stay.",
        wrong=lambda hidden, attention_mask: (hidden * attention_mask[..., None]).mean(2),
    ),
    "over-texts": known(
        "You add over the texts of the batch.",
        "(B, d_model) was asked for: the tokens' axis goes, the texts stay apart.",
        total=lambda words: words.sum(0),
    ),
    "unit-length": known(
        "Your vectors have norm 1: you divide the mean, or the sum, by its norm.",
        "The course's embed does that afterwards. This task asks for the mean as it is.",
        finish=lambda pooled: pooled / pooled.norm(dim=1, keepdim=True),
    ),
    "one-added-to-the-count": known(
        "Your number of tokens is one too large.",
        "Was it meant against division by 0? Each text has a token here.",
        count=lambda mask, hidden: mask.sum(1, keepdim=True) + 1,
    ),
    "ends-left-out": known(
        "You leave out the first and the last token of each text that has more than two.",
        "[CLS] and [SEP] are tokens, too: attention_mask has a 1 for them.",
        visible=_without_ends,
    ),
    "padding-assumed-at-the-end": known(
        "You count the tokens of each text and take as many from the beginning.",
        "That is right only where all padding stands at the end. attention_mask says of each "
        "place by itself whether there is a token.",
        visible=lambda mask: (torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)).long(),
    ),
    "words-of-all-texts": known(
        "You average over the tokens of all texts together.",
        "(B, d_model) was asked for, a mean for each text. hidden[attention_mask == 1], for "
        "instance, forgets which text a token is from.",
        wrong=_one_for_all,
        shows=like(_one_for_all, lambda X, mask: _one_for_all(X, mask).expand(len(X), -1)),
    ),
    "words-not-added": known(
        "You return the tokens, each divided by how many there are.",
        "(B, d_model) was asked for: one vector a text. They have to be added up.",
        wrong=lambda hidden, attention_mask: (
            hidden * attention_mask[..., None] / attention_mask.sum(1)[:, None, None]
        ),
    ),
    "changed-in-place": known(
        "You write into the given hidden states: most likely you set their padding to 0.",
        "The result may be right, and the caller's hidden states are not what they were.",
        wrong=_in_place,
    ),
}

TASK = Task(
    "12-mean_pool",
    sentences.mean_pool,
    mean_cases,
    returns=("the mean",),
    mistakes=read_again("One vector for a text", MEAN),
    build=build_mean,
    stages=mean_stages,
    forbidden=("mha_course.sentences.mean_pool",),
    number=4,
)
