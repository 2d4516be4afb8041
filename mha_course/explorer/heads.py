"""What a head does with its attention, in figures and in words."""

import math
from numbers import Integral

import torch

__all__ = [
    "describe_head",
    "entropy",
    "find_head",
    "head_figures",
    "most_attended",
    "offset_score",
    "opening_head",
    "separator_score",
    "token_score",
]

# A head has a kind if it gives more than half of its attention to one thing: the measure by which
# Clark et al. 2019 count heads that look at the token before or after.
MOST = 0.5
# A head is broad if its entropy is above .8 of ln L, the entropy of equal weights: at L = 20 it
# spreads over exp(.8 ln 20) = 11 tokens or more.
BROAD = 0.8
SEPARATOR = "[SEP]"
SPECIAL = ("[CLS]", SEPARATOR)
OFFSETS = {"the token before": -1, "the token itself": 0, "the token after": 1}


def most_attended(weights, tokens, k=3):
    """The k tokens that a head attends to most, each with its mean weight over the queries.

    Shapes: weights (L, S) of one head; S tokens; returns min(k, S) pairs (token, weight), the
        largest weight first, of equal ones the earlier token first.
    Raises: TypeError unless weights are a floating tensor and k an integer; ValueError quoting
        the sizes if weights are not (L, S), there are not S tokens, or k is below 1.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(L, S)", rank=2)
    _check_tokens(weights, tokens)
    if not isinstance(k, Integral) or isinstance(k, bool):
        raise TypeError(f"k must be an integer, got {k!r}")
    if k < 1:
        raise ValueError(f"k must be 1 or more, got {k}")
    means, places = weights.mean(dim=0).sort(descending=True, stable=True)  # (S,)
    return [
        (tokens[place], mean) for place, mean in zip(places.tolist(), means.tolist(), strict=True)
    ][:k]


def entropy(weights):
    """How widely each query spreads its attention: 0 for one token, ln S for S equal weights.

    Shapes: weights (..., L, S); returns (..., L), in nats.
    Properties: 0 ln 0 counts as 0; exp of it is the number of equal weights that spread as widely.
    Raises: TypeError unless weights are a floating tensor; ValueError quoting the shape if it is
        not (..., L, S), or the smallest weight if it is negative or no number.
    Source: Shannon 1948; as a measure of heads, Clark et al. 2019, section 3.3.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(..., L, S)")
    if not (weights >= 0).all():
        raise ValueError(f"weights must not be negative, got {weights.min().item()}")
    return torch.special.entr(weights).sum(dim=-1)


def offset_score(weights, offset):
    """How much a head looks at a fixed distance: -1 the token before, 0 itself, 1 the one after.

    Shapes: weights (..., L, L); returns (...,), the mean of weights[i, i + offset] over the
        queries i that have such a key.
    Raises: TypeError unless weights are a floating tensor and offset an integer; ValueError
        quoting the sizes if weights are not (..., L, L) or no query has such a key.
    Source: Voita et al. 2019, section 5.2, positional heads.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(..., L, L)", square=True)
    if not isinstance(offset, Integral) or isinstance(offset, bool):
        raise TypeError(f"offset must be an integer, got {offset!r}")
    length = weights.shape[-1]
    if abs(offset) >= length:
        raise ValueError(f"no query has a key at offset {offset} in weights of {length} tokens")
    return weights.diagonal(offset, -2, -1).mean(dim=-1)


def token_score(weights, tokens, token):
    """How much of its attention a head gives to `token`, wherever it stands.

    Shapes: weights (..., L, S); S tokens; returns (...,), the weight on all places of `token`,
        mean over the queries; 0 if it stands nowhere.
    Raises: TypeError unless weights are a floating tensor; ValueError quoting the sizes if
        weights are not (..., L, S) or there are not S tokens.
    Source: Clark et al. 2019, section 3.2. Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(..., L, S)")
    _check_tokens(weights, tokens)
    places = [place for place, name in enumerate(tokens) if name == token]
    return weights[..., places].sum(dim=-1).mean(dim=-1)


def separator_score(weights, tokens):
    """How much of its attention a head gives to [SEP]; see `token_score`."""
    return token_score(weights, tokens, SEPARATOR)


