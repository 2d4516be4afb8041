"""Task 1.8, looking_matrices: W_q and W_k by hand, so that words look where they should."""

import torch

from mha_classroom.checks.examining import first_wrong, refuse_what_is_not_finite, total
from mha_classroom.checks.forms import any_of
from mha_classroom.checks.showing import describe, listed, numbers_text
from mha_classroom.checks.task import AnswerError, Case, Task, known, read_again
from mha_classroom.tasks.attention_math.runs import run_looking


def looking_matrices(looks_at):
    """Keys say what a word is, queries what it looks for."""
    return 50 * looks_at, torch.eye(len(looks_at), dtype=torch.float64)


def looking_cases(draw):
    """Tables that are one-sided, with several kinds to look at, none, or the own kind."""

    def table(*rows):
        return torch.tensor(rows, dtype=torch.float64)

    def case(name, looks_at, kinds):
        X = torch.eye(len(looks_at), dtype=torch.float64)[kinds]  # (L, F)
        return Case(name, {"looks_at": looks_at, "X": X})

    grammar = table([0, 1, 0], [0, 0, 1], [1, 1, 0])
    ring = torch.eye(5, dtype=torch.float64).roll(1, 1)
    some = table([0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 0])
    own = table([1, 0], [1, 0])
    wide = torch.eye(90, dtype=torch.float64)
    wide[0] = torch.tensor([0.0] + 88 * [1.0] + [0.0])
    drawn = (draw.normal(7, 7) > 0.3).double()
    drawn[0, :5] = torch.tensor([0.0, 1, 1, 1, 1])
    drawn[1, 0], drawn[1, 6] = 0, 1
    drawn[torch.arange(2, 7), torch.arange(5)] = 1  # each kind looks at some
    return [
        case("article, noun, verb", grammar, [0, 1, 2, 0, 1]),
        case("2 kinds that both look at the first", own, [0, 1, 1]),
        case("each kind looks at the next, the last at the first", ring, [4, 2, 0, 1, 3, 0]),
        case("a kind that looks at nothing", some, [3, 2, 1, 0, 0, 2]),
        case("7 kinds", drawn, [0, 1, 2, 3, 4, 5, 6, 6, 0, 1, 1]),
        case("100 words, 1 noun among them", grammar, [0, 1] + 30 * [0, 2] + 38 * [0]),
        case("90 kinds, 100 words, 1 right one among them", wide, [0, 1] + 98 * [89]),
        case("what a word looks at is missing", grammar, [1, 0, 0, 1, 1]),
    ]


FIRM = 1e-3  # of its weight a word may put elsewhere
CLEAR = 1e-2  # where a word that is wrong puts all but so little, it is shown to put all


@total
def examine_looking(inputs, seen):
    """The weights (L, S) of self-attention with the learner's matrices, for the words that have
    something to look at; other rows are 0. What is nearly right counts as right, and what is
    clearly wrong looks alike however large the matrices are.

    Raises: AnswerError if these are no such matrices, if all words look at the right ones, but
        not firmly, or if they would with W_k transposed.
    """
    looks_at, X = inputs["looks_at"], inputs["X"]
    W_q, W_k = _checked(seen["weights"], len(looks_at))
    wanted = X @ looks_at @ X.T  # (L, S)
    asks = wanted.any(dim=-1)
    ideal = wanted[asks] / wanted[asks].sum(dim=-1, keepdim=True)
    scores = ((X @ W_q) @ (X @ W_k).T)[asks]
    weights = torch.softmax(scores, dim=-1)
    if weights.isnan().any():
        raise AnswerError("W_q and W_k are so large that scores overflow: the weights are NaN.")
    there, right = _looks(weights, ideal)
    if not right.all() and _only_weak(scores, ideal):
        place = int(there.argmin())
        word, kind = int(asks.nonzero()[place]), int(X[asks][place].argmax())
        raise AnswerError(
            f"In a sentence of {len(X)} words, word {word} (of kind {kind}) puts "
            f"{there[place]:.6f} of its weight on the right words, and at least 0.999 is asked "
            f"for. Their scores are {_ahead(scores[place], ideal[place])}."
        )
    if not right.all() and _turned(X, W_q, W_k, asks, ideal):
        raise AnswerError(
            "W_q @ W_k would make the right weights here, but the scores are X W_q (X W_k)ᵀ. Which "
            "product of the two matrices is in there?"
        )
    result = torch.zeros_like(wanted)
    result[asks] = torch.where(right[:, None], ideal, _cleared(scores, weights, ideal))
    return result


