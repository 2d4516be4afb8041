"""The known mistakes of lesson 12 in the embeddings."""

import torch
from torch import nn

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.task import Mistake

__all__ = ["EMBEDDINGS", "build_embeddings"]

VECTORS = "From ids to vectors"
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


def _places(ids):
    return torch.arange(ids.shape[1])


def _kinds(ids, kinds):
    return torch.zeros_like(ids) if kinds is None else kinds


def _drop(self, Y):
    return nn.functional.dropout(Y, self.rate, self.training)


def build_embeddings(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    word=lambda self, ids: self.words(ids),
    position=lambda self, ids: self.positions(_places(ids)),
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


def _counted_words(self, ids):
    """Positions that count words only: padding has the place of the word before."""
    return self.positions(((ids != 0).cumsum(1) - 1).clamp(min=0))


class _Concatenated(build_embeddings()):
    def forward(self, input_ids, token_type_ids=None):
        words, kinds = self.words(input_ids), _kinds(input_ids, token_type_ids)
        positions = self.positions(_places(input_ids)).expand_as(words)
        return torch.cat([words, positions, self.segments(kinds)], -1)


class _ConcatenatedAndNormalised(_Concatenated):
    def forward(self, input_ids, token_type_ids=None):
        return _drop(self, self.norm(super().forward(input_ids, token_type_ids)))


EVERY = (
    Mistake(
        "positions-forgotten",
        "The positions are not in your sum.",
        "Without them a word has one vector wherever it stands, and attention knows no order.",
        VECTORS,
        parts={"position": lambda self, ids: 0},
    ),
    Mistake(
        "positions-from-1",
        "You count positions from 1.",
        "The first row of the table is for the first word, and Python calls it 0.",
        VECTORS,
        parts={"position": lambda self, ids: self.positions(_places(ids) + 1)},
    ),
    Mistake(
        "positions-by-word",
        "You look positions up by the ids of the words.",
        "An id says which word it is. The position says where it stands: 0, 1, 2, …, the same in "
        "every text.",
        VECTORS,
        parts={"position": lambda self, ids: self.positions(ids)},
    ),
    Mistake(
        "positions-by-text",
        "Your positions count the texts of the batch, not the words of a text.",
        "All texts of a batch begin at position 0. Which axis of input_ids runs along a text?",
        VECTORS,
        parts={"position": lambda self, ids: self.positions(torch.arange(len(ids)))[:, None]},
    ),
    Mistake(
        "positions-run-on",
        "Your positions go on from one text of the batch to the next.",
        "Each text begins at position 0, whatever it is read together with.",
        VECTORS,
        parts={
            "position": lambda self, ids: self.positions(torch.arange(ids.numel()).view(ids.shape))
        },
    ),
    Mistake(
        "positions-backwards",
        "You count positions from the end of the text.",
        "The first word stands at position 0.",
        VECTORS,
        parts={"position": lambda self, ids: self.positions(_places(ids).flip(0))},
    ),
    Mistake(
        "padding-not-counted",
        "Your positions count only ids other than 0.",
        "Some other models do that. In BERT a position is the place in the text, padding or not; "
        "the mask is what hides padding, later.",
        VECTORS,
        parts={"position": _counted_words},
    ),
    Mistake(
        "one-position-for-all",
        "Every word gets the vector of position 0.",
        "Position 0 is the first word's. The table has a row for each place.",
        VECTORS,
        parts={"position": lambda self, ids: self.positions(torch.zeros_like(ids))},
    ),
    Mistake(
        "segments-forgotten",
        "The segments are not in your sum.",
        "Even where there is one segment only, its vector belongs to the sum: the model was "
        "trained with it.",
        VECTORS,
        parts={"segment": lambda self, ids, kinds: 0},
    ),
    Mistake(
        "segments-only-if-given",
        "Without token_type_ids you add no segment at all.",
        "None means that all words are of segment 0, and row 0 of the table is not zero.",
        VECTORS,
        parts={"segment": lambda self, ids, kinds: 0 if kinds is None else self.segments(kinds)},
    ),
    Mistake(
        "segments-always-0",
        "You take segment 0 for every word, also where token_type_ids says otherwise.",
        "token_type_ids is None or gives the segment of each word. When it is given, it counts.",
        VECTORS,
        parts={"segment": lambda self, ids, kinds: self.segments(torch.zeros_like(ids))},
    ),
    Mistake(
        "segment-1-by-default",
        "Without token_type_ids you take segment 1.",
        "None means that all words are of the first segment, and counting begins at 0.",
        VECTORS,
        parts={
            "segment": lambda self, ids, kinds: self.segments(
                torch.ones_like(ids) if kinds is None else kinds
            )
        },
    ),
    Mistake(
        "words-forgotten",
        "The words' own vectors are not in your sum.",
        "Word, position and segment: three tables, and the word is what the text is about.",
        VECTORS,
        parts={"word": lambda self, ids: torch.zeros_like(self.words(ids))},
    ),
    Mistake(
        "padding-zeroed",
        "Where the id is 0 you put zeros in place of the word's vector.",
        "Row 0 of the table may hold numbers, as a trained model's does, and it is read like any "
        "other.",
        VECTORS,
        parts={"word": lambda self, ids: self.words(ids) * (ids != 0)[..., None]},
    ),
    Mistake(
        "averaged",
        "You take the mean of the three vectors, not their sum.",
        "A norm makes that almost the same, but for its eps: a third of the sum has a ninth of "
        "the variance. The model was trained with the sum.",
        VECTORS,
        parts={"join": lambda self, *parts: sum(parts) / 3},
    ),
    Mistake(
        "multiplied",
        "You multiply the three vectors.",
        "They are added: each of them moves the word's vector a little.",
        VECTORS,
        parts={"join": lambda self, words, positions, segments: words * positions * segments},
    ),
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
