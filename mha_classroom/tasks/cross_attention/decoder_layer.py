"""Task 10.4, decoder_layer: a decoder layer from PyTorch's parts, with norms before or after."""

import itertools

import torch
from torch.nn import functional as F

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, known, read_again, unchanged
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


def layer_cases(draw):
    def case(name, B, L, S, d, H, inner, lens, norm_first, activation="relu"):
        sizes = {
            "self_attn.in_proj_weight": (3 * d, d),
            "self_attn.in_proj_bias": (3 * d,),
            "self_attn.out_proj.weight": (d, d),
            "self_attn.out_proj.bias": (d,),
            "linear1.weight": (inner, d),
            "linear1.bias": (inner,),
            "linear2.weight": (d, inner),
            "linear2.bias": (d,),
        }
        for n in (1, 2, 3):
            sizes |= {f"norm{n}.weight": (d,), f"norm{n}.bias": (d,)}
        for name_, shape in list(sizes.items()):
            if name_.startswith("self_attn"):
                sizes[name_.replace("self_attn", "multihead_attn")] = shape
        inputs = {
            "num_heads": H,
            "norm_first": norm_first,
            "activation": activation,
            "weights": {n: draw.normal(*shape, scale=0.7) for n, shape in sizes.items()},
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
        case("all sizes alike, norm_first=True", 3, 3, 3, 3, 3, 3, [3, 1, 2], True),
        case("nothing but START", 2, 1, 5, 4, 2, 6, [4, 5], False),
    ]


def _block(kept, Y, part, norm, norm_first):
    return kept + part(norm(Y)) if norm_first else norm(kept + part(Y))


def _normed_sum(kept, Y, part, norm, norm_first):
    return norm(Y) + part(norm(Y)) if norm_first else norm(kept + part(Y))


def build_layer(
    later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(1),
    padding=lambda S, lens: torch.arange(S) >= lens[:, None],
    asked=lambda layer, X, memory: (X, memory, memory),
    own=lambda X, Y: X,
    back=lambda layer: layer.self_attn,
    cross=lambda layer: layer.multihead_attn,
    think=lambda layer, X: layer.linear2(layer.activation(layer.linear1(X))),
    first=lambda layer: layer.norm_first,
    norms=("norm1", "norm2", "norm3"),
    order=(0, 1, 2),
    ready=lambda layer, memory: memory,
    sums=None,
    block=_block,
    asks_with=lambda X, written: X,
    across=lambda L, S: None,
    kept_norms=(),
    fits=True,
    own_padding=lambda out: None,
    keeps=lambda Y, written: Y,
    skip=(),
    end=lambda layer, Y: Y,
):
    """own: what the self-attention asks. sums: which of the three parts have one.

    asks_with: what the cross-attention asks with, of the layer's input too. across: what it hides
    beside padding. kept_norms: of the parts that are left out. fits: whether the mask of padding
    is left out where it has not as many columns as there are keys. own_padding: what the
    self-attention gets for it. keeps: what a part is added to. skip: parts without a norm.
    """

    def decoder_layer(layer, Y, memory, memory_lens):
        memory, written = ready(layer, memory), Y
        hidden, out = later(Y.shape[1]), padding(memory.shape[1], memory_lens)

        def looks_back(X):
            asks = own(X, Y)
            return back(layer)(X, asks, asks, attn_mask=hidden, key_padding_mask=own_padding(out))[
                0
            ]

        def reads(X):
            given = asked(layer, asks_with(X, written), memory)
            known_size = given[1].shape[1] == memory.shape[1] or not fits
            return cross(layer)(
                *given,
                key_padding_mask=out if known_size else None,
                attn_mask=across(X.shape[1], memory.shape[1]),
            )[0]

        parts = (looks_back, reads, lambda X: think(layer, X))
        for i in order:
            if i in kept_norms:
                Y = getattr(layer, norms[i])(Y)
                continue
            norm = unchanged if i in skip else getattr(layer, norms[i])
            kept = (sums is None or i in sums) * keeps(Y, written)
            Y = block(kept, Y, parts[i], norm, first(layer))
        return end(layer, Y)

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


def _up_to_itself(L):
    return torch.ones(L, L, dtype=torch.bool).tril()


