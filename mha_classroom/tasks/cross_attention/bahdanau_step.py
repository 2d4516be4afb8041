"""Task 10.1, bahdanau_step: the context of one step, from keys that are ready."""

import torch

from mha_classroom.checks.forms import CUT_OFF_AT, FILLS, any_of, like
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged

ONE_VECTOR = "One vector for the whole sentence"
MASKS = "Who hides what"


def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh((state @ W_q)[:, None] + ready_keys) @ w_v
    hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights


@and_in_float32
def step_cases(draw):
    def case(name, B, S, query_size, h, d, lens, scale=1.0):
        inputs = {
            "state": draw.normal(B, query_size),
            "ready_keys": draw.normal(B, S, h),
            "states": draw.normal(B, S, d),
            "valid_lens": torch.tensor(lens),
            "W_q": draw.normal(query_size, h),
            "w_v": draw.normal(h, scale=scale),
        }
        return Case(name, inputs)

    def largest_hidden(name, *sizes):
        """Padding has far larger scores than all that may be seen."""
        large = case(name, *sizes)
        _, ready_keys, _, valid_lens, _, w_v = large.inputs.values()
        most = w_v.abs().argmax()
        for b, length in enumerate(valid_lens):
            ready_keys[b, :length, most] = -50 * w_v[most].sign()
            ready_keys[b, length:] = 50 * w_v.sign()
        return large

    low = case("all scores near -3,000,000, but for padding", 3, 4, 2, 6, 3, [2, 4, 1])
    low.inputs["ready_keys"] = 2 + 0.3 * low.inputs["ready_keys"].abs()
    low.inputs["ready_keys"][1] += 2  # so that the highest score is in a sequence with padding
    low.inputs["ready_keys"][0, 2:], low.inputs["ready_keys"][2, 1:] = 0, 0
    low.inputs["state"] *= 0.1
    low.inputs["w_v"] = -500_000 - 10_000 * low.inputs["w_v"].abs()
    started = case("2 sequences of unequal length, one state of zeros", 2, 5, 3, 7, 4, [5, 2])
    started.inputs["state"][0], started.inputs["ready_keys"][0, 3] = 0, 0  # a score of exactly 0
    return [
        case("1 sequence of 3 states", 1, 3, 2, 2, 2, [3]),
        started,
        case("3 sequences, all widths 3", 3, 3, 3, 3, 3, [1, 3, 2]),
        case("as many sequences as states", 4, 4, 5, 2, 6, [4, 1, 3, 2]),
        largest_hidden("large scores, the largest for padding", 3, 7, 4, 6, 5, [7, 4, 1], 2000.0),
        case("one state", 2, 1, 3, 5, 2, [1, 1]),
        case("every sequence is shorter than the states", 2, 6, 3, 5, 2, [4, 2]),
        low,
    ]


def step_stages(inputs):
    projected = inputs["state"] @ inputs["W_q"]
    hidden = torch.tanh(projected[:, None] + inputs["ready_keys"])
    scores = hidden @ inputs["w_v"]
    out = torch.arange(scores.shape[1]) >= inputs["valid_lens"][:, None]
    weights = scores.masked_fill(out, -torch.inf).softmax(-1)
    # Where no source needs the last keys, some answers cut them off.
    needed = int(inputs["valid_lens"].max()) == scores.shape[1]
    before = {"the tanh of the sums": hidden, "the scores": scores} if needed else {}
    return {
        "the state times W_q": projected,
        **before,
        "the weights": weights,
        "the context": (weights[:, None] @ inputs["states"])[:, 0],
    }


def build_step(
    join=lambda q, k: torch.tanh(q + k),
    last=unchanged,
    scale=lambda h: 1.0,
    keep=torch.lt,
    fill=-torch.inf,
    lens=lambda valid_lens, S: valid_lens,
    weigh=lambda scores: scores.softmax(-1),
    after=lambda weights, keep: weights,
    values=lambda states, ready_keys: states,
    give=lambda context, weights: (context[:, 0], weights),
):
    """give: what is returned of the context, (B, 1, d), and the weights."""

    def bahdanau_step(state, ready_keys, states, valid_lens, W_q, w_v):
        scores = join((state @ W_q)[:, None], ready_keys) @ last(w_v) * scale(len(w_v))
        S = scores.shape[1]
        seen = keep(torch.arange(S), lens(valid_lens, S)[:, None])
        weights = after(
            weigh(scores.masked_fill(~seen, fill)), torch.arange(S) < valid_lens[:, None]
        )
        return give(weights[:, None] @ values(states, ready_keys), weights)

    return bahdanau_step


def _no_axis(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh(state @ W_q + ready_keys) @ w_v
    return step_of_scores(scores, states, valid_lens)


def step_of_scores(scores, states, valid_lens):
    hidden = torch.arange(scores.shape[1]) >= valid_lens[:, None]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights[:, None] @ states)[:, 0], weights


def _tanh_of_the_score(state, ready_keys, states, valid_lens, W_q, w_v):
    scores = torch.tanh(((state @ W_q)[:, None] + ready_keys) @ w_v)
    return step_of_scores(scores, states, valid_lens)


