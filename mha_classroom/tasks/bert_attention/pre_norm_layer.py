"""Task 6.8, PreNormLayer: the parts of a BERT layer in the order of GPT-2."""

import torch
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.modules import judged, plan_of
from mha_classroom.checks.task import Task, all_but, known, read_again
from mha_classroom.tasks.bert_attention.bert_layer import (
    bias_for,
    build_layer,
    layer_cases,
    layer_shapes,
    part,
)
from mha_classroom.tasks.bert_attention.bert_self_attention import (
    EVAL,
    STILL,
    TRAINED,
    WHO_IS_TRAINING,
    apply_linear,
    attention_steps,
    drop,
    dropped_or_scaled,
    module_case,
    output_and_learning,
    with_the_shape_of,
)
from mha_classroom.tasks.bert_attention.bert_self_output import norm
from mha_classroom.tasks.bert_attention.runs import run_pre_norm
from mha_course.bert import ACTIVATIONS


def pre_norm_cases(draw):
    more = {"intermediate_size": 7, "hidden_dropout_prob": 0.25}
    dropped = module_case(
        draw, "hidden_dropout_prob=0.25", (12, 3), (3, 5), layer_shapes(7), **more
    )
    return [*layer_cases(draw), _case_that_shows_dropout(dropped)]


def _case_that_shows_dropout(case):
    """W_o returns 1 for the first eight features and 0 for the others, W_2 for the last eight.

    All words of X are the same, and the second norm returns its bias, whatever comes in.
    """
    weights, word = dict(case.inputs["weights"]), case.inputs["X"][0, 0]
    case.inputs["X"] = word.expand(case.inputs["X"].shape).clone()
    ones = torch.tensor([1.0] * 8 + [0.0] * 4).double()
    normed = norm({n: weights[f"self_output.{n}"] for n in ("norm.weight", "norm.bias")}, word, 0)
    attended = apply_linear("self_attention.W_v", weights, normed)  # whatever the weights
    weights["self_output.W_o.bias"] = ones - weights["self_output.W_o.weight"] @ attended
    weights["feed_forward.norm.weight"] = 0 * word
    bias = weights["feed_forward.norm.bias"]
    weights["feed_forward.W_2.bias"] = bias_for(ones.flip(0), weights, bias)
    case.inputs["weights"] = tuple(weights.items())
    return case


def pre_norm_stages(inputs):
    X, eps = inputs["X"], inputs.get("layer_norm_eps", 1e-12)
    output, forward = part(inputs, "self_output"), part(inputs, "feed_forward")
    first = norm(output, X, eps)
    found = list(attention_steps(inputs | {"X": first}, part(inputs, "self_attention")).values())
    joined = apply_linear("W_o", output, found[-1])
    second = norm(forward, X + joined, eps)
    bent = ACTIVATIONS[inputs.get("hidden_act", "gelu")](apply_linear("W_1", forward, second))
    return {
        "X normalised": first,
        "what self_attention returns": found[-1],
        "what W_o returns": joined,
        "the first sum": X + joined,
        "the first sum normalised": second,
        "W_2 of what the activation returns": apply_linear("W_2", forward, bent),
    }


@total
def examine_pre_norm(inputs, seen):
    """The results; where single numbers are dropped, what dropout does."""
    weights, plan = dict(inputs["weights"]), plan_of(inputs, "hidden_dropout_prob")
    output, *more = judged("PreNormLayer", weights, plan, seen)
    if inputs.get("hidden_dropout_prob") == 0.25:
        again, trained = more
        added = with_the_shape_of(inputs["X"], trained) - inputs["X"]
        return {STILL: equal(output, again)} | _drops_both(added)
    if not more:
        return output
    if "training" in inputs:
        return output_and_learning(weights, plan, seen, *more)
    return {EVAL: output, TRAINED: more[0]}


def _drops_both(added):
    """What dropout does to what is added: first features are W_o's, last W_2's, others of both."""
    first, both, last = added.split((4, 4, 4), -1)
    one, other = (dropped_or_scaled(X, "numbers") for X in (first, last))
    name, share, factor = one
    kept = one[factor] if abs(one[factor] - other[factor]) < 1e-6 else 0.0
    apart = bool(((both - kept).abs() < 1e-6).any())
    return {
        name: kept > 0 and one[name] and other[name],
        share: one[share] and other[share],
        factor: kept,
        "in training each of the two that are added is dropped by itself": kept > 0 and apart,
    }


