"""The attention of a text: measures against numbers by hand and loops, widget and page driven."""

import base64
import csv
import html
import importlib.util
import io
import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from mha_classroom.commands import cli
from mha_course import plots
from mha_course.bert import BertConfig, BertModel
from mha_course.explorer import (
    attention_map,
    describe_head,
    entropy,
    explore,
    export,
    find_head,
    head_figures,
    most_attended,
    offset_score,
    pictures,
    separator_score,
    token_score,
    words,
)
from mha_course.explorer import attention_of_text as attention
from mha_course.explorer.attention_of_text import load

L, S, H, LAYERS = 5, 7, 3, 2
TOKENS = ["[CLS]", "the", "cat", "the", "[SEP]"]
HEADS = (0, 2), (1, 8), (4, 5), (0, 0)
# Plain English of 15 to 20 words, the length of sentences in books.
SENTENCES = (
    "The children played in the garden until it got dark and their mother called them in.",
    "He forgot his umbrella on the train, so he walked home through the heavy rain.",
    "Our neighbour bakes fresh bread every morning and sells it at the small market in town.",
    "The museum opens at nine, but the ticket office closes an hour before the last tour.",
)


def weights(*shape, seed=0):
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()
    return torch.softmax(2 * numbers, dim=-1)


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


@pytest.fixture(autouse=True)
def no_backend_left_behind(monkeypatch):
    # streamlit sets it for good when it is imported; notebooks run later would show no picture.
    monkeypatch.setenv("MPLBACKEND", "Agg")


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


# The attention of a text


class Words:
    """A tokenizer whose tokens are the words that it has met, with the course's methods."""

    max_length = 61

    def __init__(self):
        self.known = ["[CLS]", "[SEP]"]

    def ids(self, text, pair=None, limit=math.inf):
        texts = [text.split()] if pair is None else [text.split(), pair.split()]
        words = [word for text in texts for word in text]
        self.known += [word for word in dict.fromkeys(words) if word not in self.known]
        while sum(map(len, texts)) > limit - len(texts) - 1:
            max(texts, key=len).pop()
        return [[self.known.index(word) for word in text] for text in texts]

    def __call__(self, text, pair=None, max_length=None):
        texts = self.ids(text, pair, max_length)
        ids = torch.tensor([[0, *(number for text in texts for number in (*text, 1))]])
        segments = torch.zeros_like(ids)
        if pair is not None:
            segments[0, len(texts[0]) + 2 :] = 1
        ones = torch.ones_like(ids)
        return {"input_ids": ids, "attention_mask": ones, "token_type_ids": segments}

    def count(self, text, pair=None):
        texts = self.ids(text, pair)
        return 1 + sum(len(text) + 1 for text in texts)

    def tokens(self, ids):
        return [self.known[number] for number in ids]


