"""Task 5.9, longest_text: how many tokens fit on a card beside the parameters."""

from fractions import Fraction
from math import ceil, floor, prod, trunc
from numbers import Real

from mha_classroom.checks.forms import like
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.parameter_counting.count_attention import FORBIDDEN, random_size

NAMES = ("card_bytes", "num_parameters", "num_layers", "num_kv_heads", "head_width")


def text_cases(draw):
    """Room that is left over, none left over, too little for a token, for the parameters."""

    def sizes(*numbers, **more):
        return dict(zip(NAMES, numbers, strict=True)) | more

    model = [random_size(draw, 2, 9) for _ in range(3)]
    drawn = random_size(draw, 200_000, 300_000), random_size(draw, 1000, 9000), *model
    return [
        Case("a small model, 4 bytes left over", sizes(1_000, 258, 2, 4, 3)),
        Case("nothing left over", sizes(996, 258, 2, 4, 3)),
        Case("4 bytes a number", sizes(1_990, 258, 2, 4, 3, bytes_per_number=4)),
        Case(
            "3 texts at once, 1 byte a number",
            sizes(1_650, 258, 2, 4, 3, bytes_per_number=1, batch_size=3),
        ),
        Case("as many bytes as 10 tokens have", sizes(960, 141, 2, 4, 3)),
        Case("3 texts at once", sizes(1_666, 258, 2, 4, 3, bytes_per_number=2, batch_size=3)),
        Case("7 layers, nothing left over", sizes(3_260, 258, 7, 1, 7)),
        Case("one byte too few for a token", sizes(611, 258, 2, 4, 3)),
        Case("the parameters alone fill the card", sizes(516, 258, 2, 4, 3)),
        Case("the parameters do not fit", sizes(100, 258, 2, 4, 3)),
        Case("more bytes than parameters, and too few for them", sizes(300, 258, 2, 4, 3)),
        Case("a model of 7 billion parameters", sizes(24 * 10**9, 7 * 10**9, 32, 8, 128)),
        Case(
            "7 billion parameters, one byte too few for 100 tokens",
            sizes(14_013_107_199, 7 * 10**9, 32, 8, 128),
        ),
        Case(
            "drawn at random",
            sizes(*drawn, bytes_per_number=4, batch_size=random_size(draw, 2, 9)),
        ),
    ]


def build_text(
    parameters=lambda P, b, B: P * b,
    bytes_of=lambda b: (b, b),
    kept=2,
    layers=lambda m: m,
    heads=lambda h: h,
    head=lambda w: w,
    batch=lambda B: B,
    default=2,
    whole=floor,
    each=lambda bytes_of_a_token: bytes_of_a_token,
    least=lambda n: max(n, 0),
):
    """parameters: bytes that they take. bytes_of: the bytes of a parameter, and of a number in the
    cache. each: by what the room is divided. least: what is returned for a length, which may be
    below 0."""

    def longest_text(
        card_bytes, P, num_layers, num_kv_heads, head_width, bytes_per_number=default, batch_size=1
    ):
        (b, size), B = bytes_of(bytes_per_number), batch_size
        token = kept * layers(num_layers) * heads(num_kv_heads) * head(head_width)
        room = card_bytes - parameters(P, b, B)
        return least(whole(Fraction(room, each(token * size * batch(B)))))

    return longest_text


def text_quantities(inputs):
    factors = {
        "the number of layers": inputs["num_layers"],
        "the number of heads": inputs["num_kv_heads"],
        "the width of a head": inputs["head_width"],
        "the batch size": inputs.get("batch_size", 1),
    }
    return {}, factors


def _from_one_token_on(whole):
    """Return 0 where not a single token fits, and round the other lengths like this."""
    return build_text(whole=lambda length: whole(length) if length >= 1 else 0)


def _tested_without_bytes(whole):
    """Return 0 where there are more parameters than bytes, and calculate in all other cases."""
    free = build_text(whole=whole, least=lambda n: n)
    return lambda card, P, *sizes, **more: 0 if P > card else free(card, P, *sizes, **more)


