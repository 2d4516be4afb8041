"""Runs of lesson 06's classes, and what is made of the results.

A learner's module gets the case's weights and is called in eval mode and in training.
"""

import torch
from torch import nn

from mha_course.bert import BertConfig
from mha_course.checks.bert_loading import make
from mha_course.checks.evidence import equal, total
from mha_course.checks.module_calls import judged, learns, plan_of, run_planned
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError

__all__ = [
    "examine_attention",
    "examine_layer",
    "examine_output",
    "run_attention",
    "run_layer",
    "run_output",
]

EVAL, TRAINED, TRAINED_WEIGHTS = (
    "the output in eval mode",
    "the output in training",
    "the table of weights in training",
)
STILL = "in eval mode nothing is dropped"


def run_attention(answer, inputs):
    """Make the learner's module, give it the case's weights, run it with and without weights."""
    module = make(answer, "BertSelfAttention", _config(inputs))
    plan = plan_of(inputs, "attention_dropout", weights=True)
    return run_planned(module, "BertSelfAttention", inputs, _given(inputs), plan)


def run_output(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    module = make(answer, "BertSelfOutput", _config(inputs))
    arguments, plan = (inputs["X"], inputs["residual"]), plan_of(inputs, "hidden_dropout")
    return run_planned(module, "BertSelfOutput", inputs, arguments, plan)


def run_layer(answer, inputs):
    """Make the learner's layer, give it the case's weights, run it with and without weights."""
    module = make(answer, "BertLayer", _config(inputs))
    weights, plan = dict(inputs["weights"]), plan_of(inputs, None, weights=True)
    return run_planned(module, "BertLayer", weights, _given(inputs), plan)


def _config(inputs):
    names = ("hidden_size", "num_attention_heads", "intermediate_size", "hidden_act")
    given = {n: inputs[n] for n in (*names, "layer_norm_eps") if n in inputs}
    return BertConfig(
        **{"vocab_size": 17, "num_hidden_layers": 13, "intermediate_size": 23} | given,
        hidden_dropout_prob=inputs.get("hidden_dropout", 0.0),
        attention_probs_dropout_prob=inputs.get("attention_dropout", 0.0),
    )


def _given(inputs):
    return [inputs[name] for name in ("X", "mask") if name in inputs]


@total
def examine_attention(inputs, seen):
    """The results; where single weights are dropped, what dropout does."""
    plan = plan_of(inputs, "attention_dropout", weights=True)
    results = judged("BertSelfAttention", inputs, plan, seen)
    if inputs.get("attention_dropout") == 0.25:
        output, _, _, again, trained = results
        return {STILL: equal(output, again)} | _drops_weights(output, trained, inputs)
    return _compared(inputs, inputs, plan, seen, results)


@total
def examine_output(inputs, seen):
    """The result; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, "hidden_dropout")
    output, *more = judged("BertSelfOutput", inputs, plan, seen)
    if inputs.get("hidden_dropout") == 0.25:
        again, trained = more
        return {STILL: equal(output, again)} | _drops_numbers(trained, inputs["residual"])
    if not more:
        return output
    if "training" in inputs:
        return _trained(inputs, plan, seen, *more)
    return {EVAL: output, TRAINED: more[0]}


@total
def examine_layer(inputs, seen):
    """The results."""
    weights, plan = dict(inputs["weights"]), plan_of(inputs, None, weights=True)
    results = judged("BertLayer", weights, plan, seen)
    return _compared(inputs, weights, plan, seen, results)


def _compared(inputs, weights, plan, seen, results):
    """What is compared of calls that returned outputs, and outputs with weights."""
    if len(results) == 3:
        return tuple(results)
    output, _, _, trained, _, undropped = results
    if "training" in inputs:
        return _trained(weights, plan, seen, trained)
    return {EVAL: output, TRAINED: trained, TRAINED_WEIGHTS: undropped}


def _trained(weights, plan, seen, output):
    return {TRAINED: output, "gradients reach every matrix": learns(weights, plan, seen)}


def _drops_weights(output, trained, inputs):
    """What dropout does: how the output in training differs from that in eval mode.

    A head has fewer words than features, so its weights can be computed from its output.
    """
    output, trained = (_as_wide_as(inputs["X"], X) for X in (output, trained))
    if output.dtype != inputs["X"].dtype or trained.dtype != output.dtype:
        raise AnswerError(
            f"The output has to be of dtype {inputs['X'].dtype} as X is, in eval mode and in "
            f"training; got {describe(output)} and {describe(trained)}."
        )
    v = nn.functional.linear(inputs["X"], inputs["W_v.weight"], inputs["W_v.bias"])
    v, kept, left = (
        X.unflatten(-1, (inputs["num_attention_heads"], -1)).transpose(1, 2)
        for X in (v, output, trained)
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
        (X[..., :1], X[..., -1:]) for X in (_as_wide_as(residual, trained), residual)
    )
    before = low + (trained - first) / (last - first) * (high - low)
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
