"""Task 1.5, predictions: three numbers, predicted."""

from mha_classroom.checks.task import Case, Task, known, read_again


def predictions():
    """Powers 1 : 2 : 5. After the shift 1 : 4 : 5, so 4 / 10. An average of 2 v + 6 is 2 · 9 + 6.
    With the second pair twice 1 : 2 : 2 : 5, so (5 · 4 + 5 · 12) / 10.
    """
    return {"second_weight": 0.4, "new_output": 24.0, "output_with_twin": 8.0}


def prediction_cases(draw):
    """The one case of `predictions`, which takes nothing."""
    return [Case("the example of the statement", {})]


def build_predictions(**parts):
    """Here the parts are the numbers."""
    return lambda: predictions() | parts


STEPS = {
    "second_weight": "Which powers are behind the old weights, and by what is each multiplied?",
    "new_output": "Which weights has the second question, and which values? Then average.",
    "output_with_twin": "Write down the four powers, their sum, and the value of each pair.",
}


def point_out_steps(inputs, numbers):
    """How to begin, for each number that is wrong."""
    right = predictions()
    wrong = [name for name in right if not abs(numbers[name] - right[name]) < 1e-3 * right[name]]
    return " ".join(f"{name}: {STEPS[name]}" for name in wrong)


SHARES = "From scores to weights"
SHIFT = "Only differences between scores count"
BLIND = "The order of the words does not count"

