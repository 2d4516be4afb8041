"""Task 9.1, log_sum_exp: the one number that a softmax needs, tile by tile, with hidden keys."""

from dataclasses import replace

import torch
from torch import inf

from mha_classroom.checks.forms import FILLS, any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

ONE_PASS = "The sum of softmax in one pass"
FORBIDDEN = (
    "torch.logsumexp",
    "torch.logaddexp",
    "torch.logaddexp2",
    "torch.logcumsumexp",
    "torch.softmax",
    "torch.log_softmax",
)


@and_in_float32
def one_pass_cases(draw):
    def case(name, scores, tile):
        return Case(name, {"scores": scores, "tile": tile})

    hidden = draw.normal(5, 11)
    hidden[0, :4] = hidden[1, 4:8] = hidden[2, 7:] = hidden[3] = -inf
    hidden[4, 1::2] = -inf
    large = draw.normal(4, 9, scale=4000.0)
    large[0] += 40000.0  # so far above the others that measured against it they are nothing
    low = draw.normal(3, 11) - 90000
    low[:, 4:8] = low[1, :4] = low[2, 0] = -inf
    low[0, 9:] = -89990.0
    small = torch.tensor([[1.0, 3.0, 6.0, 2.0]], dtype=torch.float64).log()
    return [
        case("the lesson's row, tiles of 2", small, 2),
        case("a tile that is not full at the end", draw.normal(3, 2, 7), 3),
        case("large scores", large, 2),
        case("very negative scores", draw.normal(4, 9) - 90000, 4),
        case("tiles of one key", draw.normal(3, 5, scale=3.0), 1),
        case("one tile for everything", draw.normal(3, 5), 8),
        case("a single key", draw.normal(4, 1), 2),
        case("hidden keys, whole tiles of them, and a row of nothing else", hidden, 4),
        case("very negative scores, and a tile that is hidden in every row", low, 4),
        case("each score larger than the one before", draw.normal(3, 10).sort(-1).values * 9, 3),
    ]


def build_one_pass(
    start=-inf,
    largest_of=lambda tile: tile.amax(-1),
    merged=torch.maximum,
    correct=lambda old, new: torch.exp(old - new),
    tiles=lambda scores, tile: scores.split(tile, -1),
    base=lambda largest: torch.where(largest == -inf, 0.0, largest),
    give=lambda largest, total: largest + total.log(),
    new_terms=lambda terms, by: terms,
    against=lambda old, new: new,
):
    """base: what is subtracted from the scores. correct: by what the total is multiplied."""

    def log_sum_exp(scores, tile):
        largest = torch.full_like(scores[..., 0], start)
        total = torch.zeros_like(largest)
        for part in tiles(scores, tile):
            new = merged(largest, largest_of(part))
            by = correct(largest, base(new))
            terms = torch.exp(part - against(largest, base(new))[..., None]).sum(-1)
            total = total * by + new_terms(terms, by)
            largest = new
        return give(base(largest), total)

    return log_sum_exp


def _with_0_for_nothing(old, new):
    largest = torch.maximum(old, new)
    return torch.where(largest == -inf, 0.0, largest)


def one_pass_stages(inputs):
    """What answers in one pass have in common with those in two."""
    scores, tiles = inputs["scores"], inputs["scores"].split(inputs["tile"], -1)
    so_far = torch.stack([part.amax(-1) for part in tiles]).cummax(0).values
    base = torch.where(so_far[-1] == -inf, 0.0, so_far[-1])
    return {
        "the largest score so far, after each tile": so_far,
        "the total, measured against the largest score": torch.exp(scores - base[..., None]).sum(
            -1
        ),
    }


def _naive(scores, tile):
    total = torch.zeros_like(scores[..., 0])
    for part in scores.split(tile, -1):
        total = total + part.exp().sum(-1)
    return total.log()


def _zeros(scores, tile):
    """Hidden keys have the score 0."""
    return [torch.where(part == -inf, 0.0, part) for part in scores.split(tile, -1)]


def _twice(count):
    """The first keys are counted twice."""
    return lambda scores, tile: [scores[..., : count(tile)], *scores.split(tile, -1)]


def _skips(skipped):
    """Leaves a tile out for all rows, if this says so."""
    return lambda scores, tile: [part for part in scores.split(tile, -1) if not skipped(part)]


def _row_hidden(part):
    return (part == -inf).all(-1).any()


def _any_hidden(part):
    return (part == -inf).any()


def _logarithms_added(scores, tile):
    return sum(build_one_pass()(part, tile) for part in scores.split(tile, -1))


def _by_chunks(scores, tile):
    return build_one_pass(tiles=lambda scores, tile: scores.chunk(tile, -1))(scores, tile)


def _skipped(inputs, value):
    """A tile is left out for all rows; where nothing is left of a row, people do many things."""
    for skipped in (_row_hidden, _any_hidden):
        made = build_one_pass(tiles=_skips(skipped))
        left = made(*inputs.values()).isfinite() | _no_tile_hidden(inputs, value)
        if like(made, where=lambda _, value, left=left: value.isfinite() | left)(inputs, value):
            return True
    return False


