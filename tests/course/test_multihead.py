"""`mha_course.multihead` against hand-computed numbers, PyTorch, d2l and a loop of heads."""

import inspect
import math
import subprocess
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from mha_course import multihead
from mha_course.interop import import_d2l, to_d2l, to_torch
from mha_course.multihead import MultiHeadAttention, attend, merge_heads, split_heads

B, L, S, H, D = 3, 5, 7, 2, 11  # batch, queries, keys, heads, head width
WIDTH = H * D
QUERY, KEY, VALUE = 13, 17, 19  # widths before the projections
CLOSE = dict(rtol=0, atol=1e-12)
EXAMPLES = settings(  # the same ones each time, however slow the machine
    derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
SIZES = pytest.mark.parametrize("num_queries, num_keys", [(L, S), (S, S), (S, L)])
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
KINDS = ["none", "lengths", "lengths a query", "mask", "mask a sequence", "mask a head", "both"]


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def make(bias=False, dropout=0.0, sizes=(KEY, QUERY, VALUE), num_heads=H, seed=1):
    """A module whose weights and biases are all random: fresh biases could be 0 or small."""
    attention = MultiHeadAttention(*sizes, WIDTH, num_heads, dropout, bias).double()
    for n, parameter in enumerate(attention.parameters()):
        numbers = draw(*parameter.shape, seed=10 * seed + n)
        parameter.data.copy_(numbers / parameter.shape[-1] ** 0.5)
    return attention


def make_square(**options):
    """All widths equal, as `torch.nn.MultiheadAttention` and self-attention need them."""
    return make(sizes=(WIDTH,) * 3, **options)


def draw_inputs(num_queries=L, num_keys=S, sizes=(QUERY, KEY, VALUE)):
    query, key, value = sizes
    return (
        draw(B, num_queries, query, seed=1),
        draw(B, num_keys, key, seed=2),
        draw(B, num_keys, value, seed=3),
    )


def draw_allowed(kind, num_queries=L, num_keys=S):
    """Options (valid_lens, mask) of one kind; every query may attend to its first key."""
    options = {}
    if kind in ("lengths", "both"):
        options["valid_lens"] = torch.tensor([1, num_keys, 3])
    elif kind == "lengths a query":
        lengths = 1 + torch.arange(B * num_queries) * 3 % num_keys
        options["valid_lens"] = lengths.reshape(B, num_queries)
    shapes = {"mask": (), "mask a sequence": (B,), "mask a head": (B, H), "both": (B,)}
    if kind in shapes:
        options["mask"] = draw(*shapes[kind], num_queries, num_keys, seed=4) > 0
        options["mask"][..., 0] = True
    return options


def as_mask(num_queries, num_keys, valid_lens=None, mask=None):
    """The same as one boolean tensor (B, H, L, S)."""
    allowed = torch.ones(B, H, num_queries, num_keys, dtype=torch.bool)
    if valid_lens is not None:
        allowed &= torch.arange(num_keys) < valid_lens.reshape(B, 1, -1, 1)
    if mask is not None:
        allowed &= mask.unsqueeze(1) if mask.dim() == 3 else mask
    return allowed


def loop_of_heads(attention, queries, keys, values, allowed):
    """The definition: H times attention on a slice of the weights, side by side, through W_o."""
    num_heads, outputs, all_weights = attention.num_heads, [], []
    width = attention.W_q.out_features // num_heads
    for h in range(num_heads):
        rows = slice(h * width, (h + 1) * width)
        q, k, v = (
            F.linear(X, linear.weight[rows], None if linear.bias is None else linear.bias[rows])
            for linear, X in (
                (attention.W_q, queries),
                (attention.W_k, keys),
                (attention.W_v, values),
            )
        )
        scores = torch.einsum("bld,bsd->bls", q, k) / math.sqrt(width)
        weights = scores.masked_fill(~allowed[:, h], -math.inf).softmax(-1)
        outputs.append(weights @ v)
        all_weights.append(weights)
    return attention.W_o(torch.cat(outputs, dim=-1)), torch.stack(all_weights, dim=1)


# The same numbers as everyone else


def test_multi_head_attention_by_hand():
    # Two heads of width 1; W_q, W_k, W_v are the identity, so head h sees feature h of each word.
    # Head 0: scores 0 and log 3, weights 1/4, 3/4, output 3/4·log 3.
    # Head 1: scores 0 and 0, weights 1/2, 1/2, output 2. W_o adds the heads, and doubles the first.
    attention = MultiHeadAttention(2, 2, 2, 2, 2).double()
    for linear in (attention.W_q, attention.W_k, attention.W_v):
        linear.weight.data.copy_(torch.eye(2))
    attention.W_o.weight.data.copy_(torch.tensor([[1.0, 1.0], [2.0, 0.0]]))
    log3 = math.log(3)
    queries = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    words = torch.tensor([[[0.0, 1.0], [log3, 3.0]]], dtype=torch.float64)
    output, weights = attention(queries, words, words, need_weights=True)
    assert weights.shape == (1, 2, 1, 2)
    expected = torch.tensor([0.25, 0.75, 0.5, 0.5], dtype=torch.float64)
    torch.testing.assert_close(weights.flatten(), expected, **CLOSE)
    expected = torch.tensor([[[0.75 * log3 + 2, 1.5 * log3]]], dtype=torch.float64)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(attention(queries, words, words), expected, **CLOSE)


@SIZES
@BIAS
@pytest.mark.parametrize("kind", KINDS)
def test_cross_attention_equals_a_loop_of_heads(num_queries, num_keys, bias, kind):
    attention, inputs = make(bias), draw_inputs(num_queries, num_keys)
    options = draw_allowed(kind, num_queries, num_keys)
    allowed = as_mask(num_queries, num_keys, **options)
    expected, expected_weights = loop_of_heads(attention, *inputs, allowed)
    torch.testing.assert_close(attention(*inputs, **options), expected, **CLOSE)
    output, weights = attention(*inputs, **options, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


@BIAS
@pytest.mark.parametrize("kind", KINDS)
def test_self_attention_equals_a_loop_of_heads_and_torch(bias, kind):
    attention, X = make_square(bias=bias), draw(B, S, WIDTH)
    options = draw_allowed(kind, S, S)
    allowed = as_mask(S, S, **options)
    expected, _ = loop_of_heads(attention, X, X, X, allowed)
    torch.testing.assert_close(attention(X, X, X, **options), expected, **CLOSE)
    ignore = ~allowed.flatten(0, 1)  # (B * H, S, S); PyTorch's module: True = ignore
    reference, _ = to_torch(attention)(X, X, X, attn_mask=ignore, need_weights=False)
    torch.testing.assert_close(attention(X, X, X, **options), reference, **CLOSE)


@SIZES
@BIAS
@pytest.mark.parametrize("kind", KINDS)
def test_cross_attention_equals_torch_with_weights(num_queries, num_keys, bias, kind):
    sizes = (WIDTH, KEY, VALUE)
    attention = make(bias, sizes=(KEY, WIDTH, VALUE))
    inputs, options = (
        draw_inputs(num_queries, num_keys, sizes),
        draw_allowed(kind, num_queries, num_keys),
    )
    expected, expected_weights = to_torch(attention)(
        *inputs,
        attn_mask=~as_mask(num_queries, num_keys, **options).flatten(0, 1),
        average_attn_weights=False,
    )
    output, weights = attention(*inputs, **options, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


def test_causal_self_attention_equals_torch():
    attention, X = make_square(bias=True), draw(B, S, WIDTH)
    mask = torch.ones(S, S, dtype=torch.bool).tril()
    expected, _ = to_torch(attention)(X, X, X, attn_mask=~mask, is_causal=True, need_weights=False)
    torch.testing.assert_close(attention(X, X, X, mask=mask), expected, **CLOSE)


@SIZES
@BIAS
@pytest.mark.parametrize("kind", ["none", "lengths", "lengths a query"])
def test_results_and_gradients_equal_d2l(num_queries, num_keys, bias, kind):
    attention, inputs = make(bias), draw_inputs(num_queries, num_keys)
    lengths = draw_allowed(kind, num_queries, num_keys).get("valid_lens")
    book, seed = to_d2l(attention), draw(B, num_queries, WIDTH, seed=5)

    def results(module):
        leaves = [X.clone().requires_grad_() for X in inputs]
        output = module(*leaves, lengths)
        return output, *torch.autograd.grad(output, leaves + list(module.parameters()), seed)

    for got, expected in zip(results(attention), results(book), strict=True):
        torch.testing.assert_close(got, expected, **CLOSE)


@pytest.mark.parametrize("num_heads", [1, 2, 11, 22])
def test_every_number_of_heads_has_the_same_parameters_and_equals_d2l(num_heads):
    attention = make_square(bias=True, num_heads=num_heads)
    assert sum(p.numel() for p in attention.parameters()) == 4 * (WIDTH**2 + WIDTH)
    X, lengths = draw(B, S, WIDTH), torch.tensor([1, S, 3])
    torch.testing.assert_close(
        attention(X, X, X, lengths), to_d2l(attention)(X, X, X, lengths), **CLOSE
    )


@BIAS
def test_parameters_have_d2ls_names_and_shapes(bias):
    book = import_d2l().MultiHeadAttention(KEY, QUERY, VALUE, WIDTH, H, 0.5, bias)
    shapes = [(name, p.shape) for name, p in make(bias).named_parameters()]
    assert shapes == [(name, p.shape) for name, p in book.named_parameters()]


# The two paths


@pytest.mark.parametrize("kind", KINDS)
def test_attend_equals_torch(kind):
    q, k, v = draw(B, H, L, D, seed=1), draw(B, H, S, D, seed=2), draw(B, H, S, 13, seed=3)
    options = draw_allowed(kind)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=as_mask(L, S, **options))
    given = (q, k, v, options.get("valid_lens"), options.get("mask"))
    output, weights = attend(*given, torch.nn.Dropout(0.0), need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights @ v, expected, **CLOSE)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, L).double(), **CLOSE)
    output, weights = attend(*given, torch.nn.Dropout(0.5).eval(), need_weights=False)
    torch.testing.assert_close(output, expected, **CLOSE)
    assert weights is None


