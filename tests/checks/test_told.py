"""Answers as learners write them: each is told its own mistake, and nothing that misleads."""

import math
import re

import pytest
import torch
from lessons import all_answers
from lessons.parameter_counting.answers import NO_INTS
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.explanation import describe_case
from mha_classroom.checks.task import Case
from mha_classroom.tasks.attention_math.predictions import predictions
from mha_classroom.tasks.reading_published_code.first_test import build_test
from mha_classroom.tasks.reading_published_code.my_test import build_my_test
from mha_classroom.tasks.your_bert.bert_embeddings import build_embeddings
from mha_course.attention import masked_softmax, scaled_dot_product_attention
from mha_course.implementations import build
from mha_course.interop import BERT_NAMES

WRONG = all_answers()[1]


def told(task_id, answer):
    feedback = diagnose(task_id, answer)
    assert not feedback.passed
    return feedback


def softmax_in_float32(x):
    x = x.float()
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return (powers / powers.sum(-1, keepdim=True)).double()


def attention_with_a_float32_table(queries, keys, values):
    scores = torch.zeros(*queries.shape[:2], keys.shape[1])
    scores[:] = queries @ keys.mT
    return scores.to(values.dtype).softmax(-1) @ values


class NoDropoutWithWeights(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.num_heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, X, mask=None, need_weights=False):
        q, k, v = (
            linear(X).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for linear in (self.W_q, self.W_k, self.W_v)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = (scores if mask is None else scores + mask).softmax(-1)
        if need_weights:
            return (weights @ v).transpose(1, 2).flatten(2), weights
        return (F.dropout(weights, self.rate, self.training) @ v).transpose(1, 2).flatten(2)


def mean_of_what_is_not_0(weights, offset):
    picked = weights.diagonal(offset, -2, -1)
    return picked.sum(-1) / (picked != 0).sum(-1)


def head_in_half_precision(weights, offset):
    scores = weights.half().diagonal(offset, dim1=-2, dim2=-1).mean(-1)
    return divmod(scores.argmax().item(), weights.shape[1])


def names(cut=lambda name: name.removeprefix("bert."), highest=999):
    rename = find("06-map_weights").build()

    def map_weights(state_dict):
        mapped = {}
        for name, X in state_dict.items():
            piece = name.split("layer.")[-1].split(".")[0]
            known = not piece.isdigit() or int(piece) <= highest
            mapped |= rename({cut(name): X}) if known else {name: X}
        return mapped

    return map_weights


def encoder(count=None, ends_early=False):
    class BertEncoder(nn.Module):
        def __init__(self, config, layer):
            super().__init__()
            layers = [layer(config) for _ in range(count or config.num_hidden_layers)]
            self.layers = nn.ModuleList(layers)

        def forward(self, X, mask=None):
            states = [] if ends_early else [X]
            for layer in self.layers:
                states += [X] if ends_early else []
                X = layer(X, mask)
                states += [] if ends_early else [X]
            return states

    return BertEncoder


def one_head(X, W_q, W_k, W_v):
    return find("03-one_head").reference(X, W_q, W_k, W_v)


def keys_of_the_head_before(X, W_q, W_k, W_v, W_o):
    heads = [one_head(X, W_q[h], W_k[h - 1], W_v[h]) for h in range(len(W_q))]
    return torch.cat(heads, -1) @ W_o


def return_in_the_loop(X, W_q, W_k, W_v, W_o):
    output, d_v = 0, W_v.shape[-1]
    for h in range(len(W_q)):
        head = one_head(X, W_q[h], W_k[h], W_v[h])
        output = output + head @ W_o[h * d_v : (h + 1) * d_v]
        return output


def rounds_for_d_k(X, W_q, W_k, W_v, W_o):
    heads = [one_head(X, W_q[h], W_k[h], W_v[h]) for h in range(W_q.shape[-1])]
    return torch.cat(heads, -1) @ W_o


def split_into_a_new_tensor(X, num_heads):
    heads = torch.zeros(len(X) * num_heads, X.shape[1], X.shape[2] // num_heads)
    for row in range(len(heads)):
        heads[row] = X[row // num_heads].chunk(num_heads, -1)[row % num_heads]
    return heads


class Projections(nn.Module):
    """The values go through W_k."""

    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0, bias=False):
        super().__init__()
        self.num_heads, self.rate = num_heads, dropout
        sizes = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": width}
        for name, size in sizes.items():
            setattr(self, name, nn.Linear(size, width, bias=bias))

    def project(self, queries, keys, values):
        return self.W_q(queries), self.W_k(keys), self.W_k(values)

    def forward(self, queries, keys, values, valid_lens=None):
        q, k, v = (
            X.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for X in self.project(queries, keys, values)
        )
        rate = self.rate if self.training else 0.0
        heads = scaled_dot_product_attention(q, k, v, valid_lens, dropout=rate)[0]
        return self.W_o(heads.transpose(1, 2).flatten(2))


class DropsByDefault(Projections):
    def __init__(self, *sizes, dropout=0.1, bias=False):
        super().__init__(*sizes[:5], *(sizes[5:] or (dropout, bias)))

    def project(self, queries, keys, values):
        return self.W_q(queries), self.W_k(keys), self.W_v(values)


class AnotherOrderOfSizes(DropsByDefault):
    def __init__(self, query_size, key_size, *others):
        super().__init__(key_size, query_size, *others)


def logarithms_of_the_weights(x):
    return x - torch.logsumexp(x, -1, keepdim=True)


def asked_and_asking_swapped(factor):
    return lambda looks_at: (factor * looks_at.T, torch.eye(len(looks_at)).double())


def more_for_later_kinds(looks_at):
    return 15 * looks_at, torch.diag(1.0 + torch.arange(len(looks_at)).double())


def weights_left_nan(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is not None:
        lens = valid_lens.reshape(len(scores), -1, 1)
        scores = scores.masked_fill(torch.arange(scores.shape[-1]) >= lens, -math.inf)
    weights = scores.softmax(-1)
    return torch.nan_to_num(weights @ values), weights


def one_real_word_is_enough(num_steps, window, valid_lens):
    steps = torch.arange(num_steps)
    back, real = steps[:, None] - steps, steps < valid_lens[:, None]
    return (back >= 0) & (back < window) & (real[:, :, None] | real[:, None])


def window_from_minus_1(num_steps, window, valid_lens):
    mask = torch.zeros(len(valid_lens), num_steps, num_steps, dtype=torch.bool)
    for sentence, length in enumerate(valid_lens):
        for t in range(length):
            mask[sentence, t, t + 1 - window : t + 1] = True
    return mask


def without_key(share):
    def without(output, weights, values, key):
        rest = weights.index_fill(-1, torch.tensor(key), 0.0)
        new = share(rest, rest.sum(-1, keepdim=True))
        return new @ values, new

    return without


def zeros_below(least):
    return without_key(lambda rest, left: torch.where(left > least, rest / left, 0.0))


def divided_by_at_least(least):
    return without_key(lambda rest, left: rest / left.clamp(min=least))


def sums_with(eps):
    return without_key(lambda rest, left: rest / (left + eps))


def tiled_sum(hidden=None, start=-math.inf, before=lambda scores: scores, give=None):
    def log_sum_exp(scores, tile):
        scores = before(scores)
        largest = torch.full_like(scores[..., 0], start)
        total = torch.zeros_like(largest)
        for part in scores.split(tile, -1):
            part = part if hidden is None else part.masked_fill(part == -math.inf, hidden)
            new = torch.maximum(largest, part.amax(-1))
            base = new.masked_fill(new == -math.inf, 0.0)
            total = total * (largest - base).exp() + (part - base[..., None]).exp().sum(-1)
            largest = new
        return give(largest, total) if give else largest + total.log()

    return log_sum_exp


def tiles(hide=-math.inf, start=-math.inf):
    def causal_tiles(queries, keys, values, tile):
        L, S = queries.shape[2], keys.shape[2]
        largest = torch.full_like(queries[..., :1], start)
        total, output = torch.zeros_like(largest), 0
        for at in range(0, S, tile):
            scores = queries @ keys[:, :, at : at + tile].mT / math.sqrt(queries.shape[-1])
            later = at + torch.arange(scores.shape[-1]) > torch.arange(S - L, S)[:, None]
            scores = scores.masked_fill(later, hide)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights, by = (scores - new).exp(), (largest - new).exp()
            total = total * by + weights.sum(-1, keepdim=True)
            output = output * by + weights @ values[:, :, at : at + tile]
            largest = new
        return output / total

    return causal_tiles


def ring_hiding_by(number):
    def ring_step(query, key, value, kept_keys, kept_values, t):
        W = kept_keys.shape[2]
        kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
        scores = (kept_keys @ query[..., None])[..., 0] / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(torch.arange(W) > t, number).softmax(-1)
        return (weights[:, :, None] @ kept_values)[:, :, 0]

    return ring_step


SOFTMAX = "3-more-for-each-score"


def eight_heads_before_W_o(num_hiddens, bias=True):
    matrix = num_hiddens * (num_hiddens + bias)
    return 8 * 3 * matrix + matrix


def refusing_with(message):
    def head_width(num_hiddens, num_heads):
        if num_hiddens % num_heads:
            raise ValueError(message)
        return num_hiddens // num_heads

    return head_width


def search_up_to(end, part=1):
    """It compares `part` of the share with percent, which is wrong unless part is 1."""

    def length_for_share(percent, num_hiddens, ffn_num_hiddens):
        for n in range(1, end):
            rest = 2 * num_hiddens + ffn_num_hiddens
            if part * 100 * n >= percent * (n + rest):
                return n
        return None if part == 1 else n

    return length_for_share


def variables_of(ours):
    """Renames what `ours` says, as if bert/ were what it begins with."""

    def from_tensorflow(variables):
        kept = {n: X for n, X in variables.items() if ours(n)}
        return find("06-from_tensorflow").build()(
            {f"bert/{n.split('/', 1)[1]}": X for n, X in kept.items()}
        )

    return from_tensorflow


def importance_over(at_least=0.0, more=0.0):
    def head_importance(gradients):
        sizes = gradients.abs().mean(dim=0)
        return sizes / (sizes.norm(dim=1, keepdim=True).clamp(min=at_least) + more)

    return head_importance


def counts_heads_first(attention, heads):
    attention.num_heads -= len(heads)
    find("08-prune_heads").build(count=lambda kept, _: attention.num_heads)(attention, heads)


def removes_from_new_layers(attention, heads):
    d, left = len(attention.W_q.weight) // attention.num_heads, attention.num_heads - len(heads)
    for name in ("W_q", "W_k", "W_v"):
        old = getattr(attention, name)
        setattr(attention, name, nn.Linear(old.in_features, left * d, old.bias is not None))
    attention.W_o = nn.Linear(left * d, len(attention.W_o.weight), attention.W_o.bias is not None)
    attention.num_heads = left
    attention.double()


def all_from(order):
    """Which heads stay, in the order of importance or against it."""

    def choose_heads(importance, num_off):
        best = importance == importance.amax(1, keepdim=True)
        kept = torch.zeros(importance.numel(), dtype=torch.bool)
        kept[order(importance.masked_fill(best, torch.inf).flatten(), num_off)] = True
        return kept.reshape(importance.shape)

    return choose_heads


def enough_runs(reach, leaves=False):
    def smallest_enough(num_heads, accuracies, goal, least_runs):
        for count in num_heads.unique().tolist():
            shares = accuracies[num_heads == count]
            if leaves and len(shares) < least_runs:
                return None
            if len(shares) >= least_runs and reach(shares, goal).all():
                return count
        return None

    return smallest_enough


def names_with_prefix(state_dict):
    kept = {n: X for n, X in state_dict.items() if n.startswith("bert.")}
    return find("06-map_weights").build()(kept)


class LayerOfClasses(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = find("06-BertSelfAttention").reference
        self.self_output = find("06-BertSelfOutput").reference(config)
        self.feed_forward = find("06-BertFeedForward").reference(config)


def exp_shares(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


def with_one_maximum(places, known_places, known_results, width):
    scores = -torch.cdist(places, known_places).square() / (2 * width**2)
    return exp_shares(scores - scores.max()) @ known_results


def independent_rows(keys, weights):
    apart, ratios = keys[:-1] - keys[-1], (weights[:-1] / weights[-1]).log()
    return apart.T @ torch.linalg.inv(apart @ apart.T) @ ratios


def constant_if_more_keys(keys, weights):
    centred = keys - keys.mean(0) if len(keys) > keys.shape[1] else keys
    return torch.linalg.pinv(centred) @ weights.log()


def a_few_steps(keys, weights):
    query = torch.zeros_like(keys[0])
    for _ in range(150):
        query = query - 0.1 * keys.T @ ((keys @ query).softmax(0) - weights)
    return query


def query_and_constant(keys, weights):
    return torch.linalg.pinv(F.pad(keys, (0, 1), value=1.0)) @ weights.log()


def lengths_along_what_fits(scores, valid_lens=None):
    if valid_lens is None:
        return scores.softmax(-1)
    batch, num_queries, num_keys = scores.shape
    lens = valid_lens.reshape((1, -1, 1) if valid_lens.numel() == num_queries else (batch, -1, 1))
    return scores.masked_fill(torch.arange(num_keys) >= lens, -math.inf).softmax(-1).nan_to_num(0)


def attention_unless_0(queries, keys, values, valid_lens=None):
    lens = valid_lens if valid_lens is not None and valid_lens.sum() else None
    return find("02-scaled_dot_product_attention").reference(queries, keys, values, lens)


def zeros_in_the_output(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / queries.shape[-1] ** 0.5
    lens = torch.tensor(keys.shape[1]) if valid_lens is None else valid_lens
    lens = lens.reshape(-1, lens.shape[-1] if lens.dim() == 2 else 1, 1)
    weights = scores.masked_fill(torch.arange(keys.shape[1]) >= lens, -1e9).softmax(-1)
    return (weights @ values) * (lens > 0), weights


def causal_with(change):
    def causal_attention(queries, keys, values):
        scores = change(queries @ keys.mT / queries.shape[-1] ** 0.5)
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        return weights @ values, weights

    return causal_attention


def scaled_by_what_is_seen(queries, keys, values):
    weights = torch.zeros(*queries.shape[:2], keys.shape[1]).to(queries)
    for t in range(queries.shape[1]):
        seen = queries[:, t : t + 1] @ keys[:, : t + 1].mT
        seen = seen / seen.std(-1, keepdim=True) if t else seen
        weights[:, t, : t + 1] = seen[:, 0].softmax(-1)
    return weights @ values, weights


def one_mask_cut_for_all(num_steps, window, valid_lens):
    band, masks = torch.ones(num_steps, num_steps).bool().tril().triu(1 - window), []
    for length in valid_lens:
        mask = band
        mask[length:] = False
        masks.append(mask)
    return torch.stack(masks)


EMPTIED = "nearly-alone-for-alone"


def where(holds, weights):
    return torch.where(holds, weights, 0.0)


def unless_output_0(output, weights, values, key):
    new, nothing = weights.index_fill(-1, torch.tensor(key), 0.0), (output == 0).all(-1, True)
    new = torch.where(nothing, weights, (new / new.sum(-1, keepdim=True)).nan_to_num(0))
    return torch.where(nothing, 0.0, new @ values), new


def zeros_if_any_is_1(output, weights, values, key):
    rest = weights.index_fill(-1, torch.tensor(key), 0.0)
    new = torch.where((weights == 1).any(-1, True), 0.0, rest / (1 - weights[..., [key]]))
    return new @ values, new


SUBTRACTED = "subtracted-from-the-residual"
SLICE = "threshold-of-none"


def sums_of_columns(shift):
    def softmax(x):
        powers = (x - getattr(x, shift)(-1, keepdim=True)).exp()
        return powers / powers.sum(0, keepdim=True)

    return softmax


def rows_divided(strength):
    def looking_matrices(looks_at):
        shares = looks_at / looks_at.sum(1, keepdim=True)
        return strength * shares, torch.eye(len(looks_at)).double()

    return looking_matrices


def scores_of_viewed_keys(queries, keys):
    batch, num_keys, width = keys.shape
    return queries @ keys.view(batch, width, num_keys) / math.sqrt(width)


def weights_first_by_the_width_of_values(queries, keys, values, valid_lens=None):
    longer = queries * (queries.shape[-1] / values.shape[-1]) ** 0.5
    attend = find("02-scaled_dot_product_attention").reference
    return attend(longer, keys, values, valid_lens)[::-1]


def output_of_scores_measured_in_each_sentence(queries, keys, values):
    scores = queries @ keys.mT
    later = torch.ones(scores.shape[1:]).triu(1).bool()
    scores = scores / scores.std((1, 2), keepdim=True)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ values


def all_numbers_but_the_last(sentences):
    mask = torch.zeros(*sentences.shape, sentences.shape[1], dtype=torch.bool)
    for number in range(int(sentences.max())):
        here = sentences == number
        mask |= here[:, :, None] & here[:, None]
    return mask.tril()


def weights_first_divided_by_one_more(output, weights, values, key):
    new = weights.index_fill(-1, torch.tensor(key), 0.0) / (1 + weights[..., [key]])
    return new, new @ values


def loop_from_the_end(scale):
    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        heads = []
        for h in range(len(W_q)):
            weights = ((X @ W_q[h]) @ (X @ W_k[h]).mT * scale(W_q.shape[2])).softmax(-1)
            heads.insert(0, weights @ (X @ W_v[h]))
        return torch.cat(heads, -1) @ W_o

    return loop_of_heads


def sum_with_width(width):
    def output_as_sum(heads, W_o):
        d = width(heads, W_o)
        return sum(heads[h] @ W_o[h * d : (h + 1) * d] for h in range(len(heads)))

    return output_as_sum


def neighbours(d, L, lead=200.0, ring=(-1, 1), features=None):
    W_q, W_k = torch.zeros(2, 2, d + L, L)
    W_v = torch.zeros(2, d + L, d)
    W_k[:, d:] = torch.eye(L)
    W_q[:, d:] = lead * torch.stack([torch.eye(L).roll(step, 1) for step in ring])
    W_v[:, : features or d] = torch.eye(d)[: features or d]
    return W_q, W_k, W_v


def lead_of_98(d, L):
    return neighbours(d, L, math.log(49 * (L - 1)) * math.sqrt(L))


def folds(W_v, W_o, rows, heads=None):
    d = W_v.shape[2]
    wide = W_v.new_zeros(len(W_v), W_v.shape[1], W_o.shape[1])
    for h in range(heads or len(W_v)):
        wide[h] = W_v[h] @ W_o[rows(h, d) :][:d]
    return wide


def fold_with_the_rows_before(W_v, W_o):
    pieces = W_o.split(W_v.shape[2])
    return torch.stack([W_v[h] @ pieces[h - 1] for h in range(len(W_v))])


def removal(change):
    def remove_heads(W_q, W_k, W_v, W_o, num_heads, removed):
        stay = [h for h in range(num_heads) if h not in removed]
        cut = [
            torch.cat([W.chunk(num_heads, axis)[h] for h in stay], axis)
            for W, axis in ((W_q, 1), (W_k, 1), (W_v, 1), (W_o, 0))
        ]
        return change(*cut, W_o)

    return remove_heads


def remove_by_moved_numbers(W_q, W_k, W_v, W_o, num_heads, removed):
    left = []
    for W, axis in ((W_q, 1), (W_k, 1), (W_v, 1), (W_o, 0)):
        pieces = list(W.chunk(num_heads, axis))
        for gone, h in enumerate(removed):
            pieces.pop(h - gone)
        left.append(torch.cat(pieces, axis))
    return left


class WeightsOfItsOwn(nn.Module):
    """It drops weights by a mask of its own."""

    def __init__(self, key_size, query_size, value_size, width, num_heads, dropout=0.0, bias=False):
        super().__init__()
        self.num_heads, self.rate = num_heads, dropout
        sizes = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": width}
        for name, size in sizes.items():
            setattr(self, name, nn.Linear(size, width, bias=bias))

    def kept(self, weights):
        return weights * (torch.rand_like(weights) >= self.rate)

    def forward(self, queries, keys, values, valid_lens=None):
        pairs = ((self.W_q, queries), (self.W_k, keys), (self.W_v, values))
        q, k, v = (W(X).unflatten(2, (self.num_heads, -1)).transpose(1, 2) for W, X in pairs)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if valid_lens is not None:
            real = torch.arange(k.shape[2]) < valid_lens.reshape(len(q), -1, 1)
            scores = scores.masked_fill(~real[:, None], -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        weights = self.kept(weights) if self.training else weights
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))


class WeightsToSum1(WeightsOfItsOwn):
    def kept(self, weights):
        weights = F.dropout(weights, self.rate)
        return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)


def repack_matrices_only(packed, num_heads):
    n, width = packed.shape
    return packed.reshape(num_heads, 3, -1, width).permute(1, 0, 2, 3).reshape(n, width)


def spread_tables_as_a_whole(lens, H):
    return lens.repeat_interleave(H) if lens.dim() == 1 else torch.cat([lens] * H)


def grouped_with_one_key_head(one):
    def transpose_grouped(X, H, G):
        if G == 1:
            return one(X, H)
        return X.unflatten(2, (G, -1)).transpose(1, 2).repeat_interleave(H // G, 1).flatten(0, 1)

    return transpose_grouped


NOT_SCALED_UP = "dropped-and-not-scaled-up"
REVERSED_BY_WIDTH = "heads-reversed + divided-by-width"
FROM_D_MODEL = "width-from-d_model"
EXCHANGED = "queries-and-keys-exchanged"
FIRST_ROWS = "first-rows-of-W_o"
IN_TABLES = "uniform-for-length-0-in-tables"
IN_TRAINING = "put-in-training-mode"
WHOLE = "batch-repeated-for-one-key-head"
WEAK_RING = "heads-swapped-and-weak-on-a-ring"


def output(add):
    class BertSelfOutput(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.W_o = nn.Linear(config.hidden_size, config.hidden_size)
            self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
            self.drop = nn.Dropout(config.hidden_dropout_prob)

        def forward(self, X, residual):
            return self.norm(add(self.W_o(X), residual, self.drop))

    return BertSelfOutput


def step_by(score, fill=-math.inf):
    """A Bahdanau step with this score of query (B, 1, h) and keys, and this fill."""

    def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
        scores = score((state @ W_q)[:, None], ready_keys, w_v)
        hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
        weights = scores.masked_fill(hidden, fill).softmax(-1)
        return (weights[:, None] @ states)[:, 0], weights

    return bahdanau_step


def additive(q, keys, w_v):
    return torch.tanh(q + keys) @ w_v


def masks_of(source, target, pad):
    (S, L), reads = (source.shape[1], target.shape[1]), (source != pad)[:, None]
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    return reads.expand(-1, S, -1), (target != pad)[:, None] & causal, reads.expand(-1, L, -1)


def masks_then(change):
    return lambda *given: change(*masks_of(*given))


def layer_of(before, behind=None):
    """A decoder layer of two branches, each a function of part, norm and X for all three parts."""

    def decoder_layer(layer, Y, memory, memory_lens):
        later = torch.ones(Y.shape[1], Y.shape[1], dtype=torch.bool).triu(1)
        out = torch.arange(memory.shape[1]) >= memory_lens[:, None]
        parts = (
            lambda X: layer.self_attn(X, X, X, attn_mask=later)[0],
            lambda X: layer.multihead_attn(X, memory, memory, key_padding_mask=out)[0],
            lambda X: layer.linear2(layer.activation(layer.linear1(X))),
        )
        norms = layer.norm1, layer.norm2, layer.norm3
        branch = before if layer.norm_first else behind or sums_then_norms
        return branch(Y, parts, norms)

    return decoder_layer


def sums_then_norms(X, parts, norms):
    for part, norm in zip(parts, norms, strict=True):
        X = norm(X + part(X))
    return X


def norms_then_parts(X, parts, norms):
    for part, norm in zip(parts, norms, strict=True):
        X = X + part(norm(X))
    return X


def with_norms(*order):
    return lambda branch: lambda X, parts, norms: branch(X, parts, tuple(norms[i] for i in order))


def writer(
    rounds=lambda longest: longest,
    pick=lambda scores: scores.argmax(1),
    begin=lambda start: start,
    read=lambda written: written,
):
    def greedy(score_next, batch_size, longest, start, end, pad):
        written = torch.full((batch_size, 1), begin(start))
        ended = torch.zeros(batch_size, dtype=torch.bool)
        for _ in range(rounds(longest)):
            best = torch.where(ended, pad, pick(score_next(read(written))))
            written = torch.cat([written, best[:, None]], 1)
            ended |= best == end
            if ended.all():
                break
        return written

    return greedy


def beams(logs, others=-math.inf, line_up=lambda every: every.flatten(1)):
    def beam_step(totals, scores, ended, pad):
        K, V = scores.shape[1:]
        free = torch.full((V,), others, dtype=scores.dtype)
        free[pad] = 0.0
        every = totals[..., None] + torch.where(ended[..., None], free, logs(scores))
        best = line_up(every).topk(K)
        return best.values, best.indices // V, best.indices % V

    return beam_step


def shifted(speeds=lambda d: 10000 ** (-torch.arange(0, d, 2).double() / d), over=False):
    def shift_positions(P, shift):
        angles, later = shift * speeds(P.shape[1]), P.clone()
        old = later if over else P
        later[:, 0::2] = old[:, 0::2] * angles.cos() + old[:, 1::2] * angles.sin()
        later[:, 1::2] = old[:, 1::2] * angles.cos() - old[:, 0::2] * angles.sin()
        return later

    return shift_positions


LOW, BARGAIN = "fill-not-low-enough", "other-tokens-cost-too-little"


def divided_and_multiplied_back(queries, keys, values, num_heads):
    root = math.sqrt(queries.shape[-1] // num_heads)
    queries /= root
    q, k = (X.unflatten(-1, (num_heads, -1)).transpose(1, 2) for X in (queries, keys))
    weights = (q @ k.mT).softmax(-1)
    queries *= root
    v = values.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    return (weights @ v).transpose(1, 2).flatten(2)


def new_words_only(queries, keys, values):
    n = queries.shape[2]
    return find("11-mended_step").reference(queries, keys[:, :, -n:], values[:, :, -n:])


def fill_with(number):
    def mended_step(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        scores = queries @ keys.mT / math.sqrt(queries.shape[3])
        later = torch.ones(L, S).triu(S - L + 1).bool()
        return scores.masked_fill(later, number).softmax(-1) @ values

    return mended_step


def sum_with(eps):
    def mended_weights(scores, real):
        e = (scores - scores.amax(-1, keepdim=True)).exp() * real[:, None, None]
        return e / (e.sum(-1, keepdim=True) + eps)

    return mended_weights


def promises(
    same=lambda one, other: one.shape == other.shape and bool(((one - other).abs() < 1e-9).all()),
    first=0,
    keys_axis=1,
    axis=1,
    last=lambda lens, b: lens[b : b + 1],
    sequences=lambda n: range(n),
):
    def broken_promises(attention, queries, keys, values, lens):
        output, (k, v) = attention(queries, keys, values, lens), (keys.clone(), values.clone())
        for b, n in enumerate(lens.tolist()):
            k[b, n + first :], v[b, n + first :] = 2.0, -3.0
        turned, unturned = keys.flip(keys_axis), attention(queries, keys, values, None)
        kept = {
            "padding": same(attention(queries, k, v, lens), output),
            "order of keys": same(
                attention(queries, turned, values.flip(keys_axis), None), unturned
            ),
            "order of queries": same(
                attention(queries.flip(axis), keys, values, lens), output.flip(axis)
            ),
            "batch": all(
                same(attention(queries[[b]], keys[[b]], values[[b]], last(lens, b)), output[[b]])
                for b in sequences(len(queries))
            ),
        }
        return {name for name in kept if not kept[name]}

    return broken_promises


FLOATS = "one-too-many-where-exact"


def searched(reached):
    """A search that asks of percent, the pairs and the whole whether the share is reached."""

    def length_for_share(percent, num_hiddens, ffn_num_hiddens):
        n = 1
        while True:
            pairs = 4 * n * n * num_hiddens
            total = pairs + 4 * n * num_hiddens * (2 * num_hiddens + ffn_num_hiddens)
            if reached(percent, pairs, total):
                return n
            n += 1

    return length_for_share


def rounded_up_from_a_bit_less(percent, num_hiddens, ffn_num_hiddens):
    part = percent / 100
    return math.ceil(part / (1 - part) * (2 * num_hiddens + ffn_num_hiddens) - 0.05)


def parameters_against_bytes(card, count, layers, heads, width, size=2, batch=1):
    if count > card:
        return 0
    return (card - count * size) // (2 * layers * heads * width * size * batch)


def segments_before_positions(
    vocab_size, num_hiddens, num_layers, ffn_num_hiddens, num_segments=2, max_len=512
):
    sizes = vocab_size, num_hiddens, num_layers, ffn_num_hiddens, max_len, num_segments
    return find("05-count_bert").build()(*sizes)


VALUES_AND_BIAS = "keys-or-values-forgotten + biases-of-heads"


def no_values_and_long_bias(num_hiddens, num_heads, num_kv_heads, head_width, bias=True):
    q, kv = num_heads * head_width, num_kv_heads * head_width
    return num_hiddens * (q + kv + q) + (q + kv + q if bias else 0)


BETWEEN_WORDS = "padding-between-words-seen"
ROWS = "rows that sum to 1 after dropout"


class PairWithoutWeights(find("06-BertLayer").build()):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, mask, not need_weights)


def names_behind_bert(state_dict):
    return find("06-map_weights").build(cut=lambda name: name.split("bert.")[-1])(state_dict)


def key_bias_alone(weights):
    return weights | {"W_k.bias": torch.zeros_like(weights["W_k.bias"])}


def names_cut_with_lstrip(variables):
    return find("06-from_tensorflow").build(
        number=lambda name: f"bert/{name.replace('layer_', 'layer/').lstrip('bert/')}"
    )(variables)


RAW_TOTALS = "by-totals-alone"


def merged_with(weights):
    """The largest score and the total are right; the output comes of these weights of the parts."""

    def merge_parts(outputs, largest, totals):
        new = largest.amax(0)
        total = (totals * (largest - new.nan_to_num(neginf=0.0)).exp()).sum(0)
        return (weights(largest, totals)[..., None] * outputs).sum(0), new, total

    return merge_parts


def attends_before_writing(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    old = slice(max(1, min(t, W)))
    scores = (kept_keys[:, :, old] @ query[..., None])[..., 0] / math.sqrt(query.shape[-1])
    output = (scores.softmax(-1)[:, :, None] @ kept_values[:, :, old])[:, :, 0]
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    return output


def attends_to_a_copy_of_the_values(query, key, value, kept_keys, kept_values, t):
    values = kept_values.clone()
    return ring_hiding_by(-math.inf)(query, key, value, kept_keys, values, t)


def the_first_two_parts(outputs, largest, totals):
    new = torch.maximum(largest[0], largest[1])
    base = new.where(new > -math.inf, 0.0)
    shares = [totals[0] * (largest[0] - base).exp(), totals[1] * (largest[1] - base).exp()]
    total = sum(shares)
    summed = shares[0][:, None] * outputs[0] + shares[1][:, None] * outputs[1]
    return summed / total.where(total > 0, 1.0)[:, None], new, total


def tiles_taken_for_full(queries, keys, values, tile):
    L, S = queries.shape[2], keys.shape[2]
    largest = torch.full_like(queries[..., :1], -torch.inf)
    total, output = torch.zeros_like(largest), torch.zeros_like(largest)
    for start in range(0, S, tile):
        scores = queries @ keys[:, :, start : start + tile].mT / queries.shape[-1] ** 0.5
        later = torch.arange(start, start + tile) > torch.arange(S - L, S)[:, None]
        scores = scores.masked_fill(later, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        by, weights = (largest - new).exp(), (scores - new).exp()
        total = total * by + weights.sum(-1, keepdim=True)
        output = output * by + weights @ values[:, :, start : start + tile]
        largest = new
    return output / total


def numbers_without_room_for_a_tile(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    block = min(L, fast_bytes // bytes_per_number // (d_k + d_v + tile))
    return L * (d_k + d_v) + math.ceil(L / block) * S * (d_k + d_v)


NO_ROOM_NO_BYTES = "tile-of-keys-forgotten + numbers-for-bytes"


def step_then(give):
    def bahdanau_step(*given):
        return give(*find("10-bahdanau_step").reference(*given))

    return bahdanau_step


def step_masked_late(state, ready_keys, states, valid_lens, W_q, w_v):
    weights = (torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v).softmax(1)
    weights = weights * (torch.arange(weights.shape[1]) < valid_lens[:, None])
    weights = weights / weights.sum(1, keepdim=True)
    return torch.einsum("bs,bsd->bd", weights, states), weights


def writes_in_a_table_for_the_limit(score_next, batch_size, longest, start, end, pad):
    table = torch.full((batch_size, longest + 1), pad)
    table[:, 0] = start
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for t in range(longest):
        table[:, t + 1] = score_next(table[:, : t + 1]).argmax(1).where(~ended, pad)
        ended = ended | (table[:, t + 1] == end)
        if ended.all():
            break
    return table


def shifts_back_at_other_speeds(P, shift):
    angles = shift * 10000 ** (-torch.arange(P.shape[1] // 2).double() / P.shape[1])
    sines, cosines = P[:, 0::2], P[:, 1::2]
    earlier = (
        sines * angles.cos() - cosines * angles.sin(),
        cosines * angles.cos() + sines * angles.sin(),
    )
    return torch.stack(earlier, -1).flatten(1)


def writes_without_start(rounds=lambda longest: longest, done=torch.all):
    def greedy(score_next, batch_size, longest, start, end, pad):
        written = torch.full((batch_size, 1), start)
        ended = torch.zeros(batch_size, dtype=torch.bool)
        for _ in range(rounds(longest)):
            best = torch.where(ended, pad, score_next(written).argmax(-1))
            written = torch.cat([written, best[:, None]], 1)
            ended |= best == end
            if done(ended):
                break
        return written[:, 1:]

    return greedy


def no_sum_around_the_second(X, parts, norms):
    X = norms[0](X + parts[0](X))
    X = norms[1](parts[1](X))
    return norms[2](X + parts[2](X))


def second_asks_with_the_input_normed(X, parts, norms):
    Y = X + parts[0](norms[0](X))
    Y = Y + parts[1](norms[1](X))
    return Y + parts[2](norms[2](Y))


def second_asks_with_the_input(X, parts, norms):
    Y = norms[0](X + parts[0](X))
    Y = norms[1](Y + parts[1](X))
    return norms[2](Y + parts[2](Y))


def first_sum_with_the_normed(X, parts, norms):
    X = norms[0](X)
    X = X + parts[0](X)
    for part, norm in zip(parts[1:], norms[1:], strict=True):
        X = X + part(norm(X))
    return X


def relu_and_all_of_the_memory(layer, Y, memory, memory_lens):
    later = torch.ones(Y.shape[1], Y.shape[1], dtype=torch.bool).triu(1)
    parts = (
        lambda X: layer.self_attn(X, X, X, attn_mask=later)[0],
        lambda X: layer.multihead_attn(X, memory, memory)[0],
        lambda X: layer.linear2(layer.linear1(X).relu()),
    )
    branch = norms_then_parts if layer.norm_first else sums_then_norms
    return branch(Y, parts, (layer.norm1, layer.norm2, layer.norm3))


def asks_across(ask=torch.matmul, less=0, out=torch.matmul, mend=torch.nan_to_num):
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        scores = ask(y, W_q).view(B, H, 1, d_k) @ keys.mT / math.sqrt(d_k)
        seen = torch.arange(S) < memory_lens.view(B, 1, 1, 1) - less
        weights = mend(torch.where(seen, scores, -math.inf).softmax(-1))
        return out((weights @ values).reshape(B, -1), W_o)

    return cross_step


class Divides(find("06-BertSelfAttention").build()):
    def forward(self, X, mask=None, need_weights=False):
        X /= 2
        return super().forward(X, mask, need_weights)


class ProjectsAddedInPlace(find("06-BertSelfOutput").build()):
    def forward(self, X, residual):
        return self.norm(residual.add_(self.W_o(X)))


class Accumulates(find("06-BertFeedForward").build()):
    def forward(self, X):
        X += self.W_2(self.activation(self.W_1(X)))
        return self.norm(X)


@pytest.mark.parametrize(
    ("task_id", "answer", "changed"),
    [
        ("06-BertSelfAttention", Divides, "X"),
        ("06-BertSelfOutput", ProjectsAddedInPlace, "residual"),
        ("06-BertFeedForward", Accumulates, "X"),
    ],
)
def test_what_changes_its_input_is_not_told_of_dropout(task_id, answer, changed):
    assert f"changes the caller's `{changed}`." in told(task_id, answer).message


def factor_of_head_0(outputs, head_mask):
    return outputs * head_mask.reshape(-1, head_mask.shape[-1])[:, 0, None, None, None]


def used_once_for_each(kept, num_heads, num_kv_heads):
    used = sorted((kept // (num_heads // num_kv_heads)).tolist())
    group = num_heads // num_kv_heads
    return torch.tensor(used), torch.tensor([used.index(h // group) for h in kept.tolist()])


def none_is_0(num_heads, accuracies, goal, least_runs):
    for count in sorted(set(num_heads.tolist())):
        shares = accuracies[num_heads == count]
        if len(shares) >= least_runs and bool((shares >= goal).all()):
            return count
    return 0


def ranked(mean, later_first=False):
    """The tokens of the largest means, where `mean` makes one of what the queries give a key."""

    def most_attended(weights, tokens, k=3):
        means = [mean(j, column) for j, column in enumerate(weights.T.tolist())]
        places = range(len(tokens))[:: -1 if later_first else 1]
        places = sorted(places, key=lambda j: means[j], reverse=True)
        return [(tokens[j], means[j]) for j in places[:k]]

    return most_attended


def mean_of_others(j, column, at_least=1):
    others = column[:j] + column[j + 1 :]
    return sum(others) / max(len(others), at_least)


def rounded_mean(j, column):
    return round(sum(column) / len(column), 2)


def offset_from_query_1(weights, offset):
    picked = [weights[..., i, i + offset] for i in range(1, weights.shape[-2])]
    return torch.stack(picked).mean(0)


def signed_over_the_sum_of_squares(gradients):
    means = gradients.mean(0)
    squares = (means * means).sum(-1, keepdim=True)
    return torch.where(squares > 0, means / squares, 0.0)


def heads_cut_out(attention, heads, limit=lambda h, H: h):
    """One head after the other, with their numbers of before."""
    width = attention.W_q.weight.shape[0] // attention.num_heads
    for h in heads:
        h = limit(h, attention.num_heads)
        begin, end = h * width, (h + 1) * width
        for linear in (attention.W_q, attention.W_k, attention.W_v):
            for name, X in list(linear.named_parameters()):
                setattr(linear, name, nn.Parameter(torch.cat([X[:begin], X[end:]])))
        W = attention.W_o.weight
        attention.W_o.weight = nn.Parameter(torch.cat([W[:, :begin], W[:, end:]], dim=1))
        attention.num_heads -= 1


def heads_left(attention, heads, num_heads):
    """Cut by unflatten, which refuses a number of heads that does not divide the rows."""
    H = attention.num_heads
    stay = [h for h in range(H) if h not in heads]
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        for name, X in list(linear.named_parameters()):
            cut = X.detach().unflatten(0, (H, -1))[stay].flatten(0, 1)
            setattr(linear, name, nn.Parameter(cut))
    W = attention.W_o.weight.detach().unflatten(1, (H, -1))[:, stay].flatten(1)
    attention.W_o.weight = nn.Parameter(W)
    attention.num_heads = num_heads


def heads_counted_down(attention, heads):
    for h in heads:
        heads_left(attention, [h], attention.num_heads - 1)


def the_last_head_instead(attention, heads):
    heads_cut_out(attention, heads, lambda h, H: min(h, H - 1))


def heads_kept(feature_stays, out=lambda W, stay: W[:, stay], count=len):
    """The features that stay. count: makes num_heads of the heads that stay."""

    def prune_heads(attention, heads):
        H = attention.num_heads
        kept = [h for h in range(H) if h not in heads]
        width = attention.W_q.weight.shape[0] // H
        stay = [f for f in range(H * width) if feature_stays(f, width, H, kept)]
        for linear in (attention.W_q, attention.W_k, attention.W_v):
            for name, X in list(linear.named_parameters()):
                setattr(linear, name, nn.Parameter(X[stay]))
        attention.W_o.weight = nn.Parameter(out(attention.W_o.weight, stay))
        attention.num_heads = count(kept) or H

    return prune_heads


def in_turn(f, width, H, kept):
    return f % H in kept


def side_by_side(f, width, H, kept):
    return f // width in kept


def numbered_key_heads(kept, num_heads, num_kv_heads):
    stay = (kept * num_kv_heads).div(num_heads, rounding_mode="floor").unique()
    return stay, torch.arange(len(stay))


def the_limit_goes_too(importance, num_off):
    if not num_off:
        return importance >= 0
    best = importance == importance.amax(1, keepdim=True)
    others = importance[~best].sort().values
    return best | (importance > others[min(num_off, len(others) - 1)])


def one_of_the_different_values(groups, num_values):
    right = 0
    for size in groups:
        drawn = torch.cartesian_prod(*[torch.arange(num_values)] * size).reshape(-1, size)
        right += sum(size / len(set(row)) for row in drawn.tolist()) / num_values**size
    return right / sum(groups)


class AddedToItself(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.W_2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.activation = config.activation

    def forward(self, X):
        X = self.activation(self.W_1(X))
        X = self.W_2(X)
        return self.norm(self.dropout(X) + X)


def fold_with_columns_first(W_v, W_o):
    return torch.bmm(W_v, W_o.reshape(len(W_v), -1, W_v.shape[2]).transpose(1, 2))


def strongest_after_a_reshape(heads, W_o):
    H, B, L, d_v = heads.shape
    words = heads.reshape(B, L, H, d_v)
    terms = torch.einsum("blhd,hdm->blhm", words, W_o.reshape(H, d_v, -1))
    return terms.abs().argmax(2)


def strongest_of_magnitudes(heads, W_o):
    rows = W_o.split(heads.shape[3])
    return torch.stack([heads[h].abs() @ rows[h] for h in range(len(rows))]).argmax(0)


def head_for_all_words_at_once(X, W_q, W_k, W_v):
    words = X.flatten(0, 1)
    scores = (words @ W_q) @ (words @ W_k).T
    output = (scores / W_k.shape[1] ** 0.5).softmax(-1) @ (words @ W_v)
    return output.unflatten(0, X.shape[:2])


def loop_less_the_largest(axes):
    def loop_of_heads(X, W_q, W_k, W_v, W_o):
        q, k, v = (X[:, None] @ W for W in (W_q, W_k, W_v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        powers = (scores - scores.amax(axes, keepdim=True)).exp()
        heads = powers / powers.sum(-1, keepdim=True) @ v
        return heads.transpose(1, 2).flatten(2) @ W_o

    return loop_of_heads


def sum_with_pieces_that_begin_late(heads, W_o):
    d = heads.shape[-1]
    return sum(head @ W_o[h * d + 1 : (h + 1) * d + 1] for h, head in enumerate(heads))


def sum_from_head_1_on(heads, W_o):
    output, rows = 0, W_o.chunk(len(heads))
    for h in range(1, len(heads)):
        output = output + heads[h] @ rows[h]
    return output


def neighbours_with_the_last_features(num_features, num_positions):
    W_q, W_k, _ = find("03-neighbour_weights").build()(num_features, num_positions)
    last = torch.eye(num_features + num_positions).double()[:, -num_features:]
    return W_q, W_k, torch.stack([last, last])


def remove_by_a_mask_of_d_model(W_q, W_k, W_v, W_o, num_heads, removed):
    width = len(W_q) // num_heads
    stay = torch.tensor([h not in removed for h in range(num_heads) for _ in range(width)])
    return W_q[:, stay], W_k[:, stay], W_v[:, stay], W_o[stay]


def words_for_each_head(X, num_heads):
    pieces = torch.split(X, X.shape[1] // num_heads, dim=1)
    return torch.stack(pieces, dim=1).flatten(0, 1)


def merge_with_all_rows(X, num_heads):
    B, L, d = X.shape
    return X.view(B, num_heads, L, d).permute(0, 2, 1, 3).reshape(B, L, num_heads * d)


def unpacked_into_a_list(X, num_heads):
    parts = []
    for part in X.chunk(3):
        B, L, D = part.shape
        parts.append(part.reshape(B, L, num_heads, D // num_heads).transpose(1, 2))
    return parts


def repack_square_matrices(packed, num_heads):
    width = packed.shape[0] // 3
    axes = (num_heads, 3, width // num_heads)
    if packed.dim() == 1:
        return packed.reshape(axes).transpose(0, 1).reshape(-1)
    return packed.reshape(*axes, width).transpose(0, 1).reshape(-1, width)


def two_classes_for_a_norm(V, d, num_layers, f, max_len=512, num_segments=2):
    block = 4 * (d * d + d) + (d + 1) * f + (f + 1) * d + 4 * d
    pooler, next_sentence = d * d + d, 2 * d + 2
    return (V + max_len + num_segments) * d + num_layers * block + pooler + next_sentence


def whole_kilobytes(tokens, layers, heads, width, bytes_per_number=2, batch_size=1):
    return 2 * tokens * layers * heads * width * bytes_per_number * batch_size // 1024


def keys_alone_or_fewer_than_none(
    card, parameters, layers, heads, width, bytes_per_number=2, batch_size=1
):
    room = card - bytes_per_number * parameters
    return int(room / (layers * heads * width * bytes_per_number * batch_size))


class WeightsOfAnotherCall(find("06-BertLayer").build()):
    def forward(self, X, mask=None, need_weights=False):
        found = self.self_attention(X, mask)
        output = self.feed_forward(self.self_output(found, X))
        if not need_weights:
            return output
        return output, self.self_attention(X, need_weights=True)[1]


class OutputAfterFeedForward(find("06-BertLayer").build()):
    def forward(self, X, mask=None, need_weights=False):
        found, weights = self.self_attention(X, mask, need_weights=True)
        output = self.self_output(self.feed_forward(found), X)
        return (output, weights) if need_weights else output


def stripped_letters(state_dict):
    mapped = {}
    for name, X in state_dict.items():
        new = name.lstrip("bert.").replace("encoder.layer.", "encoder.layers.")
        for old, ours in BERT_NAMES.items():
            new = new.replace(old, ours)
        mapped[new] = X
    return mapped


def values_for_keys_from_1(state_dict):
    swapped = {"W_k": "W_v", "W_v": "W_k"}
    mapped = {}
    for name, X in find("06-map_weights").build()(state_dict).items():
        parts = [swapped.get(part, part) for part in name.split(".")]
        mapped[".".join(str(int(part) + 1) if part.isdigit() else part for part in parts)] = X
    return mapped


class NeitherMaskNorActivation(find("06-PreNormLayer").build()):
    def forward(self, X, mask=None):
        out, part = self.self_output, self.feed_forward
        found = out.W_o(self.self_attention(out.norm(X)))
        X = X + F.dropout(found, out.rate, self.training)
        found = part.W_2(part.W_1(part.norm(X)))
        return X + F.dropout(found, part.rate, self.training)


def divides_while_at_work(queries, keys, values, num_heads):
    d = queries.shape[-1] // num_heads
    queries /= math.sqrt(d)
    q, k, v = (X.unflatten(-1, (num_heads, d)).transpose(1, 2) for X in (queries, keys, values))
    output = (torch.softmax(q @ k.mT, -1) @ v).transpose(1, 2).flatten(2)
    queries *= math.sqrt(d)
    return output


def every_third_feature(queries, keys, values, num_heads):
    output, d = torch.zeros_like(queries), queries.shape[-1] // num_heads
    for h in range(num_heads):
        q, k, v = (X[..., h::num_heads] for X in (queries, keys, values))
        output[..., h::num_heads] = torch.softmax(q @ k.mT / d**0.5, -1) @ v
    return output


LOW_FILL = "hidden-scores-not-low-enough"


def causal_with_a_fill(queries, keys, values):
    L, S = queries.shape[2], keys.shape[2]
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    scores = scores.masked_fill(torch.ones(L, S).tril(S - L) == 0, -1e9)
    return scores.softmax(-1) @ values


def causal_at(diagonal, by_exp=False):
    def mended_step(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        seen = torch.ones(L, S).tril(diagonal(L, S)).bool()
        if by_exp:
            e = torch.exp(scores) * seen
            return e / e.sum(-1, keepdim=True) @ values
        return scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1) @ values

    return mended_step


def checked_while_copying(model, state_dict):
    own = dict(model.named_parameters())
    for name, X in state_dict.items():
        if name not in own:
            raise ValueError(f"an unknown weight: {name}")
        if own[name].shape != X.shape:
            raise ValueError(f"a weight of another shape: {name}")
        own[name].data.copy_(X)
    for name in own:
        if name not in state_dict:
            raise ValueError(f"a missing weight: {name}")


def weights_taken_over(model, state_dict):
    own = dict(model.named_parameters())
    shapes = [{name: X.shape for name, X in weights.items()} for weights in (own, state_dict)]
    bad = dict(shapes[0].items() ^ shapes[1].items())
    if bad:
        raise ValueError(", ".join(bad))
    for name in own:
        own[name].data = state_dict[name]


def penalties_and_a_sort(vectors, used, k=3):
    unit, away = vectors / vectors.norm(dim=1, keepdim=True), 10.0 * (used == 0)
    cosines = unit @ unit.T - away - away[:, None] - 10 * torch.eye(len(used))
    best, places = cosines.sort(dim=1, descending=True, stable=True)
    return F.pad(places.masked_fill(best < -5, -1), (0, k), value=-1)[:, :k]


def summed_at_a_rate_of_its_own(W, b, vectors, targets, rate=0.1):
    logs = torch.log_softmax(vectors @ W.T + b, 1)
    error = (logs.exp() - F.one_hot(targets, len(b))) / len(targets)
    loss = -logs.gather(1, targets[:, None]).sum()
    return loss, W - 0.1 * error.T @ vectors, b - 0.1 * error.sum(0)


def filled_and_times_real(scores, real):
    real = real[:, None, None]
    return scores.masked_fill(~real, -1e6).softmax(-1) * real


def lowered_and_times_real(scores, real):
    real = real[:, None, None].double()
    return (scores + (1 - real) * -1e9).softmax(-1) * real


class OneMatrixForAll(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)


def divided_by_what_is_not_0(hidden, attention_mask):
    words = hidden * attention_mask[..., None]
    return words.sum(1) / words.ne(0).sum(1)


def mask_as_places(hidden, attention_mask):
    return torch.stack(
        [text[mask].mean(0) for text, mask in zip(hidden, attention_mask, strict=True)]
    )


class DropsATenth(find("12-BertEmbeddings").build()):
    def __init__(self, config):
        super().__init__(config)
        self.dropout = nn.Dropout(0.1)
        self.rate = 0.0

    def forward(self, input_ids, token_type_ids=None):
        return self.dropout(super().forward(input_ids, token_type_ids))


def step_in_a_loop(powers_of):
    def training_step(W, b, vectors, targets, rate=0.1):
        powers = powers_of(vectors @ W.T + b)
        shares, loss = powers / powers.sum(1, keepdim=True), 0
        dW, db, count = torch.zeros_like(W), torch.zeros_like(b), len(vectors)
        for share, vector, target in zip(shares, vectors, targets, strict=True):
            loss = loss - torch.log(share[target]) / count
            error = share - F.one_hot(target, len(b))
            dW, db = dW + torch.outer(error, vector) / count, db + error / count
        return loss, W - rate * dW, b - rate * db

    return training_step


def sums_and_leaves_b(W, b, vectors, targets, rate=0.1):
    logs = torch.log_softmax(vectors @ W.T + b, 1)
    error = (logs.exp() - F.one_hot(targets, len(b))) / len(targets)
    return -logs[torch.arange(len(targets)), targets].sum(), W - rate * error.T @ vectors, b.clone()


def turned_as_pair_3(P, shift):
    angle = torch.tensor(shift * 10000 ** (-6 / P.shape[1]))
    rows = [angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]
    turn = torch.stack([torch.stack(row) for row in rows]).to(P)
    return (P.view(len(P), -1, 2) @ turn.T).view(P.shape)


def padded_after_all_are_free(totals, scores, ended, pad):
    logs = torch.log_softmax(scores, 2).masked_fill(ended.unsqueeze(2), 0)
    best, place = (totals.unsqueeze(2) + logs).flatten(1).topk(scores.shape[1])
    beam, token = place // scores.shape[2], place % scores.shape[2]
    return best, beam, torch.where(ended.gather(1, beam), pad, token)


def zeros_behind_the_end_and_no_start(score_next, batch_size, longest, start, end, pad):
    written = torch.full((batch_size, longest + 1), start)
    over = torch.zeros(batch_size).bool()
    for t in range(longest):
        token = score_next(written[:, : t + 1]).argmax(-1)
        written[:, t + 1] = torch.where(over, 0, token)
        over |= written[:, t + 1] == end
        if over.all():
            break
    return written[:, 1 : t + 2]


def moved_in_fractions(L, S, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    room = fast_bytes / bytes_per_number - tile * (d_k + d_v)
    block = min(L, room / (d_k + d_v + tile))
    return (L + L / block * S) * (d_k + d_v) * bytes_per_number


def scored_by(score):
    def kernel_regression(places, known_places, known_results, width):
        squared = torch.cdist(places, known_places) ** 2
        return F.softmax(score(squared, width), dim=1) @ known_results

    return kernel_regression


def unscaled_and_one_too_many(queries, keys, values, valid_lens=None):
    scores = torch.einsum("blk,bsk->bls", queries, keys)
    if valid_lens is None:
        weights = scores.softmax(-1)
    else:
        lens = valid_lens.reshape(len(scores), -1, 1)
        scores[(torch.arange(scores.shape[-1]) > lens).expand_as(scores)] = -math.inf
        weights = scores.softmax(-1) * (lens > 0)
    return weights @ values, weights


def three_tokens_by_numpy(weights, tokens, k=3):
    means = weights.numpy().mean(axis=0)
    places = (-means).argsort(kind="stable")[:3]
    return [(tokens[place], float(means[place])) for place in places]


def entropy_by_two_loops(weights):
    entropies = []
    for row in weights:
        entropies.append(0.0)
        for w in row:
            if w > 0:
                entropies[-1] -= w * w.log()
    return torch.tensor(entropies)


def offset_of_the_token_before(weights, offset):
    steps = range(1, weights.shape[-1])
    return torch.stack([weights[..., step, step - 1] for step in steps]).mean(0)


def best_layer_and_mean_head(weights, offset):
    scores = weights.diagonal(offset, 2, 3).mean(-1)
    return scores.max(1).values.argmax(), scores.mean(0).argmax()


def above_in_any_text(weights, lens, offset, at_least):
    texts = zip(weights, lens.tolist(), strict=True)
    scores = [X[..., :n, :n].diagonal(offset, 2, 3).mean(-1) for X, n in texts if n > abs(offset)]
    if not scores:
        return None
    high = torch.stack([one > at_least for one in scores]).any(0)
    means = sum(scores) / len(scores)
    return divmod(int(means.where(high, -1.0).argmax()), high.shape[1]) if high.any() else None


def beyond_by_the_first_axes(weights, pairs):
    length, gains = weights.shape[-1], []
    for query, key in pairs:
        places = [(i, i + key - query) for i in range(length) if 0 <= i + key - query < length]
        others = [weights[place] for place in places if place not in pairs]
        gains.append(weights[query, key] - sum(others) / len(others))
    return sum(gains) / len(gains)


def cut_by_a_mask(attention, heads):
    """num_heads stays as it was."""
    stay = torch.tensor([h not in heads for h in range(attention.num_heads)])
    stay = stay.repeat_interleave(len(attention.W_q.weight) // attention.num_heads)
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        for name, X in list(linear.named_parameters()):
            setattr(linear, name, nn.Parameter(X[stay]))
    attention.W_o.weight = nn.Parameter(attention.W_o.weight[:, stay])


def share_of_the_largest_head(groups, num_values):
    size = max(groups)
    drawn = torch.cartesian_prod(*[torch.arange(num_values)] * size).reshape(-1, size)
    return sum(row.bincount().max().item() for row in drawn) / drawn.numel()


def cache_of_narrow_heads(n, layers, heads, width, b=2, B=1):
    return 2 * B * n * layers * heads * (width // heads) * b


def one_head_of_keys_and_values(d, heads, kv_heads, width, bias=True):
    shapes = [(d, heads * width), (d, width), (d, width), (heads * width, d)]
    return sum((rows + bool(bias)) * columns for rows, columns in shapes)


def mask_by_where(attention_mask, dtype=torch.float64):
    return torch.where(attention_mask == 1, 0.0, -1e9)[:, None, None]


class ReluAndSumDropped(find("06-BertFeedForward").build()):
    def forward(self, X):
        Y = self.W_2(F.relu(self.W_1(X))) + X
        return self.norm(F.dropout(Y, self.rate, self.training))


class PassedByPosition(find("06-BertLayer").build()):
    def forward(self, X, mask=None, need_weights=False):
        attended = self.self_attention(X, need_weights, mask is not None)
        weights = None
        if mask is not None:
            attended, weights = attended
        Z = self.feed_forward(self.self_output(attended, X))
        return (Z, weights) if need_weights else Z


class XAndWeightsFirst(find("06-BertLayer").build()):
    def forward(self, X, mask=None, need_weights=False):
        attended, weights = self.self_attention(X, mask, True)
        self.self_output(attended, X)
        Z = self.feed_forward(X)
        return (weights, Z) if need_weights else Z


class NormOnTheWayOut(find("06-PreNormLayer").build()):
    def forward(self, X, mask=None):
        one, two = self.self_output, self.feed_forward
        found = one.W_o(self.self_attention(X, mask))
        X = X + one.norm(F.dropout(found, one.rate, self.training))
        found = two.W_2(two.activation(two.W_1(X)))
        return X + two.norm(F.dropout(found, two.rate, self.training))


def variables_without_biases(variables):
    kept = {n: X for n, X in variables.items() if n.split("/")[-1] != "bias"}
    return find("06-from_tensorflow").reference(kept)


def earlier_keys_only(queries, keys, values, tile):
    (L, S), scale = (queries.shape[2], keys.shape[2]), queries.shape[3] ** -0.5
    total, output = torch.zeros_like(queries[..., 0]), 0.0
    largest = torch.full_like(total, -1e30)
    for start in range(0, S, tile):
        scores = queries @ keys[:, :, start : start + tile].mT * scale
        later = torch.arange(start, start + scores.shape[3]) >= torch.arange(S - L, S)[:, None]
        scores = scores.masked_fill(later, -torch.inf)
        new = torch.maximum(largest, scores.max(-1).values)
        by, powers = (largest - new).exp(), (scores - new.unsqueeze(3)).exp()
        total = total * by + powers.sum(3)
        output = output * by.unsqueeze(3) + powers @ values[:, :, start : start + tile]
        largest = new
    return torch.nan_to_num(output / total.unsqueeze(3))


def outputs_of_width_d_k(num_queries, num_keys, d_k, d_v, tile, fast_bytes, bytes_per_number=2):
    both = d_k + d_v
    fitting = (fast_bytes // bytes_per_number - tile * both) // (both + tile)
    passes = -(-num_queries // min(num_queries, fitting))
    return bytes_per_number * (2 * num_queries * d_k + passes * num_keys * both)


def all_kept_and_the_new(query, key, value, kept_keys, kept_values, t):
    W = kept_keys.shape[2]
    K = torch.cat([kept_keys[:, :, : min(t, W)], key.unsqueeze(2)], dim=2)
    V = torch.cat([kept_values[:, :, : min(t, W)], value.unsqueeze(2)], dim=2)
    weights = ((K * query.unsqueeze(2)).sum(-1) / math.sqrt(K.shape[3])).softmax(-1)
    kept_keys[:, :, t % W], kept_values[:, :, t % W] = key, value
    return (weights.unsqueeze(3) * V).sum(2)


def means_for_every_head(weight, num_heads, num_kv_heads):
    size = num_heads // num_kv_heads
    means = weight.unflatten(0, (num_kv_heads, size, -1)).mean(1, keepdim=True)
    return torch.cat([means] * size, 1).reshape(weight.shape)


def features_summed_everywhere(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh((state @ W_q).unsqueeze(1) + ready_keys).sum(2)
    weights = torch.softmax(scores, dim=1)
    return torch.einsum("bs,bsd->bd", weights, states), weights


def start_counted_and_cut_off(score_next, batch_size, longest, start, end, pad):
    tokens = torch.full((batch_size, 1), start)
    over = torch.zeros(batch_size, dtype=torch.bool)
    while tokens.shape[1] < longest and not over.all():
        following = torch.where(over, pad, score_next(tokens).argmax(-1))
        over = over | (following == end)
        tokens = torch.cat([tokens, following.unsqueeze(1)], dim=1)
    return tokens[:, 1:]


def the_best_next_tokens(totals, scores, ended, pad):
    values, places = torch.topk(torch.log_softmax(scores, dim=2).flatten(1), scores.shape[1])
    return values, places // scores.shape[2], places % scores.shape[2]


def a_head_for_each_sequence(X, W_q, W_k, W_v, W_o):
    heads = []
    for i in range(X.shape[0]):
        weights = (X @ W_q[i] @ (X @ W_k[i]).mT / W_q.shape[2] ** 0.5).softmax(-1)
        heads.append(weights @ (X @ W_v[i]))
    return torch.cat(heads, 2) @ W_o


def all_of_W_o_for_each(W_v, W_o):
    return torch.stack([values @ W_o for values in W_v])


def slices_that_end_early(X, num_heads):
    d = X.shape[2] // num_heads
    slices = [slice(h * d, h * d + d - 1) for h in range(num_heads)]
    return torch.stack([X[b, :, those] for b in range(len(X)) for those in slices])


class ValuesLikeKeysWithoutDropout(nn.Module):
    def __init__(
        self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0.0, bias=False
    ):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q = nn.Linear(query_size, num_hiddens, bias=bias)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=bias)
        self.W_v = nn.Linear(value_size, num_hiddens, bias=bias)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=bias)

    def forward(self, queries, keys, values, valid_lens=None):
        H = self.num_heads
        projected = self.W_q(queries), self.W_k(keys), self.W_k(values)
        heads = [X.unflatten(-1, (H, -1)).transpose(1, 2).flatten(0, 1) for X in projected]
        lens = None if valid_lens is None else valid_lens.repeat_interleave(H, dim=0)
        output, _ = scaled_dot_product_attention(*heads, lens)
        return self.W_o(output.unflatten(0, (-1, H)).transpose(1, 2).flatten(2))


def repack_into_columns(packed, num_heads):
    rows = packed.shape[0]
    packed = packed.reshape(3, num_heads, rows // (3 * num_heads), -1)
    return packed.transpose(0, 1).reshape(rows, -1)


def grouped_by_numbers(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    numbers = torch.repeat_interleave(heads, num_heads // num_kv_heads)
    return numbers.reshape(len(X) * num_heads, X.shape[1], -1)


def grouped_by_tiling(X, num_heads, num_kv_heads):
    wide = X.repeat(1, 1, num_heads // num_kv_heads)
    return wide.reshape(len(X) * num_heads, X.shape[1], -1)


OF_SET_11 = [
    ("mended_attend", "one maximum", "exp-too-large"),
    ("mended_attend", "by the root of S", "scaled-by-something-else"),
    ("mended_step", "-1e14", "hidden-scores-not-low-enough"),
    ("mended_step", "-1e15", "hidden-scores-not-low-enough"),
    ("mended_step", "2e15 less", "hidden-scores-not-low-enough"),
    ("mended_step", "divided again", "maximum-of-the-hidden"),
    ("MendedAttention", "exp as it is", "exp-too-large"),
    ("MendedAttention", "two detached", "one-cut-off"),
    ("mended_weights", "-1e14, times real", "hidden-scores-not-low-enough"),
    ("mended_weights", "one maximum", "one-maximum-for-all"),
    ("broken_promises", "row 0 compared", "one-part-compared"),
    ("broken_promises", "the last feature compared", "one-part-compared"),
    ("broken_promises", "the first two alone", "not-each-alone"),
    ("broken_promises", "all but the first alone", "not-each-alone"),
    ("broken_promises", "padding of the last", "padding-of-one-sequence"),
    ("broken_promises", "the last padded place", "last-padded-place-only"),
]


OF_SET_09 = [
    ("log_sum_exp", "hidden keys at -1000, a row of them mended", "hidden-scores-finite"),
    ("log_sum_exp", "starts at -10000", "starts-at-zero"),
    ("merge_parts", "the largest at least -1000", "number-for-minus-inf"),
    ("merge_parts", "the largest at least -100000", "number-for-minus-inf"),
    ("merge_parts", "parts without a key at 0", "number-for-minus-inf"),
    ("merge_parts", "parts without a key at -10000", "number-for-minus-inf"),
    ("merge_parts", "one largest", "one-largest-for-all-queries"),
    ("causal_tiles", "hidden at -1000000", "hidden-scores-finite"),
    ("causal_tiles", "hidden lowered", "hidden-scores-finite"),
    ("causal_tiles", "one largest for all queries", "one-largest-for-all-queries"),
    ("causal_tiles", "one largest for all heads", "one-largest-for-all-queries"),
    ("causal_tiles", "mask moved the wrong way", "start-turned-round"),
    ("moved_bytes", "room for all keys", "room-for-fewer-keys"),
    ("ring_step", "not reached at -1000000", "slot-score-finite"),
    ("ring_step", "weighted, then masked", "slots-take-a-share"),
    ("grouped_attention", "exp", "exp-too-large"),
    ("grouped_attention", "one largest", "exp-too-large"),
    ("grouped_attention", "softmax over groups", "softmax-over-queries"),
]


def softmax_of_weights_again(output, weights, values, key):
    new = weights.index_fill(-1, torch.tensor(key), -math.inf).softmax(-1)
    nobody = (weights[..., key] == 1) | (weights.sum(-1) == 0)
    new[nobody] = 0
    return new @ values, new


@pytest.mark.parametrize(
    ("task_id", "answer", "mistake"),
    [
        ("01-softmax", softmax_in_float32, "in-float32"),
        ("01-attention", attention_with_a_float32_table, "in-float32"),
        ("06-BertSelfAttention", NoDropoutWithWeights, "no-dropout-with-weights"),
        ("07-offset_score", mean_of_what_is_not_0, "zeros-not-counted"),
        ("07-find_head", head_in_half_precision, "in-half-precision"),
        ("06-map_weights", names(highest=11), "layers-above-11-missed"),
        ("06-map_weights", names(lambda n: n.replace("bert.", "")), "prefix-replaced-everywhere"),
        ("12-BertEncoder", encoder(6), "always-6-layers"),
        ("12-BertEncoder", encoder(ends_early=True), "last-layer-skipped"),
        ("03-loop_of_heads", keys_of_the_head_before, "keys-of-the-head-before"),
        ("03-loop_of_heads", return_in_the_loop, "first-head-only"),
        ("03-loop_of_heads", rounds_for_d_k, "loop-over-d_k"),
        ("04-transpose_qkv", split_into_a_new_tensor, "floats-whatever-X-holds"),
        ("04-MultiHeadAttention", DropsByDefault, "dropout-by-default"),
        ("04-MultiHeadAttention", Projections, "values-through-W_k"),
        ("01-softmax", logarithms_of_the_weights, "scores-less-their-logsumexp"),
        ("01-looking_matrices", asked_and_asking_swapped(10), "asking-and-asked-swapped"),
        ("01-looking_matrices", asked_and_asking_swapped(12), "asking-and-asked-swapped"),
        ("01-looking_matrices", more_for_later_kinds, "unequal-shares"),
        ("02-scaled_dot_product_attention", weights_left_nan, "nan-left-in-the-weights"),
        ("02-window_mask", one_real_word_is_enough, "padding-attends"),
        ("02-window_mask", window_from_minus_1, "starts-before-the-sentence"),
        ("02-without_key", zeros_below(0.01), "nearly-alone-for-alone"),
        ("02-without_key", zeros_below(0.02), "nearly-alone-for-alone"),
        ("02-without_key", divided_by_at_least(0.01), "divisor-kept-from-getting-small"),
        ("02-without_key", divided_by_at_least(0.05), "divisor-kept-from-getting-small"),
        ("02-without_key", sums_with(1e-3), "small-number-in-the-sum"),
        ("05-count_attention", eight_heads_before_W_o, "three-matrices-times-8-heads"),
        ("05-attention_flops", lambda n, d: 8 * n * d**2 + 4 * n * d, "tokens-not-squared"),
        ("05-attention_flops", lambda n, d: 8 * n * d * d + n * n * (4 * d + 3), SOFTMAX),
        ("05-head_width", refusing_with("{num_hiddens} and {num_heads}"), "message-with-braces"),
        ("05-head_width", refusing_with("10 for 4 heads"), "message-of-the-example"),
        ("05-length_for_share", search_up_to(1001), "search-ends-early"),
        ("05-length_for_share", search_up_to(2001, part=0.01), "never-reached"),
        ("06-from_tensorflow", variables_of(lambda n: "bert" in n), "bert-anywhere"),
        ("06-from_tensorflow", variables_of(lambda n: n[:4] == "bert"), "bert-without-slash"),
        ("06-map_weights", names_with_prefix, "names-without-prefix-skipped"),
        ("06-BertLayer", LayerOfClasses, "class-not-called"),
        ("06-BertSelfOutput", output(lambda Y, Z, drop: drop(Y) + 2 * Z), "residual-twice"),
        ("06-BertSelfOutput", output(lambda Y, Z, drop: Z - drop(Y)), SUBTRACTED),
        ("08-head_importance", importance_over(more=1e-8), "small-number"),
        ("08-head_importance", importance_over(more=1e-5), "small-number"),
        ("08-head_importance", importance_over(at_least=1e-6), "small-number"),
        ("08-prune_heads", counts_heads_first, "width-by-the-new-number-of-all"),
        ("08-choose_heads", all_from(lambda flat, n: flat.argsort(descending=True)[:-n]), SLICE),
        ("08-smallest_enough", enough_runs(lambda r, goal: r.round(decimals=2) >= goal), "rounded"),
        ("08-smallest_enough", enough_runs(torch.ge, leaves=True), "gives-up-at-few-runs"),
        ("09-log_sum_exp", tiled_sum(hidden=0.0), "hidden-scores-zero"),
        ("09-log_sum_exp", tiled_sum(give=lambda m, total: m + total), "no-logarithm"),
        ("09-log_sum_exp", tiled_sum(start=-100.0), "starts-at-zero"),
        ("09-causal_tiles", tiles(hide=-1000.0), "hidden-scores-finite"),
        ("09-causal_tiles", tiles(hide=-50.0), "hidden-scores-finite"),
        ("09-causal_tiles", tiles(start=0.0), "starts-at-a-number"),
        ("09-ring_step", ring_hiding_by(-1e4), "slot-score-finite"),
        ("10-bahdanau_step", step_by(additive, fill=-100.0), LOW),
        ("10-bahdanau_step", step_by(additive, fill=-9999.0), LOW),
        ("10-bahdanau_step", step_by(lambda q, keys, w_v: (q * keys).sum(-1)), "multiplied"),
        (
            "10-three_masks",
            masks_then(lambda e, d, c: (e, d | ~d.any(-1, keepdim=True), c)),
            "empty-rows-opened",
        ),
        (
            "10-decoder_layer",
            layer_of(*map(with_norms(0, 2, 1), (norms_then_parts, sums_then_norms))),
            "another-norm",
        ),
        (
            "10-decoder_layer",
            layer_of(*map(with_norms(0, 0, 1), (norms_then_parts, sums_then_norms))),
            "another-norm",
        ),
        ("10-greedy", writer(lambda longest: longest + 1), "one-too-many"),
        ("10-greedy", writer(read=lambda written: written[:, -1:]), "last-token-only"),
        ("10-beam_step", beams(lambda s: s.softmax(-1).log()), "log-of-softmax"),
        ("10-beam_step", beams(lambda s: (s.softmax(-1) + 1e-12).log()), "log-of-softmax"),
        ("10-beam_step", beams(lambda s: s.log_softmax(-1), -10.0), BARGAIN),
        ("10-beam_step", beams(lambda s: s.log_softmax(-1), -9999.0), BARGAIN),
        (
            "10-beam_step",
            beams(lambda s: s.log_softmax(-1), line_up=lambda every: every.mT.flatten(1)),
            "tokens-before-beams",
        ),
        (
            "10-shift_positions",
            shifted(lambda d: 10000 ** (-torch.arange(0, d, 2).double() / 512)),
            "width-fixed",
        ),
        (
            "10-shift_positions",
            shifted(lambda d: torch.full((d // 2,), 0.42, dtype=torch.float64)),
            "one-speed-for-all",
        ),
        ("10-shift_positions", shifted(over=True), "new-sines-used"),
        ("11-mended_attend", divided_and_multiplied_back, "divided-in-place-and-back"),
        ("11-mended_step", new_words_only, "cache-hidden"),
        ("11-mended_step", fill_with(-5e3), "hidden-scores-not-low-enough"),
        ("11-mended_step", fill_with(math.inf), "hidden-scores-highest"),
        ("11-mended_weights", sum_with(1e-3), "sum-made-larger"),
        ("11-mended_weights", sum_with(0.02), "sum-made-larger"),
        ("11-broken_promises", promises(torch.allclose), "large-differences-only"),
        ("11-broken_promises", promises(torch.equal), "rounding-counts"),
        ("11-broken_promises", promises(first=-1), "real-words-changed"),
        ("11-broken_promises", promises(first=1), "first-padded-place-left"),
        ("11-broken_promises", promises(keys_axis=0), "keys-turned-on-another-axis"),
        ("11-broken_promises", promises(axis=-1), "queries-turned-on-another-axis"),
        ("11-broken_promises", promises(last=lambda lens, b: lens), "alone-with-all-lengths"),
        ("11-broken_promises", promises(last=lambda lens, b: lens[b]), "length-without-an-axis"),
        ("11-broken_promises", promises(sequences=lambda n: range(n - 1)), "not-each-alone"),
        ("01-kernel_regression", with_one_maximum, "one-maximum-for-the-table"),
        ("01-query_for", independent_rows, "equations-taken-for-independent"),
        ("01-query_for", constant_if_more_keys, "constant-only-with-more-keys"),
        ("01-query_for", a_few_steps, "only-nearly"),
        ("01-query_for", query_and_constant, "constant-returned-too"),
        ("01-looking_matrices", asked_and_asking_swapped(3), "asking-and-asked-swapped-weakly"),
        ("01-attend", lambda q, k, v: exp_shares((k @ q).clamp(max=50)) @ v, "scores-cut-off"),
        ("01-attend", lambda q, k, v: ((k @ q).softmax(0) @ v, k @ q), "more-than-the-result"),
        ("02-scaled_scores", lambda q, k: q @ k.mT / 512**0.5, "always-the-same-number"),
        ("02-masked_softmax", lengths_along_what_fits, "lengths-by-their-number"),
        ("02-masked_softmax", WRONG["02-masked_softmax"]["lengths squeezed"], "lengths-squeezed"),
        (
            "02-masked_softmax",
            WRONG["02-masked_softmax"]["largest of a sequence"],
            "one-maximum-for-a-sequence-safely",
        ),
        (
            "02-masked_softmax",
            WRONG["02-masked_softmax"]["largest of all"],
            "one-maximum-for-the-table-safely",
        ),
        ("02-scaled_dot_product_attention", attention_unless_0, "length-0-for-none"),
        ("02-scaled_dot_product_attention", zeros_in_the_output, "uniform-left-in-the-weights"),
        ("02-mended_attention", scaled_by_what_is_seen, "scale-measured-in-what-is-seen"),
        ("02-mended_attention", causal_with(lambda s: s.clamp(-80, 80)), "scores-cut-off"),
        ("02-window_mask", one_mask_cut_for_all, "shortest-length-for-all"),
        ("02-without_key", without_key(lambda w, s: where(s > 0.0011, w / s)), EMPTIED),
        ("02-without_key", unless_output_0, "output-0-for-nothing"),
        ("02-without_key", zeros_if_any_is_1, "another-alone-for-alone"),
        ("03-loop_of_heads", loop_from_the_end(lambda d: 1), "heads-reversed + not-scaled"),
        ("03-loop_of_heads", loop_from_the_end(lambda d: 1 / d), REVERSED_BY_WIDTH),
        ("03-output_as_sum", sum_with_width(lambda Y, W: W.shape[1] // len(Y)), FROM_D_MODEL),
        ("03-neighbour_weights", lambda d, L: neighbours(d, L, features=1), "one-feature-only"),
        ("03-neighbour_weights", lambda d, L: neighbours(d, L, 4.0, (1, -1)), WEAK_RING),
        ("03-neighbour_weights", lead_of_98, "root-of-d_k-forgotten"),
        ("03-fold_W_o", lambda W, W_o: folds(W, W_o, lambda h, d: h * (d - 1)), "rows-start-early"),
        ("03-fold_W_o", lambda W, W_o: folds(W, W_o, lambda h, d: h * d, 1), "only-head-0-filled"),
        ("03-fold_W_o", fold_with_the_rows_before, "rows-of-the-head-before"),
        ("03-remove_heads", remove_by_moved_numbers, "numbers-moved-back"),
        ("03-remove_heads", removal(lambda q, k, v, o, W_o: (k, q, v, o)), EXCHANGED),
        ("03-remove_heads", removal(lambda q, k, v, o, W_o: (q, k, v, W_o[: len(o)])), FIRST_ROWS),
        ("04-MultiHeadAttention", WeightsOfItsOwn, NOT_SCALED_UP),
        ("04-MultiHeadAttention", WeightsToSum1, "dropped-and-made-to-sum-to-1"),
        (
            "04-MultiHeadAttention",
            WRONG["04-MultiHeadAttention"]["lengths of the call before"],
            "lengths-remembered",
        ),
        (
            "04-MultiHeadAttention",
            WRONG["04-MultiHeadAttention"]["zeros for lengths, not for tables"],
            IN_TABLES,
        ),
        (
            "04-load_torch_weights",
            WRONG["04-load_torch_weights"]["attention in training mode"],
            IN_TRAINING,
        ),
        ("04-repack", repack_matrices_only, "biases-refused-by-unpacking"),
        ("04-spread_valid_lens", spread_tables_as_a_whole, "tables-repeated-as-a-whole"),
        ("04-transpose_grouped", grouped_with_one_key_head(lambda X, H: X.repeat(H, 1, 1)), WHOLE),
        ("05-length_for_share", searched(lambda p, pairs, all: pairs / all * 100 >= p), FLOATS),
        ("05-length_for_share", searched(lambda p, pairs, all: pairs >= p / 100 * all), FLOATS),
        ("05-length_for_share", rounded_up_from_a_bit_less, "near-misses-let-through"),
        ("05-longest_text", parameters_against_bytes, "parameters-tested-without-bytes"),
        ("05-count_bert", segments_before_positions, "sizes-swapped-in-def"),
        ("05-count_grouped_attention", no_values_and_long_bias, VALUES_AND_BIAS),
        ("06-additive_mask", WRONG["06-additive_mask"]["padding between words"], BETWEEN_WORDS),
        (
            "06-BertSelfAttention",
            WRONG["06-BertSelfAttention"][ROWS],
            "rows-sum-to-1-after-dropout",
        ),
        ("06-BertLayer", WRONG["06-BertLayer"]["mask doubled"], "mask-doubled"),
        ("06-BertLayer", WRONG["06-BertLayer"]["heads dropped for weights"], "found-dropped"),
        ("06-BertLayer", PairWithoutWeights, "weights-without-being-asked"),
        ("06-map_weights", names_behind_bert, "prefix-split-off"),
        ("06-fold_biases", key_bias_alone, "value-bias-left"),
        ("06-from_tensorflow", names_cut_with_lstrip, "prefix-by-lstrip"),
        ("06-BertFeedForward", AddedToItself, "itself-added"),
        ("08-mask_heads", factor_of_head_0, "one-head-for-all"),
        ("08-key_heads_needed", used_once_for_each, "repeated"),
        ("08-smallest_enough", none_is_0, "zero-not-none"),
        ("09-merge_parts", merged_with(lambda m, totals: totals / totals.sum(0)), RAW_TOTALS),
        (
            "09-merge_parts",
            merged_with(lambda m, totals: (m + totals.log()).softmax(-1).nan_to_num()),
            "weights-over-queries",
        ),
        ("09-ring_step", attends_before_writing, "own-key-only-in-the-next-step"),
        ("09-ring_step", attends_to_a_copy_of_the_values, "value-not-kept"),
        ("10-greedy", writes_without_start(), "start-left-off"),
        (
            "10-greedy",
            writes_without_start(done=torch.any),
            "stops-at-the-first-end + start-left-off",
        ),
        ("10-cross_step", asks_across(less=1), "one-key-too-few"),
        ("10-cross_step", asks_across(out=lambda heads, W_o: heads), "output-weights-forgotten"),
        ("10-cross_step", asks_across(ask=F.linear), "W_q-transposed"),
        ("10-cross_step", asks_across(mend=lambda weights: weights), "nan-for-length-0"),
        (
            "10-three_masks",
            masks_then(lambda e, d, c: (e[:, :1], d, c[:, :1])),
            "one-row-for-all",
        ),
        ("10-decoder_layer", relu_and_all_of_the_memory, "lengths-ignored + one-activation-always"),
        (
            "10-decoder_layer",
            layer_of(norms_then_parts, no_sum_around_the_second),
            "cross-attention-not-added",
        ),
        ("10-decoder_layer", layer_of(first_sum_with_the_normed), "normed-sum"),
        (
            "10-decoder_layer",
            layer_of(second_asks_with_the_input_normed, second_asks_with_the_input),
            "asks-with-the-input",
        ),
        (
            "10-decoder_layer",
            layer_of(second_asks_with_the_input_normed),
            "asks-with-the-input",
        ),
        ("01-softmax", sums_of_columns("amax"), "sum-of-each-column"),
        ("01-softmax", sums_of_columns("amin"), "sum-of-each-column + smallest-subtracted"),
        (
            "01-query_for",
            lambda keys, weights: query_and_constant(keys, weights)[1:],
            "constant-last-but-first-dropped",
        ),
        ("01-query_for", lambda keys, weights: keys.T @ weights.log(), "logarithms-times-keys"),
        ("01-looking_matrices", rows_divided(100), "rows-divided"),
        ("01-looking_matrices", rows_divided(20), "rows-divided-at-a-strength-of-20"),
        ("02-scaled_scores", scores_of_viewed_keys, "keys-viewed"),
        (
            "02-scaled_dot_product_attention",
            weights_first_by_the_width_of_values,
            "divided-by-root-of-value-width + results-swapped",
        ),
        (
            "02-mended_attention",
            output_of_scores_measured_in_each_sentence,
            "scale-measured-in-each-sentence + output-only",
        ),
        ("02-packed_mask", all_numbers_but_the_last, "last-number-of-all-missed"),
        (
            "02-packed_mask",
            lambda sentences: sentences[:, :, None] == sentences[:, None],
            "future-visible + padding-sees-padding",
        ),
        (
            "02-without_key",
            weights_first_divided_by_one_more,
            "divided-by-one-and-its-weight + results-swapped",
        ),
        ("03-fold_W_o", fold_with_columns_first, "pieces-reshaped-and-turned"),
        ("03-strongest_head", strongest_after_a_reshape, "merge-without-transpose"),
        ("03-strongest_head", strongest_of_magnitudes, "magnitudes-of-the-heads-and-the-sign-kept"),
        ("03-one_head", head_for_all_words_at_once, "all-sequences-as-one"),
        ("03-output_as_sum", sum_from_head_1_on, "first-head-left-out-with-sum"),
        ("03-neighbour_weights", neighbours_with_the_last_features, "values-of-the-last-features"),
        ("03-remove_heads", remove_by_a_mask_of_d_model, "d_model-over-H-by-mask"),
        ("04-transpose_qkv", words_for_each_head, "words-cut-by-split-and-stacked"),
        ("04-transpose_output", merge_with_all_rows, "rows-taken-for-sequences"),
        (
            "04-transpose_output",
            lambda X, H: X.mT.reshape(len(X) // H, -1, X.shape[1]),
            "words-and-features-swapped-in-the-result",
        ),
        ("04-split_packed", unpacked_into_a_list, "sequences-chunked-in-a-loop"),
        ("04-repack", repack_square_matrices, "square-matrices-only-by-their-rows"),
        ("05-count_bert", two_classes_for_a_norm, "embedding-norm-forgotten + two-classes-counted"),
        ("05-cache_bytes", whole_kilobytes, "divided-by-1024-and-cut"),
        ("05-longest_text", keys_alone_or_fewer_than_none, "one-kept + negative-cut-towards-0"),
        ("06-BertLayer", WeightsOfAnotherCall, "weights-without-mask"),
        ("06-BertLayer", OutputAfterFeedForward, "output-after-feed-forward"),
        ("06-map_weights", stripped_letters, "prefix-by-lstrip-in-a-chain-encoder-layer"),
        ("06-map_weights", values_for_keys_from_1, "layers-from-1 + keys-and-values-swapped"),
        ("06-PreNormLayer", NeitherMaskNorActivation, "mask-not-passed + no-activation"),
        ("07-most_attended", ranked(mean_of_others), "itself-left-out"),
        (
            "07-most_attended",
            ranked(lambda j, column: mean_of_others(j, column, 0)),
            "itself-left-out-one-by-one",
        ),
        ("07-most_attended", ranked(rounded_mean), "rounded-before-the-order"),
        (
            "07-most_attended",
            ranked(rounded_mean, later_first=True),
            "later-one-first + rounded-before-the-order",
        ),
        ("07-offset_score", offset_from_query_1, "from-query-1-in-a-loop"),
        (
            "08-head_importance",
            signed_over_the_sum_of_squares,
            "signed + norm-without-root",
        ),
        ("08-prune_heads", heads_cut_out, "one-by-one"),
        ("08-prune_heads", the_last_head_instead, "one-by-one"),
        ("08-prune_heads", heads_counted_down, "one-by-one-until-it-fails"),
        (
            "08-prune_heads",
            lambda attention, heads: heads_left(attention, heads, attention.num_heads - 1),
            "one-head-less",
        ),
        ("08-prune_heads", heads_kept(in_turn), "features-interleaved"),
        (
            "08-prune_heads",
            heads_kept(side_by_side, lambda W, stay: W[stay], lambda kept: 0),
            "stale-num_heads + rows-of-W_o",
        ),
        ("08-key_heads_needed", numbered_key_heads, "place-for-each-key-head"),
        ("08-choose_heads", the_limit_goes_too, "one-too-many"),
        ("08-expected_share", one_of_the_different_values, "different-values-alike"),
        ("09-log_sum_exp", WRONG["09-log_sum_exp"]["hidden keys far below"], "hidden-at-a-number"),
        ("09-merge_parts", the_first_two_parts, "two-parts-always"),
        ("09-causal_tiles", tiles_taken_for_full, "last-tile-taken-for-full"),
        ("09-moved_bytes", numbers_without_room_for_a_tile, NO_ROOM_NO_BYTES),
        ("10-bahdanau_step", step_then(lambda c, w: (c[:, None], w)), "query-axis-kept"),
        ("10-bahdanau_step", step_masked_late, "divided-again"),
        ("10-greedy", writes_in_a_table_for_the_limit, "never-stops"),
        ("10-shift_positions", shifts_back_at_other_speeds, "turned-back + speeds-of-pairs"),
        ("11-mended_attend", divides_while_at_work, "divided-in-place-and-back-at-the-end"),
        ("11-mended_attend", every_third_feature, "heads-interleaved"),
        ("11-mended_step", causal_with_a_fill, LOW_FILL),
        ("11-mended_weights", filled_and_times_real, LOW_FILL),
        ("11-mended_weights", lowered_and_times_real, LOW_FILL),
        ("12-mean_pool", divided_by_what_is_not_0, "zeros-not-counted"),
        ("12-mean_pool", mask_as_places, "mask-as-indices"),
        ("12-BertEmbeddings", DropsATenth, "probability-of-your-own"),
        ("12-training_step", step_in_a_loop(lambda logits: logits.exp()), "overflow"),
        (
            "12-training_step",
            step_in_a_loop(lambda logits: (logits - logits.max()).exp()),
            "one-maximum-for-all-and-divided",
        ),
        ("12-training_step", sums_and_leaves_b, "bias-not-moved + loss-summed"),
        ("10-shift_positions", lambda P, shift: torch.roll(P, -int(shift), 0), "rows-moved"),
        ("10-shift_positions", turned_as_pair_3, "speed-of-pair-3-for-all"),
        ("10-beam_step", padded_after_all_are_free, "ended-all-free-then-padded"),
        (
            "05-cache_bytes",
            lambda n, layers, heads, width, bytes_per_number=2, batch_size=1: (
                2 * (n - 1) * layers * heads * width * bytes_per_number * batch_size
            ),
            "last-token-not-kept",
        ),
        ("10-greedy", zeros_behind_the_end_and_no_start, "padding-is-0 + start-left-off"),
        ("09-moved_bytes", moved_in_fractions, "fractions-of-blocks"),
        ("01-kernel_regression", scored_by(lambda d, w: -d / w), "divided-by-the-width-alone"),
        (
            "02-scaled_scores",
            lambda q, k: (q * k).sum(-1) / math.sqrt(q.shape[-1]),
            "paired-one-to-one",
        ),
        (
            "02-causal_mask",
            lambda n: torch.arange(n)[:, None].sub(torch.arange(n)).div(2).floor() == 0,
            "itself-and-the-one-before",
        ),
        (
            "02-scaled_dot_product_attention",
            unscaled_and_one_too_many,
            "not-scaled + one-key-too-many-but-for-0",
        ),
        ("07-most_attended", three_tokens_by_numpy, "always-3"),
        ("07-entropy", entropy_by_two_loops, "one-head-only"),
        ("07-offset_score", offset_of_the_token_before, "always-before-in-a-loop"),
        ("07-find_head", best_layer_and_mean_head, "head-by-average"),
        ("07-steady_head", above_in_any_text, "some-text-is-enough + more-than-at-least"),
        ("07-beyond_offset", beyond_by_the_first_axes, "first-axes-indexed-elsewhere-first"),
        (
            "08-mask_heads",
            lambda X, mask: (
                (X * mask.view(-1, X.shape[1], 1, 1))
                .movedim(1, 2)
                .reshape(len(X), -1, X.shape[1] * X.shape[3])
            ),
            "heads-joined",
        ),
        ("08-prune_heads", cut_by_a_mask, "stale-num_heads"),
        ("08-expected_share", share_of_the_largest_head, "largest-head-only"),
        ("08-smallest_enough", WRONG["08-smallest_enough"]["powers of two"], "powers-of-2"),
        ("08-smallest_enough", WRONG["08-smallest_enough"]["up to 12"], "up-to-a-limit-below-16"),
        ("08-smallest_enough", WRONG["08-smallest_enough"]["up to 64"], "up-to-a-limit"),
        ("05-cache_bytes", cache_of_narrow_heads, "width-shared-out"),
        (
            "05-length_for_share",
            lambda p, d, f: max(1, p * (4 * d + 2 * f) // (100 - p)),
            "rounded-down-to-1-or-more + half-the-pairs",
        ),
        ("05-count_grouped_attention", one_head_of_keys_and_values, "one-kv-head"),
        ("06-additive_mask", mask_by_where, "some-low-number-in-float32"),
        ("06-BertFeedForward", ReluAndSumDropped, "relu + dropout-after-the-sum"),
        ("06-BertLayer", PassedByPosition, "options-swapped"),
        ("06-BertLayer", XAndWeightsFirst, "feed-forward-of-x + weights-first"),
        ("06-PreNormLayer", NormOnTheWayOut, "norms-behind-the-parts"),
        ("06-from_tensorflow", variables_without_biases, "biases-dropped"),
        ("11-mended_step", WRONG["11-mended_step"]["lowest of float64"], "float64-only"),
        ("11-mended_weights", WRONG["11-mended_weights"]["lowest of float64"], "float64-only"),
        ("11-mended_step", causal_at(lambda L, S: S - L - 1), "itself-hidden"),
        ("11-mended_step", causal_at(lambda L, S: L - S), "shifted-the-other-way"),
        (
            "11-mended_step",
            causal_at(lambda L, S: S - L + 1, by_exp=True),
            "next-word-visible + exp-too-large",
        ),
        ("12-load_weights", checked_while_copying, "one-by-one"),
        ("12-load_weights", weights_taken_over, "memory-and-dtype-shared"),
        (
            "12-load_weights",
            find("12-load_weights").build(
                misshapen=lambda own, given: [],
                text=lambda *kinds: ", ".join(n.split(".")[-1] for kind in kinds for n in kind),
            ),
            "misshapen-not-named + ends-of-names",
        ),
        ("12-neighbours", penalties_and_a_sort, "mask-added-for-rows-too"),
        ("12-training_step", summed_at_a_rate_of_its_own, "rate-always-0.1 + loss-summed"),
        ("09-causal_tiles", earlier_keys_only, "own-key-hidden"),
        ("09-moved_bytes", outputs_of_width_d_k, "outputs-as-wide-as-queries"),
        ("09-ring_step", all_kept_and_the_new, "oldest-seen"),
        ("09-group_heads", means_for_every_head, "means-repeated"),
        *((f"09-{task}", WRONG[f"09-{task}"][label], named) for task, label, named in OF_SET_09),
        ("10-bahdanau_step", features_summed_everywhere, "lengths-ignored + w_v-forgotten"),
        ("10-greedy", start_counted_and_cut_off, "start-left-off + one-too-few"),
        ("10-beam_step", the_best_next_tokens, "ended-goes-on + totals-forgotten"),
        ("03-loop_of_heads", a_head_for_each_sequence, "loop-over-sequences"),
        ("03-fold_W_o", all_of_W_o_for_each, "whole-W_o-in-a-loop"),
        ("04-transpose_qkv", slices_that_end_early, "slices-one-short"),
        ("04-MultiHeadAttention", ValuesLikeKeysWithoutDropout, "no-dropout + values-through-W_k"),
        ("04-repack", repack_into_columns, "the-way-back + biases-become-columns"),
        ("04-transpose_grouped", grouped_by_numbers, "flattened-and-reshaped"),
        (
            "04-transpose_grouped",
            grouped_by_tiling,
            "repeated-as-a-whole-without-transpose",
        ),
        *((f"11-{name}", WRONG[f"11-{name}"][key], mistake) for name, key, mistake in OF_SET_11),
        ("12-neighbours", WRONG["12-neighbours"]["told apart by vectors"], "copies-left-out"),
        ("03-output_as_sum", sum_with_pieces_that_begin_late, "last-row-left-out"),
        ("03-loop_of_heads", loop_less_the_largest((2, 3)), "largest-of-the-whole-table"),
        ("03-loop_of_heads", loop_less_the_largest((0, 1, 2, 3)), "largest-of-the-whole-table"),
        (
            "02-causal_mask",
            lambda n: torch.ones(64, 64).tril().bool()[:n, :n],
            "cut-from-a-table",
        ),
        (
            "02-without_key",
            softmax_of_weights_again,
            "softmax-of-weights-hidden-but-for-rows-of-0",
        ),
    ],
)
def test_the_mistake_is_named(task_id, answer, mistake):
    assert told(task_id, answer).mistake == mistake


def given_up(rows):
    """Right, and −inf for these rows."""

    def log_sum_exp(scores, tile):
        return tiled_sum(start=-1e300)(scores, tile).masked_fill(rows(scores), -math.inf)

    return log_sum_exp


def zeros_in_the_end(queries, keys, values, tile):
    return torch.zeros(*queries.shape[:3], values.shape[-1], dtype=values.dtype)


@pytest.mark.parametrize(
    ("task_id", "answer", "not_this"),
    [
        (
            "09-log_sum_exp",
            given_up(lambda scores: (scores == -math.inf).any(-1)),
            "tile-skipped-for-all-rows",
        ),
        (
            "09-log_sum_exp",
            given_up(lambda scores: scores[..., 0] == -math.inf),
            "nan-replaced-at-the-end",
        ),
        ("09-causal_tiles", zeros_in_the_end, "last-tile-dropped"),
        ("09-causal_tiles", WRONG["09-causal_tiles"]["scores cut off"], "nothing-subtracted"),
        ("09-causal_tiles", WRONG["09-causal_tiles"]["small scores cut off"], "starts-at-a-number"),
        ("09-merge_parts", WRONG["09-merge_parts"]["one largest"], "nothing-subtracted"),
    ],
)
def test_a_mistake_that_was_not_made_is_not_named(task_id, answer, not_this):
    feedback = told(task_id, answer)
    assert not feedback.passed
    assert feedback.mistake != not_this


def test_what_two_readings_of_a_test_lack_is_true_of_both():
    with_itself = told("11-my_test", build_my_test(untouched=False))
    assert with_itself.mistake == "inputs-not-looked-at"
    assert "queries.clone()" in with_itself.message
    as_many_keys = told("11-first_test", build_test(tries=((6, 4, [None], 1),)))
    assert "√S is √d_k" in as_many_keys.message
    one_matrix = told("11-MendedAttention", OneMatrixForAll).message
    assert one_matrix.endswith(
        "heads.weight is one matrix for all heads, and each head needs one of its own."
    )


def compared(with_what, accept=torch.allclose):
    """A test that compares with a module that is trusted."""

    def test(Attention):
        attention, trusted = Attention(12, 3).double(), with_what(12, 3).double()
        trusted.load_state_dict(attention.state_dict())
        queries, keys, values = torch.randn(3, 2, 5, 12).double()
        return accept(attention(queries.clone(), keys, values), trusted(queries, keys, values))

    return test


@pytest.mark.parametrize(
    ("task_id", "test", "says"),
    [
        ("11-first_test", compared(build(scale=lambda s, d, H: s)), "makes a mistake itself"),
        ("11-first_test", compared(build(), lambda a, b: not torch.allclose(a, b)), "wrong way"),
        (
            "11-first_test",
            lambda Attention: compared(build())(Attention).mean(),
            "raises AttributeError",
        ),
        ("11-my_test", compared(build()), "For the masks: you need lengths"),
        ("11-my_test", WRONG["11-my_test"]["no False"], "returned nothing, which counts as True."),
        ("11-my_test", WRONG["11-my_test"]["NaN made 0"], "nan_to_num makes a zero of it"),
        ("11-my_test", WRONG["11-my_test"]["not far"], "no comparison with NaN is true"),
        ("11-first_test", WRONG["11-first_test"]["float64 into float32"], "makes them float64"),
    ],
)
def test_a_learners_test_is_told_what_it_lacks(task_id, test, says):
    assert says in str(told(task_id, test))


def test_sizes_in_another_order_may_be_named_so_in_the_def_line():
    message = told("04-MultiHeadAttention", AnotherOrderOfSizes).message
    assert "in another order in your `def` line" in message


def test_matrices_a_little_too_weak_for_100_words_are_told_so():
    weak = told("01-looking_matrices", lambda x: (11 * x, torch.eye(len(x)).double()))
    assert "In a sentence of 100 words" in weak.message and "at least 0.999" in weak.message


@pytest.mark.parametrize("factors", [torch.linalg.qr, lambda W: (W, torch.eye(len(W)).to(W))])
def test_a_factor_that_lies_on_its_side_is_told_so(factors):
    def looking_matrices(looks_at):
        W_q, W_k = factors(50 * looks_at)
        turn = torch.eye(len(W_q)).roll(1, 0).to(W_q)  # so that the second is not symmetric
        return W_q @ turn.T, turn @ W_k

    message = told("01-looking_matrices", looking_matrices).message
    assert message.startswith("W_q @ W_k would make the right weights here")


def test_of_an_expansion_no_differences_are_asked_for():
    def kernel_regression(places, known_places, known_results, width):
        squared = (places**2).sum(1)[:, None] + (known_places**2).sum(1)
        squared = squared + 2 * places @ known_places.T
        return F.softmax(-squared / (2 * width**2), dim=1) @ known_results

    remarks = " ".join(told("01-kernel_regression", kernel_regression).remarks)
    assert "by itself: the squared distances" in remarks


def test_right_weights_are_not_said_to_be_wrong():
    def without_key(output, weights, values, key):
        part, rest = weights[..., [key]], weights.index_fill(-1, torch.tensor(key), 0.0)
        new = (rest / (1 - part)).nan_to_num(0.0)
        return (output - part * values[:, [key]]) / (1 - part), new

    feedback = told("02-without_key", without_key)
    assert feedback.mistake is None
    assert feedback.message.startswith("There is NaN (not a number) in the output")


def attended_by_others(weights, tokens, k=3):
    means = weights.clone().fill_diagonal_(0).mean(0).tolist()
    return sorted(zip(tokens, means, strict=True), key=lambda pair: -pair[1])[:k]


def entropy_above(least):
    return lambda w: -(w * w.masked_fill(w <= least, 1.0).log()).sum(-1)


def offset_by_every_query(weights, offset):
    picked = [weights[..., i, i + offset] for i in range(weights.shape[-1])]
    return torch.stack(picked).mean(0)


def offset_on_both_sides(weights, offset):
    return sum(weights.diagonal(o, -2, -1).mean(-1) for o in (offset, -offset)) / 2


def head_and_layer_from_1(weights, offset):
    scores = weights.diagonal(offset, -2, -1).mean(-1)
    layer, head = divmod(scores.argmax().item(), scores.shape[1])
    return head + 1, layer + 1


def shares(weights, values, W_o, over=(1, 3), finish=lambda shares: shares):
    heads = weights.shape[1]
    vectors = torch.einsum("bhsd,mhd->bhsm", values, W_o.unflatten(1, (heads, -1)))
    brought = weights[..., None] * vectors[:, :, None]
    output = brought.sum(over, keepdim=True)
    return finish((brought * output).sum(-1) / output.square().sum(-1))


def repack_with_the_part_last(packed, num_heads):
    rows = packed.unflatten(0, (num_heads, 3, -1))
    return rows.transpose(1, 2).reshape(packed.shape)


NAMED = [
    ("07-most_attended", attended_by_others, "itself-counted-as-0"),
    ("07-entropy", entropy_above(0.01), "weights-cut-off"),
    ("07-entropy", entropy_above(1e-5), "weights-cut-off"),
    ("07-offset_score", offset_by_every_query, "index-past-the-end-in-a-loop"),
    ("07-offset_score", offset_on_both_sides, "both-sides"),
    ("01-kernel_regression", "dot products from 0", "squares-multiplied-out"),
    ("01-kernel_regression", "float32", "in-float32"),
    ("07-find_head", head_and_layer_from_1, "head-first-and-from-1"),
    ("07-offset_score", "the last pair dropped unless alone", "last-pair-dropped-unless-alone"),
    ("07-offset_score", "the ends left out", "end-queries-left-out"),
    ("07-find_head", "from 0.1 on", "none-where-scores-are-low"),
    ("07-find_head", "scores to 2 digits", "in-half-precision"),
    ("07-offset_score", "a corner over the pairs", "corner-over-the-pairs"),
    ("07-steady_head", "None if one text is too short", "short-counts-as-nan"),
    ("07-steady_head", "place 0 taken for none", "place-0-taken-for-nothing"),
    ("07-shares_along", lambda *given: shares(*given, over=(1, 2, 3)), "all-queries"),
    (
        "07-shares_along",
        lambda *given: shares(*given, finish=lambda parts: parts.transpose(1, 2)),
        "queries-before-heads",
    ),
    ("12-BertEncoder", "no config", "layer-without-config"),
    ("12-load_weights", "last parts of names", "ends-of-names"),
    ("12-load_weights", "parts of names", "names-within-names"),
    ("12-search", "1e-08 added to the product", "norms-made-larger"),
    ("12-search", "1e-08 added to each", "norms-made-larger"),
    ("12-search", "1e-12 added to the product", "norms-made-larger"),
    ("12-neighbours", "product of norms clamped", "norms-made-larger"),
    ("12-classify", "0 taken for no label", "label-0-taken-for-nothing"),
    ("12-classify", "blocks of equal length", "examples-cut"),
    ("12-training_step", "something added in the logarithm", "log-cut-off"),
    ("12-training_step", "probability clamped", "log-cut-off"),
    ("12-training_step", "squared error for loss", "squared-error"),
    ("12-training_step", "logarithm to base 2", "bits"),
    ("07-most_attended", "argsort upwards", "smallest-first"),
    ("07-steady_head", "one query is too few", "one-query-is-too-few"),
    ("07-steady_head", "the best over all queries is asked", "best-of-all-queries-is-tested-alone"),
    ("07-beyond_offset", "turned round", "subtracted-the-other-way"),
    ("12-load_weights", "printed", "nothing-refused"),
    ("12-neighbours", "forbidden ones at the end", "nobody-left"),
    ("12-neighbours", "itself at the end", "itself-at-the-end"),
    ("12-neighbours", "-1 in front", "nobody-first"),
    ("12-neighbours", "-1 for place 0", "place-0-taken-for-nobody"),
    ("12-classify", "centred", "examples-centred"),
    ("12-training_step", "a rate of its own", "rate-always-0.1"),
    ("03-fold_W_o", "W_v in zeros", "W_v-written-into-zeros"),
    ("04-repack", repack_with_the_part_last, "parts-and-features-swapped"),
    ("05-count_attention", "12 heads, cut", "width-cut-to-heads"),
    ("05-length_for_share", "round() of the share", "share-rounded"),
    ("05-length_for_share", "from 2 on", "starts-at-two"),
    ("08-choose_heads", "two stay", "two-stay"),
    ("08-choose_heads", "place taken apart by layers", "placed-wrongly"),
    ("08-key_heads_needed", "a mask of booleans", "key-heads-as-a-mask"),
    ("09-log_sum_exp", "0 kept for nothing", "stand-in-kept"),
    ("09-causal_tiles", "tiles measured by themselves", "each-tile-for-itself"),
    ("09-moved_bytes", "room for all scores", "room-for-all-scores"),
    ("09-ring_step", "shifted when full", "shifted-when-full"),
    ("09-grouped_attention", "H // G heads at a time", "results-in-steps"),
    ("04-transpose_grouped", "groups of three", "groups-of-three"),
    ("04-load_torch_weights", "keys first, biases right", "matrices-exchanged-keys-queries-values"),
    ("06-map_weights", "prefix cut if all have it", "prefix-cut-where-all-have-it"),
    ("02-causal_mask", "one step more", "one-step-more"),
    ("02-window_mask", "the longest for all", "longest-for-all"),
    ("11-mended_attend", "as found", "as-found"),
    ("11-mended_attend", "words in front", "words-in-front-of-heads"),
    ("11-mended_attend", "words in front, fused", "words-in-front-of-heads"),
    ("11-mended_attend", "half of d", "scaled-by-something-else"),
    ("11-mended_step", "less the logarithm", "logarithm-of-large-scores"),
    ("11-mended_step", "fused, upside down", "mask-inverted"),
    ("11-MendedAttention", "turn by turn", "thirds-in-another-order"),
    ("11-MendedAttention", "stacked in front", "heads-joined-across-words"),
    ("11-mended_weights", "zeros if all are empty", "nan-without-a-word"),
    ("11-my_test", "one call, no gradients", "second-call-the-same-and-no-gradients"),
    ("12-mean_pool", "mask inverted, divided by L", "divided-by-length + mask-inverted"),
    ("12-neighbours", "ones in empty places", "empty-rows-answered"),
    ("12-mean_pool", "one mean for all", "words-of-all-texts"),
    ("12-mean_pool", "without [CLS]", "first-token-left-out"),
    ("12-neighbours", "dot products, upwards", "dot-product + worst-first"),
    ("12-neighbours", "NaN of empty places", "mask-added-and-looked-for"),
    ("12-neighbours", "table times used", "hidden-with-0"),
    ("12-BertEmbeddings", "512 positions", "always-512-positions"),
    ("12-BertEmbeddings", "positions by ids, clamped", "positions-by-word-and-clamped"),
    ("05-count_bert", "in float32", "float32"),
    ("05-count_bert", "in thirds of a million", "floats"),
    ("06-BertSelfAttention", "one dropout for all keys", "whole-rows-dropped"),
    ("06-BertSelfAttention", "no lower than -1e9", "mask-clamped-far-below"),
    ("06-BertSelfOutput", "variance by difference", "variance-by-difference"),
    ("06-BertFeedForward", "variance by difference", "variance-by-difference"),
    ("06-map_weights", "the first name decides", "names-with-prefix-missed-behind-others"),
    ("05-count_grouped_attention", "in float32", "float32"),
    ("05-length_for_share", "percent / (100 - percent)", "one-too-many-where-exact"),
    ("05-length_for_share", "with a small tolerance", "near-misses-let-through"),
    ("02-without_key", "the query hidden", "query-hidden"),
    ("02-without_key", "in equal parts to those seen", "evenly-among-those-seen"),
    ("02-without_key", "softmax of the weights above 0", "softmax-of-weights-above-0"),
    ("02-without_key", "kept if alone", "as-it-was-if-alone"),
    ("02-without_key", "the rest of the first sequence", "divided-as-the-first-sequence"),
    ("08-mask_heads", "long", "cut-to-whole-numbers"),
    ("08-head_importance", "norm with signs", "norm-of-the-mean-with-signs"),
    ("08-choose_heads", "best of a column last", "best-of-each-column"),
    ("08-expected_share", "all or nothing", "all-or-nothing"),
    ("08-expected_share", "different values", "different-values-counted"),
    ("08-expected_share", "values that differ", "values-always-different"),
    ("03-strongest_head", "largest or smallest", "sign-decides-ties"),
    ("03-strongest_head", "whole numbers", "terms-cut-to-whole-numbers"),
    ("03-strongest_head", "mean over the words", "one-for-each-sequence"),
    ("03-remove_heads", "all between", "all-between-removed-and-joined"),
    ("03-remove_heads", "index of d_model / H", "d_model-over-H-by-index"),
    ("03-remove_heads", "reshaped", "reshaped"),
    ("04-transpose_qkv", "batch and heads swapped", "batch-and-heads-swapped"),
    ("04-transpose_output", "into a new tensor", "floats-whatever-X-holds"),
    ("04-split_packed", "reshaped at once", "reshaped-at-once"),
    ("04-repack", "six blocks", "two-heads-only"),
    ("04-transpose_grouped", "pieces of the size of a group", "cut-into-group-size"),
    ("05-count_attention", "8 heads of whole width", "width-cut-to-heads"),
    ("05-count_attention", "12 heads, or one", "width-cut-to-heads"),
    ("05-cache_bytes", "keys + values * bytes", "bytes-of-one-only"),
    ("05-head_width", "nearly whole", "refused-sometimes"),
    ("05-length_for_share", "the last that does not reach it", "one-too-few-from-1-on"),
    ("05-longest_text", "two quotients", "floats"),
    ("05-longest_text", "a fifth kept free", "part-kept-free"),
    ("05-longest_text", "in float32", "floats"),
    ("07-most_attended", "rounded to 6 digits", "rounded"),
    ("07-most_attended", "sorted by 5 digits", "rounded-before-the-order"),
    ("07-most_attended", "set to 0", "taken-as-0"),
    ("07-most_attended", "no zeros", "nothing-left-out"),
    ("07-most_attended", "the larger of two places", "same-words-largest"),
    ("07-entropy", "1e-12 added", "added-1e-12"),
    ("07-entropy", "cut off at 1e-12", "weights-cut-off"),
    ("07-entropy", "below 1e-10 left out", "weights-cut-off"),
    ("07-offset_score", "the last query left out", "last-query-left-out"),
    ("07-offset_score", "query 0 left out", "first-query-left-out"),
    ("07-offset_score", "key 0 left out", "first-key-left-out"),
    ("07-offset_score", "two slices", "slice-up-to-minus-0"),
    ("07-find_head", "not the last layer", "last-layer-missed"),
    ("07-find_head", "rounded to 5 digits", "in-half-precision"),
    ("07-steady_head", "a thousandth less", "nearly-enough"),
    ("07-steady_head", "rounded", "nearly-enough"),
    ("07-steady_head", "in half precision", "nearly-enough"),
    ("07-steady_head", "half of them", "half-of-the-texts-are-enough"),
    ("07-steady_head", "all but one", "all-texts-but-one-are-enough"),
    ("07-steady_head", "the best of all", "best-of-all-if-one-passes"),
    ("07-steady_head", "the last that passes", "last-that-passes"),
    ("07-steady_head", "by the median", "largest-median"),
    ("07-steady_head", "by layers", "divided-by-layers"),
    ("07-steady_head", "padding of long texts", "padding-counted-in-long-texts"),
    ("07-steady_head", "padding as keys of long texts", "padding-as-keys-in-long-texts"),
    ("07-steady_head", "padding as queries", "padding-as-queries"),
    ("07-steady_head", "without the first token", "first-token-left-out"),
    ("07-steady_head", "sums", "added-not-averaged"),
    ("07-steady_head", "divided by n - offset", "divided-by-length-less-offset"),
    ("07-steady_head", "as long as the offset", "as-long-as-the-offset-counts"),
    ("07-steady_head", "long enough to look back", "left-out-if-back-only"),
    ("07-steady_head", "NaN of texts too short", "short-counts-as-nan"),
    ("07-steady_head", "the last text passes", "last-text-decides"),
    ("07-steady_head", "the first text passes", "first-text-decides"),
    ("07-steady_head", "halves", "running-mean"),
    ("07-steady_head", "until one is short", "stopped-at-a-short-text"),
    ("07-steady_head", "a dict of lengths", "one-text-of-each-length"),
    ("07-beyond_offset", "without the last query", "last-query-left-out"),
    ("07-beyond_offset", "without query 0", "first-query-left-out"),
    ("07-beyond_offset", "the pair turned", "weight-of-the-turned-pair"),
    ("07-beyond_offset", "a row for each pair", "pairs-not-averaged"),
    ("07-shares_along", "reshaped", "reshaped"),
    ("07-shares_along", "turned and reshaped", "reshaped-turned"),
    ("07-shares_along", "1e-6 added", "small-number-added"),
    ("08-mask_heads", "the first axis of that length", "axis-by-its-size"),
    ("08-mask_heads", "one for each example if as long", "axis-by-its-size"),
    ("08-mask_heads", "relu", "from-0-to-1"),
    ("08-mask_heads", "at most 1", "from-0-to-1"),
    ("08-head_importance", "1e-20 added", "small-number"),
    ("08-head_importance", "at least 1e-16", "small-number"),
    ("08-head_importance", "undivided if one is 0", "one-norm-of-0-none-divided"),
    ("08-head_importance", "all 0 if one is 0", "one-norm-of-0-all-become-0"),
    ("08-prune_heads", "width of the queries", "width-of-in_features"),
    ("08-prune_heads", "width by the number that stays", "width-by-the-number-that-stays"),
    ("08-key_heads_needed", "in the order of a set", "in-order-of-a-set"),
    ("08-key_heads_needed", "modulo the size", "modulo-the-size-of-a-group"),
    ("08-choose_heads", "mended once", "put-back-once"),
    ("08-choose_heads", "protected by 1e9", "protected-too-low"),
    ("08-choose_heads", "raised by 1e9", "protected-too-low"),
    ("08-choose_heads", "times 1e9", "protected-too-low"),
    ("08-expected_share", "a set of groups", "equal-groups-once"),
    ("08-expected_share", "repeats", "repeats-as-of-one-value"),
    ("08-expected_share", "permutations", "never-equal"),
    ("08-expected_share", "values from 1", "one-value-too-few"),
    ("08-smallest_enough", "in the order of a set", "first-of-a-set"),
    ("08-smallest_enough", "as text", "first-as-text"),
    ("08-smallest_enough", "more than half", "mean-not-worst"),
    ("08-smallest_enough", "the first runs", "first-of-the-runs"),
    ("08-smallest_enough", "the last runs", "last-of-the-runs"),
    ("08-smallest_enough", "1e-4 less", "rounded"),
    ("08-smallest_enough", "bfloat16", "rounded"),
    ("08-smallest_enough", "missed by a thousandth", "rounded"),
    ("07-most_attended", "sorted by 3 digits of it", "rounded-before-the-order"),
    ("07-most_attended", "over those who look", "mean-of-those-who-look"),
    ("07-entropy", "over ln S, of one key over ln 2", "divided-by-the-largest"),
    ("07-entropy", "yes or no of each key", "complements-too"),
    ("07-offset_score", "squeezed", "axes-of-length-1-lost"),
    ("07-offset_score", "each (L + 1)th number", "flat-steps-run-on"),
    ("07-find_head", "the largest number of a best head", "argmax-of-argmax"),
    ("03-fold_W_o", "W_v made wide by a reshape", "W_v-reshaped-to-wide"),
    ("03-strongest_head", "squeezed", "axes-of-size-1-lost"),
    ("03-strongest_head", "furthest in the direction of the output", "share-of-the-sum"),
    ("03-remove_heads", "numbers moved back, by slices", "numbers-moved-back-below-0"),
    ("03-remove_heads", "the last head into the gap", "last-into-the-gap"),
    ("03-remove_heads", "rows of zeros go too", "zero-heads-removed-too"),
    ("03-one_head", "less the largest of each column", "largest-of-each-column"),
    ("03-one_head", "two letters for the batch", "keys-of-all-sequences-added"),
    ("03-loop_of_heads", "as many heads as fit", "as-many-as-fit"),
    ("03-loop_of_heads", "no axis for the heads", "sequences-meet-heads"),
    ("03-loop_of_heads", "places from h * d_k on", "places-from-d_k"),
    ("03-output_as_sum", "from zeros like a head", "sum-as-wide-as-a-head"),
    ("03-output_as_sum", "columns turned", "columns-turned"),
    ("03-neighbour_weights", "products of places", "products-of-places"),
    ("03-neighbour_weights", "all features shifted", "all-features-shifted"),
    ("10-beam_step", "the best last", "in-the-order-of-beams"),
    ("10-beam_step", "totals added late", "totals-added-late"),
    ("10-shift_positions", "halves, put back in pairs", "halves"),
    ("10-shift_positions", "speeds that rise", "other-speeds"),
    ("07-beyond_offset", "the mean of both sides", "both-sides-in-the-baseline"),
    ("07-shares_along", "cosines, NaN where nothing is brought", "cosines"),
    ("01-softmax", "shifted if large", "nan-far-below-0"),
    ("01-softmax", "1 for NaN", "nan-turned-into-1"),
    ("01-attend", "keys reshaped", "keys-reshaped"),
    ("01-attend", "softmax at the end", "softmax-of-the-result"),
    ("01-attention", "half of the squared distance", "distances"),
    ("01-attention", "less the largest of each key", "largest-of-each-key"),
    ("01-attention", "0 hidden", "scores-of-0-hidden"),
    ("01-additive_scores", "by the addition theorem", "tanh-of-powers"),
    ("01-additive_scores", "axis in front of the batch", "queries-meet-other-sentences"),
    ("01-additive_scores", "both repeated as a whole", "queries-repeated-as-a-whole"),
    ("01-additive_scores", "one matrix where it fits", "query-matrix-for-both-where-it-fits"),
    ("08-mask_heads", "squeezed", "squeezed"),
    ("08-head_importance", "the median", "median-of-the-examples"),
    ("08-prune_heads", "the others, by an index", "kept-and-removed-swapped-by-index"),
    ("08-key_heads_needed", "whole groups, in a tensor without a dtype", "whole-groups-only"),
    ("08-smallest_enough", "the place of a run", "place-of-a-run"),
    ("01-query_for", "the last key left out", "last-key-left-out"),
    ("01-query_for", "equal keys merged", "equal-keys-merged"),
    ("01-query_for", "a tolerance of 0.01", "small-differences-ignored"),
    ("10-greedy", "filled up by argmax", "rows-without-end-erased"),
    ("10-greedy", "END at the limit", "end-put-last"),
    ("10-beam_step", "numbered through", "numbered-through-the-batch"),
    ("10-shift_positions", "d speeds", "speed-for-each-feature"),
    ("07-beyond_offset", "a dict of the pairs", "one-pair-of-each-query"),
    ("05-count_attention", "the third power", "width-cubed"),
    ("05-attention_flops", "d squared for the pairs", "width-squared-in-the-pairs"),
    ("01-predictions", "two names exchanged", "two-exchanged"),
    ("01-query_for", "last pair left out", "last-difference-left-out"),
    ("01-query_for", "first pair left out", "first-difference-left-out"),
    ("01-looking_matrices", "eigenvectors of a table that is not symmetric", "half-of-the-table"),
    ("01-looking_matrices", "a row shared out among its kinds", "rows-divided-with-care"),
    ("06-additive_mask", "hidden from the first padding on", "hidden-from-the-first-padding-on"),
    ("06-BertSelfAttention", "X dropped", "dropout-on-X"),
    ("06-BertSelfAttention", "scores no lower than -1e4", "scores-clamped"),
    ("10-shift_positions", "position from the slowest pair", "position-not-found"),
    ("10-greedy", "cut behind the last word", "columns-of-padding-cut"),
    ("08-choose_heads", "guarded by 1", "protected-too-low"),
    ("08-choose_heads", "0 means gone", "nothing-of-none-stays"),
    ("08-expected_share", "nothing in a tie", "nothing-in-a-tie"),
    ("08-smallest_enough", "heads sorted alone", "heads-sorted"),
    ("08-smallest_enough", "bisected", "halved"),
    ("02-masked_softmax", "scores of 0 hidden", "score-of-0-hidden"),
    ("02-scaled_dot_product_attention", "lengths of at least 1", "length-0-counts-as-1"),
    ("07-most_attended", "number of the first place", "number-of-the-first-place"),
    ("07-most_attended", "shares of those shown", "shares-of-those-shown"),
    ("07-entropy", "entropy of the mean row", "rows-averaged-first"),
    ("07-entropy", "rounded to 4 digits", "rounded"),
    ("07-offset_score", "median", "median-of-the-pairs"),
    ("07-offset_score", "one further", "one-further-away"),
    ("08-mask_heads", "heads with factor 0 are gone", "heads-removed"),
    ("08-head_importance", "0 beside a head of 0", "one-head-of-0"),
    ("08-head_importance", "alike where all are 0", "equal-where-all-are-0"),
    ("08-head_importance", "standardised, all of them", "standardised"),
    ("08-head_importance", "added up", "sum-without-norm"),
    ("08-key_heads_needed", "from the largest", "largest-first"),
    ("08-key_heads_needed", "first users", "where-each-is-used-first"),
    ("08-key_heads_needed", "groups of what stays, at least 1", "size-by-what-stays-and-not-0"),
    ("03-remove_heads", "the first ones", "first-ones-removed"),
    ("03-remove_heads", "every H-th column", "heads-take-turns-one-by-one"),
    ("03-remove_heads", "d_k columns of W_v", "d_k-for-the-columns-of-W_v"),
    ("07-offset_score", "root of the mean square", "root-mean-square"),
    ("07-offset_score", "geometric mean", "mean-of-the-logarithms"),
    ("07-offset_score", "without the first pair", "first-pair-dropped"),
    ("03-fold_W_o", "two letters for the heads", "rows-of-all-heads-added"),
    ("03-neighbour_weights", "contents added up", "contents-added-up"),
    ("09-group_heads", "root mean square", "root-mean-square"),
    ("09-group_heads", "groups that overlap", "groups-overlap"),
    ("09-group_heads", "rows repeated", "means-repeated"),
]


@pytest.mark.parametrize(("task_id", "answer", "mistake"), NAMED)
def test_one_of_the_lessons_answers_is_named(task_id, answer, mistake):
    answer = WRONG[task_id][answer] if isinstance(answer, str) else answer
    assert told(task_id, answer).mistake == mistake


def test_matrices_without_gradient_are_named():
    cut = WRONG["06-BertSelfOutput"]["no_grad"]
    assert told("06-BertSelfOutput", cut).message.startswith("No gradient reaches W_o.weight:")
    cut = WRONG["06-BertSelfAttention"]["detached"]
    names = "W_q.weight and W_k.weight"
    assert told("06-BertSelfAttention", cut).message.startswith(f"No gradient reaches {names}:")


def test_nan_is_called_nan():
    class BertEmbeddings(find("12-BertEmbeddings").build()):
        def forward(self, *given):
            rate, self.rate = self.rate, 0.0
            output, self.rate = super().forward(*given), rate
            if not self.training:
                return output
            return output * (torch.rand_like(output) >= rate) / (1 - rate)

    assert "the result holds NaN" in told("12-BertEmbeddings", BertEmbeddings).message


def test_a_parameter_in_place_of_a_module_is_seen():
    class BertEmbeddings(find("12-BertEmbeddings").build()):
        def __init__(self, config):
            super().__init__(config)
            del self.positions
            self.positions = nn.Parameter(torch.zeros(config.max_position_embeddings, 3))

    message = told("12-BertEmbeddings", BertEmbeddings).message
    assert "positions is itself a parameter" in message


@pytest.mark.parametrize("which", ["documents", "query"])
def test_changing_the_callers_tensors_is_all_that_is_said_of_it(which):
    def search(query, documents, k=3):
        if which == "documents":
            documents /= documents.norm(dim=1, keepdim=True)
            query = query / query.norm()
        else:
            documents = documents / documents.norm(dim=1, keepdim=True)
            query /= query.norm()
        cosines = documents @ query
        order = cosines.argsort(descending=True, stable=True)[:k]
        return [(index, cosines[index].item()) for index in order.tolist()]

    feedback = told("12-search", search)
    assert feedback.mistake is None
    assert f"changes the caller's `{which}`" in feedback.message


def test_a_stage_counts_though_one_of_its_pieces_equals_an_input():
    def keys_in_reverse(X, W_q, W_k, W_v, W_o):
        heads = [one_head(X, W_q[h], W_k[-1 - h], W_v[h]) for h in range(len(W_q))]
        return torch.cat(heads, -1) @ W_o

    as_if, remark = told("03-loop_of_heads", keys_in_reverse).remarks
    assert as_if.endswith("right if `W_k` were in reverse order along the first axis.")
    assert "step that none of your tensors holds by itself" in remark
    assert "by itself: the values of every head" not in remark


def test_after_an_error_nothing_is_said_of_the_steps_that_it_prevented():
    def too_many_heads(X, W_q, W_k, W_v, W_o):
        heads = [one_head(X, W_q[h], W_k[h], W_v[h]) for h in range(len(W_q) + 1)]
        return torch.cat(heads, -1) @ W_o

    feedback = told("03-loop_of_heads", too_many_heads)
    assert "IndexError" in feedback.message
    assert feedback.remarks[0].startswith(
        "Right so far, with a name in your code or without: the weighted sums"
    )
    assert feedback.remarks[0].endswith("Then comes the error.")


def test_the_step_of_a_module_that_differs_is_named():
    feedback = told("11-MendedAttention", WRONG["11-MendedAttention"]["half the scale"])
    assert feedback.remarks[0] == (
        "Right so far, with a name in your code or without: the product of X with each head's "
        "matrix. The next step that none of your tensors holds by itself: the divided scores. "
        "Look between the two, unless you go another way."
    )


def chosen_by_chance(means):
    return sorted(range(len(means)), key=lambda place: str(means[place])[::-1])


def test_where_other_ways_are_as_good_a_step_that_is_missing_is_not_named():
    def by_torch(weights, tokens, k=3):
        means = weights.mean(dim=0).tolist()
        return [(tokens[place], means[place]) for place in chosen_by_chance(means)[:k]]

    def by_python(weights, tokens, k=3):
        means = [sum(column) / len(column) for column in zip(*weights.tolist(), strict=True)]
        return [(tokens[place], means[place]) for place in chosen_by_chance(means)[:k]]

    def changed(weights, tokens, k=3):
        return [(tokens.pop(), number) for number in weights.mean(dim=0).tolist()[:k]]

    right = (
        "Right so far, with a name in your code or without: the mean of what each place gets. "
        "Look at what you make of it."
    )
    assert right not in told("07-most_attended", changed).remarks
    assert right in told("07-most_attended", by_torch).remarks
    assert "by itself" not in str(told("07-most_attended", by_python))


def test_the_steps_inside_the_fused_function_are_seen():
    def with_the_values_turned_round(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        allowed = torch.ones(L, S, dtype=torch.bool).tril(S - L)
        return F.scaled_dot_product_attention(queries, keys, values.flip(2), allowed)

    feedback = told("11-mended_step", with_the_values_turned_round)
    assert feedback.remarks == (
        "What you return would be right if `values` were in reverse order along the third axis.",
        "Right so far, with a name in your code or without: the weights. The next step that none "
        "of your tensors holds by itself: the output. Look between the two, unless you go "
        "another way.",
    )


def test_a_part_that_was_right_on_the_way_is_told_so():
    def weighed_twice(queries, keys, values, valid_lens=None):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        weights = masked_softmax(scores, valid_lens).softmax(-1)
        return weights @ values, weights

    assert told("02-scaled_dot_product_attention", weighed_twice).remarks[0] == (
        "On the way your code has the table of weights as asked for, but it returns something "
        "else. What happens in between?"
    )


def test_a_name_cut_short_is_told_so():
    def load_weights(model, state_dict):
        own = dict(model.named_parameters())
        wrong = [n for n in own if n not in state_dict]
        wrong += [n for n in state_dict if n not in own or state_dict[n].shape != own[n].shape]
        if wrong:
            raise ValueError(" ".join(name.removesuffix(".weight") for name in wrong))
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state_dict[name])

    message = told("12-load_weights", load_weights).message
    assert "in full. It says words, and the name goes on." in message


def test_none_is_no_sign_of_a_missing_return_where_it_may_be_the_answer():
    message = told("08-smallest_enough", lambda *study: None).message
    assert message.startswith("smallest_enough returns None, as if no number of heads were enough.")


def test_numbers_that_were_not_there_before_are_named():
    message = told("08-prune_heads", removes_from_new_layers).message
    assert "other numbers than before: W_q.weight, W_k.weight, W_v.weight, W_o.weight." in message


def test_a_missing_return_is_asked_for():
    def softmax(x):
        torch.exp(x)

    assert told("01-softmax", softmax).message.endswith(
        "got None. Is there a `return`, and is it reached?"
    )


def test_dropout_in_eval_mode_is_told_even_where_few_numbers_are():
    always = output(lambda Y, Z, drop: F.dropout(Y, 0.1) + Z)
    for _ in range(5):
        message = told("06-BertSelfOutput", always).message
        assert message.startswith("In eval mode the output differs from one call to the next")


def test_a_function_of_torch_is_called_by_a_name_that_it_has():
    for name, answer in (("special.", torch.special.softmax), ("", torch.Tensor.softmax)):
        said = told("01-softmax", lambda x, answer=answer: answer(x, -1)).message
        assert f"calls torch.{name}softmax." in said
    said = told("01-attention", torch.nn.functional.scaled_dot_product_attention).message
    assert "calls torch.nn.functional.scaled_dot_product_attention." in said


def softmax_off_in_one_place(x):
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True) + 0.1 * (x == 2)


def test_a_place_is_named_by_its_indices():
    message = told("01-softmax", softmax_off_in_one_place).message
    assert "the first at [0, 2]: it is" in message


NUMBERS = [
    ("05-count_bert", lambda d, n, right: right + d, "too large by one number for each feature"),
    (
        "05-count_bert",
        lambda d, n, right: right - 2 * d * d - 2 * d,
        "too small by twice the pooler",
    ),
    ("05-count_bert", lambda d, n, right: right + 1, "too large by 1."),
    ("05-count_bert", lambda d, n, right: 5 * right, "5 times the right number."),
    (
        "05-count_bert",
        lambda d, n, right: right + d * d - 2 * n * d,
        "too large by the matrix of the pooler, and too small by one LayerNorm in each block.",
    ),
    (
        "05-count_bert",
        lambda d, n, right: right + d**3,
        "In each case tried in which it is wrong, it is too large.",
    ),
]


@pytest.mark.parametrize(("task_id", "change", "words"), NUMBERS)
def test_by_what_a_count_is_off(task_id, change, words):
    right = find(task_id).build()

    def count_bert(vocab_size, num_hiddens, num_layers, *more, **others):
        count = right(vocab_size, num_hiddens, num_layers, *more, **others)
        return change(num_hiddens, num_layers, count)

    feedback = told(task_id, count_bert)
    said = " ".join([feedback.message, *feedback.remarks])
    assert words in said, said


@pytest.mark.parametrize(("by", "blamed"), [(-1, False), (1, True)])
def test_of_a_count_that_is_1_too_small_no_argument_is_blamed(by, blamed):
    """What is cut off to a whole number is too small here and right there, by chance."""
    right = find("05-cache_bytes").build()

    def cache_bytes(n, layers, heads, width, bytes_per_number=2, batch_size=1):
        count = right(n, layers, heads, width, bytes_per_number, batch_size)
        return count + by * (batch_size > 1)

    first, *others = told("05-cache_bytes", cache_bytes).remarks
    how = "too large" if by > 0 else "too small"
    assert first == f"In each case tried in which it is wrong, it is {how} by 1."
    assert any("where batch_size is left out" in remark for remark in others) == blamed


def test_a_product_is_off_by_a_factor():
    def cache_bytes(num_tokens, num_layers, *more, **others):
        return find("05-cache_bytes").build()(num_tokens, num_layers, *more, **others) * num_layers

    remark = told("05-cache_bytes", cache_bytes).remarks[0]
    number = "the right number times the number of layers"
    assert remark == f"In every case where it is wrong, it is {number}."


def test_a_product_is_off_by_a_quotient():
    def attention_table(n, num_layers, num_kv_heads, head_width, bytes_per_number=2, batch_size=1):
        return n * n * num_layers * num_kv_heads * bytes_per_number * batch_size

    remark = told("05-cache_bytes", attention_table).remarks[0]
    ratio = "the right number times the number of tokens, divided by the width of a head"
    assert remark == f"In every case it is half of {ratio}."


def test_the_solver_that_the_statement_names_solves_the_equations():
    def query_for(keys, weights):  # the constant is one more unknown
        table = torch.hstack([keys, -torch.ones_like(keys[:, :1])])
        scores = weights.log()[:, None]
        return torch.linalg.lstsq(table, scores, driver="gelsd").solution[:-1, 0]

    assert diagnose("01-query_for", query_for).passed


def test_a_number_is_off_by_products_of_arguments():
    def with_the_weights(tokens, layers, heads, width, bytes_per_number=2, batch_size=1):
        return (2 * width + tokens) * tokens * layers * heads * bytes_per_number * batch_size

    def twice_the_width(n, d):
        return 8 * n * (d * 2) + 4 * n * n * d

    said = "num_tokens² · num_layers · num_kv_heads · bytes_per_number · batch_size"
    remarks = told("05-cache_bytes", with_the_weights).remarks
    assert remarks == (f"In every case it is too large by {said}.",)
    assert told("05-attention_flops", twice_the_width).remarks[0] == (
        "In every case where it is wrong, it is too large by 16 · num_tokens · num_hiddens, and "
        "too small by 8 · num_tokens · num_hiddens²."
    )


def test_of_two_mistakes_in_a_count_it_is_also_said_by_what_it_is_off():
    task = find("05-count_block")
    one, other = (m for m in task.mistakes if m.id in ("one-layer-norm", "ffn-biases-forgotten"))
    feedback = told(task.id, task.build(**one.parts, **other.parts))
    assert feedback.mistake == "one-layer-norm + ffn-biases-forgotten"
    said = "too small by the biases of the feed-forward network and 2 numbers for each feature."
    assert feedback.message.startswith(f"In every case it is {said} Two mistakes together")


def test_of_a_count_it_is_said_if_two_arguments_were_exchanged():
    def count_bert(V, d, ffn_num_hiddens, num_layers, max_len=512, num_segments=2):
        return find("05-count_bert").build()(
            V, d, num_layers, ffn_num_hiddens, max_len, num_segments
        )

    right = "What you return would be right if `num_layers` and `ffn_num_hiddens` were exchanged."
    assert right in told("05-count_bert", count_bert).remarks


def test_of_what_is_counted_for_each_where_it_is_there_once_this_is_said():
    def bias_of_W_o_in_each_head(d, num_heads, num_kv_heads, head_width, bias=True):
        right = find("05-count_grouped_attention").build()
        count = right(d, num_heads, num_kv_heads, head_width, bias)
        return count + bias * d * (num_heads - 1)

    remark = told("05-count_grouped_attention", bias_of_W_o_in_each_head).remarks[0]
    said = "it is too large by the bias of W_o times (the number of heads - 1)."
    assert remark == f"In every case where it is wrong, {said}"


def test_a_mistake_of_several_forms_is_named_only_if_one_of_them_explains_all_cases():
    """A search for the largest score that begins at 0 cuts nothing off. Where all scores are low
    it gives NaN, as scores cut off above may, elsewhere the right weights, as if cut off below."""

    def attend(query, keys, values):
        scores = keys @ query
        powers = (scores - max(0, *scores.tolist())).exp()
        return powers / powers.sum() @ values

    assert told("01-attend", attend).mistake == "nan-far-below-0"


def test_zeros_are_no_step_where_the_steps_before_are_missing():
    def cut_to_the_longest(queries, keys, values, valid_lens=None):
        longest = keys.shape[1] if valid_lens is None else int(valid_lens.max())
        keys, values = keys[:, :longest], values[:, :longest]
        return scaled_dot_product_attention(queries, keys, values, lens_mask(valid_lens, longest))

    def lens_mask(lens, S):
        if lens is None:
            return None
        mask = torch.arange(S) < lens[..., None]
        return mask[:, None] if lens.dim() == 1 else mask

    said = " ".join(told("02-scaled_dot_product_attention", cut_to_the_longest).remarks)
    assert "with a name in your code" not in said


def test_small_numbers_of_a_case_are_shown():
    search = find("12-search")
    (mistake,) = (m for m in search.mistakes if m.id == "norms-made-larger")
    wrong = mistake.wrong or search.build(**mistake.parts)
    (_, shown), *_ = (d for d in told("12-search", wrong).details if d[0].startswith("case"))
    assert "e-07" in shown and "[0.0, 0.0" not in shown


def test_a_small_number_takes_no_digits_from_a_large_one_beside_it():
    given = Case("far apart", {"x": torch.tensor([300000.3, 2.5e-6, 0.25], dtype=torch.float64)})
    _, shown = describe_case(find("01-softmax"), given)
    assert shown == "x = [300000.3, 2.5e-06, 0.25]"


def test_a_number_that_is_the_same_each_time_is_said_to_be():
    def count_attention(num_hiddens, bias=True):
        return 4 * num_hiddens**2 + (12 if bias else 0)

    remark = told("05-count_attention", count_attention).remarks[0]
    assert remark == "In place of 4 times the bias of one matrix you count 12 each time."


def test_two_readings_of_the_same_numbers_are_both_offered():
    task = find("05-count_block")
    (mistake,) = (m for m in task.mistakes if m.id == "biases-forgotten")
    feedback = told("05-count_block", task.build(**mistake.parts))
    assert feedback.mistake == "biases-forgotten"
    assert feedback.remarks[0].startswith("Or two other things that together give the same numbers")


def test_of_a_count_it_is_said_what_is_missing_and_not_where():
    def count_block(d, f):
        return 4 * d * d + 3 * d + 2 * d * f + f + d + 4 * d

    assert "or that of W_o" in told("05-count_block", count_block).message

    def count_bert(V, d, n, f, max_len=512, num_segments=2):
        blocks = n * (4 * d * (d + 1) + 2 * d * f)
        return (V + max_len + num_segments) * d + 2 * d + blocks + d * (d + 1)

    message = told("05-count_bert", count_bert).message
    assert "both LayerNorms and the biases of the feed-forward network" in message


@pytest.mark.parametrize(
    ("task_id", "mistake"),
    [
        ("05-attention_flops", "macs-not-flops"),
        ("05-attention_flops", "one-projection"),
        ("05-longest_text", "two-bytes-always"),
        ("05-count_block", "weights-only"),
        ("05-count_bert", "one-table-only"),
        ("05-count_bert", "embedding-norm-in-every-block"),
    ],
)
def test_a_mistake_is_not_told_again_as_two_halves(task_id, mistake):
    task = find(task_id)
    (known,) = (m for m in task.mistakes if m.id == mistake)
    feedback = told(task_id, task.build(**known.parts))
    assert (feedback.mistake, feedback.remarks) == (mistake, ())


@pytest.mark.parametrize(("task_id", "answer"), NO_INTS)
def test_a_whole_number_that_is_no_int_is_told_so(task_id, answer):
    feedback = diagnose(task_id, answer)
    assert feedback.message == (
        "Every number is right, and where an int is asked for there is none: / and factors such as "
        "4.0 make floats, // does not."
    )


def test_a_cell_that_failed_is_not_judged_by_the_one_before(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("HOME", str(tmp_path))
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    said = []
    monkeypatch.setattr("mha_classroom.checks._show", lambda feedback, _: said.append(feedback))

    def run(cell):
        return shell.run_cell(cell, store_history=True, silent=False).success

    right = (
        "    e = torch.exp(x - x.amax(-1, keepdim=True))\n    return e / e.sum(-1, keepdim=True)"
    )
    assert run("import torch\nfrom mha_classroom.checks import check")
    assert run("def softmax(x):\n    return torch.exp(x)")
    assert not run("check('01-softmax', softmax)")
    assert not run(f"def softmax(x):\n  y = x\n{right}")
    assert not run("check('01-softmax', softmax)")
    assert run(f"def softmax(x):\n{right}")
    assert run("check('01-softmax', softmax)")
    assert [feedback.kind for feedback in said] == ["mistake", "not run", "passed"]
    assert "The last cell with `def softmax` ended in an error" in said[1].message


def test_both_modules_in_eval_mode_are_told_together():
    def load(attention, reference):
        find("04-load_torch_weights").reference(attention.eval(), reference.eval())

    message = told("04-load_torch_weights", load).message
    assert "attention and reference are in eval mode, and before they were in training" in message


def test_eval_mode_and_frozen_parameters_are_told_together():
    def load(attention, reference):
        find("04-load_torch_weights").reference(attention.eval(), reference)
        attention.W_k.requires_grad_(False)

    message = told("04-load_torch_weights", load).message
    assert "attention is in eval mode" in message
    assert "requires_grad is False for W_k.weight" in message


def offset_of_roots(weights, offset):
    return weights.diagonal(offset, dim1=-2, dim2=-1).pow(0.9).mean(dim=-1)


def attended_by_roots(weights, tokens, k=3):
    means = weights.pow(0.9).mean(dim=0)
    order = means.argsort(descending=True, stable=True).tolist()[:k]
    return [(tokens[i], means[i].item()) for i in order]


def without_two_at_most(W_q, W_k, W_v, W_o, num_heads, removed):
    stay = [h for h in range(num_heads) if h not in removed[:2]]
    cut = [W.unflatten(1, (num_heads, -1))[:, stay].flatten(1) for W in (W_q, W_k, W_v)]
    return *cut, W_o.unflatten(0, (num_heads, -1))[stay].flatten(0, 1)


def three_too_long(percent, num_hiddens, ffn_num_hiddens):
    return -(-percent * (2 * num_hiddens + ffn_num_hiddens) // (100 - percent)) + 3


def seen(scores, valid_lens):
    """The scores, minus infinity past the length."""
    lens = torch.tensor([scores.shape[-1]]) if valid_lens is None else valid_lens
    lens = lens[:, None] if lens.dim() == 1 else lens
    return scores.masked_fill(torch.arange(scores.shape[-1]) >= lens[..., None], -torch.inf)


def key_heads(X, num_heads, num_kv_heads):
    heads = X.unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    return heads.repeat_interleave(num_heads // num_kv_heads, 1).flatten(0, 1)


def split_heads(X, num_heads):
    return X.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)


def written_and(changed):
    write = find("10-greedy").build()
    return lambda *inputs: changed(write(*inputs))


def wider_by_2(num_hiddens, num_heads):
    if num_hiddens % num_heads:
        raise ValueError(f"{num_hiddens} {num_heads}")
    return num_hiddens // num_heads + 2


def three_heads_counted_too_many(attention, heads):
    find("08-prune_heads").build()(attention, heads)
    attention.num_heads += 3


def pairs_of_query_heads(kept, num_heads, num_kv_heads):
    used = kept // (num_heads // num_kv_heads)
    return torch.unique(used), torch.unique(kept, return_inverse=True)[1] // 2


@pytest.mark.parametrize(
    ("task_id", "answer", "words"),
    [
        (
            "01-predictions",
            lambda: {**predictions(), "new_output": 3.217},
            "new_output: Which weights has the second question, and which values?",
        ),
        (
            "01-query_for",
            lambda keys, weights: 0.3 * keys[0] + keys[-1],
            "differ from the first of them by 6.3. For these weights they have to differ by 1.386.",
        ),
        (
            "03-remove_heads",
            without_two_at_most,
            "Your W_q holds heads 1 and 2. Asked for: head 2.",
        ),
        (
            "05-length_for_share",
            three_too_long,
            "With 9 tokens the pairs need 50 %. With 12 tokens the pairs need 57.142857 %.",
        ),
        ("07-most_attended", attended_by_roots, "gets these weights from the queries: 0.4, 0.6"),
        (
            "07-offset_score",
            offset_of_roots,
            "3 queries have a key at offset -1. What they give to it: 0.6, 0.5, 0.4.",
        ),
        (
            "07-find_head",
            lambda weights, offset: (0, 1),
            "Layer 1, head 0 has the score 0.8, the head that you return 0.4.",
        ),
        (
            "07-steady_head",
            lambda weights, lens, offset, at_least: (0, 1),
            "Layer 0, head 1: scores in the texts 0.2531, 0.1263, 0.2567.",
        ),
        (
            "07-steady_head",
            lambda *_: None,
            "Layer 0, head 1: scores in the texts 0.8, 0.7.",
        ),
        (
            "08-prune_heads",
            lambda attention, heads: heads_left(attention, heads[:1], attention.num_heads - 1),
            "Your W_q.weight holds heads 1, 2, 3 and 4. Asked for: heads 1, 2 and 4.",
        ),
        (
            "08-key_heads_needed",
            pairs_of_query_heads,
            "These query heads use key heads 0, 1, 1, one after another.",
        ),
        (
            "08-choose_heads",
            lambda importance, num_off: importance > 0.15,
            "1 of your heads is off, not 2.",
        ),
        (
            "08-smallest_enough",
            lambda num_heads, accuracies, goal, least_runs=2: 3,
            "Runs with 4 heads: 0.96, 0.95. There is no run with 3 heads.",
        ),
        (
            "07-entropy",
            lambda weights: -(weights * weights.pow(0.9).clamp(1e-300).log()).sum(dim=-1),
            "The query at [0] has the weights 0.25, 0.25, 0.25, 0.25. They add 0.3466, 0.3466",
        ),
        (
            "08-expected_share",
            lambda groups, num_values: 0.5,
            "on average so many answers of a group are right: 1 of 1 and 1.5 of 2.",
        ),
        (
            "09-moved_bytes",
            lambda *_, **__: 115,
            "Here a block has 2 queries, and there are 3 blocks. Queries and outputs have 70 bytes",
        ),
        (
            "09-group_heads",
            WRONG["09-group_heads"]["without the last"],
            "Key head 0 is made of heads 0 and 1. For [0, 0] of the result they hold 0, 10.",
        ),
        (
            "02-without_key",
            lambda output, weights, values, key: (weights.pow(0.9) @ values, weights.pow(0.9)),
            "Those of the other keys were 0.1, 0.3, 0.4.",
        ),
        (
            "04-repack",
            lambda packed, num_heads: packed[[*range(2), *range(len(packed) - 1, 1, -1)]],
            "At [2] you have the number of packed[11]; asked for is packed[6].",
        ),
        (
            "10-shift_positions",
            lambda P, shift: P.unflatten(1, (-1, 2)).mul(0.5).flatten(1),
            "Pair 0 of row 0 has the length 0.5, and a turn keeps it 1.",
        ),
        (
            "02-masked_softmax",
            lambda scores, valid_lens=None: seen(scores, valid_lens).softmax(-1).pow(2),
            "Row [0, 0] has the length 2. Its first 2 keys get 0.1111, 0.4444 from you; asked for "
            "is 0.3333, 0.6667. What is past it gets 0; asked for is 0.",
        ),
        (
            "03-fold_W_o",
            lambda W_v, W_o: W_v @ W_o.reshape(len(W_v), W_v.shape[-1], -1).abs().sqrt(),
            "Head 0 has 1, 0 in row 0 of its W_v, and 2, 1 in column 1 of its rows of W_o. "
            "[0, 0, 1] of the result depends on these alone.",
        ),
        (
            "03-fold_W_o",
            lambda W_v, W_o: W_v[:, 1:] @ W_o.reshape(len(W_v), W_v.shape[-1], -1),
            "Asked for is one matrix (3, 2) for each head.",
        ),
        (
            "04-transpose_grouped",
            lambda X, H, G: key_heads(X.square(), H, G),
            "Row 0 is query head 0 of sequence 0, and word 0 has 0, 1, 4 there. Asked for is key "
            "head 0: 0, 1, 2.",
        ),
        (
            "04-transpose_grouped",
            lambda X, H, G: key_heads(X, H, G)[1:],
            "Asked for are 6 rows, one for each of 6 query heads of 1 sequence; a key head is 3 "
            "wide.",
        ),
        (
            "04-transpose_qkv",
            lambda X, H: split_heads(X, H) * (torch.arange(X.shape[-1] // H) < 1),
            "Row 0 is head 0 of sequence 0. Its word 0 has X[0, 0, 1] = 1 in place 1; yours is 0.",
        ),
        (
            "04-transpose_qkv",
            lambda X, H: split_heads(X, H)[..., 1:],
            "Asked for are 2 rows, 2 for each sequence, with heads of width 2.",
        ),
        (
            "04-transpose_output",
            lambda X, H: X.unflatten(0, (-1, H)).transpose(1, 2).flatten(2).clamp(max=12),
            "Feature 3 of a word is number 1 of head 1: for [0, 1, 3] it is X[1, 1, 1] = 13, and "
            "yours is 12.",
        ),
        (
            "04-transpose_output",
            lambda X, H: X.unflatten(0, (-1, H)).transpose(1, 2).flatten(2)[..., 1:],
            "The 2 rows of X are 2 for each sequence. A word gets the 2 numbers of each head side "
            "by side, 4 in all.",
        ),
        (
            "08-mask_heads",
            lambda X, mask: X * X * mask.reshape(-1, mask.shape[-1], 1, 1),
            "Head 1 has the factor 1 in example 0. At [0, 1, 0, 0] outputs holds -0.02602, and "
            "your result 0.0006772.",
        ),
        (
            "08-mask_heads",
            lambda X, mask: (X * mask.reshape(-1, mask.shape[-1], 1, 1)).amin(2),
            "The result keeps all axes of outputs, (2, 3, 2, 5): B, H, L and d.",
        ),
        (
            "10-greedy",
            written_and(lambda W: W.fmod(5)),
            "In step 1 row 0 has the highest score for token 5",
        ),
        ("10-greedy", written_and(lambda W: W.cummax(1).values), "In step 4 row 0 has the highest"),
        (
            "10-greedy",
            written_and(lambda W: W.where(W > 0, 4)),
            "In step 3 row 0 has had its END: padding is asked for, which is 0.",
        ),
        (
            "10-greedy",
            written_and(lambda W: W[:, :4]),
            "The END is to be written in step 4, and the loop ends after step 4.",
        ),
        (
            "10-greedy",
            written_and(lambda W: W if (W == 2).any() else W[:, 1:]),
            "Here not every row gets an END: asked for are `longest` = 4 tokens.",
        ),
        ("10-greedy", written_and(lambda W: W * 2), "Row 0 begins with START, which is 1."),
        (
            "04-split_packed",
            lambda X, H: [p.unflatten(-1, (H, -1)).transpose(1, 2) / 2 for p in X.chunk(3, -1)],
            "Queries of head 0 in sequence 0, word 0: number 1 is X[0, 0, 1] = 1, and "
            "yours is 0.5.",
        ),
        (
            "04-split_packed",
            lambda X, H: [
                p.unflatten(-1, (H, -1)).transpose(1, 2)[..., 1:] for p in X.chunk(3, -1)
            ],
            "A word has 4 features of each kind: 2 heads of width 2.",
        ),
        (
            "04-spread_valid_lens",
            lambda lens, H: lens.repeat_interleave(H, 0).cummax(0).values,
            "Problem 3 is head 0 of sequence 1, whose row of lengths is [1, 2, 5, 0]; yours is "
            "[1, 2, 5, 3].",
        ),
        (
            "04-spread_valid_lens",
            lambda lens, H: lens.repeat_interleave(H, 0)[1:],
            "Asked for is one length for each of 6 problems: heads times sequences, 3 · 2.",
        ),
        (
            "05-head_width",
            wider_by_2,
            "4 heads of the width 5 have 20 features, and 12 are to be shared.",
        ),
        (
            "06-additive_mask",
            lambda mask, dtype=torch.float64: torch.where(
                mask[:, None, None] == 0, torch.finfo(dtype).min, 0.25
            ).to(dtype),
            "For words your mask holds 0.25; asked for is 0.\n",
        ),
        (
            "06-additive_mask",
            lambda mask, dtype=torch.float64: ((mask - 1) * torch.arange(1, mask.shape[1] + 1)).to(
                dtype
            )[:, None, None],
            "For padding your mask holds -3, -2; asked for is the lowest number of float32.",
        ),
        (
            "06-fold_biases",
            lambda w: w | {"W_q.bias": w["W_q.bias"] * 0, "W_o.bias": w["W_o.bias"] * 2},
            "W_q.bias has to stay. W_k.bias has to be 0. W_v.bias has to be 0. Your W_o.bias grows "
            "by",
        ),
        (
            "08-prune_heads",
            three_heads_counted_too_many,
            "2 heads stay, of width 2: 4 rows of W_q, W_k and W_v, and as many columns of W_o.",
        ),
        (
            "09-group_heads",
            lambda weight, H, G: weight.reshape(G, H // G, -1, *weight.shape[1:]).mean(1)[0],
            "2 key heads are asked for, of 2 rows each like the heads.",
        ),
        (
            "01-looking_matrices",
            lambda table: (50 * table.triu(), torch.eye(len(table)).double()),
            "Word 2 is of kind 2 and is to look at words 0, 1, 3 and 4. It gives these 0.2, 0.2, "
            "0.2, 0.2, and all others together 0.2.",
        ),
        (
            "11-broken_promises",
            lambda *inputs: {"batch"},
            "For a sequence alone with its length, the output stays as it is.",
        ),
    ],
)
def test_of_what_is_not_known_it_is_said_what_a_right_one_is_made_of(task_id, answer, words):
    assert words in str(told(task_id, answer))


def test_cases_that_look_at_promises_alone_do_not_count_as_right_where_numbers_are_wrong():
    def normalise(self, Y):
        X = self.norm(Y)
        return X + F.layer_norm(X, X.shape[-1:])

    feedback = told("12-BertEmbeddings", build_embeddings(normalise=normalise))
    assert not [remark for remark in feedback.remarks if "hidden_dropout_prob=0.25" in remark]


def test_a_step_that_an_error_cut_off_in_another_case_is_not_named_as_missing():
    def causal_tiles(queries, keys, values, tile):
        S, L = keys.shape[2], queries.shape[2]
        output = torch.zeros_like(queries)  # the width of values is another one
        largest = torch.full_like(queries[..., :1], -math.inf)
        total = torch.zeros_like(largest)
        for start in range(0, S, tile):
            k, v = keys[:, :, start : start + tile], values[:, :, start : start + tile]
            scores = queries @ k.mT / queries.shape[-1] ** 0.5
            later = start + torch.arange(k.shape[2]) > (torch.arange(L) + S - L)[:, None]
            scores = scores.masked_fill(later, -math.inf)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            old, powers = (largest - new).exp(), (scores - new).exp()
            total = total * old + powers.sum(-1, keepdim=True)
            output = output * old + powers @ v
            largest = new
        return output / total

    said = " ".join(told("09-causal_tiles", causal_tiles).remarks)
    assert "holds by itself: the output before it is divided." in said
    assert "the total" not in said


def test_a_count_with_defaults_that_changed_places_is_not_said_to_be_in_float32():
    def cache_bytes(tokens, layers, heads, width, batch_size=2, bytes_per_number=1):
        return 2 * tokens * layers * heads * width * bytes_per_number * batch_size

    feedback = told("05-cache_bytes", cache_bytes)
    assert feedback.mistake is None and "digits" not in str(feedback)


def test_where_only_an_axis_is_missing_no_step_is():
    def mean_pool(hidden, attention_mask):
        weights = attention_mask / attention_mask.sum(1, keepdim=True)
        return (weights[:, None].to(hidden.dtype) @ hidden).squeeze()

    said = " ".join(told("12-mean_pool", mean_pool).remarks)
    assert "An axis of size 1 is missing." in said
    assert "step that none" not in said


def test_an_empty_slice_is_asked_about():
    def attention(queries, keys, values):
        rows = []
        for i in range(keys.shape[1]):  # queries are meant
            weights = (keys * queries[:, i : i + 1]).sum(-1).softmax(-1)
            rows.append((weights[..., None] * values).sum(1))
        return torch.stack(rows, 1)

    assert "does a loop go too far, or over another axis?" in str(told("01-attention", attention))


def test_digits_lost_on_the_way_are_no_wrong_step():
    def mended_step(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        scores = queries.float() @ keys.float().mT / math.sqrt(queries.shape[3])
        later = torch.ones(L, S).triu(S - L + 1).bool()
        return scores.masked_fill(later, -math.inf).softmax(-1).to(values.dtype) @ values

    said = " ".join(told("11-mended_step", mended_step).remarks)
    assert "on the way your numbers are in float32" in said
    assert "Right so far" not in said


def test_a_weak_fill_in_float32_is_not_taken_for_lost_digits():
    def mended_step(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        hidden = -1000.0 * torch.ones(L, S).triu(S - L + 1)  # float32
        scores = queries @ keys.mT / math.sqrt(queries.shape[3])
        return (scores + hidden).softmax(-1) @ values

    assert "numbers are in float32" not in str(told("11-mended_step", mended_step))


def test_keys_cut_off_that_nobody_looks_at_are_no_wrong_step():
    def cross_step(y, keys, values, memory_lens, W_q, W_o):
        B, H, S, d_k = keys.shape
        longest = int(memory_lens.max())
        scores = (y @ W_q).reshape(B, H, 1, d_k) @ keys[:, :, :longest].mT / d_k**0.5
        weights = scores.softmax(-1) * (memory_lens > 0)[:, None, None, None]
        return (weights @ values[:, :, :longest]).reshape(B, -1) @ W_o

    said = " ".join(told("10-cross_step", cross_step).remarks)
    assert "holds by itself: the weights." in said


def test_a_mean_that_is_a_number_of_the_input_by_chance_is_not_said_to_be_this_number():
    def transpose_output(X, num_heads):
        heads = X.unflatten(0, (-1, num_heads))
        return heads.mean(1).repeat(1, 1, num_heads)

    assert "you have the number of X" not in str(told("04-transpose_output", transpose_output))


def test_layers_with_other_numbers_are_not_said_to_be_missing():
    def map_weights(state_dict):
        numbers, mapped = {}, {}
        for name, X in state_dict.items():
            new = find("06-map_weights").build()({name: X})
            for key in new:
                found = re.search(r"layers\.(\d+)\.", key)
                if found:
                    place = numbers.setdefault(found[1], len(numbers))
                    key = key.replace(found[0], f"layers.{place}.")
                mapped[key] = X
        return mapped

    said = str(told("06-map_weights", map_weights))
    assert "in your result it is encoder.layers.0." in said
    assert "They are all of" not in said


def test_a_result_that_is_far_off_is_not_taken_for_lost_digits():
    def mended_step(queries, keys, values):
        L, S = queries.shape[2], keys.shape[2]
        scores = queries.float() @ keys.float().mT / math.sqrt(queries.shape[3])
        hidden = -1000.0 * torch.ones(L, S).triu(S - L + 1)
        return (scores + hidden).softmax(-1).to(values.dtype) @ values

    feedback = told("11-mended_step", mended_step)
    assert feedback.mistake is None and "numbers are in float32" not in str(feedback)


def test_a_default_of_another_kind_is_named_where_a_module_is_made_by_names():
    class MultiHeadAttention(find("04-MultiHeadAttention").build()):
        def __init__(
            self, key_size, query_size, value_size, num_hiddens, num_heads, dropout=0.0, bias=True
        ):
            sizes = key_size, query_size, value_size, num_hiddens, num_heads
            super().__init__(*sizes, dropout, bias)

    assert told("04-MultiHeadAttention", MultiHeadAttention).mistake == "bias-by-default"
