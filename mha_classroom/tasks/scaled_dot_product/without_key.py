"""Task 2.8, without_key: an attention as if one key had not been there."""

import math

import torch

from mha_classroom.checks.examining import first_wrong
from mha_classroom.checks.showing import number_text, numbers_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again, unchanged
from mha_classroom.tasks.attention_math.softmax import a_little_less, near
from mha_classroom.tasks.scaled_dot_product.scaled_scores import make_batch


def without_key(output, weights, values, key):
    others = weights.clone()
    others[..., key] = 0.0
    left = 1 - weights[..., key : key + 1]  # (B, L, 1): what the other keys share
    weights = torch.where(left > 0, others / left.clamp(min=1e-300), 0.0)
    return weights @ values, weights


def point_out_weights(inputs, left):
    """The first row of the table of weights that is wrong, with its sum, and what it was before."""
    _, weights, _, key = inputs.values()
    mine, right = left[1], without_key(*inputs.values())[1]
    place = first_wrong(mine, right)[:2]
    others = torch.cat([weights[place][:key], weights[place][key + 1 :]])
    return (
        f"At {list(place)} your weights are {numbers_text(mine[place])}, with the sum "
        f"{number_text(mine[place].sum().item(), 4)}. Those of the other keys were "
        f"{numbers_text(others)}."
    )


@and_in_float32
def key_cases(draw):
    def case(name, batch, num_queries, num_keys, d_v, key, scale=1.0, change=unchanged):
        weights = change(draw.normal(batch, num_queries, num_keys, scale=scale).softmax(-1))
        values = draw.normal(batch, num_keys, d_v)
        return made(name, weights, values, key)

    def made(name, weights, values, key):
        inputs = {"output": weights @ values, "weights": weights, "values": values, "key": key}
        return Case(name, inputs)

    by_hand = make_batch([[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0, 0]])
    numbers = make_batch([[10], [20], [30], [40]])

    near_one = [[0.003, 0.995, 0.002, 0], [0.002, 0.99, 0.003, 0.005], [0, 0.999, 7e-4, 3e-4]]
    near_one = make_batch(near_one), make_batch([[1, 4], [2, 5], [-3, 1], [2, -2]])

    def some_rows(weights):
        """Query 0 of sequence 0 sees key 2 alone; query 1 of sequence 1 sees nothing."""
        weights = weights.clone()
        weights[0, 0] = torch.eye(weights.shape[-1])[2]
        weights[1, 1] = 0.0
        return weights

    def another_alone(weights):
        """Query 1 of sequence 0 sees key 3 alone."""
        weights = weights.clone()
        weights[0, 1] = torch.eye(weights.shape[-1])[3]
        return weights

    cancelled = make_batch([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]), make_batch([[1], [1], [-1]])
    return [
        made("weights .1 .2 .3 .4 and .5 .5 0 0, without key 1", by_hand, numbers, 1),
        case("2 sequences, 3 queries, 5 keys, d_v = 7", 2, 3, 5, 7, key=3),
        case("the first key", 3, 5, 2, 4, key=0),
        case("the last key, as many queries as keys", 2, 5, 5, 3, key=4),
        case("one query, large differences between weights", 4, 1, 6, 2, key=1, scale=2.0),
        made("weights of .995, .99 and .999 for the key", *near_one, key=1),
        case("a query that sees this key alone, one that sees none", 2, 3, 5, 4, 2, 1.0, some_rows),
        case("a query that sees another key alone", 2, 3, 5, 4, 2, 1.0, another_alone),
        made("an output of 0, in which the values cancel", *cancelled, 0),
        case("all sizes 3", 3, 3, 3, 3, key=1),
        case("one key", 2, 3, 1, 5, key=0),
    ]


def right_remove(weights, key):
    others = weights.clone()
    others[..., key] = 0.0
    return others


def _left(weights, key):
    return 1 - weights[..., key : key + 1]


def right_share(others, weights, key):
    return others / _left(weights, key)


def build_without(
    remove=right_remove,
    share=right_share,
    alone=lambda weights: 0.0,
    nothing=lambda weights: 0.0,
    make=lambda output, weights, values, key, new: new @ values,
    give=lambda output, weights: (output, weights),
):
    """remove: weights without the key's. share: the new weights, from those. alone, nothing: what
    a query that saw this key alone gets, or one that saw none. make: the new output.
    """

    def without_key(output, weights, values, key):
        new = share(remove(weights, key), weights, key)
        lonely = weights[..., key : key + 1] == 1
        empty = ~weights.any(-1, keepdim=True)
        new = new.masked_fill(lonely, alone(weights)).masked_fill(empty, nothing(weights))
        return give(make(output, weights, values, key, new), new)

    return without_key


