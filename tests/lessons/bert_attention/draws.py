"""Inputs for the tasks of lesson 06."""

import torch
from lessons import normal, size

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
ACTIVATIONS = ("gelu", "gelu_new", "relu", "silu")
LOW = torch.finfo(torch.float32).min
LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
EMBEDDINGS = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
OTHERS = (
    "embeddings.position_ids",
    "cls.predictions.bias",
    "cls.seq_relationship.weight",
    "qa_outputs.bias",
)


def _zeros_and_ones(rng, batch, length, weak):
    if weak in ("no mask", "all ones"):
        return torch.ones(batch, length, dtype=torch.int64)
    rows = [[int(rng.random() < 0.7) for _ in range(length)] for _ in range(batch)]
    return torch.tensor(rows)


def mask(rng, weak=None):
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    inputs = {"attention_mask": _zeros_and_ones(rng, batch, size(rng, 1, 7), weak)}
    if rng.random() < 0.8:
        inputs["dtype"] = rng.choice(DTYPES)
    return inputs


def _linear(rng, weak, name, num_outputs, num_inputs):
    return {
        f"{name}.weight": normal(rng, num_outputs, num_inputs, weak=weak) / num_inputs**0.5,
        f"{name}.bias": normal(rng, num_outputs, weak=weak),
    }


def _norm(rng, weak, name, width):
    return {f"{name}.{last}": normal(rng, width, weak=weak) for last in ("weight", "bias")}


def _heads(rng, weak):
    heads = size(rng, 1, 4)
    width = heads if weak == "head count = head width" else size(rng, 1, 5)
    return {"hidden_size": heads * width, "num_attention_heads": heads}


def _shape(rng, weak, training=False):
    return 1 if weak == "batch 1" else size(rng, 1, 3), size(rng, 3 if training else 1, 6)


def _attention_weights(rng, weak, width):
    return {k: X for W in "qkv" for k, X in _linear(rng, weak, f"W_{W}", width, width).items()}


def _mode(rng):
    """In training gradients are looked at: then there have to be other words to attend to."""
    return rng.choice(
        [
            {},
            {},
            {},
            {"attention_probs_dropout_prob": 1.0},
            {"hidden_dropout_prob": 1.0},
            {"training": True},
        ]
    )


def _score_mask(rng, weak, batch, length, training=False):
    if weak == "no mask" or training or rng.random() < 0.3:
        return {}
    if rng.random() < 0.3:
        return {"mask": normal(rng, batch, 1, 1, length, weak=weak)}
    hidden = _zeros_and_ones(rng, batch, length, weak) == 0
    mask = torch.zeros(batch, length, dtype=torch.float64).masked_fill(hidden, LOW)
    return {"mask": mask[:, None, None, :]}


def _dropped_attention(rng, weak):
    """Fewer words than features in a head, and no weight near 0: what is dropped can be told."""
    inputs = {"hidden_size": 10, "num_attention_heads": 2, "attention_probs_dropout_prob": 0.25}
    inputs |= _attention_weights(rng, weak, 10)
    for name in ("W_q.weight", "W_q.bias"):
        inputs[name] = 0.1 * inputs[name]
    return inputs | {"X": normal(rng, 7, 3, 10, weak=weak)}


def attention(rng, weak=None):
    if rng.random() < 0.1:
        return _dropped_attention(rng, weak)
    inputs = _heads(rng, weak) | _mode(rng)
    width, training = inputs["hidden_size"], "training" in inputs
    batch, length = _shape(rng, weak, training)
    inputs |= _attention_weights(rng, weak, width)
    inputs["X"] = normal(rng, batch, length, width, weak=weak)
    return inputs | _score_mask(rng, weak, batch, length, training)


def _ends(first, between, last, width):
    return torch.tensor([first] + [between] * (width - 2) + [last], dtype=torch.float64)


def _dropped_output(rng, weak):
    """All words are the same; W_o(X) is 1 but for both ends of one; the residual is known."""
    inputs = {"hidden_size": 11, "num_attention_heads": 1, "hidden_dropout_prob": 0.25}
    word = normal(rng, 11, weak=weak)
    inputs["W_o.weight"] = normal(rng, 11, 11, weak=weak)
    inputs["W_o.bias"] = _ends(0.0, 1.0, 0.0, 11) - inputs["W_o.weight"] @ word
    inputs["norm.weight"] = torch.ones(11, dtype=torch.float64)
    inputs["norm.bias"] = torch.zeros(11, dtype=torch.float64)
    inputs["X"] = word.repeat(3, 7, 1)
    inputs["residual"] = torch.zeros(3, 7, 11, dtype=torch.float64)
    inputs["residual"][..., -1] = 1.0
    return inputs


