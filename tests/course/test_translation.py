"""The translators: equal to PyTorch's layers, masks that hold, what is bad is refused."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mha_course.interop import to_torch
from mha_course.translation import (
    DecoderLayer,
    EncoderLayer,
    RecurrentTranslator,
    Transformer,
    greedy,
    sinusoidal_positions,
    teacher_forcing_loss,
)

B, L, S, H, WIDTH, INNER, TOKENS = 3, 5, 7, 2, 22, 13, 17
CLOSE = {"atol": 1e-12, "rtol": 0}
LENS = torch.tensor([7, 2, 5])
NORMS = ("norm1", "norm2", "norm3")


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        yield


def random_numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def layer(kind):
    made = kind(WIDTH, H, INNER).double()
    with torch.no_grad():
        for parameter in made.parameters():  # norms too: a new one only passes numbers on
            parameter.normal_(std=0.5)
    return made


def in_pytorch(ours, kind):
    """PyTorch's layer with the weights of ours."""
    theirs = kind(WIDTH, H, INNER, dropout=0.0, batch_first=True).double()
    theirs.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward[2].state_dict())
    for number in (1, 2, 3):
        if hasattr(ours, f"norm_{number}"):
            norm = getattr(ours, f"norm_{number}")
            getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
    theirs.self_attn = to_torch(ours.self_attention)
    if hasattr(ours, "cross_attention"):
        theirs.multihead_attn = to_torch(ours.cross_attention)
    return theirs.train()  # in eval mode PyTorch takes another path


def padding(lens, length=S):
    return torch.arange(length) >= lens[:, None]  # PyTorch: True = ignore


def test_an_encoder_layer_is_pytorchs():
    ours, X = layer(EncoderLayer), random_numbers(B, S, WIDTH)
    theirs = in_pytorch(ours, nn.TransformerEncoderLayer)
    expected = theirs(X, src_key_padding_mask=padding(LENS))
    torch.testing.assert_close(ours(X, LENS), expected, **CLOSE)
    torch.testing.assert_close(ours(X), theirs(X), **CLOSE)


@pytest.mark.parametrize("length", [L, S])
def test_a_decoder_layer_is_pytorchs(length):
    ours = layer(DecoderLayer)
    Y, memory = random_numbers(B, length, WIDTH), random_numbers(B, S, WIDTH)
    theirs = in_pytorch(ours, nn.TransformerDecoderLayer)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    expected = theirs(Y, memory, tgt_mask=future, memory_key_padding_mask=padding(LENS))
    torch.testing.assert_close(ours(Y, memory, LENS), expected, **CLOSE)
    output, weights = ours(Y, memory, LENS, need_weights=True)
    torch.testing.assert_close(output, expected, **CLOSE)
    assert weights.shape == (B, H, length, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, length).double(), **CLOSE)
    assert not weights[padding(LENS)[:, None, None].expand_as(weights)].any()


