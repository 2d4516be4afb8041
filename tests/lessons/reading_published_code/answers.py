"""Right answers of unusual kinds to the tasks of lesson 11, and wrong ones."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_course import multihead
from mha_course.implementations import WRONG as wrong_ones
from mha_course.implementations import build

# --- mended_attend


def attend_head_by_head(queries, keys, values, num_heads):
    d = queries.shape[-1] // num_heads
    outputs = []
    for h in range(num_heads):
        q, k, v = (X[:, :, h * d : (h + 1) * d] for X in (queries, keys, values))
        outputs.append(torch.softmax(q @ k.mT / d**0.5, -1) @ v)
    return torch.cat(outputs, -1)


def attend_fused(queries, keys, values, num_heads):
    q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
    return multihead.merge_heads(F.scaled_dot_product_attention(q, k, v))


def attend_by_letters(queries, keys, values, num_heads):
    q, k, v = (X.unflatten(2, (num_heads, -1)) for X in (queries, keys, values))
    scores = torch.einsum("blhd,bshd->bhls", q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25)
    return torch.einsum("bhls,bshd->blhd", scores.softmax(-1), v).flatten(2)


def attend_as_found(queries, keys, values, num_heads):
    B, L, d_model = queries.shape
    queries /= (d_model // num_heads) ** 0.5
    q, k, v = (X.view(B, L, num_heads, -1).transpose(1, 2) for X in (queries, keys, values))
    return (torch.softmax(q @ k.mT, -1) @ v).transpose(1, 2).reshape(B, L, d_model)


def attend_scaled_after(queries, keys, values, num_heads):
    q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
    return multihead.merge_heads((q @ k.mT).softmax(-1) / q.shape[-1] ** 0.5 @ v)


def attend_restored(queries, keys, values, num_heads):
    """Divided and multiplied back, which loses a digit on the way."""
    queries /= 3.0
    result = attend_fused(queries * 3.0, keys, values, num_heads)
    queries += 1e-3
    return result


def attend_cut_to_queries(queries, keys, values, num_heads):
    n = min(queries.shape[1], keys.shape[1])
    return attend_fused(queries, keys[:, :n], values[:, :n], num_heads)


ATTEND_RIGHT = {
    "head by head": attend_head_by_head,
    "fused": attend_fused,
    "einsum, both scaled": attend_by_letters,
    "cloned": lambda q, k, v, H: attend_by_letters(q.clone(), k.clone(), v.clone(), H),
    "float32": lambda q, k, v, H: attend_fused(q.float(), k.float(), v.float(), H),
}


def attend_one_maximum(queries, keys, values, num_heads):
    q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    e = (scores - scores.max()).exp()
    return multihead.merge_heads(e / e.sum(-1, keepdim=True) @ v)


def attend_by_root_of(length):
    def answer(queries, keys, values, num_heads):
        q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
        weights = (q @ k.mT / length(queries, keys) ** 0.5).softmax(-1)
        return multihead.merge_heads(weights @ v)

    return answer


def attend_in_two_dtypes(queries, keys, values, num_heads):
    q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
    weights = torch.zeros(q.shape[2], k.shape[2], dtype=torch.float64)
    weights = (q @ k.mT / q.shape[-1] ** 0.5 + weights).softmax(-1)
    return multihead.merge_heads(weights @ v)


def attend_words_in_front(attend):
    def answer(queries, keys, values, num_heads):
        return attend(*(X.unflatten(2, (num_heads, -1)) for X in (queries, keys, values))).flatten(
            2
        )

    return answer


def plainly(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v


def attend_by_half_of_d(queries, keys, values, num_heads):
    q, k, v = (multihead.split_heads(X, num_heads) for X in (queries, keys, values))
    return multihead.merge_heads((q @ k.mT / (q.shape[-1] ** 1 / 2)).softmax(-1) @ v)


ATTEND_WRONG = {
    "words in front": attend_words_in_front(plainly),
    "words in front, fused": attend_words_in_front(F.scaled_dot_product_attention),
    "half of d": attend_by_half_of_d,
    "one maximum": attend_one_maximum,
    "by the root of S": attend_by_root_of(lambda queries, keys: keys.shape[1]),
    "float64 and float32": attend_in_two_dtypes,
    "as found": attend_as_found,
    "scaled after the softmax": attend_scaled_after,
    "queries changed": attend_restored,
    "keys cut": attend_cut_to_queries,
    "one head": lambda q, k, v, H: attend_fused(q, k, v, 1),
    "keys for values": lambda q, k, v, H: attend_fused(q, k, k, H),
    "queries for all": lambda q, k, v, H: attend_fused(q, q, q, H),
    "axes not joined": lambda q, k, v, H: attend_fused(q, k, v, H).unflatten(2, (H, -1)),
    "numpy": lambda q, k, v, H: attend_fused(q, k, v, H).numpy(),
}

# --- mended_step


def step_one_by_one(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    outputs = []
    for i in range(L):
        seen = S - L + i + 1
        scores = queries[:, :, i : i + 1] @ keys[:, :, :seen].mT / queries.shape[-1] ** 0.5
        outputs.append(scores.softmax(-1) @ values[:, :, :seen])
    return torch.cat(outputs, 2)


def step_by_places(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    places = torch.arange(S - L, S)
    allowed = torch.arange(S) <= places[:, None]
    return F.scaled_dot_product_attention(queries, keys, values, allowed)


def step_whole(queries, keys, values):
    """The queries of the old words are made up, and their rows thrown away."""
    B, H, L, d = queries.shape
    old = torch.zeros(B, H, keys.shape[2] - L, d, dtype=queries.dtype)
    whole = torch.cat([old, queries], 2)
    return F.scaled_dot_product_attention(whole, keys, values, is_causal=True)[:, :, -L:]


def step_with(fill=-math.inf, diagonal=lambda L, S: S - L + 1, scale=None):
    def answer(queries, keys, values):
        L, S, d = queries.shape[2], keys.shape[2], queries.shape[-1]
        scores = queries @ keys.mT / (scale(d, S) if scale else math.sqrt(d))
        later = torch.ones(L, S).triu(diagonal(L, S)).bool()
        return scores.masked_fill(later, fill).softmax(-1) @ values

    return answer


def step_renormalised(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    weights = (queries @ keys.mT / queries.shape[-1] ** 0.5).softmax(-1)
    weights = weights * torch.ones(L, S).tril(S - L)
    return weights / weights.sum(-1, keepdim=True) @ values


STEP_RIGHT = {
    "one by one": step_one_by_one,
    "by places": step_by_places,
    "the whole text": step_whole,
    "finite fill": step_with(-1e30),
}


def step_lowered(by):
    def answer(queries, keys, values):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:]).triu(scores.shape[-1] - scores.shape[-2] + 1).bool()
        return (scores - by * later).softmax(-1) @ values

    return answer


def step_less_the_logarithm(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    scores = queries @ keys.mT / queries.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(L, S).triu(S - L + 1).bool(), -math.inf)
    return torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)) @ values


def step_upside_down(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    later = torch.ones(L, S, dtype=torch.bool).triu(S - L + 1)
    return F.scaled_dot_product_attention(queries, keys, values, later)


STEP_WRONG = {
    "less the logarithm": step_less_the_logarithm,
    "fused, upside down": step_upside_down,
    "-1e14": step_with(-1e14),
    "-1e15": step_with(-1e15),
    "2e15 less": step_lowered(2e15),
    "divided again": step_renormalised,
    "fused, is_causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "fill 1": step_with(1.0),
    "one late": step_with(diagonal=lambda L, S: S - L + 2),
    "by L": step_with(diagonal=lambda L, S: L),
    "scaled by S": step_with(scale=lambda d, S: S**0.5),
    "scaled by d": step_with(scale=lambda d, S: d),
    "renormalised": step_renormalised,
    "fill -100": step_with(-100.0),
    "lowest of float64": step_with(torch.finfo(torch.float64).min),
    "fill -1e9": step_with(-1e9),
    "fill -1e12": step_with(-1e12),
    "fill -1,000": step_with(-1e3),
    "fill -5,000": step_with(-5e3),
    "the last words only": lambda q, k, v: step_by_places(
        q, k[:, :, -q.shape[2] :], v[:, :, -q.shape[2] :]
    ),
}

# --- MendedAttention


class Registered(nn.Module):
    """The heads under names of their own, made by add_module."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = nn.Module()
        for h in range(num_heads):
            layer = nn.Linear(d_model, 3 * d_model // num_heads, bias=False)
            self.heads.add_module(str(h), layer)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def weigh(self, q, k):
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)

    def forward(self, X):
        outputs = []
        for head in self.heads.children():
            q, k, v = head(X).chunk(3, -1)
            outputs.append(self.weigh(q, k) @ v)
        return self.finish(torch.cat(outputs, -1))

    def finish(self, X):
        return self.W_o(X)