def test_attend_quotes_what_does_not_fit():
    q, k, dropout = draw(B, H, L, D), draw(B, H, S, D), torch.nn.Dropout(0.0)
    with pytest.raises(ValueError, match=rf"0..S = 0..{S}, got {S + 1}"):
        attend(q, k, k, torch.tensor([1, 2, S + 1]), None, dropout, False)
    with pytest.raises(ValueError, match=rf"mask must fit .*, got \({S}, {L}\)"):
        attend(q, k, k, None, torch.ones(S, L, dtype=torch.bool), dropout, False)
    with pytest.raises(TypeError, match="boolean tensor, True = may attend, got torch.float64"):
        attend(q, k, k, None, draw(L, S), dropout, False)


@BIAS
@pytest.mark.parametrize("kind", KINDS)
def test_both_paths_agree_forward_and_backward(bias, kind):
    attention, options = make(bias), draw_allowed(kind)

    def results(need_weights):
        leaves = [X.requires_grad_() for X in draw_inputs()]
        output = attention(*leaves, **options, need_weights=need_weights)
        output = output[0] if need_weights else output
        leaves += attention.parameters()
        return output, *torch.autograd.grad(output.square().sum(), leaves)

    for fused, explicit in zip(results(False), results(True), strict=True):
        torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-11)


