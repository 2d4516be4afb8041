"""The learner's own answers, taken out of their exercise notebooks: the door to them."""

from mha_classroom.checks.learners_answers import load

__all__ = ["load"]
