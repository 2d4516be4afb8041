"""Task 1.7, query_for: from weights back to a query that has them."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import describe, numbers_text
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    and_in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.attention_math.runs import run_query


def query_for(keys, weights):
    """Between two keys the unknown constant cancels."""
    return torch.linalg.pinv(keys[1:] - keys[0]) @ torch.log(weights[1:] / weights[0])


@and_in_float32
def query_cases(draw):
    """Fewer keys than features, as many, and one more, where few scores can be had."""

    def case(name, num_keys, d, spread=1.0):
        # Keys whose differences point in directions of their own, so that a query exists.
        keys = 0.15 * draw.normal(num_keys, d)
        keys[torch.arange(min(num_keys, d)), torch.arange(min(num_keys, d))] += 2
        return _case(name, keys, (spread * draw.normal(num_keys)).softmax(-1))

    transposed = (0.3 * draw.normal(5, 3) + 2 * torch.eye(5, 3, dtype=torch.float64)).T
    return [
        _case("2 keys of width 2", [[1.0, 0], [2, 2]], [0.2, 0.8]),
        _case("3 keys of width 2", [[1.0, 0], [0, 1], [2, 1]], [0.125, 0.25, 0.625]),
        _case("2 keys of width 1", [[3.0], [1]], [0.9, 0.1]),
        case("3 keys of width 7", 3, 7),
        case("as many keys as their width", 5, 5),
        case("4 keys of width 3", 4, 3),
        case("8 keys of width 7", 8, 7),
        case("weights that are far apart", 4, 3, spread=5.0),
        _case("keys far from 0", [[101.0, 40], [100, 41], [102, 41]], [0.5, 0.3, 0.2]),
        _case("keys are a transposed tensor", transposed, draw.normal(3).softmax(-1)),
        _case("2 keys on one line through 0", [[0.0, 1], [0, 2]], [0.3, 0.7]),
        _case("3 keys on one line", [[0.0, 0], [1, 1], [2, 2]], [1 / 7, 2 / 7, 4 / 7]),
        _case("one key twice", [[1.0, 0], [0, 1], [0, 1]], [0.2, 0.4, 0.4]),
        _case("2 equal keys", [[1.0, 2], [1, 2]], [0.5, 0.5]),
        _case(
            "keys that differ little in one feature",
            [[1.0, 1e-5], [0.5, 4e-5], [-1.0, 2e-5]],
            [0.3, 0.6, 0.1],
        ),
    ]


def _case(name, keys, weights):
    keys, weights = (torch.as_tensor(X, dtype=torch.float64) for X in (keys, weights))
    return Case(name, {"keys": keys, "weights": weights})


@total
def examine_query(inputs, seen):
    """The weights that the learner's query has with these keys.

    Raises: AnswerError if it is no query, or so long that its weights are NaN.
    """
    query, d = seen["weights"], inputs["keys"].shape[1]
    if not torch.is_tensor(query):
        raise AnswerError(f"query_for has to return a tensor ({d},), got {describe(query)}.")
    if query.dtype not in (torch.float32, torch.float64):
        raise AnswerError(f"The query has to hold float64 numbers, got {query.dtype}.")
    if tuple(query.shape) != (d,):
        raise AnswerError(
            f"The query has shape {tuple(query.shape)}, expected ({d},): one number for each "
            "feature of a key."
        )
    if not query.isfinite().all():
        raise AnswerError("The query holds inf or NaN.")
    keys = inputs["keys"]
    return torch.softmax(keys.double() @ query.double(), dim=-1).to(keys.dtype)


def _with_pinv(A, b):
    return torch.linalg.pinv(A) @ b


def point_out_scores(inputs, weights):
    """Differences of scores, with the learner's query and as the weights want them."""
    keys, wanted = inputs["keys"], inputs["weights"]
    mine, right = ((X / X[0]).log()[1:] for X in (weights, wanted))
    said = (
        f"Your query's scores differ from the first of them by {numbers_text(mine)}. For these "
        f"weights they have to differ by {numbers_text(right)}."
    )
    many = torch.linalg.matrix_rank(keys[1:] - keys[0]) < keys.shape[1]
    if many and ((weights - wanted).abs() < NEAR).all():
        said += (
            " Many queries give these weights. If you invert a table such as A.T @ A: here it has "
            "no inverse, and what comes out is made of rounding errors. If not, what has to hold "
            "for the scores of two keys?"
        )
    return said


