"""Task 12.7, classify: the label of the nearest mean."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import describe, plain_number
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.seeing_attention.steady_head import running_halves
from mha_classroom.tasks.your_bert.runs import run_classify
from mha_classroom.tasks.your_bert.search import unit
from mha_course import sentences


def classify_cases(draw):
    def case(name, count, examples, width, labels):
        norms = draw.normal(examples, 1, scale=1.5).exp()
        inputs = {
            "vectors": draw.normal(count, width) * draw.normal(count, 1).exp(),
            "examples": draw.normal(examples, width) * norms,
            "labels": [labels[i % len(labels)] for i in range(examples)],
        }
        return Case(name, inputs)

    def fixed(name, vectors, examples, labels):
        inputs = {"vectors": vectors, "examples": examples}
        inputs = {n: torch.tensor(X).double() for n, X in inputs.items()}
        return Case(f"{name}, labels {' '.join(map(str, labels))}", inputs | {"labels": labels})

    small = [[20.0, 0.0], [0.0, 30.0], [3.0, 4.0], [-3.0, 4.0]]
    three = torch.eye(3).tolist()
    return [
        fixed("3 vectors", [[2.0, 1], [4, 7], [3, 8]], small, "sun rain sun rain".split()),
        case("3 labels, unequal shares", 31, 11, 5, ["b", "c", "b", "a", "c", "b", "b"]),
        case("as many vectors as labels and examples", 5, 5, 5, list("vwxyz")),
        one_at_the_mean_of(0, case("labels are numbers", 29, 13, 3, [7, 0, 0, 5, 7])),
        case("one example a label", 23, 3, 2, ["left", "right", "up"]),
        case("one label", 3, 5, 2, ["all"]),
        case("one vector", 1, 7, 3, ["no", "yes"]),
        fixed("equally near", [[1.0, 1.0], [2.0, 2.0]], [[0.0, 3.0], [2.0, 0.0]], ["b", "a"]),
        fixed(
            "23 equally near", [[1.0] * 23], torch.eye(23).tolist(), list("qwertzuiopasdfghjklyxcv")
        ),
        fixed(
            "equally near, three times over", [[1.0, 1, 1], [0, 1, 1], [2, 0, 2]], three, [5, 3, 7]
        ),
        fixed(
            "equally near, two examples each",
            [[5.0, 5.0]],
            [[0.0, 3.0], [2.0, 0.0], [7.0, 0.0], [0.0, 1.0]],
            ["x", "b", "b", "x"],
        ),
        fixed("nearly equal", [[1.0, 0]], [[3.0, 4.0], [3.0, 3.999996]], ["a", "b"]),
        fixed(  # vector 0 is only just nearer to the mean of a: larger norms turn that round
            "norms from 1.1e-6 on",
            [[1.0, 0.6372], [1e-6, 0.6372e-6]],
            [[1.1e-6, 0.0], [0.0, 1.0], [1.0, 0.364]],
            ["a", "a", "b"],
        ),
        case("many of one label", 41, 23, 5, ["few"] + ["many"] * 21 + ["few"]),
        in_float32(case("numbers in float32", 7, 5, 3, ["c", "a", "c"])),
        case("labels are negative numbers and fractions", 37, 13, 2, [-1, 2.5, -1, -0.5]),
        case("one example", 3, 1, 2, ["only"]),
    ]


def one_at_the_mean_of(label, case):
    """The same with a vector that has this label for sure."""
    own = torch.tensor([each == label for each in case.inputs["labels"]])
    case.inputs["vectors"][0] = unit(case.inputs["examples"])[own].mean(0)
    return case


@total
def examine_classify(inputs, seen):
    """{which vector: its label}

    Raises: AnswerError for what is no list of one given label a vector.
    """
    found = seen["found"]
    if repr(seen["labels"]) != repr(inputs["labels"]):  # False equals 0
        raise AnswerError("classify changes the caller's list of labels.")
    count = len(inputs["vectors"])
    if not isinstance(found, (list, tuple)) or len(found) != count:
        raise AnswerError(
            f"classify has to return a list of {count} labels, one for each vector; got "
            f"{describe(found)}."
        )
    kinds, said = _first_seen(inputs["labels"]), {}
    for number, label in enumerate(found):
        meant = [kind for kind in kinds if _means(label, kind)]
        if not meant:
            listed = ", ".join(map(repr, kinds))
            raise AnswerError(
                f"Each entry has to be one of the labels {listed}; entry {number} is "
                f"{describe(label)}."
            )
        said[f"the label of vector {number}"] = meant[0]
    return said


def _means(label, kind):
    """Whether an entry stands for this label; numpy's words and numbers do, too."""
    if isinstance(kind, str):
        return isinstance(label, str) and label == kind
    return plain_number(label) == kind


