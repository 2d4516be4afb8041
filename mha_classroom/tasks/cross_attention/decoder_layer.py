"""Task 10.4, decoder_layer: a decoder layer from PyTorch's parts, with norms before or after."""

import torch
from torch.nn import functional as F

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.cross_attention.runs import run_decoder_layer

MASKS = "Who hides what"
SWAPS = "Two mistakes"


def decoder_layer(layer, Y, memory, memory_lens):
    later = torch.ones(Y.shape[1], Y.shape[1], dtype=torch.bool).triu(1)
    padding = torch.arange(memory.shape[1]) >= memory_lens[:, None]

    def looks_back(X):
        return layer.self_attn(X, X, X, attn_mask=later, need_weights=False)[0]

    def reads(X):
        return layer.multihead_attn(
            X, memory, memory, key_padding_mask=padding, need_weights=False
        )[0]

    def thinks(X):
        return layer.linear2(layer.activation(layer.linear1(X)))

    parts = ((looks_back, layer.norm1), (reads, layer.norm2), (thinks, layer.norm3))
    for part, norm in parts:
        Y = Y + part(norm(Y)) if layer.norm_first else norm(Y + part(Y))
    return Y


@and_in_float32
def layer_cases(draw):
    def case(name, B, L, S, d, H, inner, lens, norm_first, activation="relu"):
        inputs = {
            "num_heads": H,
            "num_inner": inner,
            "norm_first": norm_first,
            "activation": activation,
            "weights": draw.normal(8 * d * d + 2 * d * inner + 15 * d + inner, scale=0.7),
            "Y": draw.normal(B, L, d),
            "memory": 3 * draw.normal(B, S, d) + 1,
            "memory_lens": torch.tensor(lens),
        }
        return Case(name, inputs)

    return [
        case("1 sequence, norm_first=False", 1, 2, 3, 4, 2, 5, [3], False),
        case("1 sequence, norm_first=True", 1, 2, 3, 4, 2, 5, [3], True),
        case("2 sources of unequal length, norm_first=False", 2, 4, 5, 6, 3, 7, [5, 2], False),
        case("2 sources of unequal length, norm_first=True", 2, 4, 5, 6, 3, 7, [2, 5], True),
        case("activation is GELU", 2, 2, 3, 4, 2, 5, [3, 1], False, "gelu"),
        case("as many written tokens as read ones", 3, 4, 4, 6, 2, 3, [1, 4, 3], False),
        case(
            "all sizes alike, GELU with norm_first=True", 3, 3, 3, 3, 3, 3, [3, 1, 2], True, "gelu"
        ),
        case("nothing but START, activation is SiLU", 2, 1, 5, 4, 2, 6, [4, 3], False, "silu"),
    ]


def layer_stages(inputs):
    return run_decoder_layer(_stages_of, inputs)


def _stages_of(layer, Y, memory, memory_lens):
    """In the order in which they are made: that of norm_first."""
    later = torch.ones(Y.shape[1], Y.shape[1], dtype=torch.bool).triu(1)
    padding = torch.arange(memory.shape[1]) >= memory_lens[:, None]
    stages = {}

    def noted(name, X):
        stages[name] = X
        return X

    def looks_back(X):
        return layer.self_attn(X, X, X, attn_mask=later)[0]

    def reads(X):
        return layer.multihead_attn(X, memory, memory, key_padding_mask=padding)[0]

    def thinks(X):
        inner = noted("the first linear layer", layer.linear1(X))
        inner = noted("the activation of the feed-forward network", layer.activation(inner))
        return layer.linear2(inner)

    parts = (
        ("self-attention", looks_back, layer.norm1),
        ("cross-attention", reads, layer.norm2),
        ("feed-forward network", thinks, layer.norm3),
    )
    for of, part, norm in parts:
        asks = noted(f"the norm before the {of}", norm(Y)) if layer.norm_first else Y
        found = noted(f"what the {of} brings", part(asks))
        Y = noted(f"the sum around the {of}", Y + found)
        Y = Y if layer.norm_first else noted(f"the norm behind the {of}", norm(Y))
    return stages


def _block(kept, Y, part, norm, norm_first):
    return kept + part(norm(Y)) if norm_first else norm(kept + part(Y))