def _not_below(least):
    """A share that divides by no less than this."""

    def share(others, weights, key):
        return others / others.sum(-1, keepdim=True).clamp(min=least)

    return share


def _some_emptied(inputs, results):
    """Whether the right rows are there but for some with little left, which are zeros."""
    right = without_key(**inputs)[1]
    new = _new_weights(inputs, right, results)
    if new is None:
        return False
    empty = ~new.any(-1)
    little = _left(inputs["weights"], inputs["key"])[..., 0] < LITTLE
    return bool((empty | _alike(new, right)).all() and (little | ~right.any(-1))[empty].all())


def _some_too_small(inputs, results):
    """Whether the right rows are there but for some with little left, which sum to less than 1."""
    right = without_key(**inputs)[1]
    new = _new_weights(inputs, right, results)
    if new is None:
        return False
    little = _left(inputs["weights"], inputs["key"])[..., 0] < LITTLE
    sums = new.sum(-1, keepdim=True)
    if (~new.any(-1) & right.any(-1)).any():  # dividing by a larger number leaves no zeros
        return False
    scaled = sums * right
    return bool((_alike(new, right) | little & _alike(new, scaled)).all())


def _a_little_less(inputs, results):
    right = without_key(**inputs)[1]
    new = _new_weights(inputs, right, results)
    return new is not None and a_little_less(right, new, _left(inputs["weights"], inputs["key"]))


def _divided_by_its_weight(inputs, results):
    """Whether the others are divided by the weight of the key, wherever that is not 0."""
    weights, key = inputs["weights"], inputs["key"]
    gone = weights[..., key : key + 1]
    if not isinstance(results, (tuple, list)) or len(results) != 2:
        return False
    if not torch.is_tensor(results[1]) or results[1].shape != weights.shape:
        return False
    wrong = right_remove(weights, key) / gone
    return near(torch.where(gone > 0, wrong, 0.0), torch.where(gone > 0, results[1], 0.0))


LITTLE = 0.2


def _new_weights(inputs, right, results):
    """The new weights, None if the new output is not made from them."""
    if not isinstance(results, (tuple, list)) or len(results) != 2:
        return None
    output, new = results
    if not torch.is_tensor(new) or not torch.is_tensor(output) or new.shape != right.shape:
        return None
    made = new @ inputs["values"]
    fits = output.shape == made.shape and torch.allclose(output, made, rtol=1e-5, atol=1e-5)
    return new if fits else None


def _alike(one, other):
    return ((one - other).abs() < 1e-5).all(-1)


def _column_deleted(output, weights, values, key):
    kept = [s for s in range(weights.shape[-1]) if s != key]
    new = (weights[..., kept] / _left(weights, key)).nan_to_num(0.0)
    return new @ values[:, kept], new


def _query_removed(output, weights, values, key):
    new = weights.clone()
    new[:, key] = 0.0
    return new @ values, new


def _query_removed_and_divided(output, weights, values, key):
    new = weights / _left_or_1(weights, key)
    new[:, key] = 0.0
    return new @ values, new


def _left_or_1(weights, key):
    left = _left(weights, key)
    return left.masked_fill(left == 0, 1.0)


def _as_it_was_if_alone(output, weights, values, key):
    alone = weights[..., key : key + 1] == 1
    new = torch.where(alone, weights, without_key(output, weights, values, key)[1])
    return new @ values, new


def _divided_as_the_first_sequence(output, weights, values, key):
    new = right_remove(weights, key) / _left_or_1(weights[:1], key)
    return new @ values, new


def _in_place(output, weights, values, key):
    left = _left(weights, key).clone()
    weights[..., key] = 0.0
    new = torch.where(left > 0, weights / left, 0.0)
    return new @ values, new


def _by_weights(weigh):
    """A wrong answer from wrong weights."""

    def without_key(output, weights, values, key):
        new = weigh(weights, key)
        return new @ values, new

    return without_key


def _zeros_for_output_0(output, weights, values, key):
    new = _shared(right_remove(weights, key))
    new = torch.where((output == 0).all(-1, keepdim=True), weights, new)
    return torch.where((output == 0).all(-1, keepdim=True), 0.0, new @ values), new


