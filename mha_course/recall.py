"""A small model that has to recall values by their keys, with one layer of attention."""

import csv
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.data import ASKED, NUM_KEYS, NUM_VALUES, draw_recall
from mha_course.multihead import MultiHeadAttention, attend, merge_heads, split_heads
from mha_course.training import train

__all__ = [
    "Recall",
    "accuracy",
    "held_out",
    "loss_of",
    "masked",
    "noisy",
    "study",
    "train_recall",
    "without_a_quarter",
]

WIDTH, BATCH, RATE = 64, 128, 0.005  # of lesson 8's study
STUDY = Path(__file__).with_name("recall_study.csv")  # made by `make study`


class Recall(nn.Module):
    """Answers a question about eight pairs of key and value, with a single layer of attention.

    Each pair becomes one row, the sum of an embedding of its key and one of its value. The
    question becomes one row too, the sum of four embeddings, one for each asked key in its place.
    This row is the only query; the pairs are the keys and values. A linear layer then scores the
    answers.

    Shapes: keys and values (B, 8); asked (B, 4); returns scores (B, 4, 8): for each of the four
        asked keys one for each value.
    Properties: whatever is called as `MultiHeadAttention` is can be passed as `attention`, and is
        used in place of the model's own. At equal width the number of parameters is the same for
        every number of heads.
    Raises: as `MultiHeadAttention`.
    Lesson: notebooks/08_how_many_heads.ipynb.
    """

    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.key = nn.Embedding(NUM_KEYS, num_hiddens)
        self.value = nn.Embedding(NUM_VALUES, num_hiddens)
        self.ask = nn.Embedding(ASKED * NUM_KEYS, num_hiddens)
        self.attention = MultiHeadAttention(*[num_hiddens] * 4, num_heads)
        self.answer = nn.Linear(num_hiddens, ASKED * NUM_VALUES)

    def question(self, asked):
        """The one query that asks for all four: (B, 4) to (B, 1, num_hiddens)."""
        place = NUM_KEYS * torch.arange(ASKED)  # one key is another row in each place
        return self.ask(asked + place).sum(dim=1, keepdim=True)

    def pairs(self, keys, values):
        """A row for each pair: (B, 8) and (B, 8) to (B, 8, num_hiddens)."""
        return self.key(keys) + self.value(values)

    def forward(self, keys, values, asked, attention=None):
        """Look at the pairs once, then answer; see the class for shapes."""
        attention = self.attention if attention is None else attention
        pairs = self.pairs(keys, values)  # (B, 8, num_hiddens)
        found = attention(self.question(asked), pairs, pairs)  # (B, 1, num_hiddens)
        return self.answer(found).reshape(-1, ASKED, NUM_VALUES)  # (B, 4, 8)


def loss_of(model, keys, values, asked, answers):
    """The cross-entropy of the four answers, averaged over them and the examples."""
    return F.cross_entropy(model(keys, values, asked).flatten(0, 1), answers.flatten())


def held_out(count=2000):
    """Examples with questions that no training has seen, the same in each call.

    Shapes: keys and values (count, 8), asked and answers (count, 4).
    """
    return draw_recall(count, torch.Generator().manual_seed(999), held_out=True)


@torch.no_grad()
def accuracy(model, attention=None):
    """The share of single answers to the 2,000 held-out questions that are right; chance is 1/8."""
    keys, values, asked, answers = held_out()
    found = model(keys, values, asked, attention).argmax(dim=-1)  # (2000, 4)
    return (found == answers).double().mean().item()


def train_recall(num_heads, seed=0, steps=400, measure=accuracy, every=50, bar=True):
    """Train a model of width 64 with so many heads; return it and its learning curve.

    Properties: start and batches follow from the seed, so the first steps of a long run are those
        of a short one. Weights are float64: with float32, another processor's last digits grow
        into another model within some hundred steps.
    Lesson: notebooks/08_how_many_heads.ipynb.
    """
    with torch.random.fork_rng(devices=[]), _float64():
        torch.manual_seed(seed)
        model = Recall(WIDTH, num_heads)

    def draw(generator):
        return draw_recall(BATCH, generator)

    return model, train(model, draw, loss_of, steps, RATE, seed, measure, every, bar)


@contextmanager
def _float64():
    """New parameters are drawn in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def masked(attention, head_mask):
    """A `MultiHeadAttention` whose heads' outputs are multiplied by `head_mask` before W_o.

    Shapes: head_mask (H,), one factor a head, or (B, H); returns a function of queries, keys and
        values.
    Source: Michel et al. 2019, section 2.3. Lesson: notebooks/08_how_many_heads.ipynb.
    """

    def attention_with_mask(queries, keys, values):
        q = split_heads(attention.W_q(queries), attention.num_heads)  # (B, H, L, d)
        k = split_heads(attention.W_k(keys), attention.num_heads)  # (B, H, S, d)
        v = split_heads(attention.W_v(values), attention.num_heads)  # (B, H, S, d)
        output, _ = attend(q, k, v, None, None, attention.dropout, need_weights=False)
        output = output * head_mask.reshape(-1, attention.num_heads, 1, 1)
        return attention.W_o(merge_heads(output))  # (B, L, num_hiddens)

    return attention_with_mask


# The two disturbances of the study: they say how robust a model is, each in a sense of its own.


def noisy(attention):
    """The attention with noise on the pairs, as large as they are: normal, of their deviation.

    Shapes: returns a function of queries, keys and values, where the values are the keys.
    """
    generator = torch.Generator().manual_seed(5)

    def attention_with_noise(queries, keys, values):
        noise = torch.randn(keys.shape, generator=generator, dtype=keys.dtype)
        pairs = keys + keys.std() * noise
        return attention(queries, pairs, pairs)

    return attention_with_noise


def without_a_quarter(attention):
    """The attention without a quarter of its heads, drawn anew for each of 2,000 examples."""
    generator = torch.Generator().manual_seed(5)
    off = attention.num_heads // 4
    order = torch.rand(2000, attention.num_heads, generator=generator).argsort(dim=1)
    return masked(attention, (order >= off).to(attention.W_o.weight))  # (2000, H)


def study():
    """The runs of `make study`: a dict for each number of heads, seed and number of steps.

    Properties: accuracy, with_noise and without_a_quarter are shares; the last is None for fewer
        than four heads.
    """
    with STUDY.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    whole = ("num_heads", "seed", "steps")
    return [
        {
            name: (int(text) if name in whole else float(text)) if text else None
            for name, text in row.items()
        }
        for row in rows
    ]
