"""Task 7.1, most_attended: the tokens that a head looks at most."""

import numbers

import numpy as np
import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import describe, number_text, numbers_text
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again, unchanged
from mha_classroom.tasks.seeing_attention.runs import run_attended
from mha_course.explorer import heads


def attended_cases(draw):
    """Equal words, equal means, almost equal ones, every k, one token."""

    def case(name, tokens, weights=None, **options):
        weights = random_weights(draw, len(tokens), len(tokens)) if weights is None else weights
        # The tokens of a short text stand in the name, since a list is shown by its length only.
        name = f"{name}, tokens {' '.join(tokens)}" if len(tokens) < 9 else name
        return Case(name, {"weights": weights, "tokens": tokens, **options})

    def words(count):
        return [f"w{place}" for place in draw.normal(count).argsort().tolist()]

    small = table(
        [0.4, 0.1, 0.4, 0.1], [0.2, 0.1, 0.6, 0.1], [0.1, 0.2, 0.5, 0.2], [0.3, 0.1, 0.3, 0.3]
    )
    even = torch.full((4, 4), 0.25, dtype=torch.float64)
    steps = table([1, 2, 1, 4, 2, 4, 1, 1]).expand(8, 8) / 16
    close = table([0.25, 0.2500004, 0.3, 0.1999996]).expand(4, 4)
    left_out = table([0.0, 0.5, 0.0, 0.125, 0.375]).expand(5, 5)
    causal = random_weights(draw, 6, 6).tril()
    twice = ["the", "cat", "saw", "the", "dog"]
    many = words(17)
    many[6] = many[0]  # the same word with the same mean
    return [
        case("no k given", ["[CLS]", "the", "cat", "[SEP]"], small),
        case("a word that stands there twice", twice, _often_twice(), k=2),
        case("equal weights everywhere", ["[CLS]", "the", "cat", "[SEP]"], even, k=2),
        case("some means are equal", words(8), steps, k=5),
        case("k = 1", words(7), k=1),
        case("as many as there are", words(5), k=5),
        case("more than there are", words(3), k=7),
        case("one token", ["hello"], k=2),
        case("13 tokens, no k given", words(13)),
        case("17 tokens, many equal", many, _many_equal(17), k=11),
        case("[CLS] gets most", ["[CLS]", *words(9), "[SEP]"], _parked(draw, 11), k=4),
        case("the same words again and again", twice * 3, _parked(draw, 15), k=6),
        case("two means are almost equal", words(4), close),
        case("two tokens get nothing", words(5), left_out, k=5),
        case("a causal mask", words(6), causal / causal.sum(dim=1, keepdim=True), k=4),
        case("weights are not contiguous", words(7), random_weights(draw, 7, 7).T.contiguous().T),
    ]


def random_weights(draw, *shape, scale=2.0):
    """Weights as softmax makes them, (..., L, S)."""
    return draw.normal(*shape, scale=scale).softmax(dim=-1)


