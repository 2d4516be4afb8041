"""The model that fills in blanks learns what it is said to learn, and nothing leaks."""

import pytest
import torch

from mha_course import blanks


def found(guess):
    """How many of the animals held out are found."""
    asked = blanks.HELD_OUT.clone()
    asked[:, 1] = blanks.MASK
    return int((guess(asked)[:, 1].argmax(dim=-1) == blanks.HELD_OUT[:, 1]).sum())


def test_held_out_sentences_are_new_and_their_words_are_not():
    known, held_out = blanks.KNOWN.tolist(), blanks.HELD_OUT.tolist()
    assert len(known) == 28 and len(held_out) == 7 and len(blanks.WORDS) == 20
    assert not [sentence for sentence in held_out if sentence in known]
    assert {word for row in held_out for word in row} <= {word for row in known for word in row}
    assert blanks.WORDS[blanks.MASK] == "[MASK]" and blanks.MASK not in sum(known, [])


@pytest.mark.parametrize(
    ("visible", "least", "most"),
    [(torch.ones(6, 6), 6, 7), (torch.ones(6, 6).tril(), 1, 2), (torch.eye(6), 1, 2)],
)
def test_only_who_sees_the_last_word_finds_the_animal(visible, least, most):
    torch.manual_seed(3)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    guess = blanks.train(visible)
    assert least <= found(guess) <= most
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    sums = guess(blanks.HELD_OUT).sum(dim=-1)
    assert torch.allclose(sums, torch.ones(7, 6), atol=1e-5) and not sums.requires_grad