class Record(TorchDispatchMode):
    """Keep the name of every operation, and the largest memory among what they make."""

    def __init__(self):
        super().__init__()
        self.names, self.largest = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        for X in output if isinstance(output, (tuple, list)) else [output]:
            if torch.is_tensor(X):
                numbers = X.untyped_storage().nbytes() // X.element_size()
                self.largest = max(self.largest, numbers)
        return output


FUSED = "_scaled_dot_product_flash_attention_for_cpu"
LONG = 257


def record(attention, X, backward=False, **options):
    """What runs, forward or with the backward pass, in self-attention on X."""
    with Record() as seen:
        output = attention(X, X, X, **options)
        if backward:
            output.sum().backward()
    return seen


@pytest.mark.parametrize("dropout, training", [(0.0, False), (0.0, True), (0.5, False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["none", "lengths"])
@pytest.mark.parametrize("backward", [False, True])
def test_the_fused_path_is_taken_and_makes_nothing_of_size_L_times_S(
    dropout, training, dtype, kind, backward
):
    attention = make_square(dropout=dropout).to(dtype).train(training)
    X = draw(B, LONG, WIDTH).to(dtype)
    options = {} if kind == "none" else {"valid_lens": torch.tensor([0, 2, LONG])}
    seen = record(attention, X, backward, **options)
    assert FUSED in seen.names and "_softmax" not in seen.names
    assert (FUSED + "_backward" in seen.names) == backward
    assert seen.largest < LONG * LONG


@pytest.mark.parametrize("how", ["weights", "dropout"])
def test_the_explicit_path_makes_scores_for_every_head(how):
    attention = make_square(dropout=0.5).train(how == "dropout")
    seen = record(attention, draw(B, LONG, WIDTH), need_weights=how == "weights")
    assert FUSED not in seen.names and "_softmax" in seen.names
    assert seen.largest >= B * H * LONG * LONG


def test_training_with_dropout_drops_weights_and_eval_does_not():
    attention, inputs = make(bias=True, dropout=0.5), draw_inputs()
    options = {"valid_lens": torch.tensor([1, S, 3])}
    plain, weights = attention.eval()(*inputs, **options, need_weights=True)
    torch.testing.assert_close(attention(*inputs, **options), plain, **CLOSE)
    attention.train()
    torch.manual_seed(0)
    output, train_weights = attention(*inputs, **options, need_weights=True)
    assert torch.equal(train_weights, weights)  # before dropout
    torch.manual_seed(0)
    assert torch.equal(attention(*inputs, **options), output)  # the same with and without weights
    torch.manual_seed(0)
    dropped = F.dropout(weights, 0.5)
    assert ((dropped == 0) & (weights > 0)).any()
    values = split_heads(attention.W_v(inputs[2]), H)  # (B, H, S, D)
    expected = attention.W_o(merge_heads(dropped @ values))
    torch.testing.assert_close(output, expected, **CLOSE)


def test_training_with_dropout_equals_d2l():
    attention, inputs, lengths = make(dropout=0.5).train(), draw_inputs(), torch.tensor([1, S, 3])
    book = to_d2l(attention)
    torch.manual_seed(0)
    output = attention(*inputs, lengths)
    torch.manual_seed(0)
    torch.testing.assert_close(output, book(*inputs, lengths), **CLOSE)


@pytest.mark.parametrize("need_weights", [False, True])
def test_everything_dropped_leaves_the_bias_of_the_output(need_weights):
    attention = make(bias=True, dropout=1.0).train()
    output = attention(*draw_inputs(), need_weights=need_weights)
    output = output[0] if need_weights else output
    torch.testing.assert_close(output, attention.W_o.bias.expand(B, L, WIDTH), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_lower_precision_stays_close_and_keeps_the_dtype(dtype, kind):
    attention, inputs, options = make(bias=True), draw_inputs(), draw_allowed(kind)
    expected, expected_weights = attention(*inputs, **options, need_weights=True)
    attention, inputs = attention.to(dtype), [X.to(dtype) for X in inputs]
    fused = attention(*inputs, **options)
    explicit, weights = attention(*inputs, **options, need_weights=True)
    assert fused.dtype == explicit.dtype == weights.dtype == dtype
    atol = 16 * torch.finfo(dtype).eps
    for got, wanted in ((fused, expected), (explicit, expected), (weights, expected_weights)):
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=atol)


def test_autocast_runs_in_its_own_dtype():
    attention, inputs = make(bias=True).float(), [X.float() for X in draw_inputs()]
    with torch.autocast("cpu", torch.bfloat16):
        output = attention(*inputs)
        again = attention(*(X.bfloat16() for X in inputs))
        explicit, weights = attention(*inputs, need_weights=True)
    assert output.dtype == again.dtype == explicit.dtype == torch.bfloat16
    expected, expected_weights = attention(*inputs, need_weights=True)
    for got, wanted in ((output, expected), (explicit, expected), (weights, expected_weights)):
        torch.testing.assert_close(got.float(), wanted, rtol=0, atol=0.1)


# Properties


@EXAMPLES
@given(st.permutations(range(S)), st.integers(0, 2**32), st.booleans())
def test_permuting_key_value_pairs_changes_nothing(order, seed, need_weights):
    attention, (queries, keys, values) = make(bias=True), draw_inputs()
    mask = draw(B, H, L, S, seed=seed) > 0
    output = attention(queries, keys, values, mask=mask, need_weights=need_weights)
    moved = attention(
        queries,
        keys[:, order],
        values[:, order],
        mask=mask[..., order],
        need_weights=need_weights,
    )
    if need_weights:
        torch.testing.assert_close(moved[1], output[1][..., order], **CLOSE)
        output, moved = output[0], moved[0]
    torch.testing.assert_close(moved, output, **CLOSE)


@EXAMPLES
@given(st.lists(st.integers(0, S), min_size=B, max_size=B), st.integers(0, 2**32))
def test_rows_sum_to_1_or_are_zero(lengths, seed):
    lengths, mask = torch.tensor(lengths), draw(B, H, L, S, seed=seed) > 0
    _, weights = make()(*draw_inputs(), lengths, mask, need_weights=True)
    allowed = as_mask(L, S, lengths, mask)
    assert (weights[~allowed] == 0).all()
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double(), **CLOSE)


@EXAMPLES
@given(st.permutations(range(B)))
def test_sequences_do_not_see_each_other(order):
    attention, inputs, lengths = make(), draw_inputs(), torch.tensor([1, S, 3])
    output = attention(*inputs, lengths)
    moved = attention(*(X[order] for X in inputs), lengths[order])
    torch.testing.assert_close(moved, output[order], **CLOSE)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["lengths", "mask"])
