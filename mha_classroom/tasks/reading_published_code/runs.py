"""What runs of lesson 11's tasks beside the learner's code."""

import torch
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks.task import AnswerError
from mha_course.implementations import WRONG, build, merge, project, see, soften, split

__all__ = ["NAMES", "RIGHT", "run_attend", "run_learning", "run_promises", "run_test"]


def fused(self, queries, keys, values, valid_lens):
    q, k, v = (split(X, self.num_heads) for X in project(self, queries, keys, values))
    allowed = see(self, valid_lens, q, k)
    return self.W_o(merge(F.scaled_dot_product_attention(q, k, v, allowed)))


def of_torch(self, *inputs_and_lens):
    *inputs, lens = inputs_and_lens
    ignore = None if lens is None else torch.arange(inputs[1].shape[1]) >= lens[:, None]
    packed = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
    inputs = [X.transpose(0, 1) for X in inputs]  # words before the batch
    arguments = (*inputs, inputs[0].shape[2], self.num_heads, packed, None, None, None, False, 0.0)
    options = {"key_padding_mask": ignore, "need_weights": False}
    output, _ = F.multi_head_attention_forward(*arguments, self.W_o.weight, None, **options)
    return output.transpose(0, 1)


def add_heads(self, X):
    parts = self.W_o.weight.chunk(self.num_heads, dim=1)
    return sum(F.linear(x, W) for x, W in zip(X.chunk(self.num_heads, -1), parts, strict=True))


def by_letters(self, queries, keys, values, valid_lens):
    q, k, v = (X.unflatten(2, (self.num_heads, -1)) for X in project(self, queries, keys, values))
    scores = torch.einsum("blhd,bshd->bhls", q, k) / q.shape[-1] ** 0.5
    weights = soften(scores, see(self, valid_lens, q, k.movedim(2, 1)))
    return self.W_o(torch.einsum("bhls,bshd->blhd", weights, v).flatten(2))


def by_hand(scores, allowed):
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed
    shifted = scores - scores.masked_fill(~allowed, -1e30).amax(-1, keepdim=True)
    e = shifted.clamp(max=0).exp() * allowed
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


RIGHT = {  # in styles that a test must not mind
    "step by step": build(),
    "PyTorch's fused function": build(whole=fused),
    "PyTorch's multi-head function": build(whole=of_torch),
    "W_o head by head, added up": build(finish=add_heads),
    "einsum": build(whole=by_letters),
    "heads joined by cat": build(merge=lambda X: torch.cat(X.unbind(1), dim=-1)),
    "softmax by hand": build(soften=by_hand),
    "scaled before the product": build(
        project=lambda self, q, k, v: project(self, q * (self.num_heads / q.shape[2]) ** 0.5, k, v),
        scale=lambda scores, d, H: scores,
    ),
}

ALL = WRONG | RIGHT
NAMES = list(ALL)


def run_test(answer, inputs):
    """What a test says of implementations: True, False, or what else came of it, in words.

    An AssertionError is False. Any other exception is named with what it says, and is raised if
    there is nothing else, since then it is the test that fails.
    """
    said, errors = {}, []
    for number in inputs["implementations"].tolist():
        try:
            said[number] = verdict(answer(copied(ALL[NAMES[number]])))
        except AssertionError:
            said[number] = False
        except NotImplementedError:
            raise
        except Exception as error:
            said[number] = f"raises {type(error).__name__}: {error}"[:MOST]
            errors.append(error)
    if len(errors) == len(said):
        for words, why in COMMON.items():
            if words in str(errors[0]):
                raise AnswerError(
                    f"Your test ends in {type(errors[0]).__name__}: {errors[0]}. {why}"
                )
        raise errors[0]
    return said


COMMON = {  # what an exception that ends all tests most likely means
    "same dtype": "Inputs and weights need one dtype. The weights of a new module are float32: "
    "module.double() makes them float64.",
    "Attention.__init__() ": "A class is called with the two sizes, and what that makes is the "
    "module that takes queries, keys and values: Attention(12, 3)(queries, keys, values). build() "
    "is such a class, too.",
    "load_state_dict() missing": "load_state_dict and state_dict belong to modules, and build() is "
    "a class: build()(12, 3) makes a module.",
    "state_dict() missing": "load_state_dict and state_dict belong to modules, and Attention is a "
    "class: Attention(12, 3) makes a module.",
}


