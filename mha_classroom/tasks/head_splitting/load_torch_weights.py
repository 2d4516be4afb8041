"""Task 4.5, load_torch_weights: PyTorch's weights in the learner's module."""

import itertools

import torch
from torch import nn

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.head_splitting.runs import (
    BEFORE,
    FROZEN,
    FourProjections,
    modes_before,
    run_loading,
)
from mha_classroom.tasks.head_splitting.split_packed import PACKED


def load_torch_weights(attention, reference):
    with torch.no_grad():
        for kind in ("weight", "bias"):
            packed = getattr(reference, f"in_proj_{kind}")
            if packed is not None:
                for name, part in zip(("W_q", "W_k", "W_v"), packed.chunk(3), strict=True):
                    attention.get_parameter(f"{name}.{kind}").copy_(part)
                attention.get_parameter(f"W_o.{kind}").copy_(getattr(reference.out_proj, kind))


@and_in_float32
def loading_cases(draw):
    cases = []
    for bias, name in (
        (True, "with biases"),
        (False, "without biases, reference is in eval mode"),
        (True, "attention is in eval mode, W_k, the matrix of W_o and reference are frozen"),
        (True, "biases of 0, as PyTorch makes them, reference is in eval mode"),
    ):
        width, num_heads = (6, 3) if bias else (8, 2)
        inputs = {"num_hiddens": width, "num_heads": num_heads}
        inputs["in_proj_weight"] = draw.normal(3 * width, width)
        inputs["out_proj.weight"] = draw.normal(width, width)
        if bias:
            factor = 0.0 if "of 0" in name else 1.0
            inputs["in_proj_bias"] = factor * draw.normal(3 * width)
            inputs["out_proj.bias"] = factor * draw.normal(width)
        if "reference is in eval mode" in name:
            inputs["reference in eval mode"] = True
        if "frozen" in name:
            inputs["frozen"] = True
        cases.append(Case(name, inputs))
    return cases


@total
def examine_loading(inputs, seen):
    """The weights that arrived.

    Raises: AnswerError if reference is not left as it was, if attention has other parameters or
        cannot be trained afterwards, if nothing arrives, or if the two share memory.
    """
    made = FourProjections(inputs["num_hiddens"], "in_proj_bias" in inputs)
    names = [name for name, _ in made.named_parameters()]
    after = seen["attention"]["numbers"]
    if sorted(after) != sorted(names):
        listed = ", ".join(after) or "none"
        raise AnswerError(f"Afterwards attention has other parameters than before: {listed}.")
    frozen = inputs.get("frozen", False)
    _check_reference(seen["reference"], inputs)
    of_reference = seen["reference"]["numbers"] if frozen else ()
    changed = [
        *_modes_changed(seen, inputs),
        *_trainable_changed(seen["reference"], "reference", of_reference),
        *_trainable_changed(seen["attention"], "attention", FROZEN if frozen else ()),
    ]
    if seen["gradients"] is not True:
        changed.append("gradients are switched off everywhere, so that nothing can be trained")
    if changed:
        raise AnswerError(
            f"Afterwards {'. And '.join(changed)}. Loading weights changes numbers and nothing "
            "else."
        )
    if all(bool((X == BEFORE).all()) for X in after.values()):
        raise AnswerError(
            "All parameters of attention are as they were: nothing arrives. A line such as w = "
            "reference.in_proj_weight only gives a name to a tensor. A copy of attention that is "
            "filled and returned leaves the one that was passed in as it was. load_state_dict with "
            "strict=False passes over names that attention does not have. Numbers have to be "
            "written into the tensors that it has."
        )
    if not all(equal(seen["numbers in the end"][name], X) for name, X in after.items()):
        raise AnswerError(
            "attention and reference share memory afterwards: when the numbers of reference are "
            "changed, those of attention change too."
        )
    return {name: after[name] for name in names}


def _check_reference(state, inputs):
    wanted = {name: X for name, X in inputs.items() if torch.is_tensor(X)}
    names = [*state["numbers"], *(n for n in wanted if n not in state["numbers"])]
    changed = [n for n in names if not equal(state["numbers"].get(n), wanted.get(n))]
    if changed:
        raise AnswerError(
            f"Afterwards reference holds other numbers than before, in {' and '.join(changed)}. It "
            "has to be left as it is: numbers go from reference into attention."
        )


