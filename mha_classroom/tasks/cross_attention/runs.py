"""What runs of lesson 10's tasks beside the learner's code."""

import functools

import torch
from torch import nn

__all__ = ["run_decoder_layer", "run_greedy"]


def run_greedy(answer, inputs):
    """Let an answer write with a made model, whose scores follow from step, row and last token."""
    at_step, after = inputs["at_step"], inputs["after"]  # (steps, B, V), (V, V)

    def score_next(written):
        return at_step[written.shape[1] - 1] + after[written[:, -1]]  # (B, V)

    longest, batch_size = at_step.shape[:2]
    return answer(score_next, batch_size, longest, *inputs["tokens"])


class DecoderParts(nn.Module):
    """The parts of a torch.nn.TransformerDecoderLayer under its names, without its forward."""

    def __init__(self, d, num_inner, num_heads, norm_first, activation):
        super().__init__()
        attention = functools.partial(nn.MultiheadAttention, batch_first=True, dtype=torch.float64)
        linear = functools.partial(nn.Linear, dtype=torch.float64)
        self.self_attn, self.multihead_attn = attention(d, num_heads), attention(d, num_heads)
        self.linear1, self.linear2 = linear(d, num_inner), linear(num_inner, d)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d, dtype=torch.float64) for _ in "123")
        self.activation, self.norm_first = getattr(nn.functional, activation), norm_first
        self.requires_grad_(False)
        self.eval()


def run_decoder_layer(answer, inputs):
    """Call an answer with the parts that the case's weights make, all parameters in one row."""
    kinds = (inputs[name] for name in ("num_inner", "num_heads", "norm_first", "activation"))
    parts = DecoderParts(inputs["Y"].shape[-1], *kinds)
    nn.utils.vector_to_parameters(inputs["weights"].clone(), parts.parameters())
    return answer(parts, inputs["Y"], inputs["memory"], inputs["memory_lens"])
