"""Checks that name a mistake: the door to them. How they work is in `mha_classroom`."""

from mha_classroom.checks import CheckFailed, Feedback, check, diagnose, find, progress, tasks

__all__ = ["CheckFailed", "Feedback", "check", "diagnose", "find", "progress", "tasks"]

tasks()  # imports all of them now: a learner's first check need not wait for it
