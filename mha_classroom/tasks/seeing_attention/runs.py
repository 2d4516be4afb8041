"""What runs of lesson 07's tasks beside the learner's code."""

__all__ = ["run_attended", "run_beyond"]


def run_attended(answer, inputs):
    """Call an answer to `most_attended`; return its list, and the caller's tokens afterwards."""
    given = {**inputs, "tokens": list(inputs["tokens"])}
    return {"pairs": answer(*given.values()), "tokens": given["tokens"]}


def run_beyond(answer, inputs):
    """Call an answer to `beyond_offset`; return its scores, and the caller's pairs afterwards."""
    pairs = [tuple(pair) for pair in inputs["pairs"]]
    return {"scores": answer(inputs["weights"], pairs), "pairs": pairs}
