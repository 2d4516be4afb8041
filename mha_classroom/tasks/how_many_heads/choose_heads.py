"""Task 8.5, choose_heads: the least important heads go, and each layer keeps one."""

import torch

from mha_classroom.checks.task import Case, Task, known, read_again
from mha_classroom.tasks.how_many_heads.head_importance import IMPORTANCE


def choose_heads(importance, num_off):
    return build_choice()(importance, num_off)


def choice_cases(draw):
    """Layers that would lose everything, none off, as many off as can be, unequal sizes."""

    def case(name, importance, num_off):
        return Case(name, {"importance": importance, "num_off": num_off})

    small = torch.tensor([[0.1, 0.2, 0.9], [0.5, 0.3, 0.4]]).double()
    weak = draw.normal(4, 5).abs() + 1
    weak[2] = torch.tensor([0.4, 0.1, 0.3, 0.5, 0.2])
    two_weak = draw.normal(5, 3).abs() + 1
    two_weak[0], two_weak[3] = torch.tensor([0.3, 0.6, 0.2]), torch.tensor([0.5, 0.1, 0.4])
    return [
        case("2 layers, 3 heads, 2 off", small, 2),
        case("the weakest heads of a layer are all its heads", weak, 7),
        case("one more than a layer has, and none but its own are weak", weak, 5),
        case("two weak layers", two_weak, 7),
        case("none off", small, 0),
        case("as many as can be", draw.normal(3, 4).abs(), 9),
        case("all but one of them", draw.normal(4, 3).abs(), 7),
        case("as many layers as heads", draw.normal(4, 4).abs(), 6),
        case("one head a layer", draw.normal(3, 1).abs(), 0),
        case("one layer", draw.normal(1, 6).abs(), 4),
        case("a weak layer among importances of some thousands", 3000 * weak, 7),
        case("very small importances", 1e-9 * draw.normal(3, 5).abs(), 6),
    ]


def best_of_each_layer(importance):
    protected = torch.zeros_like(importance, dtype=torch.bool)
    protected[torch.arange(len(importance)), importance.argmax(dim=1)] = True
    return protected


def build_choice(
    protect=best_of_each_layer,
    score=lambda importance: importance,
    give=lambda kept: kept,
    skip=True,
):
    """skip: a protected head that comes up counts for nothing, and the next one goes instead."""

    def choose_heads(importance, num_off):
        protected = protect(importance).flatten()
        order = score(importance).flatten().argsort().tolist()
        if skip:
            order = [place for place in order if not protected[place]]
        kept = torch.ones(importance.numel(), dtype=torch.bool)
        for place in order[:num_off]:
            kept[place] = bool(protected[place])
        return give(kept.reshape(importance.shape))

    return choose_heads


def _nothing(importance):
    return torch.zeros_like(importance, dtype=torch.bool)


def _first_of_each(importance):
    protected = _nothing(importance)
    protected[:, 0] = True
    return protected


def _same(share):
    """share: how many heads of each layer go."""

    def choose(importance, num_off):
        return importance.argsort(dim=1).argsort(dim=1) >= share(num_off, len(importance))

    return known(
        "You take equally many heads from each layer.",
        "The least important ones of all go, wherever they are.",
        wrong=choose,
    )


def _stop_at_the_first(importance, num_off):
    kept = torch.ones(importance.numel(), dtype=torch.bool)
    protected = best_of_each_layer(importance).flatten()
    for place in importance.flatten().argsort().tolist()[:num_off]:
        if protected[place]:
            break
        kept[place] = False
    return kept.reshape(importance.shape)


def _saved_afterwards(importance, num_off):
    """Take off, then give an empty layer its best head back."""
    kept = build_choice(protect=_nothing)(importance, num_off)
    for row, scores in zip(kept, importance, strict=True):
        if not row.any():
            row[scores.argmax()] = True
    return kept


def _above_threshold(importance, num_off):
    """Among the heads that may go; with num_off = 0 the index is -1."""
    protected = best_of_each_layer(importance)
    return protected | (importance > importance[~protected].sort().values[num_off - 1])


