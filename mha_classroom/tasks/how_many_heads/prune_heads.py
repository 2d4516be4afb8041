"""Task 8.3, prune_heads: heads taken out for good, with biases, and a second time."""

import torch
from torch import nn

from mha_classroom.checks.examining import total
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_classroom.tasks.how_many_heads.runs import made, run_removal

REMOVAL = "Remove them for good"


def prune_heads(attention, heads):
    build_removal()(attention, heads)


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
        case("removed twice, 7 heads of width 3", [0, 6, 4, 5], 7, 3, later=[2]),
    ]


@total
def examine_removal(inputs, seen):
    """What is left in the layer, and what it computes.

    Raises: AnswerError if a parameter is missing, besides, or cannot be trained any more, if the
        layer is in eval mode, or if a parameter holds numbers that were not there before.
    """
    wanted = dict(made(inputs).named_parameters())
    numbers = seen["numbers"]
    if sorted(numbers) != sorted(wanted):
        gone = ", ".join(name for name in wanted if name not in numbers)
        new = ", ".join(name for name in numbers if name not in wanted)
        said = [f"lacks {gone}"] * bool(gone) + [f"has new parameters: {new}"] * bool(new)
        raise AnswerError(f"Afterwards attention {', and '.join(said)}.")
    frozen = [name for name in wanted if seen["trainable"].get(name) is not True]
    if frozen:
        raise AnswerError(f"Afterwards these cannot be trained any more: {', '.join(frozen)}.")
    if seen["training"] is not True:
        raise AnswerError("Afterwards attention is in eval mode, and it was training before.")
    strange = [name for name, X in numbers.items() if _is_new(X, inputs[name])]
    if strange:
        raise AnswerError(
            f"Afterwards these hold other numbers than before: {', '.join(strange)}. What stays "
            "keeps its numbers. A new nn.Linear begins with random ones, until they are copied."
        )
    return {"num_heads": seen["num_heads"]} | numbers | {"the output": seen["output"]}


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


def in_a_mask(heads, count, width):
    """in_blocks, as a boolean mask of all features."""
    return torch.tensor([h in heads for h in range(count) for _ in range(width)])


def _turn_by_turn(heads, count, width):
    """As in_blocks, if head h had the features h, h + H, h + 2H and so on."""
    return torch.tensor([count * i + h for h in heads for i in range(width)], dtype=torch.long)


def _shows_zeros(inputs, seen):
    """Whether all is as it was, but that some numbers are 0."""
    if not isinstance(seen, dict) or seen["num_heads"] != inputs["num_heads"]:
        return False
    pairs = [(X, seen[name]) for name, X in inputs.items() if name.startswith("W_")]
    return all(Y.shape == X.shape and ((Y == X) | (Y == 0)).all() for X, Y in pairs)


def _zeroed(attention, heads):
    width = of_weight(attention)
    with torch.no_grad():
        for h in heads:
            attention.W_o.weight[:, width * h : width * (h + 1)] = 0


def _one_by_one(order, last=False, slices=False):
    """Heads go one after the other, though the numbers of the others change on the way.

    last: the last head goes where there is no h any more. slices: nothing goes then, but num_heads
        is one less.
    """
    removed = build_removal(count=lambda kept, attention: attention.num_heads - 1)

    def prune(attention, heads):
        for h in order(heads):
            h = min(h, attention.num_heads - 1) if last else h
            (removed if slices else build_removal())(attention, [h])

    return prune


def _numbers_shift(order, **kind):
    return known(
        "You remove the heads one after the other, by their numbers of before.",
        "When head 1 has gone, head 2 is called 1, and so on. Which number does the next one have "
        "then?",
        wrong=_one_by_one(order, **kind),
    )


def _with_cat(heads, count, width):
    """in_blocks, which fails for no heads."""
    return torch.cat([torch.arange(width * h, width * (h + 1)) for h in heads])


def _in_a_copy(attention, heads):
    """The lesson's function: `heads` stay, and a smaller layer is returned."""
    torch.cat([torch.arange(h, h + 1) for h in heads])


def _without_parameter(name, field):
    """A tensor is put where a parameter is."""

    def prune(attention, heads):
        linear = getattr(attention, name)
        if getattr(linear, field) is not None:
            setattr(linear, field, getattr(linear, field).detach())
        build_removal()(attention, heads)

    return known(
        "You put a plain tensor where a layer has a parameter.",
        "Only what is an nn.Parameter is trained and saved, so an nn.Linear takes nothing else for "
        "its weight and bias.",
        wrong=prune,
    )


