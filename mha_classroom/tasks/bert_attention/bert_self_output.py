"""Task 6.3, BertSelfOutput: join, add, normalise."""

import torch
from torch import nn

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.modules import judged, plan_of, refuse_unlearnt
from mha_classroom.checks.task import Task, all_but, known, read_again
from mha_classroom.tasks.bert_attention.bert_self_attention import (
    BY_HAND,
    EVAL,
    OR_ALPHA,
    STILL,
    TRAINED,
    WHO_IS_TRAINING,
    WHOLE,
    apply_linear,
    drop,
    dropped_by_hand,
    dropped_or_scaled,
    dropped_whole,
    kept_with_p,
    linear_shapes,
    module_case,
    nothing_dropped,
    output_and_learning,
    with_the_shape_of,
)
from mha_classroom.tasks.bert_attention.runs import run_output
from mha_course import bert

FAR = "numbers near 2³⁰"


def words_far_from_0():
    """Words of 2 features: whoever takes the mean off first loses no digit, in whatever order.

    A mean of squares is here the square of the mean, to the last digit.
    """
    return 2.0**30 + torch.tensor([[[1, -3], [7, 0], [2, 4]]], dtype=torch.float64)


def output_cases(draw):
    def case(name, width, shape, **more):
        made = module_case(draw, name, (width, 1), shape, output_shapes, **more)
        made.inputs["residual"] = draw.normal(*shape, width)
        return made

    flat = case("the sum hardly varies within a word", 5, (2, 3), layer_norm_eps=1e-8)
    flat.inputs["W_o.weight"] *= 2e-5
    flat.inputs["W_o.bias"] *= 2e-5
    flat.inputs["residual"] *= 2e-5
    far = case(FAR, 2, (1, 3))
    far.inputs["W_o.weight"] *= 0
    far.inputs["W_o.bias"] *= 0
    far.inputs["residual"] = words_far_from_0()
    return [
        case("1 sequence of 2 words", 3, (1, 2)),
        case("2 sequences", 7, (2, 5)),
        flat,
        case("layer_norm_eps=0.5", 5, (2, 3), layer_norm_eps=0.5),
        case("as many words as features", 5, (3, 5)),
        far,
        case("in training, without dropout", 5, (2, 3), training=True),
        case("hidden_dropout_prob=1", 5, (2, 3), hidden_dropout_prob=1.0),
        case(
            "attention_probs_dropout_prob=1, which is for 6.2",
            5,
            (2, 3),
            attention_probs_dropout_prob=1.0,
        ),
        _case_that_shows_dropout(
            case("hidden_dropout_prob=0.25", 11, (5, 13), hidden_dropout_prob=0.25)
        ),
    ]


def _case_that_shows_dropout(case):
    """In each word W_o(X) is 1 but for the first and last feature, and the residual is known.

    All words of X are the same, so one bias does it, and what is dropped before W_o shows too.
    """
    word = case.inputs["X"][0, 0]
    case.inputs["X"] = word.expand(case.inputs["X"].shape).clone()
    ones = torch.tensor([0.0] + [1.0] * 9 + [0.0]).double()
    case.inputs["W_o.bias"] = ones - case.inputs["W_o.weight"] @ word
    case.inputs["norm.weight"] = torch.ones(11, dtype=torch.float64)
    case.inputs["norm.bias"] = torch.zeros(11, dtype=torch.float64)
    case.inputs["residual"] = torch.zeros_like(case.inputs["residual"])
    case.inputs["residual"][..., -1] = 1.0
    return case


def output_shapes(width):
    return linear_shapes("W_o", width, width) | {"norm.weight": (width,), "norm.bias": (width,)}


def output_stages(inputs):
    return output_steps(
        inputs, inputs["X"], inputs["residual"], inputs.get("layer_norm_eps", 1e-12)
    )


def output_steps(weights, X, residual, eps):
    joined = apply_linear("W_o", weights, X)
    return {
        "W_o of X": joined,
        "the sum with the residual": joined + residual,
        "each word with mean 0 and variance 1": _normalised(joined + residual, eps),
        "the normalised sum": norm(weights, joined + residual, eps),
    }