def output(rng, weak=None):
    if rng.random() < 0.1:
        return _dropped_output(rng, weak)
    batch, length = _shape(rng, weak)
    width = size(rng, 2, 7)
    inputs = {"hidden_size": width, "num_attention_heads": 1} | _mode(rng)
    inputs["layer_norm_eps"] = rng.choice([1e-12, 1e-5, 0.3])
    inputs |= _linear(rng, weak, "W_o", width, width) | _norm(rng, weak, "norm", width)
    inputs["X"] = normal(rng, batch, length, width, weak=weak)
    inputs["residual"] = normal(rng, batch, length, width, weak=weak)
    return inputs


def _feed_forward_weights(rng, weak, width, inner):
    return (
        _linear(rng, weak, "W_1", inner, width)
        | _linear(rng, weak, "W_2", width, inner)
        | _norm(rng, weak, "norm", width)
    )


def _dropped_feed_forward(rng, weak):
    """All words are the same and known; W_2 returns 1 but for both ends of one."""
    inputs = {"hidden_size": 11, "num_attention_heads": 1, "intermediate_size": 3}
    inputs |= {"hidden_dropout_prob": 0.25}
    inputs |= _feed_forward_weights(rng, weak, 11, 3)
    word = _ends(0.0, 0.0, 1.0, 11)
    inputs["W_2.bias"] = _ends(0.0, 1.0, 0.0, 11) - _narrow(inputs, "", word)
    inputs["norm.weight"], inputs["norm.bias"] = torch.ones(11).double(), 0 * word
    inputs["X"] = word.repeat(3, 7, 1)
    return inputs


def _narrow(weights, part, word):
    """What W_2 makes of a word, without its bias."""
    wide = weights[f"{part}W_1.weight"] @ word + weights[f"{part}W_1.bias"]
    return weights[f"{part}W_2.weight"] @ torch.nn.functional.gelu(wide)


def feed_forward(rng, weak=None):
    if rng.random() < 0.1:
        return _dropped_feed_forward(rng, weak)
    batch, length = _shape(rng, weak)
    width, inner = size(rng, 2, 7), size(rng, 1, 7)
    inputs = {"hidden_size": width, "num_attention_heads": 1} | _mode(rng)
    inputs |= {"intermediate_size": inner, "hidden_act": rng.choice(ACTIVATIONS)}
    inputs["layer_norm_eps"] = rng.choice([1e-12, 1e-5, 0.3])
    inputs |= _feed_forward_weights(rng, weak, width, inner)
    return inputs | {"X": normal(rng, batch, length, width, weak=weak)}


def _layer_weights(rng, weak, width, inner):
    parts = {
        "self_attention": _attention_weights(rng, weak, width),
        "self_output": _linear(rng, weak, "W_o", width, width) | _norm(rng, weak, "norm", width),
        "feed_forward": _feed_forward_weights(rng, weak, width, inner),
    }
    return {f"{part}.{k}": X for part, tensors in parts.items() for k, X in tensors.items()}


def _dropped(weights, X):
    sizes = {"hidden_size": 10, "num_attention_heads": 2, "intermediate_size": 3}
    sizes |= {"hidden_dropout_prob": 0.25, "weights": tuple(weights.items())}
    return sizes | {"X": X.repeat(3, 5, 1)}


def _dropped_layer(rng, weak):
    """All words are the same; one of the two sums is of a known word and of 1 but for its ends."""
    weights = _layer_weights(rng, weak, 10, 3)
    word, ones = _ends(0.0, 0.0, 1.0, 10), _ends(0.0, 1.0, 0.0, 10)
    for part in ("self_output", "feed_forward"):
        weights |= {f"{part}.norm.weight": 0 * word + 1, f"{part}.norm.bias": 0 * word}
    if rng.random() < 0.5:
        weights |= {"self_output.norm.weight": 0 * word, "self_output.norm.bias": word}
        weights["feed_forward.W_2.bias"] = ones - _narrow(weights, "feed_forward.", word)
    else:
        found = weights["self_attention.W_v.weight"] @ word + weights["self_attention.W_v.bias"]
        weights["self_output.W_o.bias"] = ones - weights["self_output.W_o.weight"] @ found
        weights |= {n: 0 * X for n, X in weights.items() if "W_2" in n}
    return _dropped(weights, word)


