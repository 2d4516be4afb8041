"""Task 9.2, merge_parts: attention over several shares of the keys, put together."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.cost_of_attention.log_sum_exp import ONE_PASS

TILES = "Attention in tiles"


def attended(queries, keys, values, allowed=None):
    """Output, largest score and total of attention over a share of the keys, perhaps an empty one.

    allowed: (L,), which queries may see this share.
    """
    scores = queries @ keys.mT  # (L, share)
    if allowed is not None:
        scores = scores.masked_fill(~allowed[:, None], -torch.inf)
    largest = torch.cat([scores, torch.full_like(scores[:, :1], -torch.inf)], -1).amax(-1)
    weights = torch.exp(scores - torch.where(largest == -torch.inf, 0.0, largest)[:, None])
    total = weights.sum(-1)
    output = weights @ values / torch.where(total == 0, 1.0, total)[:, None]
    return output, largest, total


def parts_of(draw, num_queries, shares, d_v, scale=1.0, hidden=()):
    """The inputs of a case: shares are numbers of keys; hidden (query, part) see nothing there."""
    queries = draw.normal(num_queries, 3, scale=scale)
    made = []
    for part, share in enumerate(shares):
        allowed = torch.tensor([(query, part) not in hidden for query in range(num_queries)])
        made.append(attended(queries, draw.normal(share, 3), draw.normal(share, d_v), allowed))
    names = ("outputs", "largest", "totals")
    return {name: torch.stack([part[i] for part in made]) for i, name in enumerate(names)}


def merge_cases(draw):
    small = {
        "outputs": torch.tensor([[[6.0]], [[9.0]]], dtype=torch.float64),
        "largest": torch.tensor([[3.0], [6.0]], dtype=torch.float64).log(),
        "totals": torch.tensor([[4 / 3], [4 / 3]], dtype=torch.float64),
    }
    hidden = ((0, 0), (1, 2), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2))
    return [
        Case("two parts of the lesson's row, one query", small),
        Case("two parts, 4 queries", parts_of(draw, 4, (3, 5), 2)),
        Case("5 parts of 1 to 4 keys", parts_of(draw, 3, (2, 1, 4, 3, 1), 7)),
        Case("large scores", parts_of(draw, 4, (3, 2, 4), 5, scale=300.0)),
        Case("as many parts as queries", parts_of(draw, 3, (2, 3, 5), 3)),
        Case("one part", parts_of(draw, 2, (4,), 3)),
        Case(
            "parts without a key that a query may see", parts_of(draw, 5, (2, 3, 4), 2, 2, hidden)
        ),
    ]


def _base(largest):
    return torch.where(largest == -torch.inf, 0.0, largest)


def _fine(outputs, summed, total):
    return summed / torch.where(total == 0, 1.0, total)[..., None]


def build_merge(
    largest_of=lambda largest: largest.amax(0),
    factors=lambda largest, new: torch.exp(largest - _base(new)),
    weigh=lambda outputs, totals, factors: outputs * (totals * factors)[..., None],
    divide=_fine,
    total_of=lambda totals, factors: (totals * factors).sum(0),
    give=lambda output, largest, total: (output, largest, total),
):
    """factors: by which the totals are corrected. weigh: what is summed for the output."""

    def merge_parts(outputs, largest, totals):
        new = largest_of(largest)
        by = factors(largest, new)
        total = total_of(totals, by)
        output = divide(outputs, weigh(outputs, totals, by).sum(0), total)
        return give(output, new, total)

    return merge_parts


MISTAKES = {
    "plain-average": known(
        "You average the outputs, each part counting the same.",
        "A part with a large total has most of the weight. Outputs of parts are averages already, "
        "and an average of averages needs weights.",
        weigh=lambda outputs, totals, factors: outputs,
        divide=lambda outputs, summed, total: summed / len(outputs),
    ),
    "by-totals-alone": known(
        "The parts are weighted by their totals, without the correction.",
        "Each total was measured against the largest score of its own part. Before they can be "
        "compared, all have to be measured against the same score.",
        section=ONE_PASS,
        factors=lambda largest, new: torch.ones_like(largest),
    ),
    "by-factors-alone": known(
        "The outputs are weighted by exp(largest − new largest), without their totals.",
        "The output of a part was divided by its total. It has to be multiplied by it again.",
        weigh=lambda outputs, totals, factors: outputs * factors[..., None],
    ),
    "not-divided": known(
        "The merged output is not divided by the new total.",
        "The outputs that come in are divided, and so is the one that goes out: it is an average "
        "of values.",
        divide=lambda outputs, summed, total: summed,
    ),
    "corrected-the-wrong-way": known(
        "You correct by exp(new largest − largest).",
        "A part whose largest score is small has to count for less.",
        section=ONE_PASS,
        factors=lambda largest, new: torch.exp(new - largest),
    ),
    "first-part-for-the-largest": known(
        "You take the largest score of the first part for that of all.",
        "Any of the parts may have it. With large scores exp overflows then.",
        section=ONE_PASS,
        largest_of=lambda largest: largest[0],
    ),
    "total-not-corrected": known(
        "The output is right. The total that you return is the sum of the totals.",
        "It has to be measured against the new largest score, so that the result can be merged "
        "once more.",
        section=ONE_PASS,
        wrong=lambda outputs, largest, totals: (
            *build_merge()(outputs, largest, totals)[:2],
            totals.sum(0),
        ),
    ),
    "nan-without-keys": known(
        "You return NaN for a query that sees no key in any part.",
        "Its largest score is −inf, and −inf − (−inf) is NaN. Its total is 0, and 0 / 0 is NaN. "
        "The task says what such a query gets.",
        factors=lambda largest, new: torch.exp(largest - new),
        divide=lambda outputs, summed, total: summed / total[..., None],
    ),
    "zero-by-zero": known(
        "You divide 0 by 0 for a query that sees no key in any part.",
        "The task says what such a query gets.",
        divide=lambda outputs, summed, total: summed / total[..., None],
    ),
    "output-only": known(
        "You return the output only.",
        "Who merges this result with another one needs its largest score and its total, too.",
        give=lambda output, largest, total: output,
    ),
    "parts-not-merged": known(
        "You return a result for each part.",
        "The first axis counts the parts, and it has to go: the parts become one.",
        wrong=lambda outputs, largest, totals: (outputs, largest, totals),
    ),
}

TASK = Task(
    "09-merge_parts",
    build_merge(),
    merge_cases,
    returns=("the output", "the largest score", "the total"),
    mistakes=read_again(TILES, MISTAKES),
    build=build_merge,
    alone=("output-only", "parts-not-merged", "nan-without-keys", "zero-by-zero"),
    number=2,
)
