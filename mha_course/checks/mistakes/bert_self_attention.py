"""The known mistakes of lesson 06 in self-attention: scale, softmax, parameters; all together."""

from torch import nn

from mha_course.checks.mistakes.bert_dropout import WEIGHT_DROPOUT, drop
from mha_course.checks.mistakes.bert_heads import HEADS_MADE, RETURNED
from mha_course.checks.mistakes.bert_score_masks import SCORE_MASKS
from mha_course.checks.mistakes.combining import apart
from mha_course.checks.task import Mistake

__all__ = ["ATTENTION", "build_attention"]

HEADS = "The heads of lesson 4, with biases"
# Looked for in pairs, too; the others alone, since every pair costs time in a check.
IN_PAIRS = {
    "split-without-transpose",
    "merge-without-transpose",
    "not-scaled",
    "scaled-by-all-heads",
    "softmax-over-queries",
    "mask-ignored",
    "mask-multiplied",
    "no-dropout",
    "weights-averaged",
}


def build_attention(
    split=lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2),
    merge=lambda X: X.transpose(1, 2).flatten(2),
    roles=("W_q", "W_k", "W_v"),
    project=lambda linear, X: linear(X),
    scale=lambda d, H: d**-0.5,
    hide=lambda scores, mask, scale: scores * scale + mask,
    soften=lambda self, scores: scores.softmax(-1),
    after=lambda weights, mask: weights,
    rate=lambda config: config.attention_probs_dropout_prob,
    drop=drop,
    finish=lambda self, output: output,
    show=lambda output, weights, dropped: (output, weights),
    plain=lambda output, weights: output,
    bias=True,
):
    """Return a class for `06-BertSelfAttention`, right unless a part is replaced."""

    class BertSelfAttention(nn.Module):
        def __init__(self, config):
            super().__init__()
            width, self.num_heads = config.hidden_size, config.num_attention_heads
            self.W_q = nn.Linear(width, width, bias=bias)
            self.W_k = nn.Linear(width, width, bias=bias)
            self.W_v = nn.Linear(width, width, bias=bias)
            self.rate = rate(config)

        def forward(self, X, mask=None, need_weights=False):
            H = self.num_heads
            q, k, v = (split(project(getattr(self, W), X) if W else X, H) for W in roles)
            by = scale(q.shape[-1], H)
            scores = q @ k.mT
            scores = scores * by if mask is None else hide(scores, mask, by)
            weights = soften(self, scores)
            weights = weights if mask is None else after(weights, mask)
            dropped = drop(self, weights)
            output = finish(self, merge(dropped @ v))
            return show(output, weights, dropped) if need_weights else plain(output, weights)

    return BertSelfAttention


class _OneForAll(build_attention()):
    def __init__(self, config):
        super().__init__(config)
        self.W_k = self.W_v = self.W_q


class _WithOutputProjection(build_attention()):
    def __init__(self, config):
        super().__init__(config)
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, X, mask=None, need_weights=False):
        output, weights = super().forward(X, mask, True)
        output = self.W_o(output)
        return (output, weights) if need_weights else output


class _MaskAlwaysAdded(build_attention()):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, X + mask if mask is None else mask, need_weights)


EVERY = (
    *HEADS_MADE,
    Mistake(
        "not-scaled",
        "You do not scale the scores.",
        "Without the scale their spread grows with the width of a head, and softmax saturates "
        "(lesson 2).",
        HEADS,
        parts={"scale": lambda d, H: 1.0},
    ),
    Mistake(
        "scaled-by-all-heads",
        "You divide the scores by √hidden_size, the width of all heads together.",
        "The scale follows from the length of the vectors that are multiplied, and these are one "
        "head's.",
        HEADS,
        parts={"scale": lambda d, H: (d * H) ** -0.5},
    ),
    Mistake(
        "scaled-by-number-of-heads",
        "You divide the scores by the square root of the number of heads.",
        "The scale follows from how many products are added up in one score: the width of a head.",
        HEADS,
        parts={"scale": lambda d, H: H**-0.5},
    ),
    Mistake(
        "divided-by-width",
        "You divide the scores by the width of a head, without the square root.",
        "The spread of a score grows with √d, not with d: dividing by d makes the weights nearly "
        "equal.",
        HEADS,
        parts={"scale": lambda d, H: 1 / d},
    ),
    Mistake(
        "multiplied-by-root",
        "You multiply the scores by √d.",
        "They are too far apart already. Their spread is √d, and it should be 1.",
        HEADS,
        parts={"scale": lambda d, H: d**0.5},
    ),
    Mistake(
        "softmax-over-queries",
        "Your weights sum to 1 down the columns: the softmax runs over the queries.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1.",
        HEADS,
        parts={"soften": lambda self, scores: scores.softmax(-2)},
    ),
    Mistake(
        "softmax-over-heads",
        "Your softmax runs over the heads.",
        "Heads know nothing of one another: each has rows of its own that sum to 1.",
        HEADS,
        parts={"soften": lambda self, scores: scores.softmax(1)},
    ),
    Mistake(
        "none-added",
        "You add the mask where there is none.",
        "mask is None if nobody gives one, and None cannot be added. What are the scores then?",
        "A mask that is added",
        _MaskAlwaysAdded,
    ),
    *SCORE_MASKS,
    *WEIGHT_DROPOUT,
    *RETURNED,
    Mistake(
        "no-biases",
        "Your nn.Linear have no bias.",
        "In lesson 4 bias=False was the default; BERT's projections have one.",
        HEADS,
        build_attention(bias=False),
    ),
    Mistake(
        "one-linear-for-all",
        "W_q, W_k and W_v are one and the same nn.Linear.",
        "Then each word would be its own best match. BERT has three, with weights of their own.",
        HEADS,
        _OneForAll,
    ),
    Mistake(
        "output-projection-inside",
        "Your class has a W_o.",
        "In lesson 4 it belonged to the module. BERT keeps it in the next one, 6.3, where the "
        "residual and the norm are.",
        "Joined, added, normalised",
        _WithOutputProjection,
    ),
)
ATTENTION = apart(EVERY, build_attention, *({m.id for m in EVERY} - IN_PAIRS))
