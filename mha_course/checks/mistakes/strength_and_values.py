"""Known mistakes in weights made by hand: how firmly heads look, what they bring, which shapes."""

import math

import torch

from mha_course.checks.mistakes.combining import apart
from mha_course.checks.mistakes.neighbours import WHERE, build_neighbours, copy_content
from mha_course.checks.task import Mistake

__all__ = ["BY_HAND"]

ONE = "One head, with matrices of its own"
STANDS = "Where a word stands"
LOOP_OF_HEADS = "The loop of heads"
LINEAR = "The package version"


def _positions(W_v, d):
    W_v[:, d:] = torch.eye(W_v.shape[1] - d, d)


def _firm_up_to(positions, strength):
    return Mistake(
        f"firm-up-to-{positions}-positions",
        f"Your heads look at the right words, firmly with up to {positions} positions, too weakly "
        "with more.",
        "The more words compete, the larger a lead it takes, and what it is divided by may grow "
        "too. How large must the lead be for 19 positions?",
        STANDS,
        parts={"strength": lambda L: strength},
    )


STRENGTH = (
    Mistake(
        "strength-too-small",
        "Your heads look at the right words, but too weakly.",
        "Softmax turns a lead of g into e^g times the weight: a lead of 1 is a factor of 2.72. "
        "How large a lead does 99 % take, against all the other words?",
        STANDS,
        parts={"strength": lambda L: 1.0},
    ),
    Mistake(
        "root-of-d_k-forgotten",
        "Your heads look at the right words, but too weakly: the lead would be enough if the "
        "softmax got the scores as they are.",
        "On the way there scores are divided. By what? The lead that counts is what is left of it.",
        STANDS,
        parts={"strength": lambda L: math.log(99 * (L - 1))},
    ),
    *map(_firm_up_to, (2, 3, 5, 7, 13), (8.0, 10.0, 15.0, 20.0, 30.0)),
    Mistake(
        "sign-turned",
        "Your heads look at every word but the right one.",
        "The score that should lead is the only one below 0. What sign has your strength?",
        STANDS,
        parts={"strength": lambda L: -100.0},
    ),
    Mistake(
        "infinite-strength",
        "You take inf for the strength.",
        "Most features of a word are 0, and inf · 0 is not a number. How large a lead is enough?",
        STANDS,
        parts={"strength": lambda L: math.inf},
    ),
)

COPIED = (
    Mistake(
        "values-empty",
        "Your heads bring zeros: W_v is empty.",
        "They look at the right words. W_v says what is brought from there.",
        ONE,
        parts={"fill": lambda W_v, d: None},
    ),
    Mistake(
        "values-of-positions",
        "Your heads bring the position of the word that they look at, not its content.",
        "The value is what a word hands over. Which rows of W_v meet the content?",
        STANDS,
        parts={"fill": _positions},
    ),
    Mistake(
        "values-all-ones",
        "Your W_v is all ones: each number that a head brings is the sum of a whole word.",
        "Each feature of the content has to arrive in its own place, without the others.",
        STANDS,
        parts={"fill": lambda W_v, d: W_v.fill_(1)},
    ),
    Mistake(
        "values-of-head-0-only",
        "Head 1 brings zeros: its W_v is empty.",
        "Each head has a W_v of its own.",
        LOOP_OF_HEADS,
        parts={"fill": lambda W_v, d: copy_content(W_v[:1], d)},
    ),
    Mistake(
        "values-multiplied",
        "Your heads bring the right content, multiplied.",
        "The strength belongs to the scores, where it makes a head look firmly. What is brought "
        "should arrive as it was.",
        STANDS,
        parts={"fill": lambda W_v, d: copy_content(W_v, d) or W_v.mul_(100)},
    ),
)

SHAPES = (
    Mistake(
        "out-before-in",
        "Your matrices are (out, in), as nn.Linear keeps them.",
        "The lesson multiplies X @ W: which size of W has to meet the width of a word?",
        LINEAR,
        parts={"change": lambda weights, d: tuple(W.mT for W in weights)},
    ),
    Mistake(
        "heads-on-the-last-axis",
        "The two heads are on the last axis of your tensors.",
        "Each head takes its matrix with W_q[h], so the heads come first.",
        LOOP_OF_HEADS,
        parts={"change": lambda weights, d: tuple(W.permute(1, 2, 0) for W in weights)},
    ),
    Mistake(
        "one-W_v-for-both",
        "You return one W_v for both heads.",
        "It may hold the same numbers for both. Each head still takes its own matrix, W_v[h].",
        LOOP_OF_HEADS,
        parts={"change": lambda weights, d: (*weights[:2], weights[2][0])},
    ),
    Mistake(
        "one-head-only",
        "Your matrices are those of a single head.",
        "Two heads are asked for, each with matrices of its own: the first axis has size 2.",
        LOOP_OF_HEADS,
        parts={"change": lambda weights, d: tuple(W[0] for W in weights)},
    ),
    Mistake(
        "whole-numbers",
        "Your tensors hold whole numbers.",
        "Contents are fractions, and PyTorch does not multiply the two kinds.",
        STANDS,
        parts={"change": lambda weights, d: tuple(W.nan_to_num().long() for W in weights)},
    ),
)

BY_HAND = apart(
    WHERE + STRENGTH + COPIED + SHAPES,
    build_neighbours,
    "heads-swapped-on-a-ring",
    "both-neighbours-in-each-head",
    "ends-forgotten",
    "contents-in-scores",
    *(mistake.id for mistake in STRENGTH if mistake.id.startswith("firm-up-to")),
    "infinite-strength",
    *(mistake.id for mistake in SHAPES),
)