def _zeros_for_any_alone(weights, key):
    return _shared(right_remove(weights, key)).masked_fill((weights == 1).any(-1, True), 0.0)


def _sequence_emptied(weights, key):
    alone = (weights[..., key : key + 1] == 1).any(1, keepdim=True)
    return _shared(right_remove(weights, key)).masked_fill(alone, 0.0)


def _even_over_the_others(weights, key):
    new = _shared(right_remove(weights, key))
    even = right_remove(torch.full_like(weights, 1 / (weights.shape[-1] - 1)), key)
    return torch.where(new.any(-1, keepdim=True), new, even)


def _falsy(output, weights, values, key):
    if not key:
        return output.clone(), weights.clone()
    return without_key(output, weights, values, key)


def _later_ones_too(weights, key):
    others = weights.clone()
    others[..., key:] = 0.0
    return _shared(others)


def _always_the_first(weights, key):
    return _shared(right_remove(weights, 0))


def _shared(others):
    return (others / others.sum(-1, keepdim=True)).nan_to_num(0.0)


def _one_sum(weights, key):
    others = right_remove(weights, key)
    return others / others.sum() * others[..., 0].numel()


def _evenly(weights, key):
    return right_remove(weights + weights[..., key : key + 1] / (weights.shape[-1] - 1), key)


def _hidden_softmax(weights, key):
    return weights.index_fill(-1, torch.tensor(key), -math.inf).softmax(-1)


def _evenly_among_those_seen(weights, key):
    others = right_remove(weights, key)
    seen = others > 0
    return others + seen * weights[..., key : key + 1] / seen.sum(-1, keepdim=True).clamp(min=1)


def _softmax_of_those_seen(weights, key):
    others = right_remove(weights, key)
    return others.masked_fill(others == 0, -math.inf).softmax(-1).nan_to_num(0.0)


OF_WEIGHTS = (
    "You take a softmax of the weights of the other keys.",
    "A softmax takes scores. Of weights, which all lie between 0 and 1, it makes nearly equal "
    "shares. The weights that are left only have to sum to 1 again.",
)


def _whole_value(output, weights, values, key, new):
    left = _left(weights, key)
    return torch.where(left > 0, (output - values[:, key : key + 1]) / left, 0.0)


def _value_zeroed(output, weights, values, key):
    others = values.clone()
    others[:, key] = 0.0
    return weights @ others, weights.clone()


def _part(values, weights, key):
    """What the key brought to each output, (B, L, d_v)."""
    return weights[..., key : key + 1] * values[:, key : key + 1]


PADDING = "Hiding padding"
NOTHING = "Nothing to attend to"
TOGETHER = "Put together"


def _in_the_first_sequence(output, weights, values, key):
    new = without_key(output, weights, values, key)
    return tuple(torch.cat([X[:1], old[1:]]) for X, old in zip(new, (output, weights), strict=True))


def _value_of_the_first_sequence(output, weights, values, key):
    weight = weights[..., key, None]
    left, alone = 1 - weight, weight == 1
    new = ((output - weight * values[0, key]) / left).masked_fill(alone, 0.0)
    return new, without_key(output, weights, values, key)[1]