PREDICTIONS = {
    "weight-unmoved": known(
        "Your second_weight is the old one, as if both changes cancelled.",
        "A change that all scores share cancels. Do the scores share both of them?",
        section=SHIFT,
        second_weight=0.25,
    ),
    "weight-doubled": known(
        "Your second_weight is twice the old one.",
        "If you doubled the weight: it is the power that doubles. A weight is a share of the sum "
        "of all powers, and that sum does not stay as it was either. If you worked out the three "
        "new weights: do they add up to 1, is this the one of the second pair, and did all three "
        "scores grow by ln 3?",
        section=SHARES,
        second_weight=0.5,
    ),
    "weight-of-the-first": known(
        "Your second_weight is the new weight of the first pair.",
        "Python counts from 0. Which of the three weights is the second pair's?",
        section=SHARES,
        second_weight=0.1,
    ),
    "shift-for-one-only": known(
        "Your second_weight comes about if ln 3 is added to the second score only, or if the "
        "second power is divided by the sum of the two others.",
        "Every score grows by ln 3. What do all powers have in common then, and what becomes of it "
        "when they are divided by their sum?",
        section=SHIFT,
        second_weight=2 / 3,
    ),
    "instead-of-on-top": known(
        "Your second_weight comes about if the second score grows by ln 2 and the others by ln 3.",
        "The ln 2 comes on top: the second score grows by both.",
        section=SHIFT,
        second_weight=4 / 22,
    ),
    "logarithms-added": known(
        "Your second_weight comes about if the second power grows by the factor 5, and the others "
        "by the factor 3.",
        "Adding ln 3 and ln 2 to a score multiplies its power by 3 and by 2. ln 3 + ln 2 is the "
        "logarithm of a product, not of 3 + 2.",
        section=SHIFT,
        second_weight=5 / 14,
    ),
    "old-power-in-the-sum": known(
        "Your second_weight comes about if the sum of the powers still holds the old second power "
        "beside the new one.",
        "The power that grows takes the place of the old one. Do your three new weights add up "
        "to 1?",
        section=SHARES,
        second_weight=1 / 3,
    ),
    "logarithm-added-to-the-weight": known(
        "You add ln 2 to the weight.",
        "It is the score that grows. A weight is made of powers: what does adding ln 2 to an "
        "exponent do to the power?",
        section=SHARES,
        second_weight=0.9431,
    ),
    "weights-as-scores": known(
        "For second_weight you put the weights of the table through a softmax, as if they were "
        "scores.",
        "They are shares already. The powers behind them are in the ratio of the weights: which "
        "powers are there before, and which after?",
        section=SHARES,
        second_weight=0.461096,
    ),
    "logarithm-to-base-10": known(
        "Your second_weight comes about if ln is the logarithm to base 10, or if ln 2 is added to "
        "the second power.",
        "ln is the logarithm to base e, log in Python and PyTorch: e to the power ln 2 is 2. A "
        "score that is larger by ln 2 multiplies its power by that.",
        section=SHARES,
        second_weight=0.310543,
    ),
    "weight-above-1": known(
        "Your second_weight is 6 times the old one, and larger than 1.",
        "A weight is a share: no weight can be above 1, and all of them add up to 1. Which factor "
        "do all powers get, and does it matter?",
        section=SHIFT,
        second_weight=1.5,
    ),
    "power-not-share": known(
        "Your second_weight is larger than 1: it is the power, not yet the weight.",
        "Weights are shares of one whole. What is missing between the powers and the weights?",
        section=SHARES,
        second_weight=4.0,
    ),
    "weight-in-percent": known(
        "Your second_weight is in percent.",
        "The table has numbers from 0 to 1, and a weight is one of these.",
        section=SHARES,
        second_weight=40.0,
    ),
    "output-unmoved": known(
        "Your new_output is the old one.",
        "Weights follow from the scores, so they stay as they were. But what is averaged with them "
        "is new.",
        new_output=9.0,
    ),
    "sixes-cancel": known(
        "Your new_output is twice the old one: the 6 has disappeared.",
        "What all scores share cancels. Values are not scores. If every value were 6, what would "
        "the average be?",
        new_output=18.0,
    ),
    "six-for-each-pair": known(
        "You count the 6 three times, once for each pair.",
        "Each 6 is multiplied by the weight of its pair before they are added up. What do the "
        "three weights add up to?",
        new_output=36.0,
    ),
    "six-shared-out": known(
        "You divide the 6 among the three pairs.",
        "Every value gets the whole 6, and the weights add up to 1. If every value were 6, what "
        "would the average be?",
        new_output=20.0,
    ),
    "doubling-forgotten": known(
        "Your new_output has the 6, but the values are not doubled.",
        "Weights stay, values change. If every value doubles, what does their average do?",
        new_output=15.0,
    ),
    "new-values-averaged-evenly": known(
        "You average the new values evenly.",
        "Each value counts by its weight, and these are far from equal.",
        section="Attention with one query",
        new_output=58 / 3,
    ),
    "second-goes-on-from-the-first": known(
        "Your new_output comes about with the weights that the first question has changed, or if "
        "14 and 30 count half each.",
        "Each question starts again from the table, and each of its three values has its weight.",
        new_output=22.0,
    ),
    "six-doubled-too": known(
        "Your new_output comes about if you add 6 first and double afterwards, or if the third "
        "value is all that counts.",
        "2 · v + 6 doubles v alone, and every value has its weight.",
        new_output=30.0,
    ),
    "twin-without-effect": known(
        "Your output_with_twin is the old output, as if the second pair were there once.",
        "The order of the pairs changes nothing. But a pair that is there twice has two powers, "
        "and its share grows at the expense of the others.",
        section=BLIND,
        output_with_twin=9.0,
    ),
    "twin-on-top": known(
        "Your output_with_twin comes about if the twin's part is added to the old output, or if "
        "all four parts are divided by the old sum of the powers.",
        "Then the four weights add up to more than 1. With one more power in the sum, what happens "
        "to the other shares?",
        output_with_twin=10.0,
    ),
    "third-goes-on-from-the-second": known(
        "For output_with_twin you take the values that the second question has changed.",
        "Each question starts again from the table.",
        output_with_twin=22.0,
    ),
    "third-goes-on-from-the-first": known(
        "For output_with_twin you take the weights that the first question has changed.",
        "Each question starts again from the table.",
        output_with_twin=96 / 14,
    ),
    "first-pair-twice": known(
        "Your output_with_twin comes about if the first pair is there twice.",
        "It has the same value as the second, but not the same power.",
        section=BLIND,
        output_with_twin=76 / 9,
    ),
    "third-pair-twice": known(
        "Your output_with_twin comes about if the third pair is there twice.",
        "Reversed or not, the pair in the middle stays in the middle. Which one has a twin?",
        section=BLIND,
        output_with_twin=132 / 13,
    ),
    "weights-left-behind": known(
        "You reverse the values or the weights, and the others stay where they were.",
        "A pair is a key with its value. The weight follows from the key, so it moves along.",
        section=BLIND,
        output_with_twin=4.8,
    ),
    "old-output-times-3-by-4": known(
        "Your output_with_twin is three quarters of the old output.",
        "A fourth pair does not make all shares smaller in the same way and leave the rest empty: "
        "four weights add up to 1, too. Write down the four powers, and their sum.",
        output_with_twin=6.75,
    ),
    "twin-weights-as-scores": known(
        "For output_with_twin you put four weights through a softmax, as if they were scores.",
        "They are shares already. The powers behind them are in the ratio of the weights: write "
        "down the four powers, and their sum.",
        section=SHARES,
        output_with_twin=6.683562,
    ),
    "two-exchanged": known(
        "Your new_output and output_with_twin stand under each other's names.",
        "The numbers are right. The second question asks for new_output, the third one for "
        "output_with_twin.",
        new_output=8.0,
        output_with_twin=24.0,
    ),
    "twins-averaged-evenly": known(
        "You average the four values evenly.",
        "Each value counts by its weight, and these are far from equal.",
        section="Attention with one query",
        output_with_twin=6.0,
    ),
}

TASK = Task(
    "01-predictions",
    predictions,
    prediction_cases,
    returns=("predictions",),
    tolerance=1e-3,
    secret=True,
    mistakes=read_again("The output is an average of the values", PREDICTIONS),
    build=build_predictions,
    point_out=point_out_steps,
    number=5,
)
