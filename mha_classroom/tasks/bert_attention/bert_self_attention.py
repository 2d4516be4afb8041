"""Task 6.2, BertSelfAttention: the heads, with biases and an additive mask."""

import torch
from torch import nn

from mha_classroom.checks.examining import equal, total
from mha_classroom.checks.modules import judged, plan_of, refuse_unlearnt, refuse_unreached
from mha_classroom.checks.showing import describe
from mha_classroom.checks.task import AnswerError, Case, Task, all_but, by_id, known, read_again
from mha_classroom.tasks.bert_attention.runs import run_attention
from mha_classroom.tasks.scaled_dot_product.scaled_dot_product_attention import LIBRARY
from mha_course import bert


def attention_cases(draw):
    def case(name, widths, shape, *lengths, **more):
        return module_case(draw, name, widths, shape, attention_shapes, *lengths, **more)

    added = case("a mask of all kinds of numbers", (6, 3), (2, 5))
    added.inputs["mask"] = 3 * draw.normal(2, 1, 1, 5)
    added.inputs["mask"][0, 0, 0, :2] = torch.tensor([2.0, -2.0])  # of both signs in any draw
    added.inputs["mask"][1] -= 30000.0  # the same for all words, so of no effect
    training = case("in training, without dropout", (6, 3), (2, 5), training=True)
    mask = torch.tensor([2.0, -1.5, 0.5, -3.0, 1.0]).double()
    training.inputs["mask"] = torch.stack([mask, -mask])[:, None, None]  # in sum exactly 0
    even = case(
        "attention_probs_dropout_prob=0.25", (10, 2), (7, 3), attention_probs_dropout_prob=0.25
    )
    for name in ("W_q.weight", "W_q.bias"):
        even.inputs[name] *= 0.1  # no weight near 0, so that what is dropped can be told
    alone = case("one head, one sequence, a mask of numbers above 0", (5, 1), (1, 3))
    alone.inputs["mask"] = torch.tensor([1.5, 3.0, 0.5]).double().reshape(1, 1, 1, 3)
    return [
        case("1 sequence, 2 heads", (4, 2), (1, 3)),
        case("sequences of unequal length", (6, 3), (2, 5), [5, 2]),
        case("3 heads of width 5", (15, 3), (2, 7), [4, 7]),
        case("as many sequences as words and heads", (6, 3), (3, 3), [2, 3, 1]),
        case("a sequence of padding alone", (6, 2), (3, 4), [3, 0, 4]),
        added,
        training,
        case(
            "attention_probs_dropout_prob=1",
            (6, 3),
            (2, 5),
            [5, 3],
            attention_probs_dropout_prob=1.0,
        ),
        case("hidden_dropout_prob=1, which is for 6.3", (6, 2), (2, 5), hidden_dropout_prob=1.0),
        even,
        alone,
    ]


def module_case(draw, name, widths, shape, shapes, lengths=None, **more):
    """widths: hidden_size, num_attention_heads. shape: (B, L). shapes: of the weights, by name."""
    hidden_size, num_heads = widths
    inputs = {"hidden_size": hidden_size, "num_attention_heads": num_heads} | more
    weights = {n: draw.normal(*s, scale=s[-1] ** -0.5) for n, s in shapes(hidden_size).items()}
    if any(n.count(".") > 1 for n in weights):
        inputs["weights"] = tuple(weights.items())  # too many to be shown
    else:
        inputs |= weights
    inputs["X"] = draw.normal(*shape, hidden_size)
    if lengths is not None:
        inputs["mask"] = padding_mask(lengths, shape[1])
    return Case(name, inputs)


def padding_mask(lengths, num_words):
    low = torch.finfo(torch.float32).min  # as good as float64's own here, and can be shown
    hidden = torch.arange(num_words) >= torch.tensor(lengths)[:, None]
    return torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, low)[:, None, None, :]


def attention_shapes(width):
    names = ("W_q", "W_k", "W_v")
    return {n: s for W in names for n, s in linear_shapes(W, width, width).items()}


def linear_shapes(name, num_outputs, num_inputs):
    return {f"{name}.weight": (num_outputs, num_inputs), f"{name}.bias": (num_outputs,)}


def attention_steps(inputs, weights):
    roles = {"W_q": "queries", "W_k": "keys", "W_v": "values"}
    projected = {f"the {role}": apply_linear(n, weights, inputs["X"]) for n, role in roles.items()}
    heads = inputs["num_attention_heads"]
    q, k, v = (X.unflatten(-1, (heads, -1)).transpose(1, 2) for X in projected.values())
    scores = q @ k.mT
    scaled = scores / q.shape[-1] ** 0.5
    masked = scaled + inputs["mask"] if "mask" in inputs else scaled
    stages = {"the projections": projected, "the scores": scores, "the scaled scores": scaled}
    if "mask" in inputs:
        stages["the scores with the mask added"] = masked
    stages["the table of weights"] = masked.softmax(-1)
    stages["the weighted sums of each head"] = masked.softmax(-1) @ v
    stages["the joined heads"] = stages["the weighted sums of each head"].transpose(1, 2).flatten(2)
    return stages


