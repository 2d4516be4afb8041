"""`mha_course.sentences` held to loops, to hand-computed numbers and to bad input."""

import math

import pytest
import torch
from torch.nn import functional as F

from mha_course.bert import BertConfig, BertModel
from mha_course.sentences import classify, embed, mean_pool, search

CONFIG = BertConfig(
    vocab_size=31,
    hidden_size=15,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=11,
    max_position_embeddings=17,
)


def spelled(texts):
    """A tokenizer for tests: a letter is a token."""
    rows = [[1, *(ord(letter) - 94 for letter in text), 2] for text in texts]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def test_mean_pool_by_hand():
    hidden = torch.tensor([[[1.0, 2], [3, 4], [100, 100]], [[5, 6], [7, 8], [9, 13]]])
    pooled = mean_pool(hidden, torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert pooled.tolist() == [[2, 3], [7, 9]]


def test_mean_pool_equals_a_loop():
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(3, 7, 5, generator=generator).double()
    mask = (torch.arange(7) < torch.tensor([[7], [1], [4]])).long()
    loop = torch.stack([row[m.bool()].mean(0) for row, m in zip(hidden, mask, strict=True)])
    torch.testing.assert_close(mean_pool(hidden, mask), loop)
    torch.testing.assert_close(mean_pool(hidden, mask.bool()), loop)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((torch.ones(2, 3), torch.ones(2, 3)), ValueError, r"\(2, 3\)"),
        ((torch.ones(2, 3, 5, dtype=int), torch.ones(2, 3)), TypeError, "int64"),
        ((torch.ones(2, 3, 5), torch.ones(2, 5)), ValueError, r"\(2, 5\) for hidden \(2, 3, 5\)"),
        ((torch.ones(2, 3, 5), torch.full((2, 3), 2)), ValueError, "0 and 1"),
        ((torch.ones(2, 3, 5), torch.tensor([[1, 1, 1], [0, 0, 0]])), ValueError, "text 1 has no"),
    ],
)
def test_mean_pool_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        mean_pool(*arguments)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 32])
def test_embed_gives_each_text_its_own_vector_whatever_the_batch(batch_size):
    torch.manual_seed(0)
    model = BertModel(CONFIG).double().eval()
    texts = ["abcdef", "b", "cab", "abcdefgh", "aa"]
    vectors = embed(texts, model, spelled, batch_size)
    assert vectors.shape == (5, 15) and not vectors.requires_grad
    with torch.no_grad():
        for text, vector in zip(texts, vectors, strict=True):
            alone = model(**spelled([text])).last_hidden_state[0].mean(0)
            torch.testing.assert_close(vector, F.normalize(alone, dim=0))


def test_embed_takes_one_text_and_refuses_none():
    model = BertModel(CONFIG).eval()
    torch.testing.assert_close(embed("abc", model, spelled), embed(["abc"], model, spelled))
    with pytest.raises(ValueError, match="at least one text"):
        embed([], model, spelled)
    with pytest.raises(ValueError, match="got 0"):
        embed(["a"], model, spelled, batch_size=0)


def test_search_by_hand():
    documents = torch.tensor([[0.0, 2], [3, 0], [1, 1], [-1, 0], [5, 5]]).double()
    found = search(torch.tensor([7.0, 0]).double(), documents, k=3)
    assert [index for index, _ in found] == [1, 2, 4]  # the length of a document is no matter
    assert [cosine for _, cosine in found] == pytest.approx([1, math.sqrt(0.5), math.sqrt(0.5)])
    assert len(search(torch.tensor([7.0, 0]).double(), documents, k=99)) == 5


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            (torch.ones(1, 3), torch.ones(5, 3)),
            ValueError,
            r"query must be \(d_model,\), got \(1, 3\)",
        ),
        ((torch.ones(3), torch.ones(3)), ValueError, r"documents must be \(N, d_model\)"),
        ((torch.ones(3), torch.ones(5, 2)), ValueError, r"\(3,\) and \(5, 2\)"),
        ((torch.ones(3, dtype=int), torch.ones(5, 3)), TypeError, "int64"),
        ((torch.ones(3), torch.ones(5, 3), 0), ValueError, "got 0"),
    ],
)
def test_search_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        search(*arguments)


def test_classify_by_hand():
    # The long example does not outweigh the others: what counts is where they point.
    examples = torch.tensor([[1.0, 0], [0, 100], [1, 0.2], [0, 1]])
    labels = ["east", "north", "east", "north"]
    vectors = torch.tensor([[9.0, 1], [1, 9], [2, 1]])
    assert classify(vectors, examples, labels) == ["east", "north", "east"]
    assert classify(vectors, examples[[0, 1]], torch.tensor([4, 2]).tolist()) == [4, 2, 4]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((torch.ones(2, 3), torch.ones(5, 3), "abcd"), ValueError, "5 and 4"),
        ((torch.ones(2, 3), torch.ones(0, 3), ""), ValueError, "0 and 0"),
        ((torch.ones(2, 3), torch.ones(5, 2), "abcde"), ValueError, r"\(2, 3\) and \(5, 2\)"),
        ((torch.ones(3), torch.ones(5, 3), "abcde"), ValueError, r"vectors must be \(N, d_model\)"),
        ((torch.ones(2, 3), [[1.0, 2, 3]], "a"), TypeError, "examples.*list"),
    ],
)
def test_classify_refuses(arguments, error, words):
    with pytest.raises(error, match=words):
        classify(*arguments)