def _above_entry_of_list(importance, num_off):
    """_above_threshold, with a list."""
    protected = best_of_each_layer(importance)
    return protected | (importance > sorted(importance[~protected].tolist())[num_off - 1])


def _above_finite_threshold(importance, num_off):
    """_above_threshold, where heads that may not go stand last in order."""
    protected = best_of_each_layer(importance)
    return protected | _above_threshold_of_all(importance, num_off)


def _above_threshold_of_all(importance, num_off):
    """The same, where heads that may not go have infinite importance."""
    importance = importance.masked_fill(best_of_each_layer(importance), torch.inf)
    return importance > importance.flatten().sort().values[num_off - 1]


def _above_threshold_or_best(importance, num_off):
    """The threshold comes from all heads."""
    threshold = importance.flatten().sort().values[num_off - 1]
    return best_of_each_layer(importance) | (importance > threshold)


def _threshold(wrong):
    return known(
        "With num_off = 0 too many heads go. Do you use an index num_off - 1, or a slice from or "
        "up to -num_off?",
        "In Python index -1 is the last entry, and -0 is 0: [:-0] is empty, and [-0:] is all. With "
        "num_off = 0 all heads stay.",
        wrong=wrong,
    )


def _protected(importance, value=torch.inf):
    return importance.masked_fill(best_of_each_layer(importance), value)


def _none_to_find(find):
    """find: looks among the importances for the num_off least, and fails for none."""

    def choose(importance, num_off):
        find(_protected(importance).flatten(), num_off)
        return choose_heads(importance, num_off)

    return known(
        "You look for the last head that goes, and with num_off = 0 there is none.",
        "Then all heads stay.",
        wrong=choose,
    )


def _put_in(protect):
    """protect: makes the importances from which the least are chosen."""

    def choose(importance, num_off):
        kept = torch.ones(importance.numel(), dtype=torch.bool)
        kept[protect(importance).flatten().argsort()[:num_off]] = False
        return kept.reshape(importance.shape)

    return choose


def _too_low(protect):
    return known(
        "You raise the importance of the heads that have to stay, and not far enough.",
        "Importances may be of any size here. Which number is above all others?",
        wrong=_put_in(protect),
    )


def _placed_by(place):
    """place: of a number in the flat list and the shape, the layer and the head that are taken."""

    def choose(importance, num_off):
        kept = torch.ones_like(importance, dtype=torch.bool)
        for number in _protected(importance).flatten().argsort()[:num_off].tolist():
            kept[place(number, *importance.shape)] = False
        return kept

    return known(
        "You make a layer and a head out of the place in a flat list in a wrong way.",
        "In a flat list all heads of layer 0 come first, then those of layer 1. After how many "
        "places does the next layer begin?",
        wrong=choose,
    )


def _ranks(scores):
    return scores.flatten().argsort().argsort().reshape(scores.shape)


def _argsort_for_ranks(protect):
    return known(
        "You take what argsort returns for the ranks of the heads.",
        "argsort says which head comes first, second and so on: its n-th entry is a place, and is "
        "not about head n.",
        wrong=lambda importance, num_off: (
            protect(importance).flatten().argsort().reshape(importance.shape) >= num_off
        ),
    )


def _places_among_the_others(importance, num_off):
    others = importance[~best_of_each_layer(importance)]
    kept = torch.ones(importance.numel(), dtype=torch.bool)
    kept[others.argsort()[:num_off]] = False
    return kept.reshape(importance.shape)


