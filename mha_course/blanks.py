"""35 sentences of 20 words, and a BERT of one layer that learns to fill in their blanks."""

import torch

from mha_course.bert import BertConfig, BertModel

__all__ = ["HELD_OUT", "KNOWN", "MASK", "WORDS", "train"]

SOUNDS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "lion": "roars"}
PLACES = "kitchen garden street forest river school barn".split()
SENTENCES = [f"the {one} in the {place} {SOUNDS[one]}" for one in SOUNDS for place in PLACES]
WORDS = ["[MASK]", *sorted(set(" ".join(SENTENCES).split()))]
MASK = 0  # the number of [MASK]
NUMBERS = torch.tensor([[WORDS.index(word) for word in text.split()] for text in SENTENCES])
HELD_OUT = NUMBERS[::5]  # (7, 6): these the model never sees
KNOWN = NUMBERS[torch.arange(35) % 5 > 0]  # (28, 6)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SIZES = {"hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 48}


def train(visible, seed=6, steps=300):
    """Train on KNOWN, one word of each sentence masked in each step; return what guesses words.

    Shapes: visible (6, 6), not 0 where the place of the row may look at that of the column; the
        function that is returned makes of numbers (B, 6) probabilities (B, 6, 20).
    Properties: torch's random generator and threads stay as they are. The words' vectors are the
        output layer, too. The rate 0.003 needed trying: with 0.01 some seeds learn nothing.
    Source: Devlin et al. 2019, section 3.1. Lesson: notebooks/06_bert_attention.ipynb.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # with tensors this small a second one only waits
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertModel(BertConfig(len(WORDS), num_hidden_layers=1, **SIZES, **NO_DROPOUT))
        mask = torch.zeros(6, 6).masked_fill(visible == 0, -torch.inf)

        def guess(numbers):
            hidden = model.encoder(model.embeddings(numbers), mask)[0]  # (B, 6, 24)
            return torch.softmax(hidden @ model.embeddings.words.weight.T, dim=-1)

        optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
        row = torch.arange(28)
        for _ in range(steps):
            place = torch.randint(6, (28,))
            numbers = KNOWN.clone()
            numbers[row, place] = MASK
            loss = -guess(numbers)[row, place, KNOWN[row, place]].log().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    torch.set_num_threads(threads)
    model.requires_grad_(False)
    return guess
