"""Three projections in one product: without a copy while their parameters lie side by side."""

import copy
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch._subclasses import FakeTensorMode

from mha_course.multihead import MultiHeadAttention
from mha_course.packing import Packed

B, L, WIDTH, H = 3, 5, 14, 2


def layer(bias=True, seed=0, **options):
    torch.manual_seed(seed)
    return MultiHeadAttention(*[WIDTH] * 4, H, bias=bias, **options).double()


def inputs(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(B, L, WIDTH, generator=generator, dtype=torch.float64)


def slowly(attention, X):
    """The output and the weights from the parameters as they are now, head by head."""
    q, k, v = (
        nn.functional.linear(X, W.weight, W.bias).unflatten(-1, (H, -1)).transpose(1, 2)
        for W in (attention.W_q, attention.W_k, attention.W_v)
    )
    weights = torch.softmax(q @ k.mT / (WIDTH // H) ** 0.5, dim=-1)
    W_o = attention.W_o
    output = nn.functional.linear((weights @ v).transpose(1, 2).flatten(2), W_o.weight, W_o.bias)
    return output, weights


def assert_right(attention, X=None):
    X = inputs() if X is None else X
    with torch.no_grad():
        output, weights = slowly(attention, X)
        torch.testing.assert_close(attention(X, X, X), output)
        again, seen = attention(X, X, X, need_weights=True)
        torch.testing.assert_close(again, output)
        torch.testing.assert_close(seen, weights)


def lies_together(attention):
    with torch.no_grad():
        return attention._packed.shared() is not None


def test_the_values_are_those_of_linears_made_one_by_one():
    attention = layer()
    torch.manual_seed(0)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        linear = nn.Linear(WIDTH, WIDTH).double()
        assert torch.equal(getattr(attention, name).weight, linear.weight)
        assert torch.equal(getattr(attention, name).bias, linear.bias)
        assert getattr(attention, name).weight.is_leaf


@pytest.mark.parametrize("bias", [False, True])
def test_nothing_is_copied_without_gradients(bias, monkeypatch):
    attention = layer(bias)
    assert_right(attention)
    monkeypatch.setattr(torch, "cat", None)
    assert_right(attention)
    X = inputs()
    with pytest.raises(TypeError, match="NoneType"):
        attention(X, X, X)  # with gradients there is a copy


MOVED = {
    "to another dtype and back": lambda a: a.float().double(),
    "deepcopy": copy.deepcopy,
    "a copy of a copy": lambda a: copy.deepcopy(copy.deepcopy(a)),
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "inside of another module": lambda a: copy.deepcopy(nn.Sequential(a))[0],
}


@pytest.mark.parametrize("move", MOVED.values(), ids=MOVED)
def test_parameters_stay_side_by_side(move):
    before = layer()
    moved = move(before)
    assert lies_together(moved)
    nn.init.normal_(moved.W_k.weight)
    assert_right(moved)
    assert_right(before)


def test_copies_share_nothing():
    one = layer()
    other = copy.deepcopy(one)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in one.parameters())


def _swap_data(attention):
    attention.W_k.weight.data = torch.randn(WIDTH, WIDTH).double()


def _other_linear(attention):
    attention.W_v = nn.Linear(WIDTH, WIDTH).double()


def _no_bias(attention):
    attention.W_q.bias = None


def _assigned(attention):
    attention.load_state_dict(layer(seed=7).state_dict(), assign=True)


def _loaded(attention):
    attention.load_state_dict(layer(seed=7).state_dict())


def _trained(attention):
    optimizer = torch.optim.SGD(attention.parameters(), lr=0.5)
    attention(inputs(2), inputs(2), inputs(2)).square().sum().backward()
    optimizer.step()


def test_safetensors_writes_what_shares_a_memory(tmp_path):
    attention, other = layer(), layer(seed=5)
    save_file(attention.state_dict(), tmp_path / "weights.safetensors")
    other.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    X = inputs()
    assert torch.equal(attention(X, X, X), other(X, X, X))


def _one_weight_for_two(attention):
    attention.W_k.weight = attention.W_q.weight


CHANGED = [_swap_data, _other_linear, _assigned, _loaded, _trained, _one_weight_for_two]


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: change.__name__.strip("_"))
def test_what_changes_the_parameters_is_seen(change):
    attention = layer()
    before = attention(inputs(), inputs(), inputs()).detach()
    change(attention)
    assert_right(attention)
    assert not torch.allclose(attention(inputs(), inputs(), inputs()), before)
    attention.double()
    assert_right(attention)


def test_a_bias_that_is_taken_away_is_not_added():
    attention = layer()
    _no_bias(attention)
    X = inputs()
    with torch.no_grad():
        output = attention(X, X, X)
        q = X @ attention.W_q.weight.T
        k, v = attention.W_k(X), attention.W_v(X)
        q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in (q, k, v))
        wanted = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        torch.testing.assert_close(output, attention.W_o(wanted))


