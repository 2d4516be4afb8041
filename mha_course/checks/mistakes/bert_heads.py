"""The known mistakes of lesson 06 in making and joining heads, and in returning their weights."""

from mha_course.checks.task import Mistake

__all__ = ["HEADS_MADE", "RETURNED"]

HEADS = "The heads of lesson 4, with biases"

HEADS_MADE = (
    Mistake(
        "split-without-transpose",
        "Your heads hold whole words: the split misses the swap of words and heads.",
        "A reshape deals numbers out word after word, so a head sees some words only. It has to "
        "get its slice of every word (lesson 4).",
        HEADS,
        parts={"split": lambda X, H: X.reshape(X.shape[0], H, X.shape[1], -1)},
    ),
    Mistake(
        "features-interleaved",
        "Your heads take features in turn instead of neighbouring ones.",
        "A trained model's head h owns the columns h·d to (h+1)·d of each projection; dealt out "
        "otherwise its weights make no sense.",
        HEADS,
        parts={"split": lambda X, H: X.unflatten(-1, (-1, H)).permute(0, 3, 1, 2)},
    ),
    Mistake(
        "count-and-width-swapped",
        "You cut each word into pieces of num_attention_heads numbers, instead of into so many "
        "pieces.",
        "Number of heads and width of a head changed places. Where the two are equal nobody "
        "notices.",
        HEADS,
        parts={"split": lambda X, H: X.unflatten(-1, (-1, H)).transpose(1, 2)},
    ),
    Mistake(
        "merge-without-transpose",
        "You join the heads without swapping back: words are mixed up in the result.",
        "Heads and features have to be neighbours before they become one axis (lesson 4).",
        HEADS,
        parts={"merge": lambda X: X.reshape(X.shape[0], X.shape[2], -1)},
    ),
    Mistake(
        "heads-not-joined",
        "You return the heads on an axis of their own.",
        "The next module takes (B, L, hidden_size): each word's heads side by side again.",
        HEADS,
        parts={"merge": lambda X: X},
    ),
    Mistake(
        "queries-and-keys-swapped",
        "Queries and keys have changed places.",
        "In row i of the weights stands what word i attends to, so the rows belong to the queries.",
        HEADS,
        parts={"roles": ("W_k", "W_q", "W_v")},
    ),
    Mistake(
        "keys-and-values-swapped",
        "Keys and values have changed places.",
        "Queries are compared with keys. Values are what is averaged.",
        HEADS,
        parts={"roles": ("W_q", "W_v", "W_k")},
    ),
    Mistake(
        "values-not-projected",
        "You average X itself: W_v is not used.",
        "What is averaged are the values, and these are made from X as queries and keys are.",
        HEADS,
        parts={"roles": ("W_q", "W_k", None)},
    ),
    Mistake(
        "keys-averaged",
        "You average the keys.",
        "Keys are there to be compared with. What is averaged are the values, from W_v.",
        HEADS,
        parts={"roles": ("W_q", "W_k", "W_k")},
    ),
    Mistake(
        "biases-not-used",
        "The biases have no effect: you multiply with the weights only.",
        "BERT's projections are X times W plus a bias. Calling an nn.Linear does both.",
        HEADS,
        parts={"project": lambda linear, X: X @ linear.weight.T},
    ),
    Mistake(
        "weights-transposed",
        "You multiply X with the weights as they are kept.",
        "nn.Linear keeps (out, in), so X would have to meet the transpose. Calling the nn.Linear "
        "does that, and adds the bias.",
        HEADS,
        parts={"project": lambda linear, X: X @ linear.weight + linear.bias},
    ),
)

RETURNED = (
    Mistake(
        "weights-averaged",
        "You return the weights averaged over the heads.",
        "(B, H, L, L) was asked for: an average of heads shows what none of them does.",
        HEADS,
        parts={"show": lambda output, weights, dropped: (output, weights.mean(1))},
    ),
    Mistake(
        "weights-with-batch-and-heads-joined",
        "You return the weights with batch and heads as one axis.",
        "The numbers are right. (B, H, L, L) was asked for.",
        HEADS,
        parts={"show": lambda output, weights, dropped: (output, weights.flatten(0, 1))},
    ),
    Mistake(
        "weights-first",
        "You return the weights first, then the output.",
        "The task asks for them the other way round.",
        HEADS,
        parts={"show": lambda output, weights, dropped: (weights, output)},
    ),
    Mistake(
        "weights-not-returned",
        "need_weights has no effect: only the output comes back.",
        "With need_weights=True two values were asked for, the output and the weights.",
        HEADS,
        parts={"show": lambda output, weights, dropped: output},
    ),
    Mistake(
        "weights-always-returned",
        "You return the weights whether they were asked for or not.",
        "With need_weights=False, the default, whoever calls expects one tensor.",
        HEADS,
        parts={"plain": lambda output, weights: (output, weights)},
    ),
)
