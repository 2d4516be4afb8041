"""Task 4.4, MultiHeadAttention: the module."""

import functools

import torch
from torch import nn
from torch.nn import functional as F

from mha_classroom.checks.examining import equal, is_floats, is_nonzero, total
from mha_classroom.checks.showing import describe
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_classroom.tasks.head_splitting.runs import MATRICES, SIZES, misfit, run_module
from mha_classroom.tasks.head_splitting.spread_valid_lens import LENGTHS
from mha_classroom.tasks.head_splitting.transpose_output import BACK, right_merge
from mha_classroom.tasks.head_splitting.transpose_qkv import (
    SQUEEZED,
    STEP_1,
    TRAP,
    cut_words,
    interleaved,
    right_split,
)
from mha_classroom.tasks.why_many_heads.one_head import MODULES
from mha_course import multihead
from mha_course.attention import length_mask, scaled_dot_product_attention


def module_cases(draw):
    def case(name, sizes, batch, lengths, valid_lens=None, bias=False, dropout=0.0, training=False):
        inputs = dict(zip(SIZES, sizes, strict=True)) | {"dropout": dropout, "bias": bias}
        key_size, query_size, value_size, num_hiddens, _ = sizes
        widths = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": num_hiddens}
        for projection, width in widths.items():
            inputs[f"{projection}.weight"] = draw.normal(num_hiddens, width, scale=width**-0.5)
            if bias:
                inputs[f"{projection}.bias"] = draw.normal(num_hiddens)
        num_queries, num_keys = lengths
        inputs["queries"] = draw.normal(batch, num_queries, query_size)
        inputs["keys"] = draw.normal(batch, num_keys, key_size)
        inputs["values"] = draw.normal(batch, num_keys, value_size)
        if valid_lens is not None:
            inputs["valid_lens"] = torch.tensor(valid_lens)
        if training:
            inputs["training"] = True
        return Case(name, inputs)

    six, one = (6, 6, 6, 6, 3), (5, 5, 5, 5, 1)
    with_zeros = case("sequences of unequal length", six, 2, (5, 5), valid_lens=[5, 2])
    with_zeros.inputs["queries"][:, 1] = 0  # so that scores are exactly 0
    return [
        case("1 sequence, 2 heads", (4, 4, 4, 4, 2), 1, (3, 3)),
        case("2 sequences, 3 heads of width 5", (15, 15, 15, 15, 3), 2, (7, 7)),
        case("5 queries, 7 keys, three input widths", (2, 3, 5, 14, 2), 3, (5, 7)),
        with_zeros,
        case("one length a query", six, 2, (2, 5), valid_lens=[[1, 4], [3, 5]]),
        case("a sequence of length 0", six, 3, (2, 4), valid_lens=[4, 0, 1]),
        case("with biases", (6, 6, 6, 6, 2), 2, (4, 5), valid_lens=[5, 3], bias=True),
        case("as many sequences as queries", six, 3, (3, 5), valid_lens=[5, 2, 3]),
        case("one length a query, one of them 0", six, 2, (2, 5), valid_lens=[[2, 0], [5, 3]]),
        case("one query, nothing to attend to", six, 2, (1, 4), valid_lens=[0, 0], bias=True),
        _after_lengths(case("after a call with lengths, one without", six, 2, (2, 4)), [3, 1]),
        case("in training, without dropout", six, 3, (2, 4), valid_lens=[1, 0, 3], training=True),
        case("dropout=1.0", (6, 6, 6, 6, 2), 2, (4, 5), bias=True, dropout=1.0),
        _one_key_case(case("dropout=0.25, one key", six, 4, (7, 1), dropout=0.25)),
        _two_keys_case(
            case("dropout=0.25, two keys", six, 4, (7, 2), valid_lens=[2, 1, 2, 0], dropout=0.25)
        ),
        _low_case(
            case("scores of about −6000, 6000 for padding", six, 2, (2, 5), [2, 4], bias=True)
        ),
        _after_lengths(
            case("1 sequence, one head, after a call with length 3", one, 1, (3, 4), [2]), [3]
        ),
    ]


def _after_lengths(case, lengths):
    case.inputs["lengths before"] = torch.tensor(lengths)
    return case


def _one_key_case(case):
    """The output is then the heads' results themselves: dropped, or the one value scaled up."""
    case.inputs["W_o.weight"] = torch.eye(6).double()
    return case


def _two_keys_case(case):
    """The output is then the weights of each head, whose values are (1, 0) and (0, 1)."""
    case.inputs["W_v.weight"] = case.inputs["W_o.weight"] = torch.eye(6).double()
    case.inputs["values"] = torch.eye(2).repeat(1, 3).repeat(4, 1, 1).double()
    return case


def _low_case(case):
    case.inputs["W_q.bias"] = torch.full((6,), -60.0).double()
    case.inputs["W_k.bias"] = torch.full((6,), 70.0).double()
    case.inputs["W_k.weight"] = torch.eye(6).double() / 10
    case.inputs["keys"][0, 2:] = case.inputs["keys"][1, 4:] = -1400
    return case


