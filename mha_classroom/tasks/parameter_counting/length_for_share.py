"""Task 5.8, length_for_share: from how many tokens on the pairs are so much of a block's work."""

import numbers
from fractions import Fraction
from math import ceil, floor

from mha_classroom.checks.forms import like
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN, random_size

EARLY = 50  # tokens that every search gets to
TOLERATED = Fraction(1, 10)  # of a token: so much may be missing if one allows for inexact floats
PAIRS = "When do the pairs cost more than the rest?"


def share_cases(draw):
    """Lengths that work out exactly, some of which naive floats miss, and lengths that do not."""

    def case(name, percent, num_hiddens, ffn_num_hiddens):
        sizes = {"num_hiddens": num_hiddens, "ffn_num_hiddens": ffn_num_hiddens}
        return Case(name, {"percent": percent} | sizes)

    drawn = (random_size(draw, 8, 60), random_size(draw, 61, 200))
    return [
        case("half, width 2, inner width 5", 50, 2, 5),
        case("30 %, a length that has to be rounded", 30, 2, 5),
        case("40 %, a length that comes out exactly", 40, 2, 5),
        case("80 %, inner width below the width", 80, 7, 3),
        case("35 %, a length that comes out exactly", 35, 1, 11),
        case("1 %, one token is enough", 1, 3, 11),
        case("1 %, a tiny model", 1, 1, 1),
        case("1 %, a length a little above 1", 1, 8, 84),
        case("55 %, which is no exact float", 55, 33, 33),
        case("56 %, 28 tokens", 56, 7, 8),
        case("31 %, a length that has to be rounded", 31, 7, 31),
        case("58 %, which no float reaches exactly", 58, 7, 7),
        case("79 %, a length that comes out exactly", 79, 7, 7),
        case("45 %, a length that comes out exactly", 45, 1, 20),
        case("a fifth, width 512", 20, 512, 2048),
        case("just over half, BERT-base", 51, 768, 3072),
        case("93 %, more than 200,000 tokens", 93, 4032, 8064),
        case("drawn at random", random_size(draw, 15, 70), *drawn),
    ]


def build_share(
    pairs=4,
    projections=8,
    feed_forward=4,
    inner=lambda d, f: f,
    biases=lambda d, f: 0,
    odds=lambda percent: (percent, 100 - percent),
    whole=ceil,
):
    """pairs, projections, feed_forward: what stands before n²·d, n·d² and n·d·f. biases:
    of one token. odds: of the pairs
    against the rest, as two numbers."""

    def length_for_share(percent, num_hiddens, ffn_num_hiddens):
        rest = projections * num_hiddens + feed_forward * inner(num_hiddens, ffn_num_hiddens)
        rest += Fraction(biases(num_hiddens, ffn_num_hiddens), num_hiddens)
        part, other = odds(percent)
        return whole(Fraction(part * rest, pairs * other))

    return length_for_share


def point_out_shares(inputs, length):
    """The share of the pairs with the right number of tokens and with the one that was returned."""
    percent, d, f = inputs.values()
    right = build_share()(percent, d, f)
    seen = dict.fromkeys((right - 1, right, int(length)))
    shares = [(n, 100 * Fraction(n, n + 2 * d + f)) for n in seen if n > 0]
    return f"{percent} % is asked for. " + " ".join(
        f"With {n} token{'s' * (n != 1)} the pairs need {number_text(share, 8)} %."
        for n, share in shares
    )


def _one_too_many_where_exact(inputs, value):
    """Whether the length is right, or one too many, and that only where nothing is rounded."""
    percent, d, f = inputs.values()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    exact = percent * (2 * d + f) % (100 - percent) == 0
    return value - build_share()(percent, d, f) in ((0, 1) if exact else (0,))


def _half_a_percent_less(percent):
    """Odds of the pairs against the rest."""
    return 2 * percent - 1, 201 - 2 * percent


def _share_rounded(percent, d, f):
    """Python rounds 98.5 to 98 and 79.5 to 80: a half to the even neighbour."""
    length = Fraction((2 * percent - 1) * (2 * d + f), 201 - 2 * percent)
    return ceil(length) if percent % 2 == 0 else floor(length) + 1


def _share_of_attention(percent, d, f):
    """The length from which on pairs and projections have the share."""
    return max(1, ceil(Fraction(percent * (2 * d + f) - 200 * d, 100 - percent)))


