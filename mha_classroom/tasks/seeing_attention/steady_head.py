"""Task 7.5, steady_head: the head that looks at an offset in every text, if there is one."""

import numpy as np
import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe, numbers_text
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.seeing_attention.find_head import whole_numbers
from mha_classroom.tasks.seeing_attention.most_attended import random_weights


@and_in_float32
def steady_cases(draw):
    """Padding that looks where it should not, texts that are too short, equality, no head."""

    def case(name, lens, layers, heads, offset, at_least, *looks, padding=None):
        """looks: (layer, head, share at the offset, text or None for all of them).
        padding: the head whose rows past the words look at the offset.
        """
        length = max(lens) + 2
        weights = random_weights(draw, len(lens), layers, heads, length, length, scale=0.3)
        for text, used in enumerate(lens):
            if padding is not None:
                _look(weights[text][padding], offset, 0.99)
            words = weights[text, ..., :used, :used]
            words.copy_(random_weights(draw, layers, heads, used, used, scale=0.3))
            weights[text, ..., :used, used:] = 0
            for layer, head, share, only in looks:
                if only is None or only == text:
                    _look(words[layer, head], offset, share)
        given = {"weights": weights, "lens": torch.tensor(lens), "offset": offset}
        return Case(name, {**given, "at_least": at_least})

    return [
        _small(),
        case("3 texts, the token before", (5, 7, 4), 2, 3, -1, 0.5, (1, 2, 0.8, None)),
        case("no head passes", (5, 7, 4), 2, 3, -1, 0.9, (1, 2, 0.8, None), (0, 1, 0.7, None)),
        case(
            "the best on average fails in one text",
            (6, 8, 5, 7),
            3,
            2,
            1,
            0.6,
            *_text_by_text(2, 0, 0.97, 0.97, 0.1, 0.97),
            (0, 1, 0.65, None),
        ),
        case("one text is good, the others are not", (5, 6, 7), 2, 5, 1, 0.6, (1, 3, 0.9, 0)),
        case("another good text", (5, 6), 3, 2, -2, 0.5, (1, 0, 0.9, 1), (2, 1, 0.6, 0)),
        case(
            "two pass, one is more even",
            (9, 4, 5),
            3,
            5,
            -1,
            0.4,
            (2, 4, 0.7, None),
            *_text_by_text(1, 3, 0.35, 0.95, 0.95),
        ),
        case(
            "two pass, one is best in one text",
            (5, 6, 7),
            2,
            3,
            1,
            0.4,
            (0, 2, 0.8, None),
            *_text_by_text(1, 0, 0.5, 0.5, 0.97),
        ),
        case(
            "a long text and short ones",
            (3, 19, 4),
            2,
            3,
            1,
            0.3,
            *_text_by_text(0, 1, 0.3, 0.9, 0.3),
            *_text_by_text(1, 2, 0.9, 0.65, 0.9),
        ),
        case("two texts are too short", (7, 3, 2, 6), 2, 3, -3, 0.5, (1, 1, 0.8, None)),
        case("all texts are too short", (2, 3, 1), 2, 3, 4, 0.0),
        case("an offset beyond the table", (2, 1), 1, 1, 6, 0.0),
        case("as many texts as layers as heads", (6, 5, 4), 3, 3, 2, 0.4, (2, 1, 0.6, None)),
        case(
            "the padding looks there, too",
            (6, 3, 4),
            2,
            5,
            0,
            0.5,
            (0, 4, 0.6, None),
            padding=(1, 2),
        ),
        case("one text, one layer", (5,), 1, 3, 1, 0.25, (0, 2, 0.5, None)),
        _of_scores("at least 0, one head, which never looks there", 0.0, [0.0, 0.0]),
        _ahead("exactly as much as is asked", 0.5, [0.375, 0.375, 0.75], [0.25, 0.75, 0.5]),
        _ahead("the last token decides", 0.51, [0.375, 0.375, 0.875], [0.25, 0.875, 0.5]),
        _ahead(
            "the last query decides", 0.51, [0.375, 0.375, 0.875], [0.25, 0.875, 0.5], offset=-1
        ),
        _of_scores("the largest mean, not the largest median", 0.1, [0.5] * 3, [0.4, 0.4, 0.9]),
        _of_scores("the largest mean, not the largest product", 0.1, [0.56] * 3, [0.9, 0.2, 0.9]),
        _of_scores("means that are almost equal", 0.1, [0.5] * 3, [0.500003] * 3, [0.5] * 3),
        _ahead(
            "half a millionth less than is asked", 0.5, [0.375, 0.375, 0.7499985], [0.25, 0.75, 0.5]
        ),
        _ahead("the first token decides", 0.6, [0.0, 0.75, 0.75], [0.5, 0.75, 0.5]),
        case(
            "the best on average fails in two of four texts",
            (5, 6, 5, 7),
            2,
            3,
            -1,
            0.5,
            *_text_by_text(0, 1, 0.99, 0.3, 0.99, 0.3),
            (1, 0, 0.45, None),
        ),
        case(
            "two pass, one is better in most texts",
            (5, 6, 7),
            3,
            2,
            1,
            0.4,
            *_text_by_text(0, 1, 0.5, 0.97, 0.5),
            (2, 0, 0.55, None),
        ),
        _late(draw),
        _behind(),
        _other_side(draw),
        case("layer 0, head 0 passes, and no other", (5, 3), 3, 2, -1, 0.7, (0, 0, 0.8, None)),
        case(
            "one text has one such query, one has two",
            (7, 3, 4),
            2,
            3,
            -2,
            0.5,
            *_text_by_text(1, 0, 0.97, 0.1, 0.97),
            *_text_by_text(0, 2, 0.9, 0.9, 0.1),
            (1, 2, 0.7, None),
        ),
        case("every text has one such query", (4, 4), 2, 3, 3, 0.5, (1, 1, 0.8, None)),
        case("one text is too short to look ahead", (7, 3, 6), 3, 2, 3, 0.5, (2, 0, 0.8, None)),
        case(
            "the text behind a short one decides",
            (6, 2, 7),
            2,
            3,
            2,
            0.5,
            (0, 1, 0.95, 0),
            (0, 1, 0.3, 2),
            (1, 0, 0.6, None),
        ),
        _of_scores("the last of three texts is the best", 0.5, [0.5, 0.5, 1.0], [0.68] * 3),
        _of_scores("the first of three texts is the best", 0.5, [1.0, 0.5, 0.5], [0.68] * 3),
        _of_scores("one head passes in the last text only", 0.5, [0.42, 0.42, 0.99], [0.55] * 3),
        _of_scores("one head passes in the first text only", 0.5, [0.99, 0.42, 0.42], [0.55] * 3),
        _of_scores("one head passes in half of the texts", 0.3, [1.0, 0.2, 0.9, 0.2], [0.4] * 4),
        case("one text is much too short", (7, 2, 6), 2, 3, 3, 0.5, (0, 2, 0.8, None)),
        case(
            "the padding looks at the token before",
            (2, 3, 2),
            2,
            5,
            -1,
            0.5,
            (0, 4, 0.7, None),
            padding=(1, 2),
        ),
    ]


