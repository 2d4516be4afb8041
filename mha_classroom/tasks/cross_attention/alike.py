"""Whether results are those of one of several ways to make the same mistake."""

import torch

__all__ = ["FILLS", "alike", "like"]

# In place of -inf: low among scores around 0, and not below all that scores can be.
FILLS = (-1.0, -5.0, -9.0, -10.0, -20.0, -50.0, -99.0, -100.0, -500.0, -999.0, -1e3, -9999.0, -1e4)


def like(*answers, run=lambda answer, inputs: answer(*inputs.values())):
    """The `shows` of a mistake that has as many forms as there are answers; none of them raises."""

    def shows(inputs, value):
        return any(alike(run(answer, inputs), value) for answer in answers)

    return shows


def alike(one, other):
    """Whether two results, tensors or tuples of them, hold the same numbers."""
    if isinstance(one, (tuple, list)):
        return (
            isinstance(other, (tuple, list))
            and len(one) == len(other)
            and all(map(alike, one, other))
        )
    if not torch.is_tensor(other) or one.shape != other.shape:
        return False
    if one.is_floating_point() != other.is_floating_point() or other.is_complex():
        return False
    if (one.dtype == torch.bool) != (other.dtype == torch.bool):
        return False
    near = 1e-4 if other.dtype == torch.float32 else 1e-5
    return torch.allclose(one.double(), other.double(), rtol=near, atol=near, equal_nan=True)
