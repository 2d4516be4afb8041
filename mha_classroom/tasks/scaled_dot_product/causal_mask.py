"""Task 2.3, causal_mask: no word sees a later one."""

import math

import torch

from mha_classroom.checks.task import Case, Task, known, read_again, unchanged


def causal_mask(num_steps):
    return torch.ones(num_steps, num_steps, dtype=torch.bool).tril()


def mask_cases(draw):
    counts = (3, 1, 2, 7, 515)  # the last above the sizes that people make a table for
    return [Case(f"{n:,} step{'s' * (n > 1)}", {"num_steps": n}) for n in counts]


def build_mask(shift=0, turn=unchanged, form=unchanged):
    return lambda num_steps: form(
        turn(torch.ones(num_steps, num_steps, dtype=torch.bool).tril(shift))
    )


def _added(inverted=False):
    """Whether a mask holds 0 where a word may look and, however large, less elsewhere."""

    def shows(inputs, mask):
        right = build_mask()(inputs["num_steps"])
        if not torch.is_tensor(mask) or mask.shape != right.shape or not mask.is_floating_point():
            return False
        seen = ~right if inverted else right
        return bool((mask[seen] == 0).all() and (mask[~seen] < -1).all())

    return shows


def own_place_hidden(mask):
    """The mask without its diagonal, but for word 0."""
    below = mask.tril(-1)
    below[..., 0, 0] = mask[..., 0, 0]
    return below


def _causal_of_any_size(inputs, mask):
    table = torch.is_tensor(mask) and mask.dim() == 2 and mask.dtype == torch.bool
    return table and mask.equal(build_mask()(len(mask)))


def _cut_from_a_table(inputs, mask):
    """Whether the mask is right, or smaller where there are many steps."""
    many = inputs["num_steps"] > FEW_STEPS
    return _causal_of_any_size(inputs, mask) and (many or len(mask) == inputs["num_steps"])


FEW_STEPS = 7
OPPOSITE = "Two meanings of True"
AXES = "A mask with one axis too many, or too few"

# The right table said in another way, as 2.6 and 2.7 get them, too.
OTHER_TABLES = {
    "mask-inverted": known(
        "Your mask is True where a word may not look.",
        "That is what nn.MultiheadAttention asks for. Here, as in PyTorch's function, True means "
        "may attend.",
        section=OPPOSITE,
        turn=torch.logical_not,
    ),
    "mask-of-floats": known(
        "Your mask holds the numbers 0.0 and 1.0, not booleans.",
        "PyTorch adds a mask of numbers to the scores, and then 1.0 and 0.0 hide nothing.",
        section=OPPOSITE,
        form=torch.Tensor.double,
    ),
    "mask-of-whole-numbers": known(
        "Your mask holds the whole numbers 0 and 1, not booleans.",
        "~ shows the difference: of True it makes False, of 1 it makes -2, or 254 in uint8.",
        section=OPPOSITE,
        form=torch.Tensor.long,
    ),
}