def _modes_changed(seen, inputs):
    trained = modes_before(inputs)
    for mode in (True, False):
        others = [n for n in trained if trained[n] is mode and seen[n]["training"] is not mode]
        if others:
            now, before = ("eval", "training") if mode else ("training", "eval")
            are, were = ("are", "they were") if len(others) > 1 else ("is", "it was")
            yield f"{' and '.join(others)} {are} in {now} mode, and before {were} in {before} mode"


def _trainable_changed(state, module, frozen_before):
    """frozen_before: the names of the parameters that were not trainable."""
    before = {name: name not in frozen_before for name in state["numbers"]}
    after = {name: state["trainable"].get(name) for name in before}
    frozen = [name for name in before if before[name] and after[name] is not True]
    if frozen:
        names = ", ".join(frozen)
        yield f"{module} cannot be trained as before: requires_grad is False for {names}"
    thawed = [name for name in before if not before[name] and after[name] is not False]
    if thawed:
        names = ", ".join(thawed)
        yield (
            f"{module} has trainable parameters that were frozen before (requires_grad=False): "
            f"{names}"
        )


def _by_head(packed, H):
    """Queries, keys and values of head 0, then those of head 1, and so on."""
    parts = packed.unflatten(0, (H, 3, -1))
    return [parts[:, i].flatten(0, 1) for i in range(3)]


def build_loading(
    cut=lambda packed, H: packed.chunk(3),
    cut_bias=None,
    order=(0, 1, 2),
    bias_order=None,
    turn_in=unchanged,
    turn_out=unchanged,
    in_bias=True,
    out_bias=True,
    out_weight=True,
):
    def load_torch_weights(attention, reference):
        H, W_o, out_proj = reference.num_heads, attention.W_o, reference.out_proj
        linears = (attention.W_q, attention.W_k, attention.W_v)
        with torch.no_grad():
            parts = cut(reference.in_proj_weight, H)
            for linear, i in zip(linears, order, strict=True):
                linear.weight.copy_(turn_in(parts[i]))
            if out_weight:
                W_o.weight.copy_(turn_out(out_proj.weight))
            if reference.in_proj_bias is None:
                return
            biases = (cut_bias or cut)(reference.in_proj_bias, H)
            for linear, i in zip(linears, bias_order or order, strict=True):
                if in_bias:
                    linear.bias.copy_(biases[i])
            if out_bias:
                W_o.bias.copy_(out_proj.bias)

    return load_torch_weights


def _share(attention, reference):
    build_loading()(attention, reference)
    attention.W_q.weight.data = reference.in_proj_weight.data.chunk(3)[0]


def _copy_back(attention, reference):
    linears = (attention.W_q, attention.W_k, attention.W_v)
    with torch.no_grad():
        for kind in ("weight", "bias"):
            packed = getattr(reference, f"in_proj_{kind}")
            if packed is not None:
                packed.copy_(torch.cat([linear.get_parameter(kind) for linear in linears]))
                reference.out_proj.get_parameter(kind).copy_(attention.W_o.get_parameter(kind))


def _expecting_biases(cut):
    def load_torch_weights(attention, reference):
        build_loading(in_bias=False, out_bias=False)(attention, reference)
        linears = (attention.W_q, attention.W_k, attention.W_v)
        with torch.no_grad():
            d = reference.embed_dim
            for linear, bias in zip(linears, cut(reference.in_proj_bias, d), strict=True):
                linear.bias.copy_(bias)
            attention.W_o.bias.copy_(reference.out_proj.bias)

    return load_torch_weights


def _in_turn(packed, H):
    return [packed[i::3] for i in range(3)]


def _added(attention, reference):
    before = {name: X.clone().detach() for name, X in attention.named_parameters()}
    build_loading()(attention, reference)
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            parameter += before[name]


def _frozen_left_out(attention, reference):
    kept = {n: X.clone().detach() for n, X in attention.named_parameters() if not X.requires_grad}
    build_loading()(attention, reference)
    with torch.no_grad():
        for name, numbers in kept.items():
            attention.get_parameter(name).copy_(numbers)


def _new_parameters(attention, reference):
    build_loading()(attention, reference)
    for module in attention.children():
        for name, parameter in [*module.named_parameters()]:
            setattr(module, name, nn.Parameter(parameter.detach().clone()))


def _in_training(attention, reference):
    build_loading()(attention, reference)
    attention.train()