def _text_by_text(layer, head, *shares):
    """Looks of one head, with a share of its own in each text."""
    return [(layer, head, share, text) for text, share in enumerate(shares)]


def _look(weights, offset, share):
    """Let one head (L, L) put this share of its weight at the offset, in place."""
    length = len(weights)
    queries = torch.arange(length)
    queries = queries[(queries + offset >= 0) & (queries + offset < length)]
    weights[queries] *= 1 - share
    weights[queries, queries + offset] += share


def _exact(rows):
    return torch.tensor(rows, dtype=torch.float64)


def _small():
    """Two texts of 3 and 2 tokens, one layer, two heads; head 1 looks at the token before."""
    broad = _exact([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4]])
    back = _exact([[1, 0, 0], [0.9, 0.1, 0], [0.1, 0.7, 0.2]])
    short_broad = _exact([[0.5, 0.5, 0], [0.6, 0.4, 0], [0.5, 0.5, 0]])
    short_back = _exact([[1, 0, 0], [0.7, 0.3, 0], [0.9, 0.1, 0]])
    weights = torch.stack([torch.stack([broad, back]), torch.stack([short_broad, short_back])])
    inputs = {"weights": weights[:, None], "lens": torch.tensor([3, 2]), "offset": -1}
    return Case("2 texts of 3 and 2 tokens", {**inputs, "at_least": 0.65})


def _ahead(name, at_least, *numbers, offset=1):
    """Texts of 4 and 3 tokens; head 1 gives these numbers, exact in binary, to the token after.

    offset: -1 for the token before.
    """
    weights = torch.full((2, 1, 3, 4, 4), 0.25, dtype=torch.float64)
    for text, beside in enumerate(torch.tensor(numbers).double()):
        weights[text, 0, 1].diagonal(offset).copy_(beside)
        queries = torch.arange(3) + int(offset < 0)
        weights[text, 0, 1, queries, queries] = 0.75 - beside
    inputs = {"weights": weights, "lens": torch.tensor([4, 3]), "offset": offset}
    return Case(name, {**inputs, "at_least": at_least})


def _of_scores(name, at_least, *scores):
    """Texts of two tokens, and heads with these scores in them at offset 1."""
    scores = torch.tensor(scores, dtype=torch.float64).T  # (texts, heads)
    weights = torch.full((*scores.shape, 3, 3), 0.5, dtype=torch.float64)
    weights[..., 0, 0], weights[..., 0, 1] = 1 - scores, scores
    inputs = {"weights": weights[:, None], "lens": torch.full((len(scores),), 2), "offset": 1}
    return Case(name, {**inputs, "at_least": at_least})


