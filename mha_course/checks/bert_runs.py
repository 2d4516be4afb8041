"""Runs of lesson 06's classes: a learner's module gets the case's weights and is looked at."""

import torch
from torch import nn

from mha_course.bert import BertConfig
from mha_course.checks.bert_loading import load, make
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError

__all__ = ["run_attention", "run_layer", "run_output"]

EVAL, TRAINED, TRAINED_WEIGHTS = (
    "the output in eval mode",
    "the output in training",
    "the table of weights in training",
)
STILL = "in eval mode nothing is dropped"


def run_attention(answer, inputs):
    """Make the learner's module, give it the case's weights, run it with and without weights."""
    module = make(answer, "BertSelfAttention", _config(inputs))
    load(module, inputs, "BertSelfAttention")
    arguments = [inputs[name] for name in ("X", "mask") if name in inputs]
    output, with_weights, weights = _both(module.eval(), arguments)
    if inputs.get("attention_dropout") == 0.25:
        found = {STILL: torch.equal(output, module.eval()(*arguments))}
        return found | _drops_weights(output, module.train()(*arguments), inputs)
    if "attention_dropout" in inputs or "hidden_dropout" in inputs:
        trained, _, undropped = _both(module.train(), arguments)
        return {EVAL: output, TRAINED: trained, TRAINED_WEIGHTS: undropped}
    if inputs.get("training"):
        return _trained(module, _both(module.train(), arguments)[0])
    return output, with_weights, weights


def run_output(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    module = make(answer, "BertSelfOutput", _config(inputs))
    load(module, inputs, "BertSelfOutput")
    arguments = inputs["X"], inputs["residual"]
    output = _run(module.eval(), arguments)
    if inputs.get("hidden_dropout") == 0.25:
        found = {STILL: torch.equal(output, module.eval()(*arguments))}
        return found | _drops_numbers(module.train()(*arguments), inputs["residual"])
    if "attention_dropout" in inputs or "hidden_dropout" in inputs:
        return {EVAL: output, TRAINED: _run(module.train(), arguments)}
    return _trained(module, _run(module.train(), arguments)) if inputs.get("training") else output


def run_layer(answer, inputs):
    """Make the learner's layer, give it the case's weights, run it with and without weights."""
    module = make(answer, "BertLayer", _config(inputs))
    load(module, dict(inputs["weights"]), "BertLayer")
    arguments = [inputs[name] for name in ("X", "mask") if name in inputs]
    results = _both(module.eval(), arguments)
    if "attention_dropout" in inputs or "hidden_dropout" in inputs:
        trained, _, undropped = _both(module.train(), arguments)
        return {EVAL: results[0], TRAINED: trained, TRAINED_WEIGHTS: undropped}
    if inputs.get("training"):
        return _trained(module, _both(module.train(), arguments)[0])
    return results


def _config(inputs):
    names = ("hidden_size", "num_attention_heads", "intermediate_size", "hidden_act")
    given = {n: inputs[n] for n in (*names, "layer_norm_eps") if n in inputs}
    return BertConfig(
        **{"vocab_size": 17, "num_hidden_layers": 13, "intermediate_size": 23} | given,
        hidden_dropout_prob=inputs.get("hidden_dropout", 0.0),
        attention_probs_dropout_prob=inputs.get("attention_dropout", 0.0),
    )


def _run(module, arguments, **options):
    """What forward returns. Where this is used, nothing depends on chance in a right answer."""
    training = module.training
    output = module(*arguments, **options)
    if module.training != training:
        raise AnswerError("forward changes whether the module is training (train or eval inside).")
    if training and not options and not _alike(output, module(*arguments)):
        raise AnswerError(
            "In training the result differs from one call to the next, although all probabilities "
            "in the config are 0 or 1. Do you take yours from the config?"
        )
    return output


def _alike(one, other):
    if not torch.is_tensor(one):
        return True  # it is no result anyway
    return one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


def _both(module, arguments):
    """What forward returns; and asked for weights, its output and the weights."""
    output, pair = _run(module, arguments), _run(module, arguments, need_weights=True)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise AnswerError(
            "With need_weights=True forward has to return two values, the output and the weights; "
            f"got {describe(pair)}."
        )
    return output, *pair


def _trained(module, output):
    """The output, and whether every matrix would learn from it."""
    learns = torch.is_tensor(output) and output.requires_grad
    if learns:
        output.pow(3).sum().backward()
        matrices = [X for X in module.parameters() if X.dim() == 2]
        learns = all(X.grad is not None and bool(X.grad.any()) for X in matrices)
    return {TRAINED: output, "gradients reach every matrix": learns}


def _drops_weights(output, trained, inputs):
    """What dropout does: how the output in training differs from that in eval mode.

    A head has fewer words than features, so its weights can be computed from its output.
    """
    v = nn.functional.linear(inputs["X"], inputs["W_v.weight"], inputs["W_v.bias"])
    v, kept, left = (
        X.detach().unflatten(-1, (inputs["num_attention_heads"], -1)).transpose(1, 2)
        for X in (v, _as_wide_as(inputs["X"], output), _as_wide_as(inputs["X"], trained))
    )
    back = torch.linalg.pinv(v)
    whole = bool(torch.allclose(left @ back @ v, left))
    factors = (left @ back) / (kept @ back) if whole else torch.zeros_like(left @ back)
    return {"in training a head's output is still made of the values": whole} | _dropped_or_scaled(
        factors, "weights"
    )


def _drops_numbers(trained, residual):
    """The same for a normalised sum: its ends, where nothing can be dropped, tell the scale."""
    (first, last), (low, high) = (
        (X[..., :1], X[..., -1:])
        for X in (_as_wide_as(residual, trained).detach(), residual.detach())
    )
    before = low + (trained.detach() - first) / (last - first) * (high - low)
    return _dropped_or_scaled((before - residual)[..., 1:-1], "numbers")


def _as_wide_as(X, output):
    if not torch.is_tensor(output) or output.shape != X.shape:
        raise AnswerError(
            f"The output has to be of shape {tuple(X.shape)}, got {describe(output)}."
        )
    return output


def _dropped_or_scaled(factors, what):
    dropped = factors.abs() < 1e-6
    kept = factors[~dropped]
    alike = bool((kept - kept[:1]).abs().max() < 1e-6) if len(kept) else False
    mixed = all(bool((dropped.amax(a) != dropped.amin(a)).any()) for a in range(factors.dim()))
    return {
        f"in training single {what} are dropped": alike and mixed,
        f"the factor of the {what} that are kept in training": kept[0].item() if alike else 0.0,
    }
