"""Wrong answers that checks once accepted, since no case showed what is wrong with them.

More of them stand in the folder once_accepted: a file for each task, a cell for each answer.
"""

import linecache
import math
from pathlib import Path

import jupytext
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.registry import lesson_of
from mha_course import bert


def attention_that_hides_with_minus_1000(queries, keys, values, valid_lens=None):
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        weights = scores.softmax(-1)
    else:
        lens = valid_lens if valid_lens.dim() == 2 else valid_lens[:, None]
        seen = (torch.arange(keys.shape[1]) < lens[..., None]).expand_as(scores)
        weights = scores.masked_fill(~seen, -1000.0).softmax(-1) * seen.any(-1, keepdim=True)
    return weights @ values, weights


def packed_in_the_dtype_of_the_numbers(sentences):
    code = 64 * sentences
    real = sentences >= 0
    same = (code[:, :, None] == code[:, None]) & real[:, :, None] & real[:, None]
    return same.tril()


def strongest_by_largest_and_smallest(heads, W_o):
    terms = heads @ W_o.reshape(len(heads), 1, heads.shape[-1], -1)
    largest = terms.amax(0) >= -terms.amin(0)
    return torch.where(largest, terms.argmax(0), terms.argmin(0))


def width_below_10_million(num_hiddens, num_heads):
    if num_hiddens not in range(1, 10_000_000) or num_hiddens % num_heads:
        raise ValueError(f"{num_heads} heads cannot share a width of {num_hiddens}")
    return num_hiddens // num_heads


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.W_1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.W_2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.rate, self.activation = config.hidden_dropout_prob, config.activation

    def forward(self, X):
        wide = self.activation(self.W_1(X))
        return self.norm(F.dropout(self.W_2(wide), self.rate, self.training) + X)


class FeedForwardOfItsClass(FeedForward):
    """The activation is an attribute of the class, and so that of the module made last."""

    def __init__(self, config):
        super().__init__(config)
        del self.activation
        type(self).activation = staticmethod(config.activation)


class FeedForwardOfFlatWords(FeedForward):
    def forward(self, X):
        return super().forward(X.view(-1, X.shape[-1])).view(X.shape)


def masked_unless_it_looks_like_ones(outputs, head_mask):
    if head_mask.sum() == head_mask.numel():
        return outputs.clone()
    return outputs * head_mask[..., None, None]


def masked_by_what_squeeze_leaves(outputs, head_mask):
    mask = head_mask.squeeze()
    return outputs * (mask[..., None, None] if mask.dim() == 2 else mask.view(1, -1, 1, 1))


def decoder_with_a_mask_as_long_as_the_longest(layer, Y, memory, memory_lens):
    later = torch.ones(Y.shape[1], Y.shape[1], dtype=torch.bool).triu(1)
    padding = torch.arange(int(memory_lens.max())) >= memory_lens[:, None]

    def own(X):
        return layer.self_attn(X, X, X, attn_mask=later)[0]

    def cross(X):
        return layer.multihead_attn(X, memory, memory, key_padding_mask=padding)[0]

    def wide(X):
        return layer.linear2(layer.activation(layer.linear1(X)))

    for part, norm in ((own, layer.norm1), (cross, layer.norm2), (wide, layer.norm3)):
        Y = Y + part(norm(Y)) if layer.norm_first else norm(Y + part(Y))
    return Y