def _normed_sum(kept, Y, part, norm, norm_first):
    return norm(Y) + part(norm(Y)) if norm_first else norm(kept + part(Y))


def _normed_part(kept, Y, part, norm, norm_first):
    return kept + (part(norm(Y)) if norm_first else norm(part(Y)))


def build_layer(
    later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(1),
    padding=lambda S, lens: torch.arange(S) >= lens[:, None],
    asked=lambda layer, X, memory: (X, memory, memory),
    own=lambda X, Y, memory: X,
    back=lambda layer: layer.self_attn,
    cross=lambda layer: layer.multihead_attn,
    think=lambda layer, X: layer.linear2(layer.activation(layer.linear1(X))),
    first=lambda layer: layer.norm_first,
    norms=("norm1", "norm2", "norm3"),
    order=(0, 1, 2),
    ready=lambda layer, memory: memory,
    sums=None,
    sums_where=(False, True),
    block=_block,
    asks_with=lambda layer, X, written: X,
    across=lambda L, S: None,
    own_padding=lambda out: None,
    keeps=lambda Y, written: Y,
    skip=(),
):
    """own: what the self-attention asks. sums: which of the three parts have one, if norm_first is
    one of sums_where; else all have.

    asks_with: what the cross-attention asks with, of the layer's input too. across: what it hides
    beside padding. own_padding: what the self-attention gets for its padding. keeps: what a part is
    added to. skip: parts without a norm. block: one for all parts, or a tuple of three.
    """

    def decoder_layer(layer, Y, memory, memory_lens):
        memory, written = ready(layer, memory), Y
        hidden, out = later(Y.shape[1]), padding(memory.shape[1], memory_lens)

        def looks_back(X):
            asks = own(X, Y, memory)
            return back(layer)(X, asks, asks, attn_mask=hidden, key_padding_mask=own_padding(out))[
                0
            ]

        def reads(X):
            given = asked(layer, asks_with(layer, X, written), memory)
            fits = given[0] is memory or given[1].shape[1] == memory.shape[1]
            return cross(layer)(
                *given,
                key_padding_mask=out if fits else None,
                attn_mask=across(X.shape[1], memory.shape[1]),
            )[0]

        parts = (looks_back, reads, lambda X: think(layer, X))
        for i in order:
            norm = unchanged if i in skip else getattr(layer, norms[i])
            adds = sums is None or i in sums or layer.norm_first not in sums_where
            form = block[i] if isinstance(block, tuple) else block
            Y = form(adds * keeps(Y, written), Y, parts[i], norm, first(layer))
        return Y

    return decoder_layer


def _but_for_nan(**parts):
    """Whether a result is that of this mistake, in the rows in which the mistake sees a key.

    What attention over no key gives depends on need_weights: NaN or zeros.
    """

    def shows(inputs, value):
        expected = run_decoder_layer(build_layer(**parts), inputs)
        if not isinstance(value, torch.Tensor) or value.shape != expected.shape:
            return False
        sees = ~expected.isnan()
        return torch.allclose(value[sees].to(expected), expected[sees])

    return {"shows": shows, **parts}


def _gelu_or_relu(layer, X):
    bend = F.gelu if layer.activation is F.gelu else F.relu
    return layer.linear2(bend(layer.linear1(X)))


def _relu_where(norm_first):
    """ReLU where the norms come first, or behind, and else the function of the layer."""

    def think(layer, X):
        bend = F.relu if layer.norm_first == norm_first else layer.activation
        return layer.linear2(bend(layer.linear1(X)))

    return think


def _padding_zeroed(layer, Y, memory, memory_lens):
    real = _real_tokens(memory.shape[1], memory_lens)[..., None]
    return build_layer(padding=lambda S, lens: None)(layer, Y, memory * real, memory_lens)


def _up_to_itself(L):
    return torch.ones(L, L, dtype=torch.bool).tril()


def _real_tokens(S, lens):
    return torch.arange(S) < lens[:, None]


def _any_of(*choices):
    """The parts of the first of several forms of a mistake, and whether a result is of one."""
    return any_of(build_layer, *choices, run=run_decoder_layer)


LOST = "What a part brings is added to what comes in. Else what was written so far is lost there."