def _everything_seen(valid_lens, S):
    return torch.full_like(valid_lens, S)


def _powers_shared(scores):
    powers = torch.exp(scores)
    return powers / powers.sum(-1, keepdim=True)


def masked_and_divided(weights, keep):
    kept = weights * keep
    return kept / kept.sum(-1, keepdim=True)


def masked_and_divided_safely(weights, keep):
    return masked_and_divided(weights, keep).nan_to_num()


def _one_largest(mended):
    """The largest score of the whole batch is subtracted; mended: what is made of NaN."""

    def weigh(scores):
        powers = torch.exp(scores - scores.max())
        return mended(powers / powers.sum(-1, keepdim=True))

    return weigh


def _cut_off(low, high):
    """The scores of what is real lie between the two."""

    def weigh(scores):
        return scores.clamp(low, high).masked_fill(scores.isinf(), -torch.inf).softmax(-1)

    return weigh


SCORES_CUT_OFF = (
    "You cut scores off above or below some number, with clamp for example.",
    "Scores beyond it become equal, and so do their weights. Nothing has to be cut off: softmax "
    "subtracts the largest score, so that no exp overflows.",
)
DIVIDED_AGAIN = (
    "Padding has a say before it is taken out: in a softmax whose weights you divide by their sum "
    "again, in the largest score that you subtract, or by an exp of its own that is infinite.",
    "If padding has by far the largest score, either nothing is left for what is real, whose "
    "weights are 0, and so is their sum; or inf · 0 is NaN. At which step is padding looked at for "
    "the last time?",
)


def _widths(inputs):
    """The answers that divide by a width, or by its root."""
    sizes = {*inputs["ready_keys"].shape[1:], inputs["state"].shape[1], inputs["states"].shape[2]}
    factors = {size**-power for size in sizes for power in (0.5, 1)}
    return [build_step(scale=lambda h, by=by: by) for by in factors]