def _dropped_pre_norm(rng, weak):
    """All words are the same; the sums add 1, each to one half of the features."""
    weights = _layer_weights(rng, weak, 10, 3)
    word, half = normal(rng, 10, weak=weak), torch.arange(10) < 5
    weights |= {f"self_output.norm.{n}": 0 * word for n in ("weight", "bias")}
    weights["feed_forward.norm.weight"] = 0 * word
    found = weights["self_attention.W_v.bias"]
    weights["self_output.W_o.bias"] = half.double() - weights["self_output.W_o.weight"] @ found
    second = weights["feed_forward.norm.bias"]
    weights["feed_forward.W_2.bias"] = (~half).double() - _narrow(weights, "feed_forward.", second)
    return _dropped(weights, word)


def layer(rng, weak=None):
    return _dropped_layer(rng, weak) if rng.random() < 0.1 else _whole_layer(rng, weak)


def pre_norm(rng, weak=None):
    return _dropped_pre_norm(rng, weak) if rng.random() < 0.1 else _whole_layer(rng, weak)


def _whole_layer(rng, weak):
    inputs = _heads(rng, weak) | _mode(rng)
    width, inner = inputs["hidden_size"], size(rng, 1, 7)
    training = "training" in inputs
    batch, length = _shape(rng, weak, training)
    inputs |= {"intermediate_size": inner, "hidden_act": rng.choice(ACTIVATIONS)}
    inputs["layer_norm_eps"] = rng.choice([1e-12, 0.3])
    inputs["weights"] = tuple(_layer_weights(rng, weak, width, inner).items())
    inputs["X"] = normal(rng, batch, length, width, weak=weak)
    return inputs | _score_mask(rng, weak, batch, length, training)


def biases(rng, weak=None):
    width = size(rng, 2, 7)
    weights = {k: X for W in "qkvo" for k, X in _linear(rng, weak, f"W_{W}", width, width).items()}
    return {name: weights[name] for name in rng.sample(list(weights), len(weights))}


def variables(rng, weak=None):
    width, inner = size(rng, 2, 4), size(rng, 5, 7)
    shapes = {f"bert/embeddings/{table}": (5, width) for table in EMBEDDINGS[:3]}
    modules = {f"encoder/layer_{n}/{p}": p for n in rng.sample(range(30), 3) for p in LAYER}
    modules |= {"embeddings/LayerNorm": "LayerNorm", "pooler/dense": "pooler.dense"}
    widths = {"intermediate.dense": (width, inner), "output.dense": (inner, width)}
    for path, part in modules.items():
        before = f"bert/{path.replace('.', '/')}"
        if part.endswith("LayerNorm"):
            shapes |= {f"{before}/gamma": (width,), f"{before}/beta": (width,)}
        else:
            kernel = widths.get(part, (width, width))
            shapes |= {f"{before}/kernel": kernel, f"{before}/bias": kernel[1:]}
    shapes = {name: shapes[name] for name in rng.sample(list(shapes), len(shapes) // 2)}
    for name in rng.sample(list(shapes), 3):
        shapes |= {f"{name}/adam_m": shapes[name], f"{name}/adam_v": shapes[name]}
    shapes |= {"global_step": (1,), "cls/seq_relationship/output_weights": (2, width)}
    return {name: normal(rng, *shape, weak=weak) for name, shape in shapes.items()}


def names(rng, weak=None):
    numbers = rng.sample(range(30), size(rng, 1, 5))
    modules = [f"encoder.layer.{n}.{part}" for n in numbers for part in LAYER]
    modules += [f"embeddings.{part}" for part in EMBEDDINGS] + ["pooler.dense"]
    before = rng.choice(["", "bert."])
    listed = [f"{before}{module}.{last}" for module in modules for last in ("weight", "bias")]
    listed = rng.sample(listed, size(rng, len(listed) // 2, len(listed)))
    listed += rng.sample(OTHERS, size(rng, 0, len(OTHERS)))
    return {
        name: normal(rng, *((3, 2) if name.endswith("weight") else (3,)), weak=weak)
        for name in listed
    }


DRAWS = {
    "06-additive_mask": mask,
    "06-BertSelfAttention": attention,
    "06-BertSelfOutput": output,
    "06-BertFeedForward": feed_forward,
    "06-BertLayer": layer,
    "06-PreNormLayer": pre_norm,
    "06-fold_biases": biases,
    "06-from_tensorflow": variables,
    "06-map_weights": names,
}
