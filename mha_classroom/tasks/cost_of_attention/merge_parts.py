"""Task 9.2, merge_parts: attention over several shares of the keys, put together."""

from dataclasses import replace

import torch

from mha_classroom.checks.examining import is_floats, total
from mha_classroom.checks.forms import any_of, like, near
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
)
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


@and_in_float32
def merge_cases(draw):
    small = {
        "outputs": torch.tensor([[[6.0]], [[9.0]]], dtype=torch.float64),
        "largest": torch.tensor([[3.0], [6.0]], dtype=torch.float64).log(),
        "totals": torch.tensor([[4 / 3], [4 / 3]], dtype=torch.float64),
    }
    hidden = ((0, 0), (1, 2), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2))
    low = parts_of(draw, 4, (2, 4, 3, 1), 3, 2000.0, ((0, 1), (1, 0), (1, 3), (3, 2)))
    low["largest"] -= 3e9
    zeros = parts_of(draw, 4, (3, 5), 2)
    zeros["outputs"][0, 1] = 0  # its values may have been 0
    return [
        Case("two parts of the lesson's row, one query", small),
        Case("two parts, 4 queries, one output of zeros", zeros),
        Case("5 parts of 1 to 4 keys", parts_of(draw, 3, (2, 1, 4, 3, 1), 7)),
        Case("large scores", parts_of(draw, 4, (3, 2, 4), 5, scale=2000.0)),
        Case("as many parts as queries", parts_of(draw, 3, (2, 3, 5), 3)),
        Case("one part", parts_of(draw, 2, (4,), 3)),
        Case(
            "parts without a key that a query may see", parts_of(draw, 5, (2, 3, 4), 2, 2, hidden)
        ),
        Case("scores far below 0, and parts without a key that a query may see", low),
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


def merge_stages(inputs):
    outputs, largest, totals = inputs.values()
    new = largest.amax(0)
    by = torch.exp(largest - _base(new))
    stages = {"the largest scores of all parts together": new}
    if new.isfinite().all():  # of a query without keys some answers make NaN, and 0 of it later
        stages["the factors that correct the totals"] = by
        stages["the corrected totals of the parts"] = totals * by
    return stages | {"the total of all parts together": (totals * by).sum(0)}


def _tensors(value, shapes):
    return (
        isinstance(value, (tuple, list))
        and len(value) == len(shapes)
        and all(torch.is_tensor(X) and X.shape == s for X, s in zip(value, shapes, strict=True))
        and all(X.is_floating_point() for X in value)
    )


def _parts_near(value, want):
    """For each query whether all three are right: (3, L)."""
    first, *others = (near(X.double(), Y) for X, Y in zip(value, want, strict=True))
    return torch.stack([first.all(-1), *others])


def _nan_without_keys(inputs, value):
    """All is right but for NaN in queries that some part hides all keys from."""
    want = build_merge()(*inputs.values())
    if not _tensors(value, [X.shape for X in want]):
        return False
    nan = torch.stack([X.isnan().view(len(X), -1).any(-1) for X in value])
    hidden = inputs["totals"] == 0
    right = _parts_near(value, want).logical_or(nan)
    some, every = hidden.any(0), hidden.all(0)
    return bool(right.all() and not nan[:, ~some].any() and nan.any() >= every.any())


def seen_by(answer, where=None):
    """The `shows` of a mistake: for queries that see a key the results are those of this answer.

    where: for the inputs, more queries that are left out of account, (L,).
    """

    def shows(inputs, value):
        given = [X.clone() for X in inputs.values()]
        want = answer(*given)
        if not _tensors(value, [X.shape for X in want]):
            return False
        counts = (inputs["totals"] > 0).any(0)
        if where is not None:
            counts &= ~where(inputs)
        return want[0].dim() < 2 or bool(_parts_near(value, want)[:, counts].all())

    return shows


def _overflown(outputs, largest, totals):
    by = totals * torch.exp(largest)
    total = by.sum(0)
    output = (by[..., None] * outputs).sum(0) / total[:, None]
    new = largest.amax(0)
    return output, new, total * torch.exp(-new)


def _too_large(inputs, surely=0):
    """The queries for which exp of a score overflows, or all are 0: at 709.8 and -745."""
    new = inputs["largest"].amax(0)
    return (new > 700 + surely) | (new < -700 - surely)


def _overflows(inputs, value):
    """Wrong where exp of a score overflows, right for all other queries that see a key."""
    if not seen_by(build_merge(), where=_too_large)(inputs, value):
        return False
    large = _too_large(inputs, surely=50) & (inputs["totals"] > 0).any(0)
    right = _parts_near(value, build_merge()(*inputs.values())).all(0)
    return not (right & large).any()


def _below_a_number(inputs, value):
    """Right for queries with a score above 0; the totals of others may be lost."""
    new = inputs["largest"].amax(0)
    if not seen_by(build_merge(), where=lambda inputs: new < 0)(inputs, value):
        return False
    right = _parts_near(value, build_merge()(*inputs.values())).all(0)
    lost = value[2].isnan() | (value[2] < 1e-9)
    seen, far = new > -torch.inf, new < -1e6
    if (seen & far).any() and right[seen & far].all():
        return False
    return bool((right | lost | (new > -700) | ~seen).all())


def _measured_against_one(total_right):
    """One largest score for all queries, but the one that is returned."""

    def merge_parts(outputs, largest, totals):
        _, new, total = build_merge()(outputs, largest, totals)
        one = build_merge(largest_of=lambda largest: largest.amax().expand(largest.shape[1:]))
        output, _, off = one(outputs, largest, totals)
        return output, new, total if total_right else off

    return merge_parts


def _far_below_another(inputs):
    new = inputs["largest"].amax(0)
    return new < new.max() - 700


def _one_for_all(inputs, value):
    """The results of one largest score, and wrong far below it, where exp is 0."""
    far = _far_below_another(inputs) & (inputs["totals"] > 0).any(0)
    if far.any() and seen_by(build_merge(), where=lambda inputs: ~far)(inputs, value):
        return False
    return any(
        seen_by(made, where=_far_below_another)(inputs, value)
        for made in (
            build_merge(largest_of=lambda largest: largest.amax().expand(largest.shape[1:])),
            _measured_against_one(total_right=False),
            _measured_against_one(total_right=True),
        )
    )


def _in_a_loop(output_corrected=True, total_corrected=True, divided=False):
    """One part after another; the new output undivided, or divided in each step."""

    def merge_parts(outputs, largest, totals):
        output, most, total = torch.zeros_like(outputs[0]), largest[0], torch.zeros_like(totals[0])
        for o, m, t in zip(outputs, largest, totals, strict=True):
            new = torch.maximum(most, m)
            by = torch.exp(most - _base(new))
            share = t * torch.exp(m - _base(new))
            output = output * (by[:, None] if output_corrected else 1) + o * share[:, None]
            total = total * (by if total_corrected else 1) + share
            if divided:
                output = _fine(outputs, output, total)
            most = new
        return output if divided else _fine(outputs, output, total), most, total

    return merge_parts


def _never_updated(given):
    """One part after another, each time with the largest score of the first; given: which largest
    score is returned."""

    def merge_parts(outputs, largest, totals):
        first, total = largest[0], totals[0]
        output = outputs[0] * total[:, None]
        for o, m, t in zip(outputs[1:], largest[1:], totals[1:], strict=True):
            new = torch.maximum(first, m)
            by, share = torch.exp(first - _base(new)), t * torch.exp(m - _base(new))
            output = output * by[:, None] + o * share[:, None]
            total = total * by + share
        return _fine(outputs, output, total), given(largest, 0), total

    return merge_parts


def _without_keys_somewhere(inputs):
    return (inputs["totals"] == 0).any(0)


def _empty_for_all(outputs, largest, totals):
    """Nothing is left of any query, if one of them sees no key of some part."""
    output, new, total = build_merge()(outputs, largest, totals)
    if not (totals == 0).any():
        return output, new, total
    return torch.zeros_like(output), torch.full_like(new, -torch.inf), torch.zeros_like(total)


def _nothing_left(inputs, value):
    """That, or NaN for 0 / 0."""
    want = _empty_for_all(*inputs.values())
    if not _tensors(value, [X.shape for X in want]):
        return False
    output = value[0].nan_to_num() if not want[2].any() else value[0]
    return bool(_parts_near((output, *value[1:]), want).all())


def _empty_if_anywhere(outputs, largest, totals):
    """A query that sees no key of some part gets what belongs to one that sees none at all."""
    output, new, total = build_merge()(outputs, largest, totals)
    empty = (totals == 0).any(0)
    return (
        output.masked_fill(empty[:, None], 0.0),
        new.masked_fill(empty, -torch.inf),
        total.masked_fill(empty, 0.0),
    )


def _weighted(weights):
    """The output comes of these weights of the parts; the rest is right."""

    def merge_parts(outputs, largest, totals):
        _, new, total = build_merge()(outputs, largest, totals)
        return (weights(totals, largest, new)[..., None] * outputs).sum(0), new, total

    return merge_parts


def _seen_by_any(*answers, where=None):
    """The `shows` of a mistake with several forms, for queries that see a key."""
    made = [seen_by(answer, where) for answer in answers]
    return lambda inputs, value: any(shows(inputs, value) for shows in made)


def _finite_without_keys(outputs, largest, totals):
    output, new, total = build_merge()(outputs, largest, totals)
    return output, _base(new), torch.where(total == 0, 1.0, total)


def _others_without_keys(inputs, value):
    """Numbers stand everywhere, and they are right for queries that see a key."""
    return seen_by(build_merge())(inputs, value) and not any(X.isnan().any() for X in value)


def _log_sum_exp(outputs, largest, totals):
    output, new, total = build_merge()(outputs, largest, totals)
    return output, new + total.log(), (total > 0).to(total.dtype)


def _per_query(totals):
    return totals / totals.sum(-1, keepdim=True)


def _over_queries(totals, largest, new):
    return torch.softmax(largest + totals.log(), -1).nan_to_num()


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
        shows=_seen_by_any(
            build_merge(factors=lambda largest, new: torch.ones_like(largest)),
            _weighted(lambda totals, *_: totals / totals.sum(0)),
        ),
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
    "one-part-for-the-largest": known(
        "You take the largest score of one part, the first or the last, for that of all.",
        "Any of the parts may have it. With large scores exp overflows then.",
        section=ONE_PASS,
        **any_of(build_merge, largest_of=(lambda largest: largest[0], lambda largest: largest[-1])),
    ),
    "total-not-corrected": known(
        "Your output is made of corrected totals. The total that you return is the sum of the "
        "totals as they come in.",
        "It has to be measured against the new largest score, so that the result can be merged "
        "once more.",
        section=ONE_PASS,
        wrong=lambda outputs, largest, totals: (
            *build_merge()(outputs, largest, totals)[:2],
            totals.sum(0),
        ),
    ),
    "nothing-subtracted": known(
        "Somewhere you take exp of a largest score as it is.",
        "It overflows above 709 in float64, and far below 0 all of it is 0. Only differences of "
        "the largest scores may go into exp.",
        section=ONE_PASS,
        wrong=_overflown,
        shows=_overflows,
    ),
    "output-weights-not-corrected": known(
        "The new total is corrected. The weights of the outputs are not.",
        "Each output counts with its total, and that has to be measured against the new largest "
        "score in both places.",
        section=ONE_PASS,
        weigh=lambda outputs, totals, factors: outputs * totals[..., None],
    ),
    "total-of-factors": known(
        "Your new total is the sum of exp(largest − new largest), without the old totals.",
        "The total of a part is a sum over its keys. The correction multiplies it, and does not "
        "take its place.",
        section=ONE_PASS,
        total_of=lambda totals, factors: factors.sum(0),
    ),
    "divided-by-uncorrected-totals": known(
        "Your new total is the sum of the totals as they come in.",
        "They are measured against different scores. Numerator and denominator need the same "
        "correction.",
        section=ONE_PASS,
        total_of=lambda totals, factors: totals.sum(0),
    ),
    "one-largest-for-all-queries": known(
        "You take one largest score for all queries.",
        "Each query has its own. Which axis counts the parts, and has to go?",
        section=ONE_PASS,
        largest_of=lambda largest: largest.amax().expand(largest.shape[1:]),
        shows=_one_for_all,
    ),
    "old-parts-not-corrected": known(
        "Each part is measured against the largest score up to it, and is not corrected when a "
        "larger one comes later.",
        "When a larger score arrives, what was put together so far has to be corrected, too. If "
        "you do correct it: is the old largest score overwritten before you use it?",
        section=ONE_PASS,
        wrong=_in_a_loop(output_corrected=False, total_corrected=False),
    ),
    "old-output-not-corrected": known(
        "Going from part to part, you correct the total, and not the output put together so far.",
        "That output was measured against the old largest score, like the total.",
        section=ONE_PASS,
        wrong=_in_a_loop(output_corrected=False),
    ),
    "old-total-not-corrected": known(
        "Going from part to part, you correct the output, and not the total put together so far.",
        "That total was measured against the old largest score, like the output.",
        section=ONE_PASS,
        wrong=_in_a_loop(total_corrected=False),
    ),
    "largest-not-updated": known(
        "Going from part to part, you measure what came before against the largest score of the "
        "first part.",
        "It was corrected in the step before, so it is measured against the largest score of all "
        "parts until then. With two parts nobody notices. Do you keep that score for the next "
        "step?",
        section=ONE_PASS,
        wrong=_never_updated(torch.Tensor.amax),
        shows=_seen_by_any(
            _never_updated(torch.Tensor.amax),
            _never_updated(lambda largest, axis: largest[0]),
            where=_without_keys_somewhere,
        ),
    ),
    "divided-in-each-step": known(
        "Going from part to part, you divide in each step, and take the result for a sum in the "
        "next.",
        "An output that was divided has to be multiplied by its total before it is added to "
        "another one.",
        wrong=_in_a_loop(divided=True),
    ),
    "first-two-parts": known(
        "You merge two parts and leave out the others.",
        "There can be any number of them, P.",
        wrong=lambda outputs, largest, totals: build_merge()(outputs[:2], largest[:2], totals[:2]),
    ),
}