CHOSEN = {
    "layer-left-empty": known(
        "You can take all heads of a layer.",
        "Each layer has to keep one.",
        protect=_nothing,
    ),
    "too-few-off": known(
        "Fewer heads go than were asked for: where a layer's last head comes up, you leave it, and "
        "nothing else goes in its place.",
        "num_off heads have to go. Which one is next?",
        skip=False,
    ),
    "saved-afterwards": known(twin="too-few-off", wrong=_saved_afterwards),
    "stopped": known(
        "You stop when a head may not go.",
        "Other heads may. num_off heads have to go.",
        wrong=_stop_at_the_first,
    ),
    "first-head-protected": known(
        "In each layer you keep head 0, whatever its importance.",
        "The number of a head means nothing. Which head of a layer goes last?",
        protect=_first_of_each,
    ),
    "same-for-each-layer": _same(lambda n, layers: n // layers),
    "same-for-each-layer-rounded": _same(lambda n, layers: round(n / layers)),
    "same-for-each-layer-rounded-up": _same(lambda n, layers: -(-n // layers)),
    "most-important-off": known(
        "The most important heads go.",
        "Those that matter least should go first.",
        score=lambda importance: -importance,
    ),
    "inverted": known(
        "Your mask is True for the heads that go.",
        "True means that a head stays.",
        give=lambda kept: ~kept,
    ),
    "threshold-of-none": _threshold(_above_threshold),
    "threshold-of-all-of-none": _threshold(_above_threshold_of_all),
    "threshold-of-list-of-none": _threshold(_above_entry_of_list),
    "threshold-last-of-none": _threshold(_above_finite_threshold),
    "threshold-and-too-few-off": known(
        "You compare with the importance of the last head that goes, and count heads among these "
        "that have to stay.",
        "Then fewer than num_off heads go. And if none goes, the index is -1, which is the last "
        "entry.",
        wrong=_above_threshold_or_best,
    ),
    "none-for-kthvalue": _none_to_find(lambda flat, n: flat.kthvalue(n)),
    "none-at-the-end": _none_to_find(lambda flat, n: flat.sort().values[:n][-1]),
    "none-of-a-list": _none_to_find(lambda flat, n: sorted(flat.tolist())[:n][-1]),
    "none-for-max": _none_to_find(lambda flat, n: flat.topk(n, largest=False).values.max()),
    "none-for-max-of-a-list": _none_to_find(lambda flat, n: max(sorted(flat.tolist())[:n])),
    "protected-with-1": _too_low(lambda importance: _protected(importance, 1.0)),
    "protected-with-1-more": _too_low(
        lambda importance: importance + best_of_each_layer(importance).double()
    ),
    "protected-with-10": _too_low(lambda importance: _protected(importance, 10.0)),
    "protected-with-double": _too_low(
        lambda importance: importance * (1 + best_of_each_layer(importance).double())
    ),
    "best-heads-first": known(
        "The heads that have to stay go first: you make their importance small.",
        "The least important heads go. Which importance is sure never to be among these?",
        wrong=_put_in(lambda importance: _protected(importance, -torch.inf)),
    ),
    "best-of-each-column": known(
        "You keep the best head of each column, that is, of each number of a head.",
        "Each layer has to keep one, and a layer is a row.",
        protect=lambda importance: importance == importance.amax(dim=0),
    ),
    "best-of-each-column-as-long-as-others-are-there": known(
        "You keep the best head of each column, that is, of each number of a head.",
        "Each layer has to keep one, and a layer is a row.",
        wrong=_put_in(
            lambda importance: importance.masked_fill(
                importance == importance.amax(dim=0), torch.inf
            )
        ),
    ),
    "worst-of-each-layer": known(
        "You keep the least important head of each layer.",
        "Each layer keeps its most important head.",
        protect=lambda importance: importance == importance.amin(dim=1, keepdim=True),
    ),
    "last-head-protected": known(
        "In each layer you keep the last head, whatever its importance.",
        "The number of a head means nothing. Which head of a layer goes last?",
        protect=lambda importance: (
            torch.arange(importance.shape[1]).expand_as(importance) == importance.shape[1] - 1
        ),
    ),
    "placed-by-layers": _placed_by(lambda n, layers, H: (n % layers, n // layers)),
    "placed-by-layers-too": _placed_by(lambda n, layers, H: (n // layers, n % layers)),
    "placed-by-heads-swapped": _placed_by(lambda n, layers, H: (n % H, n // H)),
    "argsort-for-ranks": _argsort_for_ranks(_protected),
    "argsort-for-ranks-of-all": _argsort_for_ranks(lambda importance: importance),
    "places-among-the-others": known(
        "You sort the heads that may go, and use their places in that shorter list as places among "
        "all heads.",
        "When some heads are left out, those behind them move up.",
        wrong=_places_among_the_others,
    ),
    "one-too-many": known(
        "One head too many goes.",
        "Exactly num_off heads go. Ranks and places count from 0.",
        wrong=lambda importance, num_off: _ranks(_protected(importance)) > num_off,
    ),
    "one-too-many-above-threshold": known(
        "One head too many goes.",
        "Exactly num_off heads go. Ranks and places count from 0.",
        wrong=lambda importance, num_off: (
            _protected(importance) > _protected(importance).flatten().sort().values[num_off]
        ),
    ),
    "one-too-many-if-there-is-one": known(
        "One head too many goes.",
        "Exactly num_off heads go. Ranks and places count from 0.",
        wrong=lambda importance, num_off: choose_heads(importance, num_off + 1),
    ),
    "one-too-few": known(
        "One head too few goes.",
        "Exactly num_off heads go. Ranks and places count from 0.",
        wrong=lambda importance, num_off: _ranks(_protected(importance)) >= num_off - 1,
    ),
    "one-too-few-above-threshold": known(
        "One head too few goes: the one at your limit stays.",
        "Exactly num_off heads go. Is the last of them above the limit, or at it?",
        wrong=lambda importance, num_off: (
            _protected(importance) >= _protected(importance).flatten().sort().values[num_off - 1]
        ),
    ),
    "layers-normalised": known(
        "You divide each layer by its norm, or by another number of its own, and then choose.",
        "The importances are used as they are given.",
        score=lambda importance: importance / importance.norm(dim=1, keepdim=True),
    ),
    "num_off-of-each-layer": known(
        "You take num_off heads from each layer.",
        "num_off is for the whole model: the least important ones of all go, wherever they are.",
        wrong=lambda importance, num_off: importance.argsort(dim=1).argsort(dim=1) >= num_off,
    ),
    "num_off-of-each-layer-but-one": known(
        "You take num_off heads from each layer, as long as one is left.",
        "num_off is for the whole model: the least important ones of all go, wherever they are.",
        wrong=lambda importance, num_off: (
            importance.argsort(dim=1).argsort(dim=1) >= min(num_off, importance.shape[1] - 1)
        ),
    ),
    "num_off-stay": known(
        "num_off heads stay.",
        "num_off is how many go.",
        wrong=lambda importance, num_off: (
            _ranks(_protected(importance)) >= importance.numel() - num_off
        ),
    ),
    "flat": known(
        "Your mask is flat.",
        "Asked for is the shape of importance: (layers, H).",
        give=lambda kept: kept.flatten(),
    ),
    "places-not-a-mask": known(
        "You return places of heads.",
        "Asked for is a boolean tensor (layers, H), True for the heads that stay.",
        wrong=lambda importance, num_off: _protected(importance).flatten().argsort()[num_off:],
        shows=lambda inputs, result: (
            torch.is_tensor(result)
            and result.dtype == torch.long
            and result.dim() < 3
            and result.shape != inputs["importance"].shape
        ),
    ),
    "whole-numbers-not-booleans": known(
        "Your mask holds numbers.",
        "The choice is right. The task asks for a boolean tensor.",
        wrong=lambda importance, num_off: choose_heads(importance, num_off).long(),
    ),
    "numbers-not-booleans": known(
        "Your mask holds numbers.",
        "The choice is right. The task asks for a boolean tensor.",
        give=lambda kept: kept.double(),
    ),
}

TASK = Task(
    "08-choose_heads",
    choose_heads,
    choice_cases,
    returns=("the mask",),
    mistakes=read_again(IMPORTANCE, CHOSEN),
    build=build_choice,
    alone=(
        "numbers-not-booleans",
        "stopped",
        "saved-afterwards",
        "flat",
        "best-of-each-column",
        "worst-of-each-layer",
        "last-head-protected",
    ),
    number=5,
)
