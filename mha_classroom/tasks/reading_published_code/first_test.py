"""Task 11.6, first_test: a test of attention without padding."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_classroom.tasks.reading_published_code.runs import NAMES, NOTHING, RIGHT, run_test
from mha_course.implementations import WRONG, build

NEEDS_MORE = (  # right in every output without lengths, as long as the scores are small
    "mask ignored",
    "mask after the softmax",
    "masked scores set to 0",
    "softmax of exp, no maximum",
    "lengths by repeat",
    "length 0 gives NaN",
    "length 0 gives the average",
    "the caller's queries changed",
    "mask inverted",
    "one key too many",
    "padded queries masked, not keys",
    "the first length for all",
    "the first mask kept",
    "no gradient to W_q and W_k",
)
PLAIN = [name for name in NAMES if name not in NEEDS_MORE]


def plain_cases(draw):
    return [Case("without lengths", {"implementations": shuffled(draw, PLAIN)})]


def shuffled(draw, names):
    """The numbers of these implementations, in an order that does not say which are right."""
    places = torch.tensor([NAMES.index(name) for name in names])
    return places[draw.normal(len(names)).argsort()]


@total
def examine_test(inputs, said):
    """That a test is as good as it has to be.

    Raises: AnswerError with the score, the wrong ones that get through and the right ones that
        are rejected.
    """
    verdicts = {NAMES[number]: said[number] for number in inputs["implementations"].tolist()}
    if all(verdict == NOTHING for verdict in verdicts.values()):
        raise AnswerError(
            "The test returns nothing, and no AssertionError comes out of it, whatever it is "
            "given. So it accepts everything. Is a return missing? Does an except of yours catch "
            "the AssertionError? And assert (this, text) in brackets never fails: a tuple counts "
            "as true."
        )
    others = [v for v in verdicts.values() if type(v) is not bool and v != NOTHING]
    others = [v for v in others if type(v) is not str or not v.startswith("raises ")]
    if others:
        got = others[0] if type(others[0]) is str else "returns something else"
        raise AnswerError(
            f"The test {got}. It should return True or False, or raise AssertionError."
        )
    right = [name for name in RIGHT if name in verdicts]
    through = [n for n in WRONG if n in verdicts and verdicts[n] in (True, NOTHING)]
    lost = [name for name in right if verdicts[name] not in (True, NOTHING)]
    wrong = len(verdicts) - len(right)
    silent = [name for name in through if verdicts[name] == NOTHING]
    returns = any(verdict is True for verdict in verdicts.values())  # else it only asserts
    if not returns or silent == through:
        verdicts |= dict.fromkeys(silent, True)
    why = reasons(through, lost, wrong, verdicts)
    if returns and silent:
        why = [SILENT[silent == through], *why]
    if through or lost:
        raise AnswerError(
            f"Rejects {wrong - len(through)} of {wrong} wrong implementations, accepts "
            f"{len(right) - len(lost)} of {len(right)} right ones."
            + listed("Wrong ones that get through", through, verdicts)
            + listed("Right ones that are rejected", lost, verdicts)
            + "".join(f" {reason}" for reason in why)
        )
    return f"rejects all {wrong} wrong implementations and accepts all {len(right)} right ones"


SILENT = {
    True: "For these your test returned nothing, which counts as True.",
    False: "Where it says (nothing), your test returned nothing, which counts as True.",
}
ROUNDED = (  # right ones that add in another order than build() does
    "PyTorch's fused function",
    "PyTorch's multi-head function",
    "W_o head by head, added up",
    "softmax by hand",
    "scaled before the product",
)
ROUNDING = (
    "If the right ones differ from your numbers in the last digits only, this is rounding: they "
    "add in another order. In float32 it shows in the 7th digit."
)
BY_CHANCE = (
    "Right ones are rejected that compute just what build() does, and other right ones are not. "
    "Does the result hang on chance, on a digit that is rounded, or on a gradient that becomes 0 "
    "where scores are very large?"
)
SCALES = {
    "scaled by the root of d_model",
    "scaled by the root of S",
    "not scaled",
    "divided by d_k",
}
LACKS = (  # what gets through, and what such a test lacks; what comes first is said for all of it
    (
        SCALES,
        "For the scales: where all words or all values are alike, or are nearly 0, or where there "
        "is one key only, or scores are so large that each query picks one key, no scale makes a "
        "difference. Nor is it seen with a large tolerance, or in a mean of differences.",
    ),
    (
        {"scaled by the root of d_model", "scaled by the root of H", "scaled by the root of S"},
        "For the roots: their outputs are not far from right ones. Allow smaller differences.",
    ),
    (
        {"scaled by the root of H", "scaled by the root of S"},
        "For the roots of H and of S: with as many heads, or keys, as each head has features, they "
        "are the right root. If your test has neither, their outputs are not far from right ones: "
        "allow smaller differences.",
    ),
    (
        {"scaled by the root of H"},
        "For the root of H: is the number of heads in your test also the width of a head? If it is "
        "not, allow smaller differences.",
    ),
    (
        {"scaled by the root of S"},
        "For the root of S: are there as many keys in your test as each head has features? Then "
        "√S is √d_k. If there are not, allow smaller differences.",
    ),
    (
        {"values made from the keys"},
        "For values made from the keys: which tensor do you pass as values?",
    ),
    (
        {"merge without transpose", "heads averaged", "split interleaved"},
        "For the heads: with one head there is nothing to split or to join, and with more a mean "
        "over the features does not see in which order they stand.",
    ),
    (
        {"merge without transpose", "merge, then transpose again"},
        "For the merge: with one query there are no axes to swap, and with more a mean over them "
        "does not see their order.",
    ),
    (
        {"split interleaved", "merge interleaved", "not scaled"},
        "For what is interleaved or not scaled: in a head of width 1 there is no order of "
        "features, and the root of its width is 1.",
    ),
    (
        {"W_q, W_k, W_v not used", "W_o not used"},
        "For the matrices: if they are the identity, it makes no difference whether they are used.",
    ),
    (
        {"W_q, W_k, W_v not used"},
        "For W_q, W_k and W_v: if they are the identity, it makes no difference whether they are "
        "used.",
    ),
    (
        {"W_o not used"},
        "For W_o: if it is the identity, it makes no difference whether it is used.",
    ),
    (
        {"keys made by W_q"},
        "For keys made by W_q: have W_q and W_k the same numbers in your test?",
    ),
    (
        {"mask ignored", "lengths by repeat", "the first length for all"},
        "For the masks: you need lengths, some key has to be past its length, two sequences have "
        "to differ in length, and what a comparison says has to reach your return.",
    ),
    (
        {"lengths by repeat", "the first length for all"},
        "For the lengths: two sequences have to differ in length.",
    ),
    (
        {"mask after the softmax", "masked scores set to 0"},
        "For what is hidden: some length has to lie between 0 and the number of keys, and each "
        "number has to be compared: a mean of the differences, or a large tolerance, lets this "
        "mistake through.",
    ),
    (
        {"length 0 gives the average", "length 0 gives NaN"},
        "For length 0: one sequence needs that length, and all numbers of its output have to be "
        "0. Does your test come to it before it returns, and does it compare all of them?",
    ),
    (
        {"length 0 gives the average"},
        "For the average: where a length is 0, the output has to be zeros, not only free of NaN.",
    ),
    (
        {"length 0 gives NaN", "softmax of exp, no maximum"},
        "For NaN: no comparison with NaN is true, so difference > small misses it, and nan_to_num "
        "makes a zero of it. (NaN comes of a length of 0, and of scores of some thousand.)",
    ),
    (
        {"length 0 gives NaN"},
        "For NaN: NaN is no zero. nan_to_num makes a zero of it, and no comparison with NaN is "
        "true.",
    ),
    (
        {"softmax of exp, no maximum"},
        "For exp: does your test come to queries that are some thousand times as large, before it "
        "returns? The exp of such scores is infinite.",
    ),
    (
        {"the first mask kept"},
        "For the first mask: call the same module twice, with other lengths.",
    ),
    (
        {"the caller's queries changed"},
        "For the caller's queries: compare what you gave with a copy from before the call.",
    ),
    (
        {"no gradient to W_q and W_k"},
        "For the gradients: look at weight.grad of all four after backward().",
    ),
)
LIKE_SCALES = {  # what needs no sentence of its own where no scale makes a difference
    "scaled by the root of H",
    "keys made by W_q",
}
NAMED = (  # what known mistakes let through, so that they say why
    {"values made from the keys"},
    {"scaled by the root of H"},
    {"softmax of exp, no maximum"},
    {"the first mask kept"},
    {"the caller's queries changed"},
    {"no gradient to W_q and W_k"},
    {"length 0 gives NaN", "length 0 gives the average"},
)
MANY = (
    "Most get through. Do you compare numbers, all of them, with those of build() and not of the "
    "class itself, and allow small differences only? Does what you find reach the end, or is it "
    "thrown away, or does an except or an if accept before? And has a query several keys to choose "
    "from?"
)
MOST_REASONS = 5


def reasons(through, lost, wrong, verdicts):
    """Sentences on what a test lacks, in the order in which to mend it."""
    right = [name for name in RIGHT if name in verdicts]
    raised = [verdicts[n] for n in lost if type(verdicts[n]) is str and verdicts[n] != NOTHING]
    if raised and len(raised) == len(right):
        return [f"On right ones your test itself {raised[0][:200]}."]
    if len(lost) == len(right):
        return all_lost(through, wrong)
    if lost and len(through) > wrong / 2:
        return [MANY]
    if lost:
        by_rounding = set(lost) <= set(ROUNDED)
        said = [ROUNDING if by_rounding else BY_CHANCE] if not raised else []
        return said + (lacks(through) if by_rounding else [])
    if len(through) == wrong or set(through) in NAMED:
        return []
    return [MANY] if len(through) > wrong / 2 else lacks(through)


def all_lost(through, wrong):
    if len(through) == wrong:
        return ["So it is the wrong way round: it accepts what is wrong."]
    if through:
        return [
            "Most likely what you compare with makes a mistake itself, that of the wrong ones that "
            "get through."
        ]
    return []


def lacks(through):
    """One sentence for each group of wrong ones that gets through as a whole."""
    left, found = set(through), []
    for names, said in LACKS:
        if names <= left:
            found.append(said)
            left -= names | (LIKE_SCALES if names == SCALES else set())
    return found[:MOST_REASONS]


def listed(heading, names, verdicts):
    if not names:
        return ""
    said = [f"{n} ({kind_of(verdicts[n])})" if type(verdicts[n]) is str else n for n in names]
    return f" {heading}: {'; '.join(said)}."


def kind_of(verdict):
    """Without what an exception says: "raises KeyError"."""
    return verdict.split(":")[0]


SELF, CROSS = (5, 5, [None], 1), (5, 7, [None], 1)


def copy_weights(trusted, attention):
    trusted.load_state_dict(attention.state_dict())


def build_test(
    tries=(SELF, CROSS),
    batch=2,
    sizes=(12, 3),
    draw=torch.randn,
    one_tensor=False,
    copy=copy_weights,
    close=lambda one, other: bool((one - other).abs().max() < 1e-6),
    untouched=True,
    learns=True,
):
    """A test that compares with code that is trusted; one that lacks something, if told.

    tries: L, S, the lengths of one call after the other, by what queries are multiplied.
    """

    def test(Attention):
        for L, S, lengths, scale in tries:
            attention, trusted = Attention(*sizes).double(), build()(*sizes).double()
            copy(trusted, attention)
            queries = scale * draw(batch, L, sizes[0]).double()
            keys, values = draw(2, batch, S, sizes[0]).double()
            if one_tensor:
                keys = values = queries
            for lens in lengths:
                lens = None if lens is None else torch.tensor(lens)
                expected = trusted(queries.clone(), keys.clone(), values.clone(), lens)
                given = queries.clone()
                output = attention(given, keys, values, lens)
                if not close(output, expected) or (untouched and not close(given, queries)):
                    return False
            if learns:
                output.square().sum().backward()
                if any(weights.grad is None for weights in attention.parameters()):
                    return False
        return True

    return test


def shape_only(Attention):
    words = torch.randn(2, 5, 12)
    return Attention(12, 3)(words, words, words).shape == words.shape


def equal_bits(one, other):
    return torch.equal(one, other)


TESTS = "Tests that people write"
EQUAL = "Equal sizes hide mistakes"
TEXT_B = "Text B: the shape is right"

NOT_A_TEST = {
    "accepts-everything": known(
        "Your test accepts whatever it is given.",
        "Does it look at more than the shape or a mean, and does it return what it finds? Are the "
        "differences that you allow far smaller than the outputs? The shape is right in all of "
        "them, and names are of no use: it is given copies. With which numbers could you compare "
        "theirs, and does your test do so? (And assert (this, text) in brackets never fails.)",
        section=TEXT_B,
        wrong=lambda Attention: True,
    ),
    "rejects-everything": known(
        "Your test rejects whatever it is given, right ones too.",
        "Try it on build(), which is right, and see which comparison fails. If you compare with a "
        "module that you trust, do both have the same weights? If you expect numbers of your own, "
        "are they what the statement says, in every case?",
        wrong=lambda Attention: False,
    ),
    "shape-only": known(twin="accepts-everything", wrong=shape_only),
    "weights-not-copied": known(twin="rejects-everything", copy=lambda trusted, attention: None),
    "equal-to-the-last-bit": known(
        "Your test wants the same numbers to the last bit, or nearly so, and rejects right ones.",
        "Sums in another order differ in the 16th digit, and in float32 in the 7th. Allow a small "
        "difference.",
        section="Check yourself",
        close=equal_bits,
    ),
}

ROOT_OF_H = (
    "Your test sees no difference where scores are divided by the root of the number of heads.",
    "With as many heads as each head has features, √H is √d_k. With nearly as many, a large "
    "tolerance hides what differs.",
)
FIRST = {
    **NOT_A_TEST,
    "ones": known(
        "All words in your test are alike: the same number everywhere, or the same word each time.",
        "Then it makes no difference to which of them a query attends.",
        draw=torch.ones,
    ),
    "one-tensor": known(
        "The values are the keys in your test, or queries, keys and values are one tensor.",
        "Values that are made from the keys are right by chance then.",
        section=EQUAL,
        tries=(SELF,),
        one_tensor=True,
    ),
    "as-many-heads-as-features": known(
        *ROOT_OF_H,
        section=EQUAL,
        sizes=(16, 4),
    ),
    "last-word-only": known(
        "You compare the last word only.",
        "Where later words are hidden by mistake, the last word is right: nothing comes after it.",
        section=EQUAL,
        tries=(SELF,),
        close=lambda one, other: bool((one - other)[:, -1].abs().max() < 1e-6),
    ),
    "average-only": known(
        "You test with values that are all the same.",
        "Whatever the weights are, their average is that value. So no scale and no wrong look is "
        "found. The values have to differ.",
        draw=lambda *shape: torch.randn(*shape[:-2], 1, shape[-1]).expand(*shape),
    ),
}

TASK = Task(
    "11-first_test",
    build_test(),
    plain_cases,
    run=run_test,
    examine=examine_test,
    returns=("the test",),
    mistakes=read_again(TESTS, FIRST),
    build=build_test,
    alone=tuple(FIRST),
    hidden=("implementations",),
    number=6,
)
