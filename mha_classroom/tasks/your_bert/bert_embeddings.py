"""Task 12.1, BertEmbeddings: word, position and segment, added and normalised."""

import torch
from torch import nn

from mha_classroom.checks.examining import equal, is_floats, total
from mha_classroom.checks.modules import judged, plan_of
from mha_classroom.checks.showing import describe
from mha_classroom.checks.task import (
    AnswerError,
    Case,
    Task,
    all_but,
    in_float32,
    known,
    read_again,
)
from mha_classroom.tasks.bert_attention.bert_self_attention import (
    EVAL,
    STILL,
    TRAINED,
    WHO_IS_TRAINING,
    WHOLE,
    drop,
    dropped_whole,
    output_and_learning,
)
from mha_classroom.tasks.your_bert.runs import TABLES, run_embeddings
from mha_course import bert


def embedding_cases(draw):
    def case(name, sizes, input_ids, token_type_ids=None, scale=1.0, **more):
        """sizes: rows of the three tables, hidden_size."""
        *rows, width = sizes
        inputs = dict(more)
        for table, count in zip(TABLES, rows, strict=True):
            inputs[f"{table}.weight"] = draw.normal(count, width, scale=scale)
        inputs |= {"norm.weight": draw.normal(width), "norm.bias": draw.normal(width)}
        inputs["input_ids"] = _ids(input_ids, rows[0])
        if token_type_ids is not None:
            inputs["token_type_ids"] = _ids(token_type_ids, rows[2])
        return Case(name, inputs)

    def _ids(given, count):
        """Drawn, if a shape is given."""
        random = isinstance(given, tuple)
        return draw.integers(0, count - 1, *given) if random else torch.tensor(given)

    padded = [[3, 8, 5, 0, 0], [2, 0, 9, 9, 4], [0, 0, 0, 6, 6]]
    return [
        _small_case(),
        case("2 texts, two segments", (11, 13, 2, 7), (2, 5), [[0, 0, 0, 1, 1], [0, 1, 1, 1, 0]]),
        case("as many texts as words and segments", (11, 13, 3, 5), (3, 3), (3, 3)),
        case("as long as the model reads", (17, 7, 2, 5), (2, 7), (2, 7)),
        case("id 0, which is for padding, here and there", (11, 13, 2, 3), padded),
        case("all of segment 1", (5, 7, 2, 3), (2, 3), [[1, 1, 1], [1, 1, 1]]),
        case("numbers that hardly vary", (5, 7, 2, 5), (2, 3), scale=1e-4, layer_norm_eps=1e-8),
        case("layer_norm_eps=0.5", (5, 7, 2, 5), (2, 3), (2, 3), layer_norm_eps=0.5),
        case("in training, without dropout", (5, 7, 2, 11), (3, 7), (3, 7), training=True),
        case("hidden_dropout_prob=1", (5, 7, 2, 3), (2, 3), hidden_dropout_prob=1.0),
        case(
            "attention_probs_dropout_prob=1",
            (5, 7, 2, 17),  # so many numbers that some are always dropped
            (2, 7),
            attention_probs_dropout_prob=1.0,
        ),
        case("hidden_dropout_prob=0.25", (17, 13, 2, 11), (3, 7), (3, 7), hidden_dropout_prob=0.25),
        case("texts of one word", (5, 7, 2, 3), (3, 1), (3, 1)),
        case("a text of 515 words", (5, 600, 2, 2), (1, 515), (1, 515)),
        in_float32(case("numbers in float32", (5, 7, 2, 2), (2, 3), (2, 3))),
    ]


def _small_case():
    """Whole numbers, and a norm that neither scales nor shifts."""
    rows = {
        "words.weight": [[0, 2, 1], [3, 0, 1], [5, 1, 0], [2, 4, 7], [1, 6, 2]],
        "positions.weight": [[0, 1, 0], [2, 0, 0], [0, 0, 4], [1, 1, 0], [3, 0, 1]],
        "segments.weight": [[0, 0, 1], [5, 0, 0]],
        "norm.weight": [1, 1, 1],
        "norm.bias": [0, 0, 0],
    }
    inputs = {name: torch.tensor(X).double() for name, X in rows.items()}
    inputs["input_ids"] = torch.tensor([[4, 1, 4]])
    return Case("1 text, a word twice, no segments given", inputs)