def small_model(num_layers=LAYERS, num_heads=H, **sizes):
    config = BertConfig(
        **{"vocab_size": 997, "hidden_size": 2 * num_heads, "num_hidden_layers": num_layers},
        **{"num_attention_heads": num_heads, "intermediate_size": 11, "initializer_range": 1.0},
        **sizes,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BertModel(config)


@pytest.fixture
def reader():
    return {"model": small_model(), "tokenizer": Words()}


def test_a_map_holds_what_the_model_attends_to(reader):
    model, tokenizer = reader["model"], reader["tokenizer"]
    found = attention_map("a cat and a dog", **reader)
    assert found.tokens == ["[CLS]", "a", "cat", "and", "a", "dog", "[SEP]"]
    assert found.weights.shape == (LAYERS, H, 7, 7)
    assert (found.second, found.num_cut) == (None, 0)
    assert repr(found).startswith("AttentionMap(tokens=['[CLS]', 'a',") and len(repr(found)) < 120
    batch = tokenizer("a cat and a dog", max_length=61)
    expected = model.eval()(**batch, need_weights=True).attentions
    for layer in range(LAYERS):
        torch.testing.assert_close(found.weights[layer], expected[layer][0], rtol=0, atol=0)


def test_a_pair_says_where_the_second_text_begins(reader):
    found = attention_map("a cat", "a dog barks", **reader)
    assert found.tokens == ["[CLS]", "a", "cat", "[SEP]", "a", "dog", "barks", "[SEP]"]
    assert found.second == 4


def test_a_long_text_is_cut_to_what_the_shorter_of_both_reads(reader):
    found = attention_map("word " * 100, **reader)
    assert (len(found.tokens), found.num_cut) == (61, 41)
    short = small_model(max_position_embeddings=17)
    found = attention_map("word " * 100, model=short, tokenizer=Words())
    assert (len(found.tokens), found.num_cut) == (17, 85)


def test_the_model_is_left_as_it_was(reader):
    model = reader["model"]
    model.train()
    model.encoder.layers[1].eval()
    before = [part.training for part in model.modules()]
    first, again = (attention_map("a cat", **reader) for _ in range(2))
    torch.testing.assert_close(first.weights, again.weights, rtol=0, atol=0)
    assert [part.training for part in model.modules()] == before
    assert not first.weights.requires_grad
    with pytest.raises(ZeroDivisionError):
        model.pooler.register_forward_hook(lambda *_: 1 / 0)
        attention_map("a cat", **reader)
    assert [part.training for part in model.modules()] == before


def test_the_pretrained_model_is_loaded_once_and_used_by_default():
    assert load() is load()
    model, tokenizer = load()
    found = attention_map("Cats sleep.")
    assert found.tokens == ["[CLS]", "cats", "sleep", ".", "[SEP]"]
    same = attention_map("Cats sleep.", model=model, tokenizer=tokenizer)
    torch.testing.assert_close(found.weights, same.weights, rtol=0, atol=0)
    given = []

    def any_model(**batch):
        given.append(batch.pop("need_weights"))
        return SimpleNamespace(attentions=[weights(1, H, 5, 5), weights(1, H, 5, 5)])

    assert attention_map("Cats sleep.", model=any_model).weights.shape == (2, H, 5, 5)
    assert given == [True]


@pytest.mark.parametrize(
    "texts, error, message",
    [
        (("",), ValueError, "text is empty"),
        ((" \n\t",), ValueError, "text is empty"),
        (("a", " "), ValueError, "pair is empty"),
        ((None,), TypeError, "text must be a str, got NoneType"),
        ((["a"],), TypeError, "text must be a str, got list"),
        (("a", 5), TypeError, "pair must be a str, got int"),
    ],
)
def test_texts_are_refused(reader, texts, error, message):
    with pytest.raises(error, match=message):
        attention_map(*texts, **reader)


@pytest.mark.parametrize(
    "attentions, message",
    [
        (None, r"each layer's weights must be \(1, H, L, L\), got \[\]"),
        ([torch.ones(H, 4, 4)], r"got \[\(3, 4, 4\)\]"),
        ([torch.ones(2, H, 4, 4)], r"got \[\(2, 3, 4, 4\)\]"),
        ([torch.ones(1, 2, 4, 4), torch.ones(1, 3, 4, 4)], r"\(1, 2, 4, 4\), \(1, 3, 4, 4\)"),
        ([torch.ones(1, H, 3, 4)], r"got \[\(1, 3, 3, 4\)\]"),
        ([torch.ones(1, H, 5, 5)], r"4 tokens, but weights of shape \(1, 3, 5, 5\)"),
    ],
)
def test_weights_of_another_shape_are_refused(attentions, message):
    def model(**batch):
        return SimpleNamespace(attentions=attentions)

    with pytest.raises(ValueError, match=message):
        attention_map("two words", model=model, tokenizer=Words())


# Pictures


@pytest.fixture
def drawn(monkeypatch):
    """What is given to the two functions that draw, in order, without drawing grids."""
    calls = []
    for name in ("attention_heatmap", "head_grid"):
        draw = getattr(plots, name)

        def spy(weights, labels, keys, title, figure, draw=draw):
            assert labels == keys
            calls.append(SimpleNamespace(weights=weights, labels=labels, title=title))
            return draw(weights, labels, keys, title, figure=figure)

        monkeypatch.setattr(plots, name, spy)
    return calls


def size(png):
    assert png.startswith(b"\x89PNG")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_the_pictures_show_the_head_and_the_layer_asked_for(reader, drawn):
    found = attention_map("a cat", "a dog", **reader)
    width, height = size(pictures.head_picture(found, 1, 2))
    assert 300 < width < 1500 and 300 < height < 1500
    size(pictures.grid_picture(found, 1))
    one, grid = drawn
    torch.testing.assert_close(one.weights, found.weights[1, 2])
    torch.testing.assert_close(grid.weights, found.weights[1])
    assert one.labels == grid.labels == found.tokens
    kind = describe_head(found.weights[1, 2], found.tokens).replace(": ", "\n")
    assert one.title == f"layer 1, head 2 {kind}"
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_long_texts_are_drawn_in_part(reader, drawn):
    names = " ".join(f"w{place}" for place in range(100))
    found = attention_map(names, **reader)
    assert words.windows(found) == 61 - pictures.DRAWN
    pictures.head_picture(found, 0, 1, start=5)
    (one,) = drawn
    assert one.labels == found.tokens[5 : 5 + pictures.DRAWN]
    torch.testing.assert_close(one.weights, found.weights[0, 1, 5:53, 5:53])
    cut, part = words.notes(found, 5)
    assert cut == "The text has 102 tokens; the model reads the first 61."
    assert part.startswith("Tokens 5 to 52 of 61 are drawn")
    assert words.notes(attention_map("short", **reader)) == []
    (note, _) = words.notes(attention_map(names, "and one", **reader))
    assert (
        note == "The texts have 105 tokens; the model reads 61, and the longer text is cut first."
    )


@pytest.mark.parametrize("num_heads", [1, 5, 16])
def test_a_grid_of_any_number_of_heads(num_heads):
    found = attention_map("cat", model=small_model(1, num_heads), tokenizer=Words())
    size(pictures.grid_picture(found, 0))
    assert len(words.kinds(found, 0)) == num_heads


STRANGE = (
    "<script>alert(1)</script> $x_1$ \\frac{ 注意力 😀 \u200d e\u0301 \u0915 &amp; a\x00b ``` **b**"
)


def test_strange_characters_are_drawn_without_a_warning(reader):
    found = attention_map(STRANGE, **reader)
    size(pictures.head_picture(found, 0, 0))
    size(pictures.head_picture(found, 0, 1, start=3))


def test_strange_characters_are_drawn_with_a_chinese_font_too(reader, chinese_font):
    test_strange_characters_are_drawn_without_a_warning(reader)


def test_what_cannot_be_drawn_is_replaced():
    assert plots.with_boxes("a注\n\U0001f9ff\ud800é") == "a□\n□□é"
    assert plots.legible(["$x$ <b>", "a\nb", "\ud800", "注", "é"]) == [
        *("$x$ <b>", "#1", "#2", "#3", "é")
    ]


def test_a_picture_is_told_in_words_and_nothing_of_them_is_markup(reader):
    found = attention_map('"><script> onload=x', **reader)
    told = words.picture_text(found, 1, 0)
    assert told.startswith("Heat map of the attention weights of 4 tokens, layer 1, head 0, which ")
    best = most_attended(found.weights[1, 0], found.tokens)
    assert all(f"{token} {mean:.2f}" in told for token, mean in best)
    tag = pictures.image_tag(pictures.head_picture(found, 1, 0), told)
    assert tag.count("<") == 1 and tag.count('"') == 8
    assert html.unescape(re.search('alt="(.*?)"', tag)[1]) == told
    assert base64.b64decode(re.search('base64,(.*?)"', tag)[1]).startswith(b"\x89PNG")


# Numbers to take along


def test_csv_holds_the_weights_and_no_formula(reader):
    text = '=1+1 +x -y @z \'q a,"b";c ＝1 <b>'
    found = attention_map(text, **reader)
    rows = list(csv.reader(io.StringIO(export.to_csv(found, 1, 2))))
    expected = ["[CLS]", "'=1+1", "'+x", "'-y", "'@z", "'q", 'a,"b";c', "'＝1", "<b>", "[SEP]"]
    assert rows[0] == ["query", *expected] and [row[0] for row in rows[1:]] == expected
    numbers = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[1:]])
    torch.testing.assert_close(numbers, found.weights[1, 2], rtol=0, atol=1e-6)