BY_HEAD = (
    "You take the rows of in_proj_weight head by head: queries, keys and values of head 0, "
    "then those of head 1.",
    "Some libraries pack them so. Here the queries of all heads come first.",
)
NAMES = ("queries", "keys", "values")
# For each of W_q, W_k and W_v, which third it gets.
COPIED_TWICE = {"W_k": (0, 0, 2), "W_v": (0, 1, 1), "W_q": (1, 1, 2)}
EXCHANGED = sorted(itertools.permutations(range(3)))[1:]


def _copied_twice(name, order):
    other = NAMES[order[("W_q", "W_k", "W_v").index(name)]]
    return (
        f"{name} got the weights of the {other}, which are in another matrix already.",
        "Each has a third of its own. Is a line copied where one name has not been changed?",
    )


IN_TURN = (
    "You take rows in turn: one for W_q, one for W_k, one for W_v.",
    "The three matrices stand below one another: all rows of the first come before those of the "
    "second.",
)

# Each way to cut None raises in words of its own.
CUTS = {
    "chunk": lambda bias, d: bias.chunk(3),
    "split": lambda bias, d: bias.split(d),
    "slices": lambda bias, d: (bias[:d], bias[d : 2 * d], bias[2 * d :]),
    "torch.chunk": lambda bias, d: torch.chunk(bias, 3),
}


def _cut_columns(attention, reference):
    with torch.no_grad():
        attention.W_q.weight.copy_(reference.in_proj_weight.chunk(3, dim=1)[0])


