"""Task 12.6, neighbours: the nearest other texts of each text, empty places left out."""

import torch

from mha_classroom.checks.examining import total
from mha_classroom.checks.showing import describe
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    all_but,
    in_float32,
    known,
    read_again,
    unchanged,
)
from mha_classroom.tasks.your_bert.search import softened, unit

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def neighbour_cases(draw):
    def case(name, count, width, used=None, **k):
        norms = draw.normal(count, 1, scale=1.5).exp()
        vectors = draw.normal(count, width) * norms
        used = torch.ones(count, dtype=torch.int64) if used is None else torch.tensor(used)
        return Case(name, {"vectors": vectors, "used": used} | k)

    def fixed(name, vectors, used, **k):
        inputs = {"vectors": torch.tensor(vectors).double(), "used": torch.tensor(used)}
        return Case(name, inputs | k)

    def emptied(case):
        """The same, with zeros in the empty places."""
        inputs = dict(case.inputs)
        inputs["vectors"] = inputs["vectors"] * inputs["used"][:, None]
        return Case(case.name, inputs)

    some = [1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1]
    small = [[2.0, 0], [3, 4], [0, 5], [8, 6]]
    # Along the axes every way to compute a cosine gives the very same number for equal rows.
    axes = torch.eye(3)[draw.integers(0, 2, 17)] * draw.integers(1, 2, 17)[:, None]
    twins = [[0.0, 4], [1, 0], [0, 2], [-1, 0], [0, 8], [2, 0]]
    return [
        fixed("4 texts", small, [1, 1, 1, 1], k=2),
        case("no k given", 7, 17),
        case("k larger than the number of others", 3, 7, k=5),
        case("empty places that hold old numbers", 11, 3, some, k=2),
        emptied(case("empty places that hold zeros", 11, 5, some, k=3)),
        emptied(case("only two places in use", 5, 3, [0, 1, 0, 0, 1], k=3)),
        emptied(case("one place in use", 3, 2, [0, 1, 0], k=1)),
        fixed("nearly equal", [[1.0, 0], [3, 4], [3, 3.999996], [-1, 0.5]], [1, 1, 1, 1], k=1),
        fixed("texts that are there twice", twins, [1, 1, 1, 1, 1, 1], k=5),
        fixed("a text that is there four times", [[1.0, 0]] * 4 + [[0, 1]], [1] * 5, k=2),
        fixed("equal cosines, some places empty", axes.tolist(), [1, 1, 0, 1] * 4 + [1], k=7),
        fixed(
            "all point different ways", [[1.0, 0], [-1, 0.5], [-1, -3], [0, 0]], [1, 1, 1, 0], k=2
        ),
        case("as many texts as features, k too", 10, 10, k=10),
        case("23 texts", 23, 3, [1] * 19 + [0] * 4, k=11),
        _short(),
        in_float32(case("numbers in float32", 7, 3, [1, 1, 0, 1, 1, 1, 1], k=2)),
        case("all places empty", 3, 2, [0, 0, 0], k=2),
    ]


def _short():
    """Norms hardly above the least that is allowed, and a long text that is almost as near."""
    cosines = torch.tensor([1.0, 0.999, 0.997, -0.5, -0.505]).double()
    norms = torch.tensor([3e-6, 2e-6, 5.0, 2e-6, 5.0]).double()
    vectors = torch.stack([cosines, (1 - cosines.square()).sqrt()], dim=1) * norms[:, None]
    used = torch.ones(5, dtype=torch.int64)
    return Case("norms from 2e-6 on", {"vectors": vectors, "used": used, "k": 4})


def neighbour_stages(inputs):
    """Nothing where places are empty: whether their cosines are computed is everyone's choice."""
    return {"the cosines": _cosines(inputs["vectors"])} if inputs["used"].all() else {}


@total
def examine_neighbours(inputs, found):
    """The table of whole numbers.

    Raises: AnswerError for what is no such table, or has another shape.
    """
    if isinstance(found, (list, tuple)):
        found = torch.tensor([[int(place) for place in row] for row in found])
    shape = (len(inputs["vectors"]), inputs.get("k", 3))
    if not torch.is_tensor(found) or found.dtype not in WHOLE:
        raise AnswerError(
            f"neighbours has to return a tensor of whole numbers of shape {shape}; got "
            f"{describe(found)}."
        )
    if found.dim() == 2 and len(found) != shape[0]:
        raise AnswerError(
            f"The result has to have a row for each of the {shape[0]} places, empty ones too; got "
            f"shape {tuple(found.shape)}."
        )
    if tuple(found.shape) != shape:
        raise AnswerError(
            f"The result has to have shape (N, k) = {shape}, also where there are fewer than k "
            f"others; got {tuple(found.shape)}."
        )
    return found.to(torch.int64)