MASK = {
    "looks-ahead": known(
        "Your words see themselves and what comes later: the triangle is on the wrong side.",
        "Rows are queries. Word 0, in the first row, has nobody before it, so only its first "
        "entry may be True.",
        turn=lambda mask: mask.T,
    ),
    "next-word-visible": known(
        "Your words see the next one too.",
        "That is one diagonal too many, and it is the word that a model is to predict: it would "
        "copy the answer.",
        shift=1,
    ),
    "hides-itself": known(
        "None of your words may look at itself.",
        "Word t may see words 0 to t, itself included. Otherwise word 0 has nothing to look at, "
        "and its softmax is over nothing.",
        shift=-1,
    ),
    "all-visible": known(
        "Your mask is True everywhere, so it hides nothing.",
        "Word 0 would see how the sentence ends. (If you write it row by row: [row] * n holds one "
        "and the same row n times.)",
        turn=torch.ones_like,
    ),
    "nothing-visible": known(
        "Your mask is False everywhere: no word may look at anything.",
        "A tensor of zeros is a good start. Which of its places have to become True?",
        turn=torch.zeros_like,
    ),
    "only-itself": known(
        "Each of your words sees itself and nobody else.",
        "Then nothing is gathered from anywhere: word t may look at all the words before it too.",
        turn=lambda mask: torch.eye(len(mask), dtype=torch.bool),
    ),
    "itself-and-the-one-before": known(
        "Your words see no further back than the one before them.",
        "Word t may look at all of words 0 to t, however far back they are.",
        turn=lambda mask: mask.triu(-1),
    ),
    **OTHER_TABLES,
    "mask-to-be-added": known(
        "Your mask is one to be added to the scores: 0 where a word may look, a very low number "
        "elsewhere.",
        "It says the right thing in the other language. The task asks for booleans, True = may "
        "attend.",
        section=OPPOSITE,
        wrong=lambda n: torch.zeros(n, n).masked_fill(~build_mask()(n), -math.inf),
        shows=_added(),
    ),
    "mask-to-be-added-inverted": known(
        "Your mask is one to be added to the scores, and it hides what a word may look at.",
        "It says 0 where the task asks for False. Decide first which places hold True, then make "
        "a tensor of booleans.",
        section=OPPOSITE,
        wrong=lambda n: torch.zeros(n, n).masked_fill(build_mask()(n), -math.inf),
        shows=_added(inverted=True),
    ),
    "axis-for-the-batch": known(
        "Your mask has three axes, one of them for the batch.",
        "The numbers are right. The task asks for (num_steps, num_steps): the same mask serves "
        "every sequence.",
        section=AXES,
        form=lambda mask: mask[None],
    ),
    "compared-without-an-axis": known(
        "Your result is a row of True, one for each word. Do you compare the positions with "
        "themselves, one by one?",
        "Every query is to be compared with every key. For that the queries need to run along "
        "another axis than the keys.",
        section=AXES,
        wrong=lambda n: torch.arange(n) <= torch.arange(n),
    ),
    "other-diagonal": known(
        "Your triangle lies along the wrong diagonal: word 0 sees all words, the last one only "
        "word 0.",
        "Further down in the table more words may be seen, one more in each row. What has to hold "
        "between the place of a query and that of a key?",
        turn=lambda mask: mask.flip(0),
    ),
    "first-row-empty": known(
        "Your first row is False from end to end: word 0 sees nothing, not even itself.",
        "Word t may see words 0 to t, and that goes for t = 0 as well. If you count rows in a "
        "loop, with which one does it begin?",
        turn=lambda mask: mask & (torch.arange(len(mask)) > 0)[:, None],
    ),
    "lengths-for-mask": known(
        "You return how many words each may see, not which.",
        "As lengths that is right: word t sees t + 1 words. The mask says it entry by entry, in a "
        "square.",
        wrong=lambda n: torch.arange(1, n + 1),
    ),
    "hides-itself-but-for-word-0": known(
        "None of your words but word 0 may look at itself.",
        "Word t may see words 0 to t, itself included, whatever t is. A slice :t ends before t.",
        turn=own_place_hidden,
    ),
    "cut-from-a-table": known(
        "Your mask is right for few steps, and too small for many.",
        "Is it cut from a table of a fixed size? num_steps may be any number.",
        wrong=lambda n: build_mask()(min(n, FEW_STEPS)),
        shows=_cut_from_a_table,
    ),
    **{
        f"always-{size}-steps": known(
            "Your mask has the same size whatever num_steps is.",
            "The task's argument says how many words there are.",
            wrong=lambda n, size=size: build_mask()(size),
        )
        for size in (3, 4, 5, 8, 10, 12, 16, 512)
    },
    **{
        id: known(
            f"Your mask has one row and one column too {much}.",
            "num_steps is the number of words: positions go from 0 to num_steps - 1.",
            wrong=lambda n, more=more: build_mask()(n + more),
        )
        for id, much, more in (("one-step-more", "many", 1), ("one-step-less", "few", -1))
    },
}

TASK = Task(
    "02-causal_mask",
    causal_mask,
    mask_cases,
    returns=("the result",),
    mistakes=read_again("Hiding the future", MASK),
    build=build_mask,
    number=3,
    alone=("other-diagonal",),  # beside another one its words are not true
)