def test_a_hook_is_called_with_and_without_weights():
    called, X = [], inputs()
    attention = layer()
    for name in ("W_q", "W_o"):
        hook = getattr(attention, name).register_forward_hook(
            lambda *given, n=name: called.append(n)
        )
        with torch.no_grad():
            attention(X, X, X)
            attention(X, X, X, need_weights=True)
        hook.remove()
        assert called == [name] * 2
        called.clear()
    assert_right(attention)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (1, 7), (0, 5), (3, 0)], ids=str)
def test_short_inputs_with_weights(sizes):
    X = torch.randn(*sizes, WIDTH, dtype=torch.float64)
    assert_right(layer(), X)


def test_one_call_wants_what_the_module_wants():
    attention, X = layer(), inputs()
    with torch.no_grad():
        with pytest.raises(TypeError, match="the inputs are torch.float32, the module's weights"):
            attention(X.float(), X.float(), X.float(), need_weights=True)
        Y = X[..., :-1].contiguous()
        with pytest.raises(TypeError, match="the inputs are"):
            attention(Y.float(), Y.float(), Y.float(), need_weights=True)
        with pytest.raises(ValueError, match=r"queries must have width 14, got 13 in \(3, 5, 13\)"):
            attention(Y, Y, Y, need_weights=True)


def test_dropout_acts_in_training_with_weights():
    attention, X = layer(dropout=0.9), inputs()
    with torch.no_grad():
        output, _ = attention(X, X, X, need_weights=True)
        assert not torch.allclose(output, slowly(attention, X)[0])
    assert_right(attention.eval())


def test_odd_heads_and_gradients_with_weights():
    torch.manual_seed(0)
    attention, X = MultiHeadAttention(*[15] * 4, 3, bias=True), torch.randn(2, 5, 15)
    with torch.no_grad():
        output, weights = attention(X, X, X, need_weights=True)
    again, seen = attention(X, X, X, need_weights=True)
    assert again.requires_grad and seen.requires_grad
    torch.testing.assert_close(output, again)
    torch.testing.assert_close(weights, seen)


def test_mixed_precision_with_weights():
    attention, X = layer().float(), inputs().float()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        output, weights = attention(X, X, X, need_weights=True)
    with torch.no_grad():
        wanted, seen = slowly(attention, X)
    torch.testing.assert_close(output.float(), wanted, rtol=0.05, atol=0.05)
    torch.testing.assert_close(weights.float(), seen, rtol=0.05, atol=0.05)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of fused attention in vmap
def test_parameters_without_an_address():
    """Fake ones, as tools use them that only ask for shapes, and those under vmap."""
    with FakeTensorMode(), torch.no_grad():
        attention = MultiHeadAttention(*[WIDTH] * 4, H, bias=True)
        X = torch.empty(B, L, WIDTH)
        assert attention(X, X, X).shape == (B, L, WIDTH)
    several = [layer(seed=n) for n in range(3)]
    stacked, buffers = torch.func.stack_module_state(several)
    X = inputs()

    def call(parameters):
        return torch.func.functional_call(several[0], (parameters, buffers), (X, X, X))

    with torch.no_grad():
        outputs = torch.vmap(call)(stacked)
        for attention, output in zip(several, outputs, strict=True):
            torch.testing.assert_close(output, slowly(attention, X)[0])


NOT_ALIKE = {
    "width": (nn.Linear(3, 5), nn.Linear(7, 5), nn.Linear(3, 5)),
    "dtype": (nn.Linear(3, 5), nn.Linear(3, 5).double(), nn.Linear(3, 5)),
    "bias": (nn.Linear(3, 5), nn.Linear(3, 5), nn.Linear(3, 5, bias=False)),
    "kind": (
        nn.Linear(3, 5),
        nn.Linear(3, 5),
        nn.utils.parametrizations.weight_norm(nn.Linear(3, 5)),
    ),
}


@pytest.mark.parametrize("linears", NOT_ALIKE.values(), ids=NOT_ALIKE)
def test_linears_that_are_not_alike_are_left_alone(linears):
    weights = [linear.weight.clone() for linear in linears]
    packed = Packed(*linears)
    assert packed.copied() is None
    with torch.no_grad():
        assert packed.shared() is None
    for linear, weight in zip(linears, weights, strict=True):
        assert torch.equal(linear.weight, weight) and linear.weight.dtype == weight.dtype


def test_a_linear_that_is_new_in_inference_mode_can_be_trained_later():
    attention, X = layer(), inputs()
    attention.W_k = nn.Linear(WIDTH, WIDTH).double()
    with torch.inference_mode():
        attention(X, X, X)
    assert not attention.W_k.weight.is_inference()
    attention(X, X, X).sum().backward()
    torch.optim.SGD(attention.parameters(), lr=0.5).step()
    assert_right(attention)
