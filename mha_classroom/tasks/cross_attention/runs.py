"""What runs of lesson 10's tasks beside the learner's code."""

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
        self.self_attn = nn.MultiheadAttention(d, num_heads, batch_first=True)
        self.multihead_attn = nn.MultiheadAttention(d, num_heads, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d, num_inner), nn.Linear(num_inner, d)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.activation, self.norm_first = getattr(nn.functional, activation), norm_first
        self.double().requires_grad_(False)
        self.eval()


def run_decoder_layer(answer, inputs):
    """Call an answer with the parts that the case's weights make, all parameters in one row."""
    kinds = (inputs[name] for name in ("num_inner", "num_heads", "norm_first", "activation"))
    parts = DecoderParts(inputs["Y"].shape[-1], *kinds)
    nn.utils.vector_to_parameters(inputs["weights"].clone(), parts.parameters())
    return answer(parts, inputs["Y"], inputs["memory"], inputs["memory_lens"])