def _late(draw):
    """The head looks at the token before only behind the place where the other text ends."""
    weights = random_weights(draw, 2, 2, 3, 9, 9, scale=0.3)
    weights[0, 1, 0, 3:] *= 0.02
    weights[0, 1, 0, range(3, 9), range(2, 8)] += 0.98
    _look(weights[1, 1, 0, :3, :3], -1, 0.8)
    inputs = {"weights": weights, "lens": torch.tensor([9, 3]), "offset": -1}
    return Case("a head that looks there only late in a text", {**inputs, "at_least": 0.6})


def _behind():
    """Two texts of 3 tokens; in head 2 the row behind them looks at their last token, too."""
    weights = torch.full((2, 1, 3, 4, 4), 0.25, dtype=torch.float64)
    for head, words, padding in ((1, 0.6, 0.0), (2, 0.55, 1.0)):
        weights[:, 0, head, [1, 2], [0, 1]] = words
        weights[:, 0, head, 3, 2] = padding
    inputs = {"weights": weights, "lens": torch.tensor([3, 3]), "offset": -1}
    return Case("the row behind a text looks at its last token", {**inputs, "at_least": 0.5})


def _other_side(draw):
    """A head looks at the token after, and none at the one before."""
    weights = random_weights(draw, 3, 2, 5, 6, 6, scale=0.3)
    for text in weights:
        _look(text[1, 3], 1, 0.9)
    inputs = {"weights": weights, "lens": torch.tensor([6, 6, 6]), "offset": -1}
    return Case("a head looks to the other side", {**inputs, "at_least": 0.6})


@total
def examine_steady(inputs, place):
    """The result of `steady_head`; a tensor or array of two numbers is as good.

    Raises: AnswerError for what is neither None nor two numbers, for a head where none passes, and
        for None where one does.
    """
    if isinstance(place, np.ndarray) or torch.is_tensor(place):
        place = tuple(place.tolist()) if place.ndim == 1 else place
    if place is not None and (not isinstance(place, (tuple, list)) or len(place) != 2):
        raise AnswerError(
            f"steady_head has to return None or a pair (layer, head), got {describe(place)}."
        )
    pair = ", ".join(describe(part).removeprefix("the number ") for part in place or ())
    if place is not None and any(part is None for part in place):
        raise AnswerError(
            f"You return ({pair}). If no head passes, None alone is asked for, else two numbers."
        )
    whole_numbers("steady_head", place)
    best = steady_head(*inputs.values())
    if place is None and best:
        text = "You return None, but here a head passes in every text that counts."
        raise AnswerError(f"{text} {_scores_of(inputs, best)}")
    if place is not None and not best:
        text = f"You return ({pair}), but here no head passes in every text that counts."
        raise AnswerError(f"{text} {_scores_of(inputs, place)}".rstrip())
    return place


def _scores(weights, lens, offset):
    """One score a text and head, (B', layers, H): texts without such a key are left out."""
    rows = []
    for text, used in zip(weights, lens.tolist(), strict=True):
        if abs(offset) < used:
            rows.append(text[..., :used, :used].diagonal(offset, -2, -1).mean(dim=-1))
    return torch.stack(rows) if rows else weights.new_zeros(0, *weights.shape[1:3])


def _scores_of(inputs, place):
    """A sentence with the scores of a head in the texts that count, "" if there is none."""
    scores = _scores(inputs["weights"], inputs["lens"], inputs["offset"])
    layer, head = map(int, place)
    if not len(scores) or not 0 <= layer < scores.shape[1] or not 0 <= head < scores.shape[2]:
        return ""
    kind = "score in the text" if len(scores) == 1 else "scores in the texts"
    return f"Layer {layer}, head {head}: {kind} {numbers_text(scores[:, layer, head])}."


def point_out_texts(inputs, place):
    """The scores of the head that is asked for and of the one that was returned."""
    best = steady_head(*inputs.values())
    return " ".join(filter(None, (_scores_of(inputs, each) for each in (best, place))))


def steady_stages(inputs):
    scores = _scores(inputs["weights"], inputs["lens"], inputs["offset"])
    return {"the score of every head in each text": scores} if len(scores) else {}


def _every(scores, reaches):
    return reaches(scores).all(dim=0)


def _choose(scores, passed):
    means = torch.where(passed, scores.mean(dim=0), -torch.inf)
    return divmod(means.argmax().item(), means.shape[1])


def build_steady(
    shift=lambda offset: offset,
    score=_scores,
    reaches=torch.ge,
    passing=_every,
    choose=_choose,
    found=lambda layer, head, scores: (layer, head),
    nothing=None,
    no_text=unchanged,
):
    """shift: the offset that is used. score: one for each text that counts, layer and head.
    reaches: whether scores are as high as at_least. passing: which heads pass, (layers, H), given
    that as a function of scores. choose: a place among those. found: the result.
    nothing: the result where no head passes. no_text: makes it of that, where no text counts.
    """

    def steady_head(weights, lens, offset, at_least):
        scores = score(weights, lens, shift(offset))
        if not len(scores):
            return no_text(nothing)
        passed = passing(scores, lambda scores: reaches(scores, at_least))
        if not passed.any():
            return nothing
        return found(*choose(scores, passed), scores)

    return steady_head


