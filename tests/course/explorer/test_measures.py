"""What heads look at, measured: against numbers by hand and loops, and in the real model."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_reader import LAYERS, H, L, S, weights
from torch import nn

from mha_course.explorer import (
    attention_map,
    describe_head,
    entropy,
    find_head,
    head_figures,
    most_attended,
    offset_score,
    separator_score,
    token_score,
)
from mha_course.explorer.heads import opening_head

TOKENS = ["[CLS]", "the", "cat", "the", "[SEP]"]
HEADS = (0, 2), (1, 8), (4, 5), (0, 0)
# Plain English of 15 to 20 words, the length of sentences in books.
SENTENCES = (
    "The children played in the garden until it got dark and their mother called them in.",
    "He forgot his umbrella on the train, so he walked home through the heavy rain.",
    "Our neighbour bakes fresh bread every morning and sells it at the small market in town.",
    "The museum opens at nine, but the ticket office closes an hour before the last tour.",
)


def pointing(length, offset):
    """Weights whose queries look at the token at this offset, at the edge at the last one."""
    keys = (torch.arange(length) + offset).clamp(0, length - 1)
    return nn.functional.one_hot(keys, length).double()


# The measures


def test_most_attended_by_hand():
    given = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]])
    assert most_attended(given, ["a", "b", "c"], k=2) == [("b", 0.5), ("a", 0.25)]
    assert most_attended(given, ["a", "b", "c"])[2] == ("c", 0.25)  # the later of two equal ones


def test_most_attended_counts_every_place_on_its_own_and_returns_at_most_all():
    found = most_attended(weights(L, L), TOKENS, k=99)
    assert len(found) == L and sum(token == "the" for token, _ in found) == 2
    assert [weight for _, weight in found] == sorted((w for _, w in found), reverse=True)
    assert sum(weight for _, weight in found) == pytest.approx(1)


def test_most_attended_of_many_equal_tokens_keeps_their_order():
    names = [str(place) for place in range(97)]
    found = most_attended(torch.full((L, 97), 1 / 97), names, k=97)
    assert [token for token, _ in found] == names


def test_entropy_by_hand():
    given = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25] * 4, [0.5, 0.5, 0.0, 0.0]])
    expected = torch.tensor([0, math.log(4), math.log(2)])
    torch.testing.assert_close(entropy(given), expected)


def test_entropy_by_loops():
    given = weights(LAYERS, H, L, S)
    for place in torch.cartesian_prod(torch.arange(LAYERS), torch.arange(H), torch.arange(L)):
        expected = -sum(w * math.log(w) for w in given[tuple(place)].tolist())
        assert entropy(given)[tuple(place)].item() == pytest.approx(expected)


def test_offset_score_by_hand():
    given = torch.tensor([[0.5, 0.25, 0.25], [0.75, 0.0, 0.25], [0.0, 1.0, 0.0]])
    assert offset_score(given, -1).item() == (0.75 + 1) / 2
    assert offset_score(given, 0).item() == pytest.approx(0.5 / 3)
    assert offset_score(given, 1).item() == (0.25 + 0.25) / 2
    assert offset_score(given, 2).item() == 0.25
    assert offset_score(given, -2).item() == 0


@pytest.mark.parametrize("offset", range(1 - S, S))
def test_offset_score_by_loops(offset):
    given = weights(LAYERS, H, S, S)
    seen = [given[..., i, i + offset] for i in range(S) if 0 <= i + offset < S]
    torch.testing.assert_close(offset_score(given, offset), sum(seen) / len(seen))


def test_token_score_by_loops():
    given = weights(LAYERS, H, S, L)
    expected = (given[..., 1] + given[..., 3]).sum(-1) / S
    torch.testing.assert_close(token_score(given, TOKENS, "the"), expected)
    torch.testing.assert_close(separator_score(given, TOKENS), given[..., 4].mean(-1))
    assert token_score(given, TOKENS, "dog").tolist() == torch.zeros(LAYERS, H).tolist()


def test_the_opening_head_is_the_one_whose_words_look_at_other_words():
    bored = torch.zeros(L, L)
    bored[:, 0] = 1  # all to [CLS]
    itself = torch.eye(L)
    before = pointing(L, -1)
    one_word = bored.clone()
    one_word[2] = torch.tensor([0, 0.5, 0, 0.5, 0])
    of_specials = torch.eye(L)
    of_specials[[0, 4]] = torch.tensor([0, 1.0, 0, 0, 0])  # what [CLS] and [SEP] give: no word's
    given = torch.stack([bored, itself, before.float(), one_word, of_specials, bored]).unflatten(
        0, (2, 3)
    )
    assert opening_head(given, TOKENS) == (0, 2)  # two words look at a word before
    given[0, 2] = bored
    assert opening_head(given, TOKENS) == (1, 0)
    given[1, 0] = itself
    assert opening_head(given, TOKENS) == (0, 0)  # none does: the first
    assert opening_head(given[:, :, :2, :2], ["[CLS]", "[SEP]"]) == (0, 0)


def test_find_head_counts_from_0_and_takes_the_first_of_equal_ones():
    given = torch.full((LAYERS, H, L, L), 1 / L).double()
    assert find_head(given, -1) == (0, 0)
    given[1, 2] = pointing(L, -1)
    assert find_head(given, -1) == (1, 2)
    given[0, 1] = pointing(L, 1)
    assert find_head(given, 1) == (0, 1)


@given(st.integers(1, 13), st.integers(1, 13), st.integers(0, 99))
def test_every_measure_lies_in_its_range(queries, keys, seed):
    given = weights(queries, keys, seed=seed)
    names = [f"t{place % 3}" for place in range(keys)]
    assert sum(weight for _, weight in most_attended(given, names, k=keys)) == pytest.approx(1)
    assert -1e-12 <= entropy(given).min() and entropy(given).max() <= math.log(keys) + 1e-12
    total = sum(token_score(given, names, name).item() for name in set(names))
    assert total == pytest.approx(1)


@given(st.integers(1, 11), st.integers(0, 99))
def test_offsets_of_one_head_share_out_its_attention(length, seed):
    given = weights(length, length, seed=seed)
    offsets = range(1 - length, length)
    total = sum((length - abs(o)) * offset_score(given, o).item() for o in offsets)
    assert total == pytest.approx(length)
    names = ["[CLS]", *"abcdefghij"][:length]
    figures = head_figures(given, names)
    assert all(0 <= figure <= 1 + 1e-12 for figure in figures.values())
    assert describe_head(given, names)


# What kind of head this is


@pytest.mark.parametrize(
    "given, expected",
    [
        (pointing(L, -1), "looks at the token before: 1.00 of its attention"),
        (pointing(L, 0), "looks at the token itself: 1.00 of its attention"),
        (pointing(L, 1), "looks at the token after: 1.00 of its attention"),
        (pointing(L, -9), "parks on [CLS]: 1.00 of its attention"),
        (pointing(L, 9), "parks on [SEP]: 1.00 of its attention"),
        (torch.full((L, L), 0.2), "is broad: spread as over 5.0 of 5 tokens with equal weights"),
        (
            0.5 * pointing(L, -1) + 0.5 * pointing(L, 1),
            "is mixed: at most 0.50 of its attention, on the token before",
        ),
    ],
    ids="before itself after CLS SEP broad mixed".split(),
)
def test_a_head_is_described(given, expected):
    assert describe_head(given, TOKENS).startswith(expected)


def test_figures_of_a_head_by_hand():
    given = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    figures = head_figures(given, ["[CLS]", "x"])
    spread = (math.log(2) + 0.25 * math.log(4) + 0.75 * math.log(4 / 3)) / 2 / math.log(2)
    assert figures == pytest.approx(
        {
            **{"the token before": 0.25, "the token itself": 0.625, "the token after": 0.5},
            **{"[CLS]": 0.375, "spread": spread},
        }
    )
    assert head_figures(torch.ones(1, 1), ["x"]) == {"the token itself": 1, "spread": 0}


# What is refused


@pytest.mark.parametrize(
    "measure, wrong, error, message",
    [
        (most_attended, (weights(L, S), TOKENS), ValueError, r"5 tokens for .* 7 keys, \(5, 7\)"),
        (most_attended, (weights(H, L, L), TOKENS), ValueError, r"\(L, S\).*\(3, 5, 5\)"),
        (most_attended, (weights(L, L), TOKENS, 0), ValueError, "k must be 1 or more, got 0"),
        (most_attended, (weights(L, L), TOKENS, 1.0), TypeError, "k must be an integer, got 1.0"),
        (most_attended, (weights(L, L), TOKENS, True), TypeError, "got True"),
        (most_attended, ([[1.0]], ["a"]), TypeError, "floating tensor.*got list"),
        (entropy, (torch.eye(3).long(),), TypeError, "got torch.int64"),
        (entropy, (torch.ones(3),), ValueError, r"\(..., L, S\).*\(3,\)"),
        (entropy, (torch.ones(3, 0),), ValueError, r"not empty, got \(3, 0\)"),
        (entropy, (torch.tensor([[1.5, -0.5]]),), ValueError, "not be negative, got -0.5"),
        (entropy, (torch.tensor([[math.nan, 1]]),), ValueError, "got nan"),
        (offset_score, (weights(L, S), 1), ValueError, r"\(..., L, L\).*\(5, 7\)"),
        (offset_score, (weights(L, L), 5), ValueError, "offset 5 in weights of 5 tokens"),
        (offset_score, (weights(L, L), -5), ValueError, "offset -5"),
        (offset_score, (weights(L, L), 0.5), TypeError, "got 0.5"),
        (token_score, (weights(L, S), TOKENS, "the"), ValueError, "5 tokens.*7 keys"),
        (separator_score, (weights(L, S), TOKENS), ValueError, "5 tokens.*7 keys"),
        (find_head, (weights(H, L, L), 1), ValueError, r"\(layers, H, L, L\).*\(3, 5, 5\)"),
        (find_head, (weights(LAYERS, H, L, S), 1), ValueError, r"\(2, 3, 5, 7\)"),
        (head_figures, (weights(L, S), TOKENS), ValueError, r"\(L, L\).*\(5, 7\)"),
        (describe_head, (weights(L, L), TOKENS[1:]), ValueError, "4 tokens for weights of 5"),
    ],
)
def test_measures_refuse(measure, wrong, error, message):
    with pytest.raises(error, match=message):
        measure(*wrong)


# The heads of the real model


@pytest.fixture(scope="module")
def real():
    return [attention_map(sentence) for sentence in SENTENCES]


def mean_over_sentences(maps, measure):
    """A measure's mean over the queries of each sentence, then over the sentences."""
    return torch.stack([measure(found) for found in maps]).mean(dim=0)