def _no_tile_hidden(inputs, value):
    """The rows with a key in each tile: with the others people do many things."""
    tiles = inputs["scores"].split(inputs["tile"], -1)
    return torch.stack([(part > -inf).any(-1) for part in tiles]).all(0)


def _nan_after_hidden(inputs, value):
    """NaN stands in rows with a hidden tile, and all else is right."""
    right = like(lambda scores, tile: scores.logsumexp(-1), where=lambda _, value: ~value.isnan())
    return right(inputs, value) and not (_no_tile_hidden(inputs, value) & value.isnan()).any()


def _filled(number):
    return build_one_pass(
        tiles=lambda scores, tile: [
            part.masked_fill(part == -inf, number) for part in scores.split(tile, -1)
        ]
    )


def _finite_fill(inputs, value):
    """Hidden keys count with a number in the place of −inf, whatever a row of them alone gets."""
    empty = (inputs["scores"] == -inf).all(-1)
    return like(*map(_filled, (*FILLS, -5e3)), where=lambda *_: ~empty)(inputs, value)


def _finite_where_empty(inputs, value):
    """A row of nothing but hidden keys gets a number far below 0, and all else is right."""
    empty = (inputs["scores"] == -inf).all(-1)
    right = like(lambda scores, tile: scores.logsumexp(-1), where=lambda *_: ~empty)
    return right(inputs, value) and bool((value[empty].isfinite() & (value[empty] < -999)).all())


def _mended(replaced):
    return lambda largest, total: torch.nan_to_num(largest + total.log(), **replaced)


