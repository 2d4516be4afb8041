"""Which step of an answer is the first that differs, seen in the tensors that it computes."""

import contextlib
import itertools

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from mha_classroom.checks.compare import FLOAT32_TOLERANCE
from mha_classroom.checks.outcome import observe, observe_known
from mha_classroom.checks.showing import listed

__all__ = ["Recorder", "computed_tensors", "first_wrong_stage", "through_float32"]
MOST = 4000  # tensors kept of one run
FEW = 100  # pieces that a loop may compute one by one
NEARLY = 1e-2  # so far off may be what scores of some thousand lose in float32
OTHERS = 2  # cases that have to agree with the failing one


def first_wrong_stage(task, answer, cases, outcomes, failing, computed=None):
    """Return (the last stage that is right or None, the first that is not or None), or None.

    Without a stage that is not there, something after the last one changes the numbers. None is
    returned where nothing can be said.

    A stage counts as reached if the answer computes a tensor of the same numbers, whatever the
    order of its axes (heads in front, transposed), or pieces that make it up (a loop over heads or
    words), in the failing case and in others. What happens to equal an input or an earlier stage
    is left out of account. Of another case that an error cut off, only what is there counts, not
    what is missing. Of a stage that is there in the failing case it is said where it is not.
    Of a task whose stages are skippable, what is missing is never named.
    computed: gives the tensors that the answer computes on a case, by index and case, or None if
    they are not known. Unless told the answer is run for them.
    """
    if task.stages is None or not (task.skippable or _one_run(task, cases[failing])):
        return None
    computed = computed or (lambda _, case: computed_tensors(task, answer, case))
    chosen = [failing, *_others(task, cases, outcomes, failing)]
    tensors = [computed(index, cases[index]) for index in chosen]
    if any(seen is None for seen in tensors):
        return None
    here, *elsewhere = (
        _stages_seen(task, seen, cases[index]) for index, seen in zip(chosen, tensors, strict=True)
    )
    if not here:  # nothing was computed with tensors
        return None
    for place, index in enumerate(chosen[1:]):
        if outcomes[index].error is not None:  # what would come after the error says nothing
            elsewhere[place] = {n: there for n, there in elsewhere[place].items() if there}
    right = wrong = None
    for group in task.stages(cases[failing].inputs).items():
        names = [name for name in _flat(dict([group])) if name in here]
        too = {name: [stages[name] for stages in elsewhere if name in stages] for name in names}
        reached = [name for name in names if here[name] and too[name] and all(too[name])]
        missing = [name for name in names if not here[name] or not all(too[name])]
        if reached:
            # What comes before need not appear as it is: there are other ways to get here.
            right, wrong = listed(reached), next(iter(missing), None)
        elif wrong is None:
            wrong = next(iter(missing), None)
    if task.skippable:
        return (right, None) if right else None
    if wrong and here[wrong]:
        others = zip(chosen[1:], elsewhere, strict=True)
        where = [cases[index].name for index, stages in others if not stages.get(wrong, True)]
        if where:
            wrong += f', in "{where[0]}"'
    elif wrong and all(
        _in_another_order(task, wrong, seen, cases[index])
        for index, seen in zip(chosen, tensors, strict=True)
    ):
        wrong += " (their numbers are all there, in another order)"
    return (right, wrong) if right or wrong else None


def _in_another_order(task, stage, seen, case):
    want = _flat(task.stages(case.inputs)).get(stage)
    if want is None:  # no stage of this case
        return True
    # Few different numbers, as in weights of 0 and 1, may be there by chance.
    various = 2 * want.unique().numel() > want.numel()
    return various and _Shelf(seen, task.tolerance).holds_numbers_of(want)


def _one_run(task, case):
    """Whether an answer is run once for a case: else a stage could be that of another run."""
    return isinstance(observe_known(task, task.reference, case).value, (torch.Tensor, tuple, list))


def _others(task, cases, outcomes, failing):
    """Where the largest other cases are, preferably those that the answer comes to the end of."""
    able = [i for i in range(len(cases)) if i != failing]
    able = [i for i in able if task.skippable or _one_run(task, cases[i])]
    sizes = [sum(X.numel() for X in c.inputs.values() if torch.is_tensor(X)) for c in cases]
    largest = sorted(able, key=lambda i: sizes[i], reverse=True)
    ended = (i for i in largest if outcomes[i].error is None)
    return list(itertools.islice(ended, OTHERS)) or largest[:OTHERS]


def computed_tensors(task, answer, case):
    """What an answer computes on the way on a case: a list of tensors."""
    with Recorder() as recorder:
        observe(task, answer, case)
    return recorder.seen


def through_float32(task, difference, case, computed):
    """Whether a result is nearly right, and a stage of it was computed in float32, although
    nothing that was given is in float32.

    difference: of the result, as `compare` gives it. computed: gives the tensors that the answer
    computes on the case, or None if they are not known.
    """
    if not getattr(difference, "tensors", None) or task.stages is None:
        return False
    want, have = difference.tensors
    given = [X for X in case.inputs.values() if torch.is_tensor(X)]
    if have.shape != want.shape or any(X.dtype == torch.float32 for X in given):
        return False
    near = (have.double() - want.double()).abs() <= NEARLY * want.abs().clamp(min=1)
    if not near.all():
        return False
    in_float32 = [X for X in computed(case) or () if X.dtype == torch.float32]
    stages = _flat(task.stages(case.inputs)).values()
    return any(_Shelf(in_float32, task.tolerance).holds(X) for X in stages if not _is_bare(X))