def _biases_always(use):
    """use: what is done with a bias that is None."""

    def prune(attention, heads):
        if attention.W_q.bias is None:
            use(attention.W_q.bias)
        build_removal()(attention, heads)

    return known(
        "You cut biases, and this layer has none: there `bias` is None.",
        "Layers come with biases and without. Ask first.",
        wrong=prune,
    )


def _fails_for_none(index):
    """index: what is made of the list of the heads that go."""

    def prune(attention, heads):
        index(attention, heads)
        build_removal()(attention, heads)

    return known(
        "You make a tensor of the heads that go, and fail where `heads` is empty.",
        "torch.tensor([]) holds floats, since nothing tells it otherwise, and torch.cat needs "
        "something to join. With no heads to remove all stay.",
        wrong=prune,
    )


def _as_an_index(attention, heads):
    torch.ones(attention.num_heads, dtype=torch.bool)[torch.tensor(heads)] = False


def _num_heads_first(attention, heads):
    attention.num_heads -= len(heads)


def _too_early(wrong=None, **parts):
    return known(
        "You get the width of a head from the new number of heads.",
        "W_q still has the rows of all heads then. Which number of heads do these rows belong to?",
        wrong=wrong,
        **parts,
    )


def _width_by_what_stays(attention, heads):
    """The heads that stay come from the old number, the width from the new one."""
    kept = staying(heads, attention.num_heads)
    attention.num_heads = len(kept)
    build_removal(stay=lambda heads, count: kept)(attention, heads)


OUT = (
    "In a layer from which heads were removed before, you get the width of a head wrong.",
    "out_features is what nn.Linear was made with, and the output stays as wide as before. "
    "Neither tells how many rows W_q has now. What does?",
)


def _of_inputs(name, features):
    """name: of the projection whose input is taken for what it makes."""
    return known(
        "You take the width of a head from the width of the queries or keys.",
        "These may have any width, and what goes into W_q does not say how much comes out.",
        wrong=build_removal(
            width=lambda attention: getattr(attention, name).weight.shape[1] // attention.num_heads,
            features=features,
        ),
    )


KEPT = ("You keep the heads that were to be removed.", "`heads` are those that go.")