def test_json_holds_the_weights_the_figures_and_what_is_added(reader):
    found = attention_map("a 猫", "a dog", **reader)
    text = export.to_json(found, 1, 2, model="mine", text="a 猫")
    content = json.loads(text)
    assert "猫" in text and content["model"] == "mine" and content["tokens"] == found.tokens
    torch.testing.assert_close(
        torch.tensor(content["weights"]), found.weights[1, 2], rtol=0, atol=1e-6
    )
    assert content["kind"] == describe_head(found.weights[1, 2], found.tokens)
    assert content["figures"] == head_figures(found.weights[1, 2], found.tokens)
    assert content["most_attended"] == [
        list(x) for x in most_attended(found.weights[1, 2], found.tokens)
    ]
    assert (content["layer"], content["head"], content["second"], content["num_cut"]) == (
        1,
        2,
        4,
        0,
    )


# The widget


@pytest.fixture
def quick(monkeypatch):
    """Pictures that take no time: the colours without words, another picture for other weights."""

    def heatmap(weights, *labels, figure):
        figure.set_size_inches(1, 1)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.imshow(weights.numpy())
        return ax

    def grid(weights, *labels, figure):
        heatmap(weights.flatten(0, 1), figure=figure)
        if len(weights) > 64:
            raise ValueError(f"up to 64 heads, got {len(weights)} heads")

    monkeypatch.setattr(plots, "attention_heatmap", heatmap)
    monkeypatch.setattr(plots, "head_grid", grid)