def test_the_heads_that_look_before_and_after(real):
    before = mean_over_sentences(real, lambda found: offset_score(found.weights, -1))
    after = mean_over_sentences(real, lambda found: offset_score(found.weights, 1))
    assert before.shape == (6, 12)
    assert divmod(before.argmax().item(), 12) == (0, 2)
    assert before[0, 2].item() == pytest.approx(1.00, abs=0.005)
    assert divmod(after.argmax().item(), 12) == (1, 8)
    assert after[1, 8].item() == pytest.approx(0.65, abs=0.03)
    for found in real:
        assert find_head(found.weights, -1) == (0, 2)
        assert find_head(found.weights, 1) == (1, 8)


def test_a_head_parks_on_cls_and_none_on_sep(real):
    cls = mean_over_sentences(real, lambda found: token_score(found.weights, found.tokens, "[CLS]"))
    assert cls[4, 5].item() == pytest.approx(0.87, abs=0.03)
    sep = mean_over_sentences(real, lambda found: separator_score(found.weights, found.tokens))
    assert sep.max().item() == pytest.approx(0.12, abs=0.02)


def test_the_real_heads_are_described(real):
    for found in real:
        said = [describe_head(found.weights[place], found.tokens) for place in HEADS]
        assert said[0].startswith("looks at the token before: 1.00")
        assert said[1].startswith("looks at the token after: 0.")
        assert said[2].startswith("parks on [CLS]: 0.")
        assert said[3].startswith("is broad: spread as over 1")
