"""Right answers of unusual kinds and wrong answers, a module for each lesson.

RIGHT and WRONG map each task id to {label: answer}. `tests/test_checks.py` requires that every
right one passes and that every wrong one is rejected.
"""

import pytest

__all__ = ["proven"]


def proven(*seeds):
    """Seeds of cases that `make prove` tries besides those of `make test`."""
    return [pytest.param(seed, marks=pytest.mark.prove) for seed in seeds]
