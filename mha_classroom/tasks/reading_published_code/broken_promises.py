"""Task 11.5, broken_promises: what attention has to keep, tested without a right answer."""

import math

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import Text, number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
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
    "last_length": "the last length for all",
    "longest_length": "the longest length for all",
    "one_key_too_many": "one key past each length",
    "scaled_by_padding": "keys divided by the length of all keys",
    "values_left": "a little of the last value in every output",
    "values_taken_off": "a little of the last value taken off every output",
    "rows_moved": "its rows one place too late",
    "softmax_over_queries": "a softmax over the queries",
    "padding_cut_off": "padding cut off before it is used",
    "padded_rows_zeroed": "zeros for queries past the length",
    "one_number_moved": "the last value in one number of the output",
    "padded_rows_see_all": "padding that queries past the length see",
    "rows_told_apart": "a little of its place in every row",
}
ABOUT = 100.0  # values of this size: a tolerance that grows with them is too large


@and_in_float32
def suspect_cases(draw):
    def case(suspect, B=3, L=4, S=6, d=5, d_v=7, lens=(4, 5, 2), around=0.0, also=""):
        inputs = {
            "suspect": [each.__name__ for each in SUSPECTS].index(suspect),
            "queries": draw.normal(B, L, d),
            "keys": draw.normal(B, S, d),
            "values": around + draw.normal(B, S, d_v),
            "valid_lens": torch.tensor(lens[:B]),
        }
        return Case(f"attention with {SAID[suspect]}{also}", inputs)

    special = {
        "causal": {"B": 2, "L": 5, "S": 5, "d": 3, "d_v": 5},
        "values_left": {"around": ABOUT, "lens": (4, 3, 2)},
        "values_taken_off": {"around": ABOUT, "lens": (4, 3, 2)},
    }
    cases = [case(name, **special.get(name, {})) for name in SAID]
    return [
        *cases,
        zeros_case(cases),
        case("first_length", lens=(4, 4, 2), also=", two of them equal"),
        case("first_length", lens=(4, 2, 4), also=", the second one shorter"),
        case("first_length", B=4, lens=(4, 4, 4, 2), also=", the fourth one shorter"),
        case("last_length", lens=(2, 4, 4), also=", the first one shorter"),
        case("one_key_too_many", lens=(4, 3, 2), also=", two padded places or more"),
        case("values_left", around=ABOUT, lens=(5, 5, 5), also=", one padded place each"),
        case("padding_cut_off", lens=(4, 4, 4), also=", all lengths equal"),
        case("padding_cut_off", around=1e5, also=", and large values"),
        case("mask_forgotten", B=1, also=", one sequence"),
        case("padding_cut_off", d=1, d_v=1, also=", one feature"),
        # A sum of two is the same either way around, to its last digit.
        case("not_scaled", S=2, lens=(2, 1, 2), also=", two keys"),
    ]


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


def differ_largely(one, other):
    return differ(one, other, 1e-3)


def differ_slightly(one, other):
    return differ(one, other, 1e-8)


def differ_everywhere(one, other):
    return not ((one - other).abs() < 1e-9).any()


def differ_upwards(one, other):
    return not (one - other).max() < 1e-9


def differ_downwards(one, other):
    return differ_upwards(other, one)


def differ_in(*place):
    return lambda one, other: differ(one[place], other[place])


def differ_on_average(one, other):
    return not (one - other).mean().abs() < 1e-9


def differ_in_the_mean(one, other):
    return not (one - other).abs().mean() < 1e-9


def differ_in_all(one, other):
    return not (one - other).norm() < 1e-9


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
    where=lambda past: past,
):
    past = where(padded(keys, lens, after))
    other_keys = torch.where(past, change(keys), keys) if change_keys else keys
    other_values = torch.where(past, change(values), values) if change_values else values
    before = attention(queries, keys, values, lens)
    return differ(attention(queries, other_keys, other_values, lens), before)