def _not_added(*lacking):
    """The parts of an answer in which these parts of a layer have no sum, and its `shows`."""
    sums = tuple(part for part in range(3) if part not in lacking)
    places = ((False, True), (False,), (True,))
    return _any_of(*({"sums": sums, "sums_where": where} for where in places))


# The numbers of the norms that are taken, where they are not 1, 2 and 3.
NORMS = ((2, 1, 3), (1, 3, 2), (3, 2, 1), (1, 1, 1), (1, 2, 2), (1, 1, 2), (1, 1, 3), (1, 2, 1))


def _norms_where(norms, norm_first):
    """An answer that takes these norms if layer.norm_first is this, and else the right ones."""

    def answer(layer, *given):
        named = {"norms": [f"norm{n}" for n in norms]} if layer.norm_first == norm_first else {}
        return build_layer(**named)(layer, *given)

    return answer


NORMS_SOMEWHERE = [_norms_where(norms, first) for first in (False, True) for norms in NORMS]

# What the cross-attention asks with, of the layer's input: always, normalised or not, or only
# where the norms come first, or behind.
ASKS_WITH_THE_INPUT = [
    lambda layer, X, written: written,
    lambda layer, X, written: layer.norm2(written) if layer.norm_first else written,
    lambda layer, X, written: layer.norm1(written) if layer.norm_first else written,
    lambda layer, X, written: layer.norm2(written) if layer.norm_first else X,
    lambda layer, X, written: layer.norm1(written) if layer.norm_first else X,
    lambda layer, X, written: written if layer.norm_first else X,
    lambda layer, X, written: X if layer.norm_first else written,
]

# A block for each part, of which one or more add to what has been normalised.
NORMED_SUMS = [
    _normed_sum,
    *(tuple(_normed_sum if i == part else _block for i in range(3)) for part in range(3)),
]


