"""Inputs for the tasks of lesson 03."""

from lessons import normal, size


def _sizes(rng, weak):
    heads, width = size(rng, 1, 5), size(rng, 1, 6)
    batch = 1 if weak == "batch 1" else size(rng, 1, 4)
    return heads, heads if weak == "head count = head width" else width, batch


def head(rng, weak=None):
    _, width, batch = _sizes(rng, weak)
    d_model = size(rng, 1, 7)
    inputs = {"X": normal(rng, batch, size(rng, 1, 6), d_model, weak=weak)}
    for name, d in (("W_q", width), ("W_k", width), ("W_v", size(rng, 1, 6))):
        inputs[name] = normal(rng, d_model, d, weak=weak) / 2
    if rng.random() < 0.2:  # scores in the thousands
        inputs["X"] = 50 * inputs["X"]
    return inputs


def loop(rng, weak=None):
    heads, width, batch = _sizes(rng, weak)
    d_model = size(rng, 1, 7)
    d_v = heads if weak == "head count = head width" else size(rng, 1, 6)
    inputs = {"X": normal(rng, batch, size(rng, 1, 6), d_model, weak=weak)}
    for name, d in (("W_q", width), ("W_k", width), ("W_v", d_v)):
        inputs[name] = normal(rng, heads, d_model, d, weak=weak) / 2
    if rng.random() < 0.2:  # scores in the thousands
        inputs["W_q"] = 3000 * inputs["W_q"]
    return inputs | {"W_o": normal(rng, heads * d_v, d_model, weak=weak)}


def terms(rng, weak=None):
    heads, width, batch = _sizes(rng, weak)
    return {
        "heads": normal(rng, heads, batch, size(rng, 1, 6), width, weak=weak),
        "W_o": normal(rng, heads * width, size(rng, 1, 7), weak=weak),
    }


def neighbours(rng, weak=None):
    num_features, num_positions = size(rng, 1, 9), size(rng, 2, 19)
    batch = 1 if weak == "batch 1" else size(rng, 1, 3)
    content = normal(rng, batch, num_positions, num_features, weak=weak).clamp(-1, 1)
    return {"num_features": num_features, "num_positions": num_positions, "content": content}


def folded(rng, weak=None):
    heads, width, _ = _sizes(rng, weak)
    return {
        "W_v": normal(rng, heads, size(rng, 1, 7), width, weak=weak),
        "W_o": normal(rng, heads * width, size(rng, 1, 7), weak=weak),
    }


def strongest(rng, weak=None):
    inputs = terms(rng, weak)
    if rng.random() < 0.2:  # whole numbers, so that some terms are equally strong
        inputs = {name: X.round().clamp(-1, 1) for name, X in inputs.items()}
    return inputs


def removal(rng, weak=None):
    heads, d_k, _ = _sizes(rng, weak)
    d_v, d_model = size(rng, 1, 6), size(rng, 1, 7)
    widths = {"W_q": heads * d_k, "W_k": heads * d_k, "W_v": heads * d_v}
    inputs = {name: normal(rng, d_model, width, weak=weak) for name, width in widths.items()}
    inputs["W_o"] = normal(rng, heads * d_v, size(rng, 1, 7), weak=weak)
    removed = rng.sample(range(heads), rng.randint(0, heads - 1))
    return inputs | {"num_heads": heads, "removed": removed}


DRAWS = {
    "03-one_head": head,
    "03-loop_of_heads": loop,
    "03-output_as_sum": terms,
    "03-neighbour_weights": neighbours,
    "03-fold_W_o": folded,
    "03-strongest_head": strongest,
    "03-remove_heads": removal,
}
