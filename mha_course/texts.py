"""The texts of lessons 7 and 12. They lie in texts.toml.

Tagged sentences; pairs, passages to search, post to be sorted, praise and complaint.
"""

import tomllib
from pathlib import Path

__all__ = ["HELD_OUT", "PAIRS", "PASSAGES", "QUERIES", "SENTIMENT", "TAGGED", "TRAIN"]

_texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAIRS = tuple(map(tuple, _texts["pairs"]))
PASSAGES = tuple(_texts["passages"])
QUERIES = tuple(map(tuple, _texts["queries"]))
TAGGED = tuple(map(tuple, _texts["tagged"]))
TRAIN = {desk: tuple(texts) for desk, texts in _texts["train"].items()}
HELD_OUT = {desk: tuple(texts) for desk, texts in _texts["held_out"].items()}


def _praise_and_complaint(things, adjectives):
    """(sentence, whether it praises: 1 or 0, number of its thing, number of its adjectives)"""
    for t, thing in enumerate(things):
        for p, (good, bad) in enumerate(adjectives):
            yield f"The {thing} was {good}.", 1, t, p
            yield f"The {thing} was {bad}.", 0, t, p
            yield f"The {thing} was not {good}.", 0, t, p
            yield f"The {thing} was not {bad}.", 1, t, p


SENTIMENT = tuple(_praise_and_complaint(**_texts["sentiment"]))