def point_out_word(inputs, weights):
    """What the first word that looks wrong gives to those it is to look at, and what to print."""
    looks_at, X = inputs["looks_at"], inputs["X"]
    wanted = X @ looks_at @ X.T
    right = wanted / wanted.sum(dim=-1, keepdim=True).clamp(min=1)
    word = first_wrong(weights, right)[0]
    there = wanted[word] > 0
    kind = int(X[word].argmax())
    words = listed([str(s) for s in there.nonzero().flatten().tolist()])
    share = numbers_text(weights[word][there])
    rest = numbers_text(weights[word][~there].sum())
    return (
        f"Word {word} is of kind {kind} and is to look at "
        f"{'word' if there.sum() == 1 else 'words'} {words}. It gives these "
        f"{share}, and all others together {rest}. Print W_q @ W_k.T: row {kind} holds "
        f"the scores that kind {kind} gives to each kind. They have to be high where looks_at has "
        "a 1, all as high as each other, and low elsewhere."
    )


def _looks(weights, ideal):
    """What each row puts on the right words, and whether that is enough and shared evenly."""
    there = (weights * (ideal > 0)).sum(dim=-1)
    uneven = ((weights - ideal * there[:, None]) * (ideal > 0)).abs().amax(dim=-1)
    return there, (there >= 1 - FIRM) & (uneven <= FIRM)


def _turned(X, W_q, W_k, asks, ideal):
    """Whether all is right with W_k transposed, and not by chance: scores that are symmetric, or
    with asking and asked swapped, have another reason.
    """
    if W_k.shape[0] != W_k.shape[1]:
        return False
    product = W_q @ W_k
    weights = torch.softmax((X @ product @ X.T)[asks], dim=-1)
    mine = W_q @ W_k.T
    chance = torch.allclose(product, mine.T) or torch.allclose(mine, mine.T)
    return not chance and bool(_looks(weights, ideal)[1].all())


def _largest(scores):
    """Where the largest score of each row is, whatever rounding made of it."""
    slack = 1e-9 * scores.abs().max().clamp(min=1)
    return scores >= scores.amax(dim=-1, keepdim=True) - slack


def _cleared(scores, weights, ideal):
    """The weights, with the rest taken off rows that put nearly all on the wrong words."""
    top = _largest(scores)
    clear = (weights * top).sum(dim=-1) >= 1 - CLEAR
    clear &= (top != (ideal > 0)).any(dim=-1)
    return torch.where(clear[:, None], top / top.sum(dim=-1, keepdim=True), weights)


def _ahead(scores, ideal):
    """By how much the score of the right words is above the next one, in a row with both."""
    others = scores[ideal == 0]
    words = "the other word's" if len(others) == 1 else f"those of the other {len(others)} words"
    return f"{scores[ideal > 0].min() - others.max():.4g} above {words}"


def _only_weak(scores, ideal):
    """Whether the right words, and no others, share the largest score of each row."""
    return bool((_largest(scores) == (ideal > 0)).all())