def apply_linear(name, weights, X):
    return nn.functional.linear(X, weights[f"{name}.weight"], weights[f"{name}.bias"])


EVAL = "the output in eval mode"
TRAINED = "the output in training"
TRAINED_WITH_WEIGHTS = "the output in training with need_weights=True"
TRAINED_WEIGHTS = "the table of weights in training"
STILL = "in eval mode nothing is dropped"


@total
def examine_attention(inputs, seen):
    """The results; where single weights are dropped, what dropout does."""
    plan = plan_of(inputs, "attention_probs_dropout_prob", weights=True, learn=True)
    right_way_round(seen)
    results = judged("BertSelfAttention", inputs, plan, seen)
    nothing_dropped(seen)
    if inputs.get("attention_probs_dropout_prob") == 0.25:
        output, _, _, again, trained = results
        refuse_unlearnt(inputs, plan, seen)
        return {STILL: equal(output, again)} | _drops_weights(output, trained, inputs)
    return compared_calls(inputs, inputs, plan, seen, results)


def nothing_dropped(seen):
    """Raises: AnswerError if calls in eval mode differ, of those that were made to see that."""
    first = seen["calls"][0]["result"]
    if not torch.is_tensor(first):
        return  # which is what the learner has to hear of
    if not all(torch.is_tensor(X) and _near(X, first) for X in seen.get("more", [])):
        raise AnswerError(
            "In eval mode the output differs from one call to the next, for the same inputs. "
            "Are numbers dropped there too? F.dropout drops unless it is told that the module is "
            "not training."
        )


def right_way_round(seen):
    """Raises: AnswerError if a pair comes back just where no weights were asked for."""
    calls = [call["result"] for call in seen["calls"][:2]]
    if len(calls) == 2 and isinstance(calls[0], (tuple, list)) and torch.is_tensor(calls[1]):
        raise AnswerError(
            "need_weights is the wrong way round: with False two values come back, and with True "
            "one tensor."
        )


def _near(X, other):
    if not torch.is_tensor(other) or (X.shape, X.dtype) != (other.shape, other.dtype):
        return False
    return torch.allclose(X, other, equal_nan=True)


def compared_calls(inputs, weights, plan, seen, results):
    """What is compared of calls that returned outputs, and outputs with weights."""
    if len(results) == 3:
        return tuple(results)
    output, _, _, trained, with_weights, undropped = results
    if "training" in inputs:
        refuse_unlearnt(weights, plan, seen)
        when = " where need_weights=True"
        refuse_unreached(seen["with weights"]["gradients"], weights, when)
        return {TRAINED: trained} | gradient_of_X(plan, seen)
    return {
        EVAL: output,
        TRAINED: trained,
        TRAINED_WITH_WEIGHTS: with_weights,
        TRAINED_WEIGHTS: undropped,
    }


def output_and_learning(weights, plan, seen, output):
    refuse_unlearnt(weights, plan, seen)
    return {TRAINED: output} | gradient_of_X(plan, seen)


def gradient_of_X(plan, seen):
    """What reaches the layers below in the last call that shows it; {} if X holds whole numbers.

    Raises: AnswerError if nothing reaches them.
    """
    calls = zip(plan, seen["calls"], strict=True)
    *_, last = (call for planned, call in calls if planned.learn)
    if "gradient of X" not in last:
        return {}
    if last["gradient of X"] is None:
        raise AnswerError(
            "No gradient reaches X, and so none reaches the layers that X came from. detach, "
            ".data, no_grad and a copy by numpy or torch.tensor(...) cut the way back off."
        )
    return {"the gradient that reaches X in training": last["gradient of X"]}


def _drops_weights(output, trained, inputs):
    """What dropout does: how the output in training differs from that in eval mode.

    A head has fewer words than features, so its weights can be computed from its output.
    """
    output, trained = (with_the_shape_of(inputs["X"], X) for X in (output, trained))
    if output.dtype != inputs["X"].dtype or trained.dtype != output.dtype:
        raise AnswerError(
            f"The output has to be of dtype {inputs['X'].dtype} as X is, in eval mode and in "
            f"training; got {describe(output)} and {describe(trained)}."
        )
    v = nn.functional.linear(inputs["X"], inputs["W_v.weight"], inputs["W_v.bias"])
    v, kept, left = (
        X.unflatten(-1, (inputs["num_attention_heads"], -1)).transpose(1, 2)
        for X in (v, output, trained)
    )
    back = torch.linalg.pinv(v)
    # NaN where a word lost all its weights must not change what is said of the others.
    whole = bool(torch.allclose(left @ back @ v, left, equal_nan=True))
    before, after = kept @ back, left @ back
    # Of a weight of nearly 0 rounding leaves no factor.
    factors = torch.where(before.abs() < 1e-6, 0.0, after / before) if whole else 0 * after
    summed = {"in training a head's output is a weighted sum of its values": whole}
    return summed | dropped_or_scaled(factors, "weights")