REMOVED = {
    "nothing-changed": known(
        "Afterwards the layer that was given is as it was before.",
        "Heads are removed in place. Do you change a copy, or return a new layer? Change this "
        "`attention`.",
        wrong=lambda attention, heads: None,
    ),
    "smaller-copy-of-what-was-to-go": known(
        "You return a smaller copy, with the heads of `heads`, as the lesson's function does.",
        "Here `heads` are those that go, and they are removed in place: from this `attention`.",
        wrong=_in_a_copy,
    ),
    "one-by-one": _numbers_shift(list),
    "one-by-one-sorted": _numbers_shift(sorted),
    "one-by-one-by-slices": _numbers_shift(list, slices=True),
    "one-by-one-by-slices-sorted": _numbers_shift(sorted, slices=True),
    "one-by-one-to-the-last": _numbers_shift(sorted, last=True),
    "stale-num_heads": known(
        "num_heads is still the number of before.",
        "The layer then cuts what is left into too many heads, each too narrow. If the numbers "
        "divide, no error is raised, and the output is wrong.",
        count=lambda kept, attention: attention.num_heads,
    ),
    "kept-and-removed-swapped": known(
        *KEPT,
        stay=lambda heads, count: sorted(heads),
    ),
    "kept-and-removed-swapped-in-order-given": known(
        *KEPT,
        stay=lambda heads, count: heads,
    ),
    "kept-and-removed-swapped-if-there-not-none": known(
        *KEPT,
        wrong=build_removal(
            stay=lambda heads, count: [h for h in range(count) if h in heads], features=_with_cat
        ),
    ),
    "kept-and-removed-swapped-not-none": known(
        *KEPT,
        wrong=build_removal(stay=lambda heads, count: heads, features=_with_cat),
    ),
    "rows-of-W_o": known(
        "You cut rows of W_o.",
        "nn.Linear keeps (out, in). W_o reads the joined heads: are they what goes in, or what "
        "comes out?",
        out=lambda W, index: W[index],
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
    "first-biases": known(
        "The biases have the right length, but they are the first ones instead of those of the "
        "heads that stay.",
        "Each number of a bias belongs to a row of the weight. They have to go together.",
        bias=lambda X, index: X[: len(index)],
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
    "features-interleaved": known(
        "You take features in turn, as if head h had features h, h + H, h + 2H and so on.",
        "A head owns neighbouring rows: d of them, one after the other (lesson 4).",
        features=_turn_by_turn,
    ),
    "features-interleaved-in-order": known(
        "You take features in turn, as if head h had features h, h + H, h + 2H and so on.",
        "A head owns neighbouring rows: d of them, one after the other (lesson 4).",
        features=lambda heads, count, width: _turn_by_turn(heads, count, width).sort().values,
    ),
    "features-of-those-that-go": known(
        "You keep the features of the heads that go.",
        "Is your mask True for what goes, or for what stays?",
        features=lambda heads, count, width: in_blocks(staying(heads, count), count, width),
    ),
    "counts-those-that-go": known(
        "num_heads is the number of heads that went.",
        "It says how many heads are there now.",
        count=lambda kept, attention: attention.num_heads - len(kept),
    ),
    "first-of-heads-only": known(
        "Only the first of the heads goes.",
        "`heads` may name several. Does a `return` or the end of a loop stand too far in?",
        stay=lambda heads, count: staying(heads[:1], count),
    ),
    "W_o-transposed": known(
        "You turn W_o around.",
        "nn.Linear keeps (out, in), and so does W_o: its columns are what the heads bring.",
        out=lambda W, index: W[:, index].T,
    ),
    "single-rows-in-a-mask": known(
        "You have one row for each head in your mask.",
        "Head h owns d rows, where d is its width.",
        features=lambda heads, count, width: in_a_mask(heads, count, 1),
    ),
    "single-rows": known(
        "You keep one row for each head.",
        "Head h owns d rows, where d is its width.",
        features=lambda heads, count, width: torch.tensor(heads, dtype=torch.long),
    ),
    "width-of-out_features": known(
        *OUT,
        width=lambda attention: attention.W_q.out_features // attention.num_heads,
    ),
    "width-of-the-model": known(
        twin="width-of-out_features",
        width=lambda attention: attention.W_o.weight.shape[0] // attention.num_heads,
    ),
    "width-of-the-queries": _of_inputs("W_q", in_blocks),
    "width-of-the-queries-in-a-mask": _of_inputs("W_q", in_a_mask),
    "width-of-the-keys": _of_inputs("W_k", in_blocks),
    "width-of-the-keys-in-a-mask": _of_inputs("W_k", in_a_mask),
    "width-of-the-model-in-a-mask": known(
        *OUT,
        wrong=build_removal(
            width=lambda attention: len(attention.W_o.weight) // attention.num_heads,
            features=in_a_mask,
        ),
    ),
    "width-by-the-new-number": _too_early(begin=_num_heads_first),
    "width-by-the-new-number-of-all": _too_early(
        begin=_num_heads_first, count=lambda kept, attention: attention.num_heads
    ),
    "width-by-what-stays": _too_early(wrong=_width_by_what_stays),
    "one-head-less": known(
        "You lower num_heads by 1, however many heads go.",
        "num_heads says how many heads are there now.",
        count=lambda kept, attention: attention.num_heads - 1,
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
    "weight-without-parameter": _without_parameter("W_q", "weight"),
    "bias-without-parameter": _without_parameter("W_q", "bias"),
    "biases-always-sliced": _biases_always(lambda bias: bias[0]),
    "biases-always-detached": _biases_always(lambda bias: bias.detach()),
    "biases-always-data": _biases_always(lambda bias: bias.data),
    "biases-always-viewed": _biases_always(lambda bias: bias.view(-1)),
    "biases-always-reshaped": _biases_always(lambda bias: bias.reshape(-1)),
    "no-heads-as-an-index": _fails_for_none(_as_an_index),
    "no-heads-joined": _fails_for_none(
        lambda attention, heads: torch.cat([torch.tensor([h]) for h in heads])
    ),
    "no-heads-stacked": _fails_for_none(
        lambda attention, heads: torch.stack([torch.tensor([h]) for h in heads])
    ),
    "masked-not-removed": known(
        "You set what belongs to the heads to 0.",
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
    mistakes=read_again(REMOVAL, REMOVED),
    build=build_removal,
    alone=(
        "rows-of-W_o",
        "W_o-as-it-was",
        "biases-as-they-were",
        "values-forgotten",
        "single-rows",
        "width-of-the-model",
        "masked-not-removed",
        "bias-of-W_o-cut",
        "kept-and-removed-swapped-in-order-given",
        "width-by-the-new-number",
        "width-by-the-new-number-of-all",
        "first-rows",
        "one-head-less",
        "features-interleaved-in-order",
        "features-of-those-that-go",
        "counts-those-that-go",
        "first-of-heads-only",
        "W_o-transposed",
        "single-rows-in-a-mask",
        "columns-of-W_q",
        "heads-counted-from-1",
        "keys-forgotten",
    ),
    number=3,
)
