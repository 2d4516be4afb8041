"""The known mistakes of lesson 12 in sorting texts by the nearest mean."""

import torch

from mha_course.checks.mistakes.cosines import unit
from mha_course.checks.mistakes.nearest_examples import EIGHT, EXAMPLES, first_seen
from mha_course.checks.mistakes.weighing import same
from mha_course.checks.task import Mistake

__all__ = ["NEAREST", "build_nearest"]


def cosine(vectors, means):
    """(N, K), how nearly each vector points the way of each mean."""
    return unit(vectors) @ unit(means).T


def build_nearest(
    scaled=unit,
    kinds=first_seen,
    join=lambda own: own.mean(0),
    compare=cosine,
    choose=lambda table: table.argmax(1).tolist(),
    say=lambda names, place: names[place],
    finish=same,
):
    """Return an answer to `12-classify`, right unless a part is replaced.

    scaled: the examples. kinds: the labels, each once. join: what the examples of a label become.
    compare: (N, K). choose: a column for each vector. say: what is returned for it.
    """

    def classify(vectors, examples, labels):
        names, examples = kinds(labels), scaled(examples)
        rows = [torch.tensor([label == name for label in labels]) for name in names]
        means = torch.stack([join(examples[row]) for row in rows])
        return finish([say(names, place) for place in choose(compare(vectors, means))])

    return classify


def _distances(vectors, means):
    return -(vectors[:, None] - means).norm(dim=-1)


def _of_all(table):
    """One column for all vectors together."""
    return [int(table.mean(0).argmax())] * len(table)


def _equals_anyhow(inputs, value):
    """Whether each label fits its vector as well as the best."""
    names = first_seen(inputs["labels"])
    table = cosine(inputs["vectors"], build_means(inputs["examples"], inputs["labels"]))
    found = [names.index(label) for label in value.values()]
    own = table[torch.arange(len(table)), torch.tensor(found)]
    return bool((own > table.amax(1) - 1e-9).all())


NEAREST = (
    Mistake(
        "examples-not-normalised",
        "You take the mean of the examples as they are, long ones and short ones.",
        "A long example then decides where the mean points. Each example is to have the same say: "
        "length 1 first, then the mean.",
        EIGHT,
        parts={"scaled": same},
    ),
    *EXAMPLES,
    Mistake(
        "dot-product-with-the-mean",
        "You compare by dot product, and the means have different lengths. (The mean of the "
        "cosines with a label's examples comes to the same.)",
        "The mean of vectors that disagree is short, and would lose for that reason alone. Where "
        "it points is what counts.",
        EIGHT,
        parts={"compare": lambda vectors, means: vectors @ means.T},
    ),
    Mistake(
        "distance-from-the-mean",
        "You take the mean that is nearest by distance.",
        "A vector's length and a mean's length both change a distance. Compared is where they "
        "point: the cosine.",
        EIGHT,
        parts={"compare": _distances},
    ),
    Mistake(
        "distance-of-unit-vectors",
        "You bring the vectors to length 1 and take the mean that is nearest by distance.",
        "The means are shorter than 1, some more than others, and the distance feels that. The "
        "cosine does not.",
        EIGHT,
        parts={"compare": lambda vectors, means: _distances(unit(vectors), means)},
    ),
    Mistake(
        "farthest",
        "You return the label that fits least.",
        "The largest cosine was asked for.",
        EIGHT,
        parts={"choose": lambda table: table.argmin(1).tolist()},
    ),
    Mistake(
        "sign-lost",
        "You take the cosines without their sign.",
        "A mean that points the opposite way fits worst of all.",
        EIGHT,
        parts={"compare": lambda vectors, means: cosine(vectors, means).abs()},
    ),
    Mistake(
        "label-numbers",
        "You return the label's number, not the label.",
        "The caller's labels may be words. What comes back is one of them.",
        EIGHT,
        parts={"say": lambda names, place: place},
    ),
    Mistake(
        "label-by-example-number",
        "You use the number of a mean to look into the list of labels, which has an entry for each "
        "example.",
        "Mean 1 is not example 1. Keep a list of the labels, each once, beside the means.",
        EIGHT,
        lambda vectors, examples, labels: build_nearest(say=lambda names, place: labels[place])(
            vectors, examples, labels
        ),
    ),
    Mistake(
        "wrong-axis",
        "You look for the best vector of each label, not for the best label of each vector.",
        "The table of cosines has a row for each vector here and a column for each label. One "
        "answer a vector was asked for.",
        EIGHT,
        lambda vectors, examples, labels: [
            labels[i % len(labels)]
            for i in cosine(vectors, build_means(examples, labels)).argmax(0).tolist()
        ],
    ),
    Mistake(
        "one-for-all",
        "You return the same label for every vector.",
        "Each vector is compared for itself.",
        EIGHT,
        parts={"choose": _of_all},
    ),
    Mistake(
        "first-example-only",
        "You use the first example of each label only.",
        "All of them belong in the mean.",
        EIGHT,
        parts={"join": lambda own: own[0]},
    ),
    Mistake(
        "last-example-only",
        "You use the last example of each label only.",
        "A dict keeps the last value for a key, and each example overwrites the one before. All of "
        "them belong in the mean.",
        EIGHT,
        parts={"join": lambda own: own[-1]},
    ),
    Mistake(
        "median",
        "You take the median of a label's examples, feature by feature.",
        "The mean was asked for.",
        EIGHT,
        parts={"join": lambda own: own.median(0).values},
    ),
    Mistake(
        "largest",
        "You take the largest number of each feature.",
        "The mean was asked for.",
        EIGHT,
        parts={"join": lambda own: own.amax(0)},
    ),
    Mistake(
        "last-of-equals",
        "Of labels that fit equally well you take the one that comes last.",
        "The first to be seen in `labels` was asked for: >= in place of > makes the difference in "
        "a loop.",
        EIGHT,
        parts={"choose": lambda table: (table.shape[1] - 1 - table.flip(1).argmax(1)).tolist()},
    ),
    Mistake(
        "sorted-labels",
        "You sort the labels, or put them into a set, and among equals their order decides.",
        "Of labels that fit equally well the first to be seen in `labels` was asked for. A set "
        "keeps no order; dict.fromkeys does.",
        EIGHT,
        parts={"kinds": lambda labels: sorted(set(labels))},
    ),
    Mistake(
        "equals-anyhow",
        "Of labels that fit equally well you take any.",
        "The first to be seen in `labels` was asked for. A set keeps no order; dict.fromkeys does.",
        EIGHT,
        build_nearest(kinds=lambda labels: sorted(set(labels), reverse=True)),
        shows=_equals_anyhow,
    ),
    Mistake(
        "pairs-returned",
        "You return pairs of a label and something else.",
        "A list of labels was asked for, one for each vector.",
        EIGHT,
        parts={"finish": lambda found: [(label, 0.0) for label in found]},
    ),
    Mistake(
        "tensor-returned",
        "You return a tensor of label numbers.",
        "The caller's labels may be words. Asked for is a list of them.",
        EIGHT,
        parts={
            "say": lambda names, place: place,
            "finish": torch.tensor,
        },
    ),
)


def build_means(examples, labels):
    """The mean of each label's examples, at length 1 before it was taken."""
    rows = [torch.tensor([label == name for label in labels]) for name in first_seen(labels)]
    return torch.stack([unit(examples)[row].mean(0) for row in rows])
