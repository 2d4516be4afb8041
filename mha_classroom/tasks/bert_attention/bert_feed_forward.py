"""Task 6.4, BertFeedForward: widen, activate, narrow, add, normalise."""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

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
    dropped_whole,
    kept_with_p,
    linear_shapes,
    module_case,
    nothing_dropped,
    output_and_learning,
    with_the_shape_of,
)
from mha_classroom.tasks.bert_attention.bert_self_output import (
    BY_DIFFERENCE,
    FAR,
    dropped_of_normalised,
    norm,
    own_norm,
    own_norm_by_difference,
    words_far_from_0,
)
from mha_classroom.tasks.bert_attention.runs import run_feed_forward
from mha_course import bert
from mha_course.bert import ACTIVATIONS


def feed_forward_cases(draw):
    def case(name, width, inner, shape, **more):
        shapes = partial(feed_forward_shapes, intermediate_size=inner)
        more["intermediate_size"] = inner
        return module_case(draw, name, (width, 1), shape, shapes, **more)

    dropped = case("hidden_dropout_prob=0.25", 11, 2, (5, 13), hidden_dropout_prob=0.25)
    flat = case("the sum hardly varies within a word", 5, 3, (2, 3), layer_norm_eps=1e-8)
    for name in ("W_2.weight", "W_2.bias", "X"):
        flat.inputs[name] *= 1e-4
    easy = [
        case("1 sequence of 2 words", 3, 5, (1, 2)),
        case("2 sequences", 5, 7, (2, 3)),
        case(
            "hidden_act='silu', the inner width is below the outer", 7, 3, (3, 2), hidden_act="silu"
        ),
    ]
    for one in easy:
        one.inputs["X"] *= 3  # so far apart that eps shows in the next case only
    approximate = case("hidden_act='gelu_new'", 5, 7, (2, 5), hidden_act="gelu_new")
    approximate.inputs["W_1.weight"] *= 3  # around 2 it differs most from the exact one
    approximate.inputs["W_2.weight"] *= 3
    approximate.inputs["norm.weight"] = torch.ones(5, dtype=torch.float64)
    turned = case("hidden_act='relu', X is not contiguous", 5, 7, (2, 3), hidden_act="relu")
    turned.inputs["X"] = turned.inputs["X"].mT.contiguous().mT
    far = case(FAR, 2, 3, (1, 3))
    far.inputs["W_2.weight"] *= 0
    far.inputs["W_2.bias"] *= 0
    far.inputs["X"] = words_far_from_0()
    return [
        *easy,
        flat,
        case("layer_norm_eps=0.5", 5, 7, (2, 3), layer_norm_eps=0.5),
        turned,
        approximate,
        far,
        case("in training, without dropout", 5, 7, (2, 3), training=True),
        case("hidden_dropout_prob=1", 5, 7, (2, 3), hidden_dropout_prob=1.0),
        case(
            "attention_probs_dropout_prob=1, which is for 6.2",
            5,
            7,
            (2, 3),
            attention_probs_dropout_prob=1.0,
        ),
        _case_that_shows_dropout(dropped),
    ]


def _case_that_shows_dropout(case):
    """W_2 returns 1 but for a word's first and last feature, and X is known.

    All words of X are the same, so one bias does it, and what is dropped before W_2 shows too.
    """
    case.inputs["norm.weight"] = torch.ones(11, dtype=torch.float64)
    case.inputs["norm.bias"] = torch.zeros(11, dtype=torch.float64)
    case.inputs["X"] = torch.zeros_like(case.inputs["X"])
    case.inputs["X"][..., -1] = 1.0
    case.inputs["W_2.bias"] = torch.zeros(11, dtype=torch.float64)
    narrow = feed_forward_steps(case.inputs, case.inputs, case.inputs["X"][0, 0])[
        "what W_2 returns"
    ]
    ones = torch.tensor([0.0] + [1.0] * 9 + [0.0]).double()
    case.inputs["W_2.bias"] = ones - narrow
    return case


def feed_forward_shapes(width, intermediate_size):
    return (
        linear_shapes("W_1", intermediate_size, width)
        | linear_shapes("W_2", width, intermediate_size)
        | {"norm.weight": (width,), "norm.bias": (width,)}
    )


def feed_forward_steps(inputs, weights, X):
    wide = apply_linear("W_1", weights, X)
    bent = ACTIVATIONS[inputs.get("hidden_act", "gelu")](wide)
    narrow = apply_linear("W_2", weights, bent)
    return {
        "W_1 of X": wide,
        "what the activation makes of it": bent,
        "what W_2 returns": narrow,
        "the sum with X": narrow + X,
        "the normalised sum": norm(weights, narrow + X, inputs.get("layer_norm_eps", 1e-12)),
    }


