"""Task 8.3, prune_heads: heads taken out for good, with biases, and a second time."""

import torch
from torch import nn

from mha_classroom.checks.examining import say_which_heads, total
from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import AnswerError, Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.how_many_heads.runs import made, run_removal

REMOVAL = "Remove them for good"


def prune_heads(attention, heads):
    build_removal()(attention, heads)


@and_in_float32
def removal_cases(draw):
    """With biases and without, widths that differ, heads in any order, twice, none, all but one."""

    def case(name, heads, num_heads, width, bias=False, sizes=None, later=None):
        num_hiddens = num_heads * width
        sizes = sizes or (num_hiddens,) * 3
        inputs = {"num_heads": num_heads}
        for letter, size in zip("qkv", sizes, strict=True):
            inputs[f"W_{letter}.weight"] = draw.normal(num_hiddens, size)
        inputs["W_o.weight"] = draw.normal(num_hiddens, num_hiddens)
        if bias:
            inputs |= {f"W_{letter}.bias": draw.normal(num_hiddens) for letter in "qkvo"}
        inputs["heads"] = tuple(heads)
        if later is not None:
            inputs["later"] = tuple(later)
        for name_of, size, length in zip(
            ("queries", "keys", "values"), sizes, (3, 4, 4), strict=True
        ):
            inputs[name_of] = draw.normal(2, length, size)
        return Case(name, inputs)

    return [
        case("head 1 of 3, width 2, no biases", [1], 3, 2),
        case("heads 0 and 3 of 5", [0, 3], 5, 2),
        case("with biases", [1, 2], 5, 3, bias=True),
        case("queries, keys and values of unlike widths", [2, 0], 5, 3, True, (4, 7, 5)),
        case("as many heads as they are wide", [0, 2], 4, 4, bias=True),
        case("none is removed", [], 3, 5, bias=True),
        case("all but the last", [0, 1, 2], 4, 3, bias=True),
        case(
            "removed twice: the numbers are those of the heads that are there",
            [0, 2, 4],
            5,
            2,
            True,
            later=[1],
        ),
        case("removed twice, 9 heads of width 2", [0, 6, 4, 5, 2, 7], 9, 2, later=[1]),
    ]


@total
def examine_removal(inputs, seen):
    """What is left in the layer, and what it computes.

    Raises: AnswerError if a parameter is missing, besides, of another dtype, or cannot be trained
        any more, if num_heads is a float, if the layer is in eval mode, or if a parameter holds
        numbers that were not there before.
    """
    wanted = dict(made(inputs).named_parameters())
    numbers = seen["numbers"]
    if sorted(numbers) != sorted(wanted):
        gone = ", ".join(name for name in wanted if name not in numbers)
        new = ", ".join(name for name in numbers if name not in wanted)
        said = [f"lacks parameters: {gone}"] * bool(gone)
        said += [f"has new parameters: {new}"] * bool(new)
        raise AnswerError(f"Afterwards attention {', and '.join(said)}.")
    if isinstance(seen["num_heads"], float):
        raise AnswerError(
            f"Afterwards num_heads is {seen['num_heads']}, a float. How many heads there are is a "
            "whole number: in Python / gives fractions, // whole numbers."
        )
    frozen = [name for name in wanted if seen["trainable"].get(name) is not True]
    if frozen:
        raise AnswerError(
            f"Afterwards these cannot be trained any more: {', '.join(frozen)}. A parameter is an "
            "nn.Parameter whose requires_grad is True; what detach and .data give has False there."
        )
    if seen["training"] is not True:
        raise AnswerError("Afterwards attention is in eval mode, and it was training before.")
    strange = [name for name, X in numbers.items() if _is_new(X, inputs[name])]
    if strange:
        raise AnswerError(
            f"Afterwards these hold other numbers than before: {', '.join(strange)}. What stays "
            "keeps its numbers. A new nn.Linear begins with random ones, until they are copied."
        )
    for name, X in numbers.items():
        if X.dtype != (dtype := inputs[name].dtype):
            raise AnswerError(
                f"Afterwards {name} is {X.dtype}, and it was {dtype} before. The layer cannot run "
                "on what it was given until now. What is new, such as an nn.Linear, is float32 "
                "unless it is told another dtype."
            )
    return {"num_heads": seen["num_heads"]} | numbers | {"the output": seen["output"]}