def _sublayer(self, X):
    """The feed-forward part without its sum and norm."""
    part = self.feed_forward
    return part.W_2(part.activation(part.W_1(X)))


def build_pre_norm(
    ready=lambda self, X: self.self_output.norm(X),
    attend=lambda self, N, mask: self.self_output.W_o(self.self_attention(N, mask)),
    drop=lambda self, A: drop(self.self_output, A),
    add=lambda self, A, X: X + A,
    ready_again=lambda self, Y, X: self.feed_forward.norm(Y),
    think=_sublayer,
    drop_again=lambda self, A: drop(self.feed_forward, A),
    finish=lambda self, A, Y, X: Y + A,
    whole=None,
):
    class PreNormLayer(build_layer()):
        def forward(self, X, mask=None):
            if whole:
                return whole(self, X, mask)
            Y = add(self, drop(self, attend(self, ready(self, X), mask)), X)
            A = drop_again(self, think(self, ready_again(self, Y, X)))
            return finish(self, A, Y, X)

    return PreNormLayer


def _post_norm(self, X, mask):
    return super(type(self), self).forward(X, mask)


def _whole_parts(self, X, mask):
    """The modules as they are, with their own sums and norms, between further norms and sums."""
    N = self.self_output.norm(X)
    Y = self.self_output(self.self_attention(N, mask), X)
    return self.feed_forward(self.feed_forward.norm(Y))


def _feed_forward_first(self, X, mask):
    return _turned(self, X, mask, self.feed_forward.norm, self.self_output.norm)


def _turned(self, X, mask, first, second):
    Y = X + drop(self.feed_forward, _sublayer(self, first(X)))
    found = self.self_output.W_o(self.self_attention(second(Y), mask))
    return Y + drop(self.self_output, found)


def _norms_stay(self, X, mask):
    """The feed-forward part first, behind the norm that comes first."""
    return _turned(self, X, mask, self.self_output.norm, self.feed_forward.norm)


SO_WHY = (
    "It ends with a sum and a norm of its own, the post-norm order. Of what is inside it you need "
    "the norm, W_o and the dropout, each by itself."
)
FF_WHY = (
    "It ends with a sum and a norm of its own, the post-norm order. Of what is inside it you need "
    "the norm, W_1, the activation, W_2 and the dropout, each by itself."
)