def _first_seen(labels):
    """Each label once, in the order in which they come."""
    return list(dict.fromkeys(labels))


def _cosine(vectors, means):
    """(N, K), how nearly each vector points the way of each mean."""
    return unit(vectors) @ unit(means).T


def _means_of(names, examples, labels, join=lambda own: own.mean(0)):
    """What the examples of each label become."""
    rows = [torch.tensor([label == name for label in labels]) for name in names]
    return torch.stack([join(examples[row]) for row in rows])


def build_nearest(
    scaled=unit,
    kinds=_first_seen,
    join=lambda own: own.mean(0),
    compare=_cosine,
    choose=lambda table: table.argmax(1).tolist(),
    say=lambda names, place: names[place],
    finish=unchanged,
):
    """scaled: the examples. kinds: the labels, each once. join: what those of a label become.
    compare: (N, K). choose: a column for each vector. say: what is returned for it.
    """

    def classify(vectors, examples, labels):
        names, examples = kinds(labels), scaled(examples)
        means = _means_of(names, examples, labels, join)
        return finish([say(names, place) for place in choose(compare(vectors, means))])

    return classify


def _centred(of_vectors):
    """(N, K): cosines after the mean of all examples was taken off."""

    def table(vectors, examples, labels, names):
        mean = examples.mean(0)
        vectors = vectors - mean if of_vectors else vectors
        return _cosine(vectors, _means_of(names, unit(examples - mean), labels))

    return table


def _runs(vectors, examples, labels, names):
    """The mean of the last run of each label, of examples next to each other."""
    start = {name: len(labels) - 1 - labels[::-1].index(name) for name in names}
    for name in names:
        while start[name] and labels[start[name] - 1] == name:
            start[name] -= 1
    last = [
        [i >= start[name] and label == name for i, label in enumerate(labels)] for name in names
    ]
    means = [unit(examples)[torch.tensor(rows)].mean(0) for rows in last]
    return _cosine(vectors, torch.stack(means))


def _unit_centred(vectors, examples, labels, names):
    """Cosines after the mean of the examples was taken off, which were divided by their norms."""
    mean = unit(examples).mean(0)
    return _cosine(vectors - mean, _means_of(names, unit(examples) - mean, labels))


def _made_larger(least):
    """The parts of an answer that adds a small number to norms, or to a product of them."""

    def scaled(examples):
        return examples / (examples.norm(dim=1, keepdim=True) + least)

    def compare(vectors, means):
        return vectors @ means.T / (vectors.norm(dim=1)[:, None] * means.norm(dim=1) + least)

    return {"scaled": scaled}, {"compare": compare}, {"scaled": scaled, "compare": compare}


def _columns_normalised(vectors, examples, labels, names):
    return _cosine(vectors, _means_of(names, examples / examples.norm(dim=0), labels))


