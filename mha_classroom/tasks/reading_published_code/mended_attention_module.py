"""Task 11.3, MendedAttention: right numbers, and nothing learns; repaired."""

import itertools

import torch
from torch import nn

from mha_classroom.checks.examining import is_floats, total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.task import AnswerError, Case, Task, in_float32, known, read_again
from mha_classroom.tasks.reading_published_code.mended_step import (
    LARGE_EXPS,
    TOO_LARGE,
)
from mha_classroom.tasks.reading_published_code.runs import run_learning


def learning_cases(draw):
    def case(name, B, L, H, d, scale=1.0, **more):
        width = H * d
        weights = {
            f"heads.{h}.weight": draw.normal(3 * d, width, scale=width**-0.5) for h in range(H)
        }
        weights["W_o.weight"] = draw.normal(width, width, scale=width**-0.5)
        X = draw.normal(B, L, width, scale=scale)
        return Case(name, {"num_heads": H, **weights, "X": X} | more)

    return [
        case("1 sequence, 2 heads of width 2", 1, 3, 2, 2),
        case("2 sequences of 5 words, 3 heads of width 4", 2, 5, 3, 4),
        case("one head, in eval mode", 3, 4, 1, 5, training=False),
        case("4 heads of width 3", 2, 6, 4, 3),
        in_float32(whole(case("one word, numbers in float32", 2, 1, 2, 3))),
        case("heads of width 1", 2, 3, 4, 1),
        case("scores in the thousands", 2, 5, 2, 3, scale=50.0),
    ]


def whole(case):
    """The same with whole numbers, whose sums are not rounded in any order."""
    numbers = {n: (2 * X).round() for n, X in case.inputs.items() if torch.is_tensor(X)}
    return Case(case.name, case.inputs | numbers)


def _of_whom(inputs, shape):
    """What a parameter is that nobody asked for."""
    width = inputs["X"].shape[2]
    if shape == [3 * width, width] and inputs["num_heads"] > 1:
        return "is one matrix for all heads, and each head needs one of its own."
    return "is none of the names that are asked for."


SEES = "An optimiser sees only these."


@total
def examine_learning(inputs, seen):
    """The output and the gradients: of the heads' rows for queries, for keys, for values; of W_o.

    Raises: AnswerError naming what is missing among the parameters, or has no gradient.
    """
    wanted = {name: list(X.shape) for name, X in inputs.items() if name.endswith(".weight")}
    missing = [name for name in wanted if name not in seen["shapes"]]
    if missing:
        others = [name for name in seen["shapes"] if name not in wanted]
        raise AnswerError(
            f"The module has no parameter {missing[0]}. Its parameters: "
            f"{', '.join(seen['shapes']) or 'none'}. "
            + (f"{others[0]} {_of_whom(inputs, seen['shapes'][others[0]])}" if others else SEES)
        )
    more = [name for name in seen["shapes"] if name not in wanted]
    if more:
        raise AnswerError(
            f"The module has parameters that nobody asked for: {', '.join(more)}. It should have "
            "one matrix for each head, and W_o."
        )
    if seen["shapes"] != wanted:
        name = next(name for name in wanted if seen["shapes"][name] != wanted[name])
        raise AnswerError(
            f"{name} has the shape {tuple(seen['shapes'][name])}, expected {tuple(wanted[name])}."
        )
    gradients = seen["gradients"]
    without = [n for n in wanted if not is_floats(gradients.get(n), inputs[n].shape)]
    if len(without) == len(wanted):
        output = seen.get("output")
        raise AnswerError(
            "forward returns nothing."
            if output is None
            else f"forward returns a {type(output).__name__}, and a tensor is asked for."
            if not torch.is_tensor(output)
            else "After backward() no parameter has a gradient. Does all of forward run under "
            "no_grad, or is its result cut off?"
        )
    if without:
        raise AnswerError(
            f"After backward() there is no gradient in {', '.join(without)}, so training never "
            f"changes {'them' if len(without) > 1 else 'it'}. Is the way from there to the output "
            "cut off, by .data, detach, no_grad or a copy of plain numbers? Or is it not used?"
        )
    *heads, joins = (gradients[name] for name in wanted)
    by_role = torch.stack(heads).chunk(3, dim=1)  # each (H, d, d_model)
    return seen["output"], *by_role, joins


