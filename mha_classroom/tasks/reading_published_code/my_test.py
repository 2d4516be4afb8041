"""Task 11.7, my_test: a test that all wrong implementations fail and all right ones pass."""

from mha_classroom.checks.examining import total
from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.reading_published_code.first_test import (
    CROSS,
    EQUAL,
    NOT_A_TEST,
    ROOT_OF_H,
    SELF,
    TESTS,
    build_test,
    examine_test,
    shuffled,
)
from mha_classroom.tasks.reading_published_code.runs import NAMES, run_test

SHORT, PADDED = (5, 5, [[5, 2]], 1), (5, 7, [[7, 3], [0, 4]], 1)
LOUD = (4, 6, [[6, 3]], 3000)
FIVE = "Five survive the best test"


def all_cases(draw):
    return [Case("all implementations", {"implementations": shuffled(draw, NAMES)})]


@total
def examine_all(inputs, said):
    """As `examine_test`."""
    return examine_test(inputs, said)


def build_my_test(tries=(SHORT, PADDED, LOUD), **parts):
    return build_test(tries=tries, **parts)


MINE = {
    **NOT_A_TEST,
    "rejects-everything": known(
        "Your test rejects whatever it is given, right ones too.",
        "Try it on build(), which is right, and see which comparison fails. Have two modules that "
        "you compare the same weights? Are numbers of your own zeros where a length is 0? Is "
        "backward() called before you look at grad, and not where all lengths are 0 or 1? (With "
        "one word to look at, W_q and W_k get a gradient of 0.)",
        wrong=lambda Attention: False,
    ),
    "one-sequence": known(
        "You test without lengths, and the values are the keys, or all three are one tensor.",
        "Without lengths no wrong mask shows. And values that are made from the keys are right by "
        "chance then.",
        tries=(SELF,),
        batch=1,
        one_tensor=True,
    ),
    "without-lengths": known(
        "Your test finds nothing that is wrong only with lengths: either you pass none, or what "
        "such a call shows never reaches your return.",
        "About a third of the wrong ones are wrong in their mask only.",
        tries=(SELF, CROSS, (4, 6, [None], 3000)),
    ),
    "full-lengths": known(
        "Your lengths are those of the whole sequences, so that nothing is padding, or what "
        "shorter ones show never reaches your return or an assert.",
        "A mask that hides nothing cannot be wrong.",
        tries=((5, 5, [[5, 5]], 1), (5, 7, [[7, 7]], 1), (4, 6, [[6, 6]], 3000)),
    ),
    "one-tensor": known(
        "The values are the keys in your test, or queries, keys and values are one tensor.",
        "Values that are made from the keys are right by chance then.",
        section=EQUAL,
        tries=(SHORT, (5, 5, [[5, 3], [0, 4]], 1), (5, 5, [[5, 3]], 3000)),
        one_tensor=True,
    ),
    "as-many-heads-as-features": known(
        *ROOT_OF_H,
        section=EQUAL,
        sizes=(16, 4),
    ),
    "no-sequence-of-length-0": known(
        "None of your sequences has length 0, or its output is not looked at, or what you find "
        "there never reaches your return or an assert.",
        "Two of the wrong ones are wrong there only. The statement says what should come out.",
        section=FIVE,
        tries=(SHORT, (5, 7, [[7, 3], [6, 4]], 1), LOUD),
    ),
    "no-large-scores": known(
        "Your scores are all small, or your comparison takes NaN for equal, or what it says never "
        "reaches your return or an assert.",
        "exp of 100 can be computed, exp of 1,000 cannot. How do you make scores large? They then "
        "give NaN, and no comparison with NaN is true: difference > small misses it.",
        section=FIVE,
        tries=(SHORT, PADDED),
    ),
    "one-call-each": known(
        "You call each module once, or each time with the same lengths, or what one of its outputs "
        "shows never reaches your return or an assert.",
        "One of the wrong ones keeps something from its first call. What has to differ in the "
        "second one?",
        section=FIVE,
        tries=(SHORT, (5, 7, [[7, 3]], 1), (5, 7, [[0, 4]], 1), LOUD),
    ),
    "second-call-the-same-and-no-gradients": known(
        "You call each module once, or each time with the same lengths, and you look at no "
        "gradients, or not at those of all four matrices; or what you find there never reaches "
        "your return or an assert.",
        "One of the wrong ones keeps something from its first call: what has to differ in the "
        "second one? Another is right in each output and can never learn where to look.",
        section=FIVE,
        tries=(SHORT, (5, 7, [[7, 3], [7, 3]], 1), (5, 7, [[0, 4], [0, 4]], 1), LOUD),
        learns=False,
    ),
    "no-gradients": known(
        "You look at no gradients, or not at those of all four matrices of the module that is "
        "tested, or what you find there never reaches your return or an assert. (Or what is found "
        "there has not come through this module: a module that you trust shares its weights, or "
        "zeros were there before.)",
        "One of the wrong ones is right in each output and can never learn where to look.",
        section=FIVE,
        learns=False,
    ),
    "inputs-not-looked-at": known(
        "You do not look at the very queries that you gave, or you compare them with themselves: "
        "`before = queries` is the same tensor, `before = queries.clone()` is a copy. (Or what you "
        "find never reaches your return or an assert.)",
        "One of the wrong ones changes what it is given. Where nobody else uses the tensor, its "
        "output is right.",
        section=EQUAL,
        untouched=False,
    ),
}

TASK = Task(
    "11-my_test",
    build_my_test(),
    all_cases,
    run=run_test,
    examine=examine_all,
    returns=("the test",),
    mistakes=read_again(TESTS, MINE),
    build=build_my_test,
    alone=tuple(MINE),
    hidden=("implementations",),
    number=7,
)
