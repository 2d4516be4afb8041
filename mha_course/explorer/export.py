"""The numbers behind a picture, as CSV and as JSON."""

import csv
import io
import json

from mha_course.explorer.heads import describe_head, head_figures, most_attended

__all__ = ["to_csv", "to_json"]

DECIMALS = 6
# A spreadsheet takes a cell that starts so for a formula, and runs it; OWASP, "CSV Injection".
FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def to_csv(found, layer, head):
    """One head's weights: a row for each query, named in its first cell, a column for each key.

    Properties: a token that a spreadsheet would run as a formula, such as =, is written '=.
    Raises: IndexError if there is no such layer or head.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    tokens = [_harmless(token) for token in found.tokens]
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["query", *tokens])
    for token, row in zip(tokens, _rounded(found.weights[layer, head]), strict=True):
        writer.writerow([token, *row])
    return file.getvalue()


def to_json(found, layer, head, **more):
    """One head's weights, tokens and figures, and whatever `more` says, such as the text.

    Raises: IndexError if there is no such layer or head.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    weights = found.weights[layer, head]
    content = {
        **more,
        "layer": layer,
        "head": head,
        "kind": describe_head(weights, found.tokens),
        "figures": head_figures(weights, found.tokens),
        "most_attended": most_attended(weights, found.tokens),
        "tokens": found.tokens,
        "second": found.second,
        "num_cut": found.num_cut,
        "weights": _rounded(weights),
    }
    return json.dumps(content, ensure_ascii=False)


def _harmless(token):
    return f"'{token}" if token.startswith(FORMULA) else token


def _rounded(weights):
    return [[round(weight, DECIMALS) for weight in row] for row in weights.tolist()]