def point_out_heads(inputs, left):
    """Of which heads the first wrong weight is; where that is unclear, what stays of each."""
    H = inputs["num_heads"]
    stay = list(range(H))
    for heads in (inputs["heads"], inputs.get("later", ())):
        stay = [h for place, h in enumerate(stay) if place not in heads]
    said = (
        say_which_heads(f"W_{letter}.weight", left[name], inputs[name], H, int(letter == "o"), stay)
        for letter in "qkvo"
        if (name := f"W_{letter}.weight") in left
    )
    if found := next(filter(None, said), ""):
        return found
    width = len(inputs["W_q.weight"]) // H
    heads = "1 head stays" if len(stay) == 1 else f"{len(stay)} heads stay"
    biases = ", each with its bias" if "W_q.bias" in left else ""
    last = "; W_o keeps its whole bias" if "W_o.bias" in left else ""
    return (
        f"{heads}, of width {width}: {len(stay) * width} rows of W_q, W_k and W_v{biases}, and as "
        f"many columns of W_o{last}."
    )


def _is_new(X, before):
    """Whether most numbers of a parameter are none of those it had before."""
    here = torch.isin(X.float(), torch.tensor([0.0, *before.float().flatten().tolist()]))
    return bool(X.numel()) and here.double().mean().item() < 0.5


def in_blocks(heads, count, width):
    """The features of these heads, side by side in each."""
    return torch.tensor([width * h + i for h in heads for i in range(width)], dtype=torch.long)


def of_weight(attention):
    return len(attention.W_q.weight) // attention.num_heads


def staying(heads, count):
    return [h for h in range(count) if h not in heads]


def build_removal(
    stay=staying,
    width=of_weight,
    features=in_blocks,
    makers=("W_q", "W_k", "W_v"),
    bias=lambda X, index: X[index],
    out=lambda W, index: W[:, index],
    out_bias=lambda X, index: X,
    count=lambda kept, attention: len(kept),
    begin=lambda attention, heads: None,
    rows=lambda W, index: W[index],
):
    """makers: what loses rows. out: how W_o is cut. count: the number of heads afterwards.

    begin: what is done first.
    """

    def prune_heads(attention, heads):
        begin(attention, heads)
        kept = stay(heads, attention.num_heads)
        index = features(kept, attention.num_heads, width(attention))
        for name in makers:
            linear = getattr(attention, name)
            linear.weight = nn.Parameter(rows(linear.weight.detach(), index))
            if linear.bias is not None:
                linear.bias = nn.Parameter(bias(linear.bias.detach(), index))
        W_o = attention.W_o
        W_o.weight = nn.Parameter(out(W_o.weight.detach(), index))
        if W_o.bias is not None:
            W_o.bias = nn.Parameter(out_bias(W_o.bias.detach(), index))
        attention.num_heads = count(kept, attention)

    return prune_heads


def _turn_by_turn(heads, count, width):
    """As in_blocks, if head h had the features h, h + H, h + 2H and so on."""
    return torch.tensor([count * i + h for h in heads for i in range(width)], dtype=torch.long)


def _values_folded_in(attention, heads):
    """What the biases of the values add through W_o goes into its bias, as if the heads stayed."""
    W_v, W_o = attention.W_v, attention.W_o
    if W_v.bias is None or W_o.bias is None:
        return
    index = in_blocks(heads, attention.num_heads, of_weight(attention))
    with torch.no_grad():
        W_o.bias += W_o.weight[:, index] @ W_v.bias[index]


def _shows_zeros(inputs, seen):
    """Whether all is as it was, but that some numbers are 0."""
    if not isinstance(seen, dict) or seen["num_heads"] != inputs["num_heads"]:
        return False
    pairs = [(X, seen[name]) for name, X in inputs.items() if name.startswith("W_")]
    zeros = all(Y.shape == X.shape and ((Y == X) | (Y == 0)).all() for X, Y in pairs)
    return zeros and (not inputs["heads"] or any((Y != X).any() for X, Y in pairs))


def _zeroed(attention, heads):
    width = of_weight(attention)
    with torch.no_grad():
        for h in heads:
            attention.W_o.weight[:, width * h : width * (h + 1)] = 0


def _in_turn_in_order(heads, count, width):
    """The same features in increasing order."""
    return torch.tensor([f for f in range(count * width) if f % count in heads], dtype=torch.long)


def _left(answer, inputs):
    return examine_removal(inputs, run_removal(answer, inputs))


def _one_by_one(order, last_instead=False, **parts):
    """Heads go one after the other, though the numbers of the others change on the way.

    last_instead: in place of a head whose number is not there any more, the last one goes.
    """

    def prune(attention, heads):
        for h in order(heads):
            h = min(h, attention.num_heads - 1) if last_instead else h
            build_removal(**parts)(attention, [h])

    return prune