def module_stages(inputs):
    projections, parts = {}, {}
    for name, role in (("W_q", "queries"), ("W_k", "keys"), ("W_v", "values")):
        bias = inputs.get(f"{name}.bias")
        projected = nn.functional.linear(inputs[role], inputs[f"{name}.weight"], bias)
        projections[f"the projected {role}"] = projected
        parts[name] = projected.unflatten(-1, (inputs["num_heads"], -1)).transpose(1, 2)
    q, k, v = parts.values()
    stages = {"the projections": projections}
    stages["the scores"] = q @ k.transpose(2, 3)
    stages["the scaled scores"] = stages["the scores"] / q.shape[-1] ** 0.5
    mask = torch.ones(1, 1, 1, k.shape[2], dtype=torch.bool)
    if "valid_lens" in inputs:
        mask = length_mask(inputs["valid_lens"], len(q), q.shape[2], k.shape[2])[:, None]
    weights = stages["the scaled scores"].masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()
    stages["the weights"] = weights
    stages["the weighted sums of each head"] = weights @ v
    joined = stages["the joined heads"] = (weights @ v).transpose(1, 2).flatten(2)
    output = nn.functional.linear(joined, inputs["W_o.weight"], inputs.get("W_o.bias"))
    stages["the output"] = output
    return stages


@total
def examine_module(inputs, seen):
    """The output; with dropout also that in training, or what is said of it.

    Raises: AnswerError if the module lacks a parameter, leaves one without a gradient, or drops
        something else than the weights of each head, or in eval mode.
    """
    complaint = misfit(seen["parameters"], inputs)
    if complaint:
        raise AnswerError(complaint)
    if complaint := misfit(seen.get("by name", seen["parameters"]), inputs):
        asks = " Do the names in your `def` line stand in the order of the task's?"
        raise AnswerError(
            f"Made with names, as MultiHeadAttention(key_size={inputs['key_size']}, "
            f"query_size={inputs['query_size']}, …), it is another module than made without. "
            f"{complaint}{'' if 'def` line' in complaint else asks}"
        )
    training = inputs.get("training", False)
    if seen["training"] is not training:
        raise AnswerError("forward changes whether the module is training (train or eval inside).")
    if training:
        _check_gradients(seen["gradients"], inputs)
        _check_defaults(seen["by default"], seen["output"], inputs)
    if not inputs["dropout"]:
        return seen["output"]
    if inputs["dropout"] == 1:
        return {
            "the output in eval mode": seen["output"],
            "the output in training": seen["in training"],
        }
    results = seen["output"], seen["again"], seen["in training"]
    _check_in_eval(inputs, *results)
    if inputs["keys"].shape[1] > 1:
        _check_weights(inputs, seen["output"], seen["in training"])
        return seen["output"]
    _check_dropout(inputs, seen["output"], seen["in training"])
    return "dropped in training, one weight of a head at a time"


def _check_gradients(gradients, inputs):
    names = [n for n in MATRICES if not is_nonzero(gradients.get(n), inputs[n].shape)]
    if names:
        raise AnswerError(
            f"After backward() there is no gradient in {' and '.join(names)}, so training would "
            "never change it. Is it used at all? detach, .data, numpy and no_grad cut a result off "
            "from what it was computed with."
        )


def _check_defaults(made, output, inputs):
    """made: the parameters and the output of a module made without the last two arguments.

    Raises: AnswerError if they are not as with dropout=0.0 and bias=False.
    """
    biases = [name for name in made["parameters"] if name.endswith(".bias")]
    if biases:
        raise AnswerError(
            f"Made without the argument bias, the module has {biases[0]}. Compare the defaults in "
            "your `def` line with those of the task."
        )
    complaint = misfit(made["parameters"], inputs)
    if complaint:
        raise AnswerError(complaint)
    if not _near(made["output"], output):
        raise AnswerError(
            "Made without the argument dropout, the module in training gives another output than "
            "with dropout=0.0. Is the default in your `def` line that of the task, and is every "
            "dropout told its rate?"
        )


def _near(one, other):
    """Whether both are tensors of one shape with the same numbers; of NaN nothing is asked here."""
    if not torch.is_tensor(one) or not torch.is_tensor(other) or one.dtype != other.dtype:
        return False
    return one.shape == other.shape and torch.allclose(one, other, 1e-6, 1e-6, equal_nan=True)


def _check_in_eval(inputs, once, again, trained):
    """Is nothing dropped there? Is it what can be looked at?"""
    shape = (*inputs["queries"].shape[:2], inputs["num_hiddens"])
    if not is_floats(once, shape) or not is_floats(trained, shape):
        raise AnswerError(
            f"The output has to be a tensor of shape {shape}, in eval mode and in training; got "
            f"{describe(once)} and {describe(trained)}."
        )
    if not is_floats(again, shape) or not equal(once.nan_to_num(), again.nan_to_num()):
        raise AnswerError(
            f"In eval mode, with dropout={inputs['dropout']}, two runs on the same inputs give two "
            "results: something is dropped there. Dropout is for training only."
        )