def first_place(past):
    return past & (past.cumsum(1) == 1)


def last_place(past):
    return past & (past.flip(1).cumsum(1).flip(1) == 1)


def in_rows(rows):
    """Of the sequences in this slice."""

    def where(past):
        found = torch.zeros_like(past)
        found[rows] = past[rows]
        return found

    return where


def lengths_change_it(attention, queries, keys, values, lens):
    return differ(attention(queries, keys, values, None), attention(queries, keys, values, lens))


def cut_off_at_the_longest(attention, queries, keys, values, lens):
    end = int(lens.max())
    short = attention(queries, keys[:, :end], values[:, :end], lens)
    return differ(short, attention(queries, keys, values, lens))


def key_order_counts(
    attention, queries, keys, values, lens, both=True, lengths=False, axis=1, differ=differ
):
    lens = lens if lengths else None
    other_values = values.flip(axis) if both else values
    other = attention(queries, keys.flip(axis), other_values, lens)
    return differ(other, attention(queries, keys, values, lens))


def query_order_counts(
    attention,
    queries,
    keys,
    values,
    lens,
    back=True,
    axis=1,
    once=False,
    never=False,
    differ=differ,
):
    lens = None if never else lens
    other = attention(queries.flip(axis), keys, values, None if once else lens)
    before = attention(queries, keys, values, lens)
    return differ(other.flip(axis) if back else other, before)


def batch_counts(
    attention,
    queries,
    keys,
    values,
    lens,
    rows=slice(None),
    cut=lambda lens, one: lens[one],
    differ=differ,
    axis=True,
    row=None,
):
    together = attention(queries, keys, values, lens)
    for b in list(range(len(queries)))[rows]:
        one = slice(b, b + 1)
        given = (X[one if axis else b] for X in (queries, keys, values))
        alone = attention(*given, cut(lens, one))
        if alone.shape != together[one].shape or differ(alone, together[row or one]):
            return True
    return False


def batch_of_words(attention, queries, keys, values, lens, with_length):
    """Each sequence alone, without its padding."""
    together = attention(queries, keys, values, lens)
    for b, end in enumerate(lens.tolist()):
        one = slice(b, b + 1)
        length = lens[one] if with_length else None
        alone = attention(queries[one], keys[one, :end], values[one, :end], length)
        if differ(alone, together[one]):
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


def all_with(differ):
    """The parts of an answer whose comparison is this one, for all four promises."""
    tests = {
        "padding": padding_counts,
        "keys": key_order_counts,
        "queries": query_order_counts,
        "batch": batch_counts,
    }
    return {part: only(test, differ=differ) for part, test in tests.items()}


def only(test, **options):
    return lambda *inputs: test(*inputs, **options)


TESTS = "Tests that people write"
TEXT_C = "Text C: right, and then once more"


def padding_or_others(found):
    return {name for name in found if found[name] and (name == "padding" or not found["padding"])}


def _any_of(*choices):
    return any_of(build_promises, *choices, run=_promised)


def _promised(answer, inputs):
    return examine_promises(inputs, run_promises(answer, inputs))


