"""Task 11.1, mended_attend: attention that changes its caller's queries, repaired."""

import math

from mha_classroom.checks.forms import CUT_OFF_AT, any_of
from mha_classroom.checks.task import Case, Task, in_float32, known, read_again
from mha_classroom.tasks.cross_attention.bahdanau_step import SCORES_CUT_OFF
from mha_classroom.tasks.reading_published_code.mended_step import (
    LARGE_EXPS,
    TOO_LARGE,
)
from mha_classroom.tasks.reading_published_code.runs import run_attend


def mending_cases(draw):
    def case(name, B, L, S, H, d, scale=1.0):
        inputs = {"queries": draw.normal(B, L, H * d, scale=scale)}
        if S:
            inputs["keys"], inputs["values"] = draw.normal(B, S, H * d), draw.normal(B, S, H * d)
        return Case(name, inputs | {"num_heads": H})

    return [
        case("one tensor for queries, keys and values", 1, 3, None, 2, 2),
        case("3 queries, 5 keys", 1, 3, 5, 2, 2),
        case("2 sequences, 5 queries, 7 keys, 3 heads of width 4", 2, 5, 7, 3, 4),
        case("6 queries, 4 keys, 5 heads of width 2", 3, 6, 4, 5, 2),
        case("one tensor, 3 sequences, 4 heads of width 3", 3, 5, None, 4, 3),
        case("as many keys as queries, and other ones", 2, 4, 4, 2, 5),
        case("one query, twice as many keys as queries", 2, 1, 2, 3, 3),
        case("scores in the millions", 2, 3, 4, 2, 3, scale=2e6),
        case("one head", 2, 3, 5, 1, 4),
        case("heads of width 1", 1, 3, 4, 3, 1),
        in_float32(case("one key, numbers in float32", 2, 3, 1, 2, 4)),
    ]


def cut(X, words, H):
    return X.reshape(len(X), words, H, -1).movedim(2, 1)  # (B, H, words, d)


def join(X):
    return X.movedim(1, 2).flatten(2)


def build_attend(
    shrink=lambda q, d, H: q / math.sqrt(d),
    keys_of=lambda k, L, S, H: cut(k, S, H),
    split=cut,
    weigh=lambda scores: scores.softmax(-1),
    join=join,
    values_of=lambda keys, values: values,
    give_back=lambda queries, d: None,
    late=False,
):
    """shrink: what is done with the queries before they are cut. give_back: with them after the
    weights, or late, at the end, in place."""

    def mended_attend(queries, keys, values, num_heads):
        (_, L, d_model), S = queries.shape, keys.shape[1]
        d, values = d_model // num_heads, values_of(keys, values)
        q = split(shrink(queries, d, num_heads), L, num_heads)
        k, v = keys_of(keys, L, S, num_heads), keys_of(values, L, S, num_heads)
        if split is not cut:
            k, v = split(keys, S, num_heads), split(values, S, num_heads)
        weights = weigh(q @ k.mT)
        if not late:
            give_back(queries, d)
        output = join(weights @ v)
        if late:
            give_back(queries, d)
        return output

    return mended_attend


def in_place(queries, d, H):
    queries /= math.sqrt(d)
    return queries


def by_queries(k, L, S, H):
    return cut(k, L, H)


def divided_and_joined(X):
    return join(X / math.sqrt(X.shape[-1]))


def multiplied_back(queries, d):
    queries *= math.sqrt(d)


def by_root_of_keys(scores):
    return (scores / math.sqrt(scores.shape[-1])).softmax(-1)


def one_head(X, words, H):
    return X[:, None]


def interleaved(X, words, H):
    return X.reshape(len(X), words, -1, H).movedim(3, 1)


def joined_interleaved(X):
    return X.movedim(1, -1).flatten(2)