def with_the_shape_of(X, output):
    if not torch.is_tensor(output) or output.shape != X.shape:
        raise AnswerError(
            f"The output has to be of shape {tuple(X.shape)}, got {describe(output)}."
        )
    return output


def dropped_or_scaled(factors, what):
    dropped = factors.abs() < 1e-6
    kept = factors[~dropped]
    alike = bool((kept - kept[:1]).abs().max() < 1e-6) if len(kept) else False
    mixed = all(bool((dropped.amax(a) != dropped.amin(a)).any()) for a in range(factors.dim()))
    off, many = (dropped.double().mean() - 0.25).abs().item(), factors.numel()
    return {
        f"in training single {what} become 0, and all others are multiplied by one factor": (
            alike and mixed
        ),
        # Said only where all else is right: else it may depend on chance. The chance that a right
        # answer is further off is one in a hundred million, or less.
        f"in training about one in four of the {what} becomes 0": (
            not (alike and mixed and abs(0.75 * kept[0] - 1) < 1e-6) or off < 2.5 / many**0.5
        ),
        f"the factor of the {what} that are kept in training": kept[0].item() if alike else 0.0,
    }


def drop(self, X):
    """Right dropout: with the module's rate, while it is training."""
    return nn.functional.dropout(X, self.rate, self.training)


def kept_with_p(name):
    """Two mistakes: the probability is taken for that of keeping; also where it is 0, or not."""
    why = (
        "It is the probability that a number is dropped, and not that it is kept. nn.Dropout and "
        "F.dropout are given that one, too."
    )
    return {
        "kept-with-p": known(
            f"You drop with 1 - {name}: all is dropped where it is 0, and nothing at 1.",
            why,
            rate=lambda config: 1 - getattr(config, name),
        ),
        "kept-with-p-unless-it-is-0": known(
            f"You drop with 1 - {name}: nothing is dropped at 1.",
            why,
            rate=lambda config: getattr(config, name) and 1 - getattr(config, name),
        ),
    }


WHO_IS_TRAINING = (  # why something is dropped in eval mode too
    "A function drops whenever it is told to, and a module that forward makes is always training. "
    "Your own module knows whether it is."
)

OR_ALPHA = "or use nn.AlphaDropout, which sets what it drops to a number other than 0."

WHOLE = {
    "did": "In training you do not drop single numbers: all numbers along an axis go together, "
    "those of a word for instance.",
    "why": "nn.Dropout draws for each number by itself. nn.Dropout1d drops whole rows, and so does "
    "a mask that has an axis of length 1.",
}
BY_HAND = {
    "did": "With a probability of 1 your result is NaN: what is kept is divided by 1 - p, which is "
    "0 there.",
    "why": "Nothing is kept then, so 0 is divided by 0. F.dropout and nn.Dropout know that, and "
    "return zeros.",
}


def dropped_whole(self, X):
    return nn.functional.dropout1d(X, self.rate, self.training)


def dropped_by_hand(self, X):
    kept = torch.rand_like(X) >= self.rate
    return X * kept / torch.full_like(X, 1 - self.rate) if self.training else X


def build_attention(
    split=lambda X, H: X.unflatten(-1, (H, -1)).transpose(1, 2),
    merge=lambda X: X.transpose(1, 2).flatten(2),
    roles=("W_q", "W_k", "W_v"),
    project=lambda linear, X: linear(X),
    scale=lambda d, H: d**-0.5,
    hide=lambda scores, mask, scale: scores * scale + mask,
    soften=lambda self, scores: scores.softmax(-1),
    after=lambda weights, mask: weights,
    rate=lambda config: config.attention_probs_dropout_prob,
    drop=drop,
    finish=lambda self, output: output,
    show=lambda output, weights, dropped: (output, weights),
    plain=lambda output, weights: output,
    bias=True,
):
    class BertSelfAttention(nn.Module):
        def __init__(self, config):
            super().__init__()
            width, self.num_heads = config.hidden_size, config.num_attention_heads
            self.W_q = nn.Linear(width, width, bias=bias)
            self.W_k = nn.Linear(width, width, bias=bias)
            self.W_v = nn.Linear(width, width, bias=bias)
            self.rate = rate(config)

        def forward(self, X, mask=None, need_weights=False):
            H = self.num_heads
            q, k, v = (split(project(getattr(self, W), X) if W else X, H) for W in roles)
            by = scale(q.shape[-1], H)
            scores = q @ k.mT
            scores = scores * by if mask is None else hide(scores, mask, by)
            weights = soften(self, scores)
            weights = weights if mask is None else after(weights, mask)
            dropped = drop(self, weights)
            output = finish(self, merge(dropped @ v))
            return show(output, weights, dropped) if need_weights else plain(output, weights)

    return BertSelfAttention


