"""Answers as learners write them: each is told its own mistake, and nothing that misleads."""

import math

import pytest
import torch
from lessons import all_answers
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks import diagnose, find
from mha_course.attention import scaled_dot_product_attention

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
    return scores.double().softmax(-1) @ values


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


def names(cut=lambda name: name.removeprefix("bert."), highest=99):
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


def names_with_prefix(state_dict):
    kept = {n: X for n, X in state_dict.items() if n.startswith("bert.")}
    return find("06-map_weights").build()(kept)


class LayerOfClasses(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attention = find("06-BertSelfAttention").reference
        self.self_output = find("06-BertSelfOutput").reference(config)
        self.feed_forward = find("06-BertFeedForward").reference(config)


SUBTRACTED = "subtracted-from-the-residual"


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
    assert f"changes the caller's {changed}." in told(task_id, answer).message


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
    ],
)
def test_the_mistake_is_named(task_id, answer, mistake):
    assert told(task_id, answer).mistake == mistake


def test_sizes_in_another_order_may_be_named_so_in_the_def_line():
    message = told("04-MultiHeadAttention", AnotherOrderOfSizes).message
    assert "in another order in your `def` line" in message


def test_matrices_a_little_too_weak_for_100_words_are_told_so():
    weak = told("01-looking_matrices", lambda x: (11 * x, torch.eye(len(x)).double()))
    assert "in a sentence of 100 words" in weak.message and "not firmly" in weak.message


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


NAMED = [
    ("07-most_attended", attended_by_others, "itself-counted-as-0"),
    ("07-entropy", entropy_above(0.01), "weights-cut-off"),
    ("07-entropy", entropy_above(1e-5), "weights-cut-off"),
    ("07-offset_score", offset_by_every_query, "index-past-the-end-in-a-loop"),
    ("07-offset_score", offset_on_both_sides, "both-sides"),
    ("07-find_head", head_and_layer_from_1, "head-first-and-from-1"),
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
    ("12-training_step", "logarithm to base 2", "loss-alone"),
]


@pytest.mark.parametrize(("task_id", "answer", "mistake"), NAMED)
def test_one_of_the_lessons_answers_is_named(task_id, answer, mistake):
    answer = WRONG[task_id][answer] if isinstance(answer, str) else answer
    assert told(task_id, answer).mistake == mistake


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
    assert f"changes the caller's {which}" in feedback.message


def test_a_stage_counts_though_one_of_its_pieces_equals_an_input():
    def keys_in_reverse(X, W_q, W_k, W_v, W_o):
        heads = [one_head(X, W_q[h], W_k[-1 - h], W_v[h]) for h in range(len(W_q))]
        return torch.cat(heads, -1) @ W_o

    (remark,) = told("03-loop_of_heads", keys_in_reverse).remarks
    assert "The first step whose numbers do not appear" in remark
    assert not remark.endswith("the values of every head.")


def test_after_an_error_nothing_is_said_of_the_steps_that_it_prevented():
    def too_many_heads(X, W_q, W_k, W_v, W_o):
        heads = [one_head(X, W_q[h], W_k[h], W_v[h]) for h in range(len(W_q) + 1)]
        return torch.cat(heads, -1) @ W_o

    feedback = told("03-loop_of_heads", too_many_heads)
    assert "IndexError" in feedback.message
    assert feedback.remarks[0].endswith("your numbers are right. Then comes the error.")


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


def test_a_function_of_torch_is_called_by_the_name_it_has():
    assert (
        "calls torch.special.softmax."
        in told("01-softmax", lambda x: torch.special.softmax(x, -1)).message
    )


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


def test_a_product_is_off_by_a_factor():
    def cache_bytes(num_tokens, num_layers, *more, **others):
        return find("05-cache_bytes").build()(num_tokens, num_layers, *more, **others) * num_layers

    (remark,) = told("05-cache_bytes", cache_bytes).remarks
    assert remark == "In every case it is the right number times the number of layers."


def test_two_readings_of_the_same_numbers_are_both_offered():
    task = find("05-count_block")
    (mistake,) = (m for m in task.mistakes if m.id == "biases-forgotten")
    feedback = told("05-count_block", task.build(**mistake.parts))
    assert feedback.mistake == "biases-forgotten"
    assert feedback.remarks[0].startswith("Or two other things that together give the same numbers")


def test_a_whole_number_that_is_a_float_is_told_so():
    def count_attention(num_hiddens, bias=True):
        return 4.0 * num_hiddens**2 + (4 * num_hiddens if bias else 0)

    feedback = diagnose("05-count_attention", count_attention)
    assert feedback.passed
    assert feedback.remarks == (
        "A count is an int, and this is a float: / gives one, // does not.",
    )


def test_a_cell_that_failed_is_not_judged_by_the_one_before(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("HOME", str(tmp_path))
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    said = []
    monkeypatch.setattr("mha_classroom.checks._show", said.append)

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
