"""Task 8.5, choose_heads: the least important heads go, and each layer keeps one."""

import torch

from mha_classroom.checks.forms import any_of, like
from mha_classroom.checks.showing import number_text
from mha_classroom.checks.task import Case, Task, and_in_float32, known, read_again
from mha_classroom.tasks.how_many_heads.head_importance import IMPORTANCE

FEW = 3  # sentences about what a mask does


def choose_heads(importance, num_off):
    return build_choice()(importance, num_off)


@and_in_float32
def choice_cases(draw):
    """Layers that would lose everything, none off, as many off as can be, unequal sizes."""

    def case(name, importance, num_off):
        return Case(name, {"importance": importance, "num_off": num_off})

    small = torch.tensor([[0.1, 0.2, 0.9], [0.5, 0.3, 0.4]]).double()
    weak = draw.normal(4, 5).abs() + 1
    weak[2] = torch.tensor([0.4, 0.1, 0.3, 0.5, 0.0])
    two_weak = draw.normal(5, 3).abs() + 1
    two_weak[0], two_weak[3] = torch.tensor([0.3, 0.6, 0.2]), torch.tensor([0.5, 0.1, 0.4])
    first_weak = draw.normal(3, 4).abs() + 2
    first_weak[0] = torch.tensor([0.3, 0.1, 0.4, 0.2])
    lone = draw.normal(3, 1).abs()
    lone[1] = 0
    return [
        case("2 layers, 3 heads, 2 off", small, 2),
        case("the same importances, 3 off", small, 3),
        case("the weakest heads of a layer are all its heads", weak, 7),
        case("one more than a layer has, and none but its own are weak", weak, 5),
        case("two weak layers", two_weak, 7),
        case("two weak layers, 5 off", two_weak, 5),
        case("none off", small, 0),
        case("none off, not even one of importance 0", small - small.min(), 0),
        case("as many as can be", first_weak, 9),
        case("all but one of them", draw.normal(4, 3).abs(), 7),
        case("as many layers as heads", draw.normal(4, 4).abs(), 6),
        case("one head a layer, one of importance 0", lone, 0),
        case("one layer", draw.normal(1, 6).abs(), 4),
        case("a weak layer among importances of some thousands", 3000 * weak, 7),
        case("a weak layer among importances of some trillions", _grown(weak, 3e12), 7),
        case("very small importances", 1e-9 * draw.normal(3, 5).abs(), 6),
    ]


def _grown(weak, factor):
    """All layers but the weak one are so many times as important."""
    grown = factor * weak
    grown[2] = weak[2]
    return grown


def best_of_each_layer(importance):
    protected = torch.zeros_like(importance, dtype=torch.bool)
    protected[torch.arange(len(importance)), importance.argmax(dim=1)] = True
    return protected


