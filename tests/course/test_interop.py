"""`mha_course.interop`: the same weights here, in PyTorch and in d2l."""

import subprocess
import sys
import types

import pytest
import torch

from mha_course import interop
from mha_course.interop import from_d2l, from_torch, import_d2l, to_d2l, to_torch
from mha_course.multihead import MultiHeadAttention

B, L, S, H, D = 3, 5, 7, 2, 11
WIDTH = H * D
KEY, QUERY, VALUE = 13, 17, 19
CLOSE = dict(rtol=0, atol=1e-12)
BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
# PyTorch packs W_q, W_k, W_v when all widths are equal, and keeps three matrices otherwise.
TORCH_SIZES = pytest.mark.parametrize(
    "sizes", [(WIDTH, WIDTH), (KEY, VALUE), (WIDTH, VALUE)], ids=["packed", "apart", "v apart"]
)


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def randomize(module):
    """All weights and biases random: PyTorch's biases start at 0 and would hide a swap."""
    for seed, parameter in enumerate(module.parameters()):
        parameter.data.copy_(draw(*parameter.shape, seed=10 + seed) / parameter.shape[-1] ** 0.5)
    return module


def make(key=KEY, query=QUERY, value=VALUE, bias=False, dropout=0.0):
    return randomize(MultiHeadAttention(key, query, value, WIDTH, H, dropout, bias).double())


def make_torch(sizes=(WIDTH, WIDTH), bias=False, **options):
    key, value = sizes
    return randomize(
        torch.nn.MultiheadAttention(
            WIDTH, H, bias=bias, kdim=key, vdim=value, dtype=torch.float64, **options
        )
    )


def draw_inputs(query=QUERY, key=KEY, value=VALUE):
    return draw(B, L, query, seed=1), draw(B, S, key, seed=2), draw(B, S, value, seed=3)


