"""Answers to the tasks of lesson 06."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import masked_softmax
from mha_course.bert import ACTIVATIONS
from mha_course.multihead import transpose_output, transpose_qkv

LOWEST = torch.finfo(torch.float64).min


def mask(attention_mask, dtype=torch.float64):
    lowest = torch.finfo(dtype).min
    return torch.zeros(attention_mask.shape, dtype=dtype).masked_fill(attention_mask == 0, lowest)[
        :, None, None
    ]


def mask_by_product(attention_mask, dtype=torch.float64):
    wide = attention_mask.view(len(attention_mask), 1, 1, -1).to(dtype)
    return (1.0 - wide) * torch.finfo(dtype).min


def mask_by_where(attention_mask, dtype=torch.float64):
    low, zero = torch.tensor([torch.finfo(dtype).min, 0.0], dtype=dtype)
    return torch.where(attention_mask.bool(), zero, low).unsqueeze(1).unsqueeze(2)


def mask_by_logarithm(attention_mask, dtype=torch.float64):
    return attention_mask.to(dtype).log().nan_to_num(neginf=torch.finfo(dtype).min)[:, None, None]


def mask_by_table(attention_mask, dtype=torch.float64):
    table = torch.tensor([torch.finfo(dtype).min, 0.0], dtype=dtype)
    return table[attention_mask][:, None, None, :]


def mask_by_loop(attention_mask, dtype=torch.float64):
    result = torch.zeros(len(attention_mask), 1, 1, attention_mask.shape[1], dtype=dtype)
    for b, row in enumerate(attention_mask.tolist()):
        for s, word in enumerate(row):
            if not word:
                result[b, 0, 0, s] = torch.finfo(dtype).min
    return result


def mask_of_negated_max(attention_mask, dtype=torch.float64):
    """As a module's buffer would be made: broadcast, not contiguous."""
    lowest = torch.full((attention_mask.shape[1], 1, 1, 1), -torch.finfo(dtype).max, dtype=dtype)
    return (lowest * (attention_mask.T[:, None, None] != 1)).permute(3, 1, 2, 0)


class Attention(nn.Module):
    """A right answer whose parts can be replaced by wrong ones."""

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.config, self.H, self.d = config, config.num_attention_heads, 0
        self.d = width // self.H
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def heads(self, X):
        return X.unflatten(-1, (self.H, self.d)).transpose(1, 2)

    def score(self, q, k):
        return q @ k.mT / math.sqrt(self.d)

    def masked(self, scores, mask):
        return scores if mask is None else scores + mask

    def join(self, output):
        return output.transpose(1, 2).flatten(2)

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.join(self.dropout(weights) @ v)
        return (output, weights) if need_weights else output