def embedding_stages(inputs):
    words, positions, segments = (inputs[f"{table}.weight"] for table in TABLES)
    ids = inputs["input_ids"]
    found = nn.functional.embedding(ids, words)
    kinds = inputs.get("token_type_ids", torch.zeros_like(ids))
    total = found + positions[: ids.shape[1]] + nn.functional.embedding(kinds, segments)
    norm = inputs["norm.weight"], inputs["norm.bias"], inputs.get("layer_norm_eps", 1e-12)
    return {
        "the words' vectors": found,
        "the sum of word, position and segment": total,
        "the normalised sum": nn.functional.layer_norm(total, total.shape[-1:], *norm),
    }


@total
def examine_embeddings(inputs, seen):
    """The result; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, "hidden_dropout_prob", exactly=True)
    output, *more = judged("BertEmbeddings", inputs, plan, seen)
    if not more:
        return output
    if inputs.get("hidden_dropout_prob") == 0.25:
        return _dropped(inputs, output, *more)
    if "training" in inputs:
        return output_and_learning(inputs, plan, seen, *more)
    return {EVAL: output, TRAINED: more[0]}


def _dropped(inputs, output, again, trained):
    """What dropout of 0.25 does: two runs in eval mode, and training by eval mode."""
    shape = (*inputs["input_ids"].shape, len(inputs["norm.bias"]))
    if not is_floats(output, shape) or not is_floats(trained, shape):
        raise AnswerError(
            f"The output has to be a tensor of shape {shape}, in eval mode and in training; got "
            f"{describe(output)} and {describe(trained)}."
        )
    factors = trained / output
    dropped = trained == 0
    mixed = [bool((dropped.amax(a) != dropped.amin(a)).any()) for a in range(factors.dim())]
    scaled = (factors[~dropped] - 4 / 3).abs() < 1e-6
    return {
        STILL: equal(output, again),
        "in training single numbers are dropped": all(mixed),
        "in training the other numbers are scaled up": bool(scaled.all()),
    }


def _places(ids):
    """The positions of a text's words."""
    return torch.arange(ids.shape[1])


def _kinds(ids, kinds):
    return torch.zeros_like(ids) if kinds is None else kinds


def build_embeddings(
    eps=lambda config: config.layer_norm_eps,
    rate=lambda config: config.hidden_dropout_prob,
    rows=lambda config: config.max_position_embeddings,
    word=lambda self, ids: self.words(ids),
    position=lambda self, ids: self.positions(_places(ids)),
    segment=lambda self, ids, kinds: self.segments(_kinds(ids, kinds)),
    join=lambda self, words, positions, segments: words + positions + segments,
    normalise=lambda self, Y: self.norm(Y),
    drop=drop,
):
    class BertEmbeddings(nn.Module):
        def __init__(self, config):
            super().__init__()
            width = config.hidden_size
            self.words = nn.Embedding(config.vocab_size, width)
            self.positions = nn.Embedding(rows(config), width)
            self.segments = nn.Embedding(config.type_vocab_size, width)
            self.norm = nn.LayerNorm(width, eps=eps(config))
            self.rate = rate(config)

        def forward(self, input_ids, token_type_ids=None):
            positions = position(self, input_ids)
            parts = word(self, input_ids), positions, segment(self, input_ids, token_type_ids)
            return drop(self, normalise(self, join(self, *parts)))

    return BertEmbeddings


def _by_hand(self, Y, axes=-1, unbiased=False, eps_in_the_root=True):
    """The norm written out. axes: over which it goes."""
    spread = Y.var(axes, keepdim=True, unbiased=unbiased)
    inside, outside = (self.norm.eps, 0) if eps_in_the_root else (0, self.norm.eps)
    scaled = (Y - Y.mean(axes, keepdim=True)) / ((spread + inside).sqrt() + outside)
    return scaled * self.norm.weight + self.norm.bias


