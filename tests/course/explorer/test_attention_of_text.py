"""The attention of a text: what a map holds, and which texts are refused."""

from types import SimpleNamespace

import pytest
import torch
from small_reader import LAYERS, H, Words, small_model, weights

from mha_course.explorer import (
    attention_map,
)
from mha_course.explorer.attention_of_text import load


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


def test_a_map_keeps_queries_and_keys_that_give_its_weights(reader):
    found = attention_map("a cat and a dog", **reader)
    assert found.queries.shape == found.keys.shape == (LAYERS, H, 7, 2)
    scores = torch.einsum("lhid,lhjd->lhij", found.queries, found.keys) / 2**0.5
    torch.testing.assert_close(torch.softmax(scores, dim=-1), found.weights)
    projection = reader["model"].encoder.layers[0].self_attention.W_q
    assert not projection._forward_hooks  # the model is as it was


def test_queries_and_keys_that_do_not_give_the_weights_are_not_kept(reader):
    attention = reader["model"].encoder.layers[1].self_attention
    attention.register_forward_hook(lambda *call: (call[2][0], call[2][1].flip(-1)))
    found = attention_map("a cat and a dog", **reader)
    assert found.queries is None and found.keys is None
    assert found.weights.shape == (LAYERS, H, 7, 7)


def test_a_layer_whose_projections_have_other_shapes_is_read_all_the_same(reader):
    attention = reader["model"].encoder.layers[1].self_attention
    attention.W_v.W_q, attention.W_v.W_k = attention.W_q, attention.W_k  # each is heard twice
    assert attention_map("a cat", **reader).queries is None


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