MISTAKES = {
    "not-corrected": known(
        "The total is not corrected when a larger score arrives.",
        "The old terms were measured against a smaller score, so they count for too much. Where "
        "the largest score comes first nothing is wrong. If you do correct it: is the old largest "
        "score overwritten before you use it?",
        correct=lambda old, new: torch.ones_like(new),
    ),
    "corrected-the-wrong-way": known(
        "You get NaN, hidden keys or not. Do you correct the total by exp(new − old), or does the "
        "total start at −inf?",
        "If the old largest is −inf, exp(new − old) is inf, and 0 · inf is NaN. The old terms have "
        "to become smaller when a larger score arrives: try it by hand with log 3 and then log 6.",
        correct=lambda old, new: torch.exp(new - old),
    ),
    "largest-of-this-tile": known(
        "You take the largest score of the tile for the largest so far.",
        "A later tile may hold smaller scores only. The largest of all that came before still "
        "counts.",
        merged=lambda old, new: new,
    ),
    "starts-at-zero": known(
        "Your largest score starts at 0, or at another number that scores can be below, or such a "
        "number is counted among the scores.",
        "Where all scores are below it, it is taken for the largest, and exp of very negative "
        "numbers is 0. Which number is smaller than every score?",
        start=0.0,
    ),
    "nothing-subtracted": known(
        "Somewhere you take exp of a score, or of a tile's result, as it is.",
        "exp overflows above 709 in float64, and far below 0 it is 0. The largest of what is added "
        "up has to be subtracted before.",
        wrong=_naive,
    ),
    "hidden-scores-zero": known(
        "Hidden keys get the score 0.",
        "exp(0 − largest) is not 0, so they count in the total. A hidden key has to add nothing.",
        tiles=_zeros,
    ),
    "nan-for-hidden-keys": known(
        "A tile of hidden keys makes NaN.",
        "Where every score is −inf, of a tile or so far, the largest is −inf, and −inf − (−inf) is "
        "NaN. What can be subtracted instead, so that exp gives 0?",
        base=unchanged,
        shows=_nan_after_hidden,
    ),
    "nan-replaced-at-the-end": known(
        "A row that begins with a hidden tile is lost. Do you replace NaN at the end, or take a "
        "row for one without keys as soon as one of its tiles is hidden?",
        "The scores after that tile count, too. NaN plus a number is NaN, so it must not come up "
        "at all. Where is −inf − (−inf) computed?",
        **any_of(
            build_one_pass,
            *({"base": unchanged, "give": _mended(X)} for X in ({}, {"nan": -inf, "neginf": -inf})),
        ),
    ),
    "largest-forgotten": known(
        "You return the logarithm of the total.",
        "The total was measured against the largest score: exp(largest) was divided out. It has to "
        "come back.",
        give=lambda largest, total: total.log(),
    ),
    "no-logarithm": known(
        "You return largest + total.",
        "The sum is exp(largest) · total. What is its logarithm?",
        give=lambda largest, total: largest + total,
    ),
    "sum-without-logarithm": known(
        "You return the sum, without its logarithm.",
        "exp(largest) overflows. What is the logarithm of exp(largest) · total?",
        give=lambda largest, total: largest.exp() * total,
    ),
    "new-terms-corrected-too": known(
        "You correct the terms of the new tile, too.",
        "They are measured against the new largest score already. Only the old total is not.",
        new_terms=lambda terms, by: terms * by,
    ),
    "first-keys-twice": known(
        "The first keys are counted twice: before the loop and in it.",
        "If largest and total start with a key or a tile, the loop has to begin behind it.",
        **any_of(
            build_one_pass,
            tiles=(_twice(lambda tile: 1), _twice(lambda tile: tile)),
            where=_no_tile_hidden,
        ),
    ),
    "one-largest-for-all-rows": known(
        "You subtract one largest score from several rows, or from all.",
        "Each row has its own. Where the rows are far apart, exp of a whole row is 0, and its "
        "logarithm −inf.",
        largest_of=lambda tile: tile.amax().expand(tile.shape[:-1]),
    ),
    "measured-against-the-old-largest": known(
        "The terms of a tile are measured against the largest score before this tile.",
        "In the first tile that is −inf, and score − (−inf) is inf. Later it may be far below the "
        "new scores. First find the new largest score, then measure both against it.",
        against=lambda old, new: old,
    ),
    "logarithms-added": known(
        "You add up the logarithms of the tiles.",
        "The logarithm of a sum is not the sum of logarithms. The totals of two tiles can be added "
        "once both are measured against the same score.",
        wrong=_logarithms_added,
        shows=like(_logarithms_added, where=_no_tile_hidden),
    ),
    "last-tile-dropped": known(
        "You leave out the last keys where the tiles do not divide their number.",
        "The last tile may be shorter than the others.",
        tiles=lambda scores, tile: [
            scores[..., i * tile : (i + 1) * tile] for i in range(scores.shape[-1] // tile)
        ],
    ),
    "chunks-for-tiles": known(
        "You cut the row into `tile` pieces, as `chunk` does, or you keep one number of every tile "
        "side by side.",
        "The number may be right. But `tile` says how many keys are in a piece, not how many "
        "pieces there are.",
        wrong=_by_chunks,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "tile-skipped-for-all-rows": known(
        "You leave out a whole tile because some of its scores are hidden.",
        "In another row of the same tile there are keys that count.",
        tiles=_skips(_row_hidden),
        shows=_skipped,
    ),
    "stand-in-kept": known(
        "Where all keys so far are hidden, you keep 0, or another number, as the largest score.",
        "Later scores may all be far below it: measured against it their exp is 0. What stands in "
        "for −inf is for the subtraction alone.",
        merged=_with_0_for_nothing,
        shows=like(build_one_pass(merged=_with_0_for_nothing)),
    ),
    "largest-taken-away": known(
        "You return log(total) − largest.",
        "The terms were divided by exp(largest). What has to be done to the logarithm to undo it?",
        give=lambda largest, total: total.log() - largest,
    ),
    "hidden-at-a-number": known(
        "A row of nothing but hidden keys gets a finite number: somewhere one such as −1e9 stands "
        "in the place of −inf.",
        "A hidden key adds nothing, so the sum of this row is 0. Which number is its logarithm?",
        tiles=lambda scores, tile: [part.clamp(min=-1e9) for part in scores.split(tile, -1)],
        shows=_finite_where_empty,
    ),
    "hidden-scores-finite": known(
        "Hidden keys get a number such as −1000 in the place of −inf.",
        "Scores can be below it. Then the hidden keys have the largest scores, and they make up "
        "the sum. What does a hidden key add to it?",
        wrong=_filled(-1000.0),
        shows=_finite_fill,
    ),
    "largest-returned": known(
        "You return the largest score.",
        "The total has to come in as well: the sum is exp(largest) · total.",
        give=lambda largest, total: largest,
    ),
}

# What is wrong in rows without a hidden tile is told by these alone: for the others there are many
# ways, of which some make NaN.
for _known in (MISTAKES, ALONE):
    for _id, _mistake in _known.items():
        if not _mistake.shows and _id != "chunks-for-tiles":
            _answer = _mistake.wrong or build_one_pass(**_mistake.parts)
            _known[_id] = replace(_mistake, shows=like(_answer, where=_no_tile_hidden))

TASK = Task(
    "09-log_sum_exp",
    build_one_pass(),
    one_pass_cases,
    run=run_small,
    examine=small_enough(
        shape=lambda inputs: inputs["scores"].shape[:-1],
        limit=lambda inputs: inputs["scores"][..., :1].numel() * inputs["tile"],
        reason="That is more than one tile of scores. A copy of all scores, or a mask of them, has "
        "as many numbers as they have.",
    ),
    mistakes=read_again(ONE_PASS, MISTAKES | ALONE),
    build=build_one_pass,
    stages=one_pass_stages,
    alone=tuple(ALONE),
    forbidden=FORBIDDEN,
    tolerance=1e-6,  # of scores near -90000
    number=1,
)
