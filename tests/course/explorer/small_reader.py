"""A small reader that all of these share: a tokenizer of whole words and an untrained model."""

import math

import torch

from mha_course.bert import BertConfig, BertModel

L, S, H, LAYERS = 5, 7, 3, 2


def weights(*shape, seed=0):
    numbers = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()
    return torch.softmax(2 * numbers, dim=-1)


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