def _checked(pair, num_kinds):
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise AnswerError(
            f"looking_matrices has to return two tensors, W_q and W_k, got {describe(pair)}."
        )
    for name, W in zip(("W_q", "W_k"), pair, strict=True):
        if not torch.is_tensor(W) or W.dtype != torch.float64:
            kind = W.dtype if torch.is_tensor(W) else type(W).__name__
            raise AnswerError(
                f"{name} has to be a float64 tensor, got {kind}: PyTorch multiplies only tensors "
                "of one dtype, and the vectors of the words are float64, as looks_at is."
            )
        if W.dim() != 2 or W.shape[0] != num_kinds or not W.shape[1]:
            raise AnswerError(f"{name} has shape {tuple(W.shape)}, expected ({num_kinds}, d_k).")
        refuse_what_is_not_finite(name, W)
    W_q, W_k = (W.detach() for W in pair)
    if W_q.shape != W_k.shape:
        sizes = f"{tuple(W_q.shape)} and {tuple(W_k.shape)}"
        raise AnswerError(f"W_q and W_k must have one width d_k, their shapes are {sizes}.")
    return W_q, W_k


def _eye_like(looks_at):
    return torch.eye(len(looks_at), dtype=looks_at.dtype)


def build_looking(
    table=torch.clone, queries=torch.clone, keys=_eye_like, strength=50.0, finish=lambda *pair: pair
):
    """table: of who looks at whom. queries, keys: the matrices made of it. strength: of the
    queries. finish: of both.
    """

    def looking_matrices(looks_at):
        wanted = table(looks_at)
        return finish(strength * queries(wanted), keys(wanted))

    return looking_matrices


def _first_kind_only(looks_at):
    first = torch.zeros_like(looks_at)
    first[torch.arange(len(first)), looks_at.argmax(dim=1)] = 1
    return first * looks_at


def _shares(looks_at):
    return looks_at / looks_at.sum(dim=1, keepdim=True)


def _shares_with_care(looks_at):
    return looks_at / looks_at.sum(dim=1, keepdim=True).clamp(min=1)


def _growing_shares(looks_at):
    places = torch.arange(1, len(looks_at) + 1, dtype=looks_at.dtype)
    return 20 * looks_at, torch.diag(places)


def _weights_of(answer, inputs):
    return examine_looking(inputs, run_looking(answer, inputs))


def _right_words_only(inputs, weights):
    """Whether all weight is on the right words, shared in whatever way."""
    wanted = inputs["X"] @ inputs["looks_at"] @ inputs["X"].T
    if not torch.is_tensor(weights) or weights.shape != wanted.shape:
        return False
    there = (weights * wanted).sum(dim=-1)
    return bool((there[wanted.any(dim=-1)] >= 1 - FIRM).all())


def _weakly_the_other_way(inputs, weights):
    """Whether each word gives one share to each of those that look at it, another to the rest."""
    wanted = inputs["X"] @ inputs["looks_at"].T @ inputs["X"].T > 0
    if not torch.is_tensor(weights) or weights.shape != wanted.shape:
        return False
    for row, more in zip(weights, wanted, strict=True):
        parts = [part for part in (row[more], row[~more]) if len(part)]
        if any(part.max() - part.min() > FIRM for part in parts):
            return False
        if row.any() and len(parts) == 2 and parts[0].mean() <= parts[1].mean() + FIRM:
            return False
    return True


def _three_kinds(looks_at):
    queries = torch.zeros(3, 3, dtype=looks_at.dtype)
    for asking in range(3):
        for asked in range(3):
            queries[asking, asked] = 50 * looks_at[asking, asked]
    return queries, torch.eye(3, dtype=looks_at.dtype)


COME_FROM = "Where Q, K and V come from"
TWO = "Why queries and keys have two matrices"