class LoopOfHeads(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = self.W_q(X), self.W_k(X), self.W_v(X)
        outputs, weights = [], []
        for h in range(self.H):
            own = slice(h * self.d, (h + 1) * self.d)
            scores = torch.bmm(q[..., own], k[..., own].transpose(1, 2)) / self.d**0.5
            if mask is not None:
                scores = scores + mask[:, 0]
            weights.append(scores.softmax(-1))
            outputs.append(torch.bmm(self.dropout(weights[-1]), v[..., own]))
        output = torch.cat(outputs, -1)
        return (output, torch.stack(weights, 1)) if need_weights else output


class Einsum(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (
            torch.einsum("bld,hed->bhle", X, W.weight.view(self.H, self.d, -1))
            + W.bias.view(1, self.H, 1, self.d)
            for W in (self.W_q, self.W_k, self.W_v)
        )
        scores = torch.einsum("bhie,bhje->bhij", q, k) * self.d**-0.5
        weights = torch.softmax(scores if mask is None else mask + scores, -1)
        output = torch.einsum("bhij,bhje->bihe", self.dropout(weights), v).reshape(X.shape)
        return (output, weights) if need_weights else output


class FusedUnlessAsked(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        p = self.dropout.p if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p)
        output = output.transpose(1, 2).reshape(X.shape)
        return (output, self.masked(self.score(q, k), mask).softmax(-1)) if need_weights else output


class FromLessonFour(Attention):
    """With transpose_qkv the mask needs a row for each head."""

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (transpose_qkv(W(X), self.H) for W in (self.W_q, self.W_k, self.W_v))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.d)
        if mask is not None:
            scores = scores + mask.squeeze(1).repeat_interleave(self.H, dim=0)
        weights = masked_softmax(scores)
        output = transpose_output(self.dropout(weights) @ v, self.H)
        if need_weights:
            return output, weights.reshape(-1, self.H, *weights.shape[1:])
        return output


class ScaledQueries(Attention):
    """Functional dropout, scale in the queries, exp by hand."""

    def forward(self, X, mask=0.0, need_weights=False):
        scores = self.heads(self.W_q(X) * self.d**-0.5) @ self.heads(self.W_k(X)).mT
        scores = scores + (0.0 if mask is None else mask)
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        p = self.config.attention_probs_dropout_prob
        dropped = F.dropout(weights, p, training=self.training)
        output = self.join(dropped @ self.heads(self.W_v(X)))
        return [output, weights] if need_weights else output


def attention(base=Attention, **parts):
    return type("BertSelfAttention", (base,), parts)


class NoHeads(Attention):
    def heads(self, X):
        return X[:, None]

    def join(self, output):
        return output[:, 0]


class ManySmallLinears(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.hidden_size // config.num_attention_heads
        self.W_q = nn.ModuleList(
            nn.Linear(config.hidden_size, d) for _ in range(config.num_attention_heads)
        )

    def forward(self, X, mask=None, need_weights=False):
        return torch.cat([W(X) for W in self.W_q], -1)


class LastWordsOnly(Attention):
    def masked(self, scores, mask):
        return super().masked(scores, mask).tril()


class MaskByHead(Attention):
    def masked(self, scores, mask):
        return scores if mask is None else scores + mask.transpose(0, 1)


class NoBiasUsed(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(X @ W.weight.T) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.join(self.dropout(weights) @ v)
        return (output, weights) if need_weights else output


class OneDropoutForAll(Attention):
    """Whole queries are dropped instead of single weights."""

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.join(weights * self.dropout(torch.ones_like(weights[..., :1])) @ v)
        return (output, weights) if need_weights else output


class DropoutUnscaled(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        used = weights
        if self.training:
            used = weights * (torch.rand_like(weights) >= self.dropout.p)
        output = self.join(used @ v)
        return (output, weights) if need_weights else output


class RowsSumTo1(Attention):
    """Once more, after dropout."""

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.join(nn.functional.normalize(self.dropout(weights), p=1, dim=-1) @ v)
        return (output, weights) if need_weights else output


class HeadsDropped(Attention):
    """What the heads found is dropped instead of weights."""

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.dropout(self.join(weights @ v))
        return (output, weights) if need_weights else output


class DetachedWeights(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1).detach()
        output = self.join(self.dropout(weights) @ v)
        return (output, weights) if need_weights else output


class NoGradientsWithWeights(Attention):
    def forward(self, X, mask=None, need_weights=False):
        with torch.set_grad_enabled(not need_weights):
            return super().forward(X, mask, need_weights)


class OneDropoutForAllQueries(Attention):
    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (self.heads(W(X)) for W in (self.W_q, self.W_k, self.W_v))
        weights = self.masked(self.score(q, k), mask).softmax(-1)
        output = self.join((weights * self.dropout(torch.ones_like(weights[:, :, :1]))) @ v)
        return (output, weights) if need_weights else output


class EvalInside(Attention):
    def forward(self, X, mask=None, need_weights=False):
        self.eval()
        return super().forward(X, mask, need_weights)


class Output(nn.Module):
    """A right answer whose forward can be replaced by wrong ones."""

    def __init__(self, config):
        super().__init__()
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, X, residual):
        return self.norm(residual + self.dropout(self.W_o(X)))


class NormByHand(Output):
    def forward(self, X, residual):
        Y = self.dropout(self.W_o(X)).add(residual)
        Y = Y - Y.mean(-1, keepdim=True)
        Y = Y * torch.rsqrt(Y.square().mean(-1, keepdim=True) + self.norm.eps)
        return self.norm.weight * Y + self.norm.bias


class Functional(Output):
    def forward(self, X, residual):
        Y = X @ self.W_o.weight.T + self.W_o.bias
        Y = F.dropout(Y, self.dropout.p, self.training) + residual
        return F.layer_norm(Y, Y.shape[-1:], self.norm.weight, self.norm.bias, self.norm.eps)


class WordByWord(Output):
    def forward(self, X, residual):
        pairs = zip(X.unbind(1), residual.unbind(1), strict=True)
        return torch.stack([super(WordByWord, self).forward(x, r) for x, r in pairs], 1)


class InPlace(Output):
    def forward(self, X, residual):
        Y = self.dropout(self.W_o(X))
        Y += residual
        return self.norm(Y)


def output(forward, base=Output):
    return type("BertSelfOutput", (base,), {"forward": forward})


def norm_by_difference(norm, Y):
    mean, squares = Y.mean(-1, keepdim=True), (Y * Y).mean(-1, keepdim=True)
    return (Y - mean) * (squares - mean * mean + norm.eps).rsqrt() * norm.weight + norm.bias


def output_made(make):
    """Output, with what __init__ makes changed."""

    class BertSelfOutput(Output):
        def __init__(self, config):
            super().__init__(config)
            make(self, config)

    return BertSelfOutput


def _names(self, config):
    self.dense, self.LayerNorm = self.W_o, self.norm
    del self.W_o, self.norm


class FeedForward(nn.Module):
    """A right answer whose steps can be replaced by wrong ones."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.W_1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.W_2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.activation = ACTIVATIONS[config.hidden_act]

    def narrow(self, X):
        return self.W_2(self.activation(self.W_1(X)))

    def forward(self, X):
        return self.norm(X + self.dropout(self.narrow(X)))


class ActivationsByHand(FeedForward):
    """Each activation from its formula, the norm too."""

    def bend(self, X):
        if self.config.hidden_act == "relu":
            return X.clamp(min=0)
        if self.config.hidden_act == "silu":
            return X / (1 + (-X).exp())
        if self.config.hidden_act == "gelu_new":
            inner = math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)
            return 0.5 * X * (1 + inner.tanh())
        return X * 0.5 * (1 + torch.erf(X / math.sqrt(2)))

    def forward(self, X):
        Y = self.dropout(self.W_2(self.bend(self.W_1(X)))) + X
        variance, mean = torch.var_mean(Y, -1, correction=0, keepdim=True)
        return (Y - mean) / (variance + self.norm.eps).sqrt() * self.norm.weight + self.norm.bias


class InnerFeaturesOneByOne(FeedForward):
    """W_2 of the activation as a sum over inner features."""

    def narrow(self, X):
        bent = self.activation(X @ self.W_1.weight.T + self.W_1.bias)
        rows = zip(bent.unbind(-1), self.W_2.weight.unbind(1), strict=True)
        return sum(x[..., None] * row for x, row in rows) + self.W_2.bias


class InSequence(FeedForward):
    """The same tensors, kept once more in an nn.Sequential that is not registered."""

    def forward(self, X):
        steps = nn.Sequential(self.W_1, _Bend(self.activation), self.W_2, self.dropout)
        steps.train(self.training)
        return self.norm(steps(X) + X)


class _Bend(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, X):
        return self.function(X)


def feed_forward(forward=None, make=None, **parts):
    """FeedForward with another forward, or with what __init__ makes changed."""
    if forward:
        parts["forward"] = forward

    class BertFeedForward(FeedForward):
        def __init__(self, config):
            super().__init__(config)
            if make:
                make(self, config)

    for name, value in parts.items():
        setattr(BertFeedForward, name, value)
    return BertFeedForward


class Layer(nn.Module):
    """A right answer whose flow can be replaced by wrong ones."""

    attention_class, output_class = Attention, Output

    def __init__(self, config):
        super().__init__()
        self.self_attention = self.attention_class(config)
        self.self_output = self.output_class(config)
        self.feed_forward = FeedForward(config)

    def flow(self, attended, X):
        return self.feed_forward(self.self_output(attended, X))

    def forward(self, X, mask=None, need_weights=False):
        attended, weights = self.self_attention(X, mask, True)
        Y = self.flow(attended, X)
        return (Y, weights) if need_weights else Y


class TwoBranches(Layer):
    def forward(self, X, mask=None, need_weights=False):
        if not need_weights:
            return self.flow(self.self_attention(X, mask), X)
        attended, weights = self.self_attention(X, mask=mask, need_weights=True)
        return self.flow(attended, X), weights


class PassedOn(Layer):
    def forward(self, X, mask=None, need_weights=False):
        found = self.self_attention(X, mask, need_weights)
        attended = found[0] if need_weights else found
        Y = self.feed_forward(self.self_output(attended, residual=X))
        return [Y, found[1]] if need_weights else Y


class Unrolled(Layer):
    """The feed-forward part written out with its parameters."""

    def flow(self, attended, X):
        joined, part = self.self_output(attended, X), self.feed_forward
        wide = part.activation(part.W_1(joined))
        return part.norm(part.dropout(part.W_2(wide)) + joined)


def _second_dropout(self, joined):
    part = self.feed_forward
    return part.norm(part.dropout(part.dropout(part.narrow(joined))) + joined)


def layer(flow=Layer.flow, base=Layer, **parts):
    return type("BertLayer", (base,), {"flow": flow, **parts})


class Named(Layer):
    def __init__(self, config):
        super().__init__(config)
        self.attention, self.output = self.self_attention, self.self_output
        del self.self_attention, self.self_output


class OneOutput(Layer):
    def __init__(self, config):
        super().__init__(config)
        self.output = Output(config)


class NoMask(Layer):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, None, need_weights)


class MaskDoubled(Layer):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, None if mask is None else 2 * mask, need_weights)


class MaskClamped(Layer):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, None if mask is None else mask.clamp(min=-100), need_weights)


class TupleFedOn(Layer):
    def forward(self, X, mask=None, need_weights=False):
        attended = self.self_attention(X, mask, need_weights)
        return self.feed_forward(self.self_output(attended, X))


class WeightsForgotten(Layer):
    def forward(self, X, mask=None, need_weights=False):
        return self.flow(self.self_attention(X, mask), X), None


class ChangesX(Layer):
    def flow(self, attended, X):
        X += 0.01
        return super().flow(attended, X)


class PreNorm(Layer):
    """A right answer whose steps can be replaced by wrong ones."""

    def attend(self, X, mask):
        part = self.self_output
        return part.dropout(part.W_o(self.self_attention(part.norm(X), mask)))

    def think(self, X):
        part = self.feed_forward
        return part.dropout(part.narrow(part.norm(X)))

    def forward(self, X, mask=None):
        X = X + self.attend(X, mask)
        return X + self.think(X)


class PreNormWrittenOut(PreNorm):
    """Functions of torch.nn.functional instead of the modules."""

    def forward(self, X, mask=None):
        out, think = self.self_output, self.feed_forward
        p = out.dropout.p
        N = F.layer_norm(X, X.shape[-1:], out.norm.weight, out.norm.bias, out.norm.eps)
        found = self.self_attention(N, mask, True)[0]
        Y = X + F.dropout(F.linear(found, out.W_o.weight, out.W_o.bias), p, self.training)
        N = F.layer_norm(Y, Y.shape[-1:], think.norm.weight, think.norm.bias, think.norm.eps)
        bent = think.activation(F.linear(N, think.W_1.weight, think.W_1.bias))
        narrow = F.linear(bent, think.W_2.weight, think.W_2.bias)
        return F.dropout(narrow, p, self.training) + Y


class PreNormAddedUp(PreNorm):
    """X and the two contributions, added at the end."""

    def forward(self, X, mask=None, need_weights=False):
        first = self.attend(X, mask)
        second = self.think(X + first)
        return torch.stack([X, first, second]).sum(0)


class PreNormAlone(nn.Module):
    """Not made from a layer."""

    def __init__(self, config):
        super().__init__()
        self.self_attention = LoopOfHeads(config)
        self.self_output = NormByHand(config)
        self.feed_forward = ActivationsByHand(config)

    def forward(self, X, mask=None):
        return PreNorm.forward(self, X, mask)

    attend, think = PreNorm.attend, PreNorm.think


def _dropped_together(self, X, mask=None):
    so, ff = self.self_output, self.feed_forward
    found = so.W_o(self.self_attention(so.norm(X), mask))
    return X + so.dropout(found + ff.narrow(ff.norm(X + found)))


def pre_norm(forward=None, **parts):
    if forward:
        parts["forward"] = forward
    return type("PreNormLayer", (PreNorm,), parts)


def folded(weights):
    W, b = weights["W_o.weight"], weights["W_v.bias"]
    zeros = {n: torch.zeros_like(b) for n in ("W_k.bias", "W_v.bias")}
    return weights | zeros | {"W_o.bias": weights["W_o.bias"] + W @ b}


def folded_by_copies(weights):
    copies = {n: X.clone() for n, X in weights.items()}
    copies["W_o.bias"] += torch.einsum("oi,i->o", copies["W_o.weight"], copies["W_v.bias"])
    copies["W_k.bias"].zero_()
    copies["W_v.bias"] *= 0
    return copies


def folded_by_linear(weights):
    result = {}
    for name, X in weights.items():
        if name in ("W_k.bias", "W_v.bias"):
            X = X - X
        if name == "W_o.bias":
            X = F.linear(weights["W_v.bias"][None], weights["W_o.weight"], X)[0]
        result[name] = X
    return result


def folded_by_loop(weights):
    result = dict(weights)
    rows, bias = weights["W_o.weight"].tolist(), weights["W_v.bias"].tolist()
    sums = [sum(w * b for w, b in zip(row, bias, strict=True)) for row in rows]
    result["W_o.bias"] = weights["W_o.bias"] + torch.tensor(sums, dtype=torch.float64)
    result["W_k.bias"] = result["W_v.bias"] = torch.zeros(len(bias), dtype=torch.float64)
    return result


def folding(bias=lambda w: w["W_o.bias"] + w["W_o.weight"] @ w["W_v.bias"], **others):
    """fold_biases with another bias of W_o, or with others that are made of the weights."""

    def fold_biases(weights):
        made = {n.replace("__", "."): make(weights) for n, make in others.items()}
        return folded(weights) | {"W_o.bias": bias(weights)} | made

    return fold_biases


def folded_in_place(weights):
    weights["W_o.bias"] += weights["W_o.weight"] @ weights["W_v.bias"]
    weights["W_k.bias"].zero_()
    weights["W_v.bias"].zero_()
    return weights


def _zeros_for(name):
    return lambda weights: torch.zeros_like(weights[name])


TENSORS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def variables_by_map_weights(variables, turn=lambda X: X.T, ends=TENSORS):
    """Over the names that transformers uses, as the statement's hint says."""
    published = {}
    for name, X in variables.items():
        pieces = name.split("/")
        if pieces[0] != "bert" or pieces[-1].startswith("adam"):
            continue
        if pieces[-1] == "kernel":
            X = turn(X)
        pieces[-1] = ends.get(pieces[-1], f"{pieces[-1]}.weight")
        published[".".join(pieces).replace("layer_", "layer.")] = X
    return names_by_splitting(published)


def variables_by_pattern(variables):
    import re

    mapped = {}
    for name, X in variables.items():
        found = re.fullmatch(
            r"bert/(?:encoder/layer_(\d+)/)?(.+?)(?:/(kernel|gamma|beta|bias))?", name
        )
        if not found or name[-6:-1] == "adam_":
            continue
        number, inner, last = found.groups()
        inner = inner.replace("/", ".")
        before = f"encoder.layers.{number}." if number else ""
        end = "bias" if last in ("beta", "bias") else "weight"
        mapped[f"{before}{TABLE.get(inner, inner)}.{end}"] = X.mT if last == "kernel" else X
    return mapped


def variables_by_lookup(variables):
    """The other way round: every name that a model of the course has is looked up."""
    inside = {k: v for k, v in TABLE.items() if not k.startswith("embeddings")}
    outside = {k: v for k, v in TABLE.items() if k.startswith("embeddings")}
    outside["pooler.dense"] = "pooler.dense"
    pairs = {f"bert/{k.replace('.', '/')}": v for k, v in outside.items()}
    for i in range(1000):
        for k, v in inside.items():
            pairs[f"bert/encoder/layer_{i}/{k.replace('.', '/')}"] = f"encoder.layers.{i}.{v}"
    mapped = {}
    for theirs, ours in pairs.items():
        if theirs in variables:
            mapped[f"{ours}.weight"] = variables[theirs]
        for last, end in TENSORS.items():
            X = variables.get(f"{theirs}/{last}")
            if X is not None:
                mapped[f"{ours}.{end}"] = X.t().contiguous() if last == "kernel" else X.clone()
    return mapped


TABLE = {
    "embeddings.word_embeddings": "embeddings.words",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.segments",
    "embeddings.LayerNorm": "embeddings.norm",
    "attention.self.query": "self_attention.W_q",
    "attention.self.key": "self_attention.W_k",
    "attention.self.value": "self_attention.W_v",
    "attention.output.dense": "self_output.W_o",
    "attention.output.LayerNorm": "self_output.norm",
    "intermediate.dense": "feed_forward.W_1",
    "output.dense": "feed_forward.W_2",
    "output.LayerNorm": "feed_forward.norm",
}


def names_by_splitting(state_dict, table=TABLE, prefix="bert.", layers="encoder.layers"):
    mapped = {}
    for name, X in state_dict.items():
        pieces = name.removeprefix(prefix).split(".")
        if pieces[:2] == ["encoder", "layer"]:
            inner = ".".join(pieces[3:-1])
            new = f"{layers}.{pieces[2]}.{table.get(inner, inner)}.{pieces[-1]}"
        else:
            module = ".".join(pieces[:-1])
            new = f"{table.get(module, module)}.{pieces[-1]}" if module in table else None
            new = new or ".".join(pieces)
        mapped[new] = X
    return mapped


def names_by_pattern(state_dict):
    import re

    longest = sorted(TABLE, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w])(" + "|".join(map(re.escape, longest)) + r")(?=\.\w+$)")
    return {
        pattern.sub(lambda found: TABLE[found[1]], re.sub("^bert[.]", "", name)).replace(
            "encoder.layer.", "encoder.layers."
        ): X
        for name, X in state_dict.items()
    }


def names_by_generation(state_dict):
    """The other way round: every name that the course has is looked up."""
    prefix = "bert." if any(name.startswith("bert.") for name in state_dict) else ""
    rest, mapped = dict(state_dict), {}
    numbers = {n.split("layer.")[1].split(".")[0] for n in state_dict if "encoder.layer." in n}
    pairs = [(k, v) for k, v in TABLE.items() if k.startswith("embeddings")]
    pairs += [("pooler.dense", "pooler.dense")]
    for i in numbers:
        inside = [(k, v) for k, v in TABLE.items() if not k.startswith("embeddings")]
        pairs += [(f"encoder.layer.{i}.{k}", f"encoder.layers.{i}.{v}") for k, v in inside]
    for published, course in pairs:
        for last in ("weight", "bias"):
            if f"{prefix}{published}.{last}" in rest:
                mapped[f"{course}.{last}"] = rest.pop(f"{prefix}{published}.{last}")
    return mapped | rest


def names_by_chain(state_dict, clone=False):
    import collections

    mapped = collections.OrderedDict()
    for name, X in state_dict.items():
        new = name[5:] if name.startswith("bert.") else name
        for published, course in TABLE.items():
            if new.rpartition(".")[0].endswith(published):
                head, last = new.rpartition(".")[::2]
                new = f"{head.removesuffix(published)}{course}.{last}"
                break
        mapped[new.replace("layer.", "layers.", 1)] = X.clone() if clone else X
    return mapped


def chain(*replacements, start=lambda name: name.removeprefix("bert.")):
    """An answer made of replacements in a row."""

    def map_weights(state_dict):
        mapped = {}
        for name, X in state_dict.items():
            name = start(name)
            for old, new in replacements:
                name = name.replace(old, new)
            mapped[name] = X
        return mapped

    return map_weights


def names_in_place(state_dict):
    for name in list(state_dict):
        new = next(iter(names_by_splitting({name: 0})))
        state_dict[new] = state_dict.pop(name)
    return state_dict


ROW = [(f"{old}.", f"{new}.") for old, new in TABLE.items()]


def _hidden_from_the_first_padding_on(attention_mask, dtype=torch.float64):
    mask = torch.zeros(attention_mask.shape, dtype=dtype)
    for row, there in zip(mask, attention_mask.tolist(), strict=True):
        if 0 in there:
            row[there.index(0) :] = torch.finfo(dtype).min
    return mask[:, None, None]


class _DropsItsInput(Attention):
    def __init__(self, config):
        super().__init__(config)
        self.dropout.p, self.p = 0.0, config.attention_probs_dropout_prob

    def forward(self, X, mask=None, need_weights=False):
        return super().forward(nn.functional.dropout(X, self.p, self.training), mask, need_weights)


RIGHT = {
    "06-additive_mask": {
        "masked_fill": mask,
        "product": mask_by_product,
        "where": mask_by_where,
        "logarithm": mask_by_logarithm,
        "table": mask_by_table,
        "loop": mask_by_loop,
        "minus the highest, not contiguous": mask_of_negated_max,
    },
    "06-BertSelfAttention": {
        "plain": Attention,
        "loop of heads": LoopOfHeads,
        "einsum": Einsum,
        "fused unless weights are asked for": FusedUnlessAsked,
        "with the functions of lesson 4": FromLessonFour,
        "scaled queries, own softmax, a list": ScaledQueries,
    },
    "06-BertSelfOutput": {
        "plain": Output,
        "norm by hand": NormByHand,
        "functional": Functional,
        "word by word": WordByWord,
        "sum in place": InPlace,
    },
    "06-BertLayer": {
        "plain": Layer,
        "two branches": TwoBranches,
        "passed on": PassedOn,
        "feed-forward part written out": Unrolled,
        "of other right parts": layer(attention_class=LoopOfHeads, output_class=NormByHand),
    },
    "06-BertFeedForward": {
        "plain": FeedForward,
        "activations and norm by hand": ActivationsByHand,
        "inner features one by one": InnerFeaturesOneByOne,
        "nn.Sequential": InSequence,
    },
    "06-PreNormLayer": {
        "plain": PreNorm,
        "written out": PreNormWrittenOut,
        "added up": PreNormAddedUp,
        "not made from a layer": PreNormAlone,
    },
    "06-fold_biases": {
        "plain": folded,
        "copies": folded_by_copies,
        "by F.linear": folded_by_linear,
        "loop": folded_by_loop,
    },
    "06-from_tensorflow": {
        "by way of the names of transformers": variables_by_map_weights,
        "pattern": variables_by_pattern,
        "the other way round": variables_by_lookup,
        "no adam anywhere": lambda variables: variables_by_map_weights(
            {n: X for n, X in variables.items() if "adam" not in n}
        ),
    },
    "06-map_weights": {
        "splitting": names_by_splitting,
        "pattern": names_by_pattern,
        "the other way round": names_by_generation,
        "ends of names": names_by_chain,
        "copies": lambda state_dict: names_by_chain(state_dict, clone=True),
        "replacements": chain(("encoder.layer.", "encoder.layers."), *ROW),
    },
}

WRONG = {
    "06-additive_mask": {
        "padding between words": lambda M, dtype=torch.float64: mask(
            (M.cumsum(1) > 0) & (M.flip(1).cumsum(1).flip(1) > 0), dtype
        ),
        "-inf": lambda M, dtype=torch.float64: mask(M, dtype).clamp(max=0) * torch.inf,
        "None without padding": lambda M, dtype=torch.float32: None if M.all() else mask(M, dtype),
        "inverted": lambda M, dtype=torch.float64: mask(1 - M, dtype),
        "0 and 1": lambda M, dtype=torch.float64: M[:, None, None].to(dtype),
        "-1e9": lambda M, dtype=torch.float64: (1 - M[:, None, None].to(dtype)) * -1e9,
        "-1e6": lambda M, dtype=torch.float64: mask(M, dtype).clamp(min=-1e6),
        "whole numbers": lambda M, dtype=torch.float64: (M[:, None, None] - 1) * 10000,
        "half of the lowest": lambda M, dtype=torch.float64: mask(M, dtype) / 2,
        "lowest everywhere": lambda M, dtype=torch.float64: mask(0 * M, dtype),
        "always float64": lambda M, dtype=None: mask(M),
        "default float32": lambda M, dtype=torch.float32: mask(M, dtype),
        "(B, 1, S, 1)": lambda M, dtype=torch.float64: mask(M, dtype).mT,
        "(B, 1, S, S)": lambda M, dtype=torch.float64: mask(M, dtype) + mask(M, dtype).mT,
        "(S, 1, 1, B)": lambda M, dtype=torch.float64: mask(M.T, dtype),
        "numpy": lambda M, dtype=torch.float64: mask(M).numpy(),
        "lengths": lambda M, dtype=torch.float64: mask(
            (torch.arange(M.shape[1]) < M.sum(1, keepdim=True)).long(), dtype
        ),
        "changes attention_mask": lambda M, dtype=torch.float64: mask(
            1 - M.mul_(-1).add_(1), dtype
        ),
        "hidden from the first padding on": _hidden_from_the_first_padding_on,
    },
    "06-BertSelfAttention": {
        "no gradients with weights": NoGradientsWithWeights,
        "one dropout for all keys": OneDropoutForAllQueries,
        "no lower than -1e9": attention(
            masked=lambda self, s, mask: s if mask is None else s + mask.clamp(min=-1e9)
        ),
        "rows that sum to 1 after dropout": RowsSumTo1,
        "no heads": NoHeads,
        "many small linears": ManySmallLinears,
        "causal as well": LastWordsOnly,
        "mask beside the heads": MaskByHead,
        "biases not used": NoBiasUsed,
        "whole queries dropped": OneDropoutForAll,
        "dropout unscaled": DropoutUnscaled,
        "detached": DetachedWeights,
        "eval inside": EvalInside,
        "not scaled": attention(score=lambda self, q, k: q @ k.mT),
        "scaled after adding": attention(score=lambda self, q, k: q @ k.mT / self.d),
        "mask clamped": attention(
            masked=lambda self, scores, mask: (
                scores if mask is None else scores + mask.clamp(min=-10)
            )
        ),
        "mask squared": attention(
            masked=lambda self, scores, mask: scores if mask is None else scores - mask**2
        ),
        "mask by minimum": attention(
            masked=lambda self, scores, mask: scores if mask is None else scores.minimum(mask)
        ),
        "heads reversed": attention(
            join=lambda self, output: output.flip(1).transpose(1, 2).flatten(2)
        ),
        "heads averaged": attention(
            join=lambda self, output: output.mean(1).repeat(1, 1, self.H),
        ),
        "interleaved": attention(
            heads=lambda self, X: X.unflatten(-1, (self.d, self.H)).permute(0, 3, 1, 2),
        ),
        "a function": lambda config: Attention(config),
        "no module": type("BertSelfAttention", (), {"__init__": lambda self, config: None}),
        "X dropped": _DropsItsInput,
        "scores no lower than -1e4": attention(
            masked=lambda self, scores, mask: (
                scores if mask is None else (scores + mask).clamp(min=-1e4)
            )
        ),
    },
    "06-BertSelfOutput": {
        "no residual": output(lambda self, X, residual: self.norm(self.dropout(self.W_o(X)))),
        "residual after norm": output(
            lambda self, X, residual: self.norm(self.dropout(self.W_o(X))) + residual
        ),
        "half the sum": output(
            lambda self, X, residual: self.norm((self.dropout(self.W_o(X)) + residual) / 2)
        ),
        "residual twice": output(
            lambda self, X, residual: self.norm(self.dropout(self.W_o(X)) + 2 * residual)
        ),
        "X as well": output(
            lambda self, X, residual: self.norm(self.dropout(self.W_o(X)) + residual + X)
        ),
        "softmax for norm": output(
            lambda self, X, residual: (self.dropout(self.W_o(X)) + residual).softmax(-1)
        ),
        "own norm without weight": output(
            lambda self, X, residual: F.layer_norm(
                self.dropout(self.W_o(X)) + residual, X.shape[-1:], eps=self.norm.eps
            )
        ),
        "norm over all but the batch": output(
            lambda self, X, residual: (
                F.layer_norm(self.dropout(self.W_o(X)) + residual, X.shape[1:], eps=self.norm.eps)
                * self.norm.weight
                + self.norm.bias
            )
        ),
        "variance by difference": output(
            lambda self, X, residual: norm_by_difference(
                self.norm, self.dropout(self.W_o(X)) + residual
            )
        ),
        "transposed": output(
            lambda self, X, residual: self.norm(self.dropout(X @ self.W_o.weight) + residual)
        ),
        "no_grad": output(torch.no_grad()(Output.forward)),
        "names of the published code": output_made(_names),
        "eps of PyTorch": output_made(
            lambda self, config: setattr(self, "norm", nn.LayerNorm(config.hidden_size))
        ),
        "another linear": output_made(
            lambda self, config: setattr(self, "W_1", nn.Linear(config.hidden_size, 2))
        ),
        "dropout of 0.1": output_made(
            lambda self, config: setattr(self, "dropout", nn.Dropout(0.1))
        ),
        "dropout twice": output(
            lambda self, X, residual: self.norm(self.dropout(self.dropout(self.W_o(X))) + residual)
        ),
        "dropped before W_o and after": output(
            lambda self, X, residual: self.norm(self.dropout(self.W_o(self.dropout(X))) + residual)
        ),
        "whole words dropped": output(
            lambda self, X, residual: self.norm(
                self.W_o(X) * self.dropout(torch.ones_like(X[..., :1])) + residual
            )
        ),
        "two values": output(
            lambda self, X, residual: (self.norm(self.dropout(self.W_o(X)) + residual), X)
        ),
    },
    "06-BertLayer": {
        "no lower than -100": MaskClamped,
        "mask doubled": MaskDoubled,
        "heads dropped for weights": layer(attention_class=HeadsDropped),
        "other names": Named,
        "one part too many": OneOutput,
        "without mask": NoMask,
        "tuple fed on": TupleFedOn,
        "weights forgotten": WeightsForgotten,
        "changes X": ChangesX,
        "no output": layer(lambda self, attended, X: self.feed_forward(attended + X)),
        "no feed-forward": layer(lambda self, attended, X: self.self_output(attended, X)),
        "parts swapped": layer(
            lambda self, attended, X: self.self_output(self.feed_forward(attended), X)
        ),
        "residual of the wrong part": layer(
            lambda self, attended, X: self.feed_forward(self.self_output(attended, attended))
        ),
        "average with X": layer(lambda self, attended, X: (Layer.flow(self, attended, X) + X) / 2),
        "normalised once more": layer(
            lambda self, attended, X: self.feed_forward.norm(Layer.flow(self, attended, X))
        ),
        "a relu in between": layer(
            lambda self, attended, X: self.feed_forward(self.self_output(attended, X).relu())
        ),
        "heads dropped": layer(
            lambda self, attended, X: Layer.flow(self, self.self_output.dropout(attended), X)
        ),
        "W_o's result dropped twice": layer(
            lambda self, attended, X: self.feed_forward(
                self.self_output.norm(
                    self.self_output.dropout(
                        self.self_output.dropout(self.self_output.W_o(attended))
                    )
                    + X
                )
            )
        ),
        "W_2's result dropped twice": layer(
            lambda self, attended, X: _second_dropout(self, self.self_output(attended, X))
        ),
        "wrong attention": layer(attention_class=LastWordsOnly),
        "wrong output": layer(
            output_class=output(lambda self, X, residual: self.norm(self.dropout(self.W_o(X))))
        ),
    },
    "06-BertFeedForward": {
        "no residual": feed_forward(lambda self, X: self.norm(self.dropout(self.narrow(X)))),
        "residual of the inner width": feed_forward(
            lambda self, X: self.norm(self.W_2(self.activation(self.W_1(X)) + self.W_1(X)) + X)
        ),
        "variance by difference": feed_forward(
            lambda self, X: norm_by_difference(self.norm, self.dropout(self.narrow(X)) + X)
        ),
        "half the sum": feed_forward(
            lambda self, X: self.norm((self.dropout(self.narrow(X)) + X) / 2)
        ),
        "residual twice": feed_forward(
            lambda self, X: self.norm(self.dropout(self.narrow(X)) + 2 * X)
        ),
        "sigmoid": feed_forward(narrow=lambda self, X: self.W_2(self.W_1(X).sigmoid())),
        "quick gelu": feed_forward(
            narrow=lambda self, X: self.W_2(self.W_1(X) * (1.702 * self.W_1(X)).sigmoid())
        ),
        "words mixed": feed_forward(
            lambda self, X: self.norm(X + self.dropout(self.narrow(X.mean(1, keepdim=True))))
        ),
        "norm inside as well": feed_forward(
            lambda self, X: self.norm(X + self.dropout(self.narrow(self.norm(X))))
        ),
        "dropout twice": feed_forward(
            lambda self, X: self.norm(X + self.dropout(self.dropout(self.narrow(X))))
        ),
        "X dropped too": feed_forward(
            lambda self, X: self.norm(X + self.dropout(self.narrow(self.dropout(X))))
        ),
        "inner numbers dropped too": feed_forward(
            narrow=lambda self, X: self.W_2(self.dropout(self.activation(self.W_1(X))))
        ),
        "whole words dropped": feed_forward(
            lambda self, X: self.norm(
                X + self.narrow(X) * self.dropout(torch.ones_like(X[..., :1]))
            )
        ),
        "a third matrix": feed_forward(
            make=lambda self, config: setattr(self, "W_3", nn.Linear(2, 2))
        ),
        "dropout of 0.1": feed_forward(
            make=lambda self, config: setattr(self, "dropout", nn.Dropout(0.1))
        ),
        "no_grad": feed_forward(torch.no_grad()(FeedForward.forward)),
        "eval inside": feed_forward(lambda self, X: FeedForward.forward(self.eval(), X)),
        "changes X": feed_forward(lambda self, X: self.norm(X.add_(self.narrow(X)))),
        "two values": feed_forward(lambda self, X: (FeedForward.forward(self, X), X)),
    },
    "06-PreNormLayer": {
        "one dropout for all words": pre_norm(
            attend=lambda self, X, mask: (
                self.self_output.W_o(self.self_attention(self.self_output.norm(X), mask))
                * self.self_output.dropout(torch.ones_like(X[:, :1]))
            )
        ),
        "one dropout for both": pre_norm(_dropped_together),
        "post-norm": pre_norm(lambda self, X, mask=None: Layer.forward(self, X, mask)),
        "doubled": pre_norm(lambda self, X, mask=None: 2 * PreNorm.forward(self, X, mask)),
        "feed-forward first": pre_norm(
            lambda self, X, mask=None: X + self.think(X) + self.attend(X + self.think(X), mask)
        ),
        "only attention": pre_norm(lambda self, X, mask=None: X + self.attend(X, mask)),
        "only feed-forward": pre_norm(lambda self, X, mask=None: X + self.think(X)),
        "X twice": pre_norm(lambda self, X, mask=None: PreNorm.forward(self, X, mask) + X),
        "attention of what is not normalised, then normed": pre_norm(
            attend=lambda self, X, mask: self.self_output.norm(
                self.self_output.W_o(self.self_attention(X, mask))
            )
        ),
        "norm without its weights": pre_norm(
            think=lambda self, X: self.feed_forward.narrow(F.layer_norm(X, X.shape[-1:]))
        ),
        "norm of post-norm as well": pre_norm(
            lambda self, X, mask=None: self.feed_forward(X + self.attend(X, mask))
        ),
        "mask made again": pre_norm(
            attend=lambda self, X, mask: PreNorm.attend(
                self, X, None if mask is None else torch.zeros_like(mask)
            )
        ),
        "changes X": pre_norm(lambda self, X, mask=None: X.add_(self.attend(X, mask))),
        "attention dropped twice": pre_norm(
            attend=lambda self, X, mask: self.self_output.dropout(PreNorm.attend(self, X, mask))
        ),
        "feed-forward part dropped twice": pre_norm(
            think=lambda self, X: self.feed_forward.dropout(PreNorm.think(self, X))
        ),
        "normalised X dropped": pre_norm(
            attend=lambda self, X, mask: self.self_output.dropout(
                self.self_output.W_o(
                    self.self_attention(self.self_output.dropout(self.self_output.norm(X)), mask)
                )
            )
        ),
        "returns weights too": pre_norm(
            lambda self, X, mask=None: (PreNorm.forward(self, X, mask), None)
        ),
    },
    "06-fold_biases": {
        "transposed": folding(lambda w: w["W_o.bias"] + w["W_o.weight"].T @ w["W_v.bias"]),
        "by element": folding(lambda w: w["W_o.bias"] + w["W_o.weight"].diagonal() * w["W_v.bias"]),
        "by W_k": folding(lambda w: w["W_o.bias"] + w["W_k.weight"] @ w["W_v.bias"]),
        "b_o through W_o": folding(lambda w: w["W_o.weight"] @ (w["W_v.bias"] + w["W_o.bias"])),
        "summed": folding(lambda w: w["W_o.bias"] + w["W_v.bias"].sum()),
        "keys in the queries": folding(W_q__bias=lambda w: w["W_q.bias"] + w["W_k.bias"]),
        "weights of the keys gone": folding(W_k__weight=_zeros_for("W_k.weight")),
        "NaN for nothing": folding(W_v__bias=lambda w: w["W_v.bias"] * torch.nan),
        "None for nothing": folding(W_v__bias=lambda w: None),
        "a number for nothing": folding(W_v__bias=lambda w: 0.0),
        "rounded": folding(lambda w: (w["W_o.bias"] + w["W_o.weight"] @ w["W_v.bias"]).round()),
        "half precision": folding(lambda w: folded(w)["W_o.bias"].half()),
        "in place": folded_in_place,
        "only the bias": lambda weights: folded(weights)["W_o.bias"],
        "pairs": lambda weights: list(folded(weights).items()),
        "a name more": folding(W_o__bias_2=_zeros_for("W_o.bias")),
    },
    "06-from_tensorflow": {
        "kernels as they are": lambda variables: variables_by_map_weights(
            variables, turn=lambda X: X
        ),
        "flipped": lambda variables: variables_by_map_weights(variables, turn=lambda X: X.flip(0)),
        "reshaped": lambda variables: variables_by_map_weights(
            variables, turn=lambda X: X.reshape(X.shape[::-1])
        ),
        "beta for weight": lambda variables: variables_by_map_weights(
            variables, ends=TENSORS | {"beta": "weight", "gamma": "bias"}
        ),
        "all as before": dict,
        "names of transformers": lambda variables: {
            n.replace("/", ".").replace("layer_", "layer."): X for n, X in variables.items()
        },
        "pooler lost": lambda variables: {
            n: X for n, X in variables_by_map_weights(variables).items() if "pooler" not in n
        },
        "bert anywhere": lambda variables: variables_by_map_weights(
            {f"bert/{n.split('/', 1)[-1]}": X for n, X in variables.items() if "bert" in n}
        ),
        "bert without a slash": lambda variables: variables_by_map_weights(
            {f"bert/{n.split('/', 1)[-1]}": X for n, X in variables.items() if n[:4] == "bert"}
        ),
        "numpy": lambda variables: {
            n: X.numpy() for n, X in variables_by_map_weights(variables).items()
        },
        "empty": lambda variables: {},
        "pairs": lambda variables: list(variables_by_map_weights(variables).items()),
        "one more": lambda variables: variables_by_map_weights(variables) | {"step": 3},
        "zeros": lambda variables: {
            n: torch.zeros_like(X) for n, X in variables_by_map_weights(variables).items()
        },
    },
    "06-map_weights": {
        "prefix cut if all have it": lambda weights: names_by_splitting(
            weights, prefix="bert." if all(name.startswith("bert.") for name in weights) else "none"
        ),
        "up to layer 99": lambda weights: {
            old if "layer.123." in old else new: X
            for (old, X), new in zip(weights.items(), names_by_splitting(weights), strict=True)
        },
        "bert. inside of albert.": chain(
            ("encoder.layer.", "encoder.layers."),
            *ROW,
            start=lambda name: name if "classifier" in name else name.split("bert.")[-1],
        ),
        "the first name decides": lambda weights: names_by_splitting(
            weights, prefix="bert." if next(iter(weights)).startswith("bert.") else "none"
        ),
        "layer for layers": chain(*ROW),
        "short first": chain(("encoder.layer.", "encoder.layers."), *reversed(ROW)),
        "output everywhere": chain(
            ("encoder.layer.", "encoder.layers."), ("output", "feed_forward"), *ROW
        ),
        "bert everywhere": chain(
            ("encoder.layer.", "encoder.layers."), *ROW, start=lambda name: name[5:]
        ),
        "LayerNorm to norm only": chain(
            ("encoder.layer.", "encoder.layers."), ("LayerNorm", "norm")
        ),
        "dots lost": lambda state_dict: {
            k.replace(".", "_"): v for k, v in names_by_splitting(state_dict).items()
        },
        "transposed": lambda state_dict: {
            k: v.mT if v.dim() == 2 else v for k, v in names_by_splitting(state_dict).items()
        },
        "half precision": lambda state_dict: {
            k: v.half() for k, v in names_by_splitting(state_dict).items()
        },
        "pairs": lambda state_dict: list(names_by_splitting(state_dict).items()),
        "in place": names_in_place,
        "tensors in reverse": lambda state_dict: dict(
            zip(names_by_splitting(state_dict), reversed(state_dict.values()), strict=True)
        ),
        "only layer 0": lambda state_dict: names_by_splitting(
            {k: v for k, v in state_dict.items() if "layer." not in k or "layer.0." in k}
        ),
        "prefix added": lambda state_dict: {
            f"bert.{k}": v for k, v in names_by_splitting(state_dict).items()
        },
        "zeros": lambda state_dict: {
            k: torch.zeros_like(v) for k, v in names_by_splitting(state_dict).items()
        },
    },
}