def _two_parts(outputs, largest, totals):
    pairs = ((X[0], X[1]) for X in (outputs, largest, totals))
    return build_merge()(*map(torch.stack, pairs))


# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "nan-without-keys": known(
        "NaN comes up for queries that see no key in some of the parts, or in all.",
        "Their largest score is −inf there, and −inf − (−inf) is NaN. Their total is 0, and 0 / 0 "
        "is NaN. What is added to NaN is NaN, too. The task says what a query without keys gets.",
        factors=lambda largest, new: torch.exp(largest - new),
        divide=lambda outputs, summed, total: summed / total[..., None],
        shows=_nan_without_keys,
    ),
    "largest-alone": known(
        "You weight the outputs by exp(largest − new largest), divided by the sum of these: a "
        "softmax of the largest scores.",
        "That leaves the totals out: a part with many keys near its largest score counts for more "
        "than one with few. The totals belong in the numerator and the denominator.",
        weigh=lambda outputs, totals, factors: outputs * (factors / factors.sum(0))[..., None],
        divide=lambda outputs, summed, total: summed,
    ),
    "weights-over-queries": known(
        "Your weights sum to 1 over the queries, not over the parts.",
        "Each query shares itself out among the parts, and queries have nothing to do with each "
        "other. Which axis counts the parts?",
        wrong=_weighted(_over_queries),
        shows=_seen_by_any(
            _weighted(_over_queries),
            _weighted(lambda t, m, new: _per_query(t * torch.exp(m - _base(new)))),
            _weighted(lambda t, m, new: _per_query(t)),
            _weighted(lambda t, m, new: m.softmax(-1).nan_to_num()),
        ),
    ),
    "number-for-minus-inf": known(
        "You put a number such as 0 or −1000 in the place of −inf, start with it, or let the "
        "largest score not be below it. The scores of a query can all be below it.",
        "Then it is taken for their largest, and exp of every difference is 0. Which number is "
        "below every score?",
        section=ONE_PASS,
        largest_of=lambda largest: largest.amax(0).clamp(min=-1000.0),
        shows=_below_a_number,
    ),
    "log-sum-exp-for-the-largest": known(
        "Your output is right. In place of the largest score and the total you return the "
        "logarithm of the sum of all exps, and 1.",
        "FlashAttention keeps that one number, and it says as much. Asked for are the two that "
        "come in: the largest score, and the total measured against it.",
        wrong=_log_sum_exp,
    ),
    "another-three-without-keys": known(
        "All is right but for a query that sees no key in any part.",
        "The task says which three numbers belong to it: those of a part in which it sees no key.",
        wrong=_finite_without_keys,
        shows=_others_without_keys,
    ),
    "no-keys-in-one-part": known(
        "A query that sees no key of one part gets what belongs to a query that sees none at all.",
        "In another part it may see keys, and these count. Of how many parts does it have to be "
        "true, of any or of all?",
        wrong=_empty_if_anywhere,
        shows=like(_empty_if_anywhere),
    ),
    "part-left-out-for-all": known(
        "If one query sees no key of a part, all queries lose: either you leave this part out for "
        "all of them, or you return what belongs to queries without keys.",
        "Other queries may see keys of this part, and these count. Each query has a largest score "
        "and a total of its own.",
        wrong=_empty_for_all,
        shows=_nothing_left,
    ),
    "two-parts-always": known(
        "You merge part 0 and part 1: others are left out, and with one part there is an error.",
        "There can be any number of them, P.",
        wrong=_two_parts,
    ),
    "results-in-another-order": known(
        "You return the three in another order.",
        "The task asks for the output, then the largest score, then the total.",
        give=lambda output, largest, total: (output, total, largest),
    ),
}