def _whole(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and value == value // 1


def _search_ends_early(inputs, value):
    """Whether the length is right, unless it is large: then it is a smaller one or None."""
    right = build_share()(*inputs.values())
    if right <= EARLY:
        return _whole(value) and value == right
    return value is None or (_whole(value) and (value == right or value < 0.9 * right))


def _never_reached(inputs, value):
    """Whether it is a number at which one ends a search, and not the right one."""
    large = _whole(value) and value >= 1000 and value % 1000 in (0, 1, 999)
    return bool(large and value != build_share()(*inputs.values()))


def _too_few_in_near_misses(inputs, value):
    """Whether the length is right, or one too few, and that only just above a whole one."""
    percent, d, f = inputs.values()
    right = build_share()(percent, d, f)
    least = Fraction(percent * (2 * d + f), 100 - percent) % 1
    return _whole(value) and right - value in ((0, 1) if 0 < least < TOLERATED else (0,))


def _doubled(inputs, value):
    """Whether it is the first power of two that is long enough."""
    right = build_share()(*inputs.values())
    return _whole(value) and right <= value < 2 * right and int(value).bit_count() == 1


def _part_of_all_pairs(percent, d, f):
    """The length for which the scores alone have the share: from 50 % on there is none."""
    return ceil(Fraction(percent * (2 * d + f), 50 - percent)) if percent < 50 else 1_000_000


def _one_product(inputs, value):
    percent, *_ = sizes = tuple(inputs.values())
    if percent < 50:
        return _whole(value) and value == _part_of_all_pairs(*sizes)
    return value is None or (_whole(value) and value > build_share()(*sizes))


def _at_least_one_token(whole):
    """Round a length like this, but never to less than 1."""
    return lambda length: max(whole(length), 1)


ROUNDINGS = {
    "rounded-down": (
        "You round down, or your search stops before the share is reached.",
        "Where a length has to be rounded, the pairs have not reached the share yet with yours.",
        floor,
    ),
    "rounded-to-nearest": (
        "You round to the nearest whole number.",
        "Where that is the lower one, the pairs have not reached the share yet.",
        round,
    ),
    "not-rounded": (
        "You return a length that is not a whole number.",
        "There is no text of 3.86 tokens. Which of its two whole neighbours reaches the share?",
        float,
    ),
}

SHARE = {
    **{id: known(did, why, whole=whole) for id, (did, why, whole) in ROUNDINGS.items()},
    **{
        f"{id}-to-1-or-more": known(did, why, whole=_at_least_one_token(whole))
        for id, (did, why, whole) in ROUNDINGS.items()
    },
    "one-more": known(
        "Where the length comes out exactly, you return one token too many: you ask for more than "
        "the share, or you round down and always add one.",
        "The task asks for at least the share. The length that comes out exactly reaches it.",
        whole=lambda length: floor(length) + 1,
    ),
    "one-too-few": known(
        "You return one token too few: the last length at which the share is not reached yet.",
        "Put your length into the lesson's formula, and then one token more. Which of the two is "
        "the first with the share that was asked for?",
        whole=lambda length: ceil(length) - 1,
    ),
    "one-too-few-from-1-on": known(
        "You return one token too few: the last length at which the share is not reached yet.",
        "Put your length into the lesson's formula, and then one token more. Which of the two is "
        "the first with the share that was asked for?",
        whole=_at_least_one_token(lambda length: ceil(length) - 1),
    ),
    "starts-at-zero": known(
        "You return 0.",
        "No text has 0 tokens. With none both sides of a comparison are 0, so that the share seems "
        "to be reached. And percent // 100 is 0, if that is in your formula.",
        wrong=lambda percent, num_hiddens, ffn_num_hiddens: 0,
    ),
    "near-misses-let-through": known(
        "Where very little is missing from the share, you return a length that does not reach it.",
        "Do you take something off before you round up, to make up for inexact floats, or round "
        "the FLOPs that are needed? Then near misses get through as well. Compare whole numbers, "
        "and nothing has to be rounded or made up for.",
        wrong=lambda percent, d, f: ceil(percent / (100 - percent) * (2 * d + f) - 0.05),
        shows=_too_few_in_near_misses,
    ),
    "length-doubled": known(
        "All of your lengths are powers of two, as if you doubled the length until the share is "
        "reached. So you skip most lengths.",
        "The share may be reached long before the next power of two. Which is the first length "
        "that reaches it?",
        wrong=lambda *sizes: 1 << (build_share()(*sizes) - 1).bit_length(),
        shows=_doubled,
    ),
    "share-rounded": known(
        "A share that is up to half a percent too small is enough for you: do you round it to "
        "whole percent before you compare it?",
        "A share of 79.6 % is rounded to 80 %, and is not 80 %. Compare it as it is.",
        wrong=_share_rounded,
        shows=like(_share_rounded, build_share(odds=_half_a_percent_less)),
    ),
    "one-too-many-where-exact": known(
        "You return one token too many for some lengths that work out exactly.",
        "Either you ask for more than the share, or a float such as 0.55, 29 / 50 or 1 - 0.9 lets "
        "you down: it is not exact, and the smallest difference costs a whole token. Compare whole "
        "numbers instead: multiply both sides until nothing has to be divided.",
        wrong=lambda percent, d, f: ceil(percent / 100 / (1 - percent / 100) * (2 * d + f)),
        shows=_one_too_many_where_exact,
    ),
    "share-of-attention": known(
        "You ask when attention has the share, projections included.",
        "The pairs are the scores and the weighted sums. The projections cost the same for each "
        "token, however long the text is.",
        wrong=_share_of_attention,
    ),
    "starts-at-two": known(
        "You never return 1 token: the shortest length that you try or allow is 2.",
        "One token has a score and a weighted sum, too, with itself. It may be enough.",
        wrong=lambda *sizes: max(2, build_share()(*sizes)),
    ),
    "feed-forward-forgotten": known(
        "You compare the pairs with the projections, and leave out the feed-forward network.",
        "Your answer is right for attention alone. The task asks for the whole block.",
        feed_forward=0,
    ),
    "one-feed-forward-layer": known(
        "Your feed-forward network costs half of what it should: one of its two layers is missing, "
        "or additions are left out there.",
        "A token goes up to the inner width and comes back. Multiplications and additions are both "
        "counted in each of the two products.",
        feed_forward=2,
    ),
    "projections-forgotten": known(
        "You compare the pairs with the feed-forward network, and leave out the four projections.",
        "W_q, W_k, W_v and W_o belong to the block as well.",
        projections=0,
    ),
    "output-projection-forgotten": known(
        "You count three projections.",
        "Queries, keys and values are made by one each. What happens to the joined heads?",
        projections=6,
    ),
    "half-the-pairs": known(
        "Compared with the rest, your pairs cost half of what they should: one of their two "
        "products is missing, additions are left out there, every pair of tokens counts once, or "
        "the rest is counted twice.",
        "Each pair takes part in two products. Both count, with 2 for each multiplication and its "
        "addition.",
        pairs=2,
    ),
    "each-two-tokens-once": known(
        "You count every pair of tokens once, n·(n + 1) / 2 pairs; or the pairs cost half of what "
        "they should, and you return one token too few.",
        "Each of the n tokens has a score with each of the n, and with itself: n·n pairs. A mask "
        "leaves the products as they are.",
        pairs=2,
        whole=_at_least_one_token(lambda length: ceil(length) - 1),
    ),
    "one-product-of-the-pairs": known(
        "You ask when half of the pairs' work has the share: one of their two products, or the "
        "multiplications without the additions.",
        "The pairs are the scores and the weighted sums, and together they have to reach it. Half "
        "of their work is never half of all FLOPs.",
        wrong=_part_of_all_pairs,
        shows=_one_product,
    ),
    "rest-at-half-cost": known(
        "Compared with the pairs, your projections and your feed-forward network cost half of what "
        "they should: additions are left out there, or the pairs are counted twice.",
        "Multiplications and additions are both counted, in every product. A matrix of d by d "
        "costs 2·d² FLOPs for each token.",
        projections=4,
        feed_forward=2,
    ),
    "feed-forward-biases-counted": known(
        "You count the additions of the biases in the feed-forward network.",
        "Only matrix products count here, as in 5.4.",
        biases=lambda d, f: d + f,
    ),
    "biases-counted": known(
        "You count the additions of all biases.",
        "Only matrix products count here, as in 5.4.",
        biases=lambda d, f: 5 * d + f,
    ),
    "search-ends-early": known(
        "Where many tokens are needed, you return too few, or None: does your search end before it "
        "gets there, or do your products overflow, as in int32?",
        "For a wide model the length can be many thousands of tokens. Go on until the share is "
        "reached, or work the length out without a search.",
        wrong=lambda *sizes: n if (n := build_share()(*sizes)) <= 1000 else None,
        shows=_search_ends_early,
    ),
    "never-reached": known(
        "In every case you return a round number, or one next to it, as if a search ended before "
        "the share was reached.",
        "percent goes from 1 to 99. A part of a whole goes from 0 to 1. Do you compare the one "
        "with the other?",
        wrong=lambda percent, d, f: 10_000,
        shows=_never_reached,
    ),
    "percent-taken-as-a-part": known(
        "You calculate with percent as if it were a part of 1.",
        "50 % is half of everything, and not 50 times everything. Which number is 50 %?",
        wrong=lambda percent, d, f: ceil(percent / (1 - percent) * (2 * d + f)),
    ),
    "inner-width-taken-as-4d": known(
        "You take the inner width to be four times the width, whatever the argument says.",
        "That is so in BERT, so BERT-base cannot tell. The function is given both widths.",
        inner=lambda d, f: 4 * d,
    ),
    "percent-of-the-rest": known(
        "You ask when the pairs are so many percent of the rest.",
        "A share is a part of everything, the pairs included. If the pairs are 50 % of everything, "
        "how large are they compared with the rest?",
        odds=lambda percent: (percent, 100),
    ),
    "share-of-the-rest": known(
        "You solve for the length at which the rest has this share.",
        "Try 90 %: should such a text be longer or shorter than one for 50 %?",
        odds=lambda percent: (100 - percent, percent),
    ),
    "always-half": known(
        "You return the length at which the pairs are half of the work, whatever percent is.",
        "The argument may ask for another share.",
        odds=lambda percent: (1, 1),
    ),
}

TASK = Task(
    "05-length_for_share",
    build_share(),
    share_cases,
    returns=("the number of tokens",),
    mistakes=read_again(PAIRS, SHARE),
    build=build_share,
    point_out=point_out_shares,
    alone=("rest-at-half-cost",),  # with half the pairs it would be right
    quantities=lambda inputs: ({}, {"the width": inputs["num_hiddens"]}),
    forbidden=FORBIDDEN,
    number=8,
    since=2,
)