steady_head = build_steady()


def _with_padding(weights, lens, offset):
    """As if every text filled its row."""
    return _scores(weights, torch.full_like(lens, weights.shape[-1]), offset)


def _as_the_shortest(weights, lens, offset):
    """As if every text were as short as the shortest."""
    return _scores(weights, lens.amin().expand(len(lens)), offset)


def _as_the_longest(weights, lens, offset):
    return _scores(weights, lens.amax().expand(len(lens)), offset)


def _as_the_first(weights, lens, offset):
    return _scores(weights, lens[:1].expand(len(lens)), offset)


def _made_1_again(text, used):
    kept = text[..., :used, :used]
    return kept / kept.sum(dim=-1, keepdim=True)


def _as_the_shortest_that_counts(weights, lens, offset):
    """The same, once the texts that are too short have been left out."""
    counts = lens > abs(offset)
    if not counts.any():
        return weights.new_zeros(0, *weights.shape[1:3])
    return _as_the_shortest(weights[counts], lens[counts], offset)


def _queries_asked_for(least):
    """Only texts with so many queries that have such a key."""

    def score(weights, lens, offset):
        enough = lens - abs(offset) >= least
        return _scores(weights[enough], lens[enough], offset)

    return score


def _left_out(counts):
    """counts: which texts, from their lengths and the offset; the mean of nothing is NaN."""

    def score(weights, lens, offset):
        kept = counts(lens, offset)
        return _short_as_nan(weights[kept], lens[kept], offset)

    return score


def _until_one_is_short(weights, lens, offset):
    short = (lens <= abs(offset)).tolist()
    first = short.index(True) if True in short else len(short)
    return _scores(weights[:first], lens[:first], offset)


def _last_of_each_length(weights, lens, offset):
    places = list({used: place for place, used in enumerate(lens.tolist())}.values())
    return _scores(weights[places], lens[places], offset)


def running_halves(numbers):
    """What comes of a mean that is made anew from itself and the next: the last counts half."""
    mean = numbers[0]
    for own in numbers[1:]:
        mean = (mean + own) / 2
    return mean


def _pooled_best_is_asked(weights, lens, offset, at_least):
    """The best over all queries of all texts at once, and whether that one passes."""
    scores = _scores(weights, lens, offset)
    counts = (lens - abs(offset)).clamp(min=0)
    if not len(scores):
        return None
    means = (scores * counts[counts > 0].double()[:, None, None]).sum(dim=0)
    passed = (scores >= at_least).all(dim=0) & (means == means.max())
    return _choose(means[None], passed) if passed.any() else None


def _with_lengths(more):
    return lambda weights, lens, offset: _scores(weights, lens + more, offset)


def _padded_queries(weights, lens, offset):
    """Queries within the text, whose key may be padding."""
    rows, length = [], weights.shape[-1]
    for text, used in zip(weights, lens.tolist(), strict=True):
        queries = torch.arange(used)
        queries = queries[(queries + offset >= 0) & (queries + offset < length)]
        if len(queries):
            rows.append(text[..., queries, queries + offset].mean(dim=-1))
    return torch.stack(rows) if rows else weights.new_zeros(0, *weights.shape[1:3])


def _cut(how, less=0):
    """Texts that are too short are left out, and those that are longer by no more than `less`.

    how: cuts the others to what counts.
    """

    def score(weights, lens, offset):
        rows = []
        for text, used in zip(weights, lens.tolist(), strict=True):
            if abs(offset) + less < used:
                rows.append(how(text, used).diagonal(offset, -2, -1).mean(dim=-1))
        return torch.stack(rows) if rows else weights.new_zeros(0, *weights.shape[1:3])

    return score


def _divided_by(count):
    def score(weights, lens, offset):
        rows = []
        for text, used in zip(weights, lens.tolist(), strict=True):
            if abs(offset) < used:
                picked = text[..., :used, :used].diagonal(offset, -2, -1).sum(dim=-1)
                rows.append(picked / count(used, offset, weights.shape[-1]))
        return torch.stack(rows) if rows else weights.new_zeros(0, *weights.shape[1:3])

    return score


def _short_as_0(weights, lens, offset):
    """A text that is too short counts with a score of 0."""
    scores = weights.new_zeros(weights.shape[:3])
    for text, used in enumerate(lens.tolist()):
        if abs(offset) < used:
            scores[text] = weights[text, ..., :used, :used].diagonal(offset, -2, -1).mean(dim=-1)
    return scores