def _real_tokens(S, lens):
    return torch.arange(S) < lens[:, None]


def _any_of(*choices):
    """The parts of the first of several forms of a mistake, and whether a result is of one."""
    return {
        "shows": like(*(build_layer(**c) for c in choices), run=run_decoder_layer),
        **choices[0],
    }


NORMS = ("norm1", "norm2", "norm3")
# All ways to take three norms, by how many different ones there are.
TAKEN = {
    count: [{"norms": n} for n in itertools.product(NORMS, repeat=3) if len(set(n)) == count]
    for count in (1, 2, 3)
}
SWAPPED = [parts for parts in TAKEN[3] if parts["norms"] != NORMS]


def _is_causal_alone(layer, Y, memory, memory_lens):
    class Looking:
        norm_first = layer.norm_first

        def __getattr__(self, name):
            return getattr(layer, name)

        def self_attn(self, X, keys, values, attn_mask, key_padding_mask):
            return layer.self_attn(X, keys, values, is_causal=True)

    return build_layer()(Looking(), Y, memory, memory_lens)


def _reads_twice(mask):
    """The self-attention asks the memory, with this mask or none."""

    def decoder_layer(layer, Y, memory, memory_lens):
        L, S = Y.shape[1], memory.shape[1]
        out = torch.arange(S) >= memory_lens[:, None]
        later = torch.ones(L, S, dtype=torch.bool).triu(1)

        class Reading:
            norm_first = layer.norm_first

            def __getattr__(self, name):
                return getattr(layer, name)

            def self_attn(self, X, keys, values, attn_mask, key_padding_mask):
                return layer.self_attn(
                    X,
                    memory,
                    memory,
                    attn_mask=later if mask == "causal" else None,
                    key_padding_mask=out if mask == "padding" else None,
                )

        return build_layer()(Reading(), Y, memory, memory_lens)

    return decoder_layer


def _numbers_of(part):
    """A causal mask of the numbers 0 and 1, which are added to the scores."""
    return lambda L: part(torch.ones(L, L, dtype=torch.float64))


def _normed_again(layer, Y):
    return layer.norm3(Y) if layer.norm_first else Y


def _inner(layer, X, activation):
    return layer.linear2(activation(layer.linear1(X)))


def _across(diagonal):
    return lambda L, S: torch.ones(L, S, dtype=torch.bool).triu(diagonal)


