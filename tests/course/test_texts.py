"""The texts of lessons 7 and 12: what the lessons say of them holds."""

import re
from itertools import chain

import pytest

from mha_course import texts

ALL = [
    *(text for text, _, _ in texts.TAGGED),
    *chain.from_iterable(texts.PAIRS),
    *texts.PASSAGES,
    *(query for query, _ in texts.QUERIES),
    *chain.from_iterable(texts.TRAIN.values()),
    *chain.from_iterable(texts.HELD_OUT.values()),
]


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def stems(text):
    """Words without a plural's ending, so that "street" and "streets" are the same."""
    return {re.sub(r"(es|s)$", "", word) if len(word) > 3 else word for word in words(text)}


def test_words_and_stems_by_hand():
    assert words("Nobody pays, in 1969: it's free.") == "nobody pays in 1969 it s free".split()
    assert stems("Boxes on a street, streets") == {"box", "on", "a", "street"}


def test_there_are_as_many_as_the_lesson_says():
    assert len(texts.PAIRS) == 8 and {len(row) for row in texts.PAIRS} == {3}
    assert (len(texts.PASSAGES), len(texts.QUERIES)) == (30, 16)
    assert list(texts.TRAIN) == list(texts.HELD_OUT) == ["streets", "rubbish", "parks", "noise"]
    assert [len(letters) for letters in texts.TRAIN.values()] == [8] * 4
    assert [len(letters) for letters in texts.HELD_OUT.values()] == [15] * 4


def test_no_text_comes_twice_so_none_is_learned_from_and_tried():
    plain = [" ".join(words(text)) for text in ALL]
    assert len(set(plain)) == len(plain)


@pytest.mark.parametrize("text", ALL)
def test_each_text_is_short_and_plain(text):
    assert 1 <= len(words(text)) <= 40
    assert text.isascii() and text == " ".join(text.split())
    assert text[-1] in ".?!" or text in dict(texts.QUERIES)


@pytest.mark.parametrize(("query", "answer"), texts.QUERIES)
def test_a_query_has_no_word_in_common_with_its_answer(query, answer):
    assert not stems(query) & stems(texts.PASSAGES[answer])


def test_no_two_queries_ask_for_the_same_passage():
    places = [place for _, place in texts.QUERIES]
    assert len(set(places)) == len(places) and set(places) <= set(range(30))


def test_pairs_share_words_where_the_lesson_says_so():
    for sentence, meaning, other in texts.PAIRS:
        known = set(words(sentence))
        assert len(known & set(words(other))) > len(known & set(words(meaning)))
    exact = [sorted(words(row[0])) == sorted(words(row[2])) for row in texts.PAIRS]
    assert [place for place, same in enumerate(exact) if same] == [0, 4, 5, 7]


def test_no_word_alone_says_whether_a_sentence_praises():
    assert len(texts.SENTIMENT) == 10 * 8 * 4
    praises, complaints = (
        sorted(chain.from_iterable(words(text) for text, kind, *_ in texts.SENTIMENT if kind == k))
        for k in (1, 0)
    )
    assert praises == complaints
    assert texts.SENTIMENT[3] == ("The soup was not bad.", 1, 0, 0)
    assert texts.SENTIMENT[-2] == ("The show was not clean.", 0, 9, 7)


@pytest.mark.parametrize(("text", "determiners", "objects"), texts.TAGGED)
def test_the_tags_of_a_sentence_name_its_words(text, determiners, objects):
    at = dict(enumerate(words(text), start=1))
    assert {at[place] for place, _ in determiners} == set(at.values()) & {"the", "a", "an"}
    assert all(place < noun and at[noun] not in ("the", "a", "an") for place, noun in determiners)
    [(noun, verb)] = objects
    assert verb < noun and noun in dict(determiners).values()


def test_there_are_ten_tagged_sentences_with_21_determiners():
    assert len(texts.TAGGED) == 10
    assert sum(len(determiners) for _, determiners, _ in texts.TAGGED) == 21
