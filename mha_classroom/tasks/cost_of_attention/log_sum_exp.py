"""Task 9.1, log_sum_exp: the one number that a softmax needs, tile by tile, with hidden keys."""

from dataclasses import replace

import torch

from mha_classroom.checks.forms import like, near
from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
from mha_classroom.tasks.cost_of_attention.runs import run_small
from mha_classroom.tasks.cost_of_attention.tensor_sizes import small_enough

ONE_PASS = "The sum of softmax in one pass"
FORBIDDEN = (
    "torch.logsumexp",
    "torch.logaddexp",
    "torch.logcumsumexp",
    "torch.softmax",
    "torch.log_softmax",
)


def one_pass_cases(draw):
    def case(name, scores, tile):
        return Case(name, {"scores": scores, "tile": tile})

    hidden = draw.normal(5, 11)
    hidden[0, :4] = hidden[1, 4:8] = hidden[2, 7:] = hidden[3] = -torch.inf
    hidden[4, 1::2] = -torch.inf
    small = torch.tensor([[1.0, 3.0, 6.0, 2.0]], dtype=torch.float64).log()
    return [
        case("the lesson's row, tiles of 2", small, 2),
        case("a tile that is not full at the end", draw.normal(2, 3, 7), 3),
        case("large scores", draw.normal(4, 9, scale=4000.0), 2),
        case("very negative scores", draw.normal(4, 9) - 9000, 4),
        case("tiles of one key", draw.normal(3, 5, scale=3.0), 1),
        case("one tile for everything", draw.normal(3, 5), 8),
        case("a single key", draw.normal(4, 1), 2),
        case("hidden keys, whole tiles of them, and a row of nothing else", hidden, 4),
        case("each score larger than the one before", draw.normal(3, 10).sort(-1).values * 9, 3),
    ]


def build_one_pass(
    start=-torch.inf,
    largest_of=lambda tile: tile.amax(-1),
    merged=torch.maximum,
    correct=lambda old, new: torch.exp(old - new),
    tiles=lambda scores, tile: scores.split(tile, -1),
    base=lambda largest: torch.where(largest == -torch.inf, 0.0, largest),
    give=lambda largest, total: largest + total.log(),
    new_terms=lambda terms, by: terms,
    terms_of=lambda terms: terms.sum(-1),
    against=lambda old, new: new,
):
    """base: what is subtracted from the scores. correct: by what the total is multiplied."""

    def log_sum_exp(scores, tile):
        largest = torch.full_like(scores[..., 0], start)
        total = torch.zeros_like(largest)
        for part in tiles(scores, tile):
            new = merged(largest, largest_of(part))
            by = correct(largest, base(new))
            terms = terms_of(torch.exp(part - against(largest, base(new))[..., None]))
            total = total * by + new_terms(terms, by)
            largest = new
        return give(base(largest), total)

    return log_sum_exp


def _whole(scores, tile):
    largest = scores.amax(-1)
    base = torch.where(largest == -torch.inf, 0.0, largest)
    return base + torch.exp(scores - base[..., None]).sum(-1).log()


def _naive(scores, tile):
    total = torch.zeros_like(scores[..., 0])
    for part in scores.split(tile, -1):
        total = total + part.exp().sum(-1)
    return total.log()


def _zeros(scores, tile):
    """Hidden keys have the score 0."""
    return [torch.where(part == -torch.inf, 0.0, part) for part in scores.split(tile, -1)]


def _twice(count):
    """The first keys are counted twice."""
    return lambda scores, tile: [scores[..., : count(tile)], *scores.split(tile, -1)]


def _skips(skipped):
    """Leaves a tile out for all rows, if this says so."""
    return lambda scores, tile: [part for part in scores.split(tile, -1) if not skipped(part)]


def _row_hidden(part):
    return (part == -torch.inf).all(-1).any()


def _any_hidden(part):
    return (part == -torch.inf).any()


def _all_alike(*tiles):
    """The `shows` of a mistake with any of these tiles."""
    return like(*(build_one_pass(tiles=made) for made in tiles), where=_no_tile_hidden)


def _logarithms_added(scores, tile):
    return sum(build_one_pass()(part, tile) for part in scores.split(tile, -1))


def _by_chunks(scores, tile):
    return build_one_pass(tiles=lambda scores, tile: scores.chunk(tile, -1))(scores, tile)


def _by_reshape(scores, tile):
    return build_one_pass(
        tiles=lambda scores, tile: scores.reshape(*scores.shape[:-1], -1, tile).unbind(-2)
    )(scores, tile)


def _by_unflatten(scores, tile):
    return build_one_pass(tiles=lambda scores, tile: scores.unflatten(-1, (-1, tile)).unbind(-2))(
        scores, tile
    )


def _skipped(inputs, value):
    """Like `_all_alike`, also where nothing is left of a row."""
    made = (build_one_pass(tiles=_skips(skipped)) for skipped in (_row_hidden, _any_hidden))
    return like(*made, where=lambda _, value: value.isfinite() | _no_tile_hidden(_, value))(
        inputs, value
    )


