"""Task 6.5, BertLayer: attention, its output, the feed-forward part."""

import torch
from torch import nn

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.modules import judged, plan_of
from mha_classroom.checks.task import Task, all_but, known, read_again
from mha_classroom.tasks.bert_attention.bert_feed_forward import (
    build_feed_forward,
    drops_numbers,
    feed_forward_shapes,
    feed_forward_steps,
)
from mha_classroom.tasks.bert_attention.bert_self_attention import (
    STILL,
    apply_linear,
    attention_shapes,
    attention_steps,
    build_attention,
    compared_calls,
    module_case,
    right_way_round,
    with_the_shape_of,
)
from mha_classroom.tasks.bert_attention.bert_self_output import (
    build_output,
    output_shapes,
    output_steps,
)
from mha_classroom.tasks.bert_attention.runs import dropout_of_layer, run_layer
from mha_course import bert


def layer_cases(draw):
    other = {"layer_norm_eps": 0.5, "hidden_act": "relu"}

    def case(name, widths, shape, *lengths, intermediate_size=7, **more):
        shapes = layer_shapes(intermediate_size)
        more["intermediate_size"] = intermediate_size
        return module_case(draw, name, widths, shape, shapes, *lengths, **more)

    added = case("a mask of all kinds of numbers", (6, 3), (2, 5))
    # All apart, none so far above the others that nothing else counts, and in sum exactly 0.
    mask = (0.625 * (torch.arange(10) - 4.5).double())[draw.normal(10).argsort()]
    added.inputs["mask"] = mask.reshape(2, 1, 1, 5)
    above = case("1 head, a mask of numbers above 0", (5, 1), (1, 3))
    above.inputs["mask"] = torch.tensor([1.5, 3.0, 0.5]).double().reshape(1, 1, 1, 3)
    return [
        case("1 sequence, 2 heads", (4, 2), (1, 3), intermediate_size=3),
        case("sequences of unequal length", (6, 3), (2, 5), [5, 2]),
        case("3 sequences of 3 words, one of padding alone", (6, 2), (3, 3), [2, 3, 0], **other),
        case("in training, without dropout", (6, 3), (2, 5), [5, 3], training=True),
        case(
            "attention_probs_dropout_prob=1",
            (6, 3),
            (2, 5),
            [5, 3],
            attention_probs_dropout_prob=1.0,
        ),
        case("hidden_dropout_prob=1", (6, 3), (2, 5), [5, 3], hidden_dropout_prob=1.0),
        added,
        above,
    ]


def cases_with_dropout(draw):
    """The cases, and three that show what dropout does, in each of the parts."""

    def case(name, dropout="hidden_dropout_prob"):
        more = {"intermediate_size": 7, dropout: 0.25}
        return module_case(draw, name, (12, 3), (5, 11), layer_shapes(7), **more)

    first = _case_that_shows_the_first_dropout(case("hidden_dropout_prob=0.25"))
    second = _case_that_shows_the_second_dropout(case("hidden_dropout_prob=0.25, other weights"))
    weights = _case_that_shows_dropped_weights(
        case("attention_probs_dropout_prob=0.25", "attention_probs_dropout_prob")
    )
    return [*layer_cases(draw), first, second, weights]


ENDS = torch.tensor([0.0] * 11 + [1.0]).double()  # what is added to: a word with a known scale
ONES = torch.tensor([0.0] + [1.0] * 10 + [0.0]).double()  # what is dropped of


def _case_that_shows_the_first_dropout(case):
    """W_o returns ONES, X is ENDS, and feed_forward adds nothing."""
    weights = dict(case.inputs["weights"])
    case.inputs["X"] = ENDS.expand(case.inputs["X"].shape).clone()
    attended = apply_linear("self_attention.W_v", weights, ENDS)  # whatever the weights: all alike
    weights["self_output.W_o.bias"] = ONES - weights["self_output.W_o.weight"] @ attended
    for name in ("weight", "bias"):
        weights[f"feed_forward.W_2.{name}"] *= 0
    for norm in ("self_output.norm", "feed_forward.norm"):
        weights |= {f"{norm}.weight": 0 * ENDS + 1, f"{norm}.bias": 0 * ENDS}
    case.inputs["weights"] = tuple(weights.items())
    return case