ALL = slice(None)
PARTS = (0,), (-1,), (ALL, 0), (ALL, -1), (ALL, ALL, 0), (ALL, ALL, -1)

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
        "You set the padding to NaN or infinity, and call the promise broken where it is kept.",
        "Right attention gives padding a weight of 0, but 0 · NaN is NaN, and so is 0 · inf. "
        "Change it to other numbers.",
        padding=only(padding_counts, change=lambda X: torch.full_like(X, torch.nan)),
    ),
    "large-differences-only": known(
        "You let pass differences that are larger than the statement allows, or change the padding "
        "by so little that hardly any difference can come of it.",
        "Some of the functions let in a little of the padding, and the output changes by little. "
        "The statement says which difference counts as none. torch.allclose allows 1e-5 of the "
        "number itself unless you say rtol=0, and 1e-8 unless you say atol.",
        **_any_of(
            all_with(differ_largely),
            {"padding": only(padding_counts, differ=differ_largely)},
            {"keys": only(key_order_counts, differ=differ_largely)},
            {"queries": only(query_order_counts, differ=differ_slightly)},
            all_with(differ_slightly),
        ),
    ),
    **{
        f"{which}-padded-place-only": known(
            f"You change the {which} padded place of each sequence and no other.",
            "Attention may look at any of them. Change all padding.",
            padding=only(padding_counts, where=where),
        )
        for which, where in (("first", first_place), ("last", last_place))
    },
    "padding-of-one-sequence": known(
        "You change the padding of one sequence only, or of all but one.",
        "Attention may go wrong in any of them. Change the padding of each, past its own length.",
        **_any_of(
            *(
                {"padding": only(padding_counts, where=in_rows(rows))}
                for rows in (slice(1), slice(-1, None), slice(1, None), slice(-1))
            )
        ),
    ),
    "averages-compared": known(
        "You compare sums or averages of the outputs, or take the average of their differences.",
        "Rows in another order have the same sum, and in an average one number that differs counts "
        "for little. Compare number with number.",
        **_any_of(all_with(differ_on_average), all_with(differ_in_the_mean)),
    ),
    "real-words-changed": known(
        "You find the promise on padding broken where it is kept: you change real keys or values, "
        "or one of your two calls has no lengths, or other ones.",
        "Keys count from 0. With a length of 3 the keys 0, 1 and 2 are real. Which one is the "
        "first that is not?",
        padding=only(padding_counts, after=-1),
    ),
    "all-numbers-have-to-differ": known(
        "You call a promise broken only if all numbers differ.",
        "One sequence or one row may be right by chance. One number that differs is enough.",
        **all_with(differ_everywhere),
    ),
    "values-stay-where-they-are": known(
        "For the order of keys you do not turn keys and values alone: one of the two stays or has "
        "an order of its own, or the queries or the output are turned, too.",
        "Then any attention gives another output. A pair of key and value moves together, and "
        "nothing else moves.",
        keys=only(key_order_counts, both=False),
    ),
    "keys-turned-on-another-axis": known(
        "You exchange the keys and values of one sequence with those of another, or turn around "
        "the numbers within each of them.",
        "Axis 0 is the batch, the last one the features. Which axis counts the keys?",
        **_any_of(*({"keys": only(key_order_counts, axis=axis)} for axis in (0, -1))),
    ),
    "turned-around-with-lengths": known(
        "You test the order of keys with lengths, in one of the two calls or in both.",
        "Turned around, padding comes to the front, and real words are hidden in its place. The "
        "statement asks for this promise without lengths.",
        keys=only(key_order_counts, lengths=True),
    ),
    "rows-not-turned-back": known(
        "You turn the queries around, and do not turn back the rows of the output, or turn keys or "
        "values around as well.",
        "Row 0 now belongs to the last query. Each output row moves with its query, and nothing "
        "else does. If you turn the output: which of its axes counts the rows?",
        queries=only(query_order_counts, back=False),
    ),
    "queries-turned-on-another-axis": known(
        "You exchange the queries of one sequence with those of another, or turn around the "
        "numbers within each query.",
        "Axis 0 is the batch, the last one the features. Which axis counts the queries?",
        **_any_of(*({"queries": only(query_order_counts, axis=axis)} for axis in (0, -1))),
    ),
    "queries-with-lengths-once": known(
        "For the order of queries your two calls differ in more than that order: the lengths are "
        "passed in one of them only, or the keys are turned around, too.",
        "Then any attention gives other numbers. Turn the queries, and nothing else.",
        queries=only(query_order_counts, once=True),
    ),
    "queries-without-lengths-only": known(
        "You test the order of queries only without lengths.",
        "The promise is about these lengths: they say which keys are real, and no query's row "
        "may depend on its place.",
        queries=only(query_order_counts, never=True),
    ),
    "alone-without-its-length": known(
        "A sequence alone is called without its length.",
        "Then it sees padding that it did not see in the batch. Cut the lengths as you cut the "
        "rest.",
        section=TEXT_C,
        batch=only(batch_counts, cut=lambda lens, one: None),
    ),
    "alone-with-all-lengths": known(
        "A sequence alone is called with the lengths of the whole batch, or with that of another "
        "sequence.",
        "A batch of one has one length, its own. Cut the lengths as you cut the rest.",
        section=TEXT_C,
        **_any_of(
            {"batch": only(batch_counts, cut=lambda lens, one: lens)},
            {"batch": only(batch_counts, cut=lambda lens, one: lens[:1])},
        ),
    ),
    "alone-compared-with-all": known(
        "The output of a sequence alone is compared with that of the whole batch, or of another "
        "sequence; or its queries are alone, and its keys or values are not.",
        "Alone it gives one row of sequences. Which row of the other output belongs to it? And has "
        "each input been cut to this one sequence?",
        section=TEXT_C,
        batch=only(batch_counts, row=slice(None)),
    ),
    "not-each-alone": known(
        "Not each sequence alone has a say: either you try some of them only, or a later one that "
        "fits undoes what you have found.",
        "Any of them may be the one that is wrong. Where does your range end, and is there a "
        "return inside the loop?",
        section=TEXT_C,
        **_any_of(
            *(
                {"batch": only(batch_counts, rows=rows)}
                for rows in (
                    slice(1),
                    slice(-1, None),
                    *map(slice, (-1, 2, 3)),
                    slice(1, None),
                    slice(1, 2),
                )
            )
        ),
    ),
    "nan-is-no-difference": known(
        "A result that becomes NaN counts as equal in your comparison.",
        "No comparison with NaN is true, so difference > small misses it, and "
        "not (difference < small) sees it.",
        section=TEXT_C,
        batch=only(batch_counts, differ=differ_unless_nan),
    ),
    "length-without-an-axis": known(
        "The length of a sequence alone is a single number in your call.",
        "attention wants one length for each sequence of the batch, so a tensor of shape (1,). "
        "lens[b] has no axis left, and lens[b : b + 1] has one.",
        section=TEXT_C,
        batch=only(batch_counts, cut=lambda lens, one: lens[one.start]),
    ),
    "equal-for-broken": known(
        "You call a promise broken where the two results are equal.",
        "A promise is kept if they are. Does your comparison say that two results are the same, or "
        "that they differ?",
        **all_with(lambda one, other: not differ(one, other)),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "with-and-without-lengths": known(
        "You compare the output with lengths with the output without.",
        "Where padding is hidden, these have to differ. The promise is about two calls with the "
        "same lengths.",
        padding=lengths_change_it,
    ),
    "lengths-ignored-only": known(
        "You find the promise on padding broken only where the lengths change nothing at all.",
        "A mask can also hide too little, or hide too late. Does the output change if the padding "
        "does?",
        padding=lambda *inputs: not lengths_change_it(*inputs),
    ),
    "cut-off-at-the-longest": known(
        "You cut off, or change, only what is past the longest length. Each shorter sequence still "
        "has the rest of its padding.",
        "Change all padding, each sequence past its own length.",
        padding=cut_off_at_the_longest,
    ),
    "alone-cut-to-its-length": known(
        "You cut the keys and values of a sequence alone down to its length.",
        "Attention that looks past the length gives another output then, and it keeps this "
        "promise. Between the two calls only the other sequences go. What else has to stay?",
        section=TEXT_C,
        **_any_of(
            {"batch": only(batch_of_words, with_length=False)},
            {"batch": only(batch_of_words, with_length=True)},
        ),
    ),
    # Three forms, of which any may explain a case: after the mistake that it could be taken for.
    "sign-of-a-difference": known(
        "A difference below 0 counts as none in your comparison, however large it is.",
        "−5 < 1e-9 is true. How far two numbers are apart has no sign.",
        **_any_of(
            {"padding": only(padding_counts, differ=differ_upwards)},
            {"padding": only(padding_counts, differ=differ_downwards)},
            {"padding": only(padding_counts, change=lambda X: -2 * X - 1, differ=differ_upwards)},
        ),
    ),
    "one-part-compared": known(
        "You compare a part of the two outputs: one sequence, one row or one feature.",
        "The number that differs may stand anywhere. Compare all of them.",
        **_any_of(*(all_with(differ_in(*place)) for place in PARTS)),
    ),
    "nothing-broken": known(
        "You return an empty set, whatever you are given.",
        "Do you return the names that you have found? Print what you compare, for attention that "
        "ignores its lengths.",
        say=lambda found: set(),
    ),
    "everything-broken": known(
        "You find all four promises broken, whatever you are given.",
        "Numbers that are equal except for rounding count as equal. Is your comparison the right "
        "way round?",
        say=set,
    ),
    "promises-that-are-kept": known(
        "You return the promises that are kept.",
        "The broken ones are asked for.",
        say=lambda found: {name for name in found if not found[name]},
    ),
    "first-broken-only": known(
        "You stop looking at the first promise that is broken, or at least where it is the one on "
        "padding.",
        "More than one can be broken. Look at all four, whatever you have found before.",
        **_any_of({"say": first_of}, {"say": padding_or_others}),
    ),
    "rounding-counts": known(
        "You allow a smaller difference than the statement does, or none at all, so rounding "
        "counts. (So it does if you add up all differences, as a norm does.)",
        "A sum in another order differs in the 16th digit, and large numbers differ by more than "
        "small ones. The statement says which difference counts as none, number by number.",
        **_any_of(
            all_with(lambda one, other: not torch.equal(one, other)),
            all_with(lambda one, other: differ(one, other, 1e-14)),
            all_with(lambda one, other: differ(one, other, 1e-12)),
            all_with(differ_in_all),
        ),
    ),
}

