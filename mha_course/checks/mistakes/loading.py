"""The known mistakes of lesson 04 in loading PyTorch's weights."""

import torch

from mha_course.checks.task import Mistake

__all__ = ["LOADING"]

PROOF = "The proof"


def _load(order=(0, 1, 2), turned=False, out=True, bias=True):
    def load_torch_weights(attention, reference):
        with torch.no_grad():
            for kind in ("weight", "bias") if bias else ("weight",):
                packed = getattr(reference, f"in_proj_{kind}")
                if packed is None:
                    continue
                parts = packed.chunk(3)
                for name, i in zip(("W_q", "W_k", "W_v"), order, strict=True):
                    part = parts[i].T if turned and kind == "weight" else parts[i]
                    attention.get_parameter(f"{name}.{kind}").copy_(part)
                if out:
                    source = reference.out_proj.get_parameter(kind)
                    turn = turned and kind == "weight"
                    attention.W_o.get_parameter(kind).copy_(source.T if turn else source)

    return load_torch_weights


def _load_shared(attention, reference):
    _load()(attention, reference)
    attention.W_q.weight.data = reference.in_proj_weight.data.chunk(3)[0]


LOADING = (
    Mistake(
        "weights-transposed",
        "You copy the transposes of the matrices.",
        "nn.Linear keeps (out, in), and so does in_proj_weight: nothing has to be turned.",
        PROOF,
        _load(turned=True),
    ),
    Mistake(
        "keys-and-queries-swapped",
        "W_q got the weights of the keys and W_k those of the queries.",
        "in_proj_weight holds queries, keys and values in this order, from the top.",
        PROOF,
        _load(order=(1, 0, 2)),
    ),
    Mistake(
        "keys-and-values-swapped",
        "W_k got the weights of the values and W_v those of the keys.",
        "in_proj_weight holds queries, keys and values in this order, from the top.",
        PROOF,
        _load(order=(0, 2, 1)),
    ),
    Mistake(
        "one-matrix-for-all",
        "W_q, W_k and W_v all got the same third of in_proj_weight.",
        "Each has a third of its own.",
        PROOF,
        _load(order=(0, 0, 0)),
    ),
    Mistake(
        "biases-forgotten",
        "The matrices arrive, the biases do not.",
        "With bias=True, in_proj_bias and out_proj.bias have to be copied too.",
        PROOF,
        _load(bias=False),
    ),
    Mistake(
        "memory-shared",
        "attention and reference share memory afterwards: training one would change the other.",
        "Assigning a tensor, or its .data, hands over the same memory. Numbers have to be copied.",
        PROOF,
        _load_shared,
    ),
    Mistake(
        "gradients-recorded",
        "PyTorch refuses to change a parameter in place while it records gradients.",
        "Loading weights is no part of what is trained: it should not be recorded.",
        PROOF,
        lambda attention, reference: attention.W_q.weight.copy_(
            reference.in_proj_weight.chunk(3)[0]
        ),
    ),
)
