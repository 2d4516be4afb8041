"""Judges whether an answer made do with small tensors."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.task import AnswerError

__all__ = ["small_enough"]


def small_enough(shape, limit, reason):
    """The `examine` of a task whose `run` is `run_small`.

    shape: that of a right result, for a case's inputs. limit: how many numbers a tensor may have.
    reason: what a tensor that is larger usually is, in a sentence to the learner.
    """

    @total
    def examine(inputs, seen):
        """The result; a wrong shape is left to the comparison, which has better words for it.

        Raises: AnswerError if a tensor was too large.
        """
        result, largest = seen["result"], seen["largest"]
        if torch.is_tensor(result) and tuple(result.shape) != tuple(shape(inputs)):
            return result
        if seen["numpy"] is not False:
            raise AnswerError(
                "Your function computes with NumPy, and it is not known how large its arrays are. "
                "Compute with tensors."
            )
        if type(largest) is not int or (torch.is_tensor(result) and largest < result.numel()):
            raise AnswerError("It is not known how large the tensors are that came of the answer.")
        if largest > limit(inputs):
            raise AnswerError(
                f"Your function makes a tensor of {largest} numbers. Here {limit(inputs)} are "
                f"allowed. {reason}"
            )
        return result

    return examine