PRE_NORM = {
    "post-norm": known(
        "Your layer is BERT's: each norm comes after its sum.",
        "Asked for is the other order. What is added to X must have come through a norm before "
        "its part, and the sum itself is not normalised.",
        whole=_post_norm,
    ),
    "sum-normalised": known(
        "You add to the normalised X, not to X, both times.",
        "The norm stands on the way into a part. The way past it has no norm, so that X gets to "
        "the end unchanged.",
        add=lambda self, A, X: self.self_output.norm(X) + A,
        finish=lambda self, A, Y, X: self.feed_forward.norm(Y) + A,
    ),
    "first-sum-normalised": known(
        "What the attention found you add to the normalised X, not to X.",
        "Only what goes into the attention is normalised. Keep X under its own name: you need it "
        "for the sum.",
        add=lambda self, A, X: self.self_output.norm(X) + A,
    ),
    "second-sum-normalised": known(
        "What the feed-forward part found you add to the normalised first sum, not to that sum.",
        "Only what goes into the feed-forward part is normalised. Keep the first sum under its "
        "own name: you need it for the second.",
        finish=lambda self, A, Y, X: self.feed_forward.norm(Y) + A,
    ),
    "whole-parts": known(
        "Your layer does all that self_output and feed_forward do. Do you call them as they are?",
        "Both end with a sum and a norm of their own, the post-norm order. You need what is "
        "inside them: their linear layers, their norms.",
        whole=_whole_parts,
    ),
    "self-output-as-it-is": known(
        "Your first sum comes out of the norm of self_output. Do you call self_output as it is?",
        SO_WHY,
        attend=lambda self, N, mask: self.self_attention(N, mask),
        drop=lambda self, A: A,
        add=lambda self, A, X: self.self_output(A, X),
    ),
    "self-output-of-normed": known(
        "You add to the normalised X, and this sum comes out of the norm of self_output. Do you "
        "call self_output as it is?",
        SO_WHY,
        attend=lambda self, N, mask: self.self_attention(N, mask),
        drop=lambda self, A: A,
        add=lambda self, A, X: self.self_output(A, self.self_output.norm(X)),
    ),
    "self-output-added": known(
        "You add to X what self_output makes, with its sum and its norm. Do you call it as it is?",
        SO_WHY,
        attend=lambda self, N, mask: self.self_attention(N, mask),
        drop=lambda self, A: A,
        add=lambda self, A, X: X + self.self_output(A, X),
    ),
    "self-output-of-normed-added": known(
        "You add to X what self_output makes of the normalised X as its residual, with its sum and "
        "its norm. Do you call it as it is?",
        SO_WHY,
        attend=lambda self, N, mask: self.self_attention(N, mask),
        drop=lambda self, A: A,
        add=lambda self, A, X: X + self.self_output(A, self.self_output.norm(X)),
    ),
    "feed-forward-as-it-is": known(
        "The feed-forward part gets the first sum without a norm, and the last sum is normalised. "
        "Do you call feed_forward as it is?",
        FF_WHY,
        ready_again=lambda self, Y, X: Y,
        think=lambda self, X: self.feed_forward(X),
        drop_again=lambda self, A: A,
        finish=lambda self, A, Y, X: A,
    ),
    "feed-forward-of-normed": known(
        "The feed-forward part adds to the normalised first sum, and that sum is normalised again. "
        "Do you call feed_forward as it is?",
        FF_WHY,
        think=lambda self, X: self.feed_forward(X),
        drop_again=lambda self, A: A,
        finish=lambda self, A, Y, X: A,
    ),
    "feed-forward-added": known(
        "You add to the first sum what feed_forward makes of it, with its sum and its norm. Do you "
        "call it as it is?",
        FF_WHY,
        ready_again=lambda self, Y, X: Y,
        think=lambda self, X: self.feed_forward(X),
        drop_again=lambda self, A: A,
    ),
    "feed-forward-of-normed-added": known(
        "You add to the first sum what feed_forward makes of the normalised one, with its sum and "
        "its norm. Do you call it as it is?",
        FF_WHY,
        think=lambda self, X: self.feed_forward(X),
        drop_again=lambda self, A: A,
    ),
    "norm-behind-the-part": known(
        "You normalise what W_o returns, not what goes into the attention.",
        "In pre-norm the norm comes before the part.",
        ready=lambda self, X: X,
        attend=lambda self, N, mask: self.self_output.norm(
            self.self_output.W_o(self.self_attention(N, mask))
        ),
    ),
    **{
        id: known(
            "You normalise what each part returns, not what goes into it.",
            "In pre-norm the norm comes before the part.",
            ready=lambda self, X: X,
            attend=lambda self, N, mask, last=last: last(
                self.self_output, self.self_output.W_o(self.self_attention(N, mask))
            ),
            drop=lambda self, A: A,
            ready_again=lambda self, Y, X: Y,
            think=lambda self, X, last=last: last(self.feed_forward, _sublayer(self, X)),
            drop_again=lambda self, A: A,
        )
        for id, last in {
            "norms-behind-the-parts": lambda part, A: part.norm(drop(part, A)),
            "norms-behind-the-parts-then-dropout": lambda part, A: drop(part, part.norm(A)),
        }.items()
    },
    "norm-before-W_o": known(
        "You normalise what the heads found, before W_o.",
        "The norm comes before the attention as a whole: it is X that is normalised.",
        ready=lambda self, X: X,
        attend=lambda self, N, mask: self.self_output.W_o(
            self.self_output.norm(self.self_attention(N, mask))
        ),
    ),
    "attention-not-normalised": known(
        "The attention gets X as it is.",
        "Before each part there is a norm, before the attention too.",
        ready=lambda self, X: X,
    ),
    "feed-forward-not-normalised": known(
        "The feed-forward part gets the first sum as it is.",
        "Before each part there is a norm, before the feed-forward part too.",
        ready_again=lambda self, Y, X: Y,
    ),
    "norms-swapped": known(
        "The two norms have changed places.",
        "Each part keeps its own: that of self_output belongs to the attention.",
        ready=lambda self, X: self.feed_forward.norm(X),
        ready_again=lambda self, Y, X: self.self_output.norm(Y),
    ),
    "norms-without-weights": known(
        "Your norms neither scale nor shift.",
        "Each part keeps a norm with a weight and a bias for each feature, which a trained model "
        "brings along.",
        ready=lambda self, X: F.layer_norm(X, X.shape[-1:], eps=self.self_output.norm.eps),
        ready_again=lambda self, Y, X: F.layer_norm(
            Y, Y.shape[-1:], eps=self.feed_forward.norm.eps
        ),
    ),
    "norms-without-weights-and-eps": known(
        "Your norms neither scale nor shift, and have an eps of 1e-5.",
        "Each part keeps a norm with a weight and a bias for each feature, which a trained model "
        "brings along, and with the config's eps.",
        wrong=build_pre_norm(
            ready=lambda self, X: F.layer_norm(X, X.shape[-1:]),
            ready_again=lambda self, Y, X: F.layer_norm(Y, Y.shape[-1:]),
        ),
    ),
    "one-norm-for-both": known(
        "You use the norm of self_output twice.",
        "The feed-forward part has a norm of its own, with weights of its own.",
        ready_again=lambda self, Y, X: self.self_output.norm(Y),
    ),
    "normalised-at-the-end": known(
        "You normalise the result of the layer.",
        "After the last sum of a layer there is no norm. GPT-2 has one more after its last layer, "
        "which belongs to the stack.",
        finish=lambda self, A, Y, X: self.feed_forward.norm(Y + A),
    ),
    "normalised-at-the-end-by-the-first": known(
        "You normalise the result of the layer, with the norm of self_output.",
        "After the last sum of a layer there is no norm. GPT-2 has one more after its last layer, "
        "which belongs to the stack.",
        finish=lambda self, A, Y, X: self.self_output.norm(Y + A),
    ),
    "first-sum-missing": known(
        "X is not added to what the attention found.",
        "Both parts add to what was there.",
        add=lambda self, A, X: A,
    ),
    "second-sum-missing": known(
        "The feed-forward part's result is returned alone.",
        "Both parts add to what was there.",
        finish=lambda self, A, Y, X: A,
    ),
    "no-feed-forward": known(
        "The feed-forward part is left out, or its result is not used.",
        "A layer has two parts, whatever the order of norms and sums.",
        section="Each word on its own",
        finish=lambda self, A, Y, X: Y,
    ),
    "feed-forward-first": known(
        "The feed-forward part comes before the attention.",
        "Only the norms move. Attention stays the first part, feed-forward the second.",
        whole=_feed_forward_first,
    ),
    "feed-forward-behind-the-first-norm": known(
        "The feed-forward part comes before the attention.",
        "Only the norms move. Attention stays the first part, feed-forward the second.",
        whole=_norms_stay,
    ),
    "x-for-the-first-sum": known(
        "In the end you add X, and not the first sum.",
        "Then what the attention found is not in that sum. The second part adds to what the first "
        "one left.",
        finish=lambda self, A, Y, X: X + A,
    ),
    "side-by-side": known(
        "Both parts get X normalised.",
        "Some newer models do that. Here they stand in a row: the feed-forward part gets the "
        "first sum, normalised.",
        ready_again=lambda self, Y, X: self.feed_forward.norm(X),
    ),
    "no-projection": known(
        "W_o is not used.",
        "Without it the heads never meet. It belongs to the attention, before the sum.",
        section="Joined, added, normalised",
        attend=lambda self, N, mask: self.self_attention(N, mask),
    ),
    "mask-not-passed": known(
        "The mask does not reach the attention.",
        "Left out, it is None, and padding is read like words.",
        section="A mask that is added",
        attend=lambda self, N, mask: self.self_output.W_o(self.self_attention(N)),
    ),
    "no-activation": known(
        "There is no activation between W_1 and W_2.",
        "The feed-forward part keeps its activation, whatever the order.",
        section="Each word on its own",
        think=lambda self, X: self.feed_forward.W_2(self.feed_forward.W_1(X)),
    ),
    "always-gelu": known(
        "You use GELU whatever the config says.",
        "Your feed_forward knows the activation that the config names.",
        section="Each word on its own",
        think=lambda self, X: self.feed_forward.W_2(F.gelu(self.feed_forward.W_1(X))),
    ),
    "no-dropout": known(
        "hidden_dropout_prob has no effect while training.",
        "What is added is dropped with that probability, the result of W_o as well as that of W_2.",
        section="Joined, added, normalised",
        drop=lambda self, A: A,
        drop_again=lambda self, A: A,
    ),
    "dropout-in-eval": known(
        "Numbers are dropped in eval mode too.",
        WHO_IS_TRAINING,
        section="Joined, added, normalised",
        drop=lambda self, A: F.dropout(A, self.self_output.rate, True),
        drop_again=lambda self, A: F.dropout(A, self.feed_forward.rate, True),
    ),
    "first-dropout-in-eval": known(
        "What the attention adds is dropped in eval mode too.",
        WHO_IS_TRAINING,
        section="Joined, added, normalised",
        drop=lambda self, A: F.dropout(A, self.self_output.rate, True),
    ),
    "second-dropout-in-eval": known(
        "What the feed-forward part adds is dropped in eval mode too.",
        WHO_IS_TRAINING,
        section="Joined, added, normalised",
        drop_again=lambda self, A: F.dropout(A, self.feed_forward.rate, True),
    ),
    "other-probability": known(
        "You drop what is added with attention_probs_dropout_prob.",
        "That one is for attention weights, in 6.2. Hidden states have a probability of their own.",
        section="Joined, added, normalised",
        drop=lambda self, A: F.dropout(A, self.self_attention.rate, self.training),
        drop_again=lambda self, A: F.dropout(A, self.self_attention.rate, self.training),
    ),
    "dropout-before-the-parts": known(
        "You drop numbers of what goes into the parts, not of what comes out and is added.",
        "What is added to X is dropped: the result of W_o, and that of W_2.",
        section="Joined, added, normalised",
        ready=lambda self, X: drop(self.self_output, self.self_output.norm(X)),
        drop=lambda self, A: A,
        ready_again=lambda self, Y, X: drop(self.feed_forward, self.feed_forward.norm(Y)),
        drop_again=lambda self, A: A,
    ),
    "dropout-twice": known(
        "You drop twice what W_o returns, and what W_2 returns.",
        "Then more is dropped than hidden_dropout_prob says, and what is kept is divided by 1 - p "
        "twice.",
        section="Joined, added, normalised",
        drop=lambda self, A: drop(self.self_output, drop(self.self_output, A)),
        drop_again=lambda self, A: drop(self.feed_forward, drop(self.feed_forward, A)),
    ),
    "dropout-elsewhere-too": known(
        "While training, you drop once more than you should, or what is kept is not divided by "
        "1 - p.",
        "The result of W_o is dropped once, and so is that of W_2. Nothing else is: not what the "
        "heads found, not the inner numbers, not what a norm returns.",
        section="Joined, added, normalised",
        attend=lambda self, N, mask: self.self_output.W_o(
            drop(self.self_output, self.self_attention(N, mask))
        ),
    ),
    "dropout-on-the-sums": known(
        "X is dropped too. Do you drop numbers of the sums, or of one of them?",
        "It is meant to get through whatever happens. Only what is added to it is dropped.",
        section="Joined, added, normalised",
        drop=lambda self, A: A,
        add=lambda self, A, X: drop(self.self_output, X + A),
        drop_again=lambda self, A: A,
        finish=lambda self, A, Y, X: drop(self.feed_forward, Y + A),
    ),
    "first-dropout-missing": known(
        "While training, nothing of what the attention adds is dropped.",
        "What is added is dropped with hidden_dropout_prob, the result of W_o as well as that of "
        "W_2.",
        section="Joined, added, normalised",
        drop=lambda self, A: A,
    ),
    "second-dropout-missing": known(
        "While training, nothing of what the feed-forward part adds is dropped.",
        "What is added is dropped with hidden_dropout_prob, the result of W_o as well as that of "
        "W_2.",
        section="Joined, added, normalised",
        drop_again=lambda self, A: A,
    ),
}
PRE_NORM = read_again("The norm before or after the sum", PRE_NORM)

TASK = Task(
    "06-PreNormLayer",
    build_pre_norm(),
    pre_norm_cases,
    run=run_pre_norm,
    examine=examine_pre_norm,
    returns=("the output",),
    kind="class",
    hidden=("weights",),
    mistakes=PRE_NORM,
    build=build_pre_norm,
    alone=all_but(
        PRE_NORM,
        "attention-not-normalised",
        "feed-forward-not-normalised",
        "norms-swapped",
        "normalised-at-the-end",
        "normalised-at-the-end-by-the-first",
        "first-sum-missing",
        "second-sum-missing",
        "first-sum-normalised",
        "second-sum-normalised",
        "self-output-as-it-is",
        "self-output-of-normed",
        "self-output-added",
        "self-output-of-normed-added",
        "feed-forward-as-it-is",
        "feed-forward-of-normed",
        "feed-forward-added",
        "feed-forward-of-normed-added",
        "mask-not-passed",
        "no-activation",
    ),
    stages=pre_norm_stages,
    uses=("06-BertSelfAttention", "06-BertSelfOutput", "06-BertFeedForward", "06-BertLayer"),
    forbidden=(f"{nn.TransformerEncoderLayer.__module__}.TransformerEncoderLayer",),
    number=8,
    since=2,
)