def _short_as_1(weights, lens, offset):
    found = _short_as_0(weights, lens, offset)
    found[lens <= abs(offset)] = 1.0
    return found


def _short_as_nan(weights, lens, offset):
    """A text that is too short gives the mean of nothing."""
    found = _short_as_0(weights, lens, offset)
    found[lens <= abs(offset)] = torch.nan
    return found


def _all_tokens(weights, lens, offset, at_least):
    """Every token counts the same, so that a long text counts more."""
    scores = _scores(weights, lens, offset)
    counts = (lens - abs(offset)).clamp(min=0)
    counts = counts[counts > 0].double()
    if not len(scores):
        return None
    means = (scores * counts[:, None, None]).sum(dim=0) / counts.sum()
    passed = (scores >= at_least).all(dim=0)
    return _choose(means[None], passed) if passed.any() else None


def _first_best(rank):
    """Only the head that ranks first is tested. rank: makes of the scores one table (layers, H)."""

    def passing(scores, reaches):
        ranks = rank(scores)
        return _every(scores, reaches) & (ranks == ranks.max())

    return passing


def _not_if_0(weights, lens, offset, at_least):
    """The place in the flat table is asked whether it is there, and 0 says no."""
    place = steady_head(weights, lens, offset, at_least)
    return None if place == (0, 0) else place


def _last_that_passes(scores, passed):
    return tuple(passed.nonzero()[-1].tolist())


def _over_those_that_are_not_0(weights, lens, offset):
    rows = []
    for text, used in zip(weights, lens.tolist(), strict=True):
        if abs(offset) < used:
            picked = text[..., :used, :used].diagonal(offset, -2, -1)
            rows.append(picked.sum(dim=-1) / (picked != 0).sum(dim=-1).clamp(min=1))
    return torch.stack(rows) if rows else weights.new_zeros(0, *weights.shape[1:3])


def _divided_by_layers(scores, passed):
    layer, head = _choose(scores, passed)
    return divmod(layer * scores.shape[2] + head, scores.shape[1])


def _best_in_every(scores, reaches):
    best = (scores == scores.amax(dim=(1, 2), keepdim=True)).all(dim=0)
    return _every(scores, reaches) & best


