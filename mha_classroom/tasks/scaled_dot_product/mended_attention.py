"""Task 2.5, mended_attention: a causal attention that leaks, repaired.

The function of the statement centres the keys, which changes no weight, and brings the scores to
standard deviation 1 by measuring it over all words of all sequences, which is the leak.
"""

import math
from dataclasses import replace
from functools import partial

import torch

from mha_classroom.checks.task import (
    Case,
    Task,
    all_but,
    and_in_float32,
    by_id,
    known,
    read_again,
    unchanged,
    without,
)
from mha_classroom.tasks.attention_math.softmax import near
from mha_classroom.tasks.scaled_dot_product.causal_mask import (
    build_mask,
    causal_mask,
    own_place_hidden,
)
from mha_classroom.tasks.scaled_dot_product.masked_softmax import (
    CUT_OFF,
    FILLS,
    HAD_A_SAY,
    HAD_A_SAY_ANYHOW,
    NAIVE_EXP,
    OTHER_SHARES,
    cut_off_scores,
    filled,
    hidden_after,
    hidden_had_a_say,
    largest_of_all,
)
from mha_classroom.tasks.scaled_dot_product.scaled_dot_product_attention import (
    FINISHED,
    HIDES_OTHERS,
    RARE_SCALES,
    RESULTS,
    ROOT_OF_VALUES,
    attention_stages,
    build_attention,
    make_qkv,
    shows_weights,
)
from mha_classroom.tasks.scaled_dot_product.scaled_scores import USUAL_SCALES, make_batch
from mha_course import attention


def mended_attention(queries, keys, values):
    mask = causal_mask(queries.shape[1])
    return attention.scaled_dot_product_attention(queries, keys, values, mask=mask)


@and_in_float32
def mending_cases(draw):
    by_hand = {
        "queries": make_batch([[2, 0, 0, 0]] * 3),
        "keys": torch.cat([make_batch([[1], [2], [5]]).log(), torch.zeros(1, 3, 3)], dim=-1),
        "values": make_batch([[24], [12], [8]]),
    }
    loud = make_qkv(draw, 2, 5, 5, 3, 2)
    loud["keys"][:, -1] = 1000 * loud["queries"][:, 0]  # so word 0 would look at nothing else
    outlier = make_qkv(draw, 3, 3, 3, 3, 3)
    outlier["values"][:, -1] *= 1e8  # that shows weights of 1e-7
    large = {
        "queries": make_batch([[40], [-40], [40]]).repeat(3, 1, 1),
        "keys": make_batch([[40], [38], [-40]]).repeat(3, 1, 1),
        "values": draw.normal(3, 3, 2),
    }
    faint = make_qkv(draw, 2, 3, 3, 5, 2)
    faint["queries"] *= 1e-3
    large["keys"][1, 2] = 39
    large["queries"][2], large["keys"][2, 2] = -40, 40  # no score above 0 in this sentence
    return [
        Case("every query likes the keys 1 : 2 : 5", by_hand),
        Case("2 sequences of 5 words, d_k = 7, d_v = 3", make_qkv(draw, 2, 5, 5, 7, 3)),
        Case("one word", make_qkv(draw, 2, 1, 1, 3, 5)),
        Case("all sizes 3, a large value last", outlier),
        Case("scores of 1600, 1520 and -1600, with both signs", large),
        Case("a last key with scores in the thousands", loud),
        Case("scores near 0", faint),
    ]


def build_mended(**parts):
    attend = build_attention(**parts)

    def mended_attention(queries, keys, values):
        steps = torch.arange(1, keys.shape[1] + 1).repeat(len(keys), 1)
        return attend(queries, keys, values, steps)

    return mended_attention


def _triangle(shift=0, turn=unchanged):
    return lambda scores, lens: build_mask(shift, turn)(scores.shape[-1])[None]


def _centred(queries, keys):
    """Scores with centred keys. Each row is shifted by one number, so its softmax is the same."""
    return queries @ (keys - keys.mean(dim=1, keepdim=True)).mT


def _measured(dim=None):
    """Scores brought to standard deviation 1, as it is found over these axes."""
    return lambda scores, *inputs: scores / scores.std(dim=dim, keepdim=True)


def _next_word_left_in_the_sum(scores, mask, axis):
    wider = build_mask(shift=1)(scores.shape[-1])
    return filled(-math.inf)(scores, wider, axis) * mask