def _by_table(did, why, table):
    """The mistake of taking the largest of another table (N, K) than the one that is asked for.

    Where two are equal but for rounding, either may be taken; of NaN, any.
    """

    def classify(vectors, examples, labels):
        names = _first_seen(labels)
        return [names[i] for i in table(vectors, examples, labels, names).argmax(1).tolist()]

    def shows(inputs, value):
        names = _first_seen(inputs["labels"])
        scores = table(*inputs.values(), names).double()
        own = scores[torch.arange(len(scores)), [names.index(label) for label in value.values()]]
        return not bool((own < scores.amax(1) - 1e-9).any())

    return known(did, why, wrong=classify, shows=shows)


def _of_tensor(classes):
    """An answer that makes a tensor of the labels, which words do not allow."""

    def classify(vectors, examples, labels):
        y = torch.tensor(labels)
        names = classes(y)
        means = _means_of(names, unit(examples), y)
        return [names[i] for i in _cosine(vectors, means).argmax(1).tolist()]

    return classify


def _one_hot(vectors, examples, labels):
    """With a column for each number up to the largest label."""
    hot = torch.nn.functional.one_hot(torch.tensor(labels)).to(examples.dtype)
    means = hot.T @ unit(examples) / hot.sum(0)[:, None]
    return _cosine(vectors, means).argmax(1).tolist()


def _cut_evenly(cut):
    """An answer that cuts the examples into equal parts, in order, a part for each label."""

    def classify(vectors, examples, labels):
        names = _first_seen(labels)
        places = _cosine(vectors, cut(unit(examples), len(names)).mean(1)).argmax(1)
        return [names[place] for place in places.tolist()]

    return classify


def _even_parts(X, count):
    """Equal parts as long as possible, what is left over at the end dropped."""
    size = len(X) // count
    return X[: size * count].reshape(count, size, -1)


def _until_truthy(vectors, examples, labels):
    """In a loop that asks `if not best`."""
    names, found = _first_seen(labels), []
    for row in _cosine(vectors, _means_of(names, unit(examples), labels)).tolist():
        best, top = None, None
        for name, value in zip(names, row, strict=True):
            if not best or value > top:
                best, top = name, value
        found.append(best)
    return found


def _none_below_0(vectors, examples, labels):
    """In a loop that begins with the cosine 0 and no label."""
    names = _first_seen(labels)
    table = _cosine(vectors, _means_of(names, unit(examples), labels))
    best = zip(table.amax(1).tolist(), table.argmax(1).tolist(), strict=True)
    return [names[place] if value > 0 else None for value, place in best]


def _best_vectors(vectors, examples, labels):
    """The place of the best vector for each label, looked up among the labels."""
    names = _first_seen(labels)
    table = _cosine(vectors, _means_of(names, unit(examples), labels))
    return [names[place] for place in table.argmax(0).tolist()]


def _by_example(choose):
    """An answer that compares with single examples: `choose` says which label, from cosines."""

    def classify(vectors, examples, labels):
        return [choose(row, labels) for row in _cosine(vectors, examples)]

    return classify


def _vote(count):
    """The label that most of the nearest examples have."""

    def choose(row, labels):
        near = [labels[i] for i in row.argsort(descending=True, stable=True)[:count]]
        return max(_first_seen(near), key=near.count)

    return choose


def _voted(count):
    """Whether the labels are those of a vote; of equally near examples any may have it."""

    def shows(inputs, value):
        labels = inputs["labels"]
        table = _cosine(inputs["vectors"], inputs["examples"]).double()
        for row, label in zip(table, value.values(), strict=True):
            least = row.sort(descending=True).values[: min(count, len(row))][-1]
            sure = [labels[i] for i in (row > least + 1e-9).nonzero()[:, 0].tolist()]
            perhaps = [labels[i] for i in ((row - least).abs() <= 1e-9).nonzero()[:, 0].tolist()]
            if len(sure) + len(perhaps) <= count:
                sure, perhaps = sure + perhaps, []
            votes = {kind: sure.count(kind) for kind in _first_seen(sure + perhaps)}
            mine = votes.get(label, -1) + min(count - len(sure), perhaps.count(label))
            if mine < max(votes.values()):
                return False
        return True

    return shows