def queries_for_keys(queries, keys, values, num_heads):
    q = cut(queries / math.sqrt(queries.shape[2] // num_heads), queries.shape[1], num_heads)
    return join((q @ q.mT).softmax(-1) @ cut(values, values.shape[1], num_heads))


def words_in_front(queries, keys, values, num_heads):
    q, k, v = (X.unflatten(-1, (num_heads, -1)) for X in (queries, keys, values))
    return ((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v).flatten(2)


def attend_stages(inputs):
    queries, H = inputs["queries"], inputs["num_heads"]
    keys, values = inputs.get("keys", queries), inputs.get("values", queries)
    q, k, v = (cut(X, X.shape[1], H) for X in (queries, keys, values))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.softmax(-1)
    return {
        "the divided scores": scores,
        "the weights": weights,
        "each head's output": weights @ v,
        "the joined heads": join(weights @ v),
    }


EQUAL = "Equal sizes hide mistakes"
QUIET = "Text B: the shape is right"
TESTS = "Tests that people write"

ATTEND = {
    "in-place": known(
        "The caller's queries are still changed.",
        "An operator with = at its end, like /=, writes into the tensor that it is given, and so "
        "does a method with _ at its end. A view of the queries has the same numbers as they. In "
        "self-attention that tensor is also the keys and the values.",
        section=EQUAL,
        shrink=in_place,
    ),
    "keys-cut-by-queries": known(
        "Keys or values, or both, are still cut by the number of queries.",
        "With as many keys as queries nobody notices. Where does the number of keys stand?",
        keys_of=by_queries,
    ),
    "keys-cut-off": known(
        "You leave out the keys that are past the number of queries.",
        "A query looks at all S keys, whatever the number of queries is.",
        keys_of=lambda k, L, S, H: cut(k[:, :L], min(L, S), H),
    ),
    "keys-divided-too": known(
        "Your scores are divided by d: queries and keys are both divided by the root of d, or "
        "queries and then scores, or the root is missing.",
        "In self-attention the found function happened to divide both, since both were one tensor. "
        "How often should a score be divided, and by what?",
        section=TESTS,
        shrink=lambda q, d, H: q / d,
    ),
    "not-scaled": known(
        "The scores in your softmax are not scaled at all.",
        "The line that changes the queries does something wrong and something needed. What is "
        "needed?",
        section=TESTS,
        shrink=lambda q, d, H: q,
    ),
    "scaled-by-something-else": known(
        "The scores are divided by something else than the root of d, or multiplied by it.",
        "A score is a sum of d products: it grows with d, the width of one head. What makes it as "
        "large as before?",
        section=EQUAL,
        **any_of(
            build_attend,
            {"shrink": lambda q, d, H: q / math.sqrt(d * H)},
            {"shrink": lambda q, d, H: q / math.sqrt(H)},
            {"shrink": lambda q, d, H: q * math.sqrt(d)},
            {"shrink": lambda q, d, H: q / (d / 2)},
            {"shrink": lambda q, d, H: q / math.sqrt(q.shape[1])},
            {"shrink": lambda q, d, H: q, "weigh": by_root_of_keys},
            run=run_attend,
        ),
    ),
    "one-head": known(
        "You never cut into heads: one head attends with all features.",
        "Each head has weights of its own, made of its own d features.",
        section=QUIET,
        split=one_head,
    ),
    **{
        id: known(
            "Your heads take every H-th feature.",
            "Head 0 has the first d features, head 1 the next d: each has d neighbours, in "
            "queries, keys and values, and in the output.",
            section=QUIET,
            **parts,
        )
        for id, parts in (
            ("split-interleaved", {"split": interleaved}),
            ("heads-interleaved", {"split": interleaved, "join": joined_interleaved}),
        )
    },
    "queries-for-keys": known(
        "The queries stand where the keys belong.",
        "In self-attention both are one tensor, and as long as it is not divided nobody notices.",
        section=EQUAL,
        wrong=queries_for_keys,
    ),
    "keys-for-values": known(
        "The keys stand where the values belong.",
        "In self-attention both are one tensor, and nobody notices. The weights say how much of "
        "each value comes out.",
        section=EQUAL,
        values_of=lambda keys, values: keys,
    ),
    "softmax-over-another-axis": known(
        "Your weights sum to 1 over the queries, or over the heads.",
        "Each query of each head shares out one unit of attention among the keys.",
        section=TESTS,
        **any_of(
            build_attend,
            weigh=(lambda scores: scores.softmax(-2), lambda scores: scores.softmax(1)),
            run=run_attend,
        ),
    ),
    "merge-without-transpose": known(
        "The heads are joined without swapping back.",
        "The found function does swap them back: this is neither of its two defects.",
        section=QUIET,
        join=lambda X: X.reshape(X.shape[0], X.shape[2], -1),
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "exp-too-large": known(
        *TOO_LARGE,
        section=TESTS,
        **any_of(build_attend, weigh=LARGE_EXPS, run=run_attend),
    ),
    "scores-cut-off": known(
        *SCORES_CUT_OFF,
        section=TESTS,
        **any_of(
            build_attend,
            weigh=[
                lambda scores, ends=ends: scores.clamp(*ends).softmax(-1) for ends in CUT_OFF_AT
            ],
            run=run_attend,
        ),
    ),
    "as-found": known(
        "Both defects are still there: the caller's queries are changed, and keys or values, or "
        "both, are cut by the number of queries.",
        "An operator with = at its end, like /=, writes into the tensor that it is given. And "
        "where in the shapes does the number of keys stand?",
        section=EQUAL,
        wrong=build_attend(shrink=in_place, keys_of=by_queries),
    ),
    **{
        id: known(
            "The caller's queries are divided in place and multiplied back later.",
            "In self-attention they are also the keys and the values, and what is computed in the "
            "meantime is made of divided ones. And a number that is divided and multiplied back is "
            "not always the same. Work on a new tensor.",
            section=EQUAL,
            shrink=in_place,
            give_back=multiplied_back,
            late=late,
        )
        for id, late in (
            ("divided-in-place-and-back", False),
            ("divided-in-place-and-back-at-the-end", True),
        )
    },
    "divided-after-the-softmax": known(
        "You divide the weights, the values or the output by the root of d.",
        "In self-attention the found function divided the values, too, since they were the same "
        "tensor. Only scores are to be divided, before the softmax.",
        section=TESTS,
        **any_of(
            build_attend,
            {"shrink": lambda q, d, H: q, "join": divided_and_joined},
            {"join": divided_and_joined},
            run=run_attend,
        ),
    ),
    "words-in-front-of-heads": known(
        "The heads of a word attend to each other.",
        "A word has to attend to words, in each head for itself. Scores are made over the last two "
        "axes, and attention wants (B, H, L, d).",
        section=QUIET,
        wrong=words_in_front,
    ),
    "split-without-transpose": known(
        "Your heads hold some words each, and not some features of every word: the split has lost "
        "its transpose.",
        "The found function does transpose there: this is neither of its two defects.",
        section=QUIET,
        split=lambda X, words, H: X.reshape(len(X), H, words, -1),
    ),
    "split-and-joined-without-transpose": known(
        "Your heads hold some words each, and not some features of every word: split and join have "
        "lost their transpose.",
        "The found function has both: this is neither of its two defects. A reshape deals the "
        "numbers out as they lie in memory, word after word.",
        section=QUIET,
        split=lambda X, words, H: X.reshape(len(X), H, words, -1),
        join=lambda X: X.reshape(X.shape[0], X.shape[2], -1),
    ),
}

TASK = Task(
    "11-mended_attend",
    build_attend(),
    mending_cases,
    run=run_attend,
    mistakes=read_again(QUIET, ATTEND | ALONE),
    build=build_attend,
    stages=attend_stages,
    alone=tuple(ALONE),
    number=1,
)