def _dropped_before(*matrices):
    """An answer that drops numbers of what goes through these matrices, and no weights."""

    class BertSelfAttention(build_attention(drop=lambda self, weights: weights)):
        def __init__(self, config):
            super().__init__(config)
            for name in matrices:
                getattr(self, name).register_forward_pre_hook(
                    lambda linear, given: nn.functional.dropout(*given, self.rate, self.training)
                )

    return BertSelfAttention


def _dropped_before_the_mask(shown):
    """An answer that drops queries, and so scores; the weights that it returns show that or not."""

    class BertSelfAttention(build_attention(drop=lambda self, weights: weights)):
        def __init__(self, config):
            super().__init__(config)
            self.W_q.register_forward_hook(lambda linear, given, made: drop(self, made))

        def forward(self, X, mask=None, need_weights=False):
            output, weights = super().forward(X, mask, True)
            if not shown:
                rate, self.rate = self.rate, 0.0
                weights = super().forward(X, mask, True)[1]
                self.rate = rate
            return (output, weights) if need_weights else output

    return BertSelfAttention


def _scores_noted(self, scores):
    self.scores = scores
    return scores.softmax(-1)


class _OneForAll(build_attention()):
    def __init__(self, config):
        super().__init__(config)
        self.W_k = self.W_v = self.W_q


class _WithOutputProjection(build_attention()):
    def __init__(self, config):
        super().__init__(config)
        self.W_o = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, X, mask=None, need_weights=False):
        output, weights = super().forward(X, mask, True)
        output = self.W_o(output)
        return (output, weights) if need_weights else output


class _MaskAlwaysAdded(build_attention()):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, X + mask if mask is None else mask, need_weights)


def _scores_kept(masked):
    """An answer that returns the scores for the weights, with the mask added or without."""

    def soften(self, scores):
        self.scores = scores
        return scores.softmax(-1)

    def hide(scores, mask, scale):
        return scores * scale + mask

    class ScoresReturned(build_attention(soften=soften, hide=hide)):
        def forward(self, X, mask=None, need_weights=False):
            output, _ = super().forward(X, mask, True)
            scores = self.scores if masked or mask is None else self.scores - mask
            return (output, scores) if need_weights else output

    return ScoresReturned


class _PairWithoutWeights(build_attention()):
    def forward(self, X, mask=None, need_weights=False):
        return super().forward(X, mask, not need_weights)


class _NoDropoutWithWeights(build_attention()):
    def forward(self, X, mask=None, need_weights=False):
        rate, self.rate = self.rate, 0.0 if need_weights else self.rate
        result = super().forward(X, mask, need_weights)
        self.rate = rate
        return result


def _filled_where(hidden, fill=-torch.inf):
    return lambda scores, mask, scale: (scores * scale).masked_fill(hidden(mask), fill)


ADDED = "A mask that is added"

