"""The known mistakes of lesson 06 in the output: projection, residual, where the norm stands."""

from torch import nn

from mha_course.checks.mistakes.bert_dropout import HIDDEN_DROPOUT, drop
from mha_course.checks.mistakes.bert_norms import NORMS
from mha_course.checks.mistakes.combining import apart
from mha_course.checks.task import Mistake

__all__ = ["OUTPUT", "build_output"]

JOINED = "Joined, added, normalised"
# Looked for in pairs, too; the others alone, since every pair costs time in a check.
IN_PAIRS = {
    "no-residual",
    "residual-after-norm",
    "no-norm",
    "x-for-residual",
    "no-projection",
    "default-eps",
    "variance-over-n-minus-1",
    "no-dropout",
    "dropout-in-eval",
    "other-probability",
}


def build_output(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    begin=lambda self, X, residual: self.W_o(X),
    drop=drop,
    finish=lambda self, Y, X, residual: self.norm(Y + residual),
    bias=True,
    affine=True,
):
    """Return a class for `06-BertSelfOutput`, right unless a part is replaced."""

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


EVERY = (
    Mistake(
        "no-residual",
        "The residual is not in your result.",
        "What went into the attention is added to what came out, so that a layer only has to say "
        "what changes.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(Y)},
    ),
    Mistake(
        "residual-after-norm",
        "You add the residual after the norm.",
        "BERT normalises the sum (post-norm): what leaves the module is what the norm returns.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(Y) + residual},
    ),
    Mistake(
        "residual-normalised-alone",
        "You normalise the residual and add the rest to it.",
        "The norm comes last, over the sum of both.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: Y + self.norm(residual)},
    ),
    Mistake(
        "both-normalised",
        "You normalise twice, each summand by itself.",
        "There is one norm, over the sum of both.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(Y) + self.norm(residual)},
    ),
    Mistake(
        "pre-norm",
        "You normalise before W_o and add the residual to the result.",
        "Many newer models do that (pre-norm). BERT normalises after the sum.",
        JOINED,
        parts={
            "begin": lambda self, X, residual: self.W_o(self.norm(X)),
            "finish": lambda self, Y, X, residual: Y + residual,
        },
    ),
    Mistake(
        "no-norm",
        "Your result is the sum, not normalised.",
        "The numbers of each word are brought to mean 0 and variance 1, then scaled and shifted "
        "by what the norm has learnt.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: Y + residual},
    ),
    Mistake(
        "norm-twice",
        "You normalise before the sum and again after it.",
        "There is one norm, after the sum.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(self.norm(Y) + residual)},
    ),
    Mistake(
        "x-for-residual",
        "You add X, not residual.",
        "X is what came out of the heads. The residual is what went in, before the attention.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(Y + X)},
    ),
    Mistake(
        "arguments-swapped",
        "You project the residual and add X.",
        "W_o mixes what the heads found, and that is X, the first argument.",
        JOINED,
        parts={
            "begin": lambda self, X, residual: self.W_o(residual),
            "finish": lambda self, Y, X, residual: self.norm(Y + X),
        },
    ),
    Mistake(
        "sum-projected",
        "You add first and project the sum.",
        "The residual goes round W_o untouched: only what the heads found is projected.",
        JOINED,
        parts={
            "begin": lambda self, X, residual: self.W_o(X + residual),
            "finish": lambda self, Y, X, residual: self.norm(Y),
        },
    ),
    Mistake(
        "residual-subtracted",
        "You subtract the residual, or subtract from it.",
        "The two are added.",
        JOINED,
        parts={"finish": lambda self, Y, X, residual: self.norm(Y - residual)},
    ),
    Mistake(
        "no-projection",
        "W_o is not used.",
        "Without it the heads never meet: each keeps to its own features.",
        JOINED,
        parts={"begin": lambda self, X, residual: X},
    ),
    Mistake(
        "projected-twice",
        "You apply W_o twice.",
        "Once joins the heads. A second time mixes what is joined already.",
        JOINED,
        parts={"begin": lambda self, X, residual: self.W_o(self.W_o(X))},
    ),
    Mistake(
        "activation-inside",
        "You put a GELU after W_o.",
        "The activation belongs to the feed-forward part. Here nothing is bent.",
        "Each word on its own",
        parts={"begin": lambda self, X, residual: nn.functional.gelu(self.W_o(X))},
    ),
    *NORMS,
    *HIDDEN_DROPOUT,
    Mistake(
        "no-bias",
        "Your W_o has no bias.",
        "In lesson 4 bias=False was the default; BERT's projections have one.",
        "The heads of lesson 4, with biases",
        build_output(bias=False),
    ),
    Mistake(
        "norm-without-weights",
        "Your norm has no weight and bias of its own.",
        "After normalising, a scale and a shift are learnt for each feature, and a trained model "
        "brings them along.",
        JOINED,
        build_output(affine=False),
    ),
)
OUTPUT = apart(EVERY, build_output, *({m.id for m in EVERY} - IN_PAIRS))