LAYER = {
    "future-seen": known(
        "Your self-attention has no causal mask.",
        "Each row has to guess the next token. Without a mask it reads it.",
        later=lambda L: None,
    ),
    "causal-mask-inverted": known(
        "Your causal mask says True where a token may look.",
        "So it is in this course. In PyTorch's module True means: ignore.",
        **_but_for_nan(later=_up_to_itself),
    ),
    "both-masks-inverted": known(
        "Both of your masks say True where a token may look.",
        "So it is in this course. In PyTorch's module True means: ignore.",
        **_but_for_nan(later=_up_to_itself, padding=_real_tokens),
    ),
    "itself-hidden": known(
        "No token sees itself, so the first sees nothing.",
        "Token t may see tokens 0 to t. Which diagonal is the first that is hidden?",
        **_but_for_nan(later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(0)),
    ),
    "next-token-seen": known(
        "Each token sees the next one too.",
        "It is the very token that it has to guess. Which diagonal is the first that is hidden?",
        later=lambda L: torch.ones(L, L, dtype=torch.bool).triu(2),
    ),
    "lengths-ignored": known(
        "memory_lens has no effect.",
        "The cross-attention has to hide the padding of the source.",
        padding=lambda S, lens: None,
    ),
    "padding-mask-inverted": known(
        "Your padding mask says True where there is a token.",
        "In PyTorch's module True means: ignore this key.",
        **_but_for_nan(padding=_real_tokens),
    ),
    "one-key-too-many": known(
        "The cross-attention sees one key past the length.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        padding=lambda S, lens: torch.arange(S) > lens[:, None],
    ),
    "memory-forgotten": known(
        "The second attention asks the decoder's own tokens.",
        "Then the layer never reads the source. Where do keys and values come from?",
        section=SWAPS,
        asked=lambda layer, X, memory: (X, X, X),
    ),
    "memory-and-lengths-forgotten": known(
        "The second attention asks the decoder's own tokens.",
        "Then the layer never reads the source. Where do keys and values come from?",
        section=SWAPS,
        asked=lambda layer, X, memory: (X, X, X),
        padding=lambda S, lens: None,
    ),
    "queries-and-keys-swapped": known(
        "The memory asks, and the decoder's tokens are asked.",
        "There would be a row for each token of the source, not for each that is written.",
        section=SWAPS,
        asked=lambda layer, X, memory: (memory, X, X),
    ),
    "attentions-swapped": known(
        "The two attentions have changed places.",
        "self_attn looks back at the target, multihead_attn reads the memory.",
        back=lambda layer: layer.multihead_attn,
        cross=lambda layer: layer.self_attn,
    ),
    "one-attention-for-both": known(
        "You use self_attn for the cross-attention too.",
        "PyTorch calls the second one multihead_attn. It has weights of its own.",
        cross=lambda layer: layer.self_attn,
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
    "norm_first-inverted": known(
        "The norms are before the parts where they belong behind the sums, and the reverse.",
        "norm_first=True: the norm comes first, then the part (exercise 6.8).",
        first=lambda layer: not layer.norm_first,
    ),
    "normed-sum": known(
        "With norm_first you add each part to what has been normalised.",
        "The norm stands on the way into the part. The way past it has no norm.",
        block=_normed_sum,
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
    "no-norms": known(
        "There are no norms.",
        "Each of the three parts has one.",
        block=lambda kept, Y, part, norm, norm_first: kept + part(Y),
    ),
    "memory-normalised": known(
        "You normalise the memory too.",
        "The encoder has done that. Only what runs along the decoder is normalised here.",
        ready=lambda layer, memory: layer.norm2(memory),
    ),
    "memory-normalised-if-first": known(
        "With norm_first you normalise the memory too.",
        "The encoder has done that. Only what runs along the decoder is normalised here.",
        ready=lambda layer, memory: layer.norm2(memory) if layer.norm_first else memory,
    ),
    "only-queries-normalised": known(
        "With norm_first your self-attention normalises the queries, and not keys and values.",
        "In self-attention all three come from the same rows, and these are normalised first.",
        own=lambda X, Y: Y,
    ),
    "norms-in-another-order": known(
        "The norms have changed places.",
        "norm1 belongs to the self-attention, norm2 to the cross-attention, norm3 to the "
        "feed-forward network.",
        **_any_of({"norms": ("norm2", "norm1", "norm3")}, *SWAPPED),
    ),
    "one-norm-for-several": known(
        "You use one norm at more than one place.",
        "Each norm has weights of its own: norm1 belongs to the self-attention, norm2 to the "
        "cross-attention, norm3 to the feed-forward network.",
        **_any_of(*TAKEN[1], *TAKEN[2]),
    ),
    "cross-attention-first": known(
        "The cross-attention comes before the self-attention.",
        "First the decoder looks back at what is written. With what it found it asks the source.",
        **_any_of({"order": (1, 0, 2)}, {"order": (1, 0, 2), "norms": ("norm2", "norm1", "norm3")}),
    ),
    "feed-forward-too-early": known(
        "The feed-forward network comes before an attention.",
        "The order is: look back, read the source, then think about each token.",
        **_any_of({"order": (0, 2, 1)}, {"order": (2, 0, 1)}),
    ),
    "no-cross-attention": known(
        "There is no cross-attention: the memory has no effect.",
        "A decoder layer has three parts. Without the second one it never reads the source.",
        section=SWAPS,
        **_any_of({"order": (0, 2)}, {"kept_norms": (1,)}),
    ),
    "no-self-attention": known(
        "There is no self-attention.",
        "A decoder layer has three parts. In the first one each token looks back at what is "
        "written.",
        **_any_of({"order": (1, 2)}, {"kept_norms": (0,)}),
    ),
    "asks-with-the-input": known(
        "The cross-attention asks with Y as it came into the layer.",
        "Its queries are the rows after the first part: what the self-attention found is in them.",
        section=SWAPS,
        asks_with=lambda X, written: written,
    ),
    "is_causal-alone": known(
        "You say is_causal=True and give no attn_mask.",
        "In nn.MultiheadAttention this is a hint about the mask that you give. Alone it hides "
        "nothing, or raises an error.",
        wrong=_is_causal_alone,
    ),
    "causal-mask-of-numbers": known(
        "Your causal mask holds the numbers 0 and 1.",
        "PyTorch adds a mask of numbers to the scores, and 1 more or less hides nothing. Either "
        "booleans, True = ignore, or -inf where nothing may be seen.",
        **_any_of(
            {"later": _numbers_of(torch.triu)},
            *(
                {"later": later}
                for later in (
                    _numbers_of(torch.tril),
                    _numbers_of(lambda ones: ones.triu(1)),
                    _numbers_of(lambda ones: -ones.triu(1)),
                )
            ),
        ),
    ),
    "cross-attention-causal": known(
        "Your cross-attention lets token t of the target see the first tokens of the source only.",
        "Word 1 of a translation may need the last word of the source. It is all known.",
        across=_across(1),
    ),
    "memory-asks-with-its-padding": known(
        "The memory asks, and the decoder's tokens are asked.",
        "There would be a row for each token of the source, not for each that is written.",
        section=SWAPS,
        asked=lambda layer, X, memory: (memory, X, X),
        fits=False,
    ),
    "memory-asks-without-padding": known(
        "The memory asks, and the decoder's tokens are asked.",
        "There would be a row for each token of the source, not for each that is written.",
        section=SWAPS,
        asked=lambda layer, X, memory: (memory, X, X),
        padding=lambda S, lens: None,
    ),
    "multihead_attn-for-both": known(
        "You use multihead_attn for the self-attention too.",
        "It reads the memory. The attention that looks back is self_attn, with weights of its own.",
        back=lambda layer: layer.multihead_attn,
    ),
    "norm-at-the-end": known(
        "You normalise the result once more.",
        "With norm_first the last norm stands before the feed-forward network, and behind the sum "
        "there is none. Otherwise each sum has been normalised already.",
        **_any_of({"end": _normed_again}, {"end": lambda layer, Y: layer.norm3(Y)}),
    ),
    "norm-missing": known(
        "Not all of the three parts have a norm.",
        "Each of them has one: norm1, norm2 and norm3.",
        **_any_of(*({"skip": skip} for skip in ((2,), (1,), (0,), (0, 1), (0, 2), (1, 2)))),
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
        wrong=_reads_twice(None),
        shows=like(*map(_reads_twice, (None, "padding", "causal")), run=run_decoder_layer),
    ),
    "padding-for-the-self-attention": known(
        "You give the self-attention the padding of the memory.",
        "Its keys are the written tokens. memory_lens belongs to the cross-attention.",
        own_padding=lambda out: out,
    ),
    "causal-mask-for-the-cross-attention": known(
        "You give the cross-attention the causal mask of the self-attention.",
        "It is (L, L), and here the keys are the memory's. Nothing of the source is hidden but "
        "padding.",
        across=lambda L, S: torch.ones(L, L, dtype=torch.bool).triu(1),
    ),
    "infinity-times-0": known(
        "Your causal mask is a product of -inf and 0, and that is NaN.",
        "Fill a mask of zeros with -inf where nothing may be seen, or give booleans.",
        later=lambda L: torch.ones(L, L, dtype=torch.float64).triu(1) * -torch.inf,
    ),
    "gelu-always": known(
        "You always take GELU.",
        "The layer brings its own function: layer.activation.",
        **_any_of(
            {"think": lambda layer, X: _inner(layer, X, F.gelu)},
            {"think": lambda layer, X: _inner(layer, X, lambda Z: F.gelu(Z, approximate="tanh"))},
        ),
    ),
    "activation-last": known(
        "The activation comes after the second linear layer.",
        "It stands between the two. What the network brings may be negative.",
        **_any_of(
            {"think": lambda layer, X: layer.activation(layer.linear2(layer.linear1(X)))},
            {
                "think": lambda layer, X: layer.activation(
                    layer.linear2(layer.activation(layer.linear1(X)))
                )
            },
        ),
    ),
    "one-key-too-few": known(
        "The cross-attention sees one key less than the length says.",
        "A length of 3 allows the keys 0, 1 and 2.",
        **_but_for_nan(padding=lambda S, lens: torch.arange(S) >= lens[:, None] - 1),
    ),
    "no-sum-around-self-attention": known(
        "Around the self-attention there is no sum.",
        "Each of the three parts is added to what comes in.",
        sums=(1, 2),
    ),
    "no-sum-around-feed-forward": known(
        "Around the feed-forward network there is no sum.",
        "Each of the three parts is added to what comes in.",
        sums=(0, 1),
    ),
    "no-feed-forward": known(
        "The feed-forward network is missing.",
        "A decoder layer has three parts, each with its sum and norm.",
        order=(0, 1),
    ),
    "no-activation": known(
        "There is no activation between the two linear layers.",
        "Two linear layers in a row are one linear layer.",
        think=lambda layer, X: layer.linear2(layer.linear1(X)),
    ),
    "relu-always": known(
        "You always take ReLU.",
        "The layer brings its own function, and it is not ReLU in all cases.",
        think=lambda layer, X: layer.linear2(torch.relu(layer.linear1(X))),
    ),
    "no-sum-around-cross-attention": known(
        "Around the cross-attention there is no sum.",
        "What was written so far would be lost there. Each of the three parts is added to what "
        "comes in.",
        sums=(0, 2),
    ),
    "no-sums": known(
        "There are no sums.",
        "Each of the three parts is added to what comes in.",
        sums=(),
    ),
}

# What is easily done in one of two branches only, `if layer.norm_first:` and `else:`.
IN_ONE_BRANCH = (
    "norms-in-another-order",
    "one-norm-for-several",
    "norm-missing",
    "cross-attention-first",
    "feed-forward-too-early",
    "no-cross-attention",
    "no-self-attention",
    "no-feed-forward",
    "no-sums",
    "no-sum-around-self-attention",
    "no-sum-around-cross-attention",
    "no-sum-around-feed-forward",
    "added-to-the-input",
    "norm-of-the-part",
)


def _in_branch(mistake, first):
    """The mistake made only where norm_first is `first`."""
    wrong = build_layer(**mistake.parts)
    shows = mistake.shows or like(wrong, run=run_decoder_layer)
    right = like(decoder_layer, run=run_decoder_layer)

    def answer(layer, *given):
        return (wrong if layer.norm_first is first else decoder_layer)(layer, *given)

    return known(
        f"If norm_first is {first}: {mistake.did[0].lower()}{mistake.did[1:]}",
        mistake.why,
        section=mistake.section,
        wrong=answer,
        shows=lambda inputs, value: (shows if inputs["norm_first"] is first else right)(
            inputs, value
        ),
    )


LAYER |= {
    f"{id}-if-{first}": _in_branch(LAYER[id], first)
    for id, first in itertools.product(IN_ONE_BRANCH, (False, True))
}


TASK = Task(
    "10-decoder_layer",
    decoder_layer,
    layer_cases,
    run=run_decoder_layer,
    returns=("the output",),
    mistakes=read_again(MASKS, LAYER),
    build=build_layer,
    alone=(
        "queries-and-keys-swapped",
        "causal-mask-inverted",
        "itself-hidden",
        "no-sums",
        "attentions-swapped",
        "padding-mask-inverted",
        "norm_first-inverted",
        "norms-in-another-order",
        "norm-of-the-part",
        "both-norms",
        "no-norms",
        "normed-sum",
        "cross-attention-first",
        "next-token-seen",
        "memory-normalised",
        "memory-normalised-if-first",
        "memory-and-lengths-forgotten",
        "both-masks-inverted",
        "only-queries-normalised",
        "relu-always",
        "one-key-too-many",
        "one-norm-for-several",
        "feed-forward-too-early",
        "no-cross-attention",
        "no-self-attention",
        "asks-with-the-input",
        "causal-mask-of-numbers",
        "cross-attention-causal",
        "memory-asks-with-its-padding",
        "memory-asks-without-padding",
        "multihead_attn-for-both",
        "norm-at-the-end",
        "gelu-always",
        "activation-last",
        "one-key-too-few",
        "no-sum-around-self-attention",
        "no-sum-around-feed-forward",
        "norm-missing",
        "added-to-the-input",
        "padding-for-the-self-attention",
        "causal-mask-for-the-cross-attention",
        "infinity-times-0",
    ),
    forbidden=("torch.nn.modules.transformer.TransformerDecoderLayer",),
    number=4,
)