def table(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def _often_twice():
    """Both places of the same word are among the first two, the later one ahead; no two means are
    equal, so that the third is the same for all ways to sort."""
    return table(
        [0.3, 0.1, 0.1, 0.4, 0.1],
        [0.2, 0.1, 0.2, 0.4, 0.1],
        [0.4, 0.1, 0.1, 0.3, 0.1],
        [0.3, 0.1, 0.2, 0.3, 0.1],
        [0.3, 0.1, 0.1, 0.3, 0.2],
    )


def _many_equal(length):
    """Rows whose means fall into three groups of equal ones, exact in binary."""
    row = torch.tensor([4.0, 1, 2] * length)[:length].double() / 64
    return row.expand(length, length).clone()


def _parked(draw, length):
    weights = random_weights(draw, length, length) / 2
    weights[:, 0] += 0.5
    return weights


@total
def examine_attended(inputs, seen):
    """The tokens in one line, and the numbers.

    Raises: AnswerError for what is no list of pairs of a token and a number.
    """
    pairs = seen["pairs"]
    if seen["tokens"] != inputs["tokens"]:
        raise AnswerError("most_attended changes the caller's list of tokens.")
    if not isinstance(pairs, (list, tuple)):
        raise AnswerError(f"most_attended has to return a list of pairs, got {describe(pairs)}.")
    for place, pair in enumerate(pairs):
        _check_pair(place, pair)
    return " ".join(token for token, _ in pairs), floats_of([number for _, number in pairs])


def _check_pair(place, pair):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise AnswerError(
            f"Each entry of the list has to be a pair (token, mean weight); entry {place} is "
            f"{describe(pair)}."
        )
    token, number = pair
    if not isinstance(token, str):
        raise AnswerError(
            f"The first of a pair has to be a token, a str; in entry {place} it is "
            f"{describe(token)}."
        )
    scalar = torch.is_tensor(number) and number.dim() == 0 and number.is_floating_point()
    if not scalar and (isinstance(number, bool) or not isinstance(number, numbers.Real)):
        raise AnswerError(
            f"The second of a pair has to be a number; in entry {place} it is {describe(number)}."
        )


def floats_of(numbers):
    """The numbers in a tensor: float32 if one of them is, else float64."""
    narrow = any(getattr(x, "dtype", None) in (torch.float32, np.float32) for x in numbers)
    found = torch.tensor([float(x) for x in numbers], dtype=torch.float64)
    return found.float() if narrow else found


def point_out_column(inputs, seen):
    """What the queries give to the first key that is missing or has another number."""
    weights, tokens = inputs["weights"], inputs["tokens"]
    text, numbers = seen
    asked = min(inputs.get("k", 3), len(tokens))
    if len(numbers) != asked:
        return f"You return {len(numbers)} pairs, and {asked} are asked for."
    means = weights.mean(dim=0)
    for place, key in enumerate(means.argsort(descending=True, stable=True).tolist()):
        same_token = text.split()[place : place + 1] == [tokens[key]]
        if not same_token or not abs(numbers[place] - means[key]) < 1e-9:
            break
    return (
        f"Key {key}, {tokens[key]!r}, gets these weights from the queries: "
        f"{numbers_text(weights[:, key])}. Their mean is {number_text(means[key].item(), 4)}."
    )


def build_attended(
    strength=lambda weights: weights.mean(dim=0),
    order=lambda means: means.argsort(descending=True, stable=True).tolist(),
    take=lambda positions, k: positions[:k],
    number=float,
    pair=lambda tokens, position, number: (tokens[position], number),
    finish=unchanged,
):
    """strength: a number for each key, from the weights. order: of the positions, from the numbers.
    take: which positions are returned. number: what is said of the strength. pair: of a token and
    that number. finish: of the list.
    """

    def most_attended(weights, tokens, k=3):
        numbers = strength(weights)
        positions = take(order(numbers), k)
        return finish([pair(tokens, place, number(numbers[place])) for place in positions])

    return most_attended


ROWS = "Rows are queries, columns are keys"
DIGITS = (2, 1, 3, 4, 5, 6, 7)


def _means_of_rows(inputs, value):
    """Whether the numbers are those of the rows; they are alike, so any tokens may come first."""
    expected = inputs["weights"].mean(dim=1).sort(descending=True).values[: inputs.get("k", 3)]
    same_length = len(value[1]) == len(expected)
    return same_length and torch.allclose(value[1].double(), expected, rtol=0, atol=1e-6)


def _without_itself(weights):
    """What the other queries give to a key, added up."""
    return weights.sum(dim=0) - weights.diagonal()


def _seen(answer, inputs):
    return examine_attended(inputs, run_attended(answer, inputs))


def _without_itself_one_by_one(weights, tokens, k=3):
    """A mean in plain Python, which of one token has nothing to divide by."""
    means, rows = [], weights.tolist()
    for key in range(len(rows)):
        given = [row[key] for query, row in enumerate(rows) if query != key]
        means.append(sum(given) / len(given))
    order = sorted(range(len(means)), key=lambda key: -means[key])
    return [(tokens[key], means[key]) for key in order[:k]]


def _rounded(digits):
    return lambda number: round(float(number), digits)


def _means_rounded(digits):
    return lambda weights: table(*map(_rounded(digits), weights.mean(dim=0).tolist()))


def _means_rounded_by_torch(digits):
    return lambda weights: weights.mean(dim=0).round(decimals=digits)


def _order_of_rounded(digits):
    """The places in the order of rounded numbers, the earlier of equal ones first."""
    return lambda means: sorted(
        range(len(means)), key=lambda place: -round(means[place].item(), digits)
    )


def _votes(weights):
    """The share of the queries whose largest weight is on this key."""
    return weights.argmax(dim=1).bincount(minlength=len(weights)).double() / len(weights)


def _collected(add):
    """Pairs with each token once: `add` says what becomes of the second of its kind."""

    def most_attended(weights, tokens, k=3):
        found = {}
        for token, mean in zip(tokens, weights.mean(dim=0).tolist(), strict=True):
            found[token] = add(found[token], mean) if token in found else mean
        return sorted(found.items(), key=lambda pair: -pair[1])[:k]

    return most_attended


def _equal_pairs_once(weights, tokens, k=3):
    pairs = build_attended()(weights, tokens, len(tokens))
    return list(dict.fromkeys(pairs))[:k]


def _by_index(weights, tokens, k=3):
    means = weights.mean(dim=0).tolist()
    pairs = [(token, means[tokens.index(token)]) for token in tokens]
    return sorted(pairs, key=lambda pair: -pair[1])[:k]


def _taken_as_0(weights, tokens, k=3):
    means, pairs = weights.mean(dim=0).tolist(), []
    for _ in range(min(k, len(means))):
        place = means.index(max(means))
        pairs.append((tokens[place], means[place]))
        means[place] = 0.0
    return pairs


def _topk(weights, tokens, k=3):
    means, positions = weights.mean(dim=0).topk(k)
    return [(tokens[place], mean) for place, mean in zip(positions, means.tolist(), strict=True)]


def _anyhow(wanted):
    """Whether a list has the tokens of these means, those of equal means in any order.

    wanted: the means in the order of the list, from all of them, largest first, and k.
    """

    def shows(inputs, value):
        found, means = value[0].split(), inputs["weights"].mean(dim=0)
        right = wanted(means.sort(descending=True).values, inputs.get("k", 3))
        if len(found) != len(right) or not torch.allclose(value[1].double(), right, atol=1e-8):
            return False
        left = list(zip(inputs["tokens"], means.tolist(), strict=True))
        for token, mean in zip(found, right.tolist(), strict=True):
            alike = [pair for pair in left if pair[0] == token and abs(pair[1] - mean) < 1e-9]
            if not alike:
                return False
            left.remove(alike[0])
        return True

    return shows


def _by_the_alphabet(upwards):
    """Equal means in the order of the tokens as text."""

    def most_attended(weights, tokens, k=3):
        pairs = sorted(zip(tokens, weights.mean(dim=0).tolist(), strict=True), reverse=not upwards)
        return sorted(pairs, key=lambda pair: -pair[1])[:k]

    return most_attended


def _found_by_number(weights, tokens, k=3):
    means = weights.mean(dim=0).tolist()
    return [(tokens[means.index(mean)], mean) for mean in sorted(means, reverse=True)[:k]]


def _numbers_of_the_first_place(weights, tokens, k=3):
    means = weights.mean(dim=0).tolist()
    pairs = build_attended(number=unchanged, pair=lambda tokens, place, number: place)
    return [(tokens[p], means[tokens.index(tokens[p])]) for p in pairs(weights, tokens, k)]


def _shares_of_those_shown(pairs):
    whole = sum(number for _, number in pairs)
    return [(token, number / whole) for token, number in pairs]


def _without_special(weights, tokens, k=3):
    kept = [pair for pair in build_attended()(weights, tokens, len(tokens)) if pair[0][0] != "["]
    return kept[:k]


OTHERS_ONLY = (
    "You leave the diagonal out, what each token gives to itself, and take the mean over the "
    "other queries.",
    "A token is one of the queries that look at it. The task asks what all the queries give.",
)
ROUNDED = (
    "You round the mean weights.",
    "Round what you print, not what you return: whoever goes on with it needs the digits.",
)

ATTENDED = {
    "averaged-over-keys": known(
        "All your numbers are 1 / L: you average along the rows, over the keys, or over the whole "
        "table.",
        "A row sums to 1, so that every such average is 1 / L and says nothing about the head. "
        "How much a key gets is spread over all the rows.",
        section=ROWS,
        strength=lambda weights: weights.mean(dim=1),
        shows=_means_of_rows,
    ),
    "added-not-averaged": known(
        "You add up the weights that a key gets, and your numbers can go above 1.",
        "The order is right. The task asks for the mean over the queries, so that a long sentence "
        "and a short one can be compared.",
        strength=lambda weights: weights.sum(dim=0),
    ),
    "median-of-a-key": known(
        "You take the median of what the queries give to a key.",
        "The task asks for the mean, in which every query counts.",
        strength=lambda weights: weights.median(dim=0).values,
    ),
    "softmax-of-the-means": known(
        "You apply softmax to the means.",
        "The order stays, and the numbers are no longer what the queries give on average. The "
        "means sum to 1 without it.",
        strength=lambda weights: weights.mean(dim=0).softmax(dim=0),
    ),
    "softmax-again": known(
        "You apply softmax to the weights.",
        "They are weights already: each row sums to 1. A second softmax makes them almost equal.",
        strength=lambda weights: weights.softmax(dim=-1).mean(dim=0),
    ),
    "largest-weight-of-a-key": known(
        "You rank the keys by the largest weight that any query gives them.",
        "One query is enough for that. The task asks what all the queries give, on average.",
        strength=lambda weights: weights.amax(dim=0),
    ),
    "attention-to-itself": known(
        "You read the diagonal: what each token gives to itself.",
        "All the queries may look at a token, not only the token itself.",
        section=ROWS,
        strength=lambda weights: weights.diagonal(),
    ),
    "itself-counted-as-0": known(
        "You leave out what each token gives to itself: the diagonal counts as 0.",
        "A token is one of the queries that look at it. The task asks what all the queries give.",
        section=ROWS,
        strength=lambda weights: _without_itself(weights) / len(weights),
    ),
    "itself-left-out": known(
        *OTHERS_ONLY,
        section=ROWS,
        **any_of(
            build_attended,
            strength=(
                lambda weights: _without_itself(weights) / (len(weights) - 1),
                lambda weights: _without_itself(weights) / max(len(weights) - 1, 1),
            ),
            run=_seen,
        ),
    ),
    "itself-left-out-one-by-one": known(
        *OTHERS_ONLY, section=ROWS, wrong=_without_itself_one_by_one
    ),
    "first-query-only": known(
        "You look at the first row: what the first token attends to.",
        "Every token is a query. The task asks for the mean over all of them.",
        section=ROWS,
        strength=lambda weights: weights[0],
    ),
    "last-query-only": known(
        "Your numbers are the last row: what the last token attends to.",
        "Every token is a query. The task asks for the mean over all of them. If you have a loop: "
        "does each turn overwrite what the one before has found?",
        section=ROWS,
        strength=lambda weights: weights[-1],
    ),
    "votes-counted": known(
        "You count how many queries have their largest weight on each token.",
        "Then a weight of .9 counts as much as one of .3, and a second place counts nothing. The "
        "task asks for the mean of the weights.",
        strength=_votes,
    ),
    "smallest-first": known(
        "You begin with the tokens that get least.",
        "A sort begins with the smallest unless you say otherwise.",
        order=lambda means: means.argsort(stable=True).tolist(),
        shows=_anyhow(lambda means, k: means.flip(0)[:k]),
    ),
    "later-one-first": known(
        "Of tokens with equal means your list has the later one first.",
        "This happens if you sort upwards and reverse the list: the equal ones are reversed, too. "
        "So do pairs (number, place) that are sorted downwards, and a search with >=.",
        order=lambda means: means.argsort(stable=True).tolist()[::-1],
    ),
    "best-ones-upwards": known(
        "You have the right tokens in the wrong order: the largest stands last.",
        "A sort begins with the smallest. So the k largest are the last ones, and the largest of "
        "all is at the end.",
        wrong=lambda w, tokens, k=3: build_attended()(w, tokens, k)[::-1],
        shows=_anyhow(lambda means, k: means[:k].flip(0)),
    ),
    "order-of-the-sentence": known(
        "You have the right tokens, in the order of the sentence.",
        "The list is a ranking: the token that gets most comes first.",
        take=lambda positions, k: sorted(positions[:k]),
    ),
    "k-ignored": known(
        "You return all tokens, whatever k is.",
        "The task asks for k of them.",
        take=lambda positions, k: positions,
    ),
    "always-3": known(
        "You return 3 tokens, whatever k is.",
        "3 is only the default. The caller may ask for another number.",
        take=lambda positions, k: positions[:3],
    ),
    "first-k-tokens": known(
        "You sort only the first k tokens of the sentence.",
        "Any token may be among those that get most: rank them all before you cut.",
        wrong=lambda w, tokens, k=3: build_attended()(w[:, :k], tokens, k),
    ),
    "one-too-few": known(
        "You return one token less than k.",
        "Slices and range end before their second number. How many places are in yours, from "
        "place 0 on?",
        take=lambda positions, k: positions[: k - 1],
    ),
    "one-too-many": known(
        "You return one token more than k.",
        "Slices and range end before their second number. How many places are in yours, from "
        "place 0 on?",
        take=lambda positions, k: positions[: k + 1],
    ),
    "topk": known(
        "You take the k largest with topk.",
        "It insists on k entries and fails where there are fewer tokens. And of equal ones it may "
        "return any; the task asks for the earlier first.",
        wrong=_topk,
    ),
    "position-instead-of-token": known(
        "You return where the token stands instead of the token.",
        "A position means nothing without the sentence. The caller gave you the tokens.",
        pair=lambda tokens, position, number: (position, number),
    ),
    "pairs-turned-round": known(
        "Your pairs are (mean weight, token).",
        "The token comes first. (With the number first a plain sort works, and that is perhaps "
        "why.)",
        pair=lambda tokens, position, number: (number, tokens[position]),
    ),
    "tokens-alone": known(
        "You return the tokens without their mean weights.",
        "Without the numbers nobody can see whether the first token gets nearly everything or "
        "hardly more than the second.",
        pair=lambda tokens, position, number: tokens[position],
    ),
    "numbers-alone": known(
        "You return the mean weights without the tokens.",
        "The reader wants to know who gets them.",
        pair=lambda tokens, position, number: number,
    ),
    "rounded": known(*ROUNDED, **any_of(build_attended, number=map(_rounded, DIGITS), run=_seen)),
    "rounded-before-the-order": known(
        "You sort by rounded means.",
        "Two means that differ by little become equal, and their order may change. Round what you "
        "print, not what you sort or return.",
        **any_of(
            build_attended,
            strength=(
                make(n) for n in DIGITS for make in (_means_rounded, _means_rounded_by_torch)
            ),
            order=map(_order_of_rounded, DIGITS),
            run=_seen,
        ),
    ),
    "mean-of-those-who-look": known(
        "You take the mean over the queries whose weight is not 0.",
        "A weight of 0 says that this query gives the token nothing, and that counts: the mean "
        "goes over all queries.",
        strength=lambda weights: weights.sum(dim=0) / (weights > 0).sum(dim=0).clamp(min=1),
    ),
    "taken-as-0": known(
        "Of the tokens that get nothing, the first comes twice: either you set the mean of a token "
        "that you have taken to 0, or your search for the largest begins at 0.",
        "A token that gets nothing has 0 as well. Which number is below all means?",
        wrong=_taken_as_0,
    ),
    "nothing-left-out": known(
        "You leave out tokens that get nothing.",
        "0 is a mean like any other. The task asks for k pairs, or for all if there are fewer.",
        wrong=lambda weights, tokens, k=3: [
            pair for pair in build_attended()(weights, tokens, k) if pair[1] > 0
        ],
    ),
    **{
        id: known(
            "Of tokens with equal means your list has them in the order of the alphabet"
            f"{'' if upwards else ', backwards'}.",
            "A sort of pairs goes on with the other part of the pair where the first is equal. "
            "Asked for is the order of the sentence: the earlier place comes first.",
            wrong=_by_the_alphabet(upwards),
        )
        for id, upwards in (("equals-by-alphabet", True), ("equals-by-alphabet-backwards", False))
    },
    "found-by-number": known(
        "You take the largest means and look up afterwards at which place each number stands.",
        "index, or another search, finds the first. Where two means are equal, the same token "
        "comes twice. Sort the places, not the numbers.",
        wrong=_found_by_number,
    ),
    "equals-anyhow": known(
        "Tokens with equal means come in any order.",
        "topk and argsort promise nothing about equal ones, and a sort of pairs goes on with the "
        "second of the pair. The earlier place comes first.",
        wrong=lambda weights, tokens, k=3: _topk(weights, tokens, min(k, len(tokens))),
        shows=_anyhow(lambda means, k: means[:k]),
    ),
    "same-words-added-up": known(
        "You add up what the same word gets at different places.",
        'A head looks at positions, and each is an entry of its own: the first "the" and the '
        "second are two keys with two values.",
        wrong=_collected(lambda old, new: old + new),
    ),
    "same-words-overwritten": known(
        "Where a word stands twice, the later place takes the other's entry.",
        "That is what a dict does with a key that it has already. Each position is an entry of "
        "its own.",
        wrong=_collected(lambda old, new: new),
    ),
    "same-words-once": known(
        "Where a word stands twice, only its first place is looked at.",
        "tokens.index(word) always finds the first, and a test whether a word is there already "
        "keeps it. Each position is an entry of its own.",
        wrong=_collected(lambda old, new: old),
    ),
    "same-words-largest": known(
        "Where a word stands twice, only the place that gets more is in your list.",
        "Each position is an entry of its own, whichever word stands there.",
        wrong=_collected(max),
    ),
    "equal-pairs-once": known(
        "Where a word stands twice and both places have the same mean, one of them is missing.",
        "The keys of a dict, a set and a test with `in` take two equal pairs for one. Each place "
        "is an entry of its own.",
        wrong=_equal_pairs_once,
    ),
    "same-words-same-number": known(
        "Where a word stands twice, both entries have the number of its first place.",
        "tokens.index(word) always finds the first. Each entry needs the mean of its own position.",
        wrong=_by_index,
    ),
    "number-of-the-first-place": known(
        "Of a word that stands there twice you return the number of its first place each time.",
        "tokens.index finds the first place of a word. Go on with places, and look the word up at "
        "the end.",
        wrong=_numbers_of_the_first_place,
    ),
    "shares-of-those-shown": known(
        "You divide your numbers by their sum, so that those of the k tokens add up to 1.",
        "Asked for is what all queries give to a place, on average. The other places get "
        "something, too.",
        finish=_shares_of_those_shown,
    ),
    "special-tokens-left-out": known(
        "You leave [CLS] and [SEP] out.",
        "They are keys like any other, and in a short sentence many heads of this model give "
        "[CLS] more than all words together. The task asks for what the head does, not for what "
        "we would like it to do.",
        wrong=_without_special,
    ),
}

FORBIDDEN = ("mha_course.explorer.heads",)


def attended_stages(inputs):
    return {"the mean of what each place gets": inputs["weights"].mean(dim=0)}


TASK = Task(
    "07-most_attended",
    heads.most_attended,
    attended_cases,
    run=run_attended,
    examine=examine_attended,
    returns=("the list of tokens", "the list of mean weights"),
    tolerance=1e-8,  # six digits are not all
    mistakes=read_again("The tokens that a head looks at", ATTENDED),
    build=build_attended,
    stages=attended_stages,
    point_out=point_out_column,
    skippable=True,
    alone=(
        "median-of-a-key",
        "softmax-of-the-means",
        "softmax-again",
        "position-instead-of-token",
        "pairs-turned-round",
        "tokens-alone",
        "numbers-alone",
    ),
    forbidden=FORBIDDEN,
    number=1,
)
