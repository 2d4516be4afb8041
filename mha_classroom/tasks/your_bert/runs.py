"""What runs of lesson 12's tasks beside the learner's code."""

import torch
from torch import nn

from mha_classroom.checks.modules import Call, gradients_of, load, make, plan_of, run_planned
from mha_classroom.checks.showing import describe
from mha_classroom.checks.task import AnswerError
from mha_course.bert import BertConfig

__all__ = ["run_classify", "run_embeddings", "run_encoder", "run_loading"]

BEFORE = 0.5  # every number of the model before loading
OTHER_ERRORS = (LookupError, RuntimeError, AssertionError, AttributeError, TypeError)


def run_loading(answer, inputs):
    """Load into a made model with the learner's function; return what came of it.

    What is raised where something does not fit is returned. At last the numbers of state_dict
    become 0, which shows whether the model shares memory with it.
    """
    model = model_of(inputs["model"]).to(dtype_of(inputs))
    given = {n: X.clone() for n, X in inputs["state_dict"].items()}
    tensors, before = list(given.values()), dict(model.named_parameters())
    fits = {n: tuple(X.shape) for n, X in given.items()} == inputs["model"]
    raised = None
    try:
        answer(model, given)
    except NotImplementedError:
        raise
    except (ValueError, *OTHER_ERRORS) as error:
        refused = isinstance(error, ValueError)
        if fits and not refused:
            raise
        raised = (refused, str(error) if refused else f"{type(error).__name__}: {error}")
    after = dict(model.named_parameters())
    seen = {
        "raised": raised,
        "state_dict": {n: _copied(X) for n, X in given.items()},
        "numbers": {n: X.detach().clone() for n, X in after.items()},
        "the same parameter": {n: X is before.get(n) for n, X in after.items()},
        "trainable": {n: X.requires_grad for n, X in after.items()},
        "training": model.training,
    }
    with torch.no_grad():
        for X in tensors:
            X.zero_()
    return seen | {"numbers in the end": {n: X.detach() for n, X in after.items()}}


def dtype_of(inputs):
    """The dtype of the model."""
    return torch.float32 if inputs.get("model_in_float32") else torch.float64


def _copied(X):
    return X.detach().clone() if torch.is_tensor(X) else X


def model_of(shapes):
    """A module with parameters of these names and shapes, in float64."""
    root = nn.Module()
    for name, shape in shapes.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if part not in dict(module.named_children()):
                module.add_module(part, nn.Module())
            module = module.get_submodule(part)
        full = torch.full(shape, BEFORE, dtype=torch.float64)
        module.register_parameter(last, nn.Parameter(full))
    return root


def run_classify(answer, inputs):
    """Call an answer to `classify`; return its labels, and the caller's afterwards."""
    given = {**inputs, "labels": list(inputs["labels"])}
    return {"found": answer(*given.values()), "labels": given["labels"]}


TABLES = ("words", "positions", "segments")


