"""What the component in the browser is given."""

import base64
import json

import numpy as np
import pytest
import torch
from small_reader import LAYERS, H, Words, small_model

from mha_course.explorer import (
    attention_map,
    describe_head,
    head_figures,
    most_attended,
    pictures,
    words,
)
from mha_course.explorer.handed_over import handed_over, head_shown
from mha_course.explorer.heads import opening_head


def numbers(text, *shape):
    return torch.tensor(np.frombuffer(base64.b64decode(text), "<f4").reshape(shape))


def test_all_weights_and_figures_are_handed_over(reader):
    found = attention_map("a cat", "a dog barks", **reader)
    content = json.loads(json.dumps(handed_over(found)))
    n = len(found.tokens)
    assert content["tokens"] == found.tokens and content["second"] == found.second == 4
    assert (content["layers"], content["heads"], content["length"]) == (LAYERS, H, n)
    sent = numbers(content["weights"], LAYERS, H, n, n)
    torch.testing.assert_close(sent, found.weights, rtol=0, atol=0)
    assert tuple(content["opening"]) == opening_head(found.weights, found.tokens)
    assert words.OPENING in content["reading"] and content["notes"] == []
    for layer in range(LAYERS):
        for head in range(H):
            weights, figures = found.weights[layer, head], content["figures"][layer][head]
            assert figures["kind"] == describe_head(weights, found.tokens)
            assert figures["most"] == [list(x) for x in most_attended(weights, found.tokens, 5)]
            assert dict(figures["shares"]) == head_figures(weights, found.tokens)


@pytest.mark.parametrize("start", [0, 13])
def test_products_give_the_weights_of_a_long_text_too(reader, start):
    """As the component does: a product of features, summed, divided by √d, less the logsum."""
    found = attention_map(" ".join(f"w{place}" for place in range(100)), **reader)
    content, n = handed_over(found, start), pictures.DRAWN
    assert content["tokens"] == found.tokens[start : start + n]
    assert (content["start"], content["last_start"]) == (start, 61 - n)
    assert content["notes"] == words.notes(found, start)
    d = content["width"]
    q, k = (numbers(content[name], LAYERS, H, n, d) for name in ("queries", "keys"))
    sums = (q[:, :, :, None] * k[:, :, None]).sum(dim=-1)
    logsums = numbers(content["logsums"], LAYERS, H, n)
    weights = torch.exp(sums / d**0.5 - logsums[..., None])
    torch.testing.assert_close(weights, numbers(content["weights"], LAYERS, H, n, n))
    shown = slice(start, start + n)
    torch.testing.assert_close(weights, found.weights[:, :, shown, shown])


def test_a_model_that_says_no_queries_is_shown_without_them(reader):
    model = reader["model"]
    found = attention_map("a cat", model=lambda **batch: model(**batch), tokenizer=Words())
    content = handed_over(found)
    assert content["queries"] is None and "keys" not in content and content["weights"]


def test_the_head_shown_is_the_chosen_one_if_there_is_such():
    content = {"opening": (1, 2), "layers": 3, "heads": 4}
    assert head_shown(content) == (1, 2)
    assert head_shown(content, 0, 3) == (0, 3)
    assert head_shown(content, 2) == (2, 2)
    assert head_shown(content, 3, 4) == head_shown(content, -1, -1) == (1, 2)


def test_the_real_model_opens_on_the_head_that_looks_at_the_token_before():
    found = attention_map("The children played in the garden until it got dark.")
    assert handed_over(found)["opening"] == (0, 2)
    assert found.queries.shape == (6, 12, 13, 32)
    (note,) = words.notes(attention_map("注意力机制是什么"))
    assert "reads English" in note


def test_any_number_of_heads():
    content = handed_over(attention_map("cat", model=small_model(1, 67), tokenizer=Words()))
    assert len(content["figures"][0]) == 67
