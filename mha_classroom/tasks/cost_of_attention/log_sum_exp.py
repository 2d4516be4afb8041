"""Task 9.1, log_sum_exp: the one number that a softmax needs, tile by tile, with hidden keys."""

import torch

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
        case("very negative scores", draw.normal(4, 9) - 2000, 4),
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
):
    """base: what is subtracted from the scores. correct: by what the total is multiplied."""

    def log_sum_exp(scores, tile):
        largest = torch.full_like(scores[..., 0], start)
        total = torch.zeros_like(largest)
        for part in tiles(scores, tile):
            new = merged(largest, largest_of(part))
            total = total * correct(largest, base(new))
            total = total + torch.exp(part - base(new)[..., None]).sum(-1)
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


NAN_REPLACED = (
    "A tile of hidden keys makes NaN, and you replace the NaN at the end.",
    "The scores after that tile are lost, since NaN plus a number is NaN. It must not come up at "
    "all. Where is −inf − (−inf) computed?",
)

MISTAKES = {
    "not-corrected": known(
        "The total is not corrected when a larger score arrives.",
        "The old terms were measured against a smaller score, so they count for too much. Where "
        "the largest score comes first nothing is wrong.",
        correct=lambda old, new: torch.ones_like(new),
    ),
    "corrected-the-wrong-way": known(
        "You correct the total by exp(new − old).",
        "The old terms have to become smaller when a larger score arrives. Try it by hand with "
        "log 3 and then log 6.",
        correct=lambda old, new: torch.exp(new - old),
    ),
    "largest-of-this-tile": known(
        "You take the largest score of the tile for the largest so far.",
        "A later tile may hold smaller scores only. The largest of all that came before still "
        "counts.",
        merged=lambda old, new: new,
    ),
    "starts-at-zero": known(
        "Your largest score starts at 0.",
        "Where all scores are below 0, this 0 stays, and exp of very negative numbers is 0. Which "
        "number is smaller than every score?",
        start=0.0,
    ),
    "nothing-subtracted": known(
        "You sum exp(score), without subtracting the largest.",
        "exp overflows above 709 in float64. The largest score so far has to be subtracted before.",
        wrong=_naive,
    ),
    "nan-for-hidden-keys": known(
        "A tile of hidden keys makes NaN.",
        "As long as every score was −inf, the largest is −inf, and −inf − (−inf) is NaN. What can "
        "be subtracted instead, so that exp gives 0?",
        base=unchanged,
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
    "last-tile-dropped": known(
        "You leave out the last keys where the tiles do not divide their number.",
        "The last tile may be shorter than the others.",
        tiles=lambda scores, tile: [
            scores[..., i * tile : (i + 1) * tile] for i in range(scores.shape[-1] // tile)
        ],
    ),
    "whole-row-at-once": known(
        "You compute exp of all scores at once.",
        "The number is right. But the task is to have one tile at a time, since the whole row does "
        "not fit into fast memory.",
        wrong=_whole,
    ),
}

TASK = Task(
    "09-log_sum_exp",
    build_one_pass(),
    one_pass_cases,
    run=run_small,
    examine=small_enough(
        shape=lambda inputs: inputs["scores"].shape[:-1],
        limit=lambda inputs: inputs["scores"][..., :1].numel() * inputs["tile"],
        reason="That is more than one tile of scores.",
    ),
    mistakes=read_again(ONE_PASS, MISTAKES),
    build=build_one_pass,
    forbidden=FORBIDDEN,
    number=1,
)
