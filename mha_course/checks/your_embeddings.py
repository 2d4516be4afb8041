"""Cases, run and stages of lesson 12's embeddings."""

import torch
from torch import nn

from mha_course.bert import BertConfig
from mha_course.checks.bert_loading import make
from mha_course.checks.evidence import equal, is_floats, total
from mha_course.checks.module_calls import judged, learns, plan_of, run_planned
from mha_course.checks.showing import describe
from mha_course.checks.task import AnswerError, Case

__all__ = ["embedding_cases", "embedding_stages", "examine_embeddings", "run_embeddings"]

TABLES = ("words", "positions", "segments")


def embedding_cases(draw):
    """Cases for `BertEmbeddings`."""

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
        shape = given if isinstance(given, tuple) else None
        return draw.integers(0, count - 1, *shape) if shape else torch.tensor(given)

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
        case("in training, without dropout", (5, 7, 2, 5), (2, 3), (2, 3), training=True),
        case("hidden_dropout_prob=1", (5, 7, 2, 3), (2, 3), hidden_dropout=1.0),
        case("attention_probs_dropout_prob=1", (5, 7, 2, 3), (2, 3), attention_dropout=1.0),
        case("hidden_dropout_prob=0.25", (17, 13, 2, 11), (3, 7), (3, 7), hidden_dropout=0.25),
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


def run_embeddings(answer, inputs):
    """Make the learner's module, give it the case's weights, run it."""
    words, positions, segments = (inputs[f"{table}.weight"] for table in TABLES)
    config = BertConfig(
        vocab_size=len(words),
        max_position_embeddings=len(positions),
        type_vocab_size=len(segments),
        hidden_size=words.shape[1],
        num_hidden_layers=19,
        num_attention_heads=1,
        intermediate_size=23,
        layer_norm_eps=inputs.get("layer_norm_eps", 1e-12),
        hidden_dropout_prob=inputs.get("hidden_dropout", 0.0),
        attention_probs_dropout_prob=inputs.get("attention_dropout", 0.0),
    )
    module = make(answer, "BertEmbeddings", config)
    arguments = [inputs[name] for name in ("input_ids", "token_type_ids") if name in inputs]
    plan = plan_of(inputs, "hidden_dropout", exactly=True)
    return run_planned(module, "BertEmbeddings", inputs, arguments, plan)


@total
def examine_embeddings(inputs, seen):
    """The result; where single numbers are dropped, what dropout does."""
    plan = plan_of(inputs, "hidden_dropout", exactly=True)
    output, *more = judged("BertEmbeddings", inputs, plan, seen)
    if not more:
        return output
    if inputs.get("hidden_dropout") == 0.25:
        return _dropped(inputs, output, *more)
    if "training" in inputs:
        found = learns(inputs, plan, seen)
        return {"the output in training": more[0], "gradients reach every matrix": found}
    return {"the output in eval mode": output, "the output in training": more[0]}


def _dropped(inputs, output, again, trained):
    """What dropout of 0.25 does: two runs in eval mode, and training by eval mode."""
    shape = (*inputs["input_ids"].shape, len(inputs["norm.bias"]))
    if not is_floats(output, shape) or not is_floats(trained, shape):
        raise AnswerError(
            f"The output has to be a tensor of shape {shape}, in eval mode and in training; got "
            f"{describe(output)} and {describe(trained)}."
        )
    factors = trained / output
    dropped = factors.abs() < 1e-6
    mixed = [bool((dropped.amax(a) != dropped.amin(a)).any()) for a in range(factors.dim())]
    scaled = (factors[~dropped] - 4 / 3).abs() < 1e-6
    return {
        "in eval mode nothing is dropped": equal(output, again),
        "in training single numbers are dropped": all(mixed),
        "in training the other numbers are scaled up": bool(scaled.all()),
    }


def embedding_stages(inputs):
    """What a right `BertEmbeddings` computes on the way, for a case's inputs."""
    words, positions, segments = (inputs[f"{table}.weight"] for table in TABLES)
    ids = inputs["input_ids"]
    found = nn.functional.embedding(ids, words)
    kinds = inputs.get("token_type_ids", torch.zeros_like(ids))
    total = found + positions[: ids.shape[1]] + nn.functional.embedding(kinds, segments)
    eps = inputs.get("layer_norm_eps", 1e-12)
    scaled = nn.functional.layer_norm(total, total.shape[-1:], eps=eps)
    return {
        "the words' vectors": found,
        "the sum of word, position and segment": total,
        "each word with mean 0 and variance 1": scaled,
        "the normalised sum": scaled * inputs["norm.weight"] + inputs["norm.bias"],
    }