def _sliced_one_by_one(attention, heads):
    """The same with slices, which past the end hold nothing."""
    width = of_weight(attention)
    for h in heads:
        before, behind = slice(h * width), slice((h + 1) * width, None)
        for linear in (attention.W_q, attention.W_k, attention.W_v):
            for name, X in list(linear.named_parameters()):
                setattr(linear, name, nn.Parameter(torch.cat([X[before], X[behind]])))
        W = attention.W_o.weight
        attention.W_o.weight = nn.Parameter(torch.cat([W[:, before], W[:, behind]], dim=1))
        attention.num_heads -= 1


def _one_less(kept, attention):
    return attention.num_heads - 1


def _exact_width(attention):
    """The width of a head, where the heads that are there share the rows evenly."""
    return attention.W_q.weight.unflatten(0, (attention.num_heads, -1)).shape[1]


ONE_BY_ONE = [
    *(_one_by_one(order, last_instead=last) for order in (list, sorted) for last in (False, True)),
    _one_by_one(list, count=_one_less),
    _sliced_one_by_one,
]


def _index_without_a_dtype(attention, heads):
    """The heads that were to go stay; an index of no head has no whole numbers, and fails."""
    width = of_weight(attention)
    index = torch.tensor([h * width + i for h in sorted(heads) for i in range(width)])
    build_removal(stay=lambda heads, count: sorted(heads), features=lambda *_: index)(
        attention, heads
    )


def _num_heads_first(attention, heads):
    attention.num_heads -= len(heads)


def _width_by_what_stays(attention, heads):
    """All heads are gone through, each as wide as if only those that stay had been there."""
    width = len(attention.W_q.weight) // (attention.num_heads - len(heads))
    build_removal(width=lambda attention: width)(attention, heads)


KEPT = ("You keep the heads that were to be removed.", "`heads` are those that go.")

SHIFTED = (
    "You remove the heads one after the other, by their numbers of before.",
    "When head 1 has gone, head 2 is called 1, and so on. Which number does the next one have "
    "then?",
)
TOO_EARLY = (
    "You get the width of a head from the new number of heads.",
    "W_q still has the rows of all heads then. Which number of heads do these rows belong to?",
)