def _no_tile_hidden(inputs, value):
    """The rows with a key in each tile: with the others people do many things."""
    tiles = inputs["scores"].split(inputs["tile"], -1)
    return torch.stack([(part > -torch.inf).any(-1) for part in tiles]).all(0)


def _hidden_rows(wrong):
    """All is right but the rows without a key, of which this says whether it is what they hold."""

    def shows(inputs, value):
        scores = inputs["scores"]
        if not torch.is_tensor(value) or value.shape != scores.shape[:-1]:
            return False
        hidden = (scores == -torch.inf).all(-1)
        right = near(value.double(), scores.logsumexp(-1))
        return bool(right[~hidden].all() and wrong(value[hidden]).all())

    return shows


def _nan_after_hidden(inputs, value):
    """NaN stands in rows with a hidden tile, and all else is right."""
    right = like(lambda scores, tile: scores.logsumexp(-1), where=lambda _, value: ~value.isnan())
    return right(inputs, value) and not (_no_tile_hidden(inputs, value) & value.isnan()).any()


def _axis_kept(inputs, value):
    shape = inputs["scores"].shape
    return torch.is_tensor(value) and value.shape == (*shape[:-1], 1)


NAN_REPLACED = (
    "A tile of hidden keys makes NaN, and you replace the NaN at the end.",
    "The scores after that tile are lost, since NaN plus a number is NaN. It must not come up at "
    "all. Where is −inf − (−inf) computed?",
)

RESHAPED = (
    "You reshape the scores into whole tiles.",
    "`tile` need not divide S, and may be larger: the last tile may be shorter than the others.",
)

