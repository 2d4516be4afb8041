"""Fixtures of the explorer's tests."""

import pytest
from small_reader import Words, small_model


@pytest.fixture(autouse=True)
def no_backend_left_behind(monkeypatch):
    # streamlit sets it for good when it is imported; notebooks run later would show no picture.
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture
def reader():
    return {"model": small_model(), "tokenizer": Words()}