def shown(widget):
    return [part.value for part in (widget.picture, widget.facts, widget.grid)]


def changed(widget, change):
    """Which of picture, facts and grid are others after `change`."""
    before = shown(widget)
    change()
    return [one != two for one, two in zip(before, shown(widget), strict=True)]


def test_the_widget_shows_the_head_that_the_sliders_say(reader, quick):
    widget = explore("a cat and a dog", **reader)
    assert (widget.layer.max, widget.head.max, widget.start.max) == (LAYERS - 1, H - 1, 0)
    assert not widget.layer.continuous_update and widget.start.layout.display == "none"
    assert changed(widget, lambda: setattr(widget.head, "value", 2)) == [True, True, False]
    first = shown(widget)
    assert changed(widget, lambda: setattr(widget.layer, "value", 1)) == [True, True, True]
    weights = widget.found.weights[1, 2]
    assert (
        f"Layer 1, head 2 <b>{describe_head(weights, widget.found.tokens)}</b>" in shown(widget)[1]
    )
    for token, mean in most_attended(weights, widget.found.tokens, 5):
        assert f"<td>{token}</td><td>{mean:.4f}</td>" in widget.facts.value
    assert html.escape(words.picture_text(widget.found, 1, 2)) in widget.picture.value
    widget.layer.value = 0
    assert shown(widget) == first
    assert repr(widget) == "Explorer('a cat and a dog')"


def test_the_widget_reads_another_text_and_a_pair(reader, quick):
    widget = explore("a cat", **reader)
    assert changed(widget, lambda: setattr(widget.text, "value", "a dog barks")) == [True] * 3
    assert widget.found.tokens == ["[CLS]", "a", "dog", "barks", "[SEP]"]
    assert changed(widget, lambda: setattr(widget.pair, "value", " it is loud ")) == [True] * 3
    assert widget.found.second == 5
    assert explore("a cat", "a dog", **reader).found.second == 4


def test_the_widget_draws_long_texts_in_part_and_says_so(reader, quick):
    widget = explore("word " * 100, **reader)
    assert "102 tokens; the model reads the first 61" in widget.message.value
    assert widget.start.max == 61 - pictures.DRAWN and widget.start.layout.display is None
    widget.start.value = 3
    assert "Tokens 3 to 50 of 61" in widget.message.value
    widget.text.value = "short"
    assert (widget.start.value, widget.message.value) == (0, "")