SCORE_MASKS = {
    "mask-ignored": known(
        "mask has no effect on your result.",
        "It holds what has to be added to the scores so that padding gets no weight.",
        hide=lambda scores, mask, scale: scores * scale,
    ),
    "mask-multiplied": known(
        "You multiply the scores with the mask.",
        "This mask is additive: it holds 0 where a score should stay as it is, and times 0 nothing "
        "stays.",
        hide=lambda scores, mask, scale: scores * scale * mask,
    ),
    "mask-subtracted": known(
        "You subtract the mask.",
        "It holds very low numbers for padding: taken away instead of added, they draw all "
        "attention to it.",
        hide=lambda scores, mask, scale: scores * scale - mask,
    ),
    "mask-scaled": known(
        "In your result the mask is divided by √d like the scores. Do you add it before you scale?",
        "The mask is added to the scaled scores. With very low numbers no one notices; with others "
        "the result changes.",
        hide=lambda scores, mask, scale: (scores + mask) * scale,
    ),
    "mask-after-softmax": known(
        "You add the mask to the weights, after the softmax.",
        "There the low numbers make huge negative weights. Before the softmax exp makes 0 of them.",
        hide=lambda scores, mask, scale: scores * scale,
        after=lambda weights, mask: weights + mask,
    ),
    "weights-zeroed-after-softmax": known(
        "You set weights of padding to 0 after the softmax.",
        "The rows then sum to less than 1: padding took part in sharing out. Hidden before the "
        "softmax, it leaves its share to the words.",
        hide=lambda scores, mask, scale: scores * scale,
        after=lambda weights, mask: weights * (mask == 0),
    ),
    "mask-turned": known(
        "The mask lowers whole rows of your scores instead of columns. Do you turn the mask, or "
        "the scores after it was added?",
        "Columns are keys. A row whose scores are all lowered alike has the same softmax as "
        "before.",
        hide=lambda scores, mask, scale: scores * scale + mask.mT,
    ),
    "mask-read-as-0-and-1": known(
        "You hide where the mask is 0.",
        "In attention_mask 0 means padding. In the additive mask that arrives here, 0 means: "
        "leave this score as it is.",
        hide=_filled_where(lambda mask: mask == 0),
    ),
    "mask-read-as-0-and-1-finite": known(
        "You fill with a low number of your own where the mask is 0.",
        "In attention_mask 0 means padding. In the additive mask that arrives here, 0 means: "
        "leave this score as it is. Its other numbers are low already.",
        hide=_filled_where(lambda mask: mask == 0, -1e9),
    ),
    "mask-made-boolean": known(
        "You use the mask only to say which scores are hidden, and make these -inf yourself.",
        "The task says that it is added, whatever its numbers: a small one lowers a score a little "
        "and hides nothing. And a row in which every score is -inf gives NaN.",
        hide=_filled_where(lambda mask: mask != 0),
    ),
    "mask-made-boolean-finite": known(
        "You use the mask only to say which scores are hidden, and hide these with a low number of "
        "your own, which you fill in or add.",
        "The task says that the mask is added, whatever its numbers: a small one lowers a score a "
        "little and hides nothing.",
        hide=_filled_where(lambda mask: mask != 0, -1e9),
    ),
    "negative-means-hidden": known(
        "You use the mask only to say which scores are hidden, those where it is negative.",
        "The task says that it is added, whatever its numbers: a small one lowers a score a little "
        "and hides nothing. And a row in which every score is -inf gives NaN.",
        hide=_filled_where(lambda mask: mask < 0),
    ),
    "negative-means-hidden-finite": known(
        "You use the mask only to say which scores are hidden, those where it is negative, and "
        "hide these with a low number of your own, which you fill in or add.",
        "The task says that the mask is added, whatever its numbers: a small one lowers a score a "
        "little and hides nothing.",
        hide=_filled_where(lambda mask: mask < 0, -1e9),
    ),
    "very-low-means-hidden": known(
        "You use the mask only to say which scores are hidden, those where it is very low.",
        "The task says that the mask is added, whatever its numbers: a small one lowers a score a "
        "little. And a row in which every score is -inf gives NaN.",
        hide=_filled_where(lambda mask: mask < -1000),
    ),
    "very-low-means-hidden-finite": known(
        "Only very low numbers of the mask count in your answer: you hide the scores there with a "
        "low number of your own, or you add the mask only if it has such numbers.",
        "The task says that the mask is added, whatever its numbers: a small one lowers a score a "
        "little and hides nothing.",
        hide=_filled_where(lambda mask: mask < -1000, -1e9),
    ),
    "mask-filled-as-boolean": known(
        "You give mask to masked_fill as if it were True or False.",
        "It holds numbers that have to be added to the scores: 0 for a word, a very low number "
        "for padding.",
        hide=_filled_where(lambda mask: mask),
    ),
    "mask-negated": known(
        "You negate mask with ~ as if it were True or False.",
        "It holds numbers that have to be added to the scores: 0 for a word, a very low number "
        "for padding.",
        hide=_filled_where(lambda mask: ~mask),
    ),
    "mask-as-condition": known(
        "You give mask to torch.where as if it were True or False.",
        "It holds numbers that have to be added to the scores: 0 for a word, a very low number "
        "for padding.",
        hide=lambda scores, mask, scale: torch.where(mask, scores * scale, -torch.inf),
    ),
    **{
        f"mask-clamped{end}": known(
            "In a row of nothing but padding your scores still differ. Do you let no number of the "
            "mask be lower than -10000, for instance, or change the mask of such a row?",
            "The task says that the mask is added, whatever its numbers. In such a row the scores "
            "vanish beside the lowest number, and beside a higher one they do not.",
            hide=lambda scores, mask, scale, low=low: scores * scale + mask.clamp(min=low),
        )
        for end, low in {"": -1e4, "-far-below": -1e9}.items()
    },
    "scores-clamped": known(
        "Scores that are very low become alike in your result. Do you let none be lower than "
        "-10000, for instance, or put a number of your own where the mask is low?",
        "The task says that the mask is added, whatever its numbers. Where all of a row are as low "
        "as that, they still differ.",
        hide=lambda scores, mask, scale: (scores * scale + mask).clamp(min=-1e4),
    ),
    "mask-of-the-first-sequence": known(
        "Every sequence gets the mask of the first one.",
        "In a batch each sequence has padding of its own, and the mask has a row for each.",
        hide=lambda scores, mask, scale: scores * scale + mask[:1],
    ),
    "mask-for-one-head": known(
        "Only the first head gets the mask.",
        "Padding is no word for any head. The mask's axis of heads has size 1: it is the same for "
        "all of them.",
        hide=lambda scores, mask, scale: torch.cat(
            [scores[:, :1] * scale + mask, scores[:, 1:] * scale], 1
        ),
    ),
    "mask-made-again": known(
        "You make an additive mask out of mask, as if it held 1 for words and 0 for padding.",
        "That has been done (6.1). What arrives here is 0 for words and very low for padding, "
        "ready to be added.",
        hide=lambda scores, mask, scale: (
            scores * scale + (1 - mask) * torch.finfo(torch.float64).min
        ),
    ),
}
SCORE_MASKS = read_again(ADDED, SCORE_MASKS)