STEADY = {
    "no-threshold": known(
        "You return a head where none passes.",
        "There is always a largest score, also among heads that all look elsewhere. What does the "
        "caller get if no head looks there in every text?",
        passing=lambda scores, reaches: torch.ones_like(scores[0], dtype=torch.bool),
    ),
    "mean-is-tested": known(
        "You compare the mean over the texts with at_least.",
        "A head that looks there in most texts and not at all in one has a good mean. Does it pass "
        "in every text?",
        section="Ten other sentences",
        passing=lambda scores, reaches: reaches(scores.mean(dim=0)),
    ),
    "some-text-is-enough": known(
        "One text in which the score is high enough is enough for you.",
        "What a head does in one text is a guess. It has to pass in every text.",
        section="Ten other sentences",
        passing=lambda scores, reaches: reaches(scores).any(dim=0),
    ),
    **{
        id: known(
            f"You let a head pass if it does so in {what} of the texts.",
            "It has to pass in every text.",
            section="Ten other sentences",
            passing=passing,
        )
        for id, what, passing in (
            (
                "most-texts-are-enough",
                "more than half",
                lambda scores, reaches: reaches(scores).double().mean(dim=0) > 0.5,
            ),
            (
                "half-of-the-texts-are-enough",
                "at least half",
                lambda scores, reaches: reaches(scores).double().mean(dim=0) >= 0.5,
            ),
            (
                "all-texts-but-one-are-enough",
                "all but one",
                lambda scores, reaches: (~reaches(scores)).sum(dim=0) <= 1,
            ),
        )
    },
    **{
        id: known(
            f"Whether a head passes is decided by the {which} text alone.",
            "Does your loop look at the other texts, and keep what it has found there? A head has "
            "to pass in every one.",
            section="Ten other sentences",
            passing=passing,
        )
        for id, which, passing in (
            ("last-text-decides", "last", lambda scores, reaches: reaches(scores)[-1]),
            ("first-text-decides", "first", lambda scores, reaches: reaches(scores)[0]),
        )
    },
    "best-of-all-if-one-passes": known(
        "If some head passes, you return the best head of all, though it fails in some text.",
        "The head that is returned has to pass itself. How do you keep the others from being the "
        "largest?",
        choose=lambda scores, passed: _choose(scores, torch.ones_like(passed)),
    ),
    "first-text-only": known(
        "You look at the first text only.",
        "What a head does in one text is a guess. The others have a say, too.",
        section="Ten other sentences",
        wrong=lambda weights, lens, offset, at_least: steady_head(
            weights[:1], lens[:1], offset, at_least
        ),
    ),
    "last-text-only": known(
        "Only the last text counts in your answer.",
        "Does each turn of your loop overwrite what the one before has found? Every text has a "
        "say.",
        section="Ten other sentences",
        wrong=lambda weights, lens, offset, at_least: steady_head(
            weights[-1:], lens[-1:], offset, at_least
        ),
    ),
    "first-layer-only": known(
        "You look in layer 0 only.",
        "The head may be in any layer.",
        wrong=lambda weights, lens, offset, at_least: steady_head(
            weights[:, :1], lens, offset, at_least
        ),
    ),
    "always-before": known(
        "You look at the token before, whatever the offset is.",
        "The offset says how far away the key is, and on which side.",
        shift=lambda offset: -1,
    ),
    **{
        id: known(
            f"You cut every text one token {what}.",
            "A text of n tokens has places 0 to n - 1, and a slice or range ends before its second "
            "number: [:n] holds all of them and no padding.",
            score=_with_lengths(more),
        )
        for id, what, more in (
            ("one-token-too-few", "too early, or leave out its last pair", -1),
            ("one-token-too-many", "too late", 1),
        )
    },
    "best-is-tested-alone": known(
        "You take the head with the best mean, and then ask whether it passes.",
        "If it does not, another head may still pass. In which order do you have to ask the two "
        "questions?",
        passing=_first_best(lambda scores: scores.mean(dim=0)),
    ),
    "best-of-one-text-is-tested-alone": known(
        "You take the head that is best in the first text, and then ask whether it passes.",
        "If it does not, another head may still pass. And if it does, another one may be better on "
        "average. In which order do you have to ask the two questions?",
        passing=_first_best(lambda scores: scores[0]),
    ),
    "best-of-all-queries-is-tested-alone": known(
        "You average over all queries of all texts at once, take the head that is best by that, "
        "and then ask whether it passes.",
        "A long text counts more than a short one so. And if that head does not pass, another may. "
        "In which order do you have to average, and to ask?",
        wrong=_pooled_best_is_asked,
    ),
    "best-in-every-text": known(
        "You want a head that is the best one in every text.",
        "Two heads may both pass in every text, and take turns in being the best. Which of them is "
        "asked for?",
        passing=_best_in_every,
    ),
    "nearly-enough": known(
        "A head passes whose score is a little below at_least: you leave a margin, round the "
        "scores, or compute in half precision.",
        "A score that is below at_least does not pass, however near it is.",
        reaches=lambda scores, at_least: scores + 1e-3 >= at_least,
    ),
    "no-text-left": known(
        "You stack the scores of the texts that count, and here no text counts: torch.stack takes "
        "no empty list.",
        "All texts may be too short for the offset. What does the task ask for then?",
        no_text=lambda nothing: torch.stack([]),
    ),
    "more-than-at-least": known(
        "A head whose score is exactly at_least does not pass in your answer.",
        'What does "at least" say about two equal numbers?',
        reaches=torch.gt,
    ),
    "first-that-passes": known(
        "You return the first head that passes.",
        "If several pass, the one with the largest mean is asked for.",
        choose=lambda scores, passed: tuple(passed.nonzero()[0].tolist()),
    ),
    "last-that-passes": known(
        "You return the last head that passes.",
        "If several pass, the one with the largest mean is asked for.",
        choose=_last_that_passes,
    ),
    "running-mean": known(
        "Text after text you take the mean of what you have so far and the next score.",
        "Then the last text counts half, and the first ones hardly anything. Each text counts the "
        "same.",
        choose=lambda scores, passed: _choose(running_halves(scores)[None], passed),
    ),
    "largest-product": known(
        "Among the heads that pass you choose by the product of their scores, or its root.",
        "The task asks for the largest mean over the texts: their sum, divided by how many.",
        choose=lambda scores, passed: _choose(scores.prod(dim=0)[None], passed),
    ),
    "largest-median": known(
        "Among the heads that pass you choose by the median of their scores, or by how often "
        "each is the best.",
        "The task asks for the largest mean over the texts.",
        choose=lambda scores, passed: _choose(scores.median(dim=0).values[None], passed),
    ),
    "divided-by-layers": known(
        "You divide the place in the flattened table by the number of layers, or unravel it as if "
        "a row had so many places.",
        "The flat row has all heads of layer 0 first, then all of layer 1. After how many places "
        "does a new layer begin?",
        choose=_divided_by_layers,
    ),
    "largest-smallest-score": known(
        "Among the heads that pass you choose the steadiest: by the smallest of its scores, or by "
        "how much they differ.",
        "That is a good question as well. The task asks for the largest mean over the texts.",
        choose=lambda scores, passed: _choose(scores.amin(dim=0)[None], passed),
    ),
    "largest-score": known(
        "Among the heads that pass you choose by the largest of their scores.",
        "One text is enough for that. The task asks for the largest mean over the texts.",
        choose=lambda scores, passed: _choose(scores.amax(dim=0)[None], passed),
    ),
    "long-texts-count-more": known(
        "In your mean a long text counts more than a short one: you average over all tokens of all "
        "texts at once, or weight each text by its length.",
        "Each text is to count the same. Over what do you average first, and over what then?",
        wrong=_all_tokens,
    ),
    **{
        id: known(
            "You count padding as if it were text.",
            "A batch has room for its longest text. Past lens, neither queries nor keys are words, "
            "and padding has rows of weights as well.",
            score=score,
        )
        for id, score in (
            ("padding-counted", _with_padding),
            ("padding-counted-in-long-texts", _cut(lambda text, used: text)),
        )
    },
    **{
        f"cut-to-the-{which}": known(
            f"You cut every text to the length of the {which}.",
            "What is behind the end of a shorter text is padding, and does not count. Each text "
            "has a length of its own.",
            score=score,
        )
        for which, score in (("longest", _as_the_longest), ("first", _as_the_first))
    },
    "made-1-again": known(
        "You cut the padding off, and make the rows sum to 1 again.",
        "The score is the mean of the weights as they are. The statement says which of them count, "
        "not that they are divided by anything.",
        score=_cut(_made_1_again),
    ),
    "cut-to-the-shortest": known(
        "You cut every text to the length of the shortest.",
        "Then the rest of the longer texts has no say. Each text has a length of its own.",
        score=_as_the_shortest,
    ),
    "cut-to-the-shortest-that-counts": known(
        "You cut every text to the length of the shortest that counts.",
        "Then the rest of the longer texts has no say. Each text has a length of its own.",
        score=_as_the_shortest_that_counts,
    ),
    **{
        id: known(
            f"You leave out texts in which only {which} a key at this offset.",
            "The mean over few queries is a mean, too: such a text counts like any other. How long "
            "is the shortest text in which some query has such a key?",
            score=_queries_asked_for(least),
        )
        for id, which, least in (
            ("one-query-is-too-few", "one query has", 2),
            ("two-queries-are-too-few", "one or two queries have", 3),
        )
    },
    **{
        id: known(
            "You leave out queries that are padding, but not keys that are.",
            "At a positive offset the last word of a text has padding as its key. Which queries "
            "have a word there?",
            score=score,
        )
        for id, score in (
            ("padding-as-keys", _padded_queries),
            ("padding-as-keys-in-long-texts", _cut(lambda text, used: text[..., :used, :])),
        )
    },
    "padding-as-queries": known(
        "You leave out keys that are padding, but not queries that are.",
        "At a negative offset the first place behind a text has a word as its key. Padding has "
        "rows of weights as well, and they do not count.",
        score=_cut(lambda text, used: text[..., :used]),
    ),
    "first-token-left-out": known(
        "You leave out the first token of every text, or the first of its pairs.",
        "They count like any other. The number of the first is 0: where does your slice or range "
        "begin?",
        score=_cut(lambda text, used: text[..., 1:used, 1:used], less=1),
    ),
    "added-not-averaged": known(
        "You add up the weights at the offset, so that your scores can go above 1.",
        "The score of a text is a mean: a long text has more pairs.",
        score=_divided_by(lambda used, offset, length: 1),
    ),
    "divided-by-length-less-offset": known(
        "You divide by the number of tokens less the offset.",
        "That is the number of pairs for an offset to the right. What does 5 - (-1) give?",
        score=_divided_by(lambda used, offset, length: used - offset),
    ),
    "divided-by-length": known(
        "You divide by the number of tokens of the text.",
        "The first token has no token before it. How many queries have a key at this offset?",
        section="The token before",
        score=_divided_by(lambda used, offset, length: used),
    ),
    "divided-by-padded-count": known(
        "You divide by the number of places at this offset in the padded table.",
        "The sum runs over words only. How many of them are there in this text?",
        score=_divided_by(lambda used, offset, length: length - abs(offset)),
    ),
    "zeros-not-counted": known(
        "You divide by the number of weights that are not 0.",
        "A weight of 0 says that this query does not look there at all. It is one of those that "
        "the mean is taken of.",
        score=_over_those_that_are_not_0,
    ),
    "short-counts-as-0": known(
        "A text that is too short counts with a score of 0.",
        "In such a text no query has a key at this offset. It says nothing about any head, neither "
        "for nor against.",
        score=_short_as_0,
    ),
    "short-counts-as-1": known(
        "Where all texts are too short, every head passes. Does such a text count with a score of "
        "1, or is True what all begin with, and nothing changes it?",
        "In such a text no query has a key at this offset. It says nothing about any head, neither "
        "for nor against. If no other text is left, no head was found.",
        score=_short_as_1,
    ),
    "left-out-without-sign": known(
        "You leave a text out if it is not longer than the offset, as if no offset were negative.",
        "At offset -3 the third token has no token 3 places before it, either. What is left there "
        "is the mean of nothing, NaN or 0, and no head passes.",
        score=_left_out(lambda lens, offset: lens > offset),
    ),
    "left-out-if-back-only": known(
        "You leave a text out if it is not longer than -offset, as if no offset were positive.",
        "At offset 3 no token of a text of three has a token 3 places after it, either. What is "
        "left there is the mean of nothing, NaN, and no head passes.",
        score=_left_out(lambda lens, offset: lens > -offset),
    ),
    "stopped-at-a-short-text": known(
        "Where a text is too short, you stop, and the texts behind it have no say.",
        "Such a text is left out, and the loop goes on with the next one.",
        score=_until_one_is_short,
    ),
    "one-text-of-each-length": known(
        "Of texts that are equally long only one counts.",
        "A dict with the lengths as its keys keeps the last of them. Every text has a say.",
        score=_last_of_each_length,
    ),
    "as-long-as-the-offset-counts": known(
        "A text with as many tokens as the offset is far counts for you.",
        "Of 3 tokens, none has a key 3 places away. What is left there is the mean of nothing, "
        "NaN or 0, and no head passes.",
        score=_left_out(lambda lens, offset: lens >= abs(offset)),
    ),
    "short-counts-as-nan": known(
        "Where one text is too short, no head passes: you return None there, count it with a score "
        "of 0, or let the mean of nothing, which is NaN, be compared with at_least.",
        "In such a text no query has a key at this offset. It says nothing about any head, neither "
        "for nor against: it is left out, and the other texts decide.",
        score=_short_as_nan,
    ),
    "sign-turned": known(
        "You look on the other side: at offset -1, at the token after. (Or rows and columns have "
        "changed places, which comes to the same.)",
        "The key of query i is i + offset. At offset -1 query 5 asks key 4: in which row is that, "
        "and in which column?",
        section="Rows are queries, columns are keys",
        shift=lambda offset: -offset,
    ),
    "head-before-layer": known(
        "You return (head, layer).",
        "The layer comes first, as in the weights.",
        section="The token before",
        found=lambda layer, head, scores: (head, layer),
    ),
    "counted-from-1": known(
        "You count layers and heads from 1.",
        "Some papers do. In the course they are counted from 0.",
        section="The token before",
        found=lambda layer, head, scores: (layer + 1, head + 1),
    ),
    "place-0-taken-for-nothing": known(
        "Where layer 0, head 0 is the one, you return None.",
        "0, or (0, 0), is the place of a head. `if not place` takes 0 for nothing, and a search "
        "that begins with (0, 0) cannot tell it from nothing. Ask `is None`.",
        wrong=_not_if_0,
    ),
    "nothing-as-a-place": known(
        "You return (0, 0) where no head passes.",
        "The caller would take that for layer 0, head 0. None cannot be taken for a head.",
        nothing=(0, 0),
    ),
    "nothing-as-a-place-among-texts": known(
        "You return (0, 0) where no head passes.",
        "The caller would take that for layer 0, head 0. None cannot be taken for a head.",
        nothing=(0, 0),
        no_text=lambda nothing: None,
    ),
    "nothing-as-minus-1": known(
        "You return (-1, -1) where no head passes.",
        "weights[-1, -1] is the last head of the last layer, and nobody would notice. None cannot "
        "be taken for a head.",
        nothing=(-1, -1),
    ),
}