def build_query(
    scores=torch.log,
    shift=lambda keys, scores: (keys[1:] - keys[0], scores[1:] - scores[0]),
    solve=_with_pinv,
    finish=unchanged,
):
    """scores: of the weights. shift: takes the unknown constant out of keys and scores. solve: the
    query from what is left. finish: of the query.
    """

    def query_for(keys, weights):
        return finish(solve(*shift(keys, scores(weights))))

    return query_for


def _constant_first(keys, weights):
    ones = torch.ones(len(keys), 1, dtype=keys.dtype)
    return _with_pinv(torch.cat([ones, keys], dim=1), weights.log())[:-1]


def _constant_last(keys, weights):
    return _constant_returned_too(keys, weights)[1:]


def _two_keys(keys, weights):
    apart = keys[1] - keys[0]
    return apart * torch.log(weights[1] / weights[0]) / (apart @ apart)


def _first_and_last(keys, weights):
    apart = keys[-1] - keys[0]
    return apart * torch.log(weights[-1] / weights[0]) / (apart @ apart)


def _constant_returned_too(keys, weights):
    ones = torch.ones(len(keys), 1, dtype=keys.dtype)
    return _with_pinv(torch.cat([keys, ones], dim=1), weights.log())


def _constant_only_with_more_keys(keys, weights):
    if len(keys) <= keys.shape[1]:
        return _with_pinv(keys, weights.log())
    return query_for(keys, weights)


def _rows_independent(A, b):
    return A.T @ torch.linalg.inv(A @ A.T) @ b


def _with_ridge(A, b):
    return torch.linalg.solve(A.T @ A + 0.01 * torch.eye(A.shape[1], dtype=A.dtype), A.T @ b)


def _added_up(keys, scores):
    return keys.T @ scores


def _centred(keys, scores):
    return keys - keys.mean(0), scores - scores.mean()


def _with_tolerance(rtol):
    return lambda A, b: torch.linalg.pinv(A, rtol=rtol) @ b


def _weights_of(answer, inputs):
    return examine_query(inputs, run_query(answer, inputs))


def _without_last_difference(keys, weights):
    return query_for(keys[:-1], weights[:-1])  # without any, if there are two keys


def _without_first_difference(keys, weights):
    return query_for(keys[1:], weights[1:])


def _equal_keys_merged(keys, weights):
    different, place = torch.unique(keys, dim=0, return_inverse=True)
    merged = weights.new_zeros(len(different)).index_add(0, place, weights)
    return query_for(different, merged)


def _taken_off(key, score):
    """The shift that takes this key, given by its place, and another score off all others."""
    return lambda keys, scores: (keys - keys[key(scores)], scores - score(scores))


def _first(scores):
    return 0


def _last(scores):
    return -1


REFERENCES = tuple(
    _taken_off(key, score)
    for key, others in (
        (_first, (torch.max, torch.mean, lambda scores: scores[-1])),
        (_last, (torch.max, torch.mean, lambda scores: scores[0])),
        (torch.argmax, (torch.mean, lambda scores: scores[0], lambda scores: scores[-1])),
    )
    for score in others
)

NEAR = 0.1


def _nearly(inputs, weights):
    """Whether the query gives nearly these weights."""
    keys, right = inputs["keys"], inputs["weights"]
    if not torch.is_tensor(weights) or weights.shape != right.shape:
        return False
    # Steps that are small enough elsewhere, or numbers that are, are not here.
    hard = right.max() > 100 * right.min() or (keys - keys[0]).abs().amax(0).min() < 0.01
    hard = hard or torch.linalg.matrix_rank(keys[1:] - keys[0]) < min(len(keys) - 1, keys.shape[1])
    twins = len(keys.unique(dim=0)) < len(keys)  # who merges them is not far off
    return bool(hard or ((weights - right).abs() < NEAR / (1 + twins)).all())