STEP = {
    "no-tanh": known(
        "There is no tanh around the sum: it is missing, or stands around the query alone.",
        "Then the state adds the same number to the scores of all keys, and the softmax takes it "
        "out again, as if the state were left out. Every step would look at the same place.",
        join=lambda q, k: q + k,
    ),
    "tanh-of-each": known(
        "The state has no effect on your weights: the tanh is taken of the keys alone, or of query "
        "and keys apart.",
        "Added after the tanh, the state adds the same number to all scores, which the softmax "
        "takes out again. What does the tanh of lesson 1's score bend?",
        join=lambda q, k: torch.tanh(q) + torch.tanh(k),
    ),
    "multiplied": known(
        "You multiply query and key, feature by feature.",
        "This attention is called additive. What happens to the two before the tanh?",
        **any_of(
            build_step,
            {"join": lambda q, k: torch.tanh(q * k)},
            {"join": torch.mul},
            {"join": torch.mul, "last": torch.ones_like},
            {"join": torch.mul, "last": torch.ones_like, "scale": lambda h: h**-0.5},
        ),
    ),
    "scaled": known(
        "The scores are divided by one of the sizes, such as a width, or by its square root. (A "
        "mean divides, too.)",
        "That belongs to the dot product, whose size grows with the width. Bahdanau's score has "
        "no scale: w_v can learn one.",
        scale=lambda h: h**-0.5,
        shows=lambda inputs, value: like(*_widths(inputs))(inputs, value),
    ),
    "lengths-ignored": known(
        "valid_lens has no effect.",
        "The states past the length of a source were made of padding. No weight may go there.",
        section=MASKS,
        lens=_everything_seen,
    ),
    "one-state-too-many": known(
        "Each sequence sees one state past its length.",
        "States count from 0, so a length of 3 allows 0, 1 and 2.",
        section=MASKS,
        keep=torch.le,
    ),
    "scores-0": known(
        "The scores of padding are 0 in your softmax, or nearly 0.",
        "exp(0) is 1, so padding still gets a share.",
        section=MASKS,
        fill=0.0,
    ),
    "query-axis-kept": known(
        "The axis of the one query is still there, in the context or in the weights.",
        "A product of batches needs it: (B, 1, S) times (B, S, d). The task asks for (B, d) and "
        "(B, S).",
        **any_of(
            build_step,
            give=(
                lambda context, weights: (context, weights),
                lambda context, weights: (context, weights[:, None]),
                lambda context, weights: (context[:, 0], weights[:, None]),
            ),
        ),
    ),
    "no-axis-for-the-states": known(
        "The projected state has no axis for the states of the source, or has it in front: "
        "(B, num_hiddens) or (1, B, num_hiddens) is added to (B, S, num_hiddens).",
        "Axes are matched from the right, so B meets S. The same query goes to every key of its "
        "sequence.",
        wrong=_no_axis,
    ),
    "tanh-of-the-score": known(
        "You take the tanh of the score, after the product with w_v.",
        "Then a score lies between -1 and 1, and the state hardly matters. The tanh is taken of "
        "each number of the sum, and w_v weighs these.",
        wrong=_tanh_of_the_score,
    ),
    "w_v-forgotten": known(
        "You add up the numbers behind the tanh, or average them: w_v has no effect.",
        "w_v says how much each of them counts in the score.",
        **any_of(
            build_step,
            {"last": torch.ones_like},
            {"last": torch.ones_like, "scale": lambda h: 1 / h},
        ),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "subtracted": known(
        "You subtract the keys from the query.",
        "This attention is called additive.",
        join=lambda q, k: torch.tanh(q - k),
    ),
    "mask-inverted": known(
        "The padding is seen, and the real states are hidden.",
        "masked_fill writes where its mask is True: are those the places that may be seen?",
        section=MASKS,
        keep=torch.ge,
    ),
    "mask-after-softmax": known(
        "You hide padding after the softmax, or after its sum: the weights of a sequence do not "
        "sum to 1.",
        "When the softmax divided, the padding was in the sum.",
        section=MASKS,
        lens=_everything_seen,
        after=lambda weights, keep: weights * keep,
    ),
    "divided-again": known(
        *DIVIDED_AGAIN,
        section=MASKS,
        **any_of(
            build_step,
            {"lens": _everything_seen, "after": masked_and_divided},
            {"lens": _everything_seen, "after": masked_and_divided_safely},
        ),
    ),
    "longest-for-all": known(
        "Every sequence gets the length of the longest: only what is padding in all of them is "
        "hidden.",
        "A shorter sequence has padding before that. Each has a length of its own.",
        lens=lambda valid_lens, S: valid_lens.max().expand_as(valid_lens),
    ),
    "nothing-subtracted": known(
        "You do not subtract the largest score of a sequence before exp: nothing is subtracted, or "
        "in some cases another number, such as 0.",
        "exp overflows above 709 in float64, and far below 0 all of it is 0. Then inf / inf or "
        "0 / 0 gives NaN. Only differences of scores may go into exp.",
        **any_of(
            build_step,
            {"weigh": _powers_shared},
            {"weigh": _powers_shared, "after": lambda weights, keep: weights.masked_fill(~keep, 0)},
            {"lens": _everything_seen, "weigh": torch.exp, "after": masked_and_divided},
        ),
    ),
    "one-largest-for-the-batch": known(
        "It is wrong where the scores of one sequence are far below those of another: you subtract "
        "one largest score from all sequences.",
        "Measured against a score that is far above its own, exp of all scores of a sequence is 0, "
        "and so is their sum. Which largest score belongs to each sequence?",
        **any_of(build_step, weigh=(_one_largest(unchanged), _one_largest(torch.nan_to_num))),
    ),
    "softmax-over-the-batch": known(
        "The softmax runs over the sequences of the batch.",
        "Each sequence shares out one unit of attention among its own states.",
        weigh=lambda scores: scores.softmax(0).nan_to_num(),
    ),
    "scores-for-weights": known(
        "You average with the scores themselves: there is no softmax.",
        "Scores may be negative, and do not sum to 1.",
        weigh=lambda scores: scores.masked_fill(scores.isinf(), 0.0),
    ),
    "keys-for-values": known(
        "The context is an average of ready_keys.",
        "The keys are for being found. What is handed over are the states themselves.",
        values=lambda states, ready_keys: ready_keys,
    ),
    "fill-not-low-enough": known(
        "Padding's score is not low enough, whether you set it or add a number to it: where all "
        "others are lower, padding has the highest.",
        "-100 is low among scores around 0. Scores may be large here, and negative: in one case "
        "they are near -3,000,000. Which number is below every score?",
        section=MASKS,
        **any_of(build_step, fill=(*FILLS, -1e5, -1e6)),
    ),
    "scores-cut-off": known(
        *SCORES_CUT_OFF,
        **any_of(build_step, weigh=[_cut_off(*ends) for ends in CUT_OFF_AT]),
    ),
    "another-function": known(
        "You take a sigmoid or a ReLU where the score has a tanh.",
        "They bend, too, and do not give the same numbers. The task names the function.",
        **any_of(
            build_step,
            join=(lambda q, k: torch.sigmoid(q + k), lambda q, k: torch.relu(q + k)),
        ),
    ),
    "results-in-another-order": known(
        "You return the weights first, and then the context.",
        "The task asks for the context, then the weights.",
        give=lambda context, weights: (weights, context[:, 0]),
    ),
    "first-length-for-all": known(
        "Every sequence gets the length of the first.",
        "Each source has its own length.",
        section=MASKS,
        lens=lambda valid_lens, S: valid_lens[:1].expand(len(valid_lens)),
    ),
}

TASK = Task(
    "10-bahdanau_step",
    bahdanau_step,
    step_cases,
    returns=("the context", "the weights"),
    mistakes=read_again(ONE_VECTOR, STEP | ALONE),
    build=build_step,
    stages=step_stages,
    alone=tuple(ALONE),
    forbidden=("mha_course.attention.AdditiveAttention",),
    number=1,
)