@total
def examine_feed_forward(inputs, seen):
    """The result; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, "hidden_dropout_prob", learn=True)
    output, *more = judged("BertFeedForward", inputs, plan, seen)
    nothing_dropped(seen)
    if inputs.get("hidden_dropout_prob") == 0.25:
        again, trained = more
        refuse_unlearnt(inputs, plan, seen)
        return {STILL: equal(output, again)} | drops_numbers(trained, inputs["X"])
    if not more:
        return output
    if "training" in inputs:
        return output_and_learning(inputs, plan, seen, *more)
    return {EVAL: output, TRAINED: more[0]}


def drops_numbers(trained, X):
    """What dropout does to a normalised sum: its ends, which nothing drops, tell the scale."""
    trained = with_the_shape_of(X, trained)
    first, last = trained[..., :1], trained[..., -1:]
    before = (trained - first) / (last - first)
    return dropped_of_normalised((before - X)[..., 1:-1], before, trained)


def build_feed_forward(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    inner=lambda config: config.intermediate_size,
    bend=lambda config: ACTIVATIONS[config.hidden_act],
    begin=lambda self, X: X,
    widen=lambda self, X: self.activation(self.W_1(X)),
    narrow=lambda self, hidden: self.W_2(hidden),
    drop=drop,
    finish=lambda self, Y, X: self.norm(Y + X),
    bias=True,
    affine=True,
):
    class BertFeedForward(nn.Module):
        def __init__(self, config):
            super().__init__()
            width = config.hidden_size
            self.W_1 = nn.Linear(width, inner(config), bias=bias)
            self.W_2 = nn.Linear(inner(config), width, bias=bias)
            self.activation = bend(config)
            self.norm = nn.LayerNorm(width, eps=eps(config), elementwise_affine=affine)
            self.rate = rate(config)

        def forward(self, X):
            X = begin(self, X)
            return finish(self, drop(self, narrow(self, widen(self, X))), X)

    return BertFeedForward


class _Swapped(build_feed_forward()):
    """W_1 narrows and W_2 widens."""

    def __init__(self, config):
        super().__init__(config)
        self.W_1, self.W_2 = self.W_2, self.W_1


class _NameCalled(build_feed_forward()):
    """The name of the activation is called for the function."""

    def __init__(self, config):
        super().__init__(config)
        self.activation = config.hidden_act


class _ActivationCalledAtOnce(build_feed_forward()):
    def __init__(self, config):
        super().__init__(config)
        self.activation = config.activation()


class _WideNorm(build_feed_forward()):
    def __init__(self, config):
        super().__init__(config)
        self.norm = nn.LayerNorm(config.intermediate_size, eps=config.layer_norm_eps)


DROPPED_X = "You drop numbers of X, before W_1."
ONLY_W_2 = "BERT drops only numbers of W_2's result. X arrives as the part before made it."
JOINED = "Joined, added, normalised"

FEED_FORWARD = {
    "no-activation": known(
        "There is no activation between W_1 and W_2.",
        "Two linear layers in a row are one linear layer: the inner width would be for nothing.",
        widen=lambda self, X: self.W_1(X),
    ),
    "relu": known(
        "You use ReLU whatever the config says.",
        "ReLU makes 0 of every negative number. config.activation is the function that this "
        "model was trained with.",
        bend=lambda config: F.relu,
    ),
    "always-gelu": known(
        "You use the exact GELU whatever the config says.",
        "Most BERTs were trained with it, and not all. config.activation is the function.",
        bend=lambda config: F.gelu,
    ),
    "gelu-approximated": known(
        "You use the approximation of GELU by tanh whatever the config says.",
        "It differs in the fourth digit after the point. config.activation is the function: "
        "only gelu_new is the approximation.",
        bend=lambda config: ACTIVATIONS["gelu_new"],
    ),
    "gelu-unless-relu": known(
        "You take ReLU where the config names it, and the exact GELU for all else.",
        "silu is another function, and gelu_new is the approximation of GELU by tanh. "
        "config.activation is the function, whichever it is.",
        bend=lambda config: F.relu if config.hidden_act == "relu" else F.gelu,
    ),
    "name-called": known(
        "You call a string as a function. config.hidden_act, for instance, is only a name.",
        "The function of that name is config.activation.",
        wrong=_NameCalled,
    ),
    "activation-called-at-once": known(
        "You call the activation without giving it anything.",
        "config.activation is the function itself. With () behind it, it is called; keep it "
        "without, and call it in forward.",
        wrong=_ActivationCalledAtOnce,
    ),
    "x-bent": known(
        "You apply the activation to X, before W_1.",
        "Then W_1 and W_2 stand next to each other and are one linear layer.",
        widen=lambda self, X: self.W_1(self.activation(X)),
    ),
    "activation-after-narrowing": known(
        "You apply the activation after W_2, not between W_1 and W_2.",
        "Then W_1 and W_2 stand next to each other and are one linear layer.",
        widen=lambda self, X: self.W_1(X),
        narrow=lambda self, hidden: self.activation(self.W_2(hidden)),
    ),
    "activation-twice": known(
        "You apply the activation after W_1 and again after W_2.",
        "What is added to X may be of either sign. There is one activation, at the inner width.",
        narrow=lambda self, hidden: self.activation(self.W_2(hidden)),
    ),
    "no-residual": known(
        "X is not added to the result of W_2.",
        "What went in is added again, as after the attention.",
        section=JOINED,
        finish=lambda self, Y, X: self.norm(Y),
    ),
    "itself-added": known(
        "You add the result of W_2 to itself. Does X still hold what went in, where you add it?",
        "If each step is kept under the name X, what went in is gone by then.",
        section=JOINED,
        drop=lambda self, Y: drop(self, Y) + Y,
        finish=lambda self, Y, X: self.norm(Y),
    ),
    "residual-after-norm": known(
        "You add X after the norm.",
        "BERT normalises the sum (post-norm): what leaves the module is what the norm returns.",
        section=JOINED,
        finish=lambda self, Y, X: self.norm(Y) + X,
    ),
    "residual-normalised-alone": known(
        "You normalise X and add the rest to it.",
        "The norm comes last, over the sum of both.",
        section=JOINED,
        finish=lambda self, Y, X: Y + self.norm(X),
    ),
    "normed-x-added": known(
        "You add X normalised, and normalise the sum.",
        "What goes round W_1 and W_2 stays as it is. There is one norm, after the sum.",
        section=JOINED,
        finish=lambda self, Y, X: self.norm(Y + self.norm(X)),
    ),
    "pre-norm": known(
        "You normalise before W_1, and the sum is not normalised.",
        "GPT-2 does that (pre-norm). BERT normalises after the sum.",
        section="The norm before or after the sum",
        widen=lambda self, X: self.activation(self.W_1(self.norm(X))),
        finish=lambda self, Y, X: Y + X,
    ),
    "no-norm": known(
        "Your result is the sum, not normalised.",
        "After the sum the numbers of each word are brought to mean 0 and mean square 1, then "
        "scaled and shifted.",
        section=JOINED,
        finish=lambda self, Y, X: Y + X,
    ),
    "variance-by-difference": known(
        **BY_DIFFERENCE,
        section=JOINED,
        finish=lambda self, Y, X: own_norm_by_difference(self, Y + X),
    ),
    "norm-over-words": known(
        "You normalise over the words.",
        "Each word is normalised by itself, over its features: here no word hears of another.",
        section=JOINED,
        finish=lambda self, Y, X: own_norm(self, Y + X, axis=1),
    ),
    "default-eps": known(
        "Your norm uses PyTorch's eps of 1e-5.",
        "Where the numbers of a word differ little, eps decides the result. The config says which "
        "one this model was trained with.",
        section=JOINED,
        eps=lambda config: 1e-5,
    ),
    "another-eps": known(
        "Your norm uses an eps of 1e-6 whatever the config says.",
        "Some models have that one. The config says which one this model was trained with.",
        section=JOINED,
        eps=lambda config: 1e-6,
    ),
    "fixed-eps": known(
        "Your norm uses an eps of 1e-12 whatever the config says.",
        "Most BERTs have that one. Models that were trained with another need theirs.",
        section=JOINED,
        eps=lambda config: 1e-12,
    ),
    "no-dropout": known(
        "hidden_dropout_prob has no effect while training.",
        "With that probability a number of W_2's result is dropped, before X is added.",
        section=JOINED,
        drop=lambda self, Y: Y,
    ),
    "dropout-in-eval": known(
        "Numbers are dropped in eval mode too.",
        WHO_IS_TRAINING,
        section=JOINED,
        drop=lambda self, Y: F.dropout(Y, self.rate, True),
    ),
    "other-probability": known(
        "You drop with attention_probs_dropout_prob.",
        "That one is for attention weights, in 6.2. Hidden states have a probability of their own.",
        section=JOINED,
        rate=lambda config: config.attention_probs_dropout_prob,
    ),
    **kept_with_p("hidden_dropout_prob"),
    "whole-words-dropped": known(
        **WHOLE,
        section=JOINED,
        drop=dropped_whole,
    ),
    "dropped-by-hand": known(
        **BY_HAND,
        section=JOINED,
        drop=dropped_by_hand,
    ),
    "dropout-inside": known(
        "You drop before the bias of W_2 is added: numbers of the inner width, or of the product.",
        "Some models drop there too. BERT drops only numbers of W_2's result: "
        "with all of them dropped, only X is left to be normalised.",
        widen=lambda self, X: drop(self, self.activation(self.W_1(X))),
        drop=lambda self, Y: Y,
    ),
    "dropout-on-x": known(
        DROPPED_X,
        ONLY_W_2,
        begin=lambda self, X: drop(self, X),
        drop=lambda self, Y: Y,
    ),
    "dropout-before-W_1": known(
        DROPPED_X,
        ONLY_W_2,
        widen=lambda self, X: self.activation(self.W_1(drop(self, X))),
        drop=lambda self, Y: Y,
    ),
    "dropout-twice": known(
        "You drop twice what W_2 returns.",
        "Then more is dropped than hidden_dropout_prob says, and what is kept is divided by 1 - p "
        "twice. Do you have an nn.Dropout and a call of F.dropout?",
        section=JOINED,
        drop=lambda self, Y: drop(self, drop(self, Y)),
    ),
    "dropout-inside-too": known(
        f"You drop numbers before W_2 as well as after it, {OR_ALPHA}",
        "Some models drop there too. BERT drops only numbers of W_2's result, once, to 0.",
        widen=lambda self, X: drop(self, self.activation(self.W_1(X))),
    ),
    "dropout-after-the-sum": known(
        "X is dropped too. Do you drop after it was added?",
        "It is meant to get through whatever happens. Only what is added to it is dropped.",
        section=JOINED,
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X: self.norm(drop(self, Y + X)),
    ),
    "dropout-after-the-norm": known(
        "You drop last, after the norm.",
        "Only what is added to X is dropped, so dropout stands before the sum.",
        section=JOINED,
        drop=lambda self, Y: Y,
        finish=lambda self, Y, X: drop(self, self.norm(Y + X)),
    ),
    "not-scaled-up": known(
        "Numbers are dropped in training, and the others stay as they were.",
        "What is kept is divided by 1 - p, as nn.Dropout does: otherwise what is added to X is "
        "smaller in training than in eval mode.",
        section=JOINED,
        drop=lambda self, Y: Y * (torch.rand_like(Y) >= self.rate) if self.training else Y,
    ),
    "four-times-as-wide": known(
        "Your inner width is 4 times hidden_size whatever the config says.",
        "That holds for BERT-base. The config has an intermediate_size of its own.",
        wrong=build_feed_forward(inner=lambda config: 4 * config.hidden_size),
    ),
    "widths-swapped": known(
        "Your W_1 takes the inner width and returns hidden_size. Have W_1 and W_2 changed places?",
        "W_1 is the first: it takes hidden_size numbers. nn.Linear is given what comes in, then "
        "what goes out.",
        wrong=_Swapped,
    ),
    "norm-of-inner-width": known(
        "Your norm is as wide as the inner numbers.",
        "It comes after the sum with X, where a word has hidden_size numbers again.",
        section=JOINED,
        wrong=_WideNorm,
    ),
    "no-bias": known(
        "Your W_1 has no bias, and perhaps W_2 has none.",
        "BERT's linear layers have one each.",
        wrong=build_feed_forward(bias=False),
    ),
    "norm-without-weights": known(
        "Your norm has no weight and bias of its own.",
        "After normalising, a scale and a shift are learnt for each feature, and a trained model "
        "brings them along.",
        section=JOINED,
        wrong=build_feed_forward(affine=False),
    ),
}
FEED_FORWARD = read_again("Each word on its own", FEED_FORWARD)

TASK = Task(
    "06-BertFeedForward",
    bert.BertFeedForward,
    feed_forward_cases,
    run=run_feed_forward,
    examine=examine_feed_forward,
    returns=("the output",),
    kind="class",
    mistakes=FEED_FORWARD,
    build=build_feed_forward,
    alone=all_but(
        FEED_FORWARD,
        "no-activation",
        "relu",
        "always-gelu",
        "no-residual",
        "no-norm",
        "default-eps",
        "no-dropout",
        "other-probability",
        "dropout-after-the-sum",
    ),
    stages=lambda inputs: feed_forward_steps(inputs, inputs, inputs["X"]),
    forbidden=("mha_course.bert.BertFeedForward",),
    number=4,
    since=2,
)
