"""Two models that read one sequence and write another: a Transformer and a recurrent one.

Both have `encode` and `decode`, so that one loss trains them and one loop lets them write.
"""

import torch
from torch import nn
from torch.nn import functional as F

from mha_course.attention import AdditiveAttention, check_rank
from mha_course.multihead import MultiHeadAttention

__all__ = [
    "DecoderLayer",
    "EncoderLayer",
    "RecurrentTranslator",
    "Transformer",
    "greedy",
    "sinusoidal_positions",
    "teacher_forcing_loss",
]

PAD, START, END = 0, 1, 2  # the numbers that mha_course.data.as_numbers gives these three


def sinusoidal_positions(num_positions, num_hiddens):
    """A vector for each position: sines and cosines of it, from fast waves to slow ones.

    Shapes: returns (num_positions, num_hiddens); features 2i and 2i + 1 are the sine and the
        cosine of position / 10000^(2i / num_hiddens).
    Raises: ValueError quoting num_hiddens if it is odd.
    Source: Vaswani et al. 2017, section 3.5. Lesson: notebooks/10_cross_attention.ipynb.
    """
    if num_hiddens % 2:
        raise ValueError(f"sines and cosines come in pairs, got num_hiddens={num_hiddens}")
    speeds = 10000 ** (-torch.arange(0, num_hiddens, 2) / num_hiddens)  # (num_hiddens / 2,)
    angles = torch.arange(num_positions)[:, None] * speeds
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class EncoderLayer(nn.Module):
    """Self-attention over the source, then a feed-forward network, each with residual and norm.

    Shapes: X (B, S, num_hiddens); valid_lens (B,); returns (B, S, num_hiddens).
    Raises: as `mha_course.multihead.MultiHeadAttention`.
    Source: Vaswani et al. 2017, section 3.1. Lesson: notebooks/10_cross_attention.ipynb.
    """

    def __init__(self, num_hiddens, num_heads, num_inner):
        super().__init__()
        self.self_attention = MultiHeadAttention(*[num_hiddens] * 4, num_heads)
        self.feed_forward = _feed_forward(num_hiddens, num_inner)
        self.norm_1, self.norm_2 = nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens)

    def forward(self, X, valid_lens=None):
        """Hide the padding of the source from every query; see the class for shapes."""
        X = self.norm_1(X + self.self_attention(X, X, X, valid_lens))
        return self.norm_2(X + self.feed_forward(X))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, then a feed-forward network.

    Shapes: Y (B, L, num_hiddens), what is written so far; memory (B, S, num_hiddens), what the
        encoder made; memory_lens (B,); returns (B, L, num_hiddens), with need_weights=True also
        the weights of the cross-attention (B, H, L, S).
    Properties: row t of the result depends on rows 0 to t of Y and on the memory up to
        memory_lens. The same numbers as torch.nn.TransformerDecoderLayer with these weights.
    Raises: as `mha_course.multihead.MultiHeadAttention`.
    Source: Vaswani et al. 2017, section 3.1. Lesson: notebooks/10_cross_attention.ipynb.
    """

    def __init__(self, num_hiddens, num_heads, num_inner):
        super().__init__()
        self.self_attention = MultiHeadAttention(*[num_hiddens] * 4, num_heads)
        self.cross_attention = MultiHeadAttention(*[num_hiddens] * 4, num_heads)
        self.feed_forward = _feed_forward(num_hiddens, num_inner)
        self.norm_1, self.norm_2 = nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens)
        self.norm_3 = nn.LayerNorm(num_hiddens)

    def forward(self, Y, memory, memory_lens=None, need_weights=False):
        """Look back at what is written, then at the memory; see the class for shapes."""
        L = Y.shape[1]
        causal = torch.ones(L, L, dtype=torch.bool, device=Y.device).tril()
        Y = self.norm_1(Y + self.self_attention(Y, Y, Y, mask=causal))
        looked = self.cross_attention(Y, memory, memory, memory_lens, need_weights=need_weights)
        brought, weights = looked if need_weights else (looked, None)
        Y = self.norm_2(Y + brought)
        Y = self.norm_3(Y + self.feed_forward(Y))
        return (Y, weights) if need_weights else Y


class Transformer(nn.Module):
    """An encoder that reads the source and a decoder that scores each next token of the target.

    Shapes: source (B, S) and target (B, L), numbers of tokens; source_lens (B,); returns scores
        (B, L, num_tokens): row t scores what comes after target[:, t].
    Properties: no dropout, and one table of embeddings for source and target.
    Raises: TypeError or ValueError quoting what does not fit: numbers that are not (B, length),
        batches of two sizes, lengths outside 0..S, widths that the heads do not divide.
    Source: Vaswani et al. 2017. Lesson: notebooks/10_cross_attention.ipynb.
    """

    def __init__(self, num_tokens, num_hiddens, num_heads, num_layers):
        super().__init__()
        sizes = (num_hiddens, num_heads, 2 * num_hiddens)
        self.embedding = nn.Embedding(num_tokens, num_hiddens)
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(num_layers))
        self.W_out = nn.Linear(num_hiddens, num_tokens)

    def encode(self, source, source_lens):
        """The memory (B, S, num_hiddens): a row for each token of the source."""
        check_rank(source, 2, "(B, S)", "source")
        X = self._embed(source)
        for layer in self.encoder:
            X = layer(X, source_lens)
        return X

    def decode(self, target, memory, source_lens, need_weights=False):
        """The scores (B, L, num_tokens); on request also each layer's cross-attention, a list."""
        check_rank(target, 2, "(B, L)", "target")
        Y, weights = self._embed(target), []
        for layer in self.decoder:
            if need_weights:
                Y, looked = layer(Y, memory, source_lens, need_weights=True)
                weights.append(looked)  # (B, H, L, S)
            else:
                Y = layer(Y, memory, source_lens)
        scores = self.W_out(Y)
        return (scores, weights) if need_weights else scores

    def forward(self, source, source_lens, target):
        """Encode, then decode; see the class for shapes."""
        return self.decode(target, self.encode(source, source_lens), source_lens)

    def _embed(self, numbers):
        X = self.embedding(numbers)  # (B, length, num_hiddens)
        return X + sinusoidal_positions(*X.shape[1:]).to(X)