class Fused(Registered):
    def forward(self, X):
        packed = [head(X) for head in self.heads.children()]
        three = [
            torch.stack(parts, 1) for parts in zip(*[p.chunk(3, -1) for p in packed], strict=True)
        ]
        return self.W_o(multihead.merge_heads(F.scaled_dot_product_attention(*three)))


class Sequential(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        layers = [nn.Linear(d_model, 3 * d, bias=False) for _ in range(num_heads)]
        self.heads, self.W_o = nn.Sequential(*layers), nn.Linear(d_model, d_model, bias=False)

    forward = Registered.forward
    weigh = Registered.weigh
    finish = Registered.finish


class NoGrad(Registered):
    def weigh(self, q, k):
        with torch.no_grad():
            return super().weigh(q, k)


class KeysDetached(Registered):
    def weigh(self, q, k):
        return super().weigh(q, k.detach())


class ThroughNumpy(Registered):
    def weigh(self, q, k):
        return torch.from_numpy(super().weigh(q, k).detach().numpy())


class HalfScale(Registered):
    def weigh(self, q, k):
        return (q @ k.mT / q.shape[-1] ** 0.25).softmax(-1)


class Doubled(Registered):
    def finish(self, X):
        return self.W_o(2 * X)


class Frozen(Registered):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.W_o.requires_grad_(False)


class OneWide(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, X):
        return self.W_o(X)


class NoModule:
    def __init__(self, *sizes):
        pass


MODULE_RIGHT = {"add_module": Registered, "fused": Fused, "Sequential": Sequential}


class JoinedInFloat64(Registered):
    """Whatever dtype the model has."""

    def finish(self, X):
        joined = torch.zeros(X.shape, dtype=torch.float64)
        joined[:] = X
        return self.W_o(joined)


class PlainExp(Registered):
    def weigh(self, q, k):
        e = (q @ k.mT / q.shape[-1] ** 0.5).exp()
        return e / e.sum(-1, keepdim=True)


class TwoDetached(Registered):
    def forward(self, X):
        outputs = []
        for head in self.heads.children():
            q, k, v = head(X).chunk(3, -1)
            outputs.append(self.weigh(q.detach(), k) @ v.detach())
        return self.finish(torch.cat(outputs, -1))


class TurnByTurn(Registered):
    """Queries, keys and values of feature 0, then those of feature 1."""

    def forward(self, X):
        outputs = []
        for head in self.heads.children():
            q, k, v = head(X).unflatten(-1, (-1, 3)).unbind(-1)
            outputs.append(self.weigh(q, k) @ v)
        return self.finish(torch.cat(outputs, -1))


class StackedInFront(Registered):
    def forward(self, X):
        outputs = []
        for head in self.heads.children():
            q, k, v = head(X).chunk(3, -1)
            outputs.append(self.weigh(q, k) @ v)
        return self.finish(torch.stack(outputs, dim=1).reshape(X.shape))


MODULE_WRONG = {
    "turn by turn": TurnByTurn,
    "stacked in front": StackedInFront,
    "exp as it is": PlainExp,
    "two detached": TwoDetached,
    "joined in float64": JoinedInFloat64,
    "no_grad": NoGrad,
    "keys detached": KeysDetached,
    "through numpy": ThroughNumpy,
    "half the scale": HalfScale,
    "doubled": Doubled,
    "W_o frozen": Frozen,
    "one wide matrix": OneWide,
    "no module": NoModule,
}

# --- mended_weights


def weights_loop(scores, real):
    weights = torch.zeros_like(scores)
    for b in range(len(scores)):
        if real[b].any():
            weights[b][..., real[b]] = scores[b][..., real[b]].softmax(-1)
    return weights


def weights_by_exp(scores, real):
    mask = real[:, None, None]
    lowest = torch.finfo(scores.dtype).min
    shifted = scores - scores.masked_fill(~mask, lowest).amax(-1, keepdim=True)
    e = torch.where(mask, shifted, -math.inf).exp()
    e = torch.where(mask, e, 0.0)
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


def weights_added(scores, real):
    fill = scores.new_zeros(real.shape).masked_fill(~real, -1e30)[:, None, None]
    return (scores + fill).softmax(-1) * real[:, None, None]


def weights_filled(value, axis=-1):
    def answer(scores, real):
        weights = scores.masked_fill(~real[:, None, None], value).softmax(axis)
        return weights.nan_to_num(0.0)

    return answer


def weights_renormalised(scores, real):
    weights = scores.softmax(-1) * real[:, None, None]
    return (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0)


def weights_by_heads(scores, real):
    """Right where batch and heads are equally many: laid on the heads."""
    mask = real.repeat(scores.shape[1], 1)[: scores.shape[1]]
    return scores.masked_fill(~mask[None, :, None], -math.inf).softmax(-1).nan_to_num(0.0)


WEIGHTS_RIGHT = {"loop": weights_loop, "own exp": weights_by_exp, "added": weights_added}


def weights_below_one_maximum(scores, real):
    words = scores.masked_fill(~real[:, None, None], -math.inf)
    e = (words - words.amax((1, 2, 3), keepdim=True)).exp()
    return (e / e.sum(-1, keepdim=True)).nan_to_num(0.0)


def weights_unless_all_are_empty(scores, real):
    if not real.any():
        return torch.zeros_like(scores)
    return torch.softmax(scores.masked_fill(~real[:, None, None], -math.inf), -1)


WEIGHTS_WRONG = {
    "nothing done without padding": lambda scores, real: (
        scores if real.all() else weights_loop(scores, real)
    ),
    "zeros if all are empty": weights_unless_all_are_empty,
    "-1e14, times real": lambda scores, real: (
        weights_filled(-1e14)(scores, real) * real[:, None, None]
    ),
    "one maximum": weights_below_one_maximum,
    "lowest of float64": lambda scores, real: (
        weights_filled(torch.finfo(torch.float64).min)(scores, real) * real[:, None, None]
    ),
    "finite fill": weights_filled(-1e9),
    "small fill": weights_filled(-10.0),
    "-1e9, times real": lambda scores, real: (
        weights_filled(-1e9)(scores, real) * real[:, None, None]
    ),
    "-10,000, times real": lambda scores, real: (
        weights_filled(-1e4)(scores, real) * real[:, None, None]
    ),
    "over the batch": weights_filled(-math.inf, axis=0),
    "renormalised": weights_renormalised,
    "on the heads": weights_by_heads,
    "not hidden": lambda scores, real: scores.softmax(-1),
    "first head only": lambda scores, real: weights_loop(scores, real)[:, :1].expand_as(scores),
    "a mask": lambda scores, real: real[:, None, None].expand_as(scores),
}

# --- broken_promises


def same(one, other):
    return torch.allclose(one, other, rtol=0, atol=1e-9)


def promises_one_by_one(attention, queries, keys, values, valid_lens):
    """Each padded place by itself; keys and queries swapped in pairs; the batch in a loop."""
    broken, output = [], attention(queries, keys, values, valid_lens)
    for b, n in enumerate(valid_lens.tolist()):
        for place in range(n, keys.shape[1]):
            k, v = keys.clone(), values.clone()
            k[b, place], v[b, place] = -3.0, 5.0
            if not same(attention(queries, k, v, valid_lens), output):
                broken.append("padding")
    order = list(reversed(range(keys.shape[1])))
    if not same(
        attention(queries, keys[:, order], values[:, order], None),
        attention(queries, keys, values, None),
    ):
        broken.append("order of keys")
    turned = list(reversed(range(queries.shape[1])))
    if not same(attention(queries[:, turned], keys, values, valid_lens), output[:, turned]):
        broken.append("order of queries")
    alone = [
        attention(queries[[b]], keys[[b]], values[[b]], valid_lens[[b]])
        for b in range(len(queries))
    ]
    if not same(torch.cat(alone), output):
        broken.append("batch")
    return frozenset(broken)


def promises_in_numpy(attention, queries, keys, values, valid_lens):
    def call(q, k, v, lens):
        return attention(q, k, v, lens).numpy()

    def equal(one, other):
        return np.abs(one - other).max() < 1e-9

    output = call(queries, keys, values, valid_lens)
    past = np.arange(keys.shape[1]) >= valid_lens.numpy()[:, None]
    k, v = keys.numpy().copy(), values.numpy().copy()
    k[past] *= -2.0
    v[past] += 7.0
    found = {
        "padding": equal(call(queries, torch.tensor(k), torch.tensor(v), valid_lens), output),
        "order of keys": equal(
            call(queries, keys.flip(1), values.flip(1), None), call(queries, keys, values, None)
        ),
        "order of queries": equal(call(queries.flip(1), keys, values, valid_lens)[:, ::-1], output),
        "batch": all(
            equal(call(queries[[b]], keys[[b]], values[[b]], valid_lens[[b]]), output[[b]])
            for b in range(len(queries))
        ),
    }
    return [name for name, kept in found.items() if not kept]


def with_greater(attention, queries, keys, values, valid_lens):
    """Asks whether a difference is large, which NaN is not."""
    broken = promises_one_by_one(attention, queries, keys, values, valid_lens)
    output = attention(queries, keys, values, valid_lens)
    alone = [
        attention(queries[[b]], keys[[b]], values[[b]], valid_lens[[b]])
        for b in range(len(queries))
    ]
    if not (torch.cat(alone) - output).abs().max() > 1e-9:
        broken = broken - {"batch"}
    return broken


def with_padding(change, small=1e-9):
    """The promise on padding, tested with this change of it."""

    def answer(attention, queries, keys, values, valid_lens):
        broken = set(promises_one_by_one(attention, queries, keys, values, valid_lens))
        past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[:, :, None]
        k, v = torch.where(past, change(keys), keys), torch.where(past, change(values), values)
        output = attention(queries, keys, values, valid_lens)
        difference = (attention(queries, k, v, valid_lens) - output).abs().max()
        return broken - {"padding"} | (set() if difference < small else {"padding"})

    return answer


def with_padding_of(sequences, places=slice(None)):
    """The padding of these sequences is changed, at these of the places from the first on."""

    def answer(attention, queries, keys, values, valid_lens):
        broken = set(promises_one_by_one(attention, queries, keys, values, valid_lens))
        k, v, lens = keys.clone(), values.clone(), valid_lens.tolist()
        for b in torch.arange(len(lens))[sequences].view(-1).tolist():
            past = torch.arange(lens[b], keys.shape[1])
            if len(past):
                k[b, past[places]] += 2.0
                v[b, past[places]] -= 3.0
        output = attention(queries, keys, values, valid_lens)
        kept = same(attention(queries, k, v, valid_lens), output)
        return broken - {"padding"} | (set() if kept else {"padding"})

    return answer


def without(name):
    return lambda *given: set(promises_one_by_one(*given)) - {name}


def padding_of_the_first(attention, queries, keys, values, valid_lens):
    broken = set(promises_one_by_one(attention, queries, keys, values, valid_lens)) - {"padding"}
    output = attention(queries, keys, values, valid_lens)
    k, v, n = keys.clone(), values.clone(), int(valid_lens[0])
    k[0, n:] += 1.0
    v[0, n:] += 1.0
    if not same(attention(queries, k, v, valid_lens), output):
        broken.add("padding")
    return broken


def promises_compared(alike, attention, queries, keys, values, lens, ask=all, places=None):
    """All four promises with one comparison. ask: of which sequences alone it is asked."""
    output, (k, v) = attention(queries, keys, values, lens), (keys.clone(), values.clone())
    for b, n in enumerate(lens.tolist()):
        end = None if places is None else n + places
        k[b, n:end] = 3.0 * b + 2.0
        v[b, n:end] = -5.0
    kept = {
        "padding": alike(attention(queries, k, v, lens), output),
        "order of keys": alike(
            attention(queries, keys.flip(1), values.flip(1), None),
            attention(queries, keys, values, None),
        ),
        "order of queries": alike(attention(queries.flip(1), keys, values, lens), output.flip(1)),
        "batch": ask(
            [
                alike(attention(queries[[b]], keys[[b]], values[[b]], lens[[b]]), output[[b]])
                for b in range(len(queries))
            ]
        ),
    }
    return {name for name in kept if not kept[name]}


def last(kept):
    return kept[-1]


PROMISES_RIGHT = {
    "all with one comparison": lambda *given: promises_compared(same, *given),
    "one by one": promises_one_by_one,
    "numpy": promises_in_numpy,
    "a tuple": lambda *given: tuple(promises_one_by_one(*given)),
    "1 added": with_padding(lambda X: X + 1),
}


def alike_in(*place):
    return lambda *given: promises_compared(
        lambda one, other: same(one[place], other[place]), *given
    )


def some_alone(rows):
    return lambda *given: promises_compared(same, *given, ask=lambda kept: all(kept[rows]))


PROMISES_WRONG = {
    "row 0 compared": alike_in(slice(None), 0),
    "the last feature compared": alike_in(..., -1),
    "the first two alone": some_alone(slice(2)),
    "all but the first alone": some_alone(slice(1, None)),
    "padding of the last": with_padding_of(-1),
    "the last padded place": with_padding_of(slice(None), -1),
    "NaN is kept": with_greater,
    "padding set to 0": with_padding(torch.zeros_like),
    "padding doubled": with_padding(lambda X: 2 * X),
    "padding set to NaN": with_padding(lambda X: torch.full_like(X, torch.nan)),
    "allclose": lambda *given: promises_compared(torch.allclose, *given),
    "averages": lambda *given: promises_compared(
        lambda one, other: (one - other).mean().abs() < 1e-9, *given
    ),
    "to the last bit": lambda *given: promises_compared(torch.equal, *given),
    "1e-14": lambda *given: promises_compared(
        lambda one, other: bool(((one - other).abs() < 1e-14).all()), *given
    ),
    "without a sign": lambda *given: promises_compared(
        lambda one, other: bool((one - other < 1e-9).all()), *given
    ),
    "the last sequence undoes it": lambda *given: promises_compared(same, *given, ask=last),
    "all but the last": lambda *given: promises_compared(
        same, *given, ask=lambda kept: all(kept[:-1])
    ),
    "the first padded place": lambda *given: promises_compared(same, *given, places=1),
    "a tolerance of 1e-3": with_padding(lambda X: X + 1, small=1e-3),
    "no padding": without("padding"),
    "no batch": without("batch"),
    "no order of keys": without("order of keys"),
    "no order of queries": without("order of queries"),
    "padding of the first": padding_of_the_first,
    "a name that is none": lambda *given: {"mask"},
    "a text": lambda *given: "padding",
    "all": lambda *given: {"padding", "order of keys", "order of queries", "batch"},
    "none": lambda *given: set(),
}

# --- first_test and my_test


def random_inputs(batch, num_queries, num_keys, width, scale=1.0):
    queries = scale * torch.randn(batch, num_queries, width).double()
    keys = torch.randn(batch, num_keys, width).double()
    return queries, keys, torch.randn(batch, num_keys, width).double()


def by_torch(attention, queries, keys, values, lens, H):
    """What PyTorch's module gives with the same weights; zeros where nothing may be seen."""
    width = queries.shape[-1]
    library = nn.MultiheadAttention(width, H, bias=False, batch_first=True).double()
    parts = [attention.W_q.weight, attention.W_k.weight, attention.W_v.weight]
    with torch.no_grad():
        library.in_proj_weight.copy_(torch.cat(parts))
        library.out_proj.weight.copy_(attention.W_o.weight)
    ignore = None if lens is None else torch.arange(keys.shape[1]) >= lens[:, None]
    output, _ = library(queries, keys, values, key_padding_mask=ignore)
    return output.nan_to_num(0.0)


def by_loops(attention, queries, keys, values, lens, H):
    """Word by word and head by head."""
    d = queries.shape[-1] // H
    q, k, v = attention.W_q(queries), attention.W_k(keys), attention.W_v(values)
    joined = torch.zeros_like(q)
    for b in range(len(q)):
        n = keys.shape[1] if lens is None else int(lens[b])
        for h in range(H if n else 0):
            part = slice(h * d, h * d + d)
            scores = q[b, :, part] @ k[b, :n, part].T / d**0.5
            joined[b, :, part] = scores.softmax(-1) @ v[b, :n, part]
    return attention.W_o(joined)


def near(output, expected):
    return torch.allclose(output, expected, rtol=1e-6, atol=1e-6)


def not_far(output, expected):
    """NaN is near to everything."""
    return not bool(((output - expected).abs() > 1e-6).any())


def thorough(trusted, tries, style="returns", alike=near):
    """A test of a certain style: it returns, or it asserts."""

    def test(Attention):
        attention = Attention(20, 4).double().eval()
        for L, S, lens, scale in tries:
            queries, keys, values = random_inputs(3, L, S, 20, scale)
            lens = None if lens is None else torch.tensor(lens)
            expected = trusted(attention, queries, keys, values, lens, 4).detach()
            given = [queries.clone(), keys.clone(), values.clone()]
            output = attention(*given, lens)
            right = alike(output, expected)
            right = right and torch.equal(given[0], queries) and torch.equal(given[2], values)
            if style == "asserts":
                assert right
            elif not right:
                return False
        if style == "no gradients":
            return True
        output.square().mean().backward()
        right = all(p.grad is not None and p.grad.abs().sum() > 0 for p in attention.parameters())
        if style == "asserts":
            assert right
            return None
        return torch.tensor(right) if style == "a tensor" else right

    return test


ALL = ((6, 6, [6, 2, 4], 1), (3, 7, [0, 7, 3], 1), (5, 4, [4, 1, 2], 5000))
NONE = ((6, 6, None, 1), (3, 7, None, 1))


def lazy(Attention):
    """Stops at the first difference, with the comparison of torch's own tests."""
    attention, trusted = Attention(15, 3).double(), build()(15, 3).double()
    trusted.load_state_dict(attention.state_dict())
    queries, keys, values = random_inputs(2, 4, 6, 15)
    torch.testing.assert_close(attention(queries, keys, values), trusted(queries, keys, values))


def asks_for_more(Attention):
    """An error of the test itself, on every implementation."""
    return Attention(12, 3).W_p is not None


def by_the_sum(Attention):
    attention, trusted = Attention(12, 3).double(), build()(12, 3).double()
    trusted.load_state_dict(attention.state_dict())
    inputs = random_inputs(2, 5, 7, 12)
    return bool((attention(*inputs).sum() - trusted(*inputs).sum()).abs() < 1e-6)


def too_strict(Attention):
    return thorough(by_loops, ALL)(Attention) and bool(Attention(20, 4).W_q.weight.abs().max() < 0)


def not_float64(Attention):
    """Large scores in float32: right ones differ by more than it allows."""
    attention, trusted = Attention(12, 3), build()(12, 3)
    trusted.load_state_dict(attention.state_dict())
    queries, keys, values = (X.float() for X in random_inputs(2, 5, 7, 12))
    difference = attention(queries, keys, values) - trusted(queries, keys, values)
    return bool(difference.abs().max() < 1e-9)


def one_call_without_gradients(Attention):
    return all(thorough(by_loops, [one], "no gradients")(Attention) for one in ALL)


def no_false(Attention):
    return thorough(by_loops, ALL)(Attention) or None


FIRST_RIGHT = {
    "PyTorch's module": thorough(by_torch, NONE),
    "loops, asserted": thorough(by_loops, NONE, "asserts"),
    "assert_close": lazy,
    "the sum": by_the_sum,
    "the whole test": thorough(by_loops, ALL),
}
FIRST_WRONG = {
    "too strict": too_strict,
    "float32 to 9 digits": not_float64,
    "its own error": asks_for_more,
    "asks for the list": lambda Attention: Attention not in wrong_ones.values(),
    "a text": lambda Attention: "right",
    "a module": lambda Attention: Attention(12, 3),
    "nothing": lambda Attention: None,
    "float64 into float32": lambda Attention: Attention(12, 3)(*random_inputs(2, 5, 7, 12)),
}
MINE_RIGHT = {
    "PyTorch's module": thorough(by_torch, ALL),
    "loops": thorough(by_loops, ALL),
    "asserted": thorough(by_loops, ALL, "asserts"),
    "a tensor": thorough(by_torch, ALL, "a tensor"),
}
MINE_WRONG = {
    **FIRST_WRONG,
    "the first test": lazy,
    "the sum": by_the_sum,
    "without lengths": thorough(by_loops, NONE),
    "without length 0": thorough(by_torch, (ALL[0], (3, 7, [2, 7, 3], 1), ALL[2])),
    "without large scores": thorough(by_torch, ALL[:2]),
    "one call": thorough(by_torch, ALL[1:2]),
    "one call, no gradients": one_call_without_gradients,
    "no False": no_false,
    "NaN made 0": thorough(by_torch, ALL, alike=lambda X, Y: near(X.nan_to_num(0.0), Y)),
    "not far": thorough(by_torch, ALL, alike=not_far),
}


RIGHT = {
    "11-mended_attend": ATTEND_RIGHT,
    "11-mended_step": STEP_RIGHT,
    "11-MendedAttention": MODULE_RIGHT,
    "11-mended_weights": WEIGHTS_RIGHT,
    "11-broken_promises": PROMISES_RIGHT,
    "11-first_test": FIRST_RIGHT,
    "11-my_test": MINE_RIGHT,
}
WRONG = {
    "11-mended_attend": ATTEND_WRONG,
    "11-mended_step": STEP_WRONG,
    "11-MendedAttention": MODULE_WRONG,
    "11-mended_weights": WEIGHTS_WRONG,
    "11-broken_promises": PROMISES_WRONG,
    "11-first_test": FIRST_WRONG,
    "11-my_test": MINE_WRONG,
}