def _drop_another(self, Y):
    """In training one number is dropped, in each call another: two calls never agree by chance."""
    if not self.training:
        return Y
    self.calls = getattr(self, "calls", 0) + 1
    kept = torch.ones_like(Y)
    kept.view(-1)[self.calls % Y.numel()] = 0
    return Y * kept / 0.9


def _clamped(places):
    """Looks positions up at these places, none past the end of the table."""
    return build_embeddings(
        position=lambda self, ids: self.positions(
            places(ids).clamp(max=self.positions.num_embeddings - 1)
        )
    )


def _words_counted(ids):
    """Positions that count what is no padding."""
    return ((ids != 0).cumsum(1) - 1).clamp(min=0)


class _Concatenated(build_embeddings()):
    def forward(self, input_ids, token_type_ids=None):
        words, kinds = self.words(input_ids), _kinds(input_ids, token_type_ids)
        positions = self.positions(_places(input_ids)).expand_as(words)
        return torch.cat([words, positions, self.segments(kinds)], -1)


class _ConcatenatedAndNormalised(_Concatenated):
    def forward(self, input_ids, token_type_ids=None):
        return drop(self, self.norm(super().forward(input_ids, token_type_ids)))


EMBEDDINGS = {
    "positions-forgotten": known(
        "The positions are not in your sum.",
        "Without them a word has one vector wherever it stands, and attention knows no order.",
        position=lambda self, ids: 0,
    ),
    "positions-from-1": known(
        "You count positions from 1.",
        "The first row of the table is for the first word, and Python calls it 0.",
        position=lambda self, ids: self.positions(_places(ids) + 1),
    ),
    "positions-by-word": known(
        "You look positions up by the ids of the words.",
        "An id says which word it is. The position says where it stands: 0, 1, 2, …, the same in "
        "every text.",
        position=lambda self, ids: self.positions(ids),
    ),
    "positions-from-1-and-clamped": known(
        "You count positions from 1, and the last two words get the same one where the table ends.",
        "The first row of the table is for the first word, and Python calls it 0.",
        wrong=_clamped(lambda ids: _places(ids) + 1),
    ),
    "positions-by-word-and-clamped": known(
        "You look positions up by the ids of the words, cut off where the table ends.",
        "An id says which word it is. The position says where it stands: 0, 1, 2, …, the same in "
        "every text.",
        wrong=_clamped(lambda ids: ids),
    ),
    "always-512-positions": known(
        "Your table of positions has 512 rows, whatever the config says.",
        "512 is what BERT has. Here the config says how many there are: max_position_embeddings.",
        rows=lambda config: 512,
    ),
    "positions-by-text": known(
        "Your positions count the texts of the batch, not the words of a text.",
        "All texts of a batch begin at position 0. Which axis of input_ids runs along a text?",
        position=lambda self, ids: self.positions(torch.arange(len(ids)))[:, None],
    ),
    "positions-run-on": known(
        "Your positions go on from one text of the batch to the next.",
        "Each text begins at position 0, whatever it is read together with.",
        position=lambda self, ids: self.positions(torch.arange(ids.numel()).view(ids.shape)),
    ),
    "positions-backwards": known(
        "You count positions from the end of the text.",
        "The first word stands at position 0.",
        position=lambda self, ids: self.positions(_places(ids).flip(0)),
    ),
    **{
        id: known(
            "Your positions count only ids other than 0.",
            "Some other models do that. In BERT a position is the place in the text, padding or "
            "not; the mask is what hides padding, later.",
            position=lambda self, ids, places=places: self.positions(places(ids)),
        )
        for id, places in (
            ("padding-not-counted", _words_counted),
            ("padding-not-counted-and-at-0", lambda ids: _words_counted(ids) * (ids != 0)),
        )
    },
    "whole-table-of-positions": known(
        "You add the whole table of positions, whatever the length of the text.",
        "It has max_position_embeddings rows, and a text of L words needs the first L of them.",
        position=lambda self, ids: self.positions.weight,
    ),
    "one-position-for-all": known(
        "Every word gets the vector of position 0.",
        "Position 0 is the first word's. The table has a row for each place.",
        position=lambda self, ids: self.positions(torch.zeros_like(ids)),
    ),
    "segments-forgotten": known(
        "The segments are not in your sum.",
        "Even where there is one segment only, its vector belongs to the sum: the model was "
        "trained with it.",
        segment=lambda self, ids, kinds: 0,
    ),
    "segments-only-if-given": known(
        "Without token_type_ids you add no segment at all.",
        "None means that all words are of segment 0, and row 0 of the table is not zero.",
        segment=lambda self, ids, kinds: 0 if kinds is None else self.segments(kinds),
    ),
    "segments-always-0": known(
        "You take segment 0 for every word, also where token_type_ids says otherwise.",
        "token_type_ids is None or gives the segment of each word. When it is given, it counts.",
        segment=lambda self, ids, kinds: self.segments(torch.zeros_like(ids)),
    ),
    "or-for-none": known(
        "You ask a tensor whether it is true: `token_type_ids or …` does that, and so does "
        "`if token_type_ids`.",
        "A tensor of many numbers is neither true nor false. Whether an argument was given is "
        "asked with `is None`.",
        segment=lambda self, ids, kinds: self.segments(kinds or torch.zeros_like(ids)),
    ),
    "tables-swapped": known(
        "You look the segments up in the table of positions, and the positions in that of "
        "segments.",
        "Each table has a row for each number that it is asked for: max_position_embeddings rows "
        "for places, type_vocab_size for segments.",
        position=lambda self, ids: self.segments(_places(ids)),
        segment=lambda self, ids, kinds: self.positions(_kinds(ids, kinds)),
    ),
    "segment-1-by-default": known(
        "Without token_type_ids you take segment 1.",
        "None means that all words are of the first segment, and counting begins at 0.",
        segment=lambda self, ids, kinds: self.segments(
            torch.ones_like(ids) if kinds is None else kinds
        ),
    ),
    "words-forgotten": known(
        "The words' own vectors are not in your sum.",
        "Word, position and segment: three tables, and the word is what the text is about.",
        word=lambda self, ids: torch.zeros_like(self.words(ids)),
    ),
    "padding-zeroed": known(
        "Where the id is 0 you put zeros in place of the word's vector.",
        "Row 0 of the table may hold numbers, as a trained model's does, and it is read like any "
        "other.",
        word=lambda self, ids: self.words(ids) * (ids != 0)[..., None],
    ),
    "words-scaled": known(
        "You multiply the words' vectors by the root of hidden_size.",
        "The first Transformer did that. In BERT the three vectors are added as they are.",
        word=lambda self, ids: self.words(ids) * self.words.embedding_dim**0.5,
    ),
    "averaged": known(
        "You take the mean of the three vectors, not their sum.",
        "A norm makes that almost the same, but for its eps: a third of the sum has a ninth of "
        "the variance. The model was trained with the sum.",
        join=lambda self, *parts: sum(parts) / 3,
    ),
    "multiplied": known(
        "You multiply the three vectors.",
        "They are added: each of them moves the word's vector a little.",
        join=lambda self, words, positions, segments: words * positions * segments,
    ),
    "concatenated": known(
        "You put the three vectors side by side.",
        "Then each word is three times as wide as the layers expect. They are added, number by "
        "number.",
        wrong=_Concatenated,
    ),
    "concatenated-and-normalised": known(
        "You put the three vectors side by side, and the norm does not fit the result.",
        "The norm is for hidden_size numbers a word. The three are added, number by number.",
        wrong=_ConcatenatedAndNormalised,
    ),
    "no-norm": known(
        "Your result is the sum, not normalised.",
        "The layers expect words of mean 0 and variance 1, scaled and shifted by what the norm "
        "has learnt.",
        normalise=lambda self, Y: Y,
    ),
    "norm-before-the-sum": known(
        "You normalise the words' vectors and add the rest afterwards.",
        "There is one norm, and it comes after the sum of all three.",
        word=lambda self, ids: self.norm(self.words(ids)),
        normalise=lambda self, Y: Y,
    ),
    "each-normalised": known(
        "You normalise each of the three vectors and add the results.",
        "There is one norm, and it comes after the sum.",
        join=lambda self, *parts: sum(self.norm(part) for part in parts),
        normalise=lambda self, Y: Y,
    ),
    "norm-before-segments": known(
        "You add the segment after the norm.",
        "There is one norm, and it comes after the sum of all three.",
        join=lambda self, words, positions, segments: self.norm(words + positions) + segments,
        normalise=lambda self, Y: Y,
    ),
    "norm-before-positions": known(
        "You add the position after the norm.",
        "There is one norm, and it comes after the sum of all three.",
        join=lambda self, words, positions, segments: self.norm(words + segments) + positions,
        normalise=lambda self, Y: Y,
    ),
    "normalised-over-words": known(
        "Your norm goes over all words of a text together.",
        "A layer norm takes each word for itself: mean and variance over its hidden_size numbers.",
        normalise=lambda self, Y: _by_hand(self, Y, axes=(1, 2)),
    ),
    **{
        id: known(
            "Your variance is divided by hidden_size - 1, not by hidden_size.",
            "var and std do that unless they are told otherwise (unbiased=False), and nn.LayerNorm "
            "does not.",
            normalise=lambda self, Y, inside=inside: _by_hand(
                self, Y, unbiased=True, eps_in_the_root=inside
            ),
        )
        for id, inside in (("unbiased-variance", True), ("unbiased-spread", False))
    },
    "eps-outside-the-root": known(
        "You add eps to the root of the variance.",
        "nn.LayerNorm adds it to the variance, before the root is taken.",
        normalise=lambda self, Y: _by_hand(self, Y, eps_in_the_root=False),
    ),
    "default-eps": known(
        "Your norm has PyTorch's own eps, not the config's.",
        "nn.LayerNorm takes 1e-5 unless it is told another. Where a word's numbers hardly vary, "
        "it shows.",
        eps=lambda config: 1e-5,
    ),
    "no-dropout": known(
        "hidden_dropout_prob has no effect while training.",
        "With that probability a number of the result is dropped.",
        drop=lambda self, Y: Y,
    ),
    "dropout-in-eval": known(
        "Numbers are dropped in eval mode too.",
        WHO_IS_TRAINING,
        drop=lambda self, Y: nn.functional.dropout(Y, self.rate, True),
    ),
    "probability-of-your-own": known(
        "You always drop with the same probability, whatever the config says.",
        "It may be 0 or 1 in the config, too. Which of its probabilities is for hidden states?",
        drop=_drop_another,
    ),
    "other-probability": known(
        "You drop with attention_probs_dropout_prob.",
        "That one is for attention weights. Hidden states have a probability of their own.",
        rate=lambda config: config.attention_probs_dropout_prob,
    ),
    "dropout-before-the-norm": known(
        "You drop before the norm.",
        "The norm would then hide how much was dropped. In BERT's embeddings dropout comes last.",
        normalise=lambda self, Y: self.norm(drop(self, Y)),
        drop=lambda self, Y: Y,
    ),
    "whole-words-dropped": known(
        **WHOLE,
        drop=dropped_whole,
    ),
    "not-scaled-up": known(
        "In training numbers are dropped, and the others are not scaled as they should be.",
        "A number that is kept is its value in eval mode divided by 1 - p, so that the mean stays "
        "the same. nn.Dropout does both, if it is applied once.",
        drop=lambda self, Y: Y * (torch.rand_like(Y) >= self.rate) if self.training else Y,
    ),
}
EMBEDDINGS = read_again("From ids to vectors", EMBEDDINGS)

TASK = Task(
    "12-BertEmbeddings",
    bert.BertEmbeddings,
    embedding_cases,
    run=run_embeddings,
    examine=examine_embeddings,
    returns=("the output",),
    kind="class",
    mistakes=EMBEDDINGS,
    build=build_embeddings,
    alone=all_but(
        EMBEDDINGS,
        "positions-from-1",
        "positions-forgotten",
        "segments-forgotten",
        "segments-only-if-given",
        "segments-always-0",
        "no-norm",
        "default-eps",
        "no-dropout",
        "dropout-in-eval",
        "other-probability",
    ),
    stages=embedding_stages,
    forbidden=("mha_course.bert.BertEmbeddings",),
    number=1,
)