# Queries without keys tell nothing of these: what they get has many ways to go wrong.
for _known in (MISTAKES, ALONE):
    for _id, _mistake in _known.items():
        if not _mistake.shows and _id != "two-parts-always":  # which raises in one case
            _answer = _mistake.wrong or build_merge(**_mistake.parts)
            _known[_id] = replace(_mistake, shows=seen_by(_answer))


@total
def examine_merge(inputs, merged):
    """The three results. Raises: AnswerError where next to nothing stands in the place of 0."""
    unseen = (inputs["totals"] == 0).all(0)
    given = merged[2] if isinstance(merged, tuple) and len(merged) == 3 else None
    if is_floats(given, unseen.shape) and bool(unseen.any()):
        largest = given[unseen].abs().max().item()
        if 0 < largest < 1e-3:
            raise AnswerError(
                f"A query without keys in any part gets the total {largest:.3g}, and 0 is asked "
                "for. Is something small added, or a lower bound set?"
            )
    return merged


TASK = Task(
    "09-merge_parts",
    build_merge(),
    merge_cases,
    examine=examine_merge,
    returns=("the output", "the largest score", "the total"),
    mistakes=read_again(TILES, ALONE | MISTAKES),
    build=build_merge,
    stages=merge_stages,
    alone=tuple(ALONE),
    number=2,
)