LAYER = {
    "future-seen": known(
        "Your self-attention has no causal mask, or one that hides nothing.",
        "Each row has to guess the next token. Without a mask it reads it.",
        later=lambda L: None,
    ),
    "lengths-ignored": known(
        "memory_lens has no effect.",
        "The cross-attention has to hide the padding of the source.",
        padding=lambda S, lens: None,
    ),
    "memory-forgotten": known(
        "The second attention asks the decoder's own tokens.",
        "Then the layer never reads the source. Where do keys and values come from?",
        section=SWAPS,
        asked=lambda layer, X, memory: (X, X, X),
    ),
    "always-post-norm": known(
        "The norm always comes after the sum.",
        "layer.norm_first says where it belongs. If it is True, the norm stands before each part "
        "(exercise 6.8).",
        first=lambda layer: False,
    ),
    "always-pre-norm": known(
        "The norm always comes before the part.",
        "layer.norm_first says where it belongs. If it is False, the sum is normalised (lesson 6).",
        first=lambda layer: True,
    ),
    "part-missing": known(
        "The self-attention is missing, or the feed-forward network.",
        "A decoder layer has three parts, each with its sum and norm.",
        **_any_of({"order": (0, 1)}, {"order": (1, 2)}),
    ),
    "no-activation": known(
        "There is no activation between the two linear layers.",
        "Two linear layers in a row are one linear layer.",
        think=lambda layer, X: layer.linear2(layer.linear1(X)),
    ),
    "one-activation-always": known(
        "Always, or with one value of norm_first, you take ReLU or GELU, and not the function of "
        "the layer.",
        "The layer brings its own function: layer.activation.",
        **_any_of(
            {"think": lambda layer, X: layer.linear2(torch.relu(layer.linear1(X)))},
            {"think": lambda layer, X: layer.linear2(F.gelu(layer.linear1(X)))},
            {"think": _gelu_or_relu},
            {"think": _relu_where(True)},
            {"think": _relu_where(False)},
        ),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "part-normalised-before-the-sum": known(
        "Where norm_first is False, what a part brings is normalised, and then comes the sum.",
        "There the sum is normalised: X + part(X) goes into the norm, and the norm comes last.",
        block=_normed_part,
    ),
    "causal-mask-inverted": known(
        "Your causal mask holds True, or -inf, where a token may look.",
        "In this course True does say so. In PyTorch's module True means: ignore, as -inf does.",
        **_but_for_nan(later=_up_to_itself),
    ),
    "both-masks-inverted": known(
        "Both of your masks say True where a token may look.",
        "So it is in this course. In PyTorch's module True means: ignore.",
        **_but_for_nan(later=_up_to_itself, padding=_real_tokens),
    ),
    "itself-hidden": known(
        "Tokens do not see themselves, or only the first does, which would see nothing else.",
        "Token t may see tokens 0 to t. Which diagonal is the first that is hidden?",
        **_but_for_nan(later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(0)),
    ),
    "next-token-seen": known(
        "Each token sees the next one too.",
        "It is the very token that it has to guess. Which diagonal is the first that is hidden?",
        later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(2),
    ),
    "padding-mask-inverted": known(
        "Your padding mask says True where there is a token.",
        "In PyTorch's module True means: ignore this key.",
        **_but_for_nan(padding=_real_tokens),
    ),
    "padding-set-to-0": known(
        "You put zeros in the place of padding in the memory, and do not hide it.",
        "Each key gets a share of the weights, also one that is made of zeros. Which argument of "
        "the attention says which keys to ignore?",
        wrong=_padding_zeroed,
    ),
    "one-key-too-many": known(
        "The cross-attention sees one key past the length.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        padding=lambda S, lens: torch.arange(S) > lens[:, None],
    ),
    "attentions-swapped": known(
        "The two attentions have changed places.",
        "self_attn looks back at the target, multihead_attn reads the memory.",
        back=lambda layer: layer.multihead_attn,
        cross=lambda layer: layer.self_attn,
    ),
    "one-attention-for-both": known(
        "You use one of the two attentions for both parts.",
        "self_attn looks back at the target, multihead_attn reads the memory. Each has weights of "
        "its own.",
        **_any_of(
            {"cross": lambda layer: layer.self_attn}, {"back": lambda layer: layer.multihead_attn}
        ),
    ),
    "norm_first-inverted": known(
        "The norms are before the parts where they belong behind the sums, and the reverse.",
        "norm_first=True: the norm comes first, then the part (exercise 6.8).",
        first=lambda layer: not layer.norm_first,
    ),
    "normed-sum": known(
        "With norm_first you add what a part brings to what has been normalised.",
        "The norm stands on the way into the part. The way past it has no norm.",
        **_any_of(*({"block": blocks} for blocks in NORMED_SUMS)),
    ),
    "norm-of-the-part": known(
        "You normalise what a part returns, and then add it.",
        "Either the sum is normalised, or what goes into the part.",
        block=lambda kept, Y, part, norm, norm_first: kept + norm(part(Y)),
    ),
    "both-norms": known(
        "With norm_first you normalise the sum as well.",
        "The norm moves to the front: behind the sum there is none then.",
        block=lambda kept, Y, part, norm, norm_first: (
            norm(kept + part(norm(Y))) if norm_first else norm(kept + part(Y))
        ),
    ),
    "memory-normalised": known(
        "You normalise the memory too.",
        "The encoder has done that. Only what runs along the decoder is normalised here.",
        **_any_of(
            {"ready": lambda layer, memory: layer.norm2(memory)},
            {"ready": lambda layer, memory: layer.norm2(memory) if layer.norm_first else memory},
        ),
    ),
    "only-queries-normalised": known(
        "With norm_first your self-attention normalises the queries, and not keys and values.",
        "In self-attention all three come from the same rows, and these are normalised first.",
        own=lambda X, Y, memory: Y,
    ),
    "another-norm": known(
        "The norms have changed places, or one of them is used more than once.",
        "norm1 belongs to the self-attention, norm2 to the cross-attention, norm3 to the "
        "feed-forward network. Each has weights of its own.",
        **_any_of(*({"norms": [f"norm{n}" for n in norms]} for norms in NORMS)),
    ),
    "another-norm-in-one-case": known(
        "In one of the two cases, with norm_first or without it, a norm stands in the place of "
        "another one.",
        "norm1 belongs to the self-attention, norm2 to the cross-attention, norm3 to the "
        "feed-forward network, in both cases.",
        wrong=NORMS_SOMEWHERE[0],
        shows=like(*NORMS_SOMEWHERE, run=run_decoder_layer),
    ),
    "parts-in-another-order": known(
        "The three parts come in another order.",
        "First the decoder looks back at what is written. With what it found it asks the source. "
        "Then it thinks about each token.",
        **_any_of({"order": (1, 0, 2)}, {"order": (0, 2, 1)}, {"order": (2, 0, 1)}),
    ),
    "no-cross-attention": known(
        "There is no cross-attention: the memory has no effect.",
        "A decoder layer has three parts. Without the second one it never reads the source.",
        section=SWAPS,
        order=(0, 2),
    ),
    "asks-with-the-input": known(
        "The cross-attention asks with Y as it came into the layer.",
        "Its queries are the rows after the first part: what the self-attention found is in them.",
        section=SWAPS,
        **_any_of(*({"asks_with": asks} for asks in ASKS_WITH_THE_INPUT)),
    ),
    "is_causal-alone": known(
        "You say is_causal=True and give no attn_mask.",
        "In nn.MultiheadAttention this is a hint about the mask that you give. Alone it hides "
        "nothing, or raises an error.",
        back=lambda layer: lambda *asks, **masks: layer.self_attn(*asks, is_causal=True),
    ),
    "causal-mask-of-numbers": known(
        "Your causal mask holds the numbers 0 and 1.",
        "PyTorch adds a mask of numbers to the scores, and 1 more or less hides nothing. Either "
        "booleans, True = ignore, or -inf where nothing may be seen.",
        **_any_of(
            *(
                {"later": lambda L, part=part: part(torch.ones(L, L, dtype=torch.float64))}
                for part in (torch.triu, torch.tril, lambda ones: ones.triu(1))
            )
        ),
    ),
    "cross-attention-causal": known(
        "Your cross-attention lets token t of the target see the first tokens of the source only.",
        "Word 1 of a translation may need the last word of the source. It is all known.",
        across=lambda L, S: torch.ones(L, S, dtype=torch.bool).triu(1),
    ),
    "queries-and-keys-swapped": known(
        "The memory asks, and the decoder's tokens are asked.",
        "There would be a row for each token of the source, not for each that is written.",
        section=SWAPS,
        asked=lambda layer, X, memory: (memory, X, X),
    ),
    "norm-missing": known(
        "There are no norms, or not all of the three parts have one.",
        "Each of them has one: norm1, norm2 and norm3.",
        **_any_of(*({"skip": skip} for skip in ((0, 1, 2), (2,), (1,), (0,)))),
    ),
    "added-to-the-input": known(
        "You add each part to Y as it came into the layer.",
        "Each part is added to what the parts before it have made.",
        keeps=lambda Y, written: written,
    ),
    "self-attention-to-the-memory": known(
        "Both attentions ask the memory.",
        "The first one looks back at what is written: queries, keys and values are the decoder's "
        "own rows.",
        section=SWAPS,
        **_any_of(
            {"own": lambda X, Y, memory: memory, "later": lambda L: None},
            {
                "own": lambda X, Y, memory: memory,
                "later": lambda L: None,
                "own_padding": lambda out: out,
            },
        ),
    ),
    "no-sums": known(
        "None of the three parts has a sum around it, with norm_first, without it, or both.",
        LOST,
        **_not_added(0, 1, 2),
    ),
    "self-attention-not-added": known(
        "The self-attention has no sum around it, with norm_first, without it, or both.",
        LOST,
        **_not_added(0),
    ),
    "cross-attention-not-added": known(
        "The cross-attention has no sum around it, with norm_first, without it, or both.",
        LOST,
        **_not_added(1),
    ),
    "feed-forward-not-added": known(
        "The feed-forward network has no sum around it, with norm_first, without it, or both.",
        LOST,
        **_not_added(2),
    ),
}

TASK = Task(
    "10-decoder_layer",
    decoder_layer,
    layer_cases,
    run=run_decoder_layer,
    returns=("the output",),
    mistakes=read_again(MASKS, LAYER | ALONE),
    build=build_layer,
    stages=layer_stages,
    alone=tuple(ALONE),
    forbidden=("torch.nn.modules.transformer.TransformerDecoderLayer",),
    number=4,
)