def module_stages(inputs):
    *heads, W_o, X = (X for X in inputs.values() if torch.is_tensor(X))
    packed = torch.stack([X @ W.T for W in heads])  # (H, B, L, 3 d)
    q, k, v = packed.chunk(3, dim=-1)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    joined = (weights @ v).movedim(0, 2).flatten(2)
    return {
        "the product of X with each head's matrix": packed,
        "the divided scores": scores,
        "the weights": weights,
        "each head's output": weights @ v,
        "the joined heads": joined,
        "the output": joined @ W_o.T,
    }


def build_module(
    keep=nn.ModuleList,
    query=lambda q: q,
    key=lambda k: k,
    weigh=lambda scores: scores.softmax(-1),
    scale=lambda d, H: d**0.5,
    use=lambda weights: weights,
    value=lambda v: v,
    cut=lambda X: X.chunk(3, -1),
    parts=(0, 1, 2),
    bias=False,
    join=lambda outputs: torch.cat(outputs, -1),
):
    class MendedAttention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            d = d_model // num_heads
            made = [
                nn.Linear(d_model, 3 * d, bias=bias in (True, "heads")) for _ in range(num_heads)
            ]
            self.heads = keep(made)
            self.W_o = nn.Linear(d_model, d_model, bias=bias in (True, "W_o"))

        def double(self):
            super().double()
            for head in self.heads:
                head.double()
            return self

        def forward(self, X):
            outputs = []
            for head in self.heads:
                three = cut(head(X))
                q, k, v = (three[part] for part in parts)
                weights = weigh(query(q) @ key(k).mT / scale(q.shape[-1], len(self.heads)))
                outputs.append(use(weights) @ value(v))
            return self.W_o(join(outputs))

    return MendedAttention


GRADIENT = "Five survive the best test"
USED = "Text B: the shape is right"


def _learned(answer, inputs):
    return examine_learning(inputs, run_learning(answer, inputs))


def _any_of(*choices):
    return any_of(build_module, *choices, run=_learned)


def _sum_cut_off(maximum_too):
    def weigh(scores):
        largest = scores.amax(-1, keepdim=True)
        powers = (scores - (largest.detach() if maximum_too else largest)).exp()
        return powers / powers.sum(-1, keepdim=True).detach()

    return weigh


def _heads_in_front(outputs):
    stacked = torch.stack(outputs, 1)  # (B, H, L, d)
    B, H, L, d = stacked.shape
    return stacked.reshape(B, L, H * d)