def _cosines(vectors):
    return unit(vectors) @ unit(vectors).T  # (N, N), NaN where a row holds zeros


def _may(others=True, found=True, asking=True):
    """Who may be a neighbour of whom, (N, N); what is False is forgotten."""

    def allowed(cosines, used):
        used, count = used.bool(), len(used)
        table = torch.ones(count, count, dtype=torch.bool)
        if others:
            table = table & ~torch.eye(count, dtype=torch.bool)
        if found:
            table = table & used
        if asking:
            table = table & used[:, None]
        return table

    return allowed


_all_but_itself_and_empty = _may()


def _no_twins(cosines, used):
    return _may()(cosines, used) & ~(cosines > 1 - 1e-9)


def _without_copies(vectors, used, k=3):
    copies = (vectors[:, None] == vectors).all(-1)
    return build_neighbours(may=lambda *given: _may()(*given) & ~copies)(vectors, used, k)


def _hidden(cosines, allowed):
    """The cosines, with what may not be found below all others."""
    return cosines.masked_fill(~allowed, -torch.inf)


def _best_first(scores):
    return scores.argsort(dim=1, descending=True, stable=True)


def build_neighbours(
    score=_cosines,
    may=_all_but_itself_and_empty,
    hide=_hidden,
    order=_best_first,
    barred=lambda allowed, hidden: ~allowed,
    fill=lambda places, barred: places.masked_fill(barred, -1),
    finish=unchanged,
):
    """score: (N, N), from the vectors. may: who may be found by whom. hide: the scores of those
    who may not. order: the places of each row. barred: who is known not to be a neighbour, also
    from the hidden scores. fill: what stands where nobody is left.
    """

    def neighbours(vectors, used, k=3):
        scores = score(vectors)
        allowed = may(scores, used)
        hidden = hide(scores, allowed)
        places = order(hidden)[:, :k]
        found = fill(places, barred(allowed, hidden).gather(1, places))
        result = torch.full((len(vectors), k), -1)
        result[:, : found.shape[1]] = found
        return finish(result)

    return neighbours


def _rounded(digits):
    return lambda vectors: torch.round(_cosines(vectors), decimals=digits)


def _first_dropped(**of_used):
    """The best is taken for the text itself."""
    made = build_neighbours(may=_may(others=False, **of_used))
    return lambda vectors, used, k=3: made(vectors, used, k + 1)[:, 1:]


def _filled_with(number):
    """What may not be found gets this cosine."""
    return lambda cosines, allowed: cosines.masked_fill(~allowed, number)


def _barred_by(number):
    """Who has this cosine is taken for one who may not be found."""
    return lambda allowed, hidden: hidden == number


def _like(*answers):
    """Whether a result is that of one of these wrong answers, as learners write them.

    0 / 0 is NaN for one and 0 for the next, so empty places that hold zeros say nothing. Where
    the wrong answer finds nobody there may be anything but a right neighbour; an empty place's
    row that is -1 throughout has to be so.
    """

    def shows(inputs, value):
        if bool((inputs["vectors"] == 0).all(dim=1).any()):
            return True
        right = build_neighbours()(*inputs.values())
        if not torch.is_tensor(value) or value.shape != right.shape:
            return False
        used = inputs["used"].bool()[:, None]
        for answer in answers:
            wrong = answer(*inputs.values())
            free = (wrong < 0) & (used | (wrong >= 0).any(dim=1, keepdim=True))
            free = free & ((right < 0) | (value != right))
            if bool((free | (value == wrong)).all()):
                return True
        return False

    return shows


def _zeros_but_for_itself(cosines, allowed):
    hidden = cosines.masked_fill(~allowed, 0.0)
    return hidden.masked_fill(torch.eye(len(hidden), dtype=torch.bool), -torch.inf)


def _like_parts(**parts):
    return _like(build_neighbours(**parts))


def _ones_in_empty_places(vectors, used, k=3):
    vectors = vectors.masked_fill(~used.bool()[:, None], 1.0)
    return build_neighbours(may=_may(asking=False))(vectors, used, k)