def _is_bare(X):
    """Whether it holds nothing but zeros and ones, which are found anywhere."""
    return bool(((X == 0) | (X == 1)).all())


def _stages_seen(task, seen, case):
    """{stage: whether it is among the tensors that were seen}, without those that cannot be told
    from others."""
    earlier = [X for X in case.inputs.values() if torch.is_tensor(X)]
    given, found = _Shelf(earlier, task.tolerance), {}
    computed = _Shelf([X for X in seen if not given.holds(X)], task.tolerance)
    if not computed.flat:
        return {}
    for name, want in _flat(task.stages(case.inputs)).items():
        known = _Shelf(earlier, task.tolerance)
        if not known.holds(want):
            by_numbers = not known.holds_numbers_of(want)
            bare = _is_bare(want)  # of its rows nothing can be said, only of the whole
            if bare and not all(found.values()):
                continue  # zeros may come without the steps that should lead there
            ways = [[want]] if bare else list(_pieces(want, by_numbers))
            held = [pieces for pieces in ways if _all_held(pieces, computed, given)]
            # Where all pieces are equal, one alone may have been computed: nobody can tell.
            sure = any(len(pieces) == 1 or _differ(pieces) for pieces in held)
            if sure or not (bare or held):
                found[name] = sure
        earlier.append(want)
    return found


def _all_held(pieces, computed, given):
    """Whether all pieces were computed; of some nobody can tell, because they equal an input."""
    there = [computed.holds(piece) for piece in pieces]
    pairs = zip(pieces, there, strict=True)
    return any(there) and all(held or given.holds(piece) for piece, held in pairs)


def _differ(pieces):
    return any(not torch.equal(pieces[0], piece) for piece in pieces[1:])


def _flat(stages):
    """Tensors that are made side by side stand in a dict of their own."""
    flat = {}
    for name, want in stages.items():
        flat |= want if isinstance(want, dict) else {name: want}
    return flat


class Recorder(TorchFunctionMode):
    """Keeps in `seen` the tensors of numbers that torch's functions return.

    Of scaled_dot_product_attention also the steps that it takes inside.
    """

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is scaled_dot_product_attention:
            with contextlib.suppress(Exception), torch.no_grad():
                self._keep(_inside(*args, **(kwargs or {})))
        made = args[0] if func is torch.Tensor.__setitem__ else result
        self._keep(made if isinstance(made, (tuple, list)) else (made,))
        return result

    def _keep(self, made):
        for X in made:
            if torch.is_tensor(X) and X.is_floating_point() and len(self.seen) < MOST:
                self.seen.append(X.detach().clone())


def _inside(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
    """The scores, those with the mask, and the weights of scaled_dot_product_attention.

    Source: the pseudocode in PyTorch's documentation of the function.
    """
    scale = options.get("scale")
    if options.get("enable_gqa"):
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is None:
        masked = scores
    elif attn_mask.dtype == torch.bool:
        masked = scores.masked_fill(~attn_mask, -torch.inf)
    else:
        masked = scores + attn_mask
    return scores, masked, masked.softmax(-1)


def _pieces(want, by_numbers):
    """Ways to cut a tensor up, as a loop does: not at all, head by head, word by word."""
    yield [want]
    cuts = [want.unbind(axis) for axis in range(want.dim())]
    cuts += [want.flatten(0, last).unbind() for last in range(1, want.dim())]
    for pieces in cuts:
        if 1 < len(pieces) <= FEW and (by_numbers or pieces[0].numel() > 1):
            yield pieces


class _Shelf:
    """Tensors, kept by how many numbers they hold."""

    def __init__(self, tensors, tolerance):
        self.tolerance, groups = tolerance, {}
        for X in tensors:
            groups.setdefault(X.numel(), []).append(X)
        self.near = {count: self._tolerances(group) for count, group in groups.items()}
        self.flat = {
            count: torch.stack([X.double().flatten() for X in group])
            for count, group in groups.items()
        }
        self.sorted = {count: group.sort(-1).values for count, group in self.flat.items()}

    def _tolerances(self, tensors):
        return torch.tensor(
            [[FLOAT32_TOLERANCE if X.dtype == torch.float32 else self.tolerance] for X in tensors]
        )

    def holds(self, want):
        """Whether one of them holds the numbers of `want` with its axes in any order."""
        alike = self._alike(want)
        if not alike.any():
            return False
        flat, near = self.flat[want.numel()][alike], self.near[want.numel()][alike]
        orders = itertools.permutations(range(want.dim()))
        return any(_close(flat, want.permute(order), near).any() for order in orders)

    def holds_numbers_of(self, want):
        """Whether one of them holds the numbers of `want` in whatever order."""
        return bool(self._alike(want).any())

    def _alike(self, want):
        if want.numel() not in self.sorted:
            return torch.tensor([False])
        rows, near = self.sorted[want.numel()], self.near[want.numel()]
        return _close(rows, want.flatten().sort().values, near)


def _close(rows, want, near):
    want = want.double().flatten()
    off = (rows - want).abs() / want.abs().clamp(min=1)
    return ((rows == want) | (off <= near)).all(-1)