def run_embeddings(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    words, positions, segments = (inputs[f"{table}.weight"] for table in TABLES)
    config = BertConfig(
        vocab_size=len(words),
        max_position_embeddings=len(positions),
        type_vocab_size=len(segments),
        hidden_size=words.shape[1],
        num_hidden_layers=19,
        num_attention_heads=1,
        intermediate_size=23,
        layer_norm_eps=inputs.get("layer_norm_eps", 1e-12),
        hidden_dropout_prob=inputs.get("hidden_dropout_prob", 0.0),
        attention_probs_dropout_prob=inputs.get("attention_probs_dropout_prob", 0.0),
    )
    module = make(answer, "BertEmbeddings", config).to(words.dtype)
    arguments = [inputs[name] for name in ("input_ids", "token_type_ids") if name in inputs]
    plan = plan_of(inputs, "hidden_dropout_prob", exactly=True)
    seen = run_planned(module, "BertEmbeddings", inputs, arguments, plan)
    drops = config.hidden_dropout_prob or config.attention_probs_dropout_prob
    if len(seen["calls"]) == len(plan) and not plan[0].training and not drops:
        shorter = [ids[:1, : (ids.shape[1] + 1) // 2] for ids in arguments]
        for how, given in (
            ("without token_type_ids", arguments[:1]),
            ("with the first text cut short", shorter),
        ):
            new = make(answer, "BertEmbeddings", config).to(words.dtype)
            load(new, inputs, "BertEmbeddings")
            _refuse_what_is_kept(module, new, given, f"A second call of the same module, {how},")
    for table in TABLES:
        allowed = (None, 0) if table == TABLES[0] else (None,)
        if getattr(getattr(module, table, None), "padding_idx", None) not in allowed:
            raise AnswerError(
                f"A row of {table} never learns: padding_idx keeps its gradient at 0. Of all rows "
                "only row 0 of words stands for padding."
            )
    return seen


def _refuse_what_is_kept(module, new, arguments, second):
    """Raises: AnswerError if a second call gives something else than the first call of a new module
    with the same weights.

    second: what the call is called.
    """
    right = new.eval()(*arguments)
    try:
        mine = module.eval()(*arguments)
    except (RuntimeError, IndexError, ValueError) as error:
        raise AnswerError(
            f"{second} raises {type(error).__name__}: {error}. Does it keep something from its "
            "first call?"
        ) from error
    if torch.is_tensor(right) and torch.is_tensor(mine):
        if mine.shape != right.shape or not torch.allclose(mine, right, equal_nan=True):
            raise AnswerError(
                f"{second} gives something else than a new module with the same weights, both in "
                "eval mode. Does it keep something from its first call, or does it drop numbers in "
                "eval mode, too?"
            )


class TestLayer(nn.Module):
    """A layer that is quick and uses its mask: each word hears the mean of those that are seen.

    One more key, of zeros and with the score 0, stands beside them, so that a number added to the
    whole mask counts.
    Like one with dropout it does something else in training.
    """

    __test__ = False  # it is no test

    def __init__(self, config):
        super().__init__()
        self.W = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, X, mask=None, need_weights=False):
        """Shapes as in lesson 06's BertLayer."""
        B, L, _ = X.shape
        scores = X.new_zeros(B, 1, L, L) + (0 if mask is None else mask)
        weights = nn.functional.pad(scores, (1, 0)).softmax(-1)[..., 1:]
        output = X + (2 if self.training else 1) * torch.tanh(self.W(X) + weights[:, 0] @ X)
        return (output, weights) if need_weights else output


def run_encoder(answer, inputs):
    """Make the learner's encoder of test layers, give it the case's weights, run it."""
    config, made = _config(inputs), []

    def layer(config):
        made.append(TestLayer(config))
        return made[-1]

    layer.__module__, layer.__qualname__ = "builtins", "layer"  # as errors call it
    module, new = (
        make(lambda config: answer(config, layer), "BertEncoder", config).to(inputs["X"].dtype)
        for _ in range(2)
    )
    if not made:
        return {"layer is called": False}
    arguments = [inputs[name] for name in ("X", "mask") if name in inputs]
    training = inputs.get("training", False)
    if training:
        arguments[0] = inputs["X"].clone().requires_grad_()
    seen = run_planned(module, "BertEncoder", inputs, arguments, [Call(training=training)])
    states = seen["calls"][0]["result"] if seen["calls"] else None
    if not training and not unlike(inputs, states):
        seen["calls"][0]["result"] = first = [*states]  # a list that is kept would change
        seen["learns"] = all(state.requires_grad for state in first[1:])
        load(new, inputs, "BertEncoder")
        seen["second call"] = _of_second_call(inputs, module, new)
        if not seen["second call"] and [*map(id, states)] != [*map(id, first)]:
            seen["second call"] = "it changes the list that the first one has returned."
    if training and not unlike(inputs, states):
        seen["gradients"] = gradients_of(module, states[-1])  # through all the layers below it
        seen["requires_grad"] = [state.requires_grad for state in states]
        seen["gradient of X"] = arguments[0].grad
    return seen | {"layer is called": True}


def _of_second_call(inputs, module, new):
    """What is wrong with a call with another X and no mask, "" if nothing."""
    mine, right = module(-inputs["X"]), new.eval()(-inputs["X"])
    complaint = unlike(inputs, mine)
    if not complaint and not all(map(torch.allclose, mine, right)):
        complaint = "a new encoder with the same weights returns other hidden states."
    return complaint


def _config(inputs):
    width = inputs["X"].shape[-1]
    return BertConfig(
        vocab_size=17,
        hidden_size=width,
        num_hidden_layers=_count(inputs),
        num_attention_heads=width,  # seldom as many as layers
        intermediate_size=23,
        hidden_dropout_prob=1.0,  # a matter of the layers
        attention_probs_dropout_prob=1.0,
    )


def _count(inputs):
    return sum(name.endswith(".W.weight") for name in inputs)


def unlike(inputs, states):
    """In what the hidden states are not as many tensors of X's shape as there should be, or ""."""
    X, count = inputs["X"], _count(inputs)
    if not isinstance(states, (list, tuple)):
        return (
            f"forward has to return a list or tuple of all hidden states, got {describe(states)}."
        )
    for number, state in enumerate(states):
        if not torch.is_tensor(state) or state.shape != X.shape:
            return (
                f"Each hidden state has the shape of X, {tuple(X.shape)}; number {number} of your "
                f"list is {describe(state)}."
            )
    if len(states) != count + 1:
        return (
            f"With {count} layers there are {count + 1} hidden states, X first; your list has "
            f"{len(states)}.{_what_stands_out(states, X)}"
        )
    return ""


def _what_stands_out(states, X):
    first = "" if states and torch.equal(states[0], X) else " It does not begin with X."
    twins = [n for n in range(1, len(states)) if torch.equal(states[n - 1], states[n])]
    same = f" Its numbers {twins[0] - 1} and {twins[0]} are the same." if twins else ""
    return first + same
