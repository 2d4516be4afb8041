"""Two small tasks to learn from examples: recalling values by their keys, and reading dates.

What is held out never occurs in training: other questions, other days.
"""

import datetime
from itertools import permutations

import torch

__all__ = [
    "ASKED",
    "CHARACTERS",
    "END",
    "NUM_KEYS",
    "NUM_VALUES",
    "PAD",
    "START",
    "as_numbers",
    "as_text",
    "draw_dates",
    "draw_recall",
    "written",
]

# Recall: which values belong to these keys? Lesson 8.

NUM_KEYS, NUM_VALUES, ASKED = 8, 8, 4
QUESTIONS = torch.tensor(list(permutations(range(NUM_KEYS), ASKED)))  # (1680, 4)
HELD_OUT_EVERY = 7


def draw_recall(count, generator, held_out=False):
    """Draw `count` examples of the recall task: pairs of key and value, and which keys are asked.

    Shapes: returns the keys (count, 8), each of 0 to 7 once, in any order; their values
        (count, 8), 0 to 7; the question (count, 4), the keys that are asked, in order; the
        answer (count, 4), their values.
    Properties: of the 1,680 questions every seventh is held out, and only these come if `held_out`.
    Lesson: notebooks/08_how_many_heads.ipynb.
    """
    place = torch.arange(len(QUESTIONS)) % HELD_OUT_EVERY == 0
    questions = QUESTIONS[place if held_out else ~place]
    order = torch.rand(count, NUM_KEYS, generator=generator, dtype=torch.float64)
    keys = order.argsort(dim=1)
    values = torch.randint(NUM_VALUES, (count, NUM_KEYS), generator=generator)
    asked = questions[torch.randint(len(questions), (count,), generator=generator)]  # (count, 4)
    where = keys.argsort(dim=1).gather(1, asked)  # the place at which each asked key stands
    return keys, values, asked, values.gather(1, where)


# Dates: from how people write a day to year-month-day. Lesson 10.

PAD, START, END = "_", "<", ">"
CHARACTERS = [PAD, START, END, *" ,-.", *"0123456789", *"abcdefghijklmnopqrstuvwxyz"]
NUMBER_OF = {character: number for number, character in enumerate(CHARACTERS)}
FIRST_DAY = datetime.date(1950, 1, 1).toordinal()
NUM_DAYS = datetime.date(2050, 1, 1).toordinal() - FIRST_DAY
MONTHS = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()


def draw_dates(count, generator, held_out=False):
    """Draw `count` days from 1950 to 2049: how somebody wrote each, and the same as 2023-03-14.

    Shapes: returns two lists of `count` texts.
    Properties: every tenth day is held out, and only these come if `held_out`. The five ways of
        writing are equally likely.
    Lesson: notebooks/10_cross_attention.ipynb.
    """
    ordinals = 10 * torch.randint(NUM_DAYS // 10, (count,), generator=generator)
    if not held_out:
        ordinals += torch.randint(1, 10, (count,), generator=generator)
    ways = torch.randint(5, (count,), generator=generator).tolist()
    days = [datetime.date.fromordinal(FIRST_DAY + ordinal) for ordinal in ordinals.tolist()]
    texts = [written(day, way) for day, way in zip(days, ways, strict=True)]
    return texts, [day.isoformat() for day in days]


def written(day, way):
    """A datetime.date in one of five ways, 0 to 4, in small letters."""
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    return (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{weekday}, {month} {day.day} {day.year}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day.day}{_ending(day.day)} of {month}, {day.year}",
    )[way]


def _ending(day):
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def as_numbers(texts):
    """Texts as the numbers of their characters, filled up with PAD, and how long each is.

    Shapes: returns (B, L) for B texts, L characters in the longest, and the lengths (B,).
    Raises: ValueError quoting a character that is not among CHARACTERS, and its text.
    """
    longest = max(map(len, texts))
    numbers = torch.zeros(len(texts), longest, dtype=torch.long)  # PAD is 0
    for row, text in enumerate(texts):
        unknown = [character for character in text if character not in NUMBER_OF]
        if unknown:
            raise ValueError(f"{unknown[0]!r} in {text!r} is not one of {''.join(CHARACTERS)!r}")
        numbers[row, : len(text)] = torch.tensor([NUMBER_OF[character] for character in text])
    return numbers, torch.tensor([len(text) for text in texts])


def as_text(numbers):
    """The text of numbers (L,), without START and PAD, up to END."""
    characters = "".join(CHARACTERS[number] for number in numbers.tolist())
    return characters.split(END)[0].removeprefix(START).rstrip(PAD)
