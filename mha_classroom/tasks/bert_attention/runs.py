"""What runs of lesson 06's tasks beside the learner's code."""

import torch

from mha_classroom.checks.modules import (
    gradients_of,
    load,
    make,
    plan_of,
    refuse_shared,
    run_planned,
)
from mha_classroom.checks.task import AnswerError
from mha_course.bert import BertConfig

__all__ = [
    "dropout_of_layer",
    "run_attention",
    "run_feed_forward",
    "run_layer",
    "run_names",
    "run_output",
    "run_pre_norm",
]


FEW = 12  # numbers of the smallest cases


def run_attention(answer, inputs):
    """Make the learner's module, give it the case's weights, run it with and without weights."""
    module, kept = _made(answer, "BertSelfAttention", inputs), _copies(_given(inputs))
    plan = plan_of(inputs, "attention_probs_dropout_prob", weights=True, learn=True)
    seen = run_planned(module, "BertSelfAttention", inputs, _given(inputs), plan)
    _refuse_kept_mask(answer, module, "BertSelfAttention", inputs, inputs, seen)
    return _called_on(module, kept, plan, _learning_with_weights(module, inputs, plan, seen))


def _made(answer, name, inputs):
    """The learner's module, after which another is made of another config: it must not change
    this one. Where gradients are looked at, also whether it is alone."""
    module = make(answer, name, _config(inputs))
    make(answer, name, _another(_config(inputs)))
    if "training" in inputs:
        refuse_shared(answer, module, name, _config(inputs))
    return module


def _refuse_kept_mask(answer, module, name, inputs, weights, seen):
    """Looked at where gradients are: there nothing is dropped, and there is a mask.

    Raises: AnswerError if a call without a mask gives something else after one with a mask.
    """
    if "training" in inputs and "mask" in inputs and seen["calls"]:
        new = make(answer, name, _config(inputs))
        load(new, weights, name)
        with torch.no_grad():
            mine, right = (m.eval()(inputs["X"].clone()) for m in (module, new))
        if torch.is_tensor(mine) and torch.is_tensor(right) and not torch.allclose(mine, right):
            raise AnswerError(
                f"Called with a mask, and then without one, {name} returns something else than a "
                "new one with the same weights. Does it keep the mask, or anything else, from the "
                "call before?"
            )


def run_output(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    module = _made(answer, "BertSelfOutput", inputs)
    arguments = inputs["X"], inputs["residual"]
    plan = plan_of(inputs, "hidden_dropout_prob", learn=True)
    kept = _copies(arguments)
    seen = run_planned(module, "BertSelfOutput", inputs, arguments, plan)
    return _called_on(module, kept, plan, seen)


def run_feed_forward(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    module = _made(answer, "BertFeedForward", inputs)
    plan = plan_of(inputs, "hidden_dropout_prob", learn=True)
    kept = _copies([inputs["X"]])
    seen = run_planned(module, "BertFeedForward", inputs, (inputs["X"],), plan)
    return _called_on(module, kept, plan, seen)


def run_layer(answer, inputs):
    """Make the learner's layer, give it the case's weights, run it with and without weights."""
    module = _made(answer, "BertLayer", inputs)
    weights = dict(inputs["weights"])
    plan = plan_of(inputs, dropout_of_layer(inputs), weights=True)
    seen = run_planned(module, "BertLayer", weights, _given(inputs), plan)
    _refuse_kept_mask(answer, module, "BertLayer", inputs, weights, seen)
    return _learning_with_weights(module, inputs, plan, seen)


def _learning_with_weights(module, inputs, plan, seen):
    """What was seen, and where it is asked for the gradients of a call with need_weights=True."""
    if "training" in inputs and len(seen["calls"]) == len(plan):
        module.zero_grad()
        output = module(*_given(inputs), need_weights=True)[0]
        seen["with weights"] = {"gradients": gradients_of(module, output)}
    return seen


def dropout_of_layer(inputs):
    """The name of the probability that a case of a layer looks at."""
    if inputs.get("attention_probs_dropout_prob") == 0.25:
        return "attention_probs_dropout_prob"
    return "hidden_dropout_prob"


def run_pre_norm(answer, inputs):
    """Make the learner's layer, give it the case's weights, run it."""
    module = _made(answer, "PreNormLayer", inputs)
    weights, plan = dict(inputs["weights"]), plan_of(inputs, "hidden_dropout_prob")
    seen = run_planned(module, "PreNormLayer", weights, _given(inputs), plan)
    _refuse_kept_mask(answer, module, "PreNormLayer", inputs, weights, seen)
    return seen


def _called_on(module, arguments, plan, seen):
    """What was seen, and the results of more calls in eval mode where there are few numbers.

    Of few numbers nothing at all may be dropped in a call or two. Each call gets the arguments as
    they were, so that who changes them is not taken for somebody who drops.
    """
    done = len(seen["calls"]) == len(plan) and not any(planned.training for planned in plan)
    if done and arguments[0].numel() <= FEW:
        seen["more"] = [module(*_copies(arguments)) for _ in range(4)]
    return seen


def _another(config):
    """A config in which all is different."""
    return BertConfig(
        vocab_size=19,
        hidden_size=6,
        num_hidden_layers=2,
        num_attention_heads=1 if config.num_attention_heads == 3 else 3,
        intermediate_size=5,
        hidden_act="gelu_new" if config.hidden_act == "relu" else "relu",
        layer_norm_eps=0.1,
        hidden_dropout_prob=1 - config.hidden_dropout_prob,
        attention_probs_dropout_prob=1 - config.attention_probs_dropout_prob,
    )


def _copies(tensors):
    return [X.clone() for X in tensors]


def _config(inputs):
    names = ("hidden_size", "num_attention_heads", "intermediate_size", "hidden_act")
    given = {n: inputs[n] for n in (*names, "layer_norm_eps") if n in inputs}
    return BertConfig(
        **{"vocab_size": 17, "num_hidden_layers": 13, "intermediate_size": 23} | given,
        hidden_dropout_prob=inputs.get("hidden_dropout_prob", 0.0),
        attention_probs_dropout_prob=inputs.get("attention_probs_dropout_prob", 0.0),
    )


def _given(inputs):
    return [inputs[name] for name in ("X", "mask") if name in inputs]


def run_names(answer, inputs):
    """Return what the answer makes of the tensors, and of each name of the given dict whether its
    tensor still stands there."""
    given = dict(inputs)
    mapped = answer(given)
    return {"mapped": mapped, "left": {name: X is inputs.get(name) for name, X in given.items()}}
