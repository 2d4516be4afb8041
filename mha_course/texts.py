"""The texts of lesson 12: pairs, passages to search, post to be sorted. They lie in texts.toml."""

import tomllib
from pathlib import Path

__all__ = ["HELD_OUT", "PAIRS", "PASSAGES", "QUERIES", "TRAIN"]

_texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAIRS = tuple(map(tuple, _texts["pairs"]))
PASSAGES = tuple(_texts["passages"])
QUERIES = tuple(map(tuple, _texts["queries"]))
TRAIN = {desk: tuple(texts) for desk, texts in _texts["train"].items()}
HELD_OUT = {desk: tuple(texts) for desk, texts in _texts["held_out"].items()}