def find_head(weights, offset):
    """The layer and the head, counted from 0, that look most at this offset; see `offset_score`.

    Shapes: weights (layers, H, L, L); returns (layer, head), of equal ones the first.
    Raises: TypeError and ValueError as `offset_score`, and if weights have not four dimensions.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(layers, H, L, L)", rank=4, square=True)
    place = offset_score(weights, offset).flatten().argmax().item()
    return divmod(place, weights.shape[1])


def opening_head(weights, tokens):
    """The layer and the head, counted from 0, whose words look most at other words.

    What a word gives to itself, to [CLS] and to [SEP] does not count, nor what these two give.

    Shapes: weights (layers, H, L, L); L tokens; returns (layer, head), of equal ones the first.
    Raises: TypeError and ValueError as `token_score`, and if weights have not four dimensions.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(layers, H, L, L)", rank=4, square=True)
    _check_tokens(weights, tokens)
    words = torch.tensor([token not in SPECIAL for token in tokens])
    counted = words[:, None] & words & ~torch.eye(len(tokens), dtype=torch.bool)
    place = (weights * counted).sum(dim=(-2, -1)).flatten().argmax().item()
    return divmod(place, weights.shape[1])


def head_figures(weights, tokens):
    """Where one head's attention goes: the share of it on each thing that could be its kind.

    Shapes: weights (L, L) of one head; L tokens; returns {name: share}: the token before, itself
        and after, [CLS] and [SEP] where they stand, and spread, the mean entropy over ln L.
    Properties: each lies in 0..1 (one token alone has no spread: 0). They overlap, and so need
        not sum to 1: of "[CLS] a", [CLS] is also the token before a.
    Raises: TypeError and ValueError as `offset_score` and `token_score`.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    _check_weights(weights, "(L, L)", rank=2, square=True)
    length = len(weights)
    figures = {
        name: offset_score(weights, offset).item()
        for name, offset in OFFSETS.items()
        if abs(offset) < length
    }
    for name in SPECIAL:
        if name in tokens:
            figures[name] = token_score(weights, tokens, name).item()
    widest = math.log(length) or 1
    return {**figures, "spread": entropy(weights).mean().item() / widest}


def describe_head(weights, tokens):
    """What kind of head this is on this text, in words with the figure that says so.

    Shapes: weights (L, L) of one head; L tokens; returns a str that begins with a verb, such as
        "looks at the token before: 1.00 of its attention".
    Properties: the largest of its shares names the kind if it is above MOST; else it is broad if
        its spread is above BROAD; else mixed.
    Raises: TypeError and ValueError as `head_figures`.
    Source: Clark et al. 2019, section 3. Lesson: notebooks/07_seeing_attention.ipynb.
    """
    shares = head_figures(weights, tokens)
    spread = shares.pop("spread")
    name = max(shares, key=shares.get)
    share = f"{shares[name]:.2f} of its attention"
    if shares[name] > MOST:
        return f"parks on {name}: {share}" if name in SPECIAL else f"looks at {name}: {share}"
    if spread > BROAD:
        words = math.exp(spread * math.log(len(tokens)))
        return f"is broad: spread as over {words:.1f} of {len(tokens)} tokens with equal weights"
    return f"is mixed: at most {share}, on {name}"


def _check_weights(weights, shape, rank=None, square=False):
    if not torch.is_tensor(weights) or not weights.is_floating_point():
        kind = weights.dtype if torch.is_tensor(weights) else type(weights).__name__
        raise TypeError(f"weights must be a floating tensor {shape}, got {kind}")
    sizes = tuple(weights.shape)
    fits = len(sizes) == rank if rank else len(sizes) >= 2
    if not fits or not weights.numel() or (square and sizes[-1] != sizes[-2]):
        raise ValueError(f"weights must be {shape} and not empty, got {sizes}")


def _check_tokens(weights, tokens):
    if len(tokens) != weights.shape[-1]:
        sizes = tuple(weights.shape)
        raise ValueError(f"{len(tokens)} tokens for weights of {sizes[-1]} keys, {sizes}")