def _empty_answered(inputs, value):
    """Whether a result is right but for the rows of empty places, whatever stands there."""
    used, right = inputs["used"].bool(), build_neighbours()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    others = value[~used]
    answered = len(others) in (0, len(used)) or bool((others >= 0).any())
    return torch.equal(value[used], right[used]) and answered


def _nan_first(vectors, used, k=3):
    """What may not be found gets a large negative number added, NaN too, and is known by it."""
    scores = _cosines(vectors) + ~_may(asking=False)(None, used) * -1e9
    places = _best_first(scores)[:, :k]
    found = places.masked_fill(scores.gather(1, places) < -2, -1)
    result = torch.full((len(vectors), k), -1)
    result[used.bool(), : found.shape[1]] = found[used.bool()]
    return result


_nan_first_in_all_rows = build_neighbours(
    hide=lambda cosines, allowed: cosines + ~allowed * -1e9,
    barred=lambda allowed, hidden: hidden < -2,
)


def _worst_first(scores):
    """The smallest first, but for what may not be found."""
    return _best_first(torch.where(scores.isneginf(), scores, -scores))


def _counted_among_used(vectors, used, k=3):
    """Empty places are cut out, and nobody goes back to the old numbers."""
    left = vectors[used.bool()]
    result = torch.full((len(vectors), k), -1)
    result[used.bool()] = build_neighbours()(left, torch.ones(len(left)), k)
    return result


def _first_places_used(vectors, used, k=3):
    """As many places as are in use, from the front."""
    return build_neighbours()(vectors, torch.arange(len(used)) < used.sum(), k)


def _cut_to(count):
    """With so many columns at most."""
    return lambda vectors, used, k=3: build_neighbours()(vectors, used, k)[:, : count(used)]


def _last_of_equals(scores):
    count = scores.shape[1]
    return count - 1 - scores.flip(1).argsort(dim=1, descending=True, stable=True)


def _equals_anyhow(inputs, value):
    """Whether a result is right but for the order of equal ones."""
    right = build_neighbours()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    if not torch.equal(value < 0, right < 0) or bool((value >= len(right)).any()):
        return False
    cosines = _cosines(inputs["vectors"]).nan_to_num(0.0)
    for place, (row, own) in enumerate(zip(value.tolist(), right.tolist(), strict=True)):
        row, own = ([other for other in some if other >= 0] for some in (row, own))
        if len(set(row)) != len(row) or place in row:
            return False
        if not torch.allclose(cosines[place, row], cosines[place, own], rtol=0, atol=1e-9):
            return False
    return True


def _by_topk(vectors, used, k=3):
    scores = _cosines(vectors)
    allowed = _may()(scores, used)
    found = _hidden(scores, allowed).topk(min(k, len(vectors))).indices
    result = torch.full((len(vectors), k), -1)
    result[:, : found.shape[1]] = found.masked_fill(~allowed.gather(1, found), -1)
    return result


def _is_softened(inputs, value):
    """Whether a result is as a small number in the norms makes it, wrong where they are small."""
    vectors, used = inputs["vectors"], inputs["used"].bool()
    if bool((vectors == 0).all(dim=1).any()):
        return True
    right = build_neighbours()(*inputs.values())
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    if torch.equal(value, right):
        return bool((vectors[used].norm(dim=1) > 1e-4).all())
    return any(
        torch.equal(value, build_neighbours(score=lambda _, cosines=cosines: cosines)(**inputs))
        for size in range(2, 17)
        for cosines in softened(vectors, vectors, 10.0**-size)
    )


def _forbidden_at_the_end(inputs, value):
    """Whether a result is right but for places that may not be found where nobody is left."""
    right, used = build_neighbours()(*inputs.values()), inputs["used"].bool()
    if not torch.is_tensor(value) or value.shape != right.shape:
        return False
    if not torch.equal(value[right >= 0], right[right >= 0]):
        return False
    for place in range(len(used)):
        more = value[place, right[place] < 0]
        if not used[place]:
            if not bool((more < 0).all()) and more.tolist() != list(range(len(more))):
                return False
        elif len(more):
            named = [other for other in more.tolist() if other >= 0]
            may = [other for other in named if other < len(used) and used[other] and other != place]
            if may or not named:
                return False
    return True