def assert_same_parameters(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    places = {p.data_ptr() for p in one.parameters()}
    assert places.isdisjoint(p.data_ptr() for p in other.parameters())  # copies, not the same


# PyTorch


@TORCH_SIZES
@BIAS
@pytest.mark.parametrize("batch_first", [False, True])
def test_from_torch_gives_the_same_results(sizes, bias, batch_first):
    reference = make_torch(sizes, bias, batch_first=batch_first)
    queries, keys, values = draw_inputs(WIDTH, *sizes)
    lengths = torch.tensor([1, S, 3])
    inputs = (queries, keys, values)
    if not batch_first:
        inputs = [X.transpose(0, 1) for X in inputs]
    expected, expected_weights = reference(
        *inputs,
        key_padding_mask=torch.arange(S) >= lengths.unsqueeze(1),
        average_attn_weights=False,
    )
    if not batch_first:
        expected = expected.transpose(0, 1)
    output, weights = from_torch(reference)(queries, keys, values, lengths, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(weights, expected_weights, **CLOSE)


@TORCH_SIZES
@BIAS
def test_from_torch_and_back_is_the_same_module(sizes, bias):
    reference = make_torch(sizes, bias, batch_first=True)
    assert_same_parameters(to_torch(from_torch(reference)), reference)


@TORCH_SIZES
@BIAS
def test_to_torch_and_back_is_the_same_module(sizes, bias):
    key, value = sizes
    attention = make(key, WIDTH, value, bias)
    reference = to_torch(attention)
    assert reference.batch_first
    assert_same_parameters(from_torch(reference), attention)


@BIAS
def test_to_torch_gives_the_same_results_in_self_attention(bias):
    attention, X = make(WIDTH, WIDTH, WIDTH, bias), draw(B, S, WIDTH)
    expected, weights = to_torch(attention)(X, X, X, average_attn_weights=False)
    output, ours = attention(X, X, X, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    torch.testing.assert_close(ours, weights, **CLOSE)


def test_from_torch_reads_the_packed_matrix_in_the_order_q_k_v():
    reference = torch.nn.MultiheadAttention(2, 1, bias=True)
    reference.in_proj_weight.data.copy_(torch.arange(12.0).reshape(6, 2))
    reference.in_proj_bias.data.copy_(torch.arange(6.0))
    attention = from_torch(reference)
    assert attention.W_q.weight.tolist() == [[0, 1], [2, 3]] and attention.W_q.bias.tolist() == [
        0,
        1,
    ]
    assert attention.W_k.weight.tolist() == [[4, 5], [6, 7]] and attention.W_k.bias.tolist() == [
        2,
        3,
    ]
    assert attention.W_v.weight.tolist() == [[8, 9], [10, 11]]
    assert attention.W_v.bias.tolist() == [4, 5]


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_from_torch_refuses_what_has_no_counterpart(option):
    with pytest.raises(ValueError, match=f"{option}=True.* no counterpart"):
        from_torch(make_torch(bias=True, **{option: True}))


def test_to_torch_quotes_queries_that_are_not_as_wide_as_the_output():
    with pytest.raises(ValueError, match=f"num_hiddens={WIDTH}, these are {QUERY} wide"):
        to_torch(make())


# d2l


@BIAS
@pytest.mark.parametrize("lengths", [None, [1, S, 3], [[1, 2, 3, 4, 5]] * 2 + [[7, 6, 5, 4, 3]]])
def test_to_d2l_gives_the_same_results(bias, lengths):
    attention, inputs = make(bias=bias), draw_inputs()
    lengths = None if lengths is None else torch.tensor(lengths)
    book = to_d2l(attention)
    assert type(book) is import_d2l().MultiHeadAttention
    torch.testing.assert_close(attention(*inputs, lengths), book(*inputs, lengths), **CLOSE)


@BIAS
def test_from_d2l_gives_the_same_results(bias):
    book = import_d2l().MultiHeadAttention(KEY, QUERY, VALUE, WIDTH, H, 0.0, bias)
    book, lengths = randomize(book.double()), torch.tensor([1, S, 3])
    attention, inputs = from_d2l(book), draw_inputs()
    torch.testing.assert_close(attention(*inputs, lengths), book(*inputs, lengths), **CLOSE)
    assert_same_parameters(to_d2l(attention), book)


@BIAS
def test_to_d2l_and_back_is_the_same_module(bias):
    attention = make(bias=bias)
    assert_same_parameters(from_d2l(to_d2l(attention)), attention)


# Both


@pytest.mark.parametrize("there, back", [(to_torch, from_torch), (to_d2l, from_d2l)])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_round_trips_keep_mode_dropout_dtype_and_leave_the_original_alone(
    there, back, training, dtype
):
    attention = make(WIDTH, WIDTH, WIDTH, bias=True, dropout=0.25).to(dtype).train(training)
    before = {name: X.clone() for name, X in attention.state_dict().items()}
    other = there(attention)
    returned = back(other)
    for module in (other, returned):
        assert all(part.training == training for part in module.modules())
        assert all(p.dtype == dtype and p.requires_grad for p in module.parameters())
    assert returned.dropout.p == 0.25 and returned.num_heads == H
    assert all(torch.equal(X, before[name]) for name, X in attention.state_dict().items())


# The lazy import


def run(code):
    """What a fresh Python prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_d2l_is_imported_once_and_leaves_no_stand_in_behind():
    code = """if True:
        import sys
        from importlib.util import find_spec
        from mha_course.interop import import_d2l
        print("d2l.torch" in sys.modules)
        real = find_spec("torchvision") is not None
        d2l = import_d2l()
        print(d2l.__name__, d2l is import_d2l(), ("torchvision" in sys.modules) == real)
        from transformers.utils import is_torchvision_available
        print(is_torchvision_available() == real)
    """
    assert run(code) == ["False", "d2l.torch", "True", "True", "True"]


@pytest.fixture
def without_modules(monkeypatch):
    """Neither d2l.torch nor torchvision is imported; afterwards everything is as it was."""
    for name in [n for n in sys.modules if n == "d2l.torch" or n.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    return monkeypatch


@pytest.mark.parametrize("torchvision", ["installed", "absent", "broken"])
def test_d2l_that_is_not_installed_is_an_import_error(without_modules, torchvision):
    def import_module(name):
        if name == "torchvision" and torchvision == "installed":
            return types.ModuleType(name)
        if name == "torchvision" and torchvision == "broken":
            raise RuntimeError("operator torchvision::nms does not exist")
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    without_modules.setattr(interop.importlib, "import_module", import_module)
    with pytest.raises(ImportError, match="No module named 'd2l.torch'"):
        import_d2l()
    assert "torchvision" not in sys.modules and "torchvision.transforms" not in sys.modules


def test_the_stand_in_is_there_only_while_d2l_is_imported(without_modules):
    seen = []

    def import_module(name):
        if name == "torchvision":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        from torchvision import transforms

        seen.append((sys.modules["torchvision"].transforms, transforms))
        return "the book"

    without_modules.setattr(interop.importlib, "import_module", import_module)
    assert import_d2l() == "the book"
    assert len(seen) == 1 and seen[0][0] is seen[0][1]
    assert "torchvision" not in sys.modules and "torchvision.transforms" not in sys.modules