def _check_weights(inputs, once, trained):
    """With two keys, and the weights for the output: is each weight dropped or scaled up?"""
    dropout = inputs["dropout"]
    weights = (X.nan_to_num().unflatten(-1, (inputs["num_heads"], -1)) for X in (once, trained))
    what = _what_became_of_weights(*weights, 1 / (1 - dropout))
    if what:
        raise AnswerError(
            f"In training, with dropout={dropout}, {what} Each weight by itself is to become "
            f"either 0, or what it is in eval mode divided by {1 - dropout}."
        )


OF_ANOTHER_SIZE = (
    "something comes out too large or too small: is something else dropped, or a weight twice, or "
    "is what stays divided by another number?"
)


def _what_became_of_weights(before, after, factor):
    """What is wrong with weights (B, L, H, S) after dropout, "" if nothing."""
    real, gone = before.abs() > 1e-9, after.abs() < 1e-9

    def are(wanted):
        return (after - wanted).abs() < 1e-4 * before.abs().clamp(min=1e-3)

    if ((before == 0) & ~gone).any():
        return "a key gets a weight that has none in eval mode. Lengths count in training, too."
    if are(before).all():
        return "nothing is dropped."
    if (gone | are(before)).all():
        return "weights are dropped, and those that stay are as they would be without dropout."
    left = before.masked_fill(gone, 0.0)
    if gone[real].any() and are(left / left.sum(-1, keepdim=True).clamp(min=1e-9)).all():
        return "weights are dropped, and those that stay are made to sum to 1 again."
    dropped = gone & real
    if not (gone | are(factor * before)).all():
        return OF_ANOTHER_SIZE
    if (dropped == dropped[:, :1]).all():
        return "what is dropped is the same for all queries: values, or weights of a whole key."
    if (dropped == dropped[:, :, :1]).all():
        return "the same weights are dropped in every head."
    whole = dropped[real.flatten(1).all(-1)]
    if len(whole) > 1 and (whole == whole[:1]).all():
        return "the same weights are dropped in every sequence."
    if (dropped.any(-1) == (dropped == real).all(-1))[real.all(-1)].all():
        return "all weights of a query in a head are dropped together, or none of them."
    return ""


def _check_dropout(inputs, once, trained):
    """With one key and W_o the identity: is each head dropped or scaled up as a whole?"""
    dropout = inputs["dropout"]
    output = nn.functional.linear(inputs["values"], inputs["W_v.weight"])  # (B, 1, num_hiddens)
    factors = (trained / output).unflatten(-1, (inputs["num_heads"], -1))  # (B, L, H, d)
    rounded = torch.where(factors.abs() < 1e-6, 0.0, 1 / (1 - dropout))
    whole = bool((factors - rounded[..., :1]).abs().max() < 1e-6)
    if not whole or len(rounded.unique()) != 2:
        raise AnswerError(
            f"In training, with dropout={dropout}, {_what_is_dropped(factors, rounded)} Where "
            "there is one key, the result of a head is one weight times one value: either 0, or "
            f"that value divided by {1 - dropout}."
        )


def _what_is_dropped(factors, rounded):
    """What it looks like, from what became of each number (B, L, H, d), and what should have.

    rounded: 0, or else what a number should have been multiplied by.
    """
    if (factors - 1).abs().max() < 1e-6 or not (rounded == 0).any():
        return "nothing is dropped."
    if (factors - (rounded != 0).double()[..., :1]).abs().max() < 1e-6:
        return "weights are dropped, and those that stay are as they would be without dropout."
    if (factors - rounded).abs().max() > 1e-6:
        return OF_ANOTHER_SIZE
    if torch.equal(rounded, rounded[:, :1].expand_as(rounded)):
        return "single features are dropped, the same for all queries."
    return "single features are dropped."


class _Linear(nn.Linear):
    """Without the random numbers: a check writes its own."""

    def reset_parameters(self):
        pass


@functools.cache
def _linear(role, size, width, bias):
    """One for all answers, which are tried one after the other: making four takes long."""
    return _Linear(size, width, bias=bias, dtype=torch.float64)