def _swapped(card, P, num_layers, num_kv_heads, head_width, batch_size=1, bytes_per_number=2):
    """An answer whose last two arguments stand in the other order."""
    sizes = (card, P, num_layers, num_kv_heads, head_width, bytes_per_number, batch_size)
    return build_text()(*sizes)


def _multiplied_behind(first):
    """An answer that divides the room by the first of some factors, and multiplies by the rest."""

    def longest_text(
        card, P, num_layers, num_kv_heads, head_width, bytes_per_number=2, batch_size=1
    ):
        factors = [2, num_layers, num_kv_heads, head_width, bytes_per_number, batch_size]
        factors.insert(0, factors.pop(first))
        return max(0, (card - P * bytes_per_number) // factors[0] * prod(factors[1:]))

    return longest_text


def _minus_1_for_no_room(inputs, value):
    right = build_text()(*inputs.values())
    return not isinstance(value, bool) and value in ((right,) if right else (0, -1))


def _off_by_one_near_whole(inputs, value):
    """Whether the length is right, or inexact numbers make it another one near a whole one."""
    exact = build_text(whole=lambda length: length, least=lambda n: max(n, 0))(*inputs.values())
    right, to_come = floor(exact), ceil(exact) - exact
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    if exact == right > 0:
        return value in (right - 1, right)
    return value in ((right, right + 1) if to_come < 1e-4 else (right,))


def _refuse(n):
    if n < 0:
        raise ValueError("the parameters do not fit")
    return n


def _rounded_twice(card, P, m, h, w, b=2, B=1):
    token = build_text(parameters=lambda P, b, B: 0)
    return max(0, token(card, P, m, h, w, b, B) - token(P * b, P, m, h, w, b, B))


def _parameters_only_tested(card, P, m, h, w, b=2, B=1):
    return build_text(parameters=lambda P, b, B: 0)(card, P, m, h, w, b, B) * (P * b <= card)


# No less than 1 where the parameters fit, and where there is room beside them.
ONE_IF_THEY_FIT = build_text(whole=lambda length: floor(length) or 1)
ONE_IF_ROOM_IS_LEFT = build_text(whole=lambda n: floor(n) if n >= 1 else ceil(n))


def _on_a_part(share):
    """An answer that fills only this part of the card."""
    return lambda card, *sizes, **more: build_text()(floor(card * share), *sizes, **more)


ROUNDINGS = {
    "rounded-up": (
        "You round up, or your search stops one token too late.",
        "The last token of your text does not fit on the card as a whole.",
        ceil,
    ),
    "rounded-to-nearest": (
        "You round to the nearest whole number.",
        "Where that is the higher one, the last token of your text does not fit as a whole.",
        round,
    ),
    "not-rounded": (
        "You return a number of tokens that is not whole.",
        "Half a token cannot be kept.",
        float,
    ),
}

TEXT = {
    "parameters-ignored": known(
        "You give the whole card to the cache.",
        "Before the first token is read, the parameters of the model have to lie on the card.",
        parameters=lambda P, b, B: 0,
    ),
    "part-kept-free": known(
        "You leave a part of the card free, such as a tenth.",
        "A working program would want some room. Here the whole card is for the parameters and the "
        "cache.",
        wrong=_on_a_part(Fraction(9, 10)),
        shows=like(
            *(_on_a_part(Fraction(part, 100)) for part in (50, 70, 75, 80, 85, 90, 95, 98, 99))
        ),
    ),
    "parameters-only-tested": known(
        "You look whether the parameters fit, and then leave the whole card to the cache.",
        "The parameters stay on the card while it works. How many bytes are left beside them?",
        wrong=_parameters_only_tested,
    ),
    "parameters-of-each-layer": known(
        "You count the parameters once for each layer.",
        "They are the parameters of the whole model. What is there for each layer is the cache.",
        wrong=lambda card, P, m, *sizes, **more: build_text()(card, P * m, m, *sizes, **more),
    ),
    "rounded-twice": known(
        "You round twice: the card, and what the parameters take, each in tokens.",
        "What is left over of the one and what is left over of the other are lost, or together "
        "make a token that does not fit. Work in bytes, and divide once, at the end.",
        wrong=_rounded_twice,
    ),
    "parameters-without-bytes": known(
        "Your parameters take 1 byte each: their number is set against the bytes of the card.",
        "A parameter takes bytes_per_number bytes, like a number in the cache.",
        parameters=lambda P, b, B: P,
    ),
    "multiplied-behind-the-division": known(
        "You divide by one factor of what a token takes, and multiply by the others.",
        "Python goes from left to right: a // b * c is (a // b) * c. All that one token takes "
        "belongs in brackets.",
        wrong=_multiplied_behind(0),
        shows=like(*map(_multiplied_behind, range(6))),
    ),
    "parameters-for-each-text": known(
        "You keep the parameters once for each text of the batch.",
        "All texts are read by the same model. Which of the two, parameters or cache, does each "
        "text need for itself?",
        parameters=lambda P, b, B: P * b * B,
    ),
    "one-kept": known(
        "Your cache is half as large as it should be, as if keys or values were kept, but not "
        "both.",
        "The query of a new token is compared with the keys of all tokens, and then their values "
        "are averaged.",
        kept=1,
    ),
    "queries-kept": known(
        "You count three vectors for each token and head: do you keep queries as well?",
        "Only the new token asks. Its query is not needed again.",
        kept=3,
    ),
    "cache-without-bytes": known(
        "You count the numbers of the cache, and not their bytes.",
        "A number in the cache takes bytes_per_number bytes, like a parameter.",
        bytes_of=lambda b: (b, 1),
    ),
    "two-bytes-always": known(
        "A number takes 2 bytes in your count, whatever bytes_per_number is.",
        "2 is half precision. The argument may say something else.",
        bytes_of=lambda b: (2, 2),
    ),
    "two-bytes-in-the-cache": known(
        "In your cache a number takes 2 bytes, whatever bytes_per_number is.",
        "2 is half precision. The argument may say something else.",
        bytes_of=lambda b: (b, 2),
    ),
    "two-bytes-a-parameter": known(
        "A parameter of yours takes 2 bytes, whatever bytes_per_number is.",
        "2 is half precision. The argument may say something else.",
        bytes_of=lambda b: (2, b),
    ),
    "bytes-and-batch-swapped": known(
        "bytes_per_number and batch_size have changed places.",
        "Who calls with seven numbers gives them in the order of the task. Compare your def line "
        "with the one in the task, and then look at the lines where you use the two.",
        wrong=_swapped,
    ),
    "four-bytes-by-default": known(
        "When nothing is said about bytes, you take 4.",
        "A caller who does not name the argument means half precision. Compare your def line with "
        "the one in the task.",
        default=4,
    ),
    "batch-ignored": known(
        "You return the tokens of all texts together, or you count one text whatever batch_size "
        "is.",
        "Each text of the batch has a cache of its own, and the task asks for the length of one.",
        batch=lambda B: 1,
    ),
    "tokens-of-all-texts": known(
        "You return the tokens of all texts together.",
        "The task asks how many tokens each text can have.",
        wrong=lambda card, P, m, h, w, b=2, B=1: B * build_text()(card, P, m, h, w, b, B),
    ),
    "layers-ignored": known(
        "You count the cache of one layer.",
        "Every layer makes keys and values of its own, and keeps them.",
        layers=lambda m: 1,
    ),
    "heads-ignored": known(
        "You count the cache of one KV head.",
        "head_width is the width of one head, not of all of them together.",
        heads=lambda h: 1,
    ),
    "width-ignored": known(
        "You count one number for each key and each value.",
        "A key is a vector. How many numbers does it have?",
        head=lambda w: 1,
    ),
    **{id: known(did, why, whole=whole) for id, (did, why, whole) in ROUNDINGS.items()},
    **{
        f"{id}-from-one-token-on": known(did, why, wrong=_from_one_token_on(whole))
        for id, (did, why, whole) in ROUNDINGS.items()
    },
    "one-token-too-many": known(
        "You return one token too many.",
        "For the last one there is no room on the card.",
        wrong=build_text(whole=lambda n: floor(n) + 1),
    ),
    "one-too-few-where-exact": known(
        "You return one token too few where nothing would be left over.",
        "A card may be filled to the last byte.",
        whole=lambda n: ceil(n) - 1,
    ),
    "floats": known(
        "Where a length works out exactly, or nearly so, you return one token too many or too few.",
        "A text that fills the card to the last byte fits. If you mean that: floats such as "
        "3260 / 196 or 1 / 196 are rounded, and in float32 numbers have seven digits. The "
        "smallest difference costs a whole token. Python's whole numbers are exact.",
        wrong=lambda card, P, m, h, w, b=2, B=1: max(
            floor(card / (2 * m * h * w * b * B) - P * b / (2 * m * h * w * b * B)), 0
        ),
        shows=_off_by_one_near_whole,
    ),
    "one-too-few": known(
        "You return one token too few.",
        "Take your length and one more token: does that still fit on the card?",
        whole=lambda n: floor(n) - 1,
    ),
    "bytes-left": known(
        "You return the bytes that are left for the cache.",
        "How many tokens fit into them?",
        each=lambda bytes_of_a_token: 1,
    ),
    "at-least-one": known(
        "You return 1 where not a single token fits.",
        "The cache of one token would be larger than the room for it.",
        least=lambda n: max(n, 1),
    ),
    "at-least-one-if-the-parameters-fit": known(
        "Where bytes are left beside the parameters, and too few for a token, you return 1.",
        "The cache of one token would be larger than the room for it. If you search: is a text of "
        "1 token tried before it is taken?",
        wrong=ONE_IF_THEY_FIT,
        shows=like(ONE_IF_THEY_FIT, ONE_IF_ROOM_IS_LEFT),
    ),
    **{
        f"parameters-tested-without-bytes{end}": known(
            "To see whether the parameters fit, you compare their number with the bytes of the "
            "card. Where it is the smaller one and their bytes do not fit, you return a negative "
            "number of tokens.",
            "A parameter takes bytes_per_number bytes. The task says what to return where these "
            "do not fit.",
            wrong=_tested_without_bytes(whole),
        )
        for end, whole in {"": floor, "-cut": trunc}.items()
    },
    "negative": known(
        "You return a negative number of tokens where the parameters do not fit.",
        "The task says what to return then.",
        least=lambda n: n,
    ),
    "negative-cut-towards-0": known(
        "You return a negative number of tokens where the parameters do not fit.",
        "The task says what to return then.",
        whole=trunc,
        least=lambda n: n,
    ),
    "sign-turned": known(
        "Where the parameters do not fit, you return a length all the same.",
        "There is no room for a single token. The task says what to return then.",
        least=abs,
    ),
    "sign-turned-before-rounding": known(
        "Where the parameters do not fit, you return a length all the same.",
        "There is no room for a single token. The task says what to return then.",
        wrong=build_text(whole=lambda n: floor(abs(n))),
    ),
    "refused": known(
        "Where the parameters do not fit, you raise an error.",
        "That would be a sensible choice, too. Here the task asks for a number.",
        least=_refuse,
    ),
    "minus-1-for-no-room": known(
        "Where no token fits, or the parameters do not, you return -1.",
        "The task says what to return then.",
        wrong=lambda *sizes, **more: build_text()(*sizes, **more) or -1,
        shows=_minus_1_for_no_room,
    ),
    "nothing-returned": known(
        "Where the parameters do not fit, your function returns None.",
        "The task asks for a number.",
        least=lambda n: n if n >= 0 else None,
    ),
    "none-for-no-room": known(
        "Where not a single token fits, your function returns None.",
        "The task asks for a number, and no tokens is a number of tokens, too.",
        least=lambda n: n if n > 0 else None,
    ),
}

TASK = Task(
    "05-longest_text",
    build_text(),
    text_cases,
    returns=("the number of tokens",),
    mistakes=read_again("The KV cache: what a model keeps while it writes", TEXT),
    build=build_text,
    quantities=text_quantities,
    uses=("05-cache_bytes",),
    forbidden=FORBIDDEN,
    number=9,
    since=2,
)