def test_positions_by_hand():
    P = sinusoidal_positions(3, 4)
    rows = [
        [0, 1, 0, 1],
        *([math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in (1, 2)),
    ]
    torch.testing.assert_close(P, torch.tensor(rows))
    assert sinusoidal_positions(0, 4).shape == (0, 4)


def models():
    return {
        "Transformer": Transformer(TOKENS, WIDTH, H, 2),
        "recurrent": RecurrentTranslator(TOKENS, WIDTH),
        "bottleneck": RecurrentTranslator(TOKENS, WIDTH, attention=False),
    }


@pytest.fixture(params=["Transformer", "recurrent", "bottleneck"])
def model(request):
    return models()[request.param].double()


def a_batch():
    source = torch.randint(3, TOKENS, (B, S)).masked_fill(padding(LENS), 0)
    return source, LENS, torch.randint(3, TOKENS, (B, L))


def test_scores_of_every_next_token(model):
    source, lens, target = a_batch()
    scores = model(source, lens, target)
    assert scores.shape == (B, L, TOKENS)
    memory = model.encode(source, lens)
    again, weights = model.decode(target, memory, lens, need_weights=True)
    torch.testing.assert_close(again, scores, **CLOSE)
    for looked in weights:
        assert looked.shape[0::2] == (B, L) and looked.shape[3] == S
        torch.testing.assert_close(looked.sum(-1), torch.ones(looked.shape[:3]).double(), **CLOSE)
        assert not looked[padding(lens)[:, None, None].expand_as(looked)].any()


def test_each_kind_returns_the_weights_that_it_has():
    source, lens, target = a_batch()
    counts = {}
    for name, made in models().items():
        _, weights = made.decode(target, made.encode(source, lens), lens, need_weights=True)
        counts[name] = [looked.shape[1] for looked in weights]
    assert counts == {"Transformer": [H, H], "recurrent": [1], "bottleneck": []}


def test_padding_changes_nothing(model):
    source, lens, target = a_batch()
    scores = model(source, lens, target)
    other = torch.where(padding(lens), torch.randint(3, TOKENS, (B, S)), source)
    torch.testing.assert_close(model(other, lens, target), scores, **CLOSE)
    longer = torch.cat([source, torch.ones(B, 4, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(longer, lens, target), scores, **CLOSE)
    for row in range(B):  # alone, without any padding
        alone = model(
            source[row : row + 1, : lens[row]], lens[row : row + 1], target[row : row + 1]
        )
        torch.testing.assert_close(alone[0], scores[row], **CLOSE)


def test_later_tokens_change_nothing(model):
    source, lens, target = a_batch()
    scores = model(source, lens, target)
    for t in range(1, L):
        changed = target.clone()
        changed[:, t:] = (changed[:, t:] + 1) % TOKENS
        torch.testing.assert_close(model(source, lens, changed)[:, :t], scores[:, :t], **CLOSE)
        assert (model(source, lens, changed)[:, t:] - scores[:, t:]).abs().min() > 0
        torch.testing.assert_close(model(source, lens, target[:, :t]), scores[:, :t], **CLOSE)


def test_the_source_is_read(model):
    source, lens, target = a_batch()
    changed = source.clone()
    changed[:, 0] = (changed[:, 0] + 1) % TOKENS
    assert (model(changed, lens, target) - model(source, lens, target)).abs().amin(2).min() > 0


def test_without_attention_every_step_gets_the_same_summary():
    made = RecurrentTranslator(TOKENS, WIDTH, attention=False)
    source, lens, target = a_batch()
    states, summary = made.encode(source, lens)
    scores = made.decode(target, (torch.full_like(states, torch.nan), summary), lens)
    assert torch.equal(scores, made(source, lens, target))
    last_of_first_direction = states[torch.arange(B), lens - 1, : WIDTH // 2]
    torch.testing.assert_close(summary[:, : WIDTH // 2], last_of_first_direction)
    torch.testing.assert_close(summary[:, WIDTH // 2 :], states[:, 0, WIDTH // 2 :])


def test_the_loss_is_that_of_the_next_token_and_leaves_padding_out(model):
    source, lens, _ = a_batch()
    target = torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0], [1, 2, 0, 0]])
    terms = []
    for row, length in enumerate((4, 3, 2)):
        one = slice(row, row + 1)
        scores = model(source[one], lens[one], target[one, : length - 1])[0]
        for t in range(length - 1):
            terms.append(F.log_softmax(scores[t], dim=0)[target[row, t + 1]])
    expected = -torch.stack(terms).mean()
    loss = teacher_forcing_loss(model, source, lens, target)
    torch.testing.assert_close(loss, expected, **CLOSE)


class Scripted:
    """Writes what it is told, whatever it reads."""

    def __init__(self, *script):
        self.script, self.asked = torch.tensor(script), 0

    def encode(self, source, source_lens):
        return source

    def decode(self, target, memory, source_lens):
        self.asked += 1
        assert target.shape[1] == self.asked and not torch.is_grad_enabled()
        scores = torch.zeros(*target.shape, 9)
        scores[:, -1] = F.one_hot(self.script[:, self.asked - 1], 9).float()
        return scores


def test_each_row_stops_at_its_own_end():
    model = Scripted([5, 2, 7, 2, 8, 8], [5, 6, 7, 2, 8, 8], [2, 2, 2, 2, 8, 8])
    written = greedy(model, torch.zeros(3, 4), None, longest=6)
    assert written.tolist() == [[1, 5, 2, 0, 0], [1, 5, 6, 7, 2], [1, 2, 0, 0, 0]]
    assert model.asked == 4


def test_who_never_ends_is_stopped():
    written = greedy(Scripted([5, 6, 7], [2, 6, 7]), torch.zeros(2, 4), None, longest=3)
    assert written.tolist() == [[1, 5, 6, 7], [1, 2, 0, 0]]


def test_greedy_writes_what_scores_highest(model):
    source, lens, _ = a_batch()
    written = greedy(model, source, lens, longest=6)
    scores = model(source, lens, written[:, :-1])
    for row in range(B):
        for t in range(written.shape[1] - 1):
            if 2 in written[row, : t + 1]:
                assert written[row, t + 1] == 0
            else:
                assert written[row, t + 1] == scores[row, t].argmax()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: sinusoidal_positions(3, 5), ValueError, "num_hiddens=5"),
        (lambda: RecurrentTranslator(TOKENS, 5), ValueError, "got 5"),
        (lambda: Transformer(TOKENS, 22, 3, 1), ValueError, "num_hiddens=22"),
        (lambda: greedy(Scripted([1]), torch.zeros(1, 1), None, 0), ValueError, "got 0"),
    ],
)
def test_what_is_bad_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_numbers_that_do_not_fit_are_refused(model):
    source, lens, target = a_batch()
    with pytest.raises(ValueError, match=r"source must be \(B, S\), got \(7,\)"):
        model(source[0], lens, target)
    with pytest.raises(ValueError, match=r"target must be \(B, L\), got \(5,\)"):
        model(source, lens, target[0])
    with pytest.raises(TypeError, match="source must be a tensor"):
        model(source.tolist(), lens, target)
    with pytest.raises((ValueError, RuntimeError)):
        model(source, lens + 3, target)
    with pytest.raises((ValueError, RuntimeError)):
        model(source, lens, target[:2])