class RecurrentTranslator(nn.Module):
    """A GRU reads the source in both directions; a second GRU writes, with or without attention.

    At each step the decoder gets the last token and a context. With attention, the context is an
    average of the encoder's states, weighted by additive attention. Without, it is the same at
    each step: the summary, made of the encoder's last states.

    Shapes: as `Transformer`. The memory is a pair: states (B, S, num_hiddens), and the summary
        (B, num_hiddens).
    Raises: as `Transformer`; ValueError quoting num_hiddens if it is odd, RuntimeError from
        PyTorch for a length of 0.
    Source: Bahdanau et al. 2015; without attention, Cho et al. 2014.
    Lesson: notebooks/10_cross_attention.ipynb.
    """

    def __init__(self, num_tokens, num_hiddens, attention=True):
        super().__init__()
        if num_hiddens % 2:
            raise ValueError(f"two directions share num_hiddens, got {num_hiddens}")
        self.embedding = nn.Embedding(num_tokens, num_hiddens)
        self.encoder = nn.GRU(num_hiddens, num_hiddens // 2, batch_first=True, bidirectional=True)
        self.W_start = nn.Linear(num_hiddens, num_hiddens)
        self.attention = AdditiveAttention(*[num_hiddens] * 3) if attention else None
        self.decoder = nn.GRUCell(2 * num_hiddens, num_hiddens)
        self.W_out = nn.Linear(2 * num_hiddens, num_tokens)

    def encode(self, source, source_lens):
        """The memory: a state for each token of the source, and the summary."""
        check_rank(source, 2, "(B, S)", "source")
        X = nn.utils.rnn.pack_padded_sequence(  # so that no state is computed from padding
            self.embedding(source), source_lens.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.encoder(X)  # last: (2, B, num_hiddens / 2), one for each direction
        states, _ = nn.utils.rnn.pad_packed_sequence(
            states, batch_first=True, total_length=source.shape[1]
        )
        return states, torch.cat([last[0], last[1]], dim=1)

    def decode(self, target, memory, source_lens, need_weights=False):
        """The scores (B, L, num_tokens); on request also the weights, a list of one (B, 1, L, S).

        Without attention that list is empty.
        """
        check_rank(target, 2, "(B, L)", "target")
        states, summary = memory
        tokens = self.embedding(target)  # (B, L, num_hiddens)
        state = torch.tanh(self.W_start(summary))
        context, scores, weights = summary, [], []
        for t in range(target.shape[1]):
            if self.attention is not None:
                context, looked = self.attention(
                    state[:, None], states, states, source_lens, need_weights=True
                )
                context = context[:, 0]  # (B, num_hiddens)
                weights.append(looked)  # (B, 1, S)
            state = self.decoder(torch.cat([tokens[:, t], context], dim=1), state)
            scores.append(self.W_out(torch.cat([state, context], dim=1)))
        scores = torch.stack(scores, dim=1)
        weights = [torch.cat(weights, dim=1)[:, None]] if weights else []
        return (scores, weights) if need_weights else scores

    def forward(self, source, source_lens, target):
        """Encode, then decode; see the class for shapes."""
        return self.decode(target, self.encode(source, source_lens), source_lens)


def teacher_forcing_loss(model, source, source_lens, target):
    """How badly the model guesses each next token when the ones before it are the right ones.

    Shapes: source (B, S); source_lens (B,); target (B, L + 1), from START to END and PAD; returns
        the mean of -log(probability of the right token) over all tokens that are not PAD.
    Source: Williams and Zipser 1989. Lesson: notebooks/10_cross_attention.ipynb.
    """
    scores = model(source, source_lens, target[:, :-1])  # (B, L, num_tokens)
    return F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)


@torch.no_grad()
def greedy(model, source, source_lens, longest):
    """Let a model write: at each step the token with the highest score, until all have an END.

    Shapes: source (B, S); source_lens (B,); returns numbers (B, up to 1 + longest): START, what
        was written, END where it came, and PAD after that.
    Raises: ValueError quoting `longest` if it is below 1; otherwise as the model.
    Lesson: notebooks/10_cross_attention.ipynb.
    """
    if longest < 1:
        raise ValueError(f"longest must be 1 or more, got {longest}")
    memory = model.encode(source, source_lens)
    written = torch.full((len(source), 1), START, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for _ in range(longest):
        scores = model.decode(written, memory, source_lens)[:, -1]  # (B, num_tokens)
        chosen = scores.argmax(dim=1).masked_fill(ended, PAD)
        written = torch.cat([written, chosen[:, None]], dim=1)
        ended = ended | (chosen == END)
        if ended.all():
            break
    return written


def _feed_forward(num_hiddens, num_inner):
    return nn.Sequential(
        nn.Linear(num_hiddens, num_inner), nn.ReLU(), nn.Linear(num_inner, num_hiddens)
    )
