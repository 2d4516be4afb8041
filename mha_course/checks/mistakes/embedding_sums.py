"""The known mistakes of lesson 12 in what is added up to embed a word."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["SUMS", "VECTORS", "places"]

VECTORS = "From ids to vectors"


def places(ids):
    """The positions of a text's words."""
    return torch.arange(ids.shape[1])


def _counted_words(self, ids):
    """Positions that count words only: padding has the place of the word before."""
    return self.positions(((ids != 0).cumsum(1) - 1).clamp(min=0))


SUMS = (
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
        parts={"position": lambda self, ids: self.positions(places(ids) + 1)},
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
        parts={"position": lambda self, ids: self.positions(places(ids).flip(0))},
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
)
