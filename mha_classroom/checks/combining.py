"""Which mistakes are looked for together with another one, and a part that changes nothing."""

import dataclasses

__all__ = ["apart", "only", "read_again", "same", "without"]


def apart(mistakes, build, *ids):
    """The mistakes, where those of these ids are no longer combined with others.

    Every pair costs time in a check. A mistake that hides all others (it raises, or returns
    another shape) and one that is seldom made are only looked for alone.
    """
    return tuple(
        dataclasses.replace(mistake, wrong=build(**mistake.parts), parts=None)
        if mistake.id in ids and mistake.parts
        else mistake
        for mistake in mistakes
    )


def read_again(section, *mistakes):
    """The mistakes, with this section of the lesson to read again where they name no other."""
    return tuple(
        mistake if mistake.section else dataclasses.replace(mistake, section=section)
        for mistake in mistakes
    )


def without(mistakes, *ids):
    """The mistakes without those of these ids."""
    return tuple(mistake for mistake in mistakes if mistake.id not in ids)


def only(mistakes, *ids):
    """Those of the mistakes that have these ids."""
    return tuple(mistake for mistake in mistakes if mistake.id in ids)


def same(X):
    """Leave it as it is."""
    return X