def test_nothing_to_attend_to_gives_zero_heads_and_finite_gradients(need_weights, kind):
    attention, inputs = make(bias=True), [X.requires_grad_() for X in draw_inputs()]
    options = {"valid_lens": torch.tensor([0, 2, S])}
    if kind == "mask":
        options = {"mask": torch.arange(S) < options["valid_lens"].reshape(B, 1, 1)}
    output = attention(*inputs, **options, need_weights=need_weights)
    if need_weights:
        output, weights = output
        assert (weights[0] == 0).all()
    torch.testing.assert_close(output[0], attention.W_o.bias.expand(L, WIDTH), **CLOSE)
    output.square().sum().backward()
    for X in inputs:
        assert X.grad.isfinite().all() and (X.grad[0] == 0).all() and (X.grad[1:] != 0).any()
    for parameter in attention.parameters():
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("num_queries, num_keys", [(0, S), (L, 0)])
@pytest.mark.parametrize("need_weights", [False, True])
def test_no_queries_give_nothing_and_no_keys_give_zero_heads(num_queries, num_keys, need_weights):
    attention = make(bias=True)
    output = attention(*draw_inputs(num_queries, num_keys), need_weights=need_weights)
    output = output[0] if need_weights else output
    expected = attention.W_o.bias.expand(B, num_queries, WIDTH)
    torch.testing.assert_close(output, expected, **CLOSE)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 7), (0, 5)], ids=str)