def _case_that_shows_dropped_weights(case):
    """All words are alike, so all weights, and self_output adds to ENDS what a head found."""
    weights = dict(_case_that_shows_the_first_dropout(case).inputs["weights"])
    weights["self_output.W_o.weight"], weights["self_output.W_o.bias"] = ONES.diag(), 0 * ONES
    case.inputs["weights"] = tuple(weights.items())
    return case


def _drops_weights(inputs, trained):
    """What dropout does to weights that are all alike, one over the number of words."""
    trained = with_the_shape_of(inputs["X"], trained)
    first, last = trained[..., :1], trained[..., -1:]
    found = ((trained - first) / (last - first))[..., 1:-1]
    v = apply_linear("self_attention.W_v", dict(inputs["weights"]), ENDS)[1:-1]
    heads = (found / v).split((3, 4, 3), -1)  # of three heads of 4 features, without the ends
    whole = all(torch.allclose(X, X[..., :1].expand_as(X)) for X in heads)
    kept = 0.75 * inputs["X"].shape[1] * torch.cat([X[..., :1] for X in heads], -1)
    single = torch.allclose(kept, kept.round(), atol=1e-4) and len(kept.round().unique()) > 2
    return {
        "in training all numbers that a head found for a word are multiplied by one factor": whole,
        "in training single weights are dropped, and the others are divided by 1 - p": single,
    }


def _case_that_shows_the_second_dropout(case):
    """self_output returns ENDS whatever comes in, and W_2 returns ONES."""
    weights = dict(case.inputs["weights"])
    weights |= {"self_output.norm.weight": 0 * ENDS, "self_output.norm.bias": ENDS}
    weights |= {"feed_forward.norm.weight": 0 * ENDS + 1, "feed_forward.norm.bias": 0 * ENDS}
    weights["feed_forward.W_2.bias"] = bias_for(ONES, weights, ENDS)
    case.inputs["weights"] = tuple(weights.items())
    return case


def bias_for(wanted, weights, X):
    """The bias with which W_2 of feed_forward returns what is wanted, when X comes in."""
    bent = nn.functional.gelu(apply_linear("feed_forward.W_1", weights, X))
    return wanted - weights["feed_forward.W_2.weight"] @ bent


def layer_shapes(intermediate_size):
    def shapes(width):
        parts = {
            "self_attention": attention_shapes(width),
            "self_output": output_shapes(width),
            "feed_forward": feed_forward_shapes(width, intermediate_size),
        }
        return {f"{part}.{n}": s for part, names in parts.items() for n, s in names.items()}

    return shapes


def layer_stages(inputs):
    eps = inputs.get("layer_norm_eps", 1e-12)
    attended = _last(attention_steps(inputs, part(inputs, "self_attention")))
    joined = _last(output_steps(part(inputs, "self_output"), attended, inputs["X"], eps))
    return {
        "what self_attention returns": attended,
        "what self_output returns": joined,
        "what feed_forward returns": _last(
            feed_forward_steps(inputs, part(inputs, "feed_forward"), joined)
        ),
    }


def _last(steps):
    return list(steps.values())[-1]


def part(inputs, name):
    """The weights of one part of a layer, under their names in it."""
    weights = dict(inputs["weights"])
    return {n.removeprefix(f"{name}."): X for n, X in weights.items() if n.startswith(f"{name}.")}


def _ends(X):
    """What is added to, in the shape of X: in one of the two cases X is anything else."""
    ends = torch.zeros_like(X)
    ends[..., -1] = 1.0
    return ends


