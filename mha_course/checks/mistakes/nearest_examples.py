"""The known mistakes of lesson 12 that compare with single examples instead of their mean."""

from mha_course.checks.mistakes.cosines import unit
from mha_course.checks.task import Mistake

__all__ = ["EIGHT", "EXAMPLES", "first_seen"]

EIGHT = "A classifier from eight examples a class"


def first_seen(labels):
    """Each label once, in the order in which they come."""
    return list(dict.fromkeys(labels))


def _by_example(choose):
    """An answer that compares with single examples: `choose` says which label, from cosines."""

    def classify(vectors, examples, labels):
        return [choose(row, labels) for row in unit(vectors) @ unit(examples).T]

    return classify


def _vote(row, labels):
    """The label that most of the three nearest examples have."""
    near = [labels[i] for i in row.argsort(descending=True, stable=True)[:3]]
    return max(first_seen(near), key=near.count)


def _totals(row, labels):
    """The label whose examples have the largest sum of cosines."""
    sums = dict.fromkeys(labels, 0.0)
    for value, label in zip(row.tolist(), labels, strict=True):
        sums[label] += value
    return max(sums, key=sums.get)


def _cut_evenly(cut):
    """An answer that cuts the examples into equal parts, in order, a part for each label."""

    def classify(vectors, examples, labels):
        names = first_seen(labels)
        means = cut(unit(examples), len(names)).mean(1)
        places = (unit(vectors) @ unit(means).T).argmax(1)
        return [names[place] for place in places.tolist()]

    return classify


EXAMPLES = (
    *(
        Mistake(
            id,
            "You cut the examples into equal parts, one for each label.",
            "In the lesson each label has eight examples, one after the other. Here they may be "
            "mixed, and one label may have more than another: only labels says whose each is.",
            EIGHT,
            _cut_evenly(cut),
        )
        for id, cut in (
            ("examples-reshaped", lambda X, count: X.reshape(count, -1, X.shape[1])),
            ("examples-unflattened", lambda X, count: X.unflatten(0, (count, -1))),
        )
    ),
    Mistake(
        "nearest-example",
        "You take the label of the single example that is most like the vector.",
        "That is another classifier (nearest neighbour), led astray by one odd example. Asked for "
        "is the mean of each label's examples.",
        EIGHT,
        _by_example(lambda row, labels: labels[int(row.argmax())]),
    ),
    Mistake(
        "vote-of-three",
        "You let the three nearest examples vote.",
        "That is another classifier (nearest neighbours). Asked for is the mean of each label's "
        "examples.",
        EIGHT,
        _by_example(_vote),
    ),
    Mistake(
        "sums-of-cosines",
        "You add up: a label with more examples gets more.",
        "How many examples a label has is chance. The mean's direction is what counts.",
        EIGHT,
        _by_example(_totals),
    ),
)
