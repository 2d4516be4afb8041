"""Task 6.7, fold_biases: an attention with two biases less that does the same."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe, numbers_text
from mha_classroom.checks.task import AnswerError, Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.bert_attention.runs import run_names

NAMES = tuple(f"W_{W}.{last}" for W in "qkvo" for last in ("weight", "bias"))


@and_in_float32
def bias_cases(draw):
    def case(name, width, order=NAMES):
        shapes = {n: (width, width) if n.endswith("weight") else (width,) for n in NAMES}
        return Case(name, {n: draw.normal(*shapes[n]) for n in order})

    still = case("W_v.bias is 0 already", 3)
    still.inputs["W_v.bias"] = torch.zeros(3, dtype=torch.float64)
    return [
        case("width 2", 2),
        case("width 5", 5),
        still,
        case("names in another order", 3, order=NAMES[::-1]),
    ]


@total
def examine_biases(inputs, seen):
    """The tensors by name.

    Raises: AnswerError if the given dict changed, for what is no dict, and for names that are
        missing or besides.
    """
    folded = seen["mapped"]
    if list(seen["left"]) != list(inputs) or any(v is not True for v in seen["left"].values()):
        raise AnswerError("Afterwards the given dict is not what it was: make a new one.")
    if not isinstance(folded, dict):
        raise AnswerError(f"fold_biases has to return a dict, got {describe(folded)}.")
    for name in (n for n in NAMES if n not in folded):
        raise AnswerError(
            f"{name} is missing from your result: all eight names stay, with a bias of 0 where "
            "none is needed."
        )
    for name in (n for n in folded if n not in NAMES):
        raise AnswerError(f"Your result has a name that was not asked for: {name}.")
    return {name: folded[name] for name in NAMES}


def point_out_growth(inputs, folded):
    """By what W_o.bias grows, and by what it has to; which tensors should have stayed, or be 0."""
    right = build_biases()(inputs)
    said = []
    for name, X in right.items():
        if name == "W_o.bias" and not torch.allclose(folded[name], X):
            grown, wanted = (numbers_text(Y - inputs[name]) for Y in (folded[name], X))
            said += [f"Your W_o.bias grows by {grown}; it has to grow by {wanted}."]
        elif not torch.allclose(folded[name], X):
            said += [f"{name} has to {'be 0' if name in ('W_k.bias', 'W_v.bias') else 'stay'}."]
    return " ".join(said)


def build_biases(
    moved=lambda w: w["W_o.weight"] @ w["W_v.bias"],
    kept=lambda w: w["W_o.bias"],
    zero=("W_k.bias", "W_v.bias"),
    more=lambda w: {},
):
    def fold_biases(weights):
        folded = dict(weights)
        folded["W_o.bias"] = kept(weights) + moved(weights)
        for name in zero:
            folded[name] = torch.zeros_like(weights[name])
        return folded | more(weights)

    return fold_biases


def _left_out(weights):
    folded = build_biases()(weights)
    return {n: X for n, X in folded.items() if n not in ("W_k.bias", "W_v.bias")}


IN_ROWS = "Each output of W_o adds up one row of it, each number times another one of the bias."

BIASES = {
    "value-bias-left": known(
        "W_v.bias is not 0 yet, and nothing of it has been moved.",
        "You took away the key's bias, which no one misses. The value's bias does reach the "
        "output: where does it arrive?",
        moved=lambda w: torch.zeros_like(w["W_o.bias"]),
        zero=("W_k.bias",),
    ),
    "nothing-moved": known(
        "You set W_v.bias to 0, and W_o.bias stays as it was.",
        "Unlike the key's, the value's bias does reach the output. Where does it arrive? (If you "
        "carry it there: is it still what it was, or have you set it to 0 before?)",
        moved=lambda w: torch.zeros_like(w["W_o.bias"]),
    ),
    "not-through-W_o": known(
        "You add W_v.bias to W_o.bias as it is.",
        "The value's bias stands before W_o, the other behind it. What does W_o make of it?",
        moved=lambda w: w["W_v.bias"],
    ),
    "W_o-transposed": known(
        "You multiply W_v.bias with W_o the wrong way round.",
        "nn.Linear keeps its weight as (out, in). A square matrix fits both ways, so no shape "
        "warns you.",
        moved=lambda w: w["W_v.bias"] @ w["W_o.weight"],
    ),
    "output-bias-through-W_o": known(
        "You multiply W_o.bias with W_o as well.",
        "W_o.bias is added after the product. Only what stands before W_o goes through it.",
        kept=lambda w: w["W_o.weight"] @ w["W_o.bias"],
    ),
    "old-bias-lost": known(
        "Your W_o.bias is only what came from W_v.bias.",
        "W_o had a bias of its own, and that is still added.",
        kept=lambda w: torch.zeros_like(w["W_o.bias"]),
    ),
    "subtracted": known(
        "You subtract what comes from W_v.bias.",
        "What is no longer added to the values has to be added further on.",
        moved=lambda w: -(w["W_o.weight"] @ w["W_v.bias"]),
    ),
    "moved-and-kept": known(
        "You add to W_o.bias, and W_v.bias is still there.",
        "Then the value's bias counts twice.",
        zero=("W_k.bias",),
    ),
    "key-bias-kept": known(
        "W_k.bias is not 0.",
        "It adds the same to all scores of a query, so softmax does not see it.",
        zero=("W_v.bias",),
    ),
    "query-bias-for-the-keys": known(
        "You set W_q.bias to 0, not W_k.bias.",
        "The two are not alike. A bias of the queries adds another number to the score of each "
        "key.",
        zero=("W_q.bias", "W_v.bias"),
    ),
    "query-bias-dropped": known(
        "You set W_q.bias to 0 as well.",
        "A bias of the queries adds another number to the score of each key, so the weights "
        "change.",
        zero=("W_q.bias", "W_k.bias", "W_v.bias"),
    ),
    "key-bias-moved-too": known(
        "You add what W_o makes of W_k.bias as well.",
        "The key's bias never reaches the output: keys are only compared with.",
        moved=lambda w: w["W_o.weight"] @ (w["W_v.bias"] + w["W_k.bias"]),
    ),
    "key-bias-moved-instead": known(
        "You move W_k.bias, not W_v.bias, into W_o.bias.",
        "What is averaged and reaches W_o are the values.",
        moved=lambda w: w["W_o.weight"] @ w["W_k.bias"],
    ),
    "output-bias-dropped": known(
        "Your W_o.bias is 0.",
        "It is added to every output, and nothing comes after it to make up for it.",
        more=lambda w: {"W_o.bias": torch.zeros_like(w["W_o.bias"])},
    ),
    "through-W_v": known(
        "You multiply W_v.bias with W_v.",
        "W_v stands before its bias. What comes after it, on the way out?",
        moved=lambda w: w["W_v.weight"] @ w["W_v.bias"],
    ),
    "through-W_v-and-W_o": known(
        "You multiply W_v.bias with W_v and then with W_o.",
        "W_v stands before its bias. Of the two matrices the bias meets one.",
        moved=lambda w: w["W_o.weight"] @ (w["W_v.weight"] @ w["W_v.bias"]),
    ),
    "rows-scaled": known(
        "You add W_v.bias, each number times the sum of a row of W_o.",
        IN_ROWS,
        moved=lambda w: (w["W_o.weight"] * w["W_v.bias"][:, None]).sum(1),
    ),
    "columns-summed": known(
        "You add W_v.bias, each number times the sum of a column of W_o. Do you add up along the "
        "wrong axis?",
        IN_ROWS,
        moved=lambda w: (w["W_o.weight"] * w["W_v.bias"]).sum(0),
    ),
    "moved-twice": known(
        "You add twice what W_o makes of W_v.bias.",
        "The weights of a row sum to 1, in every head. So each number of the bias gets through "
        "once, however many heads there are.",
        moved=lambda w: 2 * (w["W_o.weight"] @ w["W_v.bias"]),
    ),
    "mean-moved": known(
        "All of W_v.bias counts as one number in what you add. Do you take its mean?",
        "Each number of the bias stands at a place of its own, and W_o multiplies each with "
        "another column.",
        moved=lambda w: w["W_o.weight"].sum(1) * w["W_v.bias"].mean(),
    ),
    "sum-moved": known(
        "All of W_v.bias counts as one number in what you add. Do you take its sum?",
        "Each number of the bias stands at a place of its own, and W_o multiplies each with "
        "another column.",
        moved=lambda w: w["W_o.weight"].sum(1) * w["W_v.bias"].sum(),
    ),
    "divided-by-width": known(
        "What you add is what W_o makes of W_v.bias, divided by the width. Do you take a mean?",
        "The weights of a row sum to 1, so each number of the bias gets through as it is. "
        "Nothing is averaged.",
        moved=lambda w: w["W_o.weight"] @ w["W_v.bias"] / len(w["W_v.bias"]),
    ),
    "not-summed": known(
        "You multiply W_o and W_v.bias number by number, and your W_o.bias is a matrix.",
        IN_ROWS,
        moved=lambda w: w["W_o.weight"] * w["W_v.bias"],
    ),
    "rows-not-summed": known(
        "You multiply W_o and W_v.bias number by number, and your W_o.bias is a matrix.",
        IN_ROWS,
        moved=lambda w: w["W_o.weight"] * w["W_v.bias"][:, None],
    ),
    "bias-as-a-column": known(
        "Your W_o.bias is a column, of shape (width, 1).",
        "The numbers are right. A bias is a vector, of shape (width,).",
        moved=lambda w: w["W_o.weight"] @ w["W_v.bias"][:, None],
        kept=lambda w: w["W_o.bias"][:, None],
    ),
    "none-for-0": known(
        "You put None where a bias is to be 0.",
        "The result has to fit into the same module, and that adds a bias: a vector that holds "
        "zeros.",
        more=lambda w: {"W_k.bias": None, "W_v.bias": None},
    ),
    "one-0": known(
        "You put a single 0 where a bias is to be 0.",
        "The result has to fit into the same module: a bias that is 0 is as long as before.",
        more=lambda w: {n: w[n].new_zeros(1) for n in ("W_k.bias", "W_v.bias")},
    ),
    "a-number-0": known(
        "You put the number 0 where a bias is to be 0.",
        "The result has to fit into the same module: a bias that is 0 is a vector, as long as "
        "before.",
        more=lambda w: {"W_k.bias": 0, "W_v.bias": 0},
    ),
    **{
        f"folded-into-W_v{end}": known(
            "You add W_v.bias to W_v.weight.",
            "A bias is added to X times W_v, whatever X is. Added to the weight it would be "
            "multiplied with X. The matrices stay as they are.",
            more=lambda w, column=column: {
                "W_v.weight": w["W_v.weight"]
                + (w["W_v.bias"][:, None] if column else w["W_v.bias"])
            },
        )
        for end, column in {"": False, "-as-a-column": True}.items()
    },
    "order-relied-on": known(
        "You take the tensors in the order in which they are given, whatever their names are.",
        "A dict is asked by name. This one has its names in another order.",
        wrong=lambda w: build_biases()(dict(zip(NAMES, w.values(), strict=True))),
    ),
    "key-bias-added-to-the-query": known(
        "You add W_k.bias to W_q.bias.",
        "The key's bias adds the same to all scores of a query, so it can go without a trace. A "
        "bias of the queries changes the weights.",
        more=lambda w: {"W_q.bias": w["W_q.bias"] + w["W_k.bias"]},
    ),
    "nothing-changed": known(
        "You return the weights as they were.",
        "Two of the four biases have to be 0 in your result.",
        wrong=lambda weights: dict(weights),
    ),
    "biases-left-out": known(
        "W_k.bias is missing from your result, and perhaps W_v.bias too.",
        "All eight names stay, so that the weights fit into the same module. A bias that adds "
        "nothing is 0.",
        wrong=_left_out,
    ),
}

TASK = Task(
    "06-fold_biases",
    build_biases(),
    bias_cases,
    run=run_names,
    examine=examine_biases,
    mistakes=read_again("The heads of lesson 4, with biases", BIASES),
    build=build_biases,
    point_out=point_out_growth,
    alone=(
        "none-for-0",
        "one-0",
        "a-number-0",
        "bias-as-a-column",
        "mean-moved",
        "sum-moved",
        "divided-by-width",
        "not-summed",
        "rows-not-summed",
    ),
    number=7,
    since=2,
)