def _centred_so_far(queries, keys):
    """Scores with keys less the mean of the keys up to each."""
    counts = torch.arange(1, keys.shape[1] + 1, dtype=keys.dtype)
    return queries @ (keys - keys.cumsum(1) / counts[:, None]).mT


def _centred_over_the_batch(queries, keys):
    return queries @ (keys - keys.mean(dim=0, keepdim=True)).mT


def _measured_in_what_is_seen(correction=1, block=False):
    """The weights where each word divides by the standard deviation of the scores that it sees.

    block: of all scores up to its own row and column.
    """

    def weigh(scores):
        weights = torch.zeros_like(scores)
        for t in range(scores.shape[1]):
            seen = scores[:, t : t + 1, : t + 1]
            if t:
                part = scores[:, : t + 1, : t + 1] if block else seen
                seen = seen / part.std((1, 2), correction=correction, keepdim=True)
            weights[:, t : t + 1, : t + 1] = seen.softmax(-1)
        return weights

    return weigh


def _with_measured_weights(queries, keys, values):
    weights = _measured_in_what_is_seen()(queries @ keys.mT)
    return weights @ values, weights


def _shows_measured(inputs, scores, weights):
    ways = [_measured_in_what_is_seen(c, block) for c in (0, 1) for block in (False, True)]
    others = weights[:, 1:]
    return any(near(weigh(scores)[:, 1:], others) for weigh in ways)


def _measured_in_rows(correction=1):
    """The weights where each row is divided by the standard deviation of all its scores."""

    def weigh(scores):
        if scores.shape[-1] > 1:
            scores = scores / scores.std(-1, correction=correction, keepdim=True)
        return scores.masked_fill(~causal_mask(scores.shape[-1]), -math.inf).softmax(-1)

    return weigh


def _with_measured_rows(queries, keys, values):
    weights = _measured_in_rows()(queries @ keys.mT)
    return weights @ values, weights


def _shows_measured_rows(inputs, scores, weights):
    one_word = scores.shape[-1] == 1  # with nothing to measure: whatever comes of it
    ways = (_measured_in_rows(correction) for correction in (0, 1))
    return one_word or any(near(weigh(scores), weights, rtol=1e-3) for weigh in ways)


def _shows_a_say(inputs, scores, weights):
    return hidden_had_a_say(scores, causal_mask(scores.shape[1]), weights)


def _shows_cut_off(inputs, scores, weights):
    mask = causal_mask(scores.shape[1]).expand_as(scores)
    return any(near(cut, weights) for cut in cut_off_scores(scores, mask=mask))


OPPOSITE = "Two meanings of True"
LEAK = "Does it see the future?"
LARGE = "Wide vectors have large scores"
PADDING = "Hiding padding"

LOUD = (
    *HAD_A_SAY,
    *FILLS,
    NAIVE_EXP,
    *without(OTHER_SHARES, "divided-by-the-sum", "not-divided-by-the-sum", "sigmoid"),
)

STILL_MEASURED = (
    "You still divide by a standard deviation that is measured, and the words to come are "
    "measured too."
)
WHY_MEASURED = (
    "Change a later word, and the measured number changes, and with it every earlier row. The "
    "lesson divides by a number that depends on no word at all. Which one?"
)