def copied(Attention):
    """The same under another identity: whether a class is one of a list, or inherits from one,
    says nothing of it."""
    return build(whole=Attention.forward)


MOST = 160  # letters of what an exception says
NOTHING = "nothing"  # returned, as by a test that only asserts


def verdict(result):
    if result is None or isinstance(result, bool):
        return NOTHING if result is None else result
    if getattr(result, "ndim", None) == 0:  # of torch or numpy
        return bool(result)
    kind = type(result).__name__
    return f"returns {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def run_attend(answer, inputs):
    """Without keys among the inputs it is self-attention: one tensor three times."""
    queries = inputs["queries"]
    keys, values = inputs.get("keys", queries), inputs.get("values", queries)
    return answer(queries, keys, values, inputs["num_heads"])


def run_learning(answer, inputs):
    """The module's parameters, its output with the case's weights, and all gradients.

    Raises: AnswerError if it is no module.
    """
    module = answer(inputs["X"].shape[2], inputs["num_heads"])
    if not isinstance(module, nn.Module):
        raise AnswerError("MendedAttention has to be a subclass of nn.Module.")
    if inputs["X"].dtype == torch.float64:
        module = module.double()
    module.train(inputs.get("training", True))
    parameters = dict(module.named_parameters())
    seen = {"shapes": {name: list(X.shape) for name, X in parameters.items()}}
    weights = {name: X for name, X in inputs.items() if name.endswith(".weight")}
    if seen["shapes"] != {name: list(X.shape) for name, X in weights.items()}:
        return seen
    with torch.no_grad():
        for name, X in weights.items():
            parameters[name].copy_(X)
    output = module(inputs["X"])
    if len(inputs["X"]) > 1:  # not in the first case, whose calls are counted
        try:
            output = module(inputs["X"])
        except Exception as error:
            raise AnswerError(
                f"The first call of the module works, the second raises {type(error).__name__}. "
                "Does it keep something from the first?"
            ) from error
    if torch.is_tensor(output) and output.requires_grad:
        output.square().sum().backward()
    gradients = {name: X.grad for name, X in parameters.items()}
    return seen | {"output": output, "gradients": gradients}


def positions_added(queries, keys, values, lens):
    places = torch.arange(keys.shape[1], dtype=keys.dtype)[:, None] / 2
    return attend(queries, keys + places, values, lens)


def causal(queries, keys, values, lens):
    return attend(queries, keys, values, lens, hide=lambda s: s.tril())


def mask_forgotten(queries, keys, values, lens):
    return attend(queries, keys, values, None)


def padding_in_the_sum(queries, keys, values, lens):
    weights = (queries @ keys.mT / 2).softmax(-1)
    return (weights if lens is None else weights * allowed_by(lens, keys)) @ values


def first_length(queries, keys, values, lens):
    return attend(queries, keys, values, None if lens is None else lens[:1].expand(len(lens)))


def last_length(queries, keys, values, lens):
    return attend(queries, keys, values, None if lens is None else lens[-1:].expand(len(lens)))


def longest_length(queries, keys, values, lens):
    return attend(queries, keys, values, None if lens is None else lens.amax().expand(len(lens)))


def one_key_too_many(queries, keys, values, lens):
    return attend(queries, keys, values, None if lens is None else lens + 1)


def scaled_by_the_batch(queries, keys, values, lens):
    return attend(queries / queries.std(dim=0, keepdim=True, correction=0), keys, values, lens)


def scaled_by_padding(queries, keys, values, lens):
    return attend(queries, keys / keys.norm(dim=(1, 2), keepdim=True), values, lens)


def centred_queries(queries, keys, values, lens):
    return attend(queries - queries[:, :1], keys, values, lens)


def values_left(queries, keys, values, lens):
    output = attend(queries, keys, values, lens)
    return output + 2e-8 * values[:, -1:]


def values_taken_off(queries, keys, values, lens):
    return attend(queries, keys, values, lens) - 2e-8 * values[:, -1:]