def build_module(
    split=right_split,
    merge=right_merge,
    spread=lambda lens, H: lens.repeat_interleave(H, dim=0),
    fits=length_mask,
    scale=lambda d, **other_sizes: d**-0.5,
    positions=lambda q, k: torch.arange(k.shape[1]),
    keep=torch.lt,
    also=None,
    fill=-torch.inf,
    axis=-1,
    drop_scores=lambda self, scores: scores,
    empty_row=lambda weights: weights.nan_to_num(0.0),
    drop=lambda self, weights: self.drop(weights),
    finish=lambda self, output: self.W_o(output),
    roles=("W_q", "W_k", "W_v"),
    inputs=lambda queries, keys, values: (queries, keys, values),
    drop_projected=lambda self, projected: projected,
    defaults=(0.0, False),
):
    """It does without what makes a module slow, since a check tries hundreds of them.

    fits: raises for lengths that do not fit, as lesson 2's attention does. scale: from the width
    of a head and other sizes. keep, also: which positions are seen, from lengths and without.
    """

    def attend(self, q, k, lens, by):
        scores = drop_scores(self, q @ k.transpose(1, 2) * by)
        seen = None if also is None else also(scores)
        if lens is not None:
            fits(lens, *scores.shape)
            lens = lens[:, None, None] if lens.dim() == 1 else lens[:, :, None]
            real = keep(positions(q, k), lens)
            seen = real if seen is None else seen & real
        return (scores if seen is None else scores.masked_fill(~seen, fill)).softmax(axis)

    class MultiHeadAttention(nn.Module):
        def __init__(self, key_size, query_size, value_size, width, num_heads, *dropout_and_bias):
            dropout, bias = dropout_and_bias or defaults
            super().__init__()
            self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
            sizes = {"W_q": query_size, "W_k": key_size, "W_v": value_size, "W_o": width}
            for name, size in sizes.items():
                linear = _linear(name, size, width, bool(bias))
                linear.zero_grad()
                setattr(self, name, linear)

        def double(self):
            return self  # which it is already

        def train(self, mode=True):
            self.training = self.drop.training = mode
            return self

        def forward(self, queries, keys, values, valid_lens=None):
            H = self.num_heads
            linears = [self._modules[role] for role in roles]
            given = inputs(queries, keys, values)
            projected = (F.linear(X, W.weight, W.bias) for W, X in zip(linears, given, strict=True))
            q, k, v = (split(drop_projected(self, X), H) for X in projected)
            lens = None if valid_lens is None else spread(valid_lens, H)
            by = scale(q.shape[-1], heads=H, keys=k.shape[1], inputs=queries.shape[-1])
            weights = empty_row(attend(self, q, k, lens, by))
            return finish(self, merge(drop(self, weights) @ v, H))

    return MultiHeadAttention


def _block_for_each_head(self, output):
    d = output.shape[-1] // self.num_heads
    blocks = torch.block_diag(*[output.new_ones(d, d)] * self.num_heads)
    return nn.functional.linear(output, self.W_o.weight * blocks, self.W_o.bias)


def _zeros_in_the_end(self, output):
    """Zeros where there is nothing to attend to: in training all weights may have been dropped."""
    result = self.W_o(output)
    if self.training and self.drop.p:
        return result
    return result * (output != 0).any(-1, keepdim=True)


def _bias_for_each_head(self, output):
    bias = 0.0 if self.W_o.bias is None else self.W_o.bias
    return self.W_o(output) + (self.num_heads - 1) * bias


def _made_to_sum_to_1(self, weights):
    if not self.training:
        return weights
    left = weights * (self.drop(torch.ones_like(weights)) > 0)
    return left / left.sum(-1, keepdim=True).clamp(min=1e-9)


def _lengths_not_spread(**parts):
    return known(
        "The lengths are not spread over the heads: they reach attention as they were given.",
        "After the split there are B · H problems, and attention takes each of them for a sequence "
        "of its own. How many lengths does it expect then, and how many does it get?",
        section=LENGTHS,
        spread=lambda lens, H: lens,
        **parts,
    )


class _ZerosForLengthsOnly(build_module()):
    """A query of length 0 brings zeros if lengths are (B,), and the average if they are (B, L)."""

    def forward(self, queries, keys, values, valid_lens=None):
        table = valid_lens is not None and valid_lens.dim() == 2
        forward = AVERAGING.forward if table else super().forward
        given = (self,) if table else ()
        return forward(*given, queries, keys, values, valid_lens)


AVERAGING = build_module(fill=-1e9)


class _Remembering(build_module()):
    lengths = None

    def forward(self, queries, keys, values, valid_lens=None):
        self.lengths = self.lengths if valid_lens is None else valid_lens
        return super().forward(queries, keys, values, self.lengths)


class _NoLengthsIfAllAre0(build_module()):
    def forward(self, queries, keys, values, valid_lens=None):
        if valid_lens is not None and not valid_lens.any():
            valid_lens = None
        return super().forward(queries, keys, values, valid_lens)


class _Residual(build_module()):
    def forward(self, queries, *others):
        return super().forward(queries, *others) + queries


class _ResidualWhereItFits(build_module()):
    def forward(self, queries, *others):
        output = super().forward(queries, *others)
        return output + queries if output.shape == queries.shape else output


class _KeysCutLikeQueries(build_module()):
    def forward(self, queries, keys, values, valid_lens=None):
        if queries.shape[1] != keys.shape[1]:
            q, k, v = self.W_q(queries), self.W_k(keys), self.W_v(values)
            shape = (*queries.shape[:2], self.num_heads, -1)
            q, k, v = (X.reshape(shape).transpose(1, 2).flatten(0, 1) for X in (q, k, v))
            return q @ k.mT  # which raises, if cutting has not
        return super().forward(queries, keys, values, valid_lens)