MODULE = {
    "heads-in-a-list": known(
        "The heads are no parameters of the new module. Are they in a Python list, as in the found "
        "class, or in a tuple or a dict? Are their matrices plain tensors, or made only when it is "
        "called? Or is an nn.ModuleList left empty, or not put into self?",
        "A module looks for its parameters in attributes that are modules, and a list is none. "
        "Print the names of the parameters: whatever is missing there, no optimiser sees, and no "
        "file of weights holds. (Once the parameters are there, their gradients are looked at.)",
        section="Text B: the shape is right",
        keep=list,
    ),
    "weights-cut-off": known(
        "The rows that make queries and keys have a gradient of 0: it stops at the attention "
        "weights, at the scores, or at queries and keys.",
        "The output is right to the last digit. But .data, detach and no_grad give the numbers "
        "without how they came about, so training cannot change where a head looks.",
        use=torch.detach,
    ),
    "sum-cut-off": known(
        "In a softmax of your own the sum that you divide by, or its logarithm, is cut off, by "
        "detach, .data or no_grad.",
        "The output is right. But the sum hangs on the scores as well: the gradient has to go "
        "through both parts of the fraction.",
        **_any_of({"weigh": _sum_cut_off(False)}, {"weigh": _sum_cut_off(True)}),
    ),
    "one-cut-off": known(
        "The gradient stops at the values, the keys or the queries, or at two of them: the rows "
        "that make them have a gradient of 0.",
        ".data, detach and no_grad give the numbers without how they came about.",
        **_any_of(
            {"value": torch.detach},
            {"key": torch.detach},
            {"query": torch.detach},
            {"value": torch.detach, "key": torch.detach},
            {"value": torch.detach, "query": torch.detach},
        ),
    ),
    "heads-shared": known(
        "There is one layer for all of your heads.",
        "[layer] * num_heads puts one layer into the list many times, and a list made anew in each "
        "turn of a loop keeps the last one only. Each head needs its own.",
        section=USED,
        keep=lambda made: nn.ModuleList([made[0]] * len(made)),
    ),
    "not-scaled": known(
        "The scores are not divided by the root of the width of a head.",
        "That line was right in the found class.",
        section=USED,
        scale=lambda d, H: 1.0,
    ),
    "thirds-in-another-order": known(
        "Queries, keys and values come in another order from the rows of a head.",
        "The first third makes queries, the second one keys, the last one values, as in the found "
        "class.",
        section=USED,
        **_any_of(
            *({"parts": parts} for parts in sorted(itertools.permutations(range(3)))[1:]),
            {"cut": lambda X: X.unflatten(-1, (-1, 3)).unbind(-1)},
        ),
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than the root of the width of a head.",
        "A score is a sum of d products, where d is the width of one head. That line was right in "
        "the found class.",
        section="Equal sizes hide mistakes",
        **_any_of(
            {"scale": lambda d, H: (d * H) ** 0.5},
            {"scale": lambda d, H: d},
            {"scale": lambda d, H: H**0.5},
        ),
    ),
    "heads-in-another-order": known(
        "The heads are joined in another order: the last one first, or feature by feature.",
        "Head 0 gives the first d features that W_o gets. The last line of the found class was "
        "right.",
        section=USED,
        **_any_of(
            {"join": lambda outputs: torch.cat(outputs[::-1], -1)},
            {"join": lambda outputs: torch.stack(outputs, -1).flatten(2)},
        ),
    ),
    "heads-joined-across-words": known(
        "The heads are put in front of the words, and joined without moving them behind.",
        "A row of the result holds one word, with what all heads found for it side by side. The "
        "last line of the found class was right.",
        section=USED,
        join=_heads_in_front,
    ),
    "exp-too-large": known(
        *TOO_LARGE,
        section="Tests that people write",
        **_any_of(*({"weigh": weigh} for weigh in LARGE_EXPS)),
    ),
    "softmax-over-queries": known(
        "Your weights sum to 1 over the queries.",
        "Each query shares out one unit of attention among the keys.",
        section=USED,
        weigh=lambda scores: scores.softmax(-2),
    ),
}


PAIRED = (  # the rest hides other mistakes, or is seldom made
    *("weights-cut-off", "not-scaled"),
    *("scaled-by-something-else", "thirds-in-another-order", "softmax-over-queries"),
)

TASK = Task(
    "11-MendedAttention",
    build_module(),
    learning_cases,
    run=run_learning,
    examine=examine_learning,
    returns=(
        "the output",
        *(f"the gradient of each head's rows for {role}" for role in ("queries", "keys", "values")),
        "the gradient of W_o.weight",
    ),
    kind="class",
    mistakes=read_again(GRADIENT, MODULE),
    build=build_module,
    stages=module_stages,
    alone=tuple(id for id in MODULE if id not in PAIRED),
    number=3,
)