def _totals(row, labels):
    """The label whose examples have the largest sum of cosines."""
    sums = dict.fromkeys(labels, 0.0)
    for value, label in zip(row.tolist(), labels, strict=True):
        sums[label] += value
    return max(sums, key=sums.get)


def _distances(vectors, means):
    return -(vectors[:, None] - means).norm(dim=-1)


def _equals_anyhow(inputs, value):
    """Whether each label fits its vector as well as the best."""
    names = _first_seen(inputs["labels"])
    means = _means_of(names, unit(inputs["examples"]), inputs["labels"])
    table = _cosine(inputs["vectors"], means).double()
    found = [names.index(label) for label in value.values()]
    own = table[torch.arange(len(table)), torch.tensor(found)]
    return bool((own > table.amax(1) - 1e-9).all())


NEAREST = {
    "examples-not-normalised": known(
        "You do not divide each example by its own norm before you take the means. (Dividing all "
        "examples of a label by one and the same number changes nothing.)",
        "An example with a large norm then decides where the mean points. Each example is to count "
        "the same: divide it by its norm first, then take the mean.",
        scaled=unchanged,
    ),
    **{
        id: known(
            "You cut the examples into equal parts, one for each label.",
            "In the lesson each label has eight examples, one after the other. Here they may be "
            "mixed, and one label may have more than another: only labels says whose each is.",
            wrong=_cut_evenly(cut),
        )
        for id, cut in (
            ("examples-reshaped", lambda X, count: X.reshape(count, -1, X.shape[1])),
            ("examples-cut", lambda X, count: _even_parts(X, count)),
            ("examples-unflattened", lambda X, count: X.unflatten(0, (count, -1))),
        )
    },
    "columns-normalised": _by_table(
        "You divide each feature by its norm over all examples.",
        "It is each example that has to be divided by its norm. Which axis of (M, d_model) runs "
        "along one?",
        _columns_normalised,
    ),
    **{
        id: _by_table(
            "You take the mean of all examples off first.",
            "That turns every vector, and the cosine is taken from another point than 0. The task "
            "asks for the examples as they are, each divided by its norm.",
            _centred(of_vectors),
        )
        for id, of_vectors in (("examples-centred", False), ("all-centred", True))
    },
    **{
        id: known(
            "You make a tensor of the labels.",
            "A tensor holds numbers, and labels may be words. Keep a list of the labels, each "
            "once: its places are the numbers that you can calculate with.",
            wrong=wrong,
        )
        for id, wrong in (
            ("tensor-of-labels", _of_tensor(lambda y: y.unique().tolist())),
            ("tensor-of-labels-in-order", _of_tensor(lambda y: _first_seen(y.tolist()))),
            ("labels-one-hot", _one_hot),
        )
    },
    "label-0-taken-for-nothing": known(
        "The label 0 loses, though it fits best.",
        "`if not best` takes 0 for nothing, as it does an empty text. A label may be a number: ask "
        "`is None`.",
        wrong=_until_truthy,
    ),
    "most-frequent": known(
        "Every vector gets the label that has the most examples.",
        "Each vector is compared for itself, with the mean of every label.",
        wrong=lambda vectors, examples, labels: [max(labels, key=labels.count)] * len(vectors),
    ),
    "nearest-example": known(
        "You take the label of the single example that is most like the vector.",
        "That is another classifier (nearest neighbour), led astray by one odd example. Asked for "
        "is the mean of each label's examples.",
        wrong=_by_example(lambda row, labels: labels[int(row.argmax())]),
    ),
    **{
        f"vote-of-{word}": known(
            f"You let the {word} nearest examples vote.",
            "That is another classifier (nearest neighbours). Asked for is the mean of each "
            "label's examples.",
            wrong=_by_example(_vote(count)),
            shows=_voted(count),
        )
        for word, count in (("three", 3), ("five", 5))
    },
    "sums-of-cosines": known(
        "You add up: a label with more examples gets more.",
        "How many examples a label has is chance. The mean's direction is what counts.",
        wrong=_by_example(_totals),
    ),
    "dot-product-with-the-mean": known(
        "You compare by dot product with the means, whose norms differ, or by the mean of the "
        "cosines with a label's examples, which comes to the same.",
        "The mean of vectors that disagree has a small norm, and would lose for that reason alone. "
        "Where it points is what counts.",
        compare=lambda vectors, means: vectors @ means.T,
    ),
    "first-label-for-all": known(
        "Every vector gets the label that comes first among the examples.",
        "Then nothing of a vector counts. For each vector by itself: which label's mean has the "
        "largest cosine with it?",
        wrong=lambda vectors, examples, labels: [labels[0]] * len(vectors),
    ),
    "distance-from-the-mean": known(
        "You take the mean that is nearest by distance.",
        "A vector's norm and a mean's norm both change a distance. Compared is where they "
        "point: the cosine.",
        compare=_distances,
    ),
    "distance-of-unit-vectors": known(
        "You divide the vectors by their norms and take the mean that is nearest by distance.",
        "The means are shorter than 1, some more than others, and the distance feels that. The "
        "cosine does not.",
        compare=lambda vectors, means: _distances(unit(vectors), means),
    ),
    "norms-made-larger": known(
        "Something small is added to the norms, or to a product of two of them, or they are kept "
        "from getting that small.",
        "It should keep 0 from being divided by 0. But a norm may be as small as 1e-6, and next to "
        "that even a small number counts. None is 0 here.",
        **any_of(
            build_nearest,
            *(parts for size in (8, 7, 6, 5, 9) for parts in _made_larger(10.0**-size)),
            run=lambda answer, inputs: examine_classify(inputs, run_classify(answer, inputs)),
        ),
    ),
    "farthest": known(
        "You return the label that fits least.",
        "The largest cosine was asked for.",
        choose=lambda table: table.argmin(1).tolist(),
    ),
    "sign-lost": known(
        "You take the cosines without their sign.",
        "A mean that points the opposite way fits worst of all.",
        compare=lambda vectors, means: _cosine(vectors, means).abs(),
    ),
    "label-numbers": known(
        "You return the label's number, not the label.",
        "The caller's labels may be words. What comes back is one of them.",
        say=lambda names, place: place,
    ),
    "label-by-example-number": known(
        "You use the number of a mean to look into the list of labels, which has an entry for each "
        "example.",
        "Mean 1 is not example 1. Keep a list of the labels, each once, beside the means.",
        wrong=lambda vectors, examples, labels: build_nearest(
            say=lambda names, place: labels[place]
        )(vectors, examples, labels),
    ),
    "wrong-axis": known(
        "You look for the best vector of each label, not for the best label of each vector.",
        "Each vector gets one label. Which axis of your table of cosines belongs to the vectors, "
        "and which to the labels?",
        wrong=lambda vectors, examples, labels: [
            labels[i % len(labels)]
            for i in _cosine(vectors, _means_of(_first_seen(labels), unit(examples), labels))
            .argmax(0)
            .tolist()
        ],
    ),
    "wrong-axis-of-names": known(
        "Your search for the largest runs over the vectors: it finds the best vector of each "
        "label.",
        "Each vector gets one label. Which axis of your table of cosines belongs to the vectors, "
        "which to the labels, and which of them has to go?",
        wrong=_best_vectors,
    ),
    "one-for-all": known(
        "You return the same label for every vector.",
        "Each vector is compared for itself.",
        choose=lambda table: [int(table.mean(0).argmax())] * len(table),
    ),
    "first-example-only": known(
        "You use the first example of each label only.",
        "All of them belong in the mean.",
        join=lambda own: own[0],
    ),
    "last-example-only": known(
        "You use the last example of each label only.",
        "A dict keeps the last value for a key, and each example overwrites the one before. All of "
        "them belong in the mean.",
        join=lambda own: own[-1],
    ),
    "median": known(
        "You take the median of a label's examples, feature by feature.",
        "The mean was asked for.",
        join=lambda own: own.median(0).values,
    ),
    "largest": known(
        "You take the largest number of each feature.",
        "The mean was asked for.",
        join=lambda own: own.amax(0),
    ),
    "last-of-equals": known(
        "Of labels that fit equally well you take the one that comes last.",
        "The first to be seen in `labels` was asked for: >= in place of > makes the difference in "
        "a loop.",
        choose=lambda table: (table.shape[1] - 1 - table.flip(1).argmax(1)).tolist(),
    ),
    "sorted-labels": known(
        "Of labels that fit equally well you take the first by size or alphabet. Do you sort the "
        "labels, put them into a set, or compare pairs that hold them?",
        "The first to be seen in `labels` was asked for. A set keeps no order; dict.fromkeys does.",
        kinds=lambda labels: sorted(set(labels)),
    ),
    "equals-anyhow": known(
        "Of labels that fit equally well you do not always take the first.",
        "The first to be seen in `labels` was asked for. A set keeps no order; dict.fromkeys does. "
        "(And the largest of pairs with the same cosine is the one with the largest label.)",
        wrong=build_nearest(kinds=lambda labels: sorted(set(labels), reverse=True)),
        shows=_equals_anyhow,
    ),
    "last-run-only": _by_table(
        "Of a label you use only examples that stand next to each other: where it comes back "
        "later, the later ones replace the earlier.",
        "Labels may be mixed. All examples of a label belong in its mean, wherever they stand.",
        _runs,
    ),
    "halved-means": known(
        "You halve the way to each new example: mean = (mean + example) / 2.",
        "Then the last example counts half, the one before a quarter, and so on. In a mean all "
        "count the same.",
        join=running_halves,
    ),
    "first-vector-for-all": known(
        "Every vector gets the label of the first one.",
        "Each vector is compared with the means for itself.",
        choose=lambda table: [int(table[0].argmax())] * len(table),
    ),
    "best-from-0-on": known(
        "Where all cosines are negative, you return the first label.",
        "Does your search for the largest begin with 0? A cosine can be as low as -1.",
        choose=lambda table: torch.where(table > 0, table, 0.0).argmax(1).tolist(),
    ),
    "none-below-0": known(
        "Where no cosine is above 0, you return None.",
        "Does your search for the largest begin with 0? A cosine can be as low as -1, and each "
        "vector gets a label.",
        wrong=_none_below_0,
    ),
    "unit-and-centred": _by_table(
        "You take the mean of all examples off before you compare.",
        "Seen from there, vectors point other ways than they do from 0. The cosine compares where "
        "they point from 0.",
        _unit_centred,
    ),
    "pairs-returned": known(
        "You return a pair for each vector, not its label alone.",
        "A list of labels was asked for, one for each vector.",
        finish=lambda found: [(label, 0.0) for label in found],
    ),
    "tensor-returned": known(
        "You return a tensor of label numbers.",
        "The caller's labels may be words. Asked for is a list of them.",
        say=lambda names, place: place,
        finish=torch.tensor,
    ),
}


def classify_stages(inputs):
    vectors, examples, labels = inputs.values()
    divided = examples / examples.norm(dim=1, keepdim=True)
    of_label = [[each == label for each in labels] for label in _first_seen(labels)]
    means = torch.stack([divided[torch.tensor(chosen)].mean(dim=0) for chosen in of_label])
    return {
        "the divided examples": divided,
        "the mean of each label": means,
        "the cosines of vectors and means": torch.cosine_similarity(
            vectors[:, None], means, dim=-1
        ),
    }


TASK = Task(
    "12-classify",
    sentences.classify,
    classify_cases,
    run=run_classify,
    examine=examine_classify,
    mistakes=read_again("A classifier from eight examples a class", NEAREST),
    build=build_nearest,
    stages=classify_stages,
    skippable=True,
    alone=("label-numbers", "pairs-returned", "tensor-returned"),
    forbidden=("mha_course.sentences.classify",),
    number=7,
)