def _itself_at_the_end(vectors, used, k=3):
    """Each text that is used is its own neighbour once the others are used up."""
    found = build_neighbours()(vectors, used, k)
    for place in used.bool().nonzero()[:, 0].tolist():
        free = (found[place] < 0).nonzero()[:, 0].tolist()
        if free:
            found[place, free[0]] = place
    return found


def _topk_of_all(vectors, used, k=3):
    scores = _cosines(vectors)
    allowed = _may()(scores, used)
    found = _hidden(scores, allowed).topk(k)
    return found.indices.masked_fill(~allowed.gather(1, found.indices), -1)


def _indexed_by(index_of, rows):
    """What is hidden are the places that `index_of` makes of used, taken for an index."""

    def allowed(cosines, used):
        table = _may(found=False, asking=not rows)(cosines, used)
        hidden = index_of(used).long()
        table[:, hidden] = False
        if rows:
            table[hidden] = False
        return table

    return allowed


def _turned_round(vectors, used, k=3):
    found = build_neighbours()(vectors, used, k)
    rows = [row[row >= 0].flip(0) for row in found]
    return torch.stack([torch.cat([row, torch.full((k - len(row),), -1)]) for row in rows])


def _in_order_of_places(vectors, used, k=3):
    found = build_neighbours()(vectors, used, k)
    count = len(vectors)
    return torch.where(found < 0, count, found).sort(dim=1).values.masked_fill(found < 0, -1)


def _nobody_first(found):
    """With the -1 of each row in front."""
    return found.gather(1, (found >= 0).long().argsort(dim=1, stable=True))


