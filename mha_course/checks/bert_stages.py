"""What right answers to lesson 06's classes compute on the way, for a case's inputs."""

from torch import nn

from mha_course.bert import ACTIVATIONS

__all__ = ["attention_stages", "layer_stages", "output_stages"]


def attention_stages(inputs):
    """Of `BertSelfAttention`."""
    return _attention(inputs, inputs)


def output_stages(inputs):
    """Of `BertSelfOutput`."""
    return _output(inputs, inputs["X"], inputs["residual"], inputs.get("layer_norm_eps", 1e-12))


def layer_stages(inputs):
    """Of `BertLayer`."""
    attended = list(_attention(inputs, _part(inputs, "self_attention")).values())[-1]
    eps = inputs.get("layer_norm_eps", 1e-12)
    joined = list(_output(_part(inputs, "self_output"), attended, inputs["X"], eps).values())[-1]
    return {
        "what self_attention returns": attended,
        "what self_output returns": joined,
        "what feed_forward returns": _feed_forward(inputs, joined, eps),
    }


def _part(inputs, part):
    weights = dict(inputs["weights"])
    return {n.removeprefix(f"{part}."): X for n, X in weights.items() if n.startswith(f"{part}.")}


def _apply(name, weights, X):
    return nn.functional.linear(X, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _attention(inputs, weights):
    roles = {"W_q": "queries", "W_k": "keys", "W_v": "values"}
    projected = {f"the {role}": _apply(n, weights, inputs["X"]) for n, role in roles.items()}
    heads = inputs["num_attention_heads"]
    q, k, v = (X.unflatten(-1, (heads, -1)).transpose(1, 2) for X in projected.values())
    scores = q @ k.mT
    scaled = scores / q.shape[-1] ** 0.5
    masked = scaled + inputs["mask"] if "mask" in inputs else scaled
    stages = {"the projections": projected, "the scores": scores, "the scaled scores": scaled}
    if "mask" in inputs:
        stages["the scores with the mask added"] = masked
    stages["the weights"] = masked.softmax(-1)
    stages["the weighted sums of each head"] = masked.softmax(-1) @ v
    stages["the joined heads"] = stages["the weighted sums of each head"].transpose(1, 2).flatten(2)
    return stages


def _output(weights, X, residual, eps):
    joined = _apply("W_o", weights, X)
    return {
        "W_o of X": joined,
        "the sum with the residual": joined + residual,
        "each word with mean 0 and variance 1": _normalised(joined + residual, eps),
        "the normalised sum": _norm(weights, joined + residual, eps),
    }


def _feed_forward(inputs, X, eps):
    weights = _part(inputs, "feed_forward")
    activation = ACTIVATIONS[inputs.get("hidden_act", "gelu")]
    return _norm(weights, _apply("W_2", weights, activation(_apply("W_1", weights, X))) + X, eps)


def _norm(weights, X, eps):
    return _normalised(X, eps) * weights["norm.weight"] + weights["norm.bias"]


def _normalised(X, eps):
    return nn.functional.layer_norm(X, X.shape[-1:], eps=eps)