def norm(weights, X, eps):
    return _normalised(X, eps) * weights["norm.weight"] + weights["norm.bias"]


def _normalised(X, eps):
    return nn.functional.layer_norm(X, X.shape[-1:], eps=eps)


@total
def examine_output(inputs, seen):
    """The result; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, "hidden_dropout_prob", learn=True)
    output, *more = judged("BertSelfOutput", inputs, plan, seen)
    nothing_dropped(seen)
    if inputs.get("hidden_dropout_prob") == 0.25:
        again, trained = more
        refuse_unlearnt(inputs, plan, seen)
        return {STILL: equal(output, again)} | _drops_numbers(trained, inputs["residual"])
    if not more:
        return output
    if "training" in inputs:
        return output_and_learning(inputs, plan, seen, *more)
    return {EVAL: output, TRAINED: more[0]}


def _drops_numbers(trained, residual):
    """What dropout does to a normalised sum: its ends, which nothing drops, tell the scale."""
    (first, last), (low, high) = (
        (X[..., :1], X[..., -1:]) for X in (with_the_shape_of(residual, trained), residual)
    )
    before = low + (trained - first) / (last - first) * (high - low)
    return dropped_of_normalised((before - residual)[..., 1:-1], before, trained)


def dropped_of_normalised(factors, before, trained):
    """What dropout does, and whether a norm of scale 1 and shift 0 made its result of the sum."""
    dropped = dropped_or_scaled(factors, "numbers")
    wanted = _normalised(before.double(), 1e-12)
    # Where not single numbers are dropped, it may depend on chance.
    near = all(dropped.values()) and torch.allclose(wanted, trained.double(), atol=1e-4)
    return dropped | {"in training the sum is normalised": near}


def build_output(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    begin=lambda self, X, residual: self.W_o(X),
    drop=drop,
    finish=lambda self, Y, X, residual: self.norm(Y + residual),
    bias=True,
    affine=True,
):
    class BertSelfOutput(nn.Module):
        def __init__(self, config):
            super().__init__()
            width = config.hidden_size
            self.W_o = nn.Linear(width, width, bias=bias)
            self.norm = nn.LayerNorm(width, eps=eps(config), elementwise_affine=affine)
            self.rate = rate(config)

        def forward(self, X, residual):
            return finish(self, drop(self, begin(self, X, residual)), X, residual)

    return BertSelfOutput


def own_norm(self, Y, axis=-1, correction=0, shift=True, eps=None):
    mean = Y.mean(axis, keepdim=True)
    variance = Y.var(axis, keepdim=True, correction=correction)
    if not shift:
        mean, variance = 0, Y.square().mean(axis, keepdim=True)
    scaled = (Y - mean) / (variance + (self.norm.eps if eps is None else eps)) ** 0.5
    return scaled * self.norm.weight + self.norm.bias


def own_norm_by_difference(self, Y):
    mean = Y.mean(-1, keepdim=True)
    variance = Y.square().mean(-1, keepdim=True) - mean.square()
    scaled = (Y - mean) / (variance + self.norm.eps) ** 0.5
    return scaled * self.norm.weight + self.norm.bias


BY_DIFFERENCE = {
    "did": "You compute the variance as a mean of squares less the square of the mean.",
    "why": "On paper the two are the same. In the computer, far from 0, the two squares agree in "
    "all the digits that there are, and their difference is 0, or below. First take the mean off, "
    "then square.",
}


def own_norm_by_std(self, Y, correction=1):
    spread = Y.std(-1, keepdim=True, correction=correction)
    scaled = (Y - Y.mean(-1, keepdim=True)) / (spread + self.norm.eps)
    return scaled * self.norm.weight + self.norm.bias


OUTPUT = {
    "no-residual": known(
        "The residual is not in your result.",
        "What went into the attention is added to what came out, so that a layer only has to say "
        "what changes.",
        finish=lambda self, Y, X, residual: self.norm(Y),
    ),
    "residual-after-norm": known(
        "You add the residual after the norm.",
        "BERT normalises the sum (post-norm): what leaves the module is what the norm returns.",
        finish=lambda self, Y, X, residual: self.norm(Y) + residual,
    ),
    "residual-normalised-alone": known(
        "You normalise the residual and add the rest to it.",
        "The norm comes last, over the sum of both.",
        finish=lambda self, Y, X, residual: Y + self.norm(residual),
    ),
    "both-normalised": known(
        "You normalise twice, each summand by itself.",
        "There is one norm, over the sum of both.",
        finish=lambda self, Y, X, residual: self.norm(Y) + self.norm(residual),
    ),
    "pre-norm": known(
        "You normalise before W_o and add the residual to the result.",
        "Many newer models do that (pre-norm). BERT normalises after the sum.",
        begin=lambda self, X, residual: self.W_o(self.norm(X)),
        finish=lambda self, Y, X, residual: Y + residual,
    ),
    "no-norm": known(
        "Your result is the sum, not normalised.",
        "The numbers of each word are brought to mean 0 and variance 1, then scaled and shifted "
        "by what the norm has learnt.",
        finish=lambda self, Y, X, residual: Y + residual,
    ),
    "norm-twice": known(
        "You normalise before the sum and again after it.",
        "There is one norm, after the sum.",
        finish=lambda self, Y, X, residual: self.norm(self.norm(Y) + residual),
    ),
    "x-for-residual": known(
        "You add X, not residual.",
        "X is what came out of the heads. The residual is what went in, before the attention.",
        finish=lambda self, Y, X, residual: self.norm(Y + X),
    ),
    "arguments-swapped": known(
        "You project the residual and add X.",
        "W_o mixes what the heads found, and that is X, the first argument.",
        begin=lambda self, X, residual: self.W_o(residual),
        finish=lambda self, Y, X, residual: self.norm(Y + X),
    ),
    "sum-projected": known(
        "You add first and project the sum.",
        "The residual goes round W_o untouched: only what the heads found is projected.",
        begin=lambda self, X, residual: self.W_o(X + residual),
        finish=lambda self, Y, X, residual: self.norm(Y),
    ),
    "sum-projected-and-added": known(
        "You project X + residual, and add the residual again.",
        "The residual is added once, after W_o: only what the heads found is projected.",
        begin=lambda self, X, residual: self.W_o(X + residual),
    ),
    "sum-projected-after-dropout": known(
        "You drop numbers of X, add the residual and project the sum.",
        "W_o comes first, then dropout, then the sum: only what the heads found is projected.",
        begin=lambda self, X, residual: self.W_o(drop(self, X) + residual),
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X, residual: self.norm(Y),
    ),
    "residual-projected": known(
        "You project the residual, and X is not used.",
        "W_o mixes what the heads found, and that is X, the first argument.",
        begin=lambda self, X, residual: self.W_o(residual),
    ),
    "residual-subtracted": known(
        "You subtract the residual.",
        "The two are added.",
        finish=lambda self, Y, X, residual: self.norm(Y - residual),
    ),
    "subtracted-from-the-residual": known(
        "You subtract from the residual.",
        "The two are added.",
        finish=lambda self, Y, X, residual: self.norm(residual - Y),
    ),
    "residual-twice": known(
        "You add the residual twice.",
        "What went in counts once, beside what the heads found.",
        finish=lambda self, Y, X, residual: self.norm(Y + 2 * residual),
    ),
    "no-projection": known(
        "W_o is not used.",
        "Without it the heads never meet: each keeps to its own features.",
        begin=lambda self, X, residual: X,
    ),
    "bias-not-used": known(
        "The bias of W_o has no effect: you multiply with its weight only.",
        "BERT's projections are X times W plus a bias. Calling an nn.Linear does both.",
        begin=lambda self, X, residual: X @ self.W_o.weight.T,
    ),
    "projected-twice": known(
        "You apply W_o twice.",
        "Once joins the heads. A second time mixes what is joined already.",
        begin=lambda self, X, residual: self.W_o(self.W_o(X)),
    ),
    "activation-inside": known(
        "You put a GELU after W_o.",
        "The activation belongs to the feed-forward part. Here there is none.",
        section="Each word on its own",
        begin=lambda self, X, residual: nn.functional.gelu(self.W_o(X)),
    ),
    "default-eps": known(
        "Your norm uses PyTorch's eps of 1e-5.",
        "Where the numbers of a word differ little, eps decides the result. The config says which "
        "one this model was trained with.",
        eps=lambda config: 1e-5,
    ),
    "another-eps": known(
        "Your norm uses an eps of 1e-6 whatever the config says.",
        "Some models have that one. The config says which one this model was trained with.",
        eps=lambda config: 1e-6,
    ),
    "fixed-eps": known(
        "Your norm uses an eps of 1e-12 whatever the config says.",
        "Most BERTs have that one. Models that were trained with another need theirs.",
        eps=lambda config: 1e-12,
    ),
    "norm-over-words": known(
        "You normalise over the words.",
        "Each word is normalised by itself, over its features: what a word becomes must not depend "
        "on how many others there are.",
        finish=lambda self, Y, X, residual: own_norm(self, Y + residual, axis=1),
    ),
    "variance-by-difference": known(
        **BY_DIFFERENCE,
        finish=lambda self, Y, X, residual: own_norm_by_difference(self, Y + residual),
    ),
    "variance-over-n-minus-1": known(
        "You divide by n - 1 where LayerNorm divides by n.",
        "PyTorch's var and std count one less unless told otherwise. LayerNorm takes the mean of "
        "the squared distances.",
        finish=lambda self, Y, X, residual: own_norm(self, Y + residual, correction=1),
    ),
    "divided-by-std": known(
        "You divide by std as it is, or by the root of var.",
        "Both divide by n - 1 unless told otherwise, where LayerNorm divides by n, and know "
        "nothing of eps.",
        finish=lambda self, Y, X, residual: own_norm(self, Y + residual, correction=1, eps=0),
    ),
    "eps-added-to-std": known(
        "You divide by std, with n - 1, and add eps to it.",
        "std divides by n - 1 unless told otherwise, where LayerNorm divides by n. And eps belongs "
        "to the variance, before the root.",
        finish=lambda self, Y, X, residual: own_norm_by_std(self, Y + residual),
    ),
    "eps-outside-the-root": known(
        "You add eps to the root of the variance.",
        "It belongs to the variance, before the root. Where the numbers of a word differ little, "
        "that makes a difference.",
        finish=lambda self, Y, X, residual: own_norm_by_std(self, Y + residual, correction=0),
    ),
    "norm-without-shift": known(
        "The norm's bias is not in your result.",
        "After normalising, each feature is scaled by norm.weight and shifted by norm.bias. "
        "Calling the norm does both.",
        finish=lambda self, Y, X, residual: self.norm(Y + residual) - self.norm.bias,
    ),
    "norm-without-scale": known(
        "The norm's weight is not in your result.",
        "After normalising, each feature is scaled by norm.weight and shifted by norm.bias. "
        "Calling the norm does both.",
        finish=lambda self, Y, X, residual: (
            _normalised(Y + residual, self.norm.eps) + self.norm.bias
        ),
    ),
    "norm-without-scale-and-shift": known(
        "The norm's weight and bias are not in your result.",
        "After normalising, each feature is scaled by norm.weight and shifted by norm.bias. "
        "Calling the norm does both.",
        finish=lambda self, Y, X, residual: _normalised(Y + residual, self.norm.eps),
    ),
    "no-eps": known(
        "eps is not in your norm.",
        "It is added to the variance, before the root. Where the numbers of a word differ little, "
        "it decides the result.",
        finish=lambda self, Y, X, residual: own_norm(self, Y + residual, eps=0),
    ),
    "mean-not-subtracted": known(
        "You scale without subtracting the mean.",
        "That is another norm (RMSNorm). LayerNorm moves the mean of each word to 0 first.",
        finish=lambda self, Y, X, residual: own_norm(self, Y + residual, shift=False),
    ),
    "no-dropout": known(
        "hidden_dropout_prob has no effect while training.",
        "With that probability a number of W_o's result is dropped, before the residual is added.",
        drop=lambda self, Y: Y,
    ),
    "dropout-in-eval": known(
        "Numbers are dropped in eval mode too.",
        WHO_IS_TRAINING,
        drop=lambda self, Y: nn.functional.dropout(Y, self.rate, True),
    ),
    "other-probability": known(
        "You drop with attention_probs_dropout_prob.",
        "That one is for attention weights, in 6.2. Hidden states have a probability of their own.",
        rate=lambda config: config.attention_probs_dropout_prob,
    ),
    **kept_with_p("hidden_dropout_prob"),
    "whole-words-dropped": known(
        **WHOLE,
        drop=dropped_whole,
    ),
    "dropped-by-hand": known(
        **BY_HAND,
        drop=dropped_by_hand,
    ),
    "dropout-after-the-sum": known(
        "The residual is dropped too. Do you drop after it was added?",
        "It is meant to get through whatever happens. Only what is added to it is dropped.",
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X, residual: self.norm(drop(self, Y + residual)),
    ),
    "dropout-after-the-norm": known(
        "You drop last, after the norm.",
        "Only what is added to the residual is dropped, so dropout stands before the sum.",
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X, residual: drop(self, self.norm(Y + residual)),
    ),
    "dropout-on-the-residual": known(
        "You drop numbers of the residual.",
        "The residual is meant to get through whatever happens. Dropped is what is added to it.",
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X, residual: self.norm(Y + drop(self, residual)),
    ),
    "dropout-before-projection": known(
        "You drop before the bias of W_o is added: numbers of X, or of the product.",
        "With all of them dropped, W_o still returns its bias. What is dropped is W_o's result.",
        begin=lambda self, X, residual: self.W_o(drop(self, X)),
        drop=lambda self, Y: Y,
    ),
    "dropout-twice": known(
        "You drop twice what W_o returns.",
        "Then more is dropped than hidden_dropout_prob says, and what is kept is divided by 1 - p "
        "twice. Do you have an nn.Dropout and a call of F.dropout?",
        drop=lambda self, Y: drop(self, drop(self, Y)),
    ),
    "dropout-before-projection-too": known(
        f"You drop numbers before W_o as well as after it, {OR_ALPHA}",
        "Only what W_o returns is dropped, once, to 0. X arrives as the heads made it.",
        begin=lambda self, X, residual: self.W_o(drop(self, X)),
    ),
    "not-scaled-up": known(
        "Numbers are dropped in training, and the others stay as they were.",
        "Then what is added to the residual is smaller in training than in eval mode. What is kept "
        "is divided by 1 - p, as nn.Dropout does.",
        drop=lambda self, Y: Y * (torch.rand_like(Y) >= self.rate) if self.training else Y,
    ),
    "no-bias": known(
        "Your W_o has no bias.",
        "In lesson 4 bias=False was the default; BERT's projections have one.",
        section="The heads of lesson 4, with biases",
        wrong=build_output(bias=False),
    ),
    "norm-without-weights": known(
        "Your norm has no weight and bias of its own.",
        "After normalising, a scale and a shift are learnt for each feature, and a trained model "
        "brings them along.",
        wrong=build_output(affine=False),
    ),
}
OUTPUT = read_again("Joined, added, normalised", OUTPUT)

TASK = Task(
    "06-BertSelfOutput",
    bert.BertSelfOutput,
    output_cases,
    run=run_output,
    examine=examine_output,
    returns=("the output",),
    kind="class",
    mistakes=OUTPUT,
    build=build_output,
    alone=all_but(
        OUTPUT,
        "no-residual",
        "residual-after-norm",
        "no-norm",
        "x-for-residual",
        "sum-projected",
        "no-projection",
        "default-eps",
        "variance-over-n-minus-1",
        "no-dropout",
        "dropout-after-the-sum",
        "dropout-in-eval",
        "other-probability",
    ),
    stages=output_stages,
    forbidden=("mha_course.bert.BertSelfOutput",),
    number=3,
)
