"""The known mistakes of lesson 12 in the embeddings."""

import torch
from torch import nn

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.embedding_sums import SUMS, VECTORS, places
from mha_course.checks.task import Mistake

__all__ = ["EMBEDDINGS", "build_embeddings"]

# Looked for in pairs, too; the others alone, since every pair costs time in a check.
IN_PAIRS = {
    "positions-from-1",
    "positions-forgotten",
    "segments-forgotten",
    "segments-only-if-given",
    "no-norm",
    "default-eps",
    "no-dropout",
    "dropout-in-eval",
    "other-probability",
}


def _kinds(ids, kinds):
    return torch.zeros_like(ids) if kinds is None else kinds


def _drop(self, Y):
    return nn.functional.dropout(Y, self.rate, self.training)


def build_embeddings(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    word=lambda self, ids: self.words(ids),
    position=lambda self, ids: self.positions(places(ids)),
    segment=lambda self, ids, kinds: self.segments(_kinds(ids, kinds)),
    join=lambda self, words, positions, segments: words + positions + segments,
    normalise=lambda self, Y: self.norm(Y),
    drop=_drop,
):
    """Return a class for `12-BertEmbeddings`, right unless a part is replaced."""

    class BertEmbeddings(nn.Module):
        def __init__(self, config):
            super().__init__()
            width = config.hidden_size
            self.words = nn.Embedding(config.vocab_size, width)
            self.positions = nn.Embedding(config.max_position_embeddings, width)
            self.segments = nn.Embedding(config.type_vocab_size, width)
            self.norm = nn.LayerNorm(width, eps=eps(config))
            self.rate = rate(config)

        def forward(self, input_ids, token_type_ids=None):
            positions = position(self, input_ids)
            parts = word(self, input_ids), positions, segment(self, input_ids, token_type_ids)
            return drop(self, normalise(self, join(self, *parts)))

    return BertEmbeddings


class _Concatenated(build_embeddings()):
    def forward(self, input_ids, token_type_ids=None):
        words, kinds = self.words(input_ids), _kinds(input_ids, token_type_ids)
        positions = self.positions(places(input_ids)).expand_as(words)
        return torch.cat([words, positions, self.segments(kinds)], -1)


class _ConcatenatedAndNormalised(_Concatenated):
    def forward(self, input_ids, token_type_ids=None):
        return _drop(self, self.norm(super().forward(input_ids, token_type_ids)))


EVERY = (
    *SUMS,
    Mistake(
        "concatenated",
        "You put the three vectors side by side.",
        "Then each word is three times as wide as the layers expect. They are added, number by "
        "number.",
        VECTORS,
        _Concatenated,
    ),
    Mistake(
        "concatenated-and-normalised",
        "You put the three vectors side by side, and the norm does not fit the result.",
        "The norm is for hidden_size numbers a word. The three are added, number by number.",
        VECTORS,
        _ConcatenatedAndNormalised,
    ),
    Mistake(
        "no-norm",
        "Your result is the sum, not normalised.",
        "The layers expect words of mean 0 and variance 1, scaled and shifted by what the norm "
        "has learnt.",
        VECTORS,
        parts={"normalise": lambda self, Y: Y},
    ),
    Mistake(
        "norm-before-the-sum",
        "You normalise the words' vectors and add the rest afterwards.",
        "There is one norm, and it comes after the sum of all three.",
        VECTORS,
        parts={
            "word": lambda self, ids: self.norm(self.words(ids)),
            "normalise": lambda self, Y: Y,
        },
    ),
    Mistake(
        "each-normalised",
        "You normalise each of the three vectors and add the results.",
        "There is one norm, and it comes after the sum.",
        VECTORS,
        parts={
            "join": lambda self, *parts: sum(self.norm(part) for part in parts),
            "normalise": lambda self, Y: Y,
        },
    ),
    Mistake(
        "norm-before-segments",
        "You add the segment after the norm.",
        "There is one norm, and it comes after the sum of all three.",
        VECTORS,
        parts={
            "join": lambda self, words, positions, segments: (
                self.norm(words + positions) + segments
            ),
            "normalise": lambda self, Y: Y,
        },
    ),
    Mistake(
        "norm-before-positions",
        "You add the position after the norm.",
        "There is one norm, and it comes after the sum of all three.",
        VECTORS,
        parts={
            "join": lambda self, words, positions, segments: (
                self.norm(words + segments) + positions
            ),
            "normalise": lambda self, Y: Y,
        },
    ),
    Mistake(
        "default-eps",
        "Your norm has PyTorch's own eps, not the config's.",
        "nn.LayerNorm takes 1e-5 unless it is told another. Where a word's numbers hardly vary, "
        "it shows.",
        VECTORS,
        parts={"eps": lambda config: 1e-5},
    ),
    Mistake(
        "no-dropout",
        "hidden_dropout_prob has no effect while training.",
        "With that probability a number of the result is dropped.",
        VECTORS,
        parts={"drop": lambda self, Y: Y},
    ),
    Mistake(
        "dropout-in-eval",
        "Numbers are dropped in eval mode too.",
        "A function drops whenever it is told to. The module knows whether it is training.",
        VECTORS,
        parts={"drop": lambda self, Y: nn.functional.dropout(Y, self.rate, True)},
    ),
    Mistake(
        "other-probability",
        "You drop with attention_probs_dropout_prob.",
        "That one is for attention weights. Hidden states have a probability of their own.",
        VECTORS,
        parts={"rate": lambda config: config.attention_probs_dropout_prob},
    ),
    Mistake(
        "dropout-before-the-norm",
        "You drop before the norm.",
        "The norm would then hide how much was dropped. In BERT's embeddings dropout comes last.",
        VECTORS,
        parts={
            "normalise": lambda self, Y: self.norm(_drop(self, Y)),
            "drop": lambda self, Y: Y,
        },
    ),
    Mistake(
        "not-scaled-up",
        "Numbers are dropped in training, and the others stay as they were.",
        "Then a word is smaller in training than in eval mode. What is kept is divided by 1 - p, "
        "as nn.Dropout does.",
        VECTORS,
        parts={
            "drop": lambda self, Y: Y * (torch.rand_like(Y) >= self.rate) if self.training else Y
        },
    ),
)
EMBEDDINGS = apart(EVERY, build_embeddings, *({m.id for m in EVERY} - IN_PAIRS))