MENDED = {
    "scale-measured": known(STILL_MEASURED, WHY_MEASURED, section=LARGE, scale=_measured()),
    "scale-measured-centred": known(
        STILL_MEASURED, WHY_MEASURED, section=LARGE, scale=_measured(), product=_centred
    ),
    "scale-measured-in-each-sentence": known(
        "You measure the standard deviation in each sentence. Sentences no longer mix, but the "
        "words to come are measured too.",
        WHY_MEASURED,
        section=LARGE,
        scale=_measured((1, 2)),
    ),
    "scale-measured-in-each-sentence-centred": known(
        "You measure the standard deviation in each sentence. Sentences no longer mix, but the "
        "words to come are measured too.",
        WHY_MEASURED,
        section=LARGE,
        scale=_measured((1, 2)),
        product=_centred,
    ),
    "scale-measured-in-each-row": known(
        "You measure the standard deviation of each row, with the scores of the words to come in "
        "it.",
        WHY_MEASURED,
        section=LARGE,
        scale=_measured(-1),
    ),
    "scale-measured-in-each-row-in-another-way": known(
        "You measure the standard deviation of each row, with the scores of the words to come in "
        "it.",
        WHY_MEASURED,
        section=LARGE,
        wrong=_with_measured_rows,
        shows=shows_weights(_shows_measured_rows),
    ),
    "scale-measured-in-what-is-seen": known(
        "You divide by a standard deviation that is measured for each word, of scores up to it.",
        "Nothing leaks, but the scores are not scaled as in the lesson: two scores that differ "
        "little come out as far apart as two that differ much. The lesson divides by a number "
        "that depends on no word at all. Which one?",
        section=LARGE,
        wrong=_with_measured_weights,
        shows=shows_weights(_shows_measured),
    ),
    "scale-measured-next-word-visible": known(
        "You still divide by a standard deviation that is measured, words to come and all, and "
        "each word sees the next one too.",
        "The lesson divides by a number that depends on no word at all. And which diagonal is the "
        "first that has to be hidden?",
        section=LARGE,
        scale=_measured(),
        see=_triangle(shift=1),
    ),
    "keys-centred-so-far": known(
        "You subtract from each key the mean of the keys up to it.",
        "Nothing leaks, but each key is shifted by a vector of its own, which changes the scores. "
        "What does it do to the weights of a row if all keys lose the same vector: is it "
        "needed at all?",
        section=LEAK,
        product=_centred_so_far,
    ),
    "keys-centred-over-the-batch": known(
        "You subtract from each key the mean over the sequences of the batch.",
        "Sequences in a batch have nothing to do with each other: the keys of one now depend on "
        "the others. Is it needed to centre the keys at all?",
        section=LEAK,
        product=_centred_over_the_batch,
    ),
    "next-word-visible": known(
        "Each word sees the next one too: the weights right of the diagonal are not 0.",
        "It is the very word that a model is to predict. Which diagonal is the first that has to "
        "be hidden?",
        see=_triangle(shift=1),
    ),
    "mask-after-softmax": known(
        "Your rows do not sum to 1: later words are still in the sum that you divide by. Do you "
        "hide after the softmax?",
        "Later words get no weight, but change one, and the earlier outputs move. Dividing once "
        "more is no cure where a later score is far larger than the others.",
        section=LEAK,
        hide=hidden_after,
    ),
    "next-word-in-the-sum": known(
        "The weights of later words are 0, but the softmax still divided by a sum with the next "
        "word in it.",
        "Do you hide twice, first with a mask that is one diagonal too wide? Zeros written later "
        "do not take a word out of the sum.",
        section=LEAK,
        hide=_next_word_left_in_the_sum,
    ),
    "divided-by-count": known(
        "The softmax looks at all words, and each row is divided by the number of words that it "
        "sees.",
        "The rows are to sum to 1, and what is missing in a row depends on its scores, not only on "
        "how many words are hidden. What should the softmax have seen, so that nothing is missing?",
        section=LEAK,
        hide=lambda s, m, axis: hidden_after(s, m, axis) / m.sum(axis, keepdim=True),
    ),
    "hides-itself-nan": known(
        "You hide the diagonal too: word 0 has nothing to look at, and its row is NaN.",
        "Word t may see words 0 to t, itself included.",
        see=_triangle(shift=-1),
        empty=lambda count: math.nan,
    ),
    "hides-itself": known(
        "You hide the diagonal too: no word sees itself, and word 0 gets zeros.",
        "Word t may see words 0 to t, itself included.",
        see=_triangle(shift=-1),
    ),
    "hides-itself-uniform": known(
        "You hide the diagonal too. Word 0 has nothing to look at and looks at all words alike, as "
        "it does if its scores are all the same low number.",
        "Word t may see words 0 to t, itself included.",
        see=_triangle(shift=-1),
        empty=lambda count: 1 / count,
    ),
    "hides-itself-but-for-word-0": known(
        "None of your words but word 0 may look at itself.",
        "Word t may see words 0 to t, itself included, whatever t is. A slice :t ends before t.",
        see=_triangle(turn=own_place_hidden),
    ),
    "mask-of-the-batch": known(
        "Your mask is as large as the batch, the first axis of the inputs, which len gives too.",
        "Words hide words from each other, so the mask has a row and a column for each word. For "
        "a batch of one it hides nothing.",
        see=lambda scores, lens: build_mask()(len(scores)),
    ),
    "mask-inverted": known(
        "Your words see what comes later and nothing else; the last one has nothing to look at.",
        "The mask is the wrong way round. masked_fill overwrites where its mask is True: is that "
        "where a word may look in your mask, or where it may not?",
        section=OPPOSITE,
        see=_triangle(turn=torch.logical_not),
        empty=lambda count: math.nan,
    ),
    "mask-inverted-uniform": known(
        "Your words see what comes later and nothing else; the last one, left with nothing, looks "
        "at all alike.",
        "The mask is the wrong way round. masked_fill overwrites where its mask is True: is that "
        "where a word may look in your mask, or where it may not?",
        section=OPPOSITE,
        see=_triangle(turn=torch.logical_not),
        empty=lambda count: 1 / count,
    ),
    "looks-ahead": known(
        "Your words see themselves and what comes later: the triangle is on the wrong side.",
        "Rows are queries, columns keys: word 0, in the first row, may see only itself.",
        see=_triangle(turn=lambda mask: mask.T),
    ),
    "all-visible": known(
        "Nothing is hidden: word 0 sees how the sentence ends.",
        "Causal means that output t depends on words 0 to t and on nothing later.",
        see=_triangle(turn=torch.ones_like),
    ),
    "masked-scores-0": known(
        "You set the scores of later words to 0, and they still get weight.",
        "exp(0) is 1: a score of 0 counts like any other. Which score has an exp of 0?",
        section=PADDING,
        hide=filled(0.0),
    ),
    "mask-of-ones-added": known(
        "You add a mask of ones and zeros to the scores, or subtract such a mask.",
        "What may be seen moves up by 1 beside what is to be hidden, and nothing is hidden. What "
        "has to be added to a score so that its exp is 0?",
        section=OPPOSITE,
        hide=lambda s, m, axis: (s + m.double()).softmax(axis),
    ),
    "zero-times-infinity": known(
        "All that you return is NaN. Is a mask of zeros and ones multiplied by -inf?",
        "0 times infinity is NaN, though the 0 was meant to leave a score as it is. Look for "
        "another way to put a very low number in some places and leave the others alone.",
        section="Nothing to attend to",
        hide=lambda s, m, axis: (s + (~m).double() * -math.inf).softmax(axis),
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each word shares out one unit of attention among the words that it may see, so each row "
        "sums to 1.",
        section="Put together",
        axis=-2,
    ),
    "lengths-of-sequences": known(
        "You pass the lengths 1, 2, 3 … as one length a sequence, and they are one a query.",
        "Lengths of shape (B,) belong to the sequences of the batch. Those that say how far each "
        "query sees have the shape (B, L).",
        section="A mask with one axis too many, or too few",
        see=lambda scores, lens: torch.arange(scores.shape[-1]) < lens[0, :, None, None],
    ),
    **by_id(USUAL_SCALES),
    **by_id(RARE_SCALES),
    **by_id([ROOT_OF_VALUES]),
    **by_id([replace(CUT_OFF, shows=shows_weights(_shows_cut_off))]),
    "divided-by-root-of-keys": known(
        "You divide by the root of the number of words, √L.",
        "A score is one query with one key. How large it gets depends on how many numbers the two "
        "have, not on how many words there are.",
        section="Wide vectors have large scores",
        scale=lambda s, q, k, v: s / q.shape[1] ** 0.5,
    ),
    **by_id(RESULTS),
    **by_id(LOUD),
    **by_id(
        [
            replace(
                HAD_A_SAY_ANYHOW,
                wrong=build_mended(see=_triangle(), hide=largest_of_all),
                shows=shows_weights(_shows_a_say),
            )
        ]
    ),
}

TASK = Task(
    "02-mended_attention",
    mended_attention,
    mending_cases,
    returns=("the output", "the table of weights"),
    mistakes=read_again("Hiding the future", MENDED),
    build=build_mended,
    alone=(
        *HIDES_OTHERS,
        *all_but(LOUD, "hidden-keys-had-a-say"),
        "scale-measured-next-word-visible",
        "keys-centred-so-far",
        "keys-centred-over-the-batch",
        "hides-itself-but-for-word-0",
        "mask-of-the-batch",
        "next-word-in-the-sum",
        "divided-by-count",
        "zero-times-infinity",
        "lengths-of-sequences",
    ),
    stages=partial(attention_stages, mended_attention),
    uses=(
        "02-scaled_scores",
        "02-masked_softmax",
        "02-causal_mask",
        "02-scaled_dot_product_attention",
    ),
    forbidden=FINISHED,
    since=2,  # scores of any size
    number=5,
)