RIGHT = build_promises()


@total
def examine_promises(inputs, said):
    """Of each promise, whether it is said to be broken."""
    words = {True: Text("broken"), False: Text("kept")}
    return {
        f"according to your result {name!r}": words[found] if isinstance(found, bool) else found
        for name, found in said.items()
    }


def point_out_difference(inputs, said):
    """What becomes of the output of this case, for the first promise that is misjudged."""
    suspect, *given = inputs.values()
    right = examine_promises(inputs, run_promises(RIGHT, inputs))
    (place, *_) = (n for n, name in enumerate(right) if said[name] != right[name])
    test, what_is_done = DONE[place]
    apart = []
    test(SUSPECTS[suspect], *given, differ=lambda *both: apart.append(_largest(*both)))
    if not apart:  # of another shape
        return f"{what_is_done}, the output has another shape."
    if any(map(math.isnan, apart)):
        return f"{what_is_done}, there is NaN in the output."
    if max(apart) < 1e-10:
        return f"{what_is_done}, the output stays as it is."
    equal = "" if max(apart) > 1e-9 else ", which counts as equal"
    return f"{what_is_done}, the output changes by up to {number_text(max(apart), 2)}{equal}."


def _largest(one, other):
    return (one - other).abs().max().item()


# In the order of the promises.
DONE = (
    (padding_counts, "If 1 is added to everything past the lengths"),
    (key_order_counts, "If keys and values are turned around, without lengths"),
    (query_order_counts, "If the queries are turned around and the rows of the output back again"),
    (batch_counts, "For a sequence alone with its length"),
)

TASK = Task(
    "11-broken_promises",
    RIGHT,
    suspect_cases,
    run=run_promises,
    examine=examine_promises,
    mistakes=read_again(TESTS, PROMISES | ALONE),
    build=build_promises,
    point_out=point_out_difference,
    alone=tuple(ALONE),
    hidden=("suspect",),
    number=5,
)
