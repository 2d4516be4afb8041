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


def _same_for_each_layer(importance, num_off):
    kept = torch.ones_like(importance, dtype=torch.bool)
    for row, scores in zip(kept, importance, strict=True):
        row[scores.argsort()[: num_off // len(importance)]] = False
    return kept


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
        "You compare with the importance of the last head that goes. If none goes, its index is "
        "-1.",
        "In Python index -1 is the last entry, the most important head. With num_off = 0 all heads "
        "stay.",
        wrong=wrong,
    )


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
    "same-for-each-layer": known(
        "You take equally many heads from each layer.",
        "The least important ones of all go, wherever they are.",
        wrong=_same_for_each_layer,
    ),
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
    alone=("numbers-not-booleans", "same-for-each-layer", "stopped", "saved-afterwards"),
    number=5,
)