ATTENTION = {
    "split-without-transpose": known(
        "Each of your heads holds only some of the words: the split misses the swap of words and "
        "heads.",
        "A reshape deals numbers out word after word. A head has to get its slice of every word "
        "(lesson 4).",
        split=lambda X, H: X.reshape(X.shape[0], H, X.shape[1], -1),
    ),
    "features-interleaved": known(
        "Your heads take features in turn instead of neighbouring ones.",
        "A trained model's head h owns the columns h·d to (h+1)·d of each projection; dealt out "
        "otherwise its weights make no sense.",
        split=lambda X, H: X.unflatten(-1, (-1, H)).permute(0, 3, 1, 2),
    ),
    "count-and-width-swapped": known(
        "You cut each word into pieces of num_attention_heads numbers, instead of into so many "
        "pieces.",
        "Number of heads and width of a head changed places. Where the two are equal nobody "
        "notices.",
        split=lambda X, H: X.unflatten(-1, (-1, H)).transpose(1, 2),
    ),
    "features-first": known(
        "Your heads take features in turn instead of neighbouring ones, and you join them in the "
        "same order.",
        "A trained model's head h owns the columns h·d to (h+1)·d of each projection; dealt out "
        "otherwise its weights make no sense.",
        split=lambda X, H: X.unflatten(-1, (-1, H)).permute(0, 3, 1, 2),
        merge=lambda X: X.permute(0, 2, 3, 1).flatten(start_dim=2),
    ),
    "two-heads": known(
        "You cut each word into two halves, however many heads the config asks for.",
        "num_attention_heads says how many there are.",
        split=lambda X, H: X.view(*X.shape[:2], 2, X.shape[-1] // 2).transpose(1, 2),
    ),
    "merge-without-transpose": known(
        "You join the heads without swapping back: words are mixed up in the result.",
        "Heads and features have to be neighbours before they become one axis (lesson 4).",
        merge=lambda X: X.reshape(X.shape[0], X.shape[2], -1),
    ),
    "heads-not-joined": known(
        "You return the heads on an axis of their own.",
        "The next module takes (B, L, hidden_size): each word's heads side by side again.",
        merge=lambda X: X,
    ),
    "queries-and-keys-swapped": known(
        "Queries and keys have changed places.",
        "In row i of the weights stands what word i attends to, so the rows belong to the queries.",
        roles=("W_k", "W_q", "W_v"),
    ),
    "keys-and-values-swapped": known(
        "Keys and values have changed places.",
        "Queries are compared with keys. Values are what is averaged.",
        roles=("W_q", "W_v", "W_k"),
    ),
    "values-not-projected": known(
        "You average X itself: W_v is not used.",
        "What is averaged are the values, and these are made from X as queries and keys are.",
        roles=("W_q", "W_k", None),
    ),
    **{
        f"{role}-by-{W}": known(
            f"Where the {role} belong, you use what {W} makes.",
            "Each of the three has a matrix of its own. Queries, keys and values have one shape, "
            "so nothing warns you.",
            roles=roles,
        )
        for role, W, roles in (
            ("keys", "W_q", ("W_q", "W_q", "W_v")),
            ("queries", "W_k", ("W_k", "W_k", "W_v")),
            ("values", "W_q", ("W_q", "W_k", "W_q")),
        )
    },
    "keys-averaged": known(
        "You average the keys.",
        "Keys are there to be compared with. What is averaged are the values, from W_v.",
        roles=("W_q", "W_k", "W_k"),
    ),
    "biases-not-used": known(
        "The biases have no effect: you multiply with the weights only.",
        "BERT's projections are X times W plus a bias. Calling an nn.Linear does both.",
        project=lambda linear, X: X @ linear.weight.T,
    ),
    "weights-transposed": known(
        "You multiply X with the weights as they are kept.",
        "nn.Linear keeps (out, in), so X would have to meet the transpose. Calling the nn.Linear "
        "does that, and adds the bias.",
        project=lambda linear, X: X @ linear.weight + linear.bias,
    ),
    "not-scaled": known(
        "You do not scale the scores.",
        "Without the scale their spread grows with the width of a head, and softmax saturates "
        "(lesson 2).",
        scale=lambda d, H: 1.0,
    ),
    "scaled-by-all-heads": known(
        "You divide the scores by √hidden_size, the width of all heads together.",
        "The scale follows from the length of the vectors that are multiplied, and these are one "
        "head's.",
        scale=lambda d, H: (d * H) ** -0.5,
    ),
    "scaled-by-number-of-heads": known(
        "You divide the scores by the square root of the number of heads.",
        "The scale follows from how many products are added up in one score: the width of a head.",
        scale=lambda d, H: H**-0.5,
    ),
    "root-rounded": known(
        "You divide the scores by the whole part of √d.",
        "// and int() cut off what stands after the point. Where d is 2, that leaves 1.",
        scale=lambda d, H: 1 / int(d**0.5),
    ),
    "divided-by-width": known(
        "You divide the scores by the width of a head: without the square root, or by √d twice.",
        "The spread of a score grows with √d, not with d: dividing by d makes the weights nearly "
        "equal.",
        scale=lambda d, H: 1 / d,
    ),
    "multiplied-by-root": known(
        "You multiply the scores by √d, or divide them by 1/√d.",
        "They are too far apart already. Their spread is √d, and it should be 1.",
        scale=lambda d, H: d**0.5,
    ),
    "softmax-over-queries": known(
        "Your softmax runs over the queries: the weights that each key gets sum to 1.",
        "Each query shares out one unit of attention among the keys, so each row sums to 1.",
        soften=lambda self, scores: scores.softmax(-2),
    ),
    "causal": known(
        "You hide from each word the words after it.",
        "That is for models that write. BERT reads in both directions: only padding is hidden.",
        soften=lambda self, scores: (
            scores + scores.new_full(scores.shape[-2:], -torch.inf).triu(1)
        ).softmax(-1),
    ),
    "softmax-over-heads": known(
        "Your softmax runs over the heads.",
        "Heads know nothing of one another: each has rows of its own that sum to 1.",
        soften=lambda self, scores: scores.softmax(1),
    ),
    "none-added": known(
        "You add the mask where there is none.",
        "mask is None if nobody gives one, and None cannot be added. What are the scores then?",
        section=ADDED,
        wrong=_MaskAlwaysAdded,
    ),
    **by_id(SCORE_MASKS),
    "no-dropout": known(
        "attention_probs_dropout_prob has no effect while training.",
        "With that probability a weight is dropped: after the softmax, before the weighted sum.",
        drop=lambda self, weights: weights,
    ),
    "dropout-in-eval": known(
        "Weights are dropped in eval mode too.",
        WHO_IS_TRAINING,
        drop=lambda self, weights: nn.functional.dropout(weights, self.rate, True),
    ),
    "other-probability": known(
        "You drop with hidden_dropout_prob.",
        "The config has two probabilities. One is for hidden states, in 6.3; the other for "
        "attention weights.",
        rate=lambda config: config.hidden_dropout_prob,
    ),
    "dropout-before-softmax": known(
        "You drop scores, before the softmax.",
        "A score of 0 is no small weight: exp(0) is 1. Weights are dropped, after the softmax.",
        soften=lambda self, scores: drop(self, scores).softmax(-1),
        drop=lambda self, weights: weights,
    ),
    "dropout-before-softmax-for-the-output": known(
        "The output is made with dropped scores: you drop before the softmax.",
        "A score of 0 is no small weight: exp(0) is 1. Weights are dropped, after the softmax.",
        soften=_scores_noted,
        drop=lambda self, weights: drop(self, self.scores).softmax(-1),
    ),
    **{
        f"dropout-before-the-mask{end}": known(
            "You drop before the mask is added: scores, or queries or keys.",
            "A score of 0 is no small weight: exp(0) is 1. Weights are dropped, after the softmax.",
            wrong=_dropped_before_the_mask(shown),
        )
        for end, shown in {"": True, "-for-the-output": False}.items()
    },
    **kept_with_p("attention_probs_dropout_prob"),
    "dropped-by-hand": known(
        **BY_HAND,
        drop=dropped_by_hand,
    ),
    "naive-exp": known(
        "Where all scores of a row are very low, your row turns into NaN: either you divide exp by "
        "its sum, and each exp is 0, or you make -inf of low numbers.",
        "A softmax stays the same if one number is taken off a whole row. Which one keeps the exp "
        "of at least one score above 0, in every row?",
        soften=lambda self, scores: scores.exp() / scores.exp().sum(-1, keepdim=True),
    ),
    "joined-in-turn": known(
        "You split rightly, and join the heads in turn: the first feature of each head, then the "
        "second of each.",
        "W_o was trained on heads that stand side by side, each as one piece.",
        merge=lambda X: X.permute(0, 2, 3, 1).flatten(start_dim=2),
    ),
    "dropout-elsewhere": known(
        "You drop single numbers of the result or of the values.",
        "Attention weights are dropped, and nothing else: a weight takes a whole word out of a "
        "query's average. Where in your computation do the weights stand?",
        drop=lambda self, weights: weights,
        finish=lambda self, output: drop(self, output),
    ),
    "dropout-on-X": known(
        "You drop numbers of X, before it is projected.",
        "Then words lack features everywhere. Attention weights are dropped, and nothing else: "
        "after the softmax, before the weighted sum.",
        wrong=_dropped_before("W_q", "W_k", "W_v"),
    ),
    "dropout-before-W_q": known(
        "You drop numbers on the way into W_q.",
        "Attention weights are dropped, and nothing else: after the softmax, before the weighted "
        "sum.",
        wrong=_dropped_before("W_q"),
    ),
    "not-scaled-up": known(
        "Weights are dropped in training, and the others stay as they were.",
        "Then a head's output is smaller in training than in eval mode. What is kept is divided by "
        "1 - p, as nn.Dropout does.",
        drop=lambda self, weights: (
            weights * (torch.rand_like(weights) >= self.rate) if self.training else weights
        ),
    ),
    **{
        f"rows-sum-to-1-after-dropout{end}": known(
            f"You make each row sum to 1 again after weights are dropped, {OR_ALPHA}",
            "Dropout changes the sums, and that is meant: what is kept is divided by 1 - p, "
            "whatever was dropped beside it. nn.Dropout has done that already.",
            drop=lambda self, weights, divide=divide: (
                divide(drop(self, weights)) if self.training else weights
            ),
        )
        for end, divide in {
            "": lambda X: nn.functional.normalize(X, p=1, dim=-1),
            "-nan": lambda X: X / X.sum(-1, keepdim=True),
        }.items()
    },
    "whole-rows-dropped": known(
        "You drop weights together that have nothing to do with one another: whole rows, or the "
        "same places in every row, head or sequence.",
        "Single weights are dropped, each by its own chance.",
        drop=lambda self, weights: weights * drop(self, torch.ones_like(weights[..., :1])),
    ),
    "weights-after-dropout": known(
        "The weights that you return have gone through dropout.",
        "Whoever looks at them wants to see where a head looks: rows that sum to 1. Dropped are "
        "those that the average is made with.",
        show=lambda output, weights, dropped: (output, dropped),
    ),
    "weights-averaged": known(
        "You return the weights averaged over the heads.",
        "(B, H, L, L) was asked for: an average of heads shows what none of them does.",
        show=lambda output, weights, dropped: (output, weights.mean(1)),
    ),
    "weights-with-batch-and-heads-joined": known(
        "You return the weights with batch and heads as one axis.",
        "The numbers are right. (B, H, L, L) was asked for.",
        show=lambda output, weights, dropped: (output, weights.flatten(0, 1)),
    ),
    "weights-first": known(
        "You return the weights first, then the output.",
        "The task asks for them the other way round.",
        show=lambda output, weights, dropped: (weights, output),
    ),
    "weights-not-returned": known(
        "need_weights has no effect: only the output comes back.",
        "With need_weights=True two values were asked for, the output and the weights.",
        show=lambda output, weights, dropped: output,
    ),
    "weights-without-being-asked": known(
        "need_weights is the wrong way round.",
        "With True two values were asked for, the output and the weights; with False, the "
        "default, the output alone.",
        wrong=_PairWithoutWeights,
    ),
    **{
        f"scores-returned{end}": known(
            "You return scores for the table of weights.",
            "Asked for are the weights: what the softmax makes of the scores, so that rows sum to "
            "1.",
            wrong=_scores_kept(masked),
        )
        for end, masked in {"": True, "-before-the-mask": False}.items()
    },
    "no-dropout-with-weights": known(
        "With need_weights=True you drop nothing in training.",
        "Whoever looks at the weights trains the same model. The table is returned as it was "
        "before dropout, and the output is made of what is left after it.",
        wrong=_NoDropoutWithWeights,
    ),
    "weights-always-returned": known(
        "You return two values where nobody asked for the weights: always, or because need_weights "
        "is True by default.",
        "With need_weights=False, the default, whoever calls expects one tensor.",
        plain=lambda output, weights: (output, weights),
    ),
    "no-biases": known(
        "Your W_q has no bias, and perhaps the other two have none.",
        "In lesson 4 bias=False was the default; BERT's projections have one.",
        wrong=build_attention(bias=False),
    ),
    "one-linear-for-all": known(
        "W_q, W_k and W_v share one weight. Are they one and the same nn.Linear?",
        "Then each word would be its own best match. BERT has three, with weights of their own.",
        wrong=_OneForAll,
    ),
    "output-projection-inside": known(
        "Your class has a W_o.",
        "In lesson 4 it belonged to the module. BERT keeps it in the next one, 6.3, where the "
        "residual and the norm are.",
        section="Joined, added, normalised",
        wrong=_WithOutputProjection,
    ),
}
ATTENTION = read_again("The heads of lesson 4, with biases", ATTENTION)

TASK = Task(
    "06-BertSelfAttention",
    bert.BertSelfAttention,
    attention_cases,
    run=run_attention,
    examine=examine_attention,
    returns=("the output", "the output with need_weights=True", "the table of weights"),
    kind="class",
    mistakes=ATTENTION,
    build=build_attention,
    alone=all_but(
        ATTENTION,
        "split-without-transpose",
        "merge-without-transpose",
        "not-scaled",
        "scaled-by-all-heads",
        "softmax-over-queries",
        "mask-ignored",
        "mask-multiplied",
        "mask-scaled",
        "no-dropout",
        "other-probability",
        "weights-after-dropout",
        "weights-averaged",
    ),
    stages=lambda inputs: attention_steps(inputs, inputs),
    forbidden=("mha_course.bert.BertSelfAttention", *LIBRARY),
    number=2,
)