def test_the_widget_shows_errors_as_text_and_recovers(reader, quick):
    widget = explore("", **reader)
    assert "text is empty" in widget.message.value and widget.results.layout.display == "none"
    widget.layer.value = widget.head.value = 0
    widget.text.value = "a <b>cat</b>"
    assert widget.message.value == "" and widget.results.layout.display is None
    assert "&lt;b&gt;cat&lt;/b&gt;" in widget.facts.value and "<b>cat" not in "".join(shown(widget))
    reader["model"].pooler.register_forward_hook(lambda *_: {}["<i>"])
    widget.text.value = "a dog"
    assert "KeyError: &#x27;&lt;i&gt;&#x27;" in widget.message.value


def test_the_widget_copes_with_one_head_and_with_too_many():
    one = explore("a cat", model=small_model(1, 1), tokenizer=Words())
    assert one.layer.layout.display == one.head.layout.display == "none"
    assert "Layer 0, head 0" in one.facts.value
    many = explore("a cat", model=small_model(1, 67), tokenizer=Words())
    assert "got 67 heads" in many.grid.value and "<img" in many.picture.value


def test_the_widget_shows_the_real_heads(quick):
    widget = explore(SENTENCES[0])
    widget.head.value = 2
    assert "looks at the token before: 1.00 of its attention" in widget.facts.value
    assert (widget.layer.max, widget.head.max) == (5, 11)


def test_explore_without_ipywidgets_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert explore("a cat") is None
    assert "%pip install ipywidgets" in capsys.readouterr().out


@pytest.mark.parametrize("texts, name", [((None,), "text"), ((["a"],), "text"), (("a", 1), "pair")])
def test_explore_refuses_what_is_no_text(texts, name):
    with pytest.raises(TypeError, match=f"{name} must be a str"):
        explore(*texts)


# The page


@pytest.fixture
def page(monkeypatch, quick):
    """The page with small models instead of the real ones; `page.heads` are those of each."""
    import streamlit
    from streamlit.testing.v1 import AppTest

    streamlit.cache_resource.clear()
    streamlit.cache_data.clear()
    heads = {None: (LAYERS, H), "bert-base-uncased": (3, 5), "bert-base-chinese": (1, 1)}

    def load_small(name=None):
        if name not in heads:
            raise ValueError(f"there is no model {name}")
        return small_model(*heads[name]), Words()

    monkeypatch.setattr(attention, "load", load_small)
    # Each page would look through all installed packages for components; there are none.
    monkeypatch.setattr("importlib.metadata.distributions", lambda: iter(()))
    file = Path(pictures.__file__).with_name("page.py")
    return AppTest.from_file(str(file), default_timeout=60).run()


def images(page):
    return [url for image in page.image for url in image.value]


def unescaped(block):
    return re.sub(r"\\(.)", r"\1", block.value)


def tables(page):
    return [table.value for table in page.dataframe]


def test_the_page_shows_a_head_and_its_figures(page):
    assert not page.exception and not page.error
    assert [slider.label for slider in page.slider] == ["Layer", "Head"]
    page.text_area(key="text").set_value("a cat and a dog").run()
    page.slider(key=f"Head/{H}").set_value(2).run()
    found = attention_map("a cat and a dog", model=small_model(), tokenizer=Words())
    best = most_attended(found.weights[0, 2], found.tokens, 5)
    most, where = tables(page)
    assert list(most["token"]) == [token for token, _ in best]
    assert list(most["mean weight"]) == pytest.approx([mean for _, mean in best])
    assert list(where["what"]) == list(head_figures(found.weights[0, 2], found.tokens))
    assert "Layer 0, head 2" in [line.value for line in page.subheader]


def test_the_picture_follows_text_pair_and_sliders(page):
    seen = images(page)
    for change in (
        lambda: page.text_area(key="text").set_value("a dog barks"),
        lambda: page.text_input(key="pair").set_value("it is loud"),
        lambda: page.slider(key=f"Layer/{LAYERS}").set_value(1),
        lambda: page.slider(key=f"Head/{H}").set_value(1),
    ):
        change().run()
        seen += images(page)
        assert not page.exception
    assert len(seen) == len(set(seen)) == 5
    page.slider(key=f"Head/{H}").set_value(0).run()
    assert images(page) == seen[3:4]


