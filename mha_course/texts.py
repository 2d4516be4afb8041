"""The texts of lessons 7 and 12. They lie in texts.toml.

Tagged sentences; pairs, passages to search, post to be sorted.
"""

import tomllib
from pathlib import Path

__all__ = ["HELD_OUT", "PAIRS", "PASSAGES", "QUERIES", "TAGGED", "TRAIN"]

_texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAIRS = tuple(map(tuple, _texts["pairs"]))
PASSAGES = tuple(_texts["passages"])
QUERIES = tuple(map(tuple, _texts["queries"]))
TAGGED = tuple(map(tuple, _texts["tagged"]))
TRAIN = {desk: tuple(texts) for desk, texts in _texts["train"].items()}
HELD_OUT = {desk: tuple(texts) for desk, texts in _texts["held_out"].items()}