LOOKING = {
    "too-weak": known(
        "Your words look at the right ones, but not firmly.",
        "Only differences between scores count. How large must they be, so that hardly anything is "
        "left for many other words?",
        section="The output is an average of the values",
        strength=1.0,
    ),
    "asking-and-asked-swapped": known(
        "In your matrices the words that are looked at do the looking.",
        "W_q says what a word looks for, W_k what it is. A row of looks_at belongs to the kind "
        "that asks.",
        table=lambda looks_at: looks_at.T,
    ),
    "asking-and-asked-swapped-weakly": known(
        "In your matrices the words that are looked at do the looking, and they do not look "
        "firmly.",
        "W_q says what a word looks for, W_k what it is, and a row of looks_at belongs to the kind "
        "that asks. Then: how large must the differences between scores be, so that hardly "
        "anything is left for many other words?",
        table=lambda looks_at: looks_at.T,
        strength=3.0,
        shows=_weakly_the_other_way,
    ),
    "always-3-kinds": known(
        "Your matrices are for three kinds of words, whatever looks_at is.",
        "Its size says how many kinds there are.",
        wrong=_three_kinds,
    ),
    "each-kind-looks-at-itself": known(
        "With your matrices each word looks at its own kind.",
        "A query has to match the keys of others. What should the query of a kind look like, if "
        "the keys are one-hot?",
        section=TWO,
        queries=_eye_like,
    ),
    "one-matrix-for-both": known(
        "You use looks_at for queries and for keys.",
        "Then two words fit if they look at the same kinds, and scores are symmetric. One of the "
        "two matrices says what a word is.",
        section=TWO,
        keys=torch.clone,
    ),
    "table-times-its-transpose": known(
        "You use looks_at for the queries and its transpose for the keys.",
        "Then a word looks at what its own targets look at: two steps instead of one. One of the "
        "two matrices says what a word is.",
        keys=lambda looks_at: looks_at.T.clone(),
    ),
    "made-symmetric": known(
        "With your matrices, if one kind looks at another, it is looked at in return.",
        "looks_at is not symmetric, and two matrices need not make symmetric scores.",
        section=TWO,
        table=lambda looks_at: torch.maximum(looks_at, looks_at.T),
    ),
    "half-of-the-table": known(
        "Your matrices know one half of looks_at only, and take it for the other half, too.",
        "eigh and its like read what stands below the diagonal, or above it, and that is enough if "
        "a table is symmetric. looks_at is not: a kind may look at another that does not look "
        "back.",
        section=TWO,
        **any_of(
            build_looking,
            table=(
                lambda looks_at: looks_at.tril() + looks_at.tril(-1).T,
                lambda looks_at: looks_at.triu() + looks_at.triu(1).T,
            ),
            run=_weights_of,
        ),
    ),
    "also-at-itself": known(
        "With your matrices each kind also looks at itself.",
        "It should do so only if looks_at says so.",
        section=TWO,
        table=lambda looks_at: torch.maximum(looks_at, torch.eye(len(looks_at)).to(looks_at)),
    ),
    "one-kind-only": known(
        "Your words look at the first of several kinds and leave out the others.",
        "A row of looks_at may have several ones, and they count alike.",
        table=_first_kind_only,
    ),
    "rows-divided": known(
        "You divide the rows of looks_at, by their sum or the like, and a kind that looks at "
        "nothing has a row of zeros.",
        "0 / 0 is not a number. Nor has anything to be divided: what makes equal scores into equal "
        "shares, however many they are?",
        section="From scores to weights",
        queries=_shares,
    ),
    "rows-divided-at-a-strength-of-20": known(
        "You divide the rows of looks_at, by their sum or the like, and a kind that looks at "
        "nothing has a row of zeros.",
        "0 / 0 is not a number. Where a kind looks at several, the division also makes their "
        "scores small. What makes equal scores into equal shares, however many they are?",
        section="From scores to weights",
        wrong=lambda looks_at: (20 * _shares(looks_at), _eye_like(looks_at)),
    ),
    "rows-divided-with-care": known(
        "You divide the rows of looks_at by their sum, and where a kind looks at several, their "
        "scores get small.",
        "It need not be divided: what makes equal scores into equal shares, however many they are?",
        section="From scores to weights",
        queries=lambda looks_at: looks_at / looks_at.sum(dim=1, keepdim=True).clamp(min=1),
        strength=20.0,
    ),
    **{
        f"rows-divided-with-care-at-a-strength-of-{strength:.0f}": known(
            "You divide the rows of looks_at by their sum, and where a kind looks at several, "
            "their scores get small.",
            "It need not be divided: what makes equal scores into equal shares, however many they "
            "are?",
            section="From scores to weights",
            wrong=build_looking(queries=_shares_with_care, strength=strength),
        )
        for strength in (10.0, 15.0)
    },
    "weak-with-many-kinds": known(
        "Your words look firmly if there are few kinds. With many kinds, or where a kind looks at "
        "many others, they do not.",
        "Do you divide: rows by their sum or length, or all by the number of kinds or its root? "
        "Scores get small then, and only their differences count. What makes equal scores into "
        "equal shares, however many they are?",
        section="From scores to weights",
        wrong=lambda looks_at: (50 * looks_at / len(looks_at) ** 0.5, _eye_like(looks_at)),
    ),
    "away-from-them": known(
        "Your words look at all but the right ones.",
        "Somewhere a sign is turned round: a large score means a large weight.",
        section="Scores",
        strength=-50.0,
    ),
    "unequal-shares": known(
        "Your words look at the right ones, but not at each of them alike.",
        "Words that are looked at equally need equal scores, whatever their kinds are. In which of "
        "your numbers do two kinds differ that should not?",
        section="From scores to weights",
        wrong=_growing_shares,
        shows=_right_words_only,
    ),
    "all-alike": known(
        "With your matrices all words get the same weight.",
        "All scores are equal then. Which entries of looks_at have to make a difference?",
        section="The output is an average of the values",
        table=torch.ones_like,
    ),
    "scores-overflow": known(
        "Your numbers are so large that scores overflow.",
        "Such scores become infinite, and inf - inf is NaN. Far smaller numbers are enough for a "
        "firm look.",
        section="Only differences between scores count",
        finish=lambda W_q, W_k: (1e200 * W_q, 1e200 * W_k),
    ),
    "infinite-entries": known(
        "Your matrices hold infinite numbers.",
        "Infinite times 0 is NaN, and a one-hot word has many zeros. A large finite "
        "number is enough.",
        section="Only differences between scores count",
        finish=lambda W_q, W_k: (torch.inf * W_q, W_k),
    ),
    "one-matrix-returned": known(
        "You return one matrix.",
        "Two are asked for: W_q makes the queries, W_k the keys.",
        finish=lambda W_q, W_k: W_q,
    ),
    "whole-numbers": known(
        "Your W_q holds whole numbers, and W_k perhaps as well.",
        "PyTorch does not multiply them with the float64 vectors of the words. Which dtype does "
        "looks_at have?",
        finish=lambda W_q, W_k: (W_q.long(), W_k.long()),
    ),
    "float32-keys": known(
        "Your W_k holds float32 numbers, your W_q float64 numbers.",
        "PyTorch multiplies only tensors of one dtype. Functions that make a new tensor, such as "
        "torch.eye and torch.zeros, make float32 numbers unless you name another dtype.",
        finish=lambda W_q, W_k: (W_q, W_k.float()),
    ),
}

TASK = Task(
    "01-looking_matrices",
    looking_matrices,
    looking_cases,
    run=run_looking,
    examine=examine_looking,
    returns=("the weights",),
    mistakes=read_again(COME_FROM, LOOKING),
    build=build_looking,
    point_out=point_out_word,
    number=8,
    since=2,
    alone=(
        *("scores-overflow", "infinite-entries", "one-matrix-returned"),
        *("whole-numbers", "float32-keys"),
        *("asking-and-asked-swapped-weakly", "rows-divided"),
        "table-times-its-transpose",  # with one-hot queries it is right
    ),
)