REMOVED = {
    "nothing-changed": known(
        "Afterwards the layer that was given is as it was before.",
        "Heads are removed in place. Do you change a copy, or return a new layer? Change this "
        "`attention`.",
        wrong=lambda attention, heads: None,
    ),
    "one-by-one": known(*SHIFTED, wrong=ONE_BY_ONE[0], shows=like(*ONE_BY_ONE, run=_left)),
    "one-by-one-until-it-fails": known(
        *SHIFTED, wrong=_one_by_one(list, count=_one_less, width=_exact_width)
    ),
    "stale-num_heads": known(
        "num_heads is still the number of before.",
        "The layer then cuts what is left into too many heads, each too narrow. If the numbers "
        "divide, no error is raised, and the output is wrong.",
        count=lambda kept, attention: attention.num_heads,
    ),
    "kept-and-removed-swapped": known(*KEPT, stay=lambda heads, count: sorted(heads)),
    "kept-and-removed-swapped-unless-none": known(
        *KEPT, stay=lambda heads, count: sorted(heads) or list(range(count))
    ),
    "first-biases": known(
        "The biases have the right length, but they are the first ones instead of those of the "
        "heads that stay.",
        "Each number of a bias belongs to a row of the weight. They have to go together.",
        bias=lambda X, index: X[: len(index)],
    ),
    "features-interleaved": known(
        "You take features in turn, as if head h had features h, h + H, h + 2H and so on.",
        "A head owns neighbouring rows: d of them, one after the other (lesson 4).",
        **any_of(build_removal, features=(_in_turn_in_order, _turn_by_turn), run=_left),
    ),
    "rows-of-W_o": known(
        "You cut rows of W_o.",
        "nn.Linear keeps (out, in). W_o reads the joined heads: are they what goes in, or what "
        "comes out?",
        out=lambda W, index: W[index],
    ),
    "width-of-out_features": known(
        "In a layer from which heads were removed before, you get the width of a head wrong.",
        "out_features and the width of the output stay as they were. Neither tells how many rows "
        "W_q has now. What does?",
        width=lambda attention: attention.W_q.out_features // attention.num_heads,
    ),
    "width-of-in_features": known(
        "You get the width of a head from the width of the queries, in_features or shape[1].",
        "Queries may have any width, and it stays as it is when heads go. Which axis of the weight "
        "of W_q holds the heads?",
        width=lambda attention: attention.W_q.in_features // attention.num_heads,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "kept-and-removed-swapped-in-order-given": known(*KEPT, stay=lambda heads, count: heads),
    "kept-and-removed-swapped-by-index": known(*KEPT, wrong=_index_without_a_dtype),
    "rest-reversed": known(
        "The heads that stay are in reverse order.",
        "Each has its place among the others. Whoever uses the layer counts on that order.",
        stay=lambda heads, count: staying(heads, count)[::-1],
    ),
    "last-given-only": known(
        "Of the heads that were to go only the last of the list is removed.",
        "All of them go. Is something overwritten in each round of a loop?",
        stay=lambda heads, count: [h for h in range(count) if h not in heads[-1:]],
    ),
    "W_o-as-it-was": known(
        "W_o still expects all heads.",
        "The joined heads are narrower now, so W_o has to lose something, too.",
        out=lambda W, index: W,
    ),
    "biases-as-they-were": known(
        "The biases of W_q, W_k and W_v are as long as before.",
        "A bias is added to what a projection makes, so it has one number for each row.",
        bias=lambda X, index: X,
    ),
    "bias-of-W_o-cut": known(
        "You shorten the bias of W_o.",
        "It is added to the output, and the output is as wide as before.",
        out_bias=lambda X, index: X[index],
    ),
    "values-forgotten": known(
        "W_v keeps all heads.",
        "Each head makes queries, keys and values. All three lose the same rows.",
        makers=("W_q", "W_k"),
    ),
    "first-of-heads-only": known(
        "Only the first of the heads goes.",
        "`heads` may name several. Does a `return` or the end of a loop stand too far in?",
        stay=lambda heads, count: staying(heads[:1], count),
    ),
    "single-rows": known(
        "You keep one row for each head.",
        "Head h owns d rows, where d is its width.",
        features=lambda heads, count, width: torch.tensor(heads, dtype=torch.long),
    ),
    "width-by-the-new-number": known(*TOO_EARLY, begin=_num_heads_first),
    "width-by-the-new-number-of-all": known(
        *TOO_EARLY, begin=_num_heads_first, count=lambda kept, attention: attention.num_heads
    ),
    "width-by-the-number-that-stays": known(*TOO_EARLY, wrong=_width_by_what_stays),
    "one-head-less": known(
        "You lower num_heads by 1, however many heads go.",
        "num_heads says how many heads are there now.",
        count=_one_less,
    ),
    "columns-of-W_q": known(
        "You cut columns of W_q, W_k and W_v.",
        "nn.Linear keeps (out, in). Heads are what comes out of these, so they are rows.",
        rows=lambda W, index: W[:, index],
    ),
    "first-rows": known(
        "As many heads stay as should, but they are the first ones.",
        "Which heads go stands in `heads`.",
        stay=lambda heads, count: list(range(count - len(heads))),
    ),
    "heads-counted-from-1": known(
        "You count heads from 1.",
        "As everywhere in this course, the first head is head 0.",
        stay=lambda heads, count: [h for h in range(count) if h + 1 not in heads],
    ),
    "keys-forgotten": known(
        "W_k keeps all heads. (Perhaps W_v does, too.)",
        "Each head makes queries, keys and values. All three lose the same rows.",
        makers=("W_q",),
    ),
    "outputs-scaled": known(
        "You multiply the columns of W_o that stay, by the number of heads before over that now.",
        "Dropout does so in training. A masked head adds nothing, and the others stay as they are.",
        out=lambda W, index: W[:, index] * (W.shape[1] / max(len(index), 1)),
    ),
    "values-folded-in": known(
        "The bias of W_o is not what it was. Do you add what the value biases of the removed heads "
        "bring, or scale it?",
        "A masked head brings nothing, not even that, and this bias belongs to no head.",
        begin=_values_folded_in,
    ),
    "masked-not-removed": known(
        "No head is removed: some numbers of the layer are set to 0.",
        "That saves nothing: all heads are still computed.",
        wrong=_zeroed,
        shows=_shows_zeros,
    ),
}

TASK = Task(
    "08-prune_heads",
    prune_heads,
    removal_cases,
    run=run_removal,
    examine=examine_removal,
    returns=("what is left",),
    mistakes=read_again(REMOVAL, REMOVED | ALONE),
    build=build_removal,
    point_out=point_out_heads,
    alone=tuple(ALONE),
    number=3,
)