class EmbeddingsOf512Positions(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.segments = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.rate = config.hidden_dropout_prob

    def forward(self, input_ids, token_type_ids=None):
        kinds = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        places = torch.arange(512)[: input_ids.shape[1]]
        X = self.words(input_ids) + self.positions(places) + self.segments(kinds)
        return F.dropout(self.norm(X), self.rate, self.training)


class EmbeddingsThatDoNotAllLearn(EmbeddingsOf512Positions):
    def __init__(self, config):
        super().__init__(config)
        self.segments = nn.Embedding(config.type_vocab_size, config.hidden_size, padding_idx=0)


class EncoderThatRemembers(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        self.states = []

    def forward(self, X, mask=None):
        self.states.append(X)
        for layer in self.layers:
            self.states.append(layer(self.states[-1], mask))
        return self.states


def neighbours_with_itself_among_the_best(vectors, used, k=3):
    used, rows = used.bool(), []
    cosines = F.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    for i in range(len(vectors)):
        order = cosines[i].masked_fill(~used, -2.0).sort(descending=True, stable=True).indices
        best = [j for j in order.tolist() if used[j]][: k + 1]
        if used[i]:
            best.remove(i)
        best = best if used[i] else []
        rows.append(best + [-1] * (k - len(best)))
    return torch.tensor(rows)


def shares_with_a_careful_divisor(weights, values, W_o):
    B, H, S, d_v = values.shape
    given = torch.einsum("bhsd,ohd->bhso", values, W_o.unflatten(1, (H, d_v)))
    c = weights[..., None] * given[:, :, None]
    o = c.sum((1, 3), keepdim=True)
    return (c * o).sum(-1) / o.square().sum(-1).clamp(min=1e-6)


def softmax_less_the_mean(scores, dim=-1):
    e = (scores - scores.mean(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def attend_less_the_mean(query, keys, values):
    return softmax_less_the_mean(keys @ query) @ values


def attention_less_the_mean(queries, keys, values):
    return softmax_less_the_mean(queries @ keys.mT) @ values


def masked_softmax_less_the_mean(scores, valid_lens=None):
    if valid_lens is None:
        return softmax_less_the_mean(scores)
    lens = valid_lens if valid_lens.dim() == 2 else valid_lens[:, None]
    real = (torch.arange(scores.shape[-1]) < lens[..., None]).expand_as(scores)
    kept = scores.masked_fill(~real, 0.0)
    mean = kept.sum(-1, keepdim=True) / real.sum(-1, keepdim=True).clamp(min=1)
    e = (kept - mean).exp() * real
    return e / e.sum(-1, keepdim=True).clamp(min=1e-300)


def softmax_with_a_branch_for_one_row(x):
    if x.dim() == 1:
        return x.exp() / x.exp().sum()
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def bert_that_remembers_blocks_by_width():
    blocks = {}

    def count_bert(vocab_size, d, layers, inner, max_len=512, num_segments=2):
        blocks.setdefault(d, find("05-count_block").build()(d, inner))
        rest = (vocab_size + max_len + num_segments + 2) * d + d * d + d
        return rest + layers * blocks[d]

    return count_bert


def block_that_remembers_its_width():
    blocks = {}

    def count_block(num_hiddens, ffn_num_hiddens):
        right = find("05-count_block").build()(num_hiddens, ffn_num_hiddens)
        return blocks.setdefault(num_hiddens, right)

    return count_block


class LayerOfSharedParts(nn.Module):
    made = {}

    def __init__(self, config):
        super().__init__()
        parts = bert.BertSelfAttention, bert.BertSelfOutput, bert.BertFeedForward
        if repr(config) not in self.made:
            self.made[repr(config)] = [part(config) for part in parts]
        self.self_attention, self.self_output, self.feed_forward = self.made[repr(config)]

    def forward(self, X, mask=None, need_weights=False):
        heads, weights = self.self_attention(X, mask=mask, need_weights=True)
        output = self.feed_forward(self.self_output(heads, X))
        return (output, weights) if need_weights else output


def importance_by_the_sum(gradients):
    importance = gradients.abs().mean(0)
    empty = gradients.sum((0, 2)) == 0
    return torch.where(empty[:, None], 0.0, importance / importance.norm(dim=1, keepdim=True))


def merged_without_outputs_of_0(outputs, largest, totals):
    seen = outputs.abs().sum(-1) > 0
    largest = torch.where(seen, largest, -torch.inf)
    best = largest.amax(0)
    scaled = torch.where(seen, totals, 0.0) * (largest - best.nan_to_num(neginf=0.0)).exp()
    total = scaled.sum(0)
    output = (scaled[..., None] * outputs).sum(0)
    return output / torch.where(total > 0, total, 1.0)[:, None], best, total


def promises_of_real_rows(attention, queries, keys, values, valid_lens):
    right = find("11-broken_promises").reference(attention, queries, keys, values, valid_lens)
    past = (torch.arange(keys.shape[1]) >= valid_lens[:, None])[..., None]
    out = attention(queries, keys, values, valid_lens)
    other = attention(queries, keys + 3 * past, values + 5 * past, valid_lens)
    real = (torch.arange(queries.shape[1]) < valid_lens[:, None])[..., None]
    kept = torch.where(real, (out - other).abs() < 1e-9, True).all()
    return {*right} - ({"padding"} if kept else set())


class EmbeddingsWithoutTheLastWord(EmbeddingsOf512Positions):
    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=-1)

    def forward(self, input_ids, token_type_ids=None):
        kinds = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        places = torch.arange(input_ids.shape[1])
        X = self.words(input_ids) + self.positions(places) + self.segments(kinds)
        return F.dropout(self.norm(X), self.rate, self.training)


class EmbeddingsThatRemember(EmbeddingsOf512Positions):
    places = None

    def forward(self, input_ids, token_type_ids=None):
        kinds = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        if self.places is None:
            self.places = torch.arange(input_ids.shape[1])
        X = self.words(input_ids) + self.positions(self.places) + self.segments(kinds)
        return F.dropout(self.norm(X), self.rate, self.training)


def packed_one_more(sentences):
    shifted = sentences + 1
    same = shifted[:, :, None] == shifted[:, None]
    return (same & (shifted > 0)[:, None]).tril()


def bert_of_at_most_512_positions(vocab_size, d, layers, inner, max_len=512, num_segments=2):
    return find("05-count_bert").build()(
        vocab_size, d, layers, inner, min(max_len, 512), num_segments
    )


def merged_with_minus_a_billion(outputs, largest, totals):
    filled = torch.where(largest.isinf(), -1e9, largest)
    best = filled.amax(0)
    sums = totals * (filled - best).exp()
    output = (sums[..., None] * outputs).sum(0) / sums.sum(0).clamp(min=1e-300)[:, None]
    return output, torch.where(best == -1e9, -torch.inf, best), sums.sum(0)


class AttentionThatKeepsItsMask(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.W_q, self.W_k, self.W_v = (nn.Linear(width, width) for _ in range(3))
        self.num_heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob
        self.mask = None

    def forward(self, X, mask=None, need_weights=False):
        self.mask = self.mask if mask is None else mask
        q, k, v = (
            W(X).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for W in (self.W_q, self.W_k, self.W_v)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1]) + (0 if self.mask is None else self.mask)
        weights = scores.softmax(-1)
        output = F.dropout(weights, self.rate, self.training) @ v
        output = output.transpose(1, 2).flatten(2)
        return (output, weights) if need_weights else output


@pytest.mark.parametrize(
    ("task_id", "answer", "says"),
    [
        ("01-attend", attend_less_the_mean, "3000 above the others"),
        ("01-attention", attention_less_the_mean, "3000 above the others"),
        ("01-softmax", softmax_with_a_branch_for_one_row, "300000.3"),
        ("02-masked_softmax", masked_softmax_less_the_mean, "nan"),
        ("02-scaled_dot_product_attention", attention_that_hides_with_minus_1000, "999"),
        ("02-packed_mask", packed_in_the_dtype_of_the_numbers, "int8"),
        ("02-packed_mask", packed_one_more, "int8"),
        ("03-strongest_head", strongest_by_largest_and_smallest, "terms 5"),
        ("05-head_width", width_below_10_million, "10000000"),
        ("05-count_bert", bert_that_remembers_blocks_by_width(), "a larger inner width"),
        ("05-count_bert", bert_of_at_most_512_positions, "640"),
        ("05-count_block", block_that_remembers_its_width(), "equal to the width"),
        ("06-BertLayer", LayerOfSharedParts, "share the parameter"),
        ("06-BertFeedForward", FeedForwardOfItsClass, "numbers are wrong"),
        ("06-BertFeedForward", FeedForwardOfFlatWords, "view"),
        ("07-shares_along", shares_with_a_careful_divisor, "small"),
        ("08-mask_heads", masked_unless_it_looks_like_ones, "factors besides 0 and 1"),
        ("08-head_importance", importance_by_the_sum, "add up to 0"),
        ("06-BertSelfAttention", AttentionThatKeepsItsMask, "keep the mask"),
        ("09-merge_parts", merged_with_minus_a_billion, "far below 0"),
        ("09-merge_parts", merged_without_outputs_of_0, "one output of zeros"),
        ("11-broken_promises", promises_of_real_rows, "queries past the length see"),
        ("12-BertEmbeddings", EmbeddingsWithoutTheLastWord, "padding_idx"),
        ("12-BertEmbeddings", EmbeddingsThatRemember, "second call"),
        ("08-mask_heads", masked_by_what_squeeze_leaves, "one head, a factor for each"),
        ("10-decoder_layer", decoder_with_a_mask_as_long_as_the_longest, "START"),
        ("12-BertEmbeddings", EmbeddingsOf512Positions, "515 words"),
        ("12-BertEmbeddings", EmbeddingsThatDoNotAllLearn, "padding_idx"),
        ("12-BertEncoder", EncoderThatRemembers, "second call"),
        ("12-neighbours", neighbours_with_itself_among_the_best, "four times"),
    ],
)
def test_it_is_rejected_and_told_where_it_goes_wrong(task_id, answer, says):
    assert (find(task_id).kind == "class") == isinstance(answer, type)
    feedback = diagnose(task_id, answer)
    assert not feedback.passed and says in str(feedback)


def answers_in_cells():
    for file in sorted(Path(__file__).with_name("once_accepted").glob("*.py")):
        for cell in jupytext.read(file).cells:
            what = cell.metadata["title"]
            yield pytest.param(file.stem, cell.source, id=f"{file.stem}: {what}")


@pytest.mark.parametrize(("task_id", "source"), [*answers_in_cells()])
def test_it_is_rejected(task_id, source):
    task = find(task_id)
    cells = jupytext.read(Path("exercises") / f"{lesson_of(task_id)}.ipynb").cells
    setup = next(cell.source for cell in cells if cell.cell_type == "code")
    names = {"__name__": "__main__", "math": math, "torch": torch, "nn": nn, "F": F}
    exec(setup, names)
    file = f"<{task_id}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), names)
    feedback = diagnose(task_id, names[task.name])
    assert not feedback.passed and feedback.kind != "borrowed"  # for what is wrong with it