LOADING = {
    "weights-transposed": known(
        "You copy the transposes of the matrices.",
        "nn.Linear keeps (out, in), and so does in_proj_weight: nothing has to be turned.",
        turn_in=torch.t,
        turn_out=torch.t,
    ),
    "in_proj-transposed": known(
        "W_q, W_k and W_v got the transposes of their matrices. W_o is right.",
        "How does nn.Linear keep its numbers, and how are they kept in in_proj_weight? Where both "
        "say (out, in), nothing has to be turned.",
        turn_in=torch.t,
    ),
    "out_proj-transposed": known(
        "W_o got the transpose of its matrix.",
        "out_proj is an nn.Linear, and W_o is one too: both keep (out, in).",
        turn_out=torch.t,
    ),
    "keys-and-queries-swapped": known(
        "W_q got the weights of the keys and W_k those of the queries.",
        "in_proj_weight holds queries, keys and values in this order, from the top.",
        order=(1, 0, 2),
    ),
    "keys-and-values-swapped": known(
        "W_k got the weights of the values and W_v those of the keys.",
        "in_proj_weight holds queries, keys and values in this order, from the top.",
        order=(0, 2, 1),
    ),
    "queries-and-values-swapped": known(
        "W_q got the weights of the values and W_v those of the queries.",
        "in_proj_weight holds queries, keys and values in this order, from the top.",
        order=(2, 1, 0),
    ),
    "one-matrix-for-all": known(
        "W_q, W_k and W_v all got the same third of in_proj_weight.",
        "Each has a third of its own.",
        order=(0, 0, 0),
    ),
    **{
        f"wrong-third-in-{name}": known(
            *_copied_twice(name, order), wrong=build_loading(order=order)
        )
        for name, order in COPIED_TWICE.items()
    },
    **{
        f"wrong-third-in-{name}-biases-right": known(
            *_copied_twice(name, order), wrong=build_loading(order=order, bias_order=(0, 1, 2))
        )
        for name, order in COPIED_TWICE.items()
    },
    **{
        f"biases-exchanged-{'-'.join(NAMES[i] for i in order)}": known(
            "The matrices are right. The biases are taken in the order "
            f"{', '.join(NAMES[i] for i in order)}.",
            "in_proj_bias holds those of queries, keys and values, in this order.",
            wrong=build_loading(bias_order=order),
        )
        for order in EXCHANGED
    },
    **{
        f"matrices-exchanged-{'-'.join(NAMES[i] for i in order)}": known(
            "The biases are right. The matrices are taken in the order "
            f"{', '.join(NAMES[i] for i in order)}.",
            "in_proj_weight holds queries, keys and values in this order, from the top.",
            wrong=build_loading(order=order, bias_order=(0, 1, 2)),
        )
        for order in EXCHANGED
    },
    **{
        f"wrong-third-of-the-biases-in-{name}": known(
            f"The matrices are right. {name} got the bias of the "
            f"{NAMES[order[('W_q', 'W_k', 'W_v').index(name)]]}.",
            "Each has a third of its own. Is a line copied where one name has not been changed?",
            wrong=build_loading(bias_order=order),
        )
        for name, order in COPIED_TWICE.items()
    },
    "one-bias-for-all": known(
        "W_q, W_k and W_v all got the same third of in_proj_bias. The matrices are right.",
        "Each has a third of its own. Is a line copied where one name has not been changed?",
        wrong=build_loading(bias_order=(0, 0, 0)),
    ),
    "added": known(
        "You add the weights to those that are there.",
        "add_ and += keep what was there before. Numbers of attention are to be replaced.",
        wrong=_added,
    ),
    "frozen-left-out": known(
        "Frozen parameters of attention are as they were.",
        "Frozen means that training does not change them. They get their numbers like the others, "
        "and stay frozen.",
        wrong=_frozen_left_out,
    ),
    "frozen-become-trainable": known(
        "Frozen parameters of attention are trainable afterwards: you put new ones in their place, "
        "or you set requires_grad.",
        "nn.Parameter makes a parameter that is to be trained, unless it is told otherwise. Those "
        "of attention are there already: only their numbers have to change.",
        wrong=_new_parameters,
    ),
    "put-in-training-mode": known(
        "You put attention in training mode, also where it was in eval mode.",
        "Whoever calls your function decides about that. Loading weights changes numbers and "
        "nothing else.",
        wrong=_in_training,
    ),
    "packed-by-head": known(*BY_HEAD, cut=_by_head),
    "packed-by-head-biases-right": known(
        *BY_HEAD, wrong=build_loading(_by_head, lambda packed, H: packed.chunk(3))
    ),
    "rows-in-turn": known(*IN_TURN, cut=_in_turn),
    "rows-in-turn-biases-right": known(
        *IN_TURN, wrong=build_loading(_in_turn, lambda packed, H: packed.chunk(3))
    ),
    "cut-into-columns": known(
        "You cut in_proj_weight into columns.",
        "The three matrices stand below one another: which axis is three times as long as the "
        "other?",
        wrong=_cut_columns,
    ),
    "output-projection-forgotten": known(
        "W_o is as it was: out_proj is not copied.",
        "The heads would be joined by another matrix than in reference. There are four "
        "projections, and in_proj_weight holds three.",
        out_weight=False,
        out_bias=False,
    ),
    "out_proj-matrix-forgotten": known(
        "The matrix of W_o is as it was.",
        "The heads would be joined by another matrix than in reference. There are four "
        "projections, and in_proj_weight holds three.",
        out_weight=False,
    ),
    "biases-forgotten": known(
        "No bias arrives.",
        "With bias=True, in_proj_bias and out_proj.bias have to be copied too.",
        in_bias=False,
        out_bias=False,
    ),
    "out_proj-bias-forgotten": known(
        "The bias of W_o is as it was.",
        "out_proj is an nn.Linear: what does it have besides its matrix? (In a new "
        "nn.MultiheadAttention it is zeros, in a new nn.Linear small random numbers.)",
        out_bias=False,
    ),
    "in_proj-bias-forgotten": known(
        "The biases of W_q, W_k and W_v are as they were.",
        "reference.in_proj_bias holds them, below one another like the matrices. (In a new "
        "nn.MultiheadAttention they are zeros, in a new nn.Linear small random numbers.)",
        in_bias=False,
    ),
    **{
        f"biases-always-expected-by-{name}": known(
            "You cut reference.in_proj_bias even where it is None.",
            "A reference that was made with bias=False has no biases, and neither has attention. "
            "Look before you cut.",
            wrong=_expecting_biases(cut),
        )
        for name, cut in CUTS.items()
    },
    "memory-shared": known(
        "attention and reference share memory afterwards: training one would change the other.",
        "Assigning a tensor, its .data or a whole module hands over the same memory. Numbers have "
        "to be copied.",
        wrong=_share,
    ),
    "copied-the-wrong-way": known(
        "You copy the numbers of attention into reference.",
        "copy_ changes the tensor that it is called on, and takes what stands in its brackets.",
        wrong=_copy_back,
    ),
    "gradients-recorded": known(
        "PyTorch refuses to change a parameter in place while it records gradients.",
        "Loading weights is not part of training: it should not be recorded.",
        wrong=lambda attention, reference: attention.W_q.weight.copy_(
            reference.in_proj_weight.chunk(3)[0]
        ),
    ),
}

TASK = Task(
    "04-load_torch_weights",
    load_torch_weights,
    loading_cases,
    run=run_loading,
    examine=examine_loading,
    mistakes=read_again(PACKED, LOADING),
    build=build_loading,
    since=2,
    number=5,
)
