"""The synthetic tasks: every answer is right, and what is held out is never trained on."""

import datetime
from collections import Counter

import pytest
import torch

from mha_course.data import (
    CHARACTERS,
    END,
    PAD,
    START,
    as_numbers,
    as_text,
    draw_dates,
    draw_recall,
    written,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("held_out", [False, True])
def test_recall_asks_for_values_that_are_there(held_out):
    keys, values, asked, answer = draw_recall(50, seeded(), held_out)
    assert keys.shape == values.shape == (50, 8) and asked.shape == answer.shape == (50, 4)
    for row in range(50):
        table = dict(zip(keys[row].tolist(), values[row].tolist(), strict=True))
        assert sorted(table) == list(range(8))
        assert [table[key] for key in asked[row].tolist()] == answer[row].tolist()
        assert len(set(asked[row].tolist())) == 4
    assert set(values.flatten().tolist()) == set(range(8))


def questions(held_out):
    return {tuple(row) for row in draw_recall(20_000, seeded(), held_out)[2].tolist()}


def test_questions_that_are_held_out_are_not_trained_on():
    assert len(questions(True)) == 240 and len(questions(False)) == 1440
    assert not questions(True) & questions(False)


def test_recall_follows_from_the_seed():
    first, again, other = (draw_recall(5, seeded(s)) for s in (3, 3, 4))
    assert all(map(torch.equal, first, again)) and not torch.equal(first[1], other[1])


@pytest.mark.parametrize(
    "way, text",
    [
        (0, "14 march 2023"),
        (1, "march 14, 2023"),
        (2, "tuesday, march 14 2023"),
        (3, "14.3.2023"),
        (4, "14th of march, 2023"),
    ],
)
def test_the_ways_to_write_a_day(way, text):
    assert written(datetime.date(2023, 3, 14), way) == text


@pytest.mark.parametrize(
    "day, ending",
    [(1, "st"), (2, "nd"), (3, "rd"), (4, "th"), (11, "th"), (12, "th"), (13, "th")]
    + [(21, "st"), (22, "nd"), (23, "rd"), (30, "th"), (31, "st")],
)
def test_endings(day, ending):
    assert written(datetime.date(2023, 1, day), 4) == f"{day}{ending} of january, 2023"


def test_all_ways_are_drawn_and_all_lie_in_the_years_promised():
    texts, days = draw_dates(2_000, seeded())
    for text, day in zip(texts, days, strict=True):
        found = datetime.date.fromisoformat(day)
        assert text in {written(found, way) for way in range(5)}
        assert 1950 <= found.year <= 2049
    counted = Counter(
        next(w for w in range(5) if written(datetime.date.fromisoformat(d), w) == t)
        for t, d in zip(texts, days, strict=True)
    )
    assert min(counted.values()) > 300


def test_days_that_are_held_out_are_not_trained_on():
    seen, held = (set(draw_dates(30_000, seeded(), held_out)[1]) for held_out in (False, True))
    assert not seen & held and len(held) > 3_600 and len(seen) > 15_000


def test_texts_to_numbers_and_back():
    numbers, lengths = as_numbers(["may 1, 1999", f"{START}1999-05-01{END}"])
    assert numbers.shape == (2, 12) and lengths.tolist() == [11, 12]
    assert CHARACTERS[numbers[0, -1]] == PAD and (numbers[0] == 0).sum() == 1
    assert as_text(numbers[1]) == "1999-05-01"
    assert as_text(numbers[0]) == "may 1, 1999"


def test_each_character_of_a_date_has_a_number_of_its_own():
    texts, days = draw_dates(500, seeded())
    assert as_numbers(texts)[0].shape[0] == as_numbers(days)[0].shape[0] == 500
    assert len(set(CHARACTERS)) == len(CHARACTERS)


def test_an_unknown_character_is_quoted():
    with pytest.raises(ValueError, match="'é' in 'février'"):
        as_numbers(["may", "février"])
