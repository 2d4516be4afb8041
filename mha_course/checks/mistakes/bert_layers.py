"""The known mistakes of lesson 06 in putting a layer together."""

from torch import nn

from mha_course.bert import BertFeedForward
from mha_course.checks.mistakes.bert_layer_calls import CALLS, RETURNED, attend
from mha_course.checks.mistakes.bert_self_attention import build_attention
from mha_course.checks.mistakes.bert_self_output import build_output
from mha_course.checks.mistakes.combining import apart
from mha_course.checks.task import Mistake

__all__ = ["LAYER", "build_layer"]

FLOW = "A layer, and a stack of them"
JOINED = "Joined, added, normalised"
WORD = "Each word on its own"
# Looked for in pairs, too; the others alone, since every pair costs time in a check.
IN_PAIRS = {
    "residual-of-attention",
    "residual-twice",
    "no-feed-forward",
    "feed-forward-residual-twice",
    "mask-not-passed",
    "weights-averaged",
}


def build_layer(
    attend=attend,
    join=lambda self, attended, X: self.self_output(attended, X),
    think=lambda self, joined, attended, X: self.feed_forward(joined),
    show=lambda output, weights: (output, weights),
    plain=lambda output, weights: output,
):
    """Return a class for `06-BertLayer`, right unless a part is replaced."""

    class BertLayer(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.self_attention = build_attention()(config)
            self.self_output = build_output()(config)
            self.feed_forward = BertFeedForward(config)
            self.drop = nn.Dropout(config.hidden_dropout_prob)

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


EVERY = (
    Mistake(
        "residual-of-attention",
        "You give self_output the result of the attention twice, also as the residual.",
        "The residual is what went into the attention: the words as they were before.",
        JOINED,
        parts={"join": lambda self, attended, X: self.self_output(attended, attended)},
    ),
    Mistake(
        "arguments-swapped",
        "You give self_output its arguments in the other order.",
        "Its first argument is what the heads found, and W_o joins that. The second goes round it.",
        JOINED,
        parts={"join": lambda self, attended, X: self.self_output(X, attended)},
    ),
    Mistake(
        "attention-not-used",
        "The result of the attention goes nowhere: self_output gets X twice.",
        "Then no word hears of another. What the heads found is the first argument.",
        JOINED,
        parts={"join": lambda self, attended, X: self.self_output(X, X)},
    ),
    Mistake(
        "output-skipped",
        "The feed-forward part gets what the attention returned: self_output is left out, or its "
        "result is not used.",
        "The parts stand in a row, each takes what the one before returned. Between attention and "
        "feed-forward part the heads are joined, the residual is added, the sum normalised.",
        FLOW,
        parts={"join": lambda self, attended, X: attended},
    ),
    Mistake(
        "only-residual-added",
        "You add X to the result of the attention and leave self_output out.",
        "The sum is one of its three steps. The heads have to be joined by W_o before it and the "
        "sum normalised after it.",
        JOINED,
        parts={"join": lambda self, attended, X: attended + X},
    ),
    Mistake(
        "residual-twice",
        "You add X to what self_output returns.",
        "self_output has added it already, before its norm.",
        JOINED,
        parts={"join": lambda self, attended, X: self.self_output(attended, X) + X},
    ),
    Mistake(
        "output-twice",
        "You apply self_output twice.",
        "Each part of a layer has its turn once.",
        FLOW,
        parts={
            "join": lambda self, attended, X: self.self_output(self.self_output(attended, X), X)
        },
    ),
    Mistake(
        "no-feed-forward",
        "The feed-forward part is left out.",
        "The attention mixes words. Two thirds of a layer's parameters are in what comes after, "
        "where each word is thought over.",
        WORD,
        parts={"think": lambda self, joined, attended, X: joined},
    ),
    Mistake(
        "feed-forward-of-x",
        "The feed-forward part gets X, not what self_output returned.",
        "Then nothing of the attention reaches the next layer.",
        FLOW,
        parts={"think": lambda self, joined, attended, X: self.feed_forward(X)},
    ),
    Mistake(
        "feed-forward-beside-attention",
        "You let attention and feed-forward part work side by side on X and add the results.",
        "Some newer models do. In BERT they stand in a row: first the attention, then each word.",
        FLOW,
        parts={"think": lambda self, joined, attended, X: joined + self.feed_forward(X)},
    ),
    Mistake(
        "feed-forward-residual-twice",
        "You add to the result of feed_forward what went into it.",
        "BertFeedForward does that itself, and normalises the sum.",
        WORD,
        parts={"think": lambda self, joined, attended, X: self.feed_forward(joined) + joined},
    ),
    Mistake(
        "x-added-at-the-end",
        "You add X to the result of the layer.",
        "Both residuals are inside the parts, each before its norm. Post-norm means that a layer "
        "ends with a norm.",
        WORD,
        parts={"think": lambda self, joined, attended, X: self.feed_forward(joined) + X},
    ),
    Mistake(
        "feed-forward-twice",
        "You apply feed_forward twice.",
        "Each part of a layer has its turn once.",
        FLOW,
        parts={
            "think": lambda self, joined, attended, X: self.feed_forward(self.feed_forward(joined))
        },
    ),
    Mistake(
        "normalised-again",
        "You normalise the result of feed_forward with the norm of self_output.",
        "BertFeedForward has a norm of its own and has used it.",
        WORD,
        parts={
            "think": lambda self, joined, attended, X: self.self_output.norm(
                self.feed_forward(joined)
            )
        },
    ),
    Mistake(
        "dropout-once-more",
        "You drop numbers of the layer's result.",
        "Dropout is inside the parts, each before its residual. What leaves the layer has come "
        "out of a norm.",
        WORD,
        parts={"think": lambda self, joined, attended, X: self.drop(self.feed_forward(joined))},
    ),
    *CALLS,
    *RETURNED,
    Mistake(
        "tuple-fed-on",
        "With need_weights=True self_attention returns two values, and you give both to "
        "self_output.",
        "The first is what the heads found, and only that goes on. The second is what you return "
        "in the end.",
        FLOW,
        _TupleFedOn,
    ),
    Mistake(
        "one-norm-for-both",
        "self_output and feed_forward share one norm.",
        "Each has its own, with weights of its own.",
        FLOW,
        _OneModule,
    ),
)
LAYER = apart(EVERY, build_layer, *({m.id for m in EVERY} - IN_PAIRS))