class _KeysFromQueries(build_module()):
    """With lesson 2's attention, which raises in words of its own."""

    def forward(self, queries, keys, values, valid_lens=None):
        H = self.num_heads
        projected = (self.W_q(queries), self.W_k(queries), self.W_v(values))
        lens = None if valid_lens is None else valid_lens.repeat_interleave(H, dim=0)
        attend = scaled_dot_product_attention
        heads = attend(*(right_split(X, H) for X in projected), lens)
        return self.W_o(right_merge(heads[0], H))


class _Squeezed(build_module()):
    def forward(self, *given):
        return super().forward(*given).squeeze()


class _SqueezedInFront(build_module()):
    def forward(self, *given):
        return super().forward(*given).squeeze(0)


def _places_of_queries(q, k):
    """So that rows of the table are hidden, not columns."""
    return torch.arange(q.shape[1])[:, None].expand(-1, k.shape[1])


def _merge_interleaved(X, H):
    return X.unflatten(0, (-1, H)).permute(0, 2, 3, 1).flatten(2)


def _merge_heads_before_batch(X, H):
    return X.unflatten(0, (H, -1)).permute(1, 2, 0, 3).flatten(2)


RESIDUAL = (
    "You add the queries to the output.",
    "A transformer layer does so afterwards. Multi-head attention itself does not.",
)
FUTURE_HIDDEN = (
    "You hide the keys that come later: a causal mask.",
    "That is for models that write text, and nobody asks for it here. A query sees all keys "
    "that valid_lens lets it see, whatever their place.",
)
KEYS_FROM_QUERIES = (
    "Your keys are made from the queries: the argument keys has no effect.",
    "In self-attention a caller passes the same tensor three times. It is the caller who decides "
    "that.",
)
QUERIES_HIDDEN = (
    "Your mask hides queries past the length, not keys.",
    "valid_lens says how many keys are real: a query that is padding may look where it likes, and "
    "nobody may look at padding. Which axis of the scores counts the keys?",
)
ROUNDED = (
    "You divide the scores by the square root of d without what stands after the point.",
    "With d = 4 nobody notices: its root is a whole number. int, // and floor leave out the rest, "
    "and the root of 3 is 1.73.",
)