def test_short_inputs(sizes):
    attention, X = make_square(bias=True), draw(*sizes, WIDTH)
    output, weights = attention(X, X, X, need_weights=True)
    expected, expected_weights = to_torch(attention)(X, X, X, average_attn_weights=False)
    torch.testing.assert_close(attention(X, X, X), expected, **CLOSE)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


# Where it differs from d2l


def test_length_0_is_zero_here_and_the_average_of_all_values_in_d2l():
    attention, inputs = make(), draw_inputs()
    lengths = torch.tensor([0, 2, S])
    ours, book = attention(*inputs, lengths), to_d2l(attention)(*inputs, lengths)
    assert (ours[0] == 0).all()
    average = attention.W_o(attention.W_v(inputs[2][0]).mean(0))
    torch.testing.assert_close(book[0], average.expand(L, WIDTH), **CLOSE)
    torch.testing.assert_close(ours[1:], book[1:], **CLOSE)


def test_lengths_beyond_the_keys_are_an_error_here_and_pass_in_d2l():
    attention, inputs = make(), draw_inputs()
    lengths = torch.tensor([1, S + 1, 3])
    book = to_d2l(attention)
    torch.testing.assert_close(book(*inputs, lengths), book(*inputs, lengths.clamp(max=S)), **CLOSE)
    with pytest.raises(ValueError, match=rf"0..S = 0..{S}, got {S + 1}"):
        attention(*inputs, lengths)