SHIFT = "Only differences between scores count"
SOFTMAX = "Softmax"

QUERY = {
    "weights-as-scores": known(
        "You look for a query whose scores are the weights themselves.",
        "A softmax comes between: it takes powers of the scores. What undoes a power of e?",
        section=SOFTMAX,
        scores=torch.clone,
    ),
    "logarithm-to-base-2": known(
        "You take logarithms to base 2.",
        "Softmax takes powers of e.",
        section=SOFTMAX,
        scores=torch.log2,
    ),
    "logarithm-to-base-10": known(
        "You take logarithms to base 10.",
        "Softmax takes powers of e.",
        section=SOFTMAX,
        scores=torch.log10,
    ),
    "odds": known(
        "You take the logarithm of weight / (1 - weight).",
        "That undoes a sigmoid, which turns each score into a weight by itself. In a softmax a "
        "weight is one power divided by the sum of all.",
        section=SOFTMAX,
        scores=torch.logit,
    ),
    "powers-for-logarithms": known(
        "You take powers of the weights.",
        "Softmax takes powers of the scores. Here you go the other way: what undoes a power of e?",
        section=SOFTMAX,
        scores=torch.exp,
    ),
    "constant-forgotten": known(
        "You ask for one list of scores, although others have the same weights.",
        "With more keys than features a query for just that list mostly does not exist, and what "
        "you get has other scores. Which other lists may you ask for?",
        shift=lambda keys, scores: (keys, scores),
    ),
    "first-score-taken-off-the-scores-only": known(
        "You make the first score 0 by a shift of all scores, but leave the keys as they are.",
        "That asks for a score of exactly 0 at the first key. Only the differences between the "
        "scores are known: what about the keys has to have these differences?",
        shift=lambda keys, scores: (keys, scores - scores[0]),
    ),
    "mean-taken-off-the-scores-only": known(
        "You subtract the mean from all scores, but leave the keys as they are.",
        "That asks for scores whose mean is exactly 0. Only the differences between the scores "
        "are known.",
        shift=lambda keys, scores: (keys, scores - scores.mean()),
    ),
    "largest-taken-off-the-scores-only": known(
        "You make the largest score 0 by a shift of all scores, but leave the keys as they are.",
        "That asks for a score of exactly 0 at the best key. Only the differences between the "
        "scores are known.",
        shift=lambda keys, scores: (keys, scores - scores.max()),
    ),
    "keys-shifted-scores-not": known(
        "You take differences of the keys, but not of the scores.",
        "What a query has with the difference of two keys is the difference of two scores.",
        shift=lambda keys, scores: (keys[1:] - keys[0], scores[1:]),
    ),
    "features-centred": known(
        "You take off each key the mean of its own features.",
        "The unknown constant is one number for all keys. What can be taken off the keys, the same "
        "from each, so that it cancels?",
        shift=lambda keys, scores: (keys - keys.mean(1, keepdim=True), scores - scores.mean()),
    ),
    "centred-on-one-number": known(
        "You take one and the same number off all numbers of the keys: their mean over both axes.",
        "The unknown constant cancels if the same key is taken off each key. Which axis is the one "
        "to take the mean over?",
        shift=lambda keys, scores: (keys - keys.mean(), scores - scores.mean()),
    ),
    "constant-first-but-last-dropped": known(
        "Your unknown constant stands first, with the column of ones, and you drop the last number "
        "of the solution.",
        "What is left begins with the constant and lacks the query's last feature.",
        wrong=_constant_first,
    ),
    "constant-last-but-first-dropped": known(
        "Your unknown constant stands last, with the column of ones, and you drop the first number "
        "of the solution.",
        "What is left lacks the query's first feature and ends with the constant.",
        wrong=_constant_last,
    ),
    "neighbours-and-the-first-mixed": known(
        "You take differences between neighbouring keys, and of the scores differences from the "
        "first.",
        "What a query has with the difference of two keys is the difference of the scores of these "
        "two.",
        shift=lambda keys, scores: (keys.diff(dim=0), scores[1:] - scores[0]),
    ),
    "the-first-and-neighbours-mixed": known(
        "You take differences of the keys from the first, and of the scores between neighbours.",
        "What a query has with the difference of two keys is the difference of the scores of these "
        "two.",
        shift=lambda keys, scores: (keys[1:] - keys[0], scores.diff()),
    ),
    "two-references": known(
        "You subtract one key from all keys, but from the scores another number than the score of "
        "that key.",
        "What a query has with the difference of two keys is the difference of the scores of these "
        "two. Which score belongs to the key that you subtract?",
        **any_of(build_query, shift=REFERENCES, run=_weights_of),
    ),
    "constant-returned-too": known(
        "You return one number too many: the unknown constant stands beside the query.",
        "You need it to solve the equations. The query is the rest of the solution.",
        wrong=_constant_returned_too,
    ),
    "constant-only-with-more-keys": known(
        "With no more keys than features you ask for one list of scores, although others have the "
        "same weights.",
        "If keys lie on one line through 0, say, a query for just that list need not exist, and "
        "you get the one that comes nearest. With more keys you take the constant out: is it any "
        "better known here?",
        wrong=_constant_only_with_more_keys,
    ),
    "equations-taken-for-independent": known(
        "Your way fails if two keys are the same, or if several lie on one line.",
        "Then one equation follows from the others, and a table of them has no inverse. The "
        "statement names a function that does without.",
        section="Scores",
        solve=_rows_independent,
    ),
    "equations-solved-as-independent": known(
        "Your way fails if two keys are the same, or if several lie on one line.",
        "Then one equation follows from the others, and a table of them has no inverse. The "
        "statement names a function that does without.",
        section="Scores",
        solve=lambda A, b: A.T @ torch.linalg.solve(A @ A.T, b),
    ),
    "first-and-last-only": known(
        "You compare the first key with the last one only.",
        "That makes the ratio of two weights right. There may be more keys, and each of them has "
        "an equation.",
        wrong=_first_and_last,
    ),
    "last-key-left-out": known(
        "You leave the last key out: is that because the weights sum to 1?",
        "Its weight follows from the others only if its score fits, and nothing in your equations "
        "makes it fit. Besides, of the other scores only the differences are known.",
        wrong=lambda keys, weights: _with_pinv(keys[:-1], weights[:-1].log()),
    ),
    "last-difference-left-out": known(
        "No equation of yours has the last key in it.",
        "S keys have S - 1 differences, between neighbours or from one of them, and yours are one "
        "short: where does the loop, or the slice, end?",
        wrong=_without_last_difference,
    ),
    "first-difference-left-out": known(
        "No equation of yours has the first key in it.",
        "S keys have S - 1 differences, between neighbours or from one of them, and yours are one "
        "short: where does the loop, or the slice, begin?",
        wrong=_without_first_difference,
    ),
    "equal-keys-merged": known(
        "You merge equal keys and add up their weights.",
        "Two keys at one place are two keys: each has its own weight, and the score belongs to "
        "that, not to the sum of both.",
        wrong=_equal_keys_merged,
    ),
    "small-differences-ignored": known(
        "You take directions in which the keys differ little for none: a large rtol, or rcond, of "
        "pinv or lstsq?",
        "A small difference of keys is what tells them apart. The default leaves out only what is "
        "due to rounding.",
        **any_of(build_query, solve=map(_with_tolerance, (1e-2, 1e-1, 1e-3)), run=_weights_of),
    ),
    "two-keys-only": known(
        "You compare the first two keys only.",
        "That makes the ratio of two weights right. There may be more keys, and each of them has "
        "an equation.",
        section=SOFTMAX,
        wrong=_two_keys,
    ),
    "keys-turned": known(
        "You turn the keys before you solve.",
        "As they are, keys @ query is the list of scores, one equation for each key. Which of the "
        "two, the table or the turned one, is multiplied by the query?",
        section="Scores",
        wrong=lambda keys, weights: _with_pinv(keys.T, weights.log()),
    ),
    "sign-lost": known(
        "Your query has the wrong sign.",
        "The key with the largest weight gets the smallest with it.",
        finish=torch.neg,
    ),
    "scaled": known(
        "Your query is too long by a factor of √d_k.",
        "That would be right if the scores were divided by it, as in lesson 2. Here they are not.",
        finish=lambda query: query * len(query) ** 0.5,
    ),
    "logarithms-times-keys": known(
        "You multiply the logarithms of the weights by the keys and add up.",
        "Keys times query is scores. To get from scores to the query is not a product with the "
        "keys, but the solution of equations, one for each key. And of the scores only the "
        "differences are known.",
        section="Scores",
        wrong=lambda keys, weights: keys.T @ weights.log(),
    ),
    "keys-added-up": known(
        "You multiply scores by keys, or differences of them, and add up.",
        "Keys times query is scores. To get from scores to the query is not a product with the "
        "keys, but the solution of equations, one for each key.",
        section="Scores",
        **any_of(
            build_query,
            {"solve": _added_up},
            {"solve": _added_up, "shift": _centred},
            run=_weights_of,
        ),
    ),
    "average-of-the-keys": known(
        "You return the average of the keys with these weights.",
        "It is near to the keys with large weights, but its scores are whatever they are.",
        section="The output is an average of the values",
        wrong=lambda keys, weights: weights @ keys,
    ),
    "best-key": known(
        "You return the key with the largest weight.",
        "It mostly prefers itself, but nothing makes the other weights right.",
        section="Why queries and keys have two matrices",
        wrong=lambda keys, weights: keys[weights.argmax()].clone(),
    ),
    "solve-for-square-tables": known(
        "You use torch.linalg.solve, which wants as many keys as features.",
        "There may be fewer keys, or one more. The statement names a function for all of them.",
        section="Scores",
        wrong=lambda keys, weights: torch.linalg.solve(keys, weights.log()),
    ),
    "inverse-of-square-tables": known(
        "You use the inverse, which there is only for as many keys as features.",
        "There may be fewer keys, or one more. The statement names a function for all of them.",
        section="Scores",
        wrong=lambda keys, weights: torch.linalg.inv(keys) @ weights.log(),
    ),
    "scores-returned": known(
        "You return the scores.",
        "One step is missing: the query that has these scores with the keys.",
        section="Scores",
        wrong=lambda keys, weights: weights.log(),
    ),
    "only-nearly": known(
        "Your query is right, or nearly so, in the easy cases. Where keys are alike or on one "
        "line, or weights far apart, it may be far off.",
        "That comes of steps that stop too early, of a small number added to the equations or the "
        "weights, of weights that are cut off, of directions that are left out, of rounding, or "
        'of torch.linalg.lstsq without driver="gelsd". The equations have an exact solution.',
        solve=_with_ridge,
        shows=_nearly,
    ),
    "query-as-a-column": known(
        "Your query is a table with one column.",
        "A query is a list of d numbers.",
        section="Scores",
        finish=lambda query: query[:, None],
    ),
}

TASK = Task(
    "01-query_for",
    query_for,
    query_cases,
    run=run_query,
    examine=examine_query,
    returns=("the weights of your query",),
    mistakes=read_again(SHIFT, QUERY),
    build=build_query,
    point_out=point_out_scores,
    number=7,
    since=2,
    alone=(
        *("query-as-a-column", "only-nearly", "two-references"),
        *("equations-taken-for-independent", "equations-solved-as-independent"),
    ),
)
