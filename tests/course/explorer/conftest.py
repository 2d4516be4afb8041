"""Fixtures of the explorer's tests."""

import pytest
from small_reader import Words, small_model

from mha_course import plots


@pytest.fixture(autouse=True)
def no_backend_left_behind(monkeypatch):
    # streamlit sets it for good when it is imported; notebooks run later would show no picture.
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture
def reader():
    return {"model": small_model(), "tokenizer": Words()}


@pytest.fixture
def quick(monkeypatch):
    """Pictures that take no time: the colours without words, another picture for other weights."""

    def heatmap(weights, *labels, figure):
        figure.set_size_inches(1, 1)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.imshow(weights.numpy())
        return ax

    def grid(weights, *labels, figure):
        heatmap(weights.flatten(0, 1), figure=figure)
        if len(weights) > 64:
            raise ValueError(f"up to 64 heads, got {len(weights)} heads")

    monkeypatch.setattr(plots, "attention_heatmap", heatmap)
    monkeypatch.setattr(plots, "head_grid", grid)