MISTAKES = {
    "not-corrected": known(
        "The total is not corrected when a larger score arrives.",
        "The old terms were measured against a smaller score, so they count for too much. Where "
        "the largest score comes first nothing is wrong. If you do correct it: is the old largest "
        "score overwritten before you use it?",
        correct=lambda old, new: torch.ones_like(new),
    ),
    "corrected-the-wrong-way": known(
        "You correct the total by exp(new − old), or by another factor that is infinite at first.",
        "Before the first tile the largest score is −inf, and 0 · inf is NaN. The old terms have "
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
        "Your largest score starts at 0, or at another number that scores can be below.",
        "Where all scores are below it, it stays, and exp of very negative numbers is 0. Which "
        "number is smaller than every score?",
        start=0.0,
    ),
    "nothing-subtracted": known(
        "You sum exp(score), without subtracting the largest.",
        "exp overflows above 709 in float64. The largest score so far has to be subtracted before.",
        wrong=_naive,
    ),
    "nan-for-a-hidden-row": known(
        "A row whose keys are all hidden gives NaN.",
        "Rows with some keys are right. What does the task say that this row gets, and which of "
        "your last steps makes NaN of a total of 0 or of a largest score of −inf?",
        shows=_hidden_rows(torch.isnan),
        give=lambda largest, total: torch.where(total == 0, torch.nan, largest + total.log()),
    ),
    "number-for-a-hidden-row": known(
        "A row whose keys are all hidden gets another number than −inf.",
        "The sum over no keys is 0. The task says what its logarithm is. Do you add a small number "
        "to the total, start it above 0, put a finite number in place of −inf, or return a number "
        "of your own for such a row?",
        shows=_hidden_rows(lambda X: ~X.isnan() & (X != -torch.inf)),
        give=lambda largest, total: torch.where(total == 0, 0.0, largest + total.log()),
    ),
    "hidden-scores-zero": known(
        "Hidden keys get the score 0.",
        "exp(0 − largest) is not 0, so they count in the total. A hidden key has to add nothing.",
        tiles=_zeros,
        shows=_all_alike(_zeros),
    ),
    "tile-skipped-for-all-rows": known(
        "You leave out a whole tile because some of its scores are hidden.",
        "In another row of the same tile there are keys that count.",
        tiles=_skips(_row_hidden),
        shows=_skipped,
    ),
    "nan-for-hidden-keys": known(
        "A tile of hidden keys makes NaN.",
        "As long as every score was −inf, the largest is −inf, and −inf − (−inf) is NaN. What can "
        "be subtracted instead, so that exp gives 0?",
        base=unchanged,
        shows=_nan_after_hidden,
    ),
    "nan-replaced-at-the-end": known(
        *NAN_REPLACED,
        base=unchanged,
        give=lambda largest, total: torch.nan_to_num(largest + total.log()),
    ),
    "nan-made-minus-infinity": known(
        *NAN_REPLACED,
        base=unchanged,
        give=lambda largest, total: torch.nan_to_num(
            largest + total.log(), nan=-torch.inf, neginf=-torch.inf
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
    "largest-taken-away": known(
        "You return log(total) − largest.",
        "The terms were divided by exp(largest). What has to be done to the logarithm to undo it?",
        give=lambda largest, total: total.log() - largest,
    ),
    "largest-times-logarithm": known(
        "You multiply the largest score by the logarithm of the total.",
        "The sum is exp(largest) · total. The logarithm of a product is a sum.",
        give=lambda largest, total: largest * total.log(),
    ),
    "sum-without-logarithm": known(
        "You return the sum, without its logarithm.",
        "exp(largest) overflows. What is the logarithm of exp(largest) · total?",
        give=lambda largest, total: largest.exp() * total,
    ),
    "total-returned": known(
        "You return the total.",
        "It is measured against the largest score, and it has no logarithm yet.",
        give=lambda largest, total: total,
    ),
    "largest-returned": known(
        "You return the largest score.",
        "The total has to come in as well: the sum is exp(largest) · total.",
        give=lambda largest, total: largest,
    ),
    "pair-returned": known(
        "You return the largest score and the total.",
        "The task asks for one number a row, which is made of these two.",
        give=lambda largest, total: (largest, total),
        shows=lambda inputs, value: isinstance(value, (tuple, list)),
    ),
    "log-of-one-more": known(
        "You take log(1 + total).",
        "log1p adds 1, and so does a total that starts at 1 and is not corrected. The total is the "
        "whole sum.",
        give=lambda largest, total: largest + total.log1p(),
    ),
    "another-logarithm": known(
        "You take the logarithm to the base 2 or 10.",
        "It has to undo exp, whose base is e.",
        give=lambda largest, total: largest + total.log2(),
        shows=like(
            build_one_pass(give=lambda largest, total: largest + total.log2()),
            build_one_pass(give=lambda largest, total: largest + total.log10()),
            where=_no_tile_hidden,
        ),
    ),
    "new-terms-corrected-too": known(
        "You correct the terms of the new tile, too.",
        "They are measured against the new largest score already. Only the old total is not.",
        new_terms=lambda terms, by: terms * by,
    ),
    "first-keys-twice": known(
        "The first keys are counted twice: before the loop and in it.",
        "If largest and total start with a key or a tile, the loop has to begin behind it.",
        tiles=_twice(lambda tile: 1),
        shows=_all_alike(_twice(lambda tile: 1), _twice(lambda tile: tile)),
    ),
    "one-largest-for-all-rows": known(
        "You subtract one largest score from all rows.",
        "Each row has its own. Where the rows are far apart, exp of a whole row is 0, and its "
        "logarithm −inf.",
        largest_of=lambda tile: tile.amax().expand(tile.shape[:-1]),
    ),
    "average-of-a-tile": known(
        "You take the mean of exp over a tile.",
        "The total is a sum: a tile with more keys counts for more.",
        terms_of=lambda terms: terms.mean(-1),
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
    "axis-kept": known(
        "The axis of the keys is still there, with one entry.",
        "keepdim=True, or [..., None], helps while you compute. The result has one number a row, "
        "so the last axis has to go.",
        wrong=lambda scores, tile: build_one_pass()(scores, tile)[..., None],
        shows=_axis_kept,
    ),
    "last-tile-dropped": known(
        "You leave out the last keys where the tiles do not divide their number.",
        "The last tile may be shorter than the others.",
        tiles=lambda scores, tile: [
            scores[..., i * tile : (i + 1) * tile] for i in range(scores.shape[-1] // tile)
        ],
    ),
    "chunks-for-tiles": known(
        "You cut the row into `tile` pieces, as `chunk` does.",
        "The number may be right. But `tile` says how many keys are in a piece, not how many "
        "pieces there are.",
        wrong=_by_chunks,
    ),
    "reshaped-into-tiles": known(*RESHAPED, wrong=_by_reshape),
    "unflattened-into-tiles": known(*RESHAPED, wrong=_by_unflatten),
    "whole-row-at-once": known(
        "You make a tensor as large as all scores: exp of all of them, a copy, or a mask.",
        "The task is to have one tile at a time, since the whole row does not fit into fast "
        "memory. What you do to all scores can be done to each tile in the loop.",
        wrong=_whole,
    ),
}

# What is wrong in rows without a hidden tile is told by these alone: for the others there are many
# ways, of which some make NaN.
PLAIN = (
    "not-corrected",
    "corrected-the-wrong-way",
    "largest-of-this-tile",
    "largest-forgotten",
    "no-logarithm",
    "largest-taken-away",
    "largest-times-logarithm",
    "sum-without-logarithm",
    "total-returned",
    "largest-returned",
    "log-of-one-more",
    "new-terms-corrected-too",
    "average-of-a-tile",
    "measured-against-the-old-largest",
    "one-largest-for-all-rows",
    "last-tile-dropped",
    "nothing-subtracted",
    "starts-at-zero",
)
for _id in PLAIN:
    _shows = like(
        MISTAKES[_id].wrong or build_one_pass(**MISTAKES[_id].parts), where=_no_tile_hidden
    )
    MISTAKES[_id] = replace(MISTAKES[_id], shows=_shows)

ALONE = (  # what stands at the end of the answer hides what came before
    "pair-returned",
    "nan-for-a-hidden-row",
    "number-for-a-hidden-row",
    "tile-skipped-for-all-rows",
    "largest-taken-away",
    "largest-times-logarithm",
    "log-of-one-more",
    "another-logarithm",
    "largest-returned",
)

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
    mistakes=read_again(ONE_PASS, MISTAKES),
    build=build_one_pass,
    alone=ALONE,
    forbidden=FORBIDDEN,
    number=1,
)
