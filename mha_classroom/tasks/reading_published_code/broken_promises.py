"""Task 11.5, broken_promises: what attention has to keep, tested without a right answer."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.reading_published_code.runs import SUSPECTS, run_promises

SAID = {
    "not_scaled": "scores that are not scaled",
    "mask_forgotten": "valid_lens ignored",
    "positions_added": "keys that know their place",
    "centred_queries": "the first query taken off all queries",
    "scaled_by_the_batch": "queries measured over the batch",
    "causal": "later keys hidden",
    "padding_in_the_sum": "padding hidden after the softmax",
    "first_length": "the first length for all",
    "longest_length": "the longest length for all",
    "one_key_too_many": "one key past each length",
    "scaled_by_padding": "keys divided by the length of all keys",
    "values_left": "a little of the last value in every output",
    "softmax_over_queries": "a softmax over the queries",
}


def suspect_cases(draw):
    cases = []
    for number, suspect in enumerate(SUSPECTS):
        B, L, S, d = (2, 5, 5, 3) if suspect.__name__ == "causal" else (3, 4, 6, 5)
        lens = torch.tensor([4, 5, 2][:B])
        inputs = {
            "suspect": number,
            "queries": draw.normal(B, L, d),
            "keys": draw.normal(B, S, d),
            "values": draw.normal(B, S, d + 2),
            "valid_lens": lens,
        }
        cases.append(Case(f"attention with {SAID[suspect.__name__]}", inputs))
    return [*cases, zeros_case(cases)]


def zeros_case(cases):
    """Padding that is 0, as it mostly is, and a function that looks at it."""
    (case,) = (case for case in cases if case.name.endswith(SAID["mask_forgotten"]))
    past = padded(case.inputs["keys"], case.inputs["valid_lens"])
    zeros = {name: case.inputs[name].masked_fill(past, 0.0) for name in ("keys", "values")}
    return Case(f"{case.name}, where the padding is 0", case.inputs | zeros)


def padded(keys, lens, after=0):
    return (torch.arange(keys.shape[1]) >= lens[:, None] + after)[:, :, None]  # (B, S, 1)


def differ(one, other, small=1e-9):
    return not (one - other).abs().max() < small  # NaN is no small difference


def differ_unless_nan(one, other):
    return bool((one - other).abs().max() > 1e-9)


def padding_counts(
    attention,
    queries,
    keys,
    values,
    lens,
    change_keys=True,
    change_values=True,
    after=0,
    change=lambda X: X + 1,
    differ=differ,
):
    past = padded(keys, lens, after)
    other_keys = torch.where(past, change(keys), keys) if change_keys else keys
    other_values = torch.where(past, change(values), values) if change_values else values
    before = attention(queries, keys, values, lens)
    return differ(attention(queries, other_keys, other_values, lens), before)


def key_order_counts(attention, queries, keys, values, lens, both=True, lengths=False):
    lens = lens if lengths else None
    other = attention(queries, keys.flip(1), values.flip(1) if both else values, lens)
    return differ(other, attention(queries, keys, values, lens))


def query_order_counts(attention, queries, keys, values, lens, back=True):
    other = attention(queries.flip(1), keys, values, lens)
    return differ(other.flip(1) if back else other, attention(queries, keys, values, lens))


def batch_counts(attention, queries, keys, values, lens, rows=None, own=True, differ=differ):
    together = attention(queries, keys, values, lens)
    for b in list(range(len(queries)))[:rows]:
        one = slice(b, b + 1)
        alone = lens[one] if own else None
        if differ(attention(queries[one], keys[one], values[one], alone), together[one]):
            return True
    return False


def build_promises(
    padding=padding_counts,
    keys=key_order_counts,
    queries=query_order_counts,
    batch=batch_counts,
    say=lambda found: {name for name in found if found[name]},
):
    def broken_promises(attention, *inputs):
        return say(
            {
                "padding": padding(attention, *inputs),
                "order of keys": keys(attention, *inputs),
                "order of queries": queries(attention, *inputs),
                "batch": batch(attention, *inputs),
            }
        )

    return broken_promises


def first_of(found):
    return [name for name in found if found[name]][:1]


def only(test, **options):
    return lambda *inputs: test(*inputs, **options)


TESTS = "Tests that people write"
TEXT_B = "Text B: the shape is right"
TEXT_C = "Text C: right, and then once more"

PROMISES = {
    "only-values-changed": known(
        "You change the padded values and leave the padded keys as they are.",
        "A key without a value can still count: if padding is hidden after the softmax, its score "
        "is in the sum by which all are divided.",
        padding=only(padding_counts, change_keys=False),
    ),
    "only-keys-changed": known(
        "You change the padded keys and leave the padded values as they are.",
        "A value can reach the output in another way than by its key. Change whatever must not "
        "count.",
        padding=only(padding_counts, change_values=False),
    ),
    "first-padded-place-left": known(
        "You change what stands after the first padded place, and leave that one.",
        "Keys count from 0: with a length of 3 the first padded key is key 3. A mask with <= for < "
        "lets in this one only.",
        padding=only(padding_counts, after=1),
    ),
    "padding-set-to-0": known(
        "Your change of the padding leaves zeros as they are.",
        "Padding is often 0 already. Then nothing has changed, and nothing is found.",
        padding=only(padding_counts, change=torch.zeros_like),
    ),
    "padding-set-to-nan": known(
        "You set the padding to NaN, and call the promise broken where it is kept.",
        "Right attention gives padding a weight of 0, but 0 · NaN is NaN. Change it to other "
        "numbers.",
        padding=only(padding_counts, change=lambda X: torch.full_like(X, torch.nan)),
    ),
    "large-differences-only": known(
        "You let pass differences that are larger than the statement allows.",
        "A little of the padding is in some output. The statement says which difference counts as "
        "none.",
        padding=only(padding_counts, differ=lambda one, other: differ(one, other, 1e-3)),
    ),
    "padding-never-broken": known(
        "You never find the promise on padding broken.",
        "Are the numbers that you change past the length, and do you pass the lengths both times?",
        padding=lambda *inputs: False,
    ),
    "values-stay-where-they-are": known(
        "You turn the keys around and leave the values.",
        "Then each key has another value, and any attention gives another output. A pair of key "
        "and value moves together.",
        keys=only(key_order_counts, both=False),
    ),
    "turned-around-with-lengths": known(
        "You turn the keys around and pass the lengths.",
        "Then padding comes to the front, and real words are hidden in its place. The statement "
        "asks for this promise without lengths.",
        keys=only(key_order_counts, lengths=True),
    ),
    "key-order-never-broken": known(
        "You never find the promise on the order of keys broken.",
        "Compare the output for keys and values in reverse with the output for them as they are.",
        keys=lambda *inputs: False,
    ),
    "rows-not-turned-back": known(
        "You turn the queries around and compare row 0 with row 0.",
        "Row 0 now belongs to the last query. Each output row moves with its query.",
        queries=only(query_order_counts, back=False),
    ),
    "query-order-never-broken": known(
        "You never find the promise on the order of queries broken.",
        "Compare the rows of the same query, before and after you turn the queries around.",
        queries=lambda *inputs: False,
    ),
    "alone-without-its-length": known(
        "A sequence alone is called without its length.",
        "Then it sees padding that it did not see in the batch. Cut the lengths as you cut the "
        "rest.",
        section=TEXT_C,
        batch=only(batch_counts, own=False),
    ),
    "only-the-first-alone": known(
        "You try the first sequence alone and no other one.",
        "The first one may be the one whose length or mask all others get.",
        section=TEXT_C,
        batch=only(batch_counts, rows=1),
    ),
    "nan-is-no-difference": known(
        "A result that becomes NaN counts as equal in your comparison.",
        "No comparison with NaN is true, so difference > small misses it, and "
        "not (difference < small) sees it.",
        section=TEXT_C,
        batch=only(batch_counts, differ=differ_unless_nan),
    ),
    "batch-never-broken": known(
        "You never find the promise on the batch broken.",
        "Call each sequence as a batch of one, and compare it with its row in the batch.",
        section=TEXT_C,
        batch=lambda *inputs: False,
    ),
    "promises-that-are-kept": known(
        "You return the promises that are kept.",
        "The broken ones are asked for.",
        say=lambda found: {name for name in found if not found[name]},
    ),
    "first-broken-only": known(
        "You stop at the first promise that is broken.",
        "More than one can be. Look at all four.",
        say=first_of,
    ),
}


TASK = Task(
    "11-broken_promises",
    build_promises(),
    suspect_cases,
    run=run_promises,
    mistakes=read_again(TESTS, PROMISES),
    build=build_promises,
    alone=("promises-that-are-kept", "first-broken-only", "batch-never-broken"),
    number=5,
)