def test_the_page_compares_all_heads_and_takes_other_models(page):
    page.checkbox(key="compare").check().run()
    assert len(images(page)) == 2
    assert list(tables(page)[2]["head"]) == [f"head {head}" for head in range(H)]
    page.selectbox(key="model").select("bert-base-uncased").run()
    assert [slider.max for slider in page.slider] == [2, 4]
    assert len(tables(page)[2]) == 5
    page.selectbox(key="model").select("bert-base-chinese").run()
    assert not page.exception and len(page.slider) == 0 and len(tables(page)[2]) == 1
    page.checkbox(key="compare").uncheck().run()
    assert len(images(page)) == 1


def test_the_page_says_what_is_wrong_and_goes_on(page):
    text = page.text_area(key="text")
    text.set_value(" ").run()
    assert unescaped(page.error[0]) == "text is empty: there is nothing to attend to"
    assert not images(page)
    text.set_value("word " * 20_000).run()
    assert unescaped(page.info[0]) == "The text has 20,002 tokens; the model reads the first 61."
    page.selectbox(key="model").select("another one").run()
    assert "Name a model" in page.info[0].value and not images(page)
    page.text_input(key="name").set_value("no/such [x](y) $m$").run()
    assert page.error[0].value == r"there is no model no\/such \[x\]\(y\) \$m\$"
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert len(images(page)) == 1 and not page.error


def test_what_is_set_on_the_page_outlives_an_error(page):
    page.text_area(key="text").set_value("a cat").run()
    page.slider(key=f"Head/{H}").set_value(2).run()
    picture = images(page)
    page.text_area(key="text").set_value("").run()
    page.text_area(key="text").set_value("a cat").run()
    assert images(page) == picture
    page.selectbox(key="model").select("another one").run()
    page.selectbox(key="model").select("all-MiniLM-L6-v2").run()
    assert images(page) == picture and page.text_area(key="text").value == "a cat"
    assert not page.warning and not page.exception


def test_markup_of_a_text_reaches_no_markdown(page):
    page.text_area(key="text").set_value("<b>x</b> $y$ :red[**z**]").run()
    page.checkbox(key="compare").check().run()
    assert not page.exception
    assert "<b>x</b>" in list(tables(page)[0]["token"])
    written = [block.value for block in (*page.markdown, *page.subheader, *page.caption)]
    assert written and not any(x in "".join(written) for x in ("<b>x", "$y$", "**z", ":red"))
    assert not any(element.allow_html for element in page.markdown)


def test_the_page_offers_picture_numbers_and_the_code_that_ran(page):
    labels = [button.label for button in page.get("download_button")]
    assert [label.split()[-1] for label in labels] == ["(PNG)", "(CSV)", "(JSON)"]
    import inspect

    assert inspect.getsource(most_attended).rstrip() in [code.value.rstrip() for code in page.code]
    assert any("a column is a key" in block.value for block in page.markdown)
    assert any("Move the sliders" in block.value for block in page.sidebar.markdown)


# The command


@pytest.fixture
def streamlit_run(monkeypatch):
    import streamlit.web.cli as streamlit_cli

    calls = []
    monkeypatch.setattr(streamlit_cli, "main", lambda args, standalone_mode: calls.append(args))
    return calls


def test_the_command_serves_the_page_on_this_machine_only(streamlit_run):
    assert cli.main(["explore", "--port", "8599", "--server.headless=true"]) == 0
    (run, file, *options) = streamlit_run[0]
    assert run == "run" and Path(file).name == "page.py" and Path(file).is_file()
    assert {"--server.address=localhost", "--browser.gatherUsageStats=false"} < set(options)
    assert options[-2:] == ["--server.port=8599", "--server.headless=true"]


def test_the_command_says_what_streamlit_does_not_know(capsys):
    assert cli.main(["explore", "--server.nonsense=1"]) == 2
    assert "Streamlit says" in capsys.readouterr().err


def test_the_command_without_streamlit_says_how_to_install_it(monkeypatch, capsys):
    from mha_classroom.commands import explore as server

    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert cli.main(["explore"]) == 2
    assert '-e ".[app]"' in capsys.readouterr().err
