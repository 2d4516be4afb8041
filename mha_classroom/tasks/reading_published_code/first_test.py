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
            "The test returns nothing and raises no AssertionError, whatever it is given. So it "
            "accepts everything."
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
    if through or lost:
        raise AnswerError(
            f"Rejects {wrong - len(through)} of {wrong} wrong implementations, accepts "
            f"{len(right) - len(lost)} of {len(right)} right ones."
            + listed("Wrong ones that get through", through, verdicts)
            + listed("Right ones that are rejected", lost, verdicts)
            + (ROUNDING if only_rounding(through, lost, right, verdicts) else "")
        )
    return f"rejects all {wrong} wrong implementations and accepts all {len(right)} right ones"


ROUNDING = (
    " If they differ from your numbers in the last digits only, this is rounding: they add in "
    "another order. In float32 it shows in the 7th digit."
)


def only_rounding(through, lost, right, verdicts):
    """Whether some right ones are rejected, by a comparison, and no wrong one gets through."""
    some = 0 < len(lost) < len(right)
    return some and not through and all(verdicts[name] is False for name in lost)


def listed(heading, names, verdicts):
    if not names:
        return ""
    said = [f"{n} ({verdicts[n]})" if isinstance(verdicts[n], str) else n for n in names]
    return f" {heading}: {'; '.join(said)}."


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
        "Does it look at more than the shape, and does it return what it finds? The shape is right "
        "in all of them. With which numbers could you compare theirs?",
        section=TEXT_B,
        wrong=lambda Attention: True,
    ),
    "rejects-everything": known(
        "Your test rejects whatever it is given, right ones too.",
        "Try it on build(), which is right. If you compare with a module that you trust: do both "
        "have the same weights?",
        wrong=lambda Attention: False,
    ),
    "shape-only": known(twin="accepts-everything", wrong=shape_only),
    "weights-not-copied": known(twin="rejects-everything", copy=lambda trusted, attention: None),
    "equal-to-the-last-bit": known(
        "Your test wants the same numbers to the last bit, and so it rejects right ones.",
        "Sums in another order differ in the 16th digit. Allow a small difference.",
        section="Check yourself",
        close=equal_bits,
    ),
}

FIRST = {
    **NOT_A_TEST,
    "ones": known(
        "Your inputs are the same number everywhere.",
        "Then all words are alike, and it makes no difference to which of them a query attends.",
        draw=torch.ones,
    ),
    "one-tensor": known(
        "Queries, keys and values are one tensor in your test.",
        "Values that are made from the keys are right by chance then.",
        section=EQUAL,
        tries=(SELF,),
        one_tensor=True,
    ),
    "as-many-heads-as-features": known(
        "In your test there are as many heads as each head has features.",
        "Then √H is √d_k, and a wrong scale is right by chance.",
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
    number=6,
)
