"""Answers as learners write them: each is told its own mistake, and nothing that misleads."""

import math

import pytest
import torch
from lessons import all_answers
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks import diagnose, find

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
    ],
)
def test_the_mistake_is_named(task_id, answer, mistake):
    assert told(task_id, answer).mistake == mistake


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

    assert told("01-softmax", softmax).message.endswith("got None. Is there a `return`?")


def test_a_function_of_torch_is_called_by_the_name_it_has():
    assert (
        "calls torch.special.softmax,"
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