WITHOUT = {
    "query-hidden": known(
        "You hide the query with the number of the key: its row is 0, and the key's column is not.",
        "weights is (B, L, S): queries on axis 1, keys on axis 2.",
        wrong=_query_removed_and_divided,
    ),
    "as-it-was-if-alone": known(
        "A query that saw this key alone keeps its weights.",
        "Without the key it has nothing to attend to. The statement says what such a query gets.",
        wrong=_as_it_was_if_alone,
    ),
    "divided-as-the-first-sequence": known(
        "You divide the weights of all sequences by what is left in the first.",
        "In each sequence each query gave the key another weight, so the others share another "
        "rest.",
        wrong=_divided_as_the_first_sequence,
    ),
    "not-shared-anew": known(
        "You set the weight of the key to 0 and leave the others: the rows do not sum to 1.",
        "If the key had not been there, the softmax would have divided by a smaller sum. Which "
        "number do all other weights have to be divided by?",
        share=lambda others, weights, key: others,
    ),
    "key-still-there": known(
        "You make all the weights larger, and the key still has one.",
        "A key that was never there has the weight 0. Then the others sum to 1.",
        remove=lambda weights, key: weights,
    ),
    "nothing-changed": known(
        "You return what you were given.",
        "The weight of the key has to go, and what it had goes to the others.",
        section=TOGETHER,
        wrong=lambda output, weights, values, key: (output.clone(), weights.clone()),
    ),
    "old-output": known(
        "Your weights are right, but the output is the old one.",
        "An output is made from its weights. New weights, new output.",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: output,
    ),
    "part-taken-and-no-more": known(
        "Your weights are right. The part of the key is gone from the output, and the rest is not "
        "made larger.",
        "What is left of the output was made with the old weights of the others. By which factor "
        "did these grow?",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: output - _part(values, weights, key),
    ),
    "value-taken-whole": known(
        "Your weights are right. From the output you take the whole value of the key.",
        "Each value was multiplied by its weight before it was added.",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: output - values[:, key : key + 1],
    ),
    "value-taken-whole-then-divided": known(
        "Your weights are right. From the output you take the whole value of the key, before you "
        "divide.",
        "Each value was multiplied by its weight before it was added.",
        section=TOGETHER,
        make=_whole_value,
    ),
    "value-zeroed": known(
        "The part of the key is gone from the output, and the weights are the old ones. Do you set "
        "its value to 0?",
        "The key brings nothing then and keeps its share of the attention. Without it the others "
        "would have had that share too.",
        section=TOGETHER,
        wrong=_value_zeroed,
    ),
    "part-still-in-the-output": known(
        "Your weights are right. The output is made larger, but the part of the key is still "
        "in it.",
        "First its part has to go. How large is that part?",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: output / _left(weights, key),
    ),
    "difference-returned": known(
        "Your weights are right. In place of the new output you return what the old one loses.",
        "That answers the question of the first sentence. The task asks for the new output itself; "
        "whoever has both can subtract.",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: output - new @ values,
    ),
    "difference-returned-the-other-way": known(
        "Your weights are right. In place of the new output you return how much it differs from "
        "the old one.",
        "The task asks for the new output itself; whoever has both can subtract.",
        section=TOGETHER,
        make=lambda output, weights, values, key, new: new @ values - output,
    ),
    "shared-out-evenly": known(
        "You give the weight of the key to the others in equal parts.",
        "A softmax keeps the ratio between two keys, whoever else is there. A key with twice the "
        "weight of another one must have twice its weight afterwards.",
        wrong=_by_weights(_evenly),
    ),
    "shared-out-evenly-but-if-alone": known(
        "You give the weight of the key to the others in equal parts.",
        "A softmax keeps the ratio between two keys, whoever else is there. A key with twice the "
        "weight of another one must have twice its weight afterwards.",
        share=lambda others, weights, key: _evenly(weights, key),
    ),
    "hidden-in-the-weights-and-no-more": known(
        "You write 0 over the weight of the key, and that is all: the rows do not sum to 1, and "
        "the output is the old one.",
        "If the key had not been there, the softmax would have divided by a smaller sum. And an "
        "output is made from its weights.",
        section=TOGETHER,
        wrong=lambda output, weights, values, key: (output.clone(), right_remove(weights, key)),
    ),
    "key-counted-from-1": known(
        "You remove the key before this one.",
        "key is a place, and places count from 0: key 1 is the second one.",
        wrong=_by_weights(lambda weights, key: _shared(right_remove(weights, key - 1))),
    ),
    "key-0-for-none": known(
        "You take key 0 for no key at all.",
        "Keys count from 0, and 0 counts as False where Python asks for a truth.",
        wrong=_falsy,
    ),
    "output-0-for-nothing": known(
        "You take a query whose output is 0 for one that attended to nothing.",
        "Values may cancel each other: 0.5 of 1 and 0.5 of -1. Only the weights say whether a "
        "query attended to anything.",
        section=NOTHING,
        wrong=_zeros_for_output_0,
    ),
    "another-alone-for-alone": known(
        "A query that saw another key alone gets zeros.",
        "It gave nothing to the key that goes, so nothing changes for it. Whose weight has to be 1 "
        "for a query to be left with nothing?",
        section=NOTHING,
        wrong=_by_weights(_zeros_for_any_alone),
    ),
    "sequence-emptied": known(
        "One query that saw this key alone empties the rows of its whole sequence.",
        "The other queries have keys left. Each row is judged by itself.",
        section=NOTHING,
        wrong=_by_weights(_sequence_emptied),
    ),
    "even-over-the-others": known(
        "A query that is left with nothing spreads its weight evenly over the other keys.",
        "It gave them nothing before, and without this key it still has nothing to attend to. The "
        "statement says what such a query gets.",
        section=NOTHING,
        wrong=_by_weights(_even_over_the_others),
    ),
    "alone-keeps-its-output": known(
        "Your weights are right, but a query that saw this key alone keeps its output.",
        "An output is made from its weights: with weights of 0 nothing is left of it.",
        section=NOTHING,
        make=lambda output, weights, values, key, new: torch.where(
            new.any(-1, keepdim=True), new @ values, output
        ),
    ),
    "softmax-of-weights": known(
        "You take a softmax of the weights that are left.",
        "A softmax takes scores. Of weights, which all lie between 0 and 1, it makes nearly equal "
        "shares, and a weight of 0 comes out above 0.",
        wrong=_by_weights(lambda weights, key: right_remove(weights, key).softmax(-1)),
    ),
    "evenly-among-those-seen": known(
        "You give the weight of the key in equal parts to the other keys that the query sees.",
        "A softmax keeps the ratio between two keys, whoever else is there. A key with twice the "
        "weight of another one must have twice its weight afterwards.",
        wrong=_by_weights(_evenly_among_those_seen),
    ),
    "softmax-of-weights-above-0": known(*OF_WEIGHTS, wrong=_by_weights(_softmax_of_those_seen)),
    "softmax-of-weights-hidden": known(*OF_WEIGHTS, wrong=_by_weights(_hidden_softmax)),
    "softmax-of-weights-hidden-but-for-rows-of-0": known(
        *OF_WEIGHTS, share=lambda others, weights, key: _hidden_softmax(weights, key)
    ),
    "divided-by-its-weight": known(
        "You divide by the weight of the key.",
        "The others have to sum to 1. What do they sum to before you divide?",
        share=lambda others, weights, key: others / weights[..., key : key + 1],
        shows=_divided_by_its_weight,
    ),
    "multiplied-by-what-is-left": known(
        "You multiply by 1 - weight of the key, which is the sum of the others.",
        "That makes the other weights smaller. They have to grow until they sum to 1 again.",
        share=lambda others, weights, key: others * _left(weights, key),
    ),
    "divided-by-one-and-its-weight": known(
        "You divide by 1 + weight of the key.",
        "That makes the other weights smaller. What do they sum to before you divide?",
        share=lambda others, weights, key: others / (1 + weights[..., key : key + 1]),
    ),
    "one-sum-for-all-rows": known(
        "You divide all rows by the same number, which comes from the sum of the whole table.",
        "Each query gave the key a weight of its own, so each row has its own number.",
        wrong=_by_weights(_one_sum),
    ),
    "small-number-in-the-sum": known(
        "You add a small number to what you divide by.",
        "Every row then sums to less than 1, and the less the other keys had, the more is missing. "
        "Only where nothing is left does the division need help.",
        section=NOTHING,
        share=lambda others, weights, key: others / (others.sum(-1, keepdim=True) + 1e-3),
        shows=_a_little_less,
    ),
    "nearly-alone-for-alone": known(
        "Where a query gave nearly all its weight to this key, you return zeros.",
        "0.995 is not 1: what is left is little, but the ratios of the others are known, and they "
        "share 1. Only a weight of exactly 1 leaves nothing.",
        section=NOTHING,
        share=lambda others, weights, key: torch.where(
            _left(weights, key) > 0.02, right_share(others, weights, key), 0.0
        ),
        shows=_some_emptied,
    ),
    "divisor-kept-from-getting-small": known(
        "Where a query gave nearly all its weight to this key, your new weights sum to less than "
        "1: the number that you divide by is kept from getting small.",
        "Weights go up to 0.999 here, so what is left may be 0.001. Only 0 needs a limit.",
        section=NOTHING,
        share=_not_below(0.02),
        shows=_some_too_small,
    ),
    "later-keys-removed-too": known(
        "You remove this key and all that come after it.",
        "One key is to go: key: goes on to the end.",
        wrong=_by_weights(_later_ones_too),
    ),
    "always-the-first-key": known(
        "You always remove key 0.",
        "The argument key says which one is to go.",
        wrong=_by_weights(_always_the_first),
    ),
    "always-the-last-key": known(
        "You always remove the last key.",
        "The argument key says which one is to go.",
        wrong=lambda output, weights, values, key: without_key(
            output, weights, values, weights.shape[-1] - 1
        ),
    ),
    "old-weights": known(
        "Your output is right, and the weights that you return are the old ones.",
        "The second result is the table of the new weights, with 0 for the hidden key.",
        section=TOGETHER,
        wrong=lambda *given: (without_key(*given)[0], given[1].clone()),
    ),
    "first-sequence-alone": known(
        "You hide the key in the first sequence alone.",
        "With a batch of one nobody notices. The key goes in every sequence.",
        wrong=_in_the_first_sequence,
    ),
    "value-of-the-first-sequence": known(
        "You take off the value that the key has in the first sequence, in all sequences.",
        "Each sequence has values of its own. With a batch of one nobody notices.",
        wrong=_value_of_the_first_sequence,
    ),
    "first-query-for-all": known(
        "You divide all rows by the same number, that of the first query.",
        "Each query gave the key a weight of its own, so each row has its own number.",
        share=lambda others, weights, key: others / (1 - weights[0, 0, key]),
    ),
    "shared-over-queries": known(
        "You make columns sum to 1, not rows.",
        "Each query shares out its attention along its row. Which axis of (B, L, S) are the keys?",
        share=lambda others, weights, key: others / others.sum(1, keepdim=True),
    ),
    "shared-over-queries-nan-to-0": known(
        "You make columns sum to 1, not rows.",
        "Each query shares out its attention along its row. Which axis of (B, L, S) are the keys?",
        share=lambda others, w, key: (others / others.sum(1, keepdim=True)).nan_to_num(0.0),
    ),
    "nan-if-alone": known(
        "A query that saw this key alone gets NaN.",
        "Its other weights sum to 0, and 0 is divided by 0. Without the key it has nothing to "
        "attend to. The statement says what such a query gets.",
        section=NOTHING,
        alone=lambda weights: math.nan,
    ),
    "nan-if-nothing": known(
        "A query that saw nothing before gets NaN.",
        "All its weights are 0, and so is their sum. 0 is divided by 0. Such a query stays as it "
        "was.",
        section=NOTHING,
        nothing=lambda weights: math.nan,
    ),
    "even-if-alone": known(
        "A query that saw this key alone spreads its weight evenly.",
        "It gave 0 to all other keys. Without the key it has nothing to attend to. The statement "
        "says what such a query gets.",
        section=NOTHING,
        alone=lambda weights: 1 / weights.shape[-1],
    ),
    "only-that-key": known(
        "You keep this key and remove all others.",
        "It is the other way round: this one has to go.",
        remove=lambda weights, key: weights - right_remove(weights, key),
    ),
    "column-deleted": known(
        "Your weights have one column less.",
        "The numbers are right. The task asks for (B, L, S), with a 0 in the column of the key, so "
        "that the columns keep their places.",
        wrong=_column_deleted,
    ),
    "query-removed": known(
        "You write zeros into a row, not into a column: a query is gone, and the key is still "
        "there.",
        "Weights are (B, L, S). Which axis are the keys?",
        wrong=_query_removed,
    ),
    "weights-changed-in-place": known(
        "You write into the caller's weights: after the call they are not what they were.",
        "Whoever calls wants to compare old and new. Make a new tensor first.",
        section=TOGETHER,
        wrong=_in_place,
    ),
    "output-only": known(
        "You return the output alone.",
        "The weights are asked for too.",
        section=TOGETHER,
        give=lambda output, weights: output,
    ),
    "weights-only": known(
        "Half of the way: you return the weights alone.",
        "The output is asked for too. What do the values come to under these weights?",
        section=TOGETHER,
        give=lambda output, weights: weights,
    ),
    "results-swapped": known(
        "You return the weights first and the output second.",
        "Whoever calls unpacks them as output, weights.",
        section=TOGETHER,
        give=lambda output, weights: (weights, output),
    ),
}

TASK = Task(
    "02-without_key",
    without_key,
    key_cases,
    returns=("the output", "the table of weights"),
    mistakes=read_again(PADDING, WITHOUT),
    build=build_without,
    point_out=point_out_weights,
    alone=(
        "old-output",
        "difference-returned",
        "difference-returned-the-other-way",
        "shared-over-queries",
        "shared-over-queries-nan-to-0",
        "small-number-in-the-sum",
        "nearly-alone-for-alone",
        "divisor-kept-from-getting-small",
        "value-taken-whole-then-divided",
        "divided-by-its-weight",
        "shared-out-evenly-but-if-alone",
        "alone-keeps-its-output",
        "even-if-alone",
        "only-that-key",
    ),
    since=3,
    number=8,
)