MODULE = {
    "split-without-transpose": known(
        "You cut along the words: the split misses the swap of words and heads.",
        "reshape deals numbers out word after word, so a head sees some words only.",
        section=TRAP,
        split=cut_words,
    ),
    "features-interleaved": known(
        "Your heads take features in turn instead of neighbouring ones.",
        "Head h owns the columns h·d to (h+1)·d of each projection.",
        section=STEP_1,
        split=interleaved,
    ),
    "merge-without-transpose": known(
        "You join the heads without swapping back: words are mixed up in the result.",
        "Heads and features have to be neighbours before they become one axis.",
        section=BACK,
        merge=lambda X, H: X.reshape(X.shape[0] // H, X.shape[1], -1),
    ),
    "merge-heads-before-batch": known(
        "When you join the heads, you read the first axis as (heads, batch).",
        "It is (batch, heads): all heads of sequence 0 come first. With one sequence both look "
        "the same.",
        section=BACK,
        wrong=build_module(merge=_merge_heads_before_batch),
    ),
    "heads-averaged": known(
        "You add the heads up, average them, or take one alone: what meets W_o is as wide as one "
        "head.",
        "The heads stand side by side, num_heads times as wide. Added up, only one head's worth of "
        "numbers is left of each word.",
        section=BACK,
        merge=lambda X, H: X.unflatten(0, (-1, H)).mean(1),
    ),
    "no-output-projection": known(
        "You return the joined heads as they are: W_o is not used.",
        "Without it the heads never meet: each keeps to its own features.",
        finish=lambda self, output: output,
    ),
    "W_o-before-the-merge": known(
        "W_o meets the heads one by one: they are not joined yet.",
        "A head is num_heads times narrower than what W_o takes in. It waits for all heads of a "
        "word side by side.",
        merge=lambda X, H: X,
        finish=lambda self, X: right_merge(self.W_o(X), self.num_heads),
    ),
    "W_o-block-for-each-head": known(
        "You cut W_o into blocks, and each head meets one block: its features in, its features "
        "out.",
        "Then the heads never meet. Each feature of the output takes something from every head: "
        "how many numbers does one row of W_o.weight have?",
        finish=_block_for_each_head,
    ),
    "W_o-bias-for-each-head": known(
        "The bias of W_o is in your output once for each head.",
        "As a sum over the heads, each head meets its own part of the matrix. The bias belongs to "
        "the sum: how many sums are there?",
        finish=_bias_for_each_head,
    ),
    "scaled-by-all-heads": known(
        "You divide the scores by the square root of num_hiddens, the width of all heads together.",
        "The scale follows from the length of the vectors that are multiplied, and these are one "
        "head's queries and keys.",
        scale=lambda d, heads, **_: (d * heads) ** -0.5,
    ),
    "scaled-by-query-size": known(
        "You divide the scores by the square root of the width of a query before it is projected.",
        "The scale follows from the vectors that meet in a score. What has happened to the "
        "queries by then?",
        scale=lambda d, inputs, **_: inputs**-0.5,
    ),
    "scaled-by-number-of-heads": known(
        "You divide the scores by the square root of the number of heads.",
        "The scale follows from how many products are added up in one score: the width of a head.",
        scale=lambda d, heads, **_: heads**-0.5,
    ),
    "scaled-by-keys": known(
        "You divide the scores by the square root of the number of keys.",
        "How far scores spread depends on how many products are added up in one score, not on how "
        "many scores there are.",
        scale=lambda d, keys, **_: keys**-0.5,
    ),
    "not-scaled": known(
        "Your scores are not scaled, or their scale is undone by another factor.",
        "Without the scale their spread grows with the width, and softmax saturates (lesson 2).",
        scale=lambda d, **_: 1.0,
    ),
    "divided-by-width": known(
        "You divide the scores by the whole width of a head: by d, or by its root twice.",
        "The spread of a score is √d, not d: dividing by more makes all weights nearly equal. Does "
        "a function that you call scale already?",
        scale=lambda d, **_: 1 / d,
    ),
    "multiplied-by-root": known(
        "You multiply the scores by the square root of d, the width of a head, or divide them by "
        "d ** -0.5, which is the same.",
        "Scores spread too far as they are. The scale is there to bring them closer together.",
        scale=lambda d, **_: d**0.5,
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1.",
        axis=-2,
    ),
    "lengths-repeated-as-a-whole": known(
        "The lengths go to the wrong heads: with 2 heads, 3, 5 becomes 3, 5, 3, 5.",
        "The rows are batch first, so all heads of a sequence need its length before the next "
        "sequence comes.",
        section=LENGTHS,
        spread=lambda lens, H: lens.repeat(H, *[1] * (lens.dim() - 1)),
    ),
    "lengths-ignored": known(
        "valid_lens has no effect on your result.",
        "Keys past the length are padding: no query may attend to them.",
        section=LENGTHS,
        spread=lambda lens, H: None,
    ),
    "lengths-not-spread": _lengths_not_spread(),
    "lengths-not-spread-over-own-mask": _lengths_not_spread(fits=lambda *sizes: None),
    "tables-not-spread": known(
        "Lengths of shape (B,) are spread over the heads, a table (B, L) is not.",
        "A table has a row of lengths for each sequence, and every head of the sequence needs that "
        "row.",
        section=LENGTHS,
        spread=lambda lens, H: lens.repeat_interleave(H) if lens.dim() == 1 else lens,
    ),
    "lengths-flattened": known(
        "A table of lengths (B, L) arrives flat.",
        "repeat_interleave flattens a tensor unless it is told the axis. reshape(-1) always does.",
        section=LENGTHS,
        spread=lambda lens, H: lens.repeat_interleave(H),
    ),
    "lengths-repeated-along-the-last-axis": known(
        "The lengths are tiled: with 2 heads, 3, 5 becomes 3, 5, 3, 5, and a table (B, L) becomes "
        "num_heads times as wide.",
        "The rows are batch first, so all heads of a sequence need its length, or its row of "
        "lengths, before the next sequence comes.",
        section=LENGTHS,
        spread=lambda lens, H: lens.tile(H),
    ),
    "lengths-repeated-and-tables-refused": known(
        "The lengths go to the wrong heads: with 2 heads, 3, 5 becomes 3, 5, 3, 5. And for a table "
        "(B, L) your repeat raises, since it wants one number for each axis.",
        "The rows are batch first, so all heads of a sequence need its length before the next "
        "sequence comes.",
        section=LENGTHS,
        spread=lambda lens, H: lens.repeat(H),
    ),
    "lengths-divided": known(
        "You divide the lengths by the number of heads.",
        "The heads share the features of a word. The words they do not share: each head sees the "
        "whole sequence.",
        section=LENGTHS,
        spread=lambda lens, H: lens.repeat_interleave(H, 0) // H,
    ),
    "length-0-counts-as-1": known(
        "A query of length 0 sees the first key, as if its length were 1.",
        "That keeps NaN away, and makes a query without any real key attend to padding. Its heads "
        "have to give zeros.",
        spread=lambda lens, H: lens.clamp(min=1).repeat_interleave(H, 0),
    ),
    "nan-for-length-0": known(
        "A query with nothing to attend to gives NaN.",
        "A softmax over nothing but -inf divides 0 by 0. Such a row has to give zeros.",
        empty_row=lambda weights: weights,
    ),
    "uniform-for-length-0-in-tables": known(
        "A query of length 0 gets the average of all values where lengths come as a table (B, L). "
        "Where they come as (B,) it gets zeros.",
        "A length of 0 means the same in both: there is nothing to attend to.",
        wrong=_ZerosForLengthsOnly,
    ),
    "lengths-remembered": known(
        "Called without lengths, your module uses those of the call before.",
        "A module may keep what is true of all calls. valid_lens=None says that there is no "
        "padding in this one.",
        section=LENGTHS,
        wrong=_Remembering,
    ),
    "lengths-of-0-taken-for-none": known(
        "Where all lengths are 0, your module attends to everything, as without lengths.",
        "A length of 0 says that there is nothing to attend to. Only valid_lens=None says that "
        "there is no padding.",
        section=LENGTHS,
        wrong=_NoLengthsIfAllAre0,
    ),
    "first-length-for-all": known(
        "All sequences get the length of the first.",
        "Each sequence has its own: its heads need that one.",
        section=LENGTHS,
        wrong=build_module(
            spread=lambda lens, H: lens[:1].expand_as(lens).repeat_interleave(H, dim=0)
        ),
    ),
    "queries-hidden": known(
        *QUERIES_HIDDEN, section=LENGTHS, wrong=build_module(positions=_places_of_queries)
    ),
    "queries-hidden-by-a-finite-number": known(
        *QUERIES_HIDDEN,
        section=LENGTHS,
        wrong=build_module(positions=_places_of_queries, fill=-1e9),
    ),
    "residual-added": known(*RESIDUAL, wrong=_Residual),
    "residual-added-where-it-fits": known(*RESIDUAL, wrong=_ResidualWhereItFits),
    "keys-cut-like-queries": known(
        "You cut keys and values with the number of the queries.",
        "In self-attention there are as many of both. Here there may be more keys than queries: "
        "which tensor says how many?",
        section=STEP_1,
        wrong=_KeysCutLikeQueries,
    ),
    "interleaved-both-ways": known(
        "Your heads take features in turn, and you join them in the same way.",
        "Both steps fit together, and still each head gets other features than its own: head h "
        "owns the columns h·d to (h+1)·d of each projection.",
        section=STEP_1,
        wrong=build_module(split=interleaved, merge=_merge_interleaved),
    ),
    "root-rounded-down": known(*ROUNDED, wrong=build_module(scale=lambda d, **_: 1 / int(d**0.5))),
    "squeezed": known(*SQUEEZED, wrong=_Squeezed),
    "squeezed-in-front": known(*SQUEEZED, wrong=_SqueezedInFront),
    "uniform-for-length-0": known(
        "A query with nothing to attend to gets the average of all values.",
        "A finite fill makes all its scores equal, and softmax makes equal weights of them. Such a "
        "row has to give zeros.",
        fill=-1e9,
    ),
    "masked-scores-0": known(
        "The scores of padding are 0: you set them so, or the keys that they are made of.",
        "exp(0) is 1: padding still gets a share of the attention.",
        section=LENGTHS,
        fill=0.0,
    ),
    "one-key-too-many": known(
        "Each query sees one key past its length.",
        "Keys count from 0, so a length of 3 allows the keys 0, 1 and 2.",
        section=LENGTHS,
        keep=torch.le,
    ),
    "mask-as-long-as-queries": known(
        "Your mask counts the positions of the queries.",
        "It hides keys, so it needs a column for each key. In self-attention there are as many of "
        "both, and nobody notices.",
        positions=lambda q, k: torch.arange(q.shape[1]),
    ),
    "mask-inverted": known(
        "Your queries see the padding and nothing else.",
        "The mask is the wrong way round. Libraries differ in what True means.",
        section="How PyTorch packs its weights",
        keep=torch.ge,
    ),
    "future-hidden-by-a-finite-number": known(
        *FUTURE_HIDDEN,
        wrong=build_module(
            also=lambda scores: torch.ones(scores.shape[1:], dtype=torch.bool).tril(), fill=-1e9
        ),
    ),
    "future-hidden": known(
        *FUTURE_HIDDEN,
        also=lambda scores: torch.ones(scores.shape[1:], dtype=torch.bool).tril(),
    ),
    "no-dropout": known(
        "dropout has no effect while training, or none after a call in eval mode.",
        "It drops attention weights: after the softmax, before the weighted sum.",
        drop=lambda self, weights: weights,
    ),
    "dropout-in-eval": known(
        "Weights are dropped in eval mode too.",
        "A function drops whenever it is told to, and a module that forward makes is always "
        "training. Only your own module knows whether it is. Do you ask it in forward? While "
        "__init__ runs, it always says yes.",
        drop=lambda self, weights: nn.functional.dropout(weights, self.drop.p, training=True),
    ),
    "dropout-before-the-softmax": known(
        "You drop scores, or queries or keys that they are made of, before the softmax.",
        "A score of 0 still gets a weight, so nothing is left out. With dropout=1 all keys would "
        "weigh alike. It is weights that are dropped.",
        drop=lambda self, weights: weights,
        drop_scores=lambda self, scores: self.drop(scores),
    ),
    "dropout-on-the-output": known(
        "You drop numbers of the result instead of attention weights.",
        "With dropout=1 no value gets through, but the bias of W_o still does.",
        drop=lambda self, weights: weights,
        finish=lambda self, output: self.drop(self.W_o(output)),
    ),
    "dropout-by-default": known(
        "Whoever makes your module without saying dropout gets some.",
        "Is the default in your `def` line that of the task? Or is a dropout of 0 replaced by "
        "another one?",
        defaults=(0.1, False),
    ),
    "bias-by-default": known(
        "Whoever makes your module without saying bias gets biases.",
        "Is the default in your `def` line that of the task?",
        defaults=(0.0, True),
    ),
    "dropout-on-the-weighted-sums": known(
        "You drop numbers of the heads' results instead of attention weights.",
        "A dropped weight takes a whole word away from one head. Single features of the sum are "
        "something else: dropout comes after the softmax, before the weighted sum.",
        drop=lambda self, weights: weights,
        finish=lambda self, output: self.W_o(self.drop(output)),
    ),
    "dropout-on-the-projections": known(
        "You drop numbers of the projected queries, keys and values, or of the values alone.",
        "A dropped weight takes a whole word away from one query in one head. Dropout comes after "
        "the softmax, before the weighted sum.",
        wrong=build_module(
            drop=lambda self, weights: weights,
            drop_projected=lambda self, projected: self.drop(projected),
        ),
    ),
    "dropped-and-not-scaled-up": known(
        "You drop weights, and those that stay are not divided by 1 − dropout.",
        "In eval mode nothing is dropped. For the output to be as large there on average, what "
        "stays in training has to be larger, whatever else was dropped.",
        wrong=build_module(
            drop=lambda self, weights: self.drop(weights) * (1 - self.drop.p * self.drop.training)
        ),
    ),
    "dropped-and-made-to-sum-to-1": known(
        "You drop weights, and those that stay sum to 1 again: they are divided by their sum.",
        "Every weight that stays grows by the same factor, which follows from dropout alone, "
        "whatever else was dropped. So weights are dropped after the softmax has divided by a sum.",
        wrong=build_module(drop=_made_to_sum_to_1),
    ),
    "dropout-inverted": known(
        "Weights are dropped in eval mode, and not in training.",
        "It is the other way round: self.training says whether the module is training.",
        drop=lambda self, weights: nn.functional.dropout(
            weights, self.drop.p, training=not self.drop.training
        ),
    ),
    "zeros-after-W_o": known(
        "Where there is nothing to attend to, your output is zero: the bias of W_o is lost.",
        "It is the heads that bring zeros then. W_o is applied to them as to all others.",
        finish=_zeros_in_the_end,
    ),
    "values-through-W_k": known(
        "Your values go through W_k, like the keys: W_v changes nothing.",
        "What a word is found by and what it hands over are different things, each with a matrix.",
        roles=("W_q", "W_k", "W_k"),
    ),
    "keys-through-W_q": known(
        "Your keys go through W_q, like the queries: W_k changes nothing.",
        "What a word asks for and what it is found by are different things, each with a matrix.",
        roles=("W_q", "W_q", "W_v"),
    ),
    "queries-and-keys-swapped": known(
        "Your queries go through W_k, and your keys through W_q.",
        "W_q belongs to the queries, and each query has a row of scores.",
        roles=("W_k", "W_q", "W_v"),
    ),
    "queries-attend-to-themselves": known(
        "Keys and values are made from the queries: the arguments keys and values have no effect.",
        "In self-attention a caller passes the same tensor three times. It is the caller who "
        "decides that.",
        inputs=lambda queries, keys, values: (queries, queries, queries),
    ),
    "keys-from-queries-in-lesson-2s-attention": known(*KEYS_FROM_QUERIES, wrong=_KeysFromQueries),
    "keys-from-queries": known(
        *KEYS_FROM_QUERIES,
        wrong=build_module(inputs=lambda queries, keys, values: (queries, queries, values)),
    ),
    "values-from-keys": known(
        "The values are made from the keys: the argument values has no effect.",
        "What a word is found by and what it hands over may be different tensors. Each goes "
        "through its own projection.",
        inputs=lambda queries, keys, values: (queries, keys, keys),
    ),
}

TASK = Task(
    "04-MultiHeadAttention",
    multihead.MultiHeadAttention,
    module_cases,
    run=run_module,
    examine=examine_module,
    returns=("the output",),
    kind="class",
    mistakes=read_again("The whole module", MODULE),
    build=build_module,
    alone=(
        "future-hidden",
        "mask-as-long-as-queries",
        "mask-inverted",
        "lengths-not-spread-over-own-mask",
        "lengths-flattened",
        "lengths-repeated-along-the-last-axis",
        "lengths-repeated-and-tables-refused",
        "lengths-divided",
        "length-0-counts-as-1",
        "heads-averaged",
        "W_o-before-the-merge",
        "W_o-block-for-each-head",
        "W_o-bias-for-each-head",
        "scaled-by-number-of-heads",
        "scaled-by-query-size",
        "scaled-by-keys",
        "multiplied-by-root",
        "dropout-before-the-softmax",
        "dropout-on-the-output",
        "dropout-on-the-weighted-sums",
        "dropout-inverted",
        "dropout-by-default",
        "bias-by-default",
        "zeros-after-W_o",
        "keys-through-W_q",
        "queries-attend-to-themselves",
        "values-from-keys",
    ),
    stages=module_stages,
    uses=("04-transpose_qkv", "04-transpose_output", "04-spread_valid_lens"),
    forbidden=MODULES,
    number=4,
)