def test_weights_are_returned_here_and_kept_in_d2l():
    attention, inputs, lengths = make(), draw_inputs(), torch.tensor([1, S, 3])
    before = set(vars(attention)), set(vars(attention.dropout))
    _, weights = attention(*inputs, lengths, need_weights=True)
    assert (set(vars(attention)), set(vars(attention.dropout))) == before
    book = to_d2l(attention)
    book(*inputs, lengths)
    kept = book.attention.attention_weights  # (B * H, L, S)
    torch.testing.assert_close(weights.flatten(0, 1), kept, **CLOSE)


# The module as a whole


def test_the_callers_tensors_are_not_changed():
    tensors = [*draw_inputs(), torch.tensor([0, 2, S]), draw(L, S) > 0]
    before = [X.clone() for X in tensors]
    attention = make(bias=True, dropout=0.5)
    first = attention.eval()(*tensors)
    attention(*tensors, need_weights=True)
    attention.train()(*tensors)
    assert all(torch.equal(X, Y) for X, Y in zip(tensors, before, strict=True))
    assert torch.equal(attention.eval()(*tensors), first)


@pytest.mark.parametrize("name", multihead.__all__)
def test_docstrings_say_shapes_what_is_raised_source_and_lesson(name):
    doc = inspect.getdoc(getattr(multihead, name))
    assert all(f"{part}:" in doc for part in ("Shapes", "Raises", "Source", "Lesson"))


def test_the_class_that_lessons_print_is_read_in_a_minute():
    code = inspect.getsource(MultiHeadAttention).replace(MultiHeadAttention.__doc__, "")
    assert code.count("\n") <= 60
    assert inspect.getsource(MultiHeadAttention.forward).count("\n") <= 25


def test_import_brings_nothing_beyond_torch():
    code = (
        "import sys, torch; before = set(sys.modules);"
        "import mha_course, mha_course.attention, mha_course.multihead, mha_course.packed;"
        "import mha_course.interop, mha_course.bert;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["mha_course"]


HOOKS = [
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
]


@pytest.mark.parametrize("name", ["W_q", "W_k", "W_v", "W_o"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_on_a_projection_is_called(name, hook):
    attention, X = make_square(), draw(B, L, WIDTH).requires_grad_()
    linear, calls = attention.get_submodule(name), []
    getattr(linear, hook)(lambda module, *tensors: calls.append(module))
    attention(X, X, X).sum().backward()
    assert calls == [linear]


@pytest.mark.parametrize("name", ["W_q", "W_k", "W_v"])
@BIAS
def test_another_linear_in_place_of_a_projection_is_used(name, bias):
    attention, X = make_square(bias=bias), draw(B, S, WIDTH)
    linear = torch.nn.Linear(WIDTH, WIDTH, bias=not bias, dtype=torch.float64)
    setattr(attention, name, linear)
    expected, _ = loop_of_heads(attention, X, X, X, as_mask(S, S))
    torch.testing.assert_close(attention(X, X, X), expected, **CLOSE)


def test_values_may_be_projected_to_another_width():
    attention, X = make_square(), draw(B, S, WIDTH)
    expected = attention(X, X, X)
    weight = attention.W_v.weight.detach().unflatten(0, (H, D))  # (H, D, WIDTH)
    attention.W_v = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
    attention.W_v.weight.data = torch.cat([weight, -weight], dim=1).flatten(0, 1)
    weight = attention.W_o.weight.detach().unflatten(1, (H, D))  # (WIDTH, H, D)
    attention.W_o = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)
    attention.W_o.weight.data = torch.cat([2 * weight, weight], dim=2).flatten(1)
    torch.testing.assert_close(attention(X, X, X), expected, **CLOSE)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of fused attention in vmap
def test_parameters_may_be_stacked_or_fake():
    """As tools have them that run several models at once, or only ask for shapes."""
    several = [make_square(bias=True, seed=seed) for seed in range(3)]
    stacked, buffers = torch.func.stack_module_state(several)
    X = draw(B, L, WIDTH)

    def call(parameters):
        return torch.func.functional_call(several[0], (parameters, buffers), (X, X, X))

    for attention, output in zip(several, torch.vmap(call)(stacked), strict=True):
        torch.testing.assert_close(output, attention(X, X, X), **CLOSE)
    with FakeTensorMode():
        attention = MultiHeadAttention(*[WIDTH] * 4, H, bias=True)
        assert attention(*[torch.empty(B, L, WIDTH)] * 3).shape == (B, L, WIDTH)