def build_choice(
    protect=best_of_each_layer,
    score=lambda importance: importance,
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
        return kept.reshape(importance.shape)

    return choose_heads


def point_out_heads(inputs, kept):
    """What the mask does that it must not, seen from its own heads."""
    importance, num_off = inputs["importance"], inputs["num_off"]
    best = best_of_each_layer(importance)
    count, said = int((~kept).sum()), []
    if count != num_off:
        said.append(f"{count} of your heads {'is' if count == 1 else 'are'} off, not {num_off}.")
    said += [f"Layer {layer} keeps no head." for layer, row in enumerate(kept) if not row.any()]
    lost = (best & ~kept).nonzero().tolist()
    said += [f"Head {h} of layer {layer}, its most important one, goes." for layer, h in lost]
    if said:
        return " ".join(said[:FEW])
    gone, left = importance[~kept].max(), importance[kept & ~best].min()
    (layer, h), (other, k) = ((importance == X).nonzero()[0].tolist() for X in (gone, left))
    return (
        f"Head {h} of layer {layer} goes, with importance {number_text(gone.item(), 4)}. Head {k} "
        f"of layer {other} stays, with {number_text(left.item(), 4)}, and is not the most "
        "important one of its layer."
    )


def _nothing(importance):
    return torch.zeros_like(importance, dtype=torch.bool)


def _of_number(head):
    def protect(importance):
        protected = _nothing(importance)
        protected[:, head] = True
        return protected

    return protect


def _stop_at_the_first(importance, num_off):
    kept = torch.ones(importance.numel(), dtype=torch.bool)
    protected = best_of_each_layer(importance).flatten()
    for place in importance.flatten().argsort().tolist()[:num_off]:
        if protected[place]:
            break
        kept[place] = False
    return kept.reshape(importance.shape)


def _put_back(importance, num_off):
    """The best head of an empty layer comes back, and the next in order goes, whichever it is."""
    order = importance.flatten().argsort()
    kept = torch.ones(importance.numel(), dtype=torch.bool)
    kept[order[:num_off]] = False
    empty = ~kept.reshape(importance.shape).any(dim=1)
    back = (best_of_each_layer(importance) & empty[:, None]).flatten()
    kept[back] = True
    kept[order[num_off : num_off + int(empty.sum())]] = False
    return kept.reshape(importance.shape)


def _wrong_for_none(inputs, kept):
    """Right, or with num_off = 0 a mask of heads that does not keep all."""
    if inputs["num_off"]:
        return like(choose_heads)(inputs, kept)
    importance = inputs["importance"]
    if not torch.is_tensor(kept) or kept.dtype != torch.bool or kept.shape != importance.shape:
        return False
    return not importance.all() or not kept.all()  # a 0 may be hidden for a reason of its own


def _forms(*wrong):
    return {"wrong": wrong[0], "shows": like(*wrong)}


def _protected(importance, value=torch.inf):
    return importance.masked_fill(best_of_each_layer(importance), value)


def _put_in(protect):
    """protect: makes the importances from which the least are chosen."""

    def choose(importance, num_off):
        kept = torch.ones(importance.numel(), dtype=torch.bool)
        kept[protect(importance).flatten().argsort()[:num_off]] = False
        return kept.reshape(importance.shape)

    return choose


def _kept_by_topk(protect):
    """The same with the largest taken, where equal ones may be in another order."""

    def choose(importance, num_off):
        kept = torch.zeros(importance.numel(), dtype=torch.bool)
        kept[protect(importance).flatten().topk(importance.numel() - num_off).indices] = True
        return kept.reshape(importance.shape)

    return choose


def _placed_by(place):
    """place: of a number in the flat list and the shape, the layer and the head that are taken."""

    def choose(importance, num_off):
        kept = torch.ones_like(importance, dtype=torch.bool)
        for number in _protected(importance).flatten().argsort()[:num_off].tolist():
            kept[place(number, *importance.shape)] = False
        return kept

    return choose


def _while_a_layer_has(place, least=2):
    """As _placed_by; a head goes if its layer has so many left."""

    def choose(importance, num_off):
        kept = torch.ones_like(importance, dtype=torch.bool)
        for number in importance.flatten().argsort().tolist():
            layer, head = place(number, *importance.shape)
            if int((~kept).sum()) < num_off and kept[layer].sum() >= least:
                kept[layer, head] = False
        return kept

    return choose


def _ranks(scores):
    return scores.flatten().argsort().argsort().reshape(scores.shape)


def _ranks_in_layers(scores):
    return scores.argsort(dim=1).argsort(dim=1)


def _dealt(num_off, layers):
    """How many go from each layer if they are dealt out in turn: (layers, 1)."""
    return num_off // layers + (torch.arange(layers) < num_off % layers)[:, None].long()


def _best_of_each_column(importance):
    return importance == importance.amax(dim=0)


def _places_among_the_others(importance, num_off):
    others = importance[~best_of_each_layer(importance)]
    kept = torch.ones(importance.numel(), dtype=torch.bool)
    kept[others.argsort()[:num_off]] = False
    return kept.reshape(importance.shape)


CHOSEN = {
    "layer-left-empty": known(
        "Your function may take all heads of a layer.",
        "Each layer has to keep one.",
        protect=_nothing,
    ),
    "too-few-off": known(
        "Fewer heads go than were asked for: where a layer's last head comes up, it stays or comes "
        "back, and nothing else goes in its place.",
        "num_off heads have to go. Which one is next?",
        skip=False,
    ),
    "head-of-a-number-protected": known(
        "In each layer you keep the first head, or the last one, whatever its importance.",
        "The number of a head means nothing. Which head of a layer goes last?",
        **any_of(build_choice, protect=(_of_number(0), _of_number(-1))),
    ),
    "same-for-each-layer": known(
        "You take equally many heads from each layer.",
        "The least important ones of all go, wherever they are.",
        **_forms(
            lambda X, n: _ranks_in_layers(X) >= n // len(X),
            lambda X, n: _ranks_in_layers(X) >= round(n / len(X)),
            lambda X, n: _ranks_in_layers(X) >= -(-n // len(X)),
            lambda X, n: _ranks_in_layers(X) >= _dealt(n, len(X)),
        ),
    ),
    "most-important-off": known(
        "The most important heads go.",
        "Those that matter least should go first.",
        score=lambda importance: -importance,
    ),
    "best-of-all-off": known(
        "The most important heads go, and first of all those that each layer has to keep.",
        "Those that matter least should go first. What has been raised above all others goes last "
        "only if the order is upwards.",
        wrong=_put_in(lambda X: -_protected(X)),
    ),
    "threshold-of-none": known(
        "With num_off = 0 too many heads go. Do you use an index num_off - 1, or a slice from or "
        "up to -num_off?",
        "In Python index -1 is the last entry, and -0 is 0: [:-0] is empty, and [-0:] is all. With "
        "num_off = 0 all heads stay.",
        wrong=lambda X, n: choose_heads(X, n) if n else torch.zeros_like(X, dtype=torch.bool),
        shows=_wrong_for_none,
    ),
    "threshold-and-too-few-off": known(
        "Heads that have to stay count among the num_off, so fewer go. And with num_off = 0 too "
        "many go. Do you use an index num_off - 1, or a slice from or up to -num_off?",
        "Which head goes instead where one that has to stay comes up? And in Python index -1 is "
        "the last entry, and -0 is 0: [:-0] is empty, and [-0:] is all.",
        wrong=lambda X, n: best_of_each_layer(X) | (X > X.flatten().sort().values[n - 1]),
    ),
    "protected-too-low": known(
        "You give the heads that have to stay another importance, and it is not above all others.",
        "Importances may be of any size here. Which number is above every one?",
        **_forms(
            _put_in(lambda X: _protected(X, 1.0)),
            _kept_by_topk(lambda X: _protected(X, 1.0)),
            _put_in(lambda X: _protected(X, 10.0)),
            _put_in(lambda X: _protected(X, 100.0)),
            _put_in(lambda X: _protected(X, 1e6)),
            _put_in(lambda X: X + best_of_each_layer(X).double()),
            _put_in(lambda X: X + 1e6 * best_of_each_layer(X)),
            _put_in(lambda X: X * (1 + best_of_each_layer(X).double())),
            _put_in(lambda X: X * (1 + 1e6 * best_of_each_layer(X))),
        ),
    ),
    "best-heads-first": known(
        "The heads that have to stay go first. Do you make their importance small, or put them "
        "first when you sort?",
        "The least important heads go. Which importance is sure never to be among these?",
        wrong=_put_in(lambda importance: _protected(importance, -torch.inf)),
    ),
    "placed-wrongly": known(
        "You make a layer and a head out of the place in a flat list in a wrong way.",
        "In a flat list all heads of layer 0 come first, then those of layer 1. After how many "
        "places does the next layer begin?",
        **_forms(
            _placed_by(lambda n, layers, H: (n % layers, n // layers)),
            _placed_by(lambda n, layers, H: (n % H, n // H)),
            _while_a_layer_has(lambda n, layers, H: (n % layers, n // layers)),
            _while_a_layer_has(lambda n, layers, H: (n % H, n // H)),
            _while_a_layer_has(lambda n, layers, H: (n // layers % layers, n % H)),
        ),
    ),
    "argsort-for-ranks": known(
        "You take what argsort returns for the ranks of the heads.",
        "argsort says which head comes first, second and so on: its n-th entry is a place, and is "
        "not about head n.",
        **_forms(
            lambda X, n: _protected(X).flatten().argsort().reshape(X.shape) >= n,
            lambda X, n: X.flatten().argsort().reshape(X.shape) >= n,
        ),
    ),
    "places-among-the-others": known(
        "You sort the heads that may go, and use their places in that shorter list as places among "
        "all heads.",
        "When some heads are left out, those behind them move up.",
        wrong=_places_among_the_others,
    ),
    "one-too-many": known(
        "One head too many goes.",
        "Exactly num_off heads go. Ranks and places count from 0, and the k of kthvalue from 1.",
        **_forms(
            lambda X, n: _ranks(_protected(X)) > n,
            lambda X, n: _protected(X) > _protected(X).flatten().sort().values[n],
            lambda X, n: choose_heads(X, n + 1),
            lambda X, n: choose_heads(X, n + 1 if n else 0),
        ),
    ),
    "one-too-few": known(
        "One head too few goes: perhaps the one at your limit stays.",
        "Exactly num_off heads go. Ranks and places count from 0, and the k of kthvalue from 1.",
        **_forms(
            lambda X, n: _ranks(_protected(X)) >= n - 1,
            lambda X, n: _protected(X) >= _protected(X).flatten().sort().values[n - 1],
            lambda X, n: choose_heads(X, max(n - 1, 0)),
        ),
    ),
    "layers-normalised": known(
        "You divide each layer by its norm, or by another number of its own, and then choose.",
        "The importances are used as they are given.",
        **any_of(
            build_choice,
            score=[
                lambda X: X / X.norm(dim=1, keepdim=True),
                lambda X: X / X.sum(dim=1, keepdim=True),
                lambda X: X / X.amax(dim=1, keepdim=True),
            ],
        ),
    ),
    "num_off-of-each-layer": known(
        "You take num_off heads from each layer.",
        "num_off is for the whole model: the least important ones of all go, wherever they are.",
        **_forms(
            lambda X, n: _ranks_in_layers(X) >= n,
            lambda X, n: _ranks_in_layers(X) >= min(n, X.shape[1] - 1),
        ),
    ),
    "nothing-of-none-stays": known(
        "Heads of importance 0 go, although they are to stay.",
        "Do you mark those that go by a 0, and then look for what is not 0? An importance can be 0 "
        "itself. Which mark is no importance?",
        wrong=lambda X, n: choose_heads(X, n) & (X > 0),
    ),
    "num_off-stay": known(
        "num_off heads stay.",
        "num_off is how many go.",
        wrong=lambda X, n: _ranks(_protected(X)) >= X.numel() - n,
    ),
}

# Not looked for together with another one: they hide it, or are seldom made.
ALONE = {
    "two-stay": known(
        "Each layer keeps two heads.",
        "One is enough. Do you look at how many are left, before a head goes or after it?",
        wrong=_while_a_layer_has(lambda n, layers, H: divmod(n, H), least=3),
    ),
    "stopped": known(
        "You stop when a head may not go.",
        "Other heads may. num_off heads have to go.",
        wrong=_stop_at_the_first,
    ),
    "put-back-once": known(
        "Where a layer has lost all heads, you put its best one back, and in its place the next "
        "head goes, whichever it is.",
        "That one may be the last of another layer. Does it have to stay, too?",
        wrong=_put_back,
    ),
    "best-of-each-column": known(
        "You keep the best head of each column, that is, of each number of a head.",
        "Each layer has to keep one, and a layer is a row.",
        **_forms(
            build_choice(protect=_best_of_each_column),
            _put_in(lambda X: X.masked_fill(_best_of_each_column(X), torch.inf)),
            _put_in(lambda X: X + _best_of_each_column(X) * (X.amax() - X.amin() + 1)),
        ),
    ),
    "worst-of-each-layer": known(
        "You keep the least important head of each layer.",
        "Each layer keeps its most important head.",
        protect=lambda importance: importance == importance.amin(dim=1, keepdim=True),
    ),
}

TASK = Task(
    "08-choose_heads",
    choose_heads,
    choice_cases,
    returns=("the mask",),
    mistakes=read_again(IMPORTANCE, CHOSEN | ALONE),
    build=build_choice,
    point_out=point_out_heads,
    alone=tuple(ALONE),
    number=5,
)
