"""What runs of lesson 08's tasks beside the learner's code."""

from mha_course.multihead import MultiHeadAttention

__all__ = ["run_removal"]


def run_removal(answer, inputs):
    """Give the learner's function a layer with the case's weights; return what it is afterwards.

    Where the case names heads to be removed `later`, the function is called a second time, unless
    num_heads is wrong after the first call: what comes of that differs from one learner to the
    next. If the layer cannot run any more, its output is the text of the error.
    """
    attention = made(inputs)
    before = attention.num_heads
    answer(attention, list(inputs["heads"]))
    if "later" in inputs and attention.num_heads == before - len(inputs["heads"]):
        answer(attention, list(inputs["later"]))
    parameters = dict(attention.named_parameters())
    seen = {
        "num_heads": attention.num_heads,
        "numbers": {name: X.detach().clone() for name, X in parameters.items()},
        "trainable": {name: X.requires_grad for name, X in parameters.items()},
        "training": attention.training,
    }
    given = (inputs[name] for name in ("queries", "keys", "values"))
    try:
        output = attention.eval()(*given).detach()
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        output = f"{type(error).__name__}: {error}"
    return seen | {"output": output}


def made(inputs):
    """The layer of a case: the course's, with the weights and biases among the inputs."""
    weights = {name: X for name, X in inputs.items() if name.startswith("W_")}
    sizes = (weights[f"{name}.weight"].shape[1] for name in ("W_k", "W_q", "W_v"))
    num_hiddens, bias = len(weights["W_o.weight"]), "W_o.bias" in weights
    attention = MultiHeadAttention(*sizes, num_hiddens, inputs["num_heads"], bias=bias)
    attention.to(weights["W_o.weight"].dtype).load_state_dict(weights)
    return attention