TASK = Task(
    "07-steady_head",
    steady_head,
    steady_cases,
    examine=examine_steady,
    returns=("the layer", "the head"),
    mistakes=read_again("The token before", STEADY),
    build=build_steady,
    stages=steady_stages,
    point_out=point_out_texts,
    skippable=True,
    uses=("07-offset_score",),
    number=5,
    since=2,
    alone=(
        "no-threshold",
        "most-texts-are-enough",
        "counted-from-1",
        "head-before-layer",
        "nothing-as-a-place",
        "nothing-as-a-place-among-texts",
        "nothing-as-minus-1",
        "divided-by-padded-count",
        "zeros-not-counted",
        "cut-to-the-longest",
        "cut-to-the-first",
        "made-1-again",
        "short-counts-as-1",
        "largest-product",
        "cut-to-the-shortest",
        "cut-to-the-shortest-that-counts",
        "always-before",
        "one-token-too-few",
        "one-token-too-many",
        "one-query-is-too-few",
        "two-queries-are-too-few",
        "left-out-without-sign",
        "left-out-if-back-only",
        "as-long-as-the-offset-counts",
        "stopped-at-a-short-text",
        "one-text-of-each-length",
        "last-text-decides",
        "first-text-decides",
        "running-mean",
        "padding-counted-in-long-texts",
        "padding-as-keys-in-long-texts",
        "padding-as-queries",
        "first-token-left-out",
        "added-not-averaged",
        "divided-by-length-less-offset",
        "half-of-the-texts-are-enough",
        "all-texts-but-one-are-enough",
        "best-of-all-if-one-passes",
        "nearly-enough",
        "last-that-passes",
        "largest-median",
        "divided-by-layers",
        "largest-score",
        "largest-smallest-score",
    ),
)