def rows_moved(queries, keys, values, lens):
    return attend(queries, keys, values, lens).roll(1, dims=1)


def rows_told_apart(queries, keys, values, lens):
    """By less than torch.allclose overlooks, if nobody says atol."""
    output = attend(queries, keys, values, lens)
    return output + 2e-9 * torch.arange(queries.shape[1], dtype=output.dtype)[:, None]


def padded_rows_zeroed(queries, keys, values, lens):
    """As in self-attention, where queries past the length are padding as well."""
    output = attend(queries, keys, values, lens)
    if lens is None:
        return output
    past = torch.arange(queries.shape[1]) >= lens[:, None]  # (B, L)
    return output.masked_fill(past[..., None], 0.0)


def padded_rows_see_all(queries, keys, values, lens):
    """Only queries past the length see padding: the right rows, as in self-attention, are right."""
    output = attend(queries, keys, values, lens)
    if lens is None:
        return output
    past = torch.arange(queries.shape[1]) >= lens[:, None]  # (B, L)
    return torch.where(past[..., None], attend(queries, keys, values, None), output)


def softmax_over_queries(queries, keys, values, lens):
    scores = queries @ keys.mT / 2
    if lens is not None:
        scores = scores.masked_fill(~allowed_by(lens, keys), -1e30)
    return scores.softmax(1) @ values


def not_scaled(queries, keys, values, lens):
    return attend(4 * queries, keys, values, lens)


def padding_cut_off(queries, keys, values, lens):
    """Right, and what it does not look at may be NaN. Its rows differ by what counts as equal."""
    ends = [keys.shape[1]] * len(queries) if lens is None else lens[: len(queries)].tolist()
    rows = [slice(b, b + 1) for b in range(len(ends))]
    output = torch.cat(
        [
            attend(queries[row], keys[row, :end], values[row, :end], None)
            for row, end in zip(rows, ends, strict=True)
        ]
    )
    return output + 2e-10 * torch.arange(output.shape[1], dtype=output.dtype)[:, None]


def attend(queries, keys, values, lens, hide=None):
    scores = queries @ keys.mT / 2
    if hide:
        scores = scores.masked_fill(~hide(torch.ones_like(scores).bool()), -1e30)
    if lens is not None:
        scores = scores.masked_fill(~allowed_by(lens, keys), -1e30)
    return scores.softmax(-1) @ values


def allowed_by(lens, keys):
    return torch.arange(keys.shape[1]) < lens[:, None, None]  # (B, 1, S)


def one_number_moved(queries, keys, values, lens):
    """One number of the whole output is wrong, by so little that a mean hardly changes."""
    output = attend(queries, keys, values, lens)
    row, feature = output.shape[1] // 2, output.shape[2] // 2
    output[len(output) // 2, row, feature] += 4e-8 * values[len(values) // 2, -1, feature]
    return output


SUSPECTS = (
    not_scaled,
    mask_forgotten,
    positions_added,
    centred_queries,
    scaled_by_the_batch,
    causal,
    padding_in_the_sum,
    first_length,
    last_length,
    longest_length,
    one_key_too_many,
    scaled_by_padding,
    values_left,
    values_taken_off,
    rows_moved,
    softmax_over_queries,
    padding_cut_off,
    padded_rows_zeroed,
    one_number_moved,
    padded_rows_see_all,
    rows_told_apart,
)
PROMISES = ("padding", "order of keys", "order of queries", "batch")


def run_promises(answer, inputs):
    """Which promises an answer calls broken, of a function that the learner cannot look into."""
    arguments = [inputs[name] for name in ("queries", "keys", "values", "valid_lens")]
    suspect = SUSPECTS[inputs["suspect"]]

    def attention(*given, **named):  # whose name says nothing
        return suspect(*given, **named)

    found = answer(attention, *arguments)
    if not isinstance(found, (set, frozenset, list, tuple)):
        raise AnswerError(f"A set of names is asked for, got a {type(found).__name__}.")
    unknown = [name for name in found if name not in PROMISES]
    if unknown:
        raise AnswerError(f"{str(unknown[0])!r:.40} is none of the names {', '.join(PROMISES)}.")
    return {name: name in found for name in PROMISES}
