"""Task 11.1, mended_attend: attention that changes its caller's queries, repaired."""

import math

from mha_classroom.checks.task import Case, Task, known, read_again
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
        case("scores in the thousands", 2, 3, 4, 2, 3, scale=2000.0),
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
):
    """shrink: what is done with the queries before they are cut."""

    def mended_attend(queries, keys, values, num_heads):
        (_, L, d_model), S = queries.shape, keys.shape[1]
        q = split(shrink(queries, d_model // num_heads, num_heads), L, num_heads)
        k, v = keys_of(keys, L, S, num_heads), keys_of(values, L, S, num_heads)
        if split is not cut:
            k, v = split(keys, S, num_heads), split(values, S, num_heads)
        return join(weigh(q @ k.mT) @ v)

    return mended_attend


def in_place(queries, d, H):
    queries /= math.sqrt(d)
    return queries


def by_queries(k, L, S, H):
    return cut(k, L, H)


QUIET = "Text B: the shape is right"
TESTS = "Tests that people write"

ATTEND = {
    "found": known(
        "Both defects of the found function are still there: keys are cut as if there were as "
        "many as queries, and the caller's queries are divided in place.",
        "Call it with one tensor three times, and look at that tensor afterwards. Then call it "
        "with more keys than queries.",
        shrink=in_place,
        keys_of=by_queries,
    ),
    "in-place": known(
        "Keys may now be more or fewer than queries, but the caller's queries are still changed.",
        "An operator with = at its end, like /=, writes into the tensor that it is given. In "
        "self-attention that tensor is also the keys and the values.",
        section="Five survive the best test",
        shrink=in_place,
    ),
    "keys-cut-by-queries": known(
        "The caller's queries stay as they are now, but keys and values are still cut by the "
        "number of queries.",
        "With as many keys as queries nobody notices. Where does the number of keys stand?",
        keys_of=by_queries,
    ),
    "keys-divided-too": known(
        "Queries and keys are both divided by the root of d, so the scores are divided by d.",
        "In self-attention the found function happened to divide both, since both were one tensor. "
        "How often should a score be divided?",
        section=TESTS,
        shrink=lambda q, d, H: q / d,
    ),
    "values-divided-too": known(
        "Your outputs are the right ones divided by the root of d.",
        "In self-attention the found function also divided the values, since they were the same "
        "tensor. Only scores are to be divided.",
        section=TESTS,
        join=lambda X: join(X / math.sqrt(X.shape[-1])),
    ),
    "not-scaled": known(
        "You do not scale at all.",
        "The line that changes the queries does something wrong and something needed. What is "
        "needed?",
        section=TESTS,
        shrink=lambda q, d, H: q,
    ),
    "scaled-by-d_model": known(
        "You divide by the root of d_model, the width of all heads together.",
        "A score is a product of one head's query and key. How wide are these?",
        section="Equal sizes hide mistakes",
        shrink=lambda q, d, H: q / math.sqrt(d * H),
    ),
    "softmax-over-queries": known(
        "Your weights sum to 1 over the queries.",
        "Each query shares out one unit of attention among the keys.",
        section=TESTS,
        weigh=lambda scores: scores.softmax(-2),
    ),
    "exp-without-maximum": known(
        "exp of a large score is infinite, and infinity divided by infinity is NaN.",
        "torch.softmax subtracts the largest score of a row first.",
        section="Five survive the best test",
        weigh=lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True),
    ),
    "split-without-transpose": known(
        "Your heads hold whole words: the split has lost its transpose.",
        "It was right in the found function. Only two lines of it are wrong.",
        section=QUIET,
        split=lambda X, words, H: X.reshape(len(X), H, words, -1),
    ),
    "merge-without-transpose": known(
        "The heads are joined without swapping back.",
        "It was right in the found function. Only two lines of it are wrong.",
        section=QUIET,
        join=lambda X: X.reshape(X.shape[0], X.shape[2], -1),
    ),
}

TASK = Task(
    "11-mended_attend",
    build_attend(),
    mending_cases,
    run=run_attend,
    mistakes=read_again(QUIET, ATTEND),
    build=build_attend,
    alone=("found", "exp-without-maximum", "split-without-transpose", "values-divided-too"),
    number=1,
)