NEIGHBOURS = {
    "itself-found": known(
        "Each text finds itself, too.",
        "Nothing is more like a text than the text itself. Its neighbours are the others.",
        may=_may(others=False),
    ),
    "first-dropped": known(
        "You drop the best of each row and take it for the text itself.",
        "Where a text is stored twice, its twin may come first, and you drop the twin and keep the "
        "text. Say which one is to be left out, not which rank.",
        wrong=_first_dropped(),
        shows=_like(
            _first_dropped(),
            _first_dropped(asking=False),
            _first_dropped(asking=False, found=False),
        ),
    ),
    "twins-left-out": known(
        "You leave out every text that points the same way, not just the text itself.",
        "Two places may hold the same text, and they are each other's nearest neighbours. A text "
        "is known by its place, not by its cosine.",
        may=_no_twins,
    ),
    "padding-found": known(
        "Empty places are found.",
        "A place that is not used holds whatever was there before. used says which ones count.",
        may=_may(found=False),
        shows=_like_parts(may=_may(found=False)),
    ),
    "padding-asks": known(
        "Empty places get neighbours.",
        "A place that is not used holds no text, so its whole row is -1.",
        may=_may(asking=False),
        shows=_like_parts(may=_may(asking=False)),
    ),
    "padding-ignored": known(
        "used has no effect in your table: empty places that hold numbers ask, and are found.",
        "A place that is not used holds whatever was there before. It is nobody's neighbour, and "
        "has none.",
        may=_may(found=False, asking=False),
        shows=_like_parts(may=_may(found=False, asking=False)),
    ),
    "copies-left-out": known(
        "You leave out every text that has the same vector, not just the text itself.",
        "Two places may hold the same text, and they are each other's nearest neighbours. A text "
        "is known by its place.",
        wrong=_without_copies,
    ),
    "hidden-with-0": known(
        "What may not be found gets the cosine 0, and stands before all that point the other way.",
        "A cosine can be as low as -1. What is to come last needs a number below all of them.",
        hide=_filled_with(0.0),
        shows=_like(
            build_neighbours(hide=_filled_with(0.0)),
            build_neighbours(hide=_filled_with(0.0), fill=lambda places, barred: places),
            build_neighbours(hide=_zeros_but_for_itself),
        ),
    ),
    "0-for-barred": known(
        "You give what may not be found the cosine 0, and take every 0 for it afterwards.",
        "Two texts at a right angle have the cosine 0, too, and a cosine below 0 would come after "
        "it. Take a number that is below every cosine.",
        hide=_filled_with(0.0),
        barred=_barred_by(0.0),
        shows=_like_parts(hide=_filled_with(0.0), barred=_barred_by(0.0)),
    ),
    "hidden-with-minus-1": known(
        "What may not be found gets the cosine -1, which a text that points the opposite way has, "
        "too.",
        "Among equal ones the earlier comes first, and that may be the hidden one. Take a number "
        "below every cosine.",
        hide=_filled_with(-1.0),
        shows=_like(
            build_neighbours(hide=_filled_with(-1.0)),
            build_neighbours(hide=_filled_with(-1.0), barred=_barred_by(-1.0)),
        ),
    ),
    "mask-added": known(
        "An empty place of zeros has the cosine 0 / 0, which is NaN, and in your table it remains "
        "NaN. Do you hide what may not be found by adding to its cosine, or by multiplying it?",
        "NaN plus a number is NaN, and NaN times a number, too. A sort puts NaN before all "
        "numbers. Put a number in its place instead.",
        wrong=build_neighbours(hide=lambda cosines, allowed: cosines + ~allowed * -1e9),
    ),
    **{
        id: known(
            "An empty place of zeros has the cosine 0 / 0, which is NaN, and in your table it "
            "remains NaN. Do you hide what may not be found by adding to its cosine, or by "
            "multiplying it?",
            "NaN plus a number is NaN, and NaN times a number, too. A sort puts NaN before all "
            "numbers. Put a number in its place instead.",
            wrong=wrong,
        )
        for id, wrong in (
            ("mask-added-and-looked-for", _nan_first),
            ("mask-added-for-rows-too", _nan_first_in_all_rows),
        )
    },
    "itself-at-the-end": known(
        "Where too few others are left, the text itself follows them in its row.",
        "It is hidden behind the others, but counted among them. How many others does a text have "
        "if n places are in use?",
        wrong=_itself_at_the_end,
    ),
    "nobody-left": known(
        "Where fewer than k others are left you return places that may not be found.",
        "A sort of hidden ones is still a sort: after the last real neighbour come the hidden "
        "ones. There -1 was asked for.",
        fill=lambda places, barred: places,
        shows=_forbidden_at_the_end,
    ),
    "nobody-first": known(
        "Your -1 stand at the beginning of the row.",
        "The neighbours come first, the best one in front. -1 fills what is left behind them.",
        finish=_nobody_first,
    ),
    "place-0-taken-for-nobody": known(
        "Place 0 is never found: you turn every 0 into -1.",
        "0 is a place like the others. What nobody has filled has to be told from it: begin with a "
        "table of -1.",
        finish=lambda found: found.masked_fill(found == 0, -1),
    ),
    "topk-past-the-end": known(
        "topk ends in an error where k is larger than the number of places.",
        "There the row has all others, and -1 behind them. (Nor does topk promise anything about "
        "equal ones, and there the earlier was asked for.)",
        wrong=_topk_of_all,
    ),
    **{
        f"used-as-an-index{more}{'' if rows else '-of-columns'}": known(
            "You use whole numbers as an index: 0 and 1 are places then, not no and yes.",
            "[:, 1 - used] means columns 0 and 1, and ~used is -1 and -2, the last two. Only a "
            "tensor of booleans picks what is True: used == 0.",
            may=_indexed_by(index_of, rows),
            shows=_like_parts(may=_indexed_by(index_of, rows)),
        )
        for more, index_of in (("", lambda used: 1 - used), ("-inverted", lambda used: ~used))
        for rows in (True, False)
    },
    "zero-for-nobody": known(
        "Where fewer than k others are left you return 0.",
        "0 is the first text. -1 was asked for, which is no place.",
        finish=lambda found: found.clamp(min=0),
    ),
    **{
        id: known(
            "Where the others are too few, your result has fewer columns than k.",
            "It has k columns in any case, with -1 where nobody is left.",
            wrong=_cut_to(count),
        )
        for id, count in (
            ("too-narrow", lambda used: len(used) - 1),
            ("as-narrow-as-places", len),
            ("as-narrow-as-used", lambda used: int(used.sum())),
            ("as-narrow-as-others-used", lambda used: int(used.sum()) - 1),
        )
    },
    "always-3": known(
        "Your result has 3 columns, whatever k is.",
        "3 is what k is when nobody says otherwise.",
        wrong=lambda vectors, used, k=3: build_neighbours()(vectors, used, 3),
    ),
    "counted-among-used": known(
        "Your numbers count the used places only.",
        "After the empty ones have been cut out, row 2 is no longer row 2. The caller's rows are "
        "wanted.",
        wrong=_counted_among_used,
    ),
    "empty-places-assumed-at-the-end": known(
        "You count the places in use and take as many from the front.",
        "Empty places may stand anywhere: used says it of each place by itself.",
        wrong=_first_places_used,
        shows=_like(_first_places_used),
    ),
    "dot-product": known(
        "You order by dot product. (Divided by the text's own norm alone the order is the same.)",
        "Then a vector with a large norm is everybody's neighbour. The cosine divides by both "
        "norms.",
        score=lambda vectors: vectors @ vectors.T,
    ),
    "distances": known(
        "You order by distance.",
        "A distance feels the vectors' norms. The cosine compares directions only.",
        score=lambda vectors: -(vectors[:, None] - vectors).norm(dim=-1),
    ),
    "columns-normalised": known(
        "You divide each feature by its norm over all texts.",
        "It is each text's vector that has to be divided by its norm. Which axis runs along it?",
        score=lambda vectors: (vectors / vectors.norm(dim=0)) @ (vectors / vectors.norm(dim=0)).T,
    ),
    "sign-lost": known(
        "You order the cosines without their sign.",
        "A text that points the opposite way has cosine -1, and is the last to be found.",
        score=lambda vectors: _cosines(vectors).abs(),
    ),
    "worst-first": known(
        "You begin with the least similar.",
        "argsort goes upwards unless it is told otherwise. The best comes first.",
        order=_worst_first,
    ),
    "norms-made-larger": known(
        "Something small is added to the norms, or they are kept from getting that small. "
        "(cosine_similarity and normalize do that by themselves.)",
        "It should keep 0 from being divided by 0. But the norm of a text may be as small as 1e-6, "
        "and next to that even a small number counts. Only an empty place can hold zeros.",
        score=lambda vectors: next(softened(vectors, vectors, 1e-8)),
        shows=_is_softened,
    ),
    "cosines-rounded": known(
        "You take cosines for equal that differ a little. Do you round them?",
        "Then the earlier place comes first, though a later text is nearer. Only where the "
        "cosines are the same does the place decide.",
        score=_rounded(2),
        shows=_like(*(build_neighbours(score=_rounded(digits)) for digits in range(1, 7))),
    ),
    "last-of-equals": known(
        "Of others with the same cosine you put the later one first.",
        "The earlier one was asked for. Turning a sorted row round turns equal ones round, too.",
        order=_last_of_equals,
    ),
    "equals-anyhow": known(
        "Others with the same cosine come in another order than that of their places.",
        "topk and argsort promise nothing about equal ones, unless a sort is asked to be stable. "
        "Is yours? Then something makes equal cosines differ, such as a small number added to the "
        "norms, or there is something else that you sort by.",
        wrong=_by_topk,
        shows=_equals_anyhow,
    ),
    "best-last": known(
        "You have the right neighbours in the wrong order: the best one stands last.",
        "The best comes first.",
        wrong=_turned_round,
    ),
    "in-order-of-places": known(
        "You return the right neighbours in the order in which their places stand.",
        "The best comes first.",
        wrong=_in_order_of_places,
    ),
    "used-inverted": known(
        "You take the empty places for those in use, and those in use for empty.",
        "In used 1 is a place that holds a text, and 0 is an empty one.",
        wrong=lambda vectors, used, k=3: build_neighbours()(vectors, 1 - used.long(), k),
        shows=_like(lambda vectors, used, k=3: build_neighbours()(vectors, 1 - used.long(), k)),
    ),
    "empty-rows-answered": known(
        "The rows of empty places are not -1 throughout.",
        "A place that is not used holds no text and has no neighbours, whatever its vector is.",
        wrong=_ones_in_empty_places,
        shows=_empty_answered,
    ),
    "counted-from-1": known(
        "You count places from 1.",
        "vectors[place] has to be the neighbour, and Python counts from 0.",
        finish=lambda found: torch.where(found < 0, found, found + 1),
    ),
}
NEIGHBOURS = read_again("Search by meaning", NEIGHBOURS)

TASK = Task(
    "12-neighbours",
    build_neighbours(),
    neighbour_cases,
    examine=examine_neighbours,
    returns=("the table of places",),
    mistakes=NEIGHBOURS,
    build=build_neighbours,
    alone=all_but(
        NEIGHBOURS,
        "itself-found",
        "padding-found",
        "dot-product",
        "nobody-left",
        "last-of-equals",
        "worst-first",
    ),
    stages=neighbour_stages,
    number=6,
    since=2,
)