@total
def examine_layer(inputs, seen):
    """The results; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, dropout_of_layer(inputs), weights=True)
    weights = dict(inputs["weights"])
    right_way_round(seen)
    results = judged("BertLayer", weights, plan, seen)
    if inputs.get("attention_probs_dropout_prob") == 0.25:
        output, _, _, again, trained = results
        return {STILL: equal(output, again)} | _drops_weights(inputs, trained)
    if inputs.get("hidden_dropout_prob") == 0.25:
        output, _, _, again, trained = results
        return {STILL: equal(output, again)} | drops_numbers(trained, _ends(inputs["X"]))
    return compared_calls(inputs, weights, plan, seen, results)


def build_layer(
    attend=lambda self, X, mask, need_weights: self.self_attention(X, mask, True),
    join=lambda self, attended, X: self.self_output(attended, X),
    think=lambda self, joined, attended, X: self.feed_forward(joined),
    show=lambda output, weights: (output, weights),
    plain=lambda output, weights: output,
):
    class BertLayer(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.self_attention = build_attention()(config)
            self.self_output = build_output()(config)
            self.feed_forward = build_feed_forward()(config)
            self.drop = nn.Dropout(config.hidden_dropout_prob)
            self.drop_found = nn.Dropout(config.attention_probs_dropout_prob)

        def forward(self, X, mask=None, need_weights=False):
            attended, weights = attend(self, X, mask, need_weights)
            output = think(self, join(self, attended, X), attended, X)
            return show(output, weights) if need_weights else plain(output, weights)

    return BertLayer


class _TupleFedOn(build_layer()):
    def forward(self, X, mask=None, need_weights=False):
        attended = self.self_attention(X, mask, need_weights)
        return self.feed_forward(self.self_output(attended, X))


class _OneModule(build_layer()):
    """self_output and feed_forward share their norm."""

    def __init__(self, config):
        super().__init__(config)
        self.feed_forward.norm = self.self_output.norm


class _PairUnpacked(build_layer()):
    """Two values are taken from self_attention where it may return one."""

    def forward(self, X, mask=None, need_weights=False):
        attended, weights = self.self_attention(X, mask, need_weights)
        output = self.feed_forward(self.self_output(attended, X))
        return (output, weights) if need_weights else output


class _OptionsSwapped(build_layer()):
    """need_weights is given for the mask, and whether there is a mask for need_weights."""

    def forward(self, X, mask=None, need_weights=False):
        found = self.self_attention(X, need_weights, mask is not None)
        attended, weights = found if isinstance(found, tuple) else (found, None)
        output = self.feed_forward(self.self_output(attended, X))
        return (output, weights) if need_weights else output


class _NeedWeightsForMask(build_layer()):
    def forward(self, X, mask=None, need_weights=False):
        found = self.self_attention(X, need_weights)
        attended, weights = found if need_weights else (found, None)
        output = self.feed_forward(self.self_output(attended, X))
        return (output, weights) if need_weights else output


class _WeightsOfAnotherCall(build_layer()):
    """The weights come from a second call, which leaves the mask out."""

    def forward(self, X, mask=None, need_weights=False):
        output = super().forward(X, mask)
        return (output, self.self_attention(X, None, True)[1]) if need_weights else output


class _PairWithoutWeights(build_layer()):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, mask, not need_weights)


class _EndsEarly(build_layer()):
    def forward(self, X, mask=None, need_weights=False):
        if need_weights:
            attended, weights = self.self_attention(X, mask, True)
            return self.self_output(attended, X), weights
        return super().forward(X, mask)


class _FoundDropped(build_layer()):
    """What the heads found is dropped, and no weights."""

    def __init__(self, config):
        super().__init__(config)
        self.self_attention.rate = 0.0

    def forward(self, X, mask=None, need_weights=False):
        attended, weights = self.self_attention(X, mask, True)
        output = self.feed_forward(self.self_output(self.drop_found(attended), X))
        return (output, weights) if need_weights else output


class _WeightsKept(build_layer()):
    """No weights are dropped."""

    def __init__(self, config):
        super().__init__(config)
        self.self_attention.rate = 0.0


class _NoResidualGiven(build_layer()):
    def forward(self, X, mask=None, need_weights=False):
        super().forward(X, mask)
        missing = "missing 1 required positional argument: 'residual'"
        raise TypeError(f"BertSelfOutput.forward() {missing}")


class _ClassOfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = build_attention()
        self.self_output = build_output()(config)
        self.feed_forward = build_feed_forward()(config)


class _ThreeClasses(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention, self.self_output = build_attention(), build_output()
        self.feed_forward = build_feed_forward()


CALLED = "A class becomes a module when it is called, here with config."
ADDED = "A mask that is added"
JOINED = "Joined, added, normalised"
WORD = "Each word on its own"

LAYER = {
    "residual-of-attention": known(
        "You give self_output the result of the attention twice, also as the residual.",
        "The residual is what went into the attention: the words as they were before.",
        section=JOINED,
        join=lambda self, attended, X: self.self_output(attended, attended),
    ),
    "arguments-swapped": known(
        "You give self_output its arguments in the other order.",
        "Its first argument is what the heads found, and W_o joins that. The second goes round it.",
        section=JOINED,
        join=lambda self, attended, X: self.self_output(X, attended),
    ),
    "attention-not-used": known(
        "The result of the attention goes nowhere: self_output gets X twice.",
        "Then no word hears of another. What the heads found is the first argument.",
        section=JOINED,
        join=lambda self, attended, X: self.self_output(X, X),
    ),
    "output-skipped": known(
        "The feed-forward part gets what the attention returned: self_output is left out, or its "
        "result is not used.",
        "The parts stand in a row, each takes what the one before returned. Between attention and "
        "feed-forward part the heads are joined, the residual is added, the sum normalised.",
        join=lambda self, attended, X: attended,
    ),
    "output-after-feed-forward": known(
        "You give the feed-forward part what the attention returned, and self_output comes last.",
        "The parts stand in a row, each takes what the one before returned. First the heads are "
        "joined and X is added, then each word is worked on alone.",
        join=lambda self, attended, X: attended,
        think=lambda self, joined, attended, X: self.self_output(self.feed_forward(attended), X),
    ),
    "only-residual-added": known(
        "You add X to the result of the attention, and self_output is left out, or its result is "
        "not used.",
        "The sum is one of its three steps. The heads have to be joined by W_o before it and the "
        "sum normalised after it.",
        section=JOINED,
        join=lambda self, attended, X: attended + X,
    ),
    "residual-twice": known(
        "You add X to what self_output returns.",
        "self_output has added it already, before its norm.",
        section=JOINED,
        join=lambda self, attended, X: self.self_output(attended, X) + X,
    ),
    "output-twice": known(
        "You apply self_output twice.",
        "Each part of a layer has its turn once.",
        join=lambda self, attended, X: self.self_output(self.self_output(attended, X), X),
    ),
    "no-feed-forward": known(
        "The feed-forward part is left out, or its result is not used.",
        "The attention mixes words. Two thirds of a layer's parameters are in what comes after, "
        "where each word is worked on alone.",
        section=WORD,
        think=lambda self, joined, attended, X: joined,
    ),
    "feed-forward-of-x": known(
        "The feed-forward part gets X, not what self_output returned.",
        "Then nothing of the attention reaches the next layer.",
        think=lambda self, joined, attended, X: self.feed_forward(X),
    ),
    "feed-forward-beside-attention": known(
        "You let attention and feed-forward part work side by side on X and add the results.",
        "Some newer models do. In BERT they stand in a row: first the attention, then each word.",
        think=lambda self, joined, attended, X: joined + self.feed_forward(X),
    ),
    "feed-forward-residual-twice": known(
        "You add to the result of feed_forward what went into it.",
        "BertFeedForward does that itself, and normalises the sum.",
        section=WORD,
        think=lambda self, joined, attended, X: self.feed_forward(joined) + joined,
    ),
    "x-added-at-the-end": known(
        "You add X to the result of the layer.",
        "Both residuals are inside the parts, each before its norm. Post-norm means that a layer "
        "ends with a norm.",
        section=WORD,
        think=lambda self, joined, attended, X: self.feed_forward(joined) + X,
    ),
    "feed-forward-twice": known(
        "You apply feed_forward twice.",
        "Each part of a layer has its turn once.",
        think=lambda self, joined, attended, X: self.feed_forward(self.feed_forward(joined)),
    ),
    "normalised-again": known(
        "You normalise the result of feed_forward with the norm of self_output.",
        "BertFeedForward has a norm of its own and has used it.",
        section=WORD,
        think=lambda self, joined, attended, X: self.self_output.norm(self.feed_forward(joined)),
    ),
    "dropout-once-more": known(
        "You drop numbers of the layer's result.",
        "Dropout is inside the parts, each before its residual. What leaves the layer has come "
        "out of a norm.",
        section=WORD,
        think=lambda self, joined, attended, X: self.drop(self.feed_forward(joined)),
    ),
    "dropout-on-heads": known(
        "You drop numbers of what the attention returns.",
        "self_attention has dropped weights already, and self_output drops after W_o. What goes "
        "from one to the other stays as it is.",
        section=JOINED,
        join=lambda self, attended, X: self.self_output(self.drop(attended), X),
    ),
    "found-dropped": known(
        "You drop single numbers of what the heads found, with attention_probs_dropout_prob.",
        "That probability is for attention weights: a weight that is dropped takes a whole word "
        "out of a query's average. It is done inside BertSelfAttention, between the softmax and "
        "the weighted sum, and what comes out goes on as it is.",
        section="The heads of lesson 4, with biases",
        wrong=_FoundDropped,
    ),
    "found-dropped-too": known(
        join=lambda self, attended, X: self.self_output(self.drop_found(attended), X),
        twin="found-dropped",
    ),
    "no-weights-dropped": known(
        "attention_probs_dropout_prob has no effect while training.",
        "With that probability an attention weight is dropped, inside BertSelfAttention.",
        section="The heads of lesson 4, with biases",
        wrong=_WeightsKept,
    ),
    "dropout-between": known(
        "You drop numbers between self_output and feed_forward.",
        "Dropout is inside the parts, each before its residual. What goes from one to the other "
        "stays as it is.",
        section=JOINED,
        think=lambda self, joined, attended, X: self.feed_forward(self.drop(joined)),
    ),
    "mask-not-passed": known(
        "The mask does not reach the attention.",
        "Your layer takes it, and self_attention takes it too. Left out, it is None, and padding "
        "is read like words.",
        section=ADDED,
        attend=lambda self, X, mask, need_weights: self.self_attention(X, need_weights=True),
    ),
    "mask-lost-with-weights": known(
        "With need_weights=True the mask does not reach the attention.",
        "Do you call self_attention in two places, and leave the mask out of one, or put something "
        "else in its place?",
        section=ADDED,
        attend=lambda self, X, mask, need_weights: self.self_attention(
            X, None if need_weights else mask, True
        ),
    ),
    "mask-lost-without-weights": known(
        "With need_weights=False the mask does not reach the attention.",
        "Do you call self_attention in two places, and leave the mask out of one, or put something "
        "else in its place?",
        section=ADDED,
        attend=lambda self, X, mask, need_weights: self.self_attention(
            X, mask if need_weights else None, True
        ),
    ),
    **{
        id: known(
            "You change the mask on its way to self_attention. Do you take it for 1 for words and "
            "0 for padding?",
            "That has been done (6.1). What arrives is ready to be added: give it on as it is.",
            section=ADDED,
            attend=lambda self, X, mask, need_weights, change=change: self.self_attention(
                X, None if mask is None else change(mask), True
            ),
        )
        for id, change in {
            "mask-made-again": lambda mask: (1 - mask) * torch.finfo(torch.float64).min,
            "mask-made-again-by-1e4": lambda mask: (1 - mask) * -1e4,
            "additive-mask-of-the-mask": lambda mask: (mask == 0) * torch.finfo(torch.float64).min,
        }.items()
    },
    "mask-taken-from-1": known(
        "You take the mask from 1 on its way to self_attention, or change its sign.",
        "What arrives is ready to be added: the lowest numbers stand for padding. Give it on as it "
        "is.",
        section=ADDED,
        attend=lambda self, X, mask, need_weights: self.self_attention(
            X, None if mask is None else 1 - mask, True
        ),
    ),
    "mask-doubled": known(
        "You multiply the mask by 2 on its way to self_attention.",
        "For padding that changes nothing, and a mask may hold any numbers. Give it on as it is.",
        section=ADDED,
        attend=lambda self, X, mask, need_weights: self.self_attention(
            X, None if mask is None else (2 * mask).clamp(min=torch.finfo(X.dtype).min), True
        ),
    ),
    "attention-twice": known(
        "You apply self_attention twice, one after the other.",
        "Each part of a layer has its turn once.",
        attend=lambda self, X, mask, need_weights: self.self_attention(
            self.self_attention(X, mask, True)[0], mask, True
        ),
    ),
    "feed-forward-first": known(
        "The feed-forward part comes before the attention.",
        "In a layer words first hear of one another, then each is worked on alone.",
        attend=lambda self, X, mask, need_weights: self.self_attention(
            self.feed_forward(X), mask, True
        ),
        think=lambda self, joined, attended, X: joined,
    ),
    "feed-forward-before-attention": known(
        "The feed-forward part comes before the attention.",
        "In a layer words first hear of one another, then each is worked on alone.",
        attend=lambda self, X, mask, need_weights: self.self_attention(
            self.feed_forward(X), mask, True
        ),
        join=lambda self, attended, X: self.self_output(attended, self.feed_forward(X)),
        think=lambda self, joined, attended, X: joined,
    ),
    "weights-without-mask": known(
        "The weights that you return were made without the mask. The output is right.",
        "Whoever looks at them wants to see what the output was made with, and that was made with "
        "the mask.",
        section=ADDED,
        wrong=_WeightsOfAnotherCall,
    ),
    "weights-averaged": known(
        "You return the weights averaged over the heads.",
        "(B, H, L, L) was asked for, as self_attention gives them.",
        show=lambda output, weights: (output, weights.mean(1)),
    ),
    "weights-first": known(
        "You return the weights first, then the output.",
        "The task asks for them the other way round.",
        show=lambda output, weights: (weights, output),
    ),
    "weights-not-returned": known(
        "need_weights has no effect: only the output comes back.",
        "With need_weights=True two values were asked for, the output and the weights.",
        show=lambda output, weights: output,
    ),
    "weights-always-returned": known(
        "You return two values where nobody asked for the weights: always, or because need_weights "
        "is True by default.",
        "With need_weights=False, the default, the next layer expects one tensor.",
        plain=lambda output, weights: (output, weights),
    ),
    "weights-without-being-asked": known(
        "need_weights is the wrong way round.",
        "With True two values were asked for, the output and the weights; with False, the "
        "default, the output alone.",
        wrong=_PairWithoutWeights,
    ),
    "ends-early-with-weights": known(
        "With need_weights=True you return what self_output made: the feed-forward part is left "
        "out.",
        "Whoever looks at the weights wants the same output beside them.",
        wrong=_EndsEarly,
    ),
    "pair-unpacked": known(
        "You take two values from self_attention, and it returns two only with need_weights=True.",
        "Without it one tensor comes back, and Python takes that apart, sequence by sequence. Ask "
        "for the weights each time, or take two values only where you ask for them.",
        wrong=_PairUnpacked,
    ),
    **{
        id: known(
            "The mask does not reach self_attention: either need_weights stands in its place, or "
            "both are left out.",
            "Its second argument is the mask. Whatever comes after X is safest given by name.",
            wrong=answer,
        )
        for id, answer in {
            "options-swapped": _OptionsSwapped,
            "need-weights-for-mask": _NeedWeightsForMask,
        }.items()
    },
    "no-residual-given": known(
        "You call self_output with one argument.",
        "It takes two: what the heads found, and what went into the attention.",
        section=JOINED,
        wrong=_NoResidualGiven,
    ),
    "tuple-fed-on": known(
        "With need_weights=True self_attention returns two values, and you give both to "
        "self_output.",
        "The first is what the heads found, and only that goes on. The second is what you return "
        "in the end.",
        wrong=_TupleFedOn,
    ),
    "class-not-called": known(
        "Your layer has no module self_attention. Either it is left out, or it is kept without "
        "`self.` or in a tuple (a comma at the end of the line makes one), or self_attention is "
        "the class itself and nothing made from it.",
        CALLED,
        wrong=_ClassOfAttention,
    ),
    "classes-not-called": known(
        "Your layer has no modules at all. Either __init__ makes none, or it keeps the classes "
        "themselves and nothing made from them, or it keeps modules without `self.`, or in a plain "
        "list, tuple or dict, where nobody looks for them.",
        CALLED,
        wrong=_ThreeClasses,
    ),
    "one-norm-for-both": known(
        "self_output and feed_forward share one norm.",
        "Each has its own, with weights of its own.",
        wrong=_OneModule,
    ),
}
LAYER = read_again("A layer, and a stack of them", LAYER)

TASK = Task(
    "06-BertLayer",
    bert.BertLayer,
    cases_with_dropout,
    run=run_layer,
    examine=examine_layer,
    returns=("the output", "the output with need_weights=True", "the table of weights"),
    kind="class",
    hidden=("weights",),
    mistakes=LAYER,
    build=build_layer,
    alone=all_but(
        LAYER,
        "residual-of-attention",
        "residual-twice",
        "no-feed-forward",
        "feed-forward-of-x",
        "feed-forward-residual-twice",
        "mask-not-passed",
        "weights-averaged",
        "weights-first",
    ),
    stages=layer_stages,
    uses=("06-BertSelfAttention", "06-BertSelfOutput", "06-BertFeedForward"),
    forbidden=("mha_course.bert.BertLayer",),
    number=5,
    since=2,
)
