"""Drawings of the machine: one attention, the multi-head block, BERT; SVG made from sizes.

A call returns a Drawing, which a notebook shows. Data is a filled shape in the colour of its role;
what is done with it stands in an outlined box. Lines and loose words take the colour of the page's
text, so that a drawing reads on a light page and on a dark one. What `mark` names has a thick
frame. Who cannot see it is read `description`.
"""

from html import escape
from typing import NamedTuple

from mha_course.style import COLOURS, coloured, ink

__all__ = [
    "Drawing",
    "attention",
    "bert",
    "bert_layer",
    "encoder_decoder",
    "multi_head",
    "token_lines",
]

CELL, LONGEST = 12, 84  # the side of one number of a matrix, and what a side has at most
GAP = 24  # between two shapes of a row
WORD = 6.6  # the width of a letter


class Drawing:
    """A picture of `width` x `height` points, shown by a notebook as SVG inside its page.

    Properties: `description` says in words what it shows; `sizes` {symbol: number} are those drawn.
    """

    def __init__(self, width, height, description, sizes):
        self.width, self.height = round(width), round(height)
        self.description, self.sizes = description, sizes
        self.parts = []

    def add(self, tag, text="", **attributes):
        """Append an SVG element; `text` is markup, attributes are escaped."""
        given = "".join(
            f' {name.replace("_", "-")}="{escape(_short(value))}"'
            for name, value in attributes.items()
        )
        self.parts.append(f"<{tag}{given}>{text}</{tag}>")

    def __repr__(self):
        return self.description

    def _repr_html_(self):
        sizes = " ".join(f"{symbol}={size}" for symbol, size in self.sizes.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" style="max-width: 100%; height: auto" role="img" '
            f'aria-label="{escape(self.description)}" data-sizes="{escape(sizes)}" '
            f'font-family="sans-serif" font-size="12" fill="currentColor">\n'
            + "\n".join(self.parts)
            + "\n</svg>"
        )


class Box(NamedTuple):
    """Where a shape lies."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self):
        return self.left + self.width

    @property
    def bottom(self):
        return self.top + self.height

    @property
    def x(self):
        return self.left + self.width / 2

    @property
    def y(self):
        return self.top + self.height / 2


def attention(
    L, S, d_k, d_v, d_model=None, steps=("scores", "softmax", "output"), mark=(), names=("X", "X")
):
    """One attention: queries meet keys, the weights average the values.

    With d_model also where Q, K and V come from: `names` are those of the words that ask and of
    those that are asked, one X for both in self-attention. Between "scores" and "softmax", `steps`
    may hold "scale" and "mask". `mark` names steps, "projections" or "weights".
    Raises: ValueError quoting what is not a step, a mark or a size.
    Lesson: notebooks/01_attention_math.ipynb, 02_scaled_dot_product.ipynb.
    """
    sizes = _sizes(L=L, S=S, d_k=d_k, d_v=d_v, **({"d_model": d_model} if d_model else {}))
    _known("steps", steps, ("scores", "scale", "mask", "softmax", "output"))
    _known("mark", mark, (*steps, "projections", "weights"))
    one_input = names[0] == names[1]
    tall = max(L, S) if one_input else L + S
    drawing = Drawing(0, 0, _describe_attention(steps, mark, d_model, names), sizes)

    heights = [_long(rows) for rows in (L, S, S)]
    tops = [26, 26 + heights[0] + 50, 26 + heights[0] + heights[1] + 100]
    left = 10
    middles = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
    if d_model:
        width = _long(d_model)
        if one_input:
            top = max(middles[1] - _long(tall) / 2, 26)
            sources = [_matrix(drawing, left, top, L, d_model, names[0])] * 3
        else:
            asks = _matrix(drawing, left, tops[0], L, d_model, names[0])
            top = (middles[1] + middles[2] - heights[1]) / 2
            asked = _matrix(drawing, left, top, S, d_model, names[1])
            sources = [asks, asked, asked]
        left += width + 2 * GAP
        projections = [
            _step(drawing, left, y, [name, _shape(d_model, d)], "projections" in mark)
            for name, d, y in zip(("W_q", "W_k", "W_v"), (d_k, d_k, d_v), middles, strict=True)
        ]
        for source, projection in zip(sources, projections, strict=True):
            _arrow(drawing, (source.right, source.y), (projection.left, projection.y))
        left = max(box.right for box in projections) + GAP
    Q = _matrix(drawing, left, tops[0], L, d_k, "Q", COLOURS["queries"])
    K = _matrix(drawing, left, tops[1], S, d_k, "K", COLOURS["keys"])
    V = _matrix(drawing, left, tops[2], S, d_v, "V", COLOURS["values"])
    if d_model:
        for projection, matrix in zip(projections, (Q, K, V), strict=True):
            _arrow(drawing, (projection.right, projection.y), (matrix.left, matrix.y))

    y = (Q.y + K.y) / 2
    left = max(Q.right, K.right) + GAP + 8
    product = _step(drawing, left, y, ["Q Kᵀ"], "scores" in mark)
    _arrow(drawing, (Q.right, Q.y), (product.x, Q.y), (product.x, product.top))
    _arrow(drawing, (K.right, K.y), (product.x, K.y), (product.x, product.bottom))
    scores = _matrix(drawing, product.right + GAP, y - _long(L) / 2, L, S, "scores")
    _arrow(drawing, (product.right, y), (scores.left, y))
    last = scores
    words = {"scale": "÷ √d_k", "mask": "mask", "softmax": "softmax"}
    for name in steps:
        if name in words:
            step = _step(drawing, last.right + GAP, y, [words[name]], name in mark)
            _arrow(drawing, (last.right, y), (step.left, y))
            last = step
    marked = "weights" in mark
    weights = _matrix(drawing, last.right + GAP, y - _long(L) / 2, L, S, "weights", marked=marked)
    _arrow(drawing, (last.right, y), (weights.left, y))
    average = _step(drawing, weights.right + GAP, y, ["weights · V"], "output" in mark)
    _arrow(drawing, (weights.right, y), (average.left, y))
    _arrow(drawing, (V.right, V.y), (average.x, V.y), (average.x, average.bottom))
    output = _matrix(
        drawing, average.right + GAP, y - _long(L) / 2, L, d_v, "output", COLOURS["output"]
    )
    _arrow(drawing, (average.right, y), (output.left, y))
    drawing.width, drawing.height = round(output.right + 24), round(max(V.bottom, K.bottom) + 24)
    return drawing


def multi_head(B, L, d_model, H, S=None, mark=()):
    """The multi-head block: project, split into heads, attend in each, join, project.

    Without S it is self-attention, from one X. `mark` names "projections", "split", "heads",
    "join", "W_o".
    Raises: ValueError quoting what is not a mark or a size, and an H that does not divide d_model.
    Lesson: notebooks/03_why_many_heads.ipynb, 04_head_splitting.ipynb.
    """
    sizes = _sizes(B=B, L=L, d_model=d_model, H=H, **({"S": S} if S else {}))
    if d_model % H:
        raise ValueError(f"H={H} does not divide d_model={d_model}")
    _known("mark", mark, ("projections", "split", "heads", "join", "W_o"))
    d, S = d_model // H, S or L
    words = f"{H} heads of width {d}" if H > 1 else f"1 head of width {d}"
    description = (
        f"Multi-head attention. {'Queries, keys and values are' if 'S' in sizes else 'X is'} "
        f"multiplied by W_q, W_k and W_v, each split into {words}. Each head attends by itself. "
        f"The results are joined side by side and multiplied by W_o.{_marked(mark)}"
    )
    drawing = Drawing(0, 0, description, sizes)
    row = max(_long(L), _long(S)) + 52
    middles = [20 + row * (place + 0.5) for place in range(3)]
    roles = [COLOURS[role] for role in ("queries", "keys", "values")]
    left = 10
    if "S" in sizes:
        inputs = [
            _matrix(drawing, left, y - _long(rows) / 2, rows, d_model, name, batch=B)
            for name, rows, y in zip(("queries", "keys", "values"), (L, S, S), middles, strict=True)
        ]
    else:
        inputs = [_matrix(drawing, left, middles[1] - _long(L) / 2, L, d_model, "X", batch=B)] * 3
    left += _wide(d_model, (B, max(L, S), d_model)) + 2 * GAP
    strips = []
    for name, letter, rows, y, colour, source in zip(
        ("W_q", "W_k", "W_v"), "QKV", (L, S, S), middles, roles, inputs, strict=True
    ):
        W = _step(drawing, left, y, [name, _shape(d_model, d_model)], "projections" in mark)
        _arrow(drawing, (source.right, source.y), (W.left, W.y))
        place = W.right + GAP + 6
        matrix = _matrix(
            drawing, place, y - _long(rows) / 2, rows, d_model, letter, colour, batch=B, cuts=H
        )
        _arrow(drawing, (W.right, y), (matrix.left, y))
        strips.append(matrix)
    left = max(strip.right for strip in strips) + GAP + 10
    lines = ["split", f"{H} × {d}"]
    height = middles[2] - middles[0] + 44
    split = _step(drawing, left, middles[1], lines, "split" in mark, height=height)
    for strip in strips:
        _arrow(drawing, (strip.right, strip.y), (split.left, strip.y))

    shown = list(range(H)) if H <= 4 else [0, 1, None, H - 1]
    room = (height + 16) / len(shown)
    left = split.right + GAP
    heads = []
    for place, head in enumerate(shown):
        y = split.top - 8 + room * (place + 0.5)
        if head is None:
            _label(drawing, left + 46, y + 4, "…")
            continue
        lines = [f"head {head}", _shape(B, L, d)]
        fill = coloured(head)
        heads.append(_step(drawing, left, y, lines, "heads" in mark, width=92, colour=fill))
        _arrow(drawing, (split.right, y), (left, y))
    left = heads[0].right + GAP
    join = _step(drawing, left, middles[1], ["join"], "join" in mark, height=height)
    for box in heads:
        _arrow(drawing, (box.right, box.y), (join.left, box.y))
    place = join.right + GAP + 10
    fills = [coloured(head) for head in range(H)]
    joined = _matrix(
        drawing, place, middles[1] - _long(L) / 2, L, d_model, "heads", fills, batch=B, cuts=H
    )
    _arrow(drawing, (join.right, middles[1]), (joined.left, middles[1]))
    lines = ["W_o", _shape(d_model, d_model)]
    W_o = _step(drawing, joined.right + GAP + 8, middles[1], lines, "W_o" in mark)
    _arrow(drawing, (joined.right, joined.y), (W_o.left, W_o.y))
    place = W_o.right + GAP + 6
    output = _matrix(
        drawing,
        place,
        middles[1] - _long(L) / 2,
        L,
        d_model,
        "output",
        COLOURS["output"],
        batch=B,
    )
    _arrow(drawing, (W_o.right, W_o.y), (output.left, output.y))
    drawing.width, drawing.height = round(output.right + 30), round(20 + 3 * row + 6)
    return drawing


def bert_layer(L, d_model, H, d_ff, mark=()):
    """A layer of BERT: attention and a feed-forward network, each with a sum around it and a norm.

    `mark` names "attention", "sum", "norm", "feed-forward".
    Raises: ValueError quoting what is not a mark or a size.
    Lesson: notebooks/06_bert_attention.ipynb.
    """
    sizes = _sizes(L=L, d_model=d_model, H=H, d_ff=d_ff)
    _known("mark", mark, ("attention", "sum", "norm", "feed-forward"))
    drawing = Drawing(
        0,
        140,
        "A BERT layer. X goes through multi-head attention; X is added to the result, and the sum "
        "is normalised. That goes through a feed-forward network, is added to its result, and the "
        f"sum is normalised.{_marked(mark)}",
        sizes,
    )
    y, shape = 92, _shape(L, d_model)
    last = _filled(drawing, 10, y, ["X", shape])
    parts = {
        "attention": ["multi-head attention", f"{H} heads", "W_q  W_k  W_v  W_o"],
        "feed-forward": ["feed-forward", f"{d_model} → {d_ff} → {d_model}", "W_1  GELU  W_2"],
    }
    for name, lines in parts.items():
        part = _step(drawing, last.right + 44, y, lines, name in mark)
        _arrow(drawing, (last.right, y), (part.left, y))
        plus = _plus(drawing, part.right + GAP, y, "sum" in mark)
        _arrow(drawing, (part.right, y), (plus.left, y))
        start = last.right + 20  # the way round
        _arrow(drawing, (start, y), (start, 30), (plus.x, 30), (plus.x, plus.top))
        norm = _step(drawing, plus.right + GAP, y, ["LayerNorm"], "norm" in mark)
        _arrow(drawing, (plus.right, y), (norm.left, y))
        last = norm
    output = _filled(drawing, last.right + GAP, y, ["output", shape], COLOURS["output"])
    _arrow(drawing, (last.right, y), (output.left, y))
    drawing.width = round(output.right + 10)
    return drawing


def bert(L, d_model, layers, H=None, mark=()):
    """BERT from its tokens to its output: embeddings added up, a stack of layers, a row a token.

    With H also the weights that each layer makes. `mark` names "embeddings", "layers", "weights",
    "output".
    Raises: ValueError quoting what is not a mark or a size.
    Lesson: notebooks/06_bert_attention.ipynb, 07_seeing_attention.ipynb, 12_your_bert.ipynb.
    """
    sizes = _sizes(L=L, d_model=d_model, layers=layers, **({"H": H} if H else {}))
    _known("mark", mark, ("embeddings", "layers", "output", *(["weights"] if H else [])))
    made = f" Each makes weights, {H} tables of {L} by {L}." if H else ""
    drawing = Drawing(
        0,
        214 if H else 160,
        f"BERT. {L} tokens; for each, a word, a position and a segment embedding are added and "
        f"normalised. {layers} layers follow, one after the other.{made} What comes out is a row "
        f"of {d_model} numbers for each token.{_marked(mark)}",
        sizes,
    )
    y = 134 if H else 80
    tokens = _filled(drawing, 10, y, [f"{L} tokens"])
    left = tokens.right + GAP + 6
    marked = "embeddings" in mark
    for place, name in enumerate(("word", "position", "segment")):
        table = _step(drawing, left, y + 46 * (place - 1), [name], marked, width=76)
        _arrow(drawing, (tokens.right, tokens.y), (table.left, table.y))
    plus = _plus(drawing, table.right + GAP + 6, y, marked)
    for place in (-1, 0, 1):
        target = (plus.x, plus.y + place * 11) if place else (plus.left, y)
        corner = [(plus.x, y + 46 * place)] if place else []
        _arrow(drawing, (table.right, y + 46 * place), *corner, target)
    last = _step(drawing, plus.right + GAP, y, ["LayerNorm"], marked)
    _arrow(drawing, (plus.right, y), (last.left, y))
    shown = list(range(layers)) if layers <= 3 else [0, 1, None, layers - 1]
    for layer in shown:
        if layer is None:
            _label(drawing, last.right + GAP + 8, y + 4, "…")
            last = Box(last.right + GAP, y, 16, 0)
            continue
        lines = [f"layer {layer}"]
        box = _step(drawing, last.right + GAP, y, lines, "layers" in mark, width=86, height=60)
        _arrow(drawing, (last.right, y), (box.left, y))
        if H:
            lines, seen = ["weights", _shape(H, L, L)], "weights" in mark
            table = _step(drawing, box.x - 41, 40, lines, seen, width=82)
            _arrow(drawing, (box.x, box.top), (box.x, table.bottom))
        last = box
    lines = ["output", _shape(L, d_model)]
    output = _filled(drawing, last.right + GAP + 4, y, lines, COLOURS["output"], "output" in mark)
    _arrow(drawing, (last.right, y), (output.left, y))
    drawing.width = round(output.right + 10)
    return drawing


def encoder_decoder(L, S, d_model, layers, mark=()):
    """A Transformer that reads S tokens and writes L; queries of the decoder, keys of the encoder.

    `mark` names "encoder", "self-attention", "cross-attention", "feed-forward", "output".
    Raises: ValueError quoting what is not a mark or a size.
    Lesson: notebooks/10_cross_attention.ipynb.
    """
    sizes = _sizes(L=L, S=S, d_model=d_model, layers=layers)
    _known("mark", mark, ("encoder", "self-attention", "cross-attention", "feed-forward", "output"))
    drawing = Drawing(
        0,
        250,
        f"An encoder-decoder. The encoder reads {S} tokens and gives the memory, a row for each. "
        f"The decoder reads the {L} tokens written so far: masked self-attention, then "
        "cross-attention, whose queries come from the decoder and whose keys and values come from "
        f"the memory, then a feed-forward network. Both have {layers} such layers. A last matrix "
        f"scores the next token.{_marked(mark)}",
        sizes,
    )
    top, low = 56, 190
    last = _filled(drawing, 10, top, ["source", f"{S} tokens"])
    begin = last.right + GAP
    for lines in (["embeddings", "+ positions"], ["self-attention"], ["feed-forward"]):
        box = _step(drawing, last.right + GAP, top, lines, "encoder" in mark)
        _arrow(drawing, (last.right, top), (box.left, top))
        begin = box.left if lines == ["self-attention"] else begin
        last = box
    _frame(drawing, begin - 8, top - 34, last.right + 8, top + 34, f"{layers} ×")
    memory = _filled(
        drawing, last.right + GAP + 14, top, ["memory", _shape(S, d_model)], COLOURS["keys"]
    )
    _arrow(drawing, (last.right, top), (memory.left, top))

    last = _filled(drawing, 10, low, ["so far", f"{L} tokens"], COLOURS["queries"])
    steps = {
        "embeddings": ["embeddings", "+ positions"],
        "self-attention": ["masked", "self-attention"],
        "cross-attention": ["cross-attention"],
        "feed-forward": ["feed-forward"],
    }
    boxes = {}
    for name, lines in steps.items():
        left = last.right + GAP
        if name == "cross-attention":
            left = max(left + 34, memory.x - 55)  # room for "queries" on the arrow
        boxes[name] = _step(drawing, left, low, lines, name in mark)
        _arrow(drawing, (last.right, low), (boxes[name].left, low))
        last = boxes[name]
    begin, cross = boxes["self-attention"].left, boxes["cross-attention"]
    _frame(drawing, begin - 8, low - 34, last.right + 8, low + 34, f"{layers} ×")
    _arrow(drawing, (memory.x, memory.bottom), (memory.x, cross.top))
    _label(drawing, memory.x + 8, (memory.bottom + low - 34) / 2 + 6, "keys, values", "start")
    asked = (boxes["self-attention"].right + cross.left) / 2
    _label(drawing, asked, low - 8, "queries")
    scores = _step(drawing, last.right + GAP + 14, low, ["W_out", "softmax"], "output" in mark)
    _arrow(drawing, (last.right, low), (scores.left, low))
    output = _filled(
        drawing, scores.right + GAP, low, ["next token"], COLOURS["output"], "output" in mark
    )
    _arrow(drawing, (scores.right, low), (output.left, low))
    drawing.width = round(output.right + 10)
    return drawing


def token_lines(weights, queries, keys=None, title=""):
    """Lines from each token that asks, on the left, to those it attends to, on the right.

    A line is as thick and as dark as its weight; weights below 0.02 are left out.
    Shapes: weights (L, S), tensor or lists; L queries; S keys, by default the queries.
    Raises: ValueError quoting the sizes if they do not fit.
    Lesson: notebooks/07_seeing_attention.ipynb.
    """
    weights = weights.tolist() if hasattr(weights, "tolist") else [list(row) for row in weights]
    keys = queries if keys is None else keys
    L, S = len(queries), len(keys)
    if len(weights) != L or any(len(row) != S for row in weights):
        shape = len(weights), len(weights[0]) if weights else 0
        raise ValueError(f"weights {shape} do not fit {L} queries and {S} keys")
    said = [f"{q} to {keys[row.index(max(row))]}" for q, row in zip(queries, weights, strict=True)]
    room = WORD * 1.1 * max(len(token) for token in [*queries, *keys]) + 10
    head, step = (40 if title else 20), 20
    height = head + step * max(L, S) + 6
    description = f"{title}. " if title else ""
    description += "Lines from each token to those it attends to, most of all " + ", ".join(said)
    width = max(2 * room + 180, 1.2 * WORD * len(title))
    drawing = Drawing(width, height, description + ".", {})
    if title:
        _label(drawing, 0, 16, title, "start", bold=True)
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            if weight >= 0.02:
                drawing.add(
                    "line",
                    x1=room + 4,
                    y1=head + step * (i + 0.5),
                    x2=room + 176,
                    y2=head + step * (j + 0.5),
                    stroke=COLOURS["queries"],
                    stroke_width=0.5 + 5 * weight,
                    stroke_opacity=min(1, 0.2 + 0.8 * weight),
                )
    for tokens, x, anchor in ((queries, room, "end"), (keys, room + 180, "start")):
        for place, token in enumerate(tokens):
            _label(drawing, x, head + step * (place + 0.5) + 4, token, anchor, plain=True)
    return drawing


# What the drawings are made of: matrices, boxes, arrows, words.


def _matrix(drawing, left, top, rows, columns, name, colour=None, marked=False, batch=None, cuts=1):
    """A matrix, a square for each number, with its name above and its shape below.

    `colour` fills it, or a list of them its `cuts` parts; without, it is only outlined.
    """
    width, height = _long(columns), _long(rows)
    colours = colour if isinstance(colour, list) else [colour] * cuts
    for part, fill in enumerate(colours):
        where = {"x": left + part * width / cuts, "y": top, "width": width / cuts, "height": height}
        drawing.add("rect", **where, fill=fill or "currentColor", fill_opacity=1 if fill else 0.12)
    style = {"stroke": "currentColor", "stroke_width": 0.5, "stroke_opacity": 0.6}
    if columns <= LONGEST / 4:
        for column in range(1, columns):
            x = left + column * width / columns
            drawing.add("line", x1=x, y1=top, x2=x, y2=top + height, **style)
    if rows <= LONGEST / 4:
        for row in range(1, rows):
            y = top + row * height / rows
            drawing.add("line", x1=left, y1=y, x2=left + width, y2=y, **style)
    for cut in range(1, cuts):
        x = left + cut * width / cuts
        drawing.add("line", x1=x, y1=top - 4, x2=x, y2=top + height + 4, stroke="currentColor")
    _outline(drawing, Box(left, top, width, height), marked, radius=0)
    _label(drawing, left + width / 2, top - 8, name, bold=True)
    shape = _shape(rows, columns) if batch is None else _shape(batch, rows, columns)
    _label(drawing, left + width / 2, top + height + 16, shape, size=11)
    return Box(left, top, width, height)


def _step(drawing, left, y, lines, marked=False, width=None, height=None, colour=None):
    """A box around what is done, its left edge and its middle height given."""
    width = width or max(map(len, lines)) * WORD + 16
    height = height or 15 * len(lines) + 12
    box = Box(left, y - height / 2, width, height)
    if colour:
        drawing.add("rect", x=left, y=box.top, width=width, height=height, fill=colour, rx=5)
    _outline(drawing, box, marked)
    _lines(drawing, box, lines, ink(colour) if colour else "currentColor")
    return box


def _filled(drawing, left, y, lines, colour=None, marked=False):
    """A box filled with the colour of what it holds."""
    width, height = max(map(len, lines)) * WORD + 16, 15 * len(lines) + 14
    box = Box(left, y - height / 2, width, height)
    style = {"fill": colour or "currentColor", "fill_opacity": 1 if colour else 0.12}
    drawing.add("rect", x=left, y=box.top, width=width, height=height, **style)
    _outline(drawing, box, marked, radius=0)
    _lines(drawing, box, lines, ink(colour) if colour else "currentColor", bold=True)
    return box


def _plus(drawing, left, y, marked=False):
    """The circle in which two things are added."""
    box = Box(left, y - 11, 22, 22)
    _outline(drawing, box, marked, radius=11)
    _label(drawing, box.x, y + 5, "+", size=16)
    return box


def _frame(drawing, left, top, right, bottom, text):
    """A dashed frame around what is repeated, and how often."""
    where = {"x": left, "y": top, "width": right - left, "height": bottom - top, "rx": 6}
    drawing.add("rect", **where, fill="none", stroke="currentColor", stroke_dasharray="4 3")
    _label(drawing, left + 4, top - 5, text, "start", size=11)


def _outline(drawing, box, marked, radius=5):
    colour, thick = (COLOURS["mark"], 4) if marked else ("currentColor", 1)
    where = {"x": box.left, "y": box.top, "width": box.width, "height": box.height, "rx": radius}
    drawing.add("rect", **where, fill="none", stroke=colour, stroke_width=thick)


def _lines(drawing, box, lines, colour, bold=False):
    """Lines of text in the middle of a box, the first one first in weight."""
    top = box.y - 7.5 * len(lines) + 11.5
    for place, text in enumerate(lines):
        style = {"size": 12 if place == 0 else 11, "bold": bold and place == 0}
        _label(drawing, box.x, top + 15 * place, text, colour=colour, **style)


def _label(
    drawing, x, y, text, anchor="middle", size=12, bold=False, colour="currentColor", plain=False
):
    """A text; what follows an underscore is a subscript, unless it is `plain`."""
    style = {"font_weight": "bold"} if bold else {}
    markup = escape(text) if plain else _with_subscripts(text)
    drawing.add("text", markup, x=x, y=y, text_anchor=anchor, font_size=size, fill=colour, **style)


def _with_subscripts(text):
    words = []
    for word in text.split(" "):
        stem, _, below = word.partition("_")
        words.append(
            f'{escape(stem)}<tspan dy="3" font-size="9">{escape(below)}</tspan>'
            '<tspan dy="-3">\u200b</tspan>'
            if below
            else escape(word)
        )
    return " ".join(words)


def _arrow(drawing, *points):
    """A line through the points that ends in an arrowhead, across or up and down."""
    (x, y), (before_x, before_y) = points[-1], points[-2]
    length = ((x - before_x) ** 2 + (y - before_y) ** 2) ** 0.5 or 1
    along = (x - before_x) / length, (y - before_y) / length
    neck = x - 7 * along[0], y - 7 * along[1]
    path = " ".join(f"{_short(a)},{_short(b)}" for a, b in [*points[:-1], neck])
    drawing.add("polyline", points=path, fill="none", stroke="currentColor")
    sides = [(neck[0] - s * 3.5 * along[1], neck[1] + s * 3.5 * along[0]) for s in (1, -1)]
    corners = [points[-1], *sides]
    drawing.add("polygon", points=" ".join(f"{_short(a)},{_short(b)}" for a, b in corners))


def _long(numbers):
    """How long so many numbers are drawn."""
    return min(CELL * numbers, LONGEST)


def _wide(columns, shape):
    """The room that a matrix needs with its shape below."""
    return max(_long(columns), len(_shape(*shape)) * 6)


def _shape(*sizes):
    return f"({', '.join(map(str, sizes))})"


def _short(value):
    """A number without the digits that nobody sees; anything else as it is."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def _sizes(**sizes):
    wrong = {name: size for name, size in sizes.items() if not isinstance(size, int) or size < 1}
    if wrong:
        raise ValueError(f"sizes are whole numbers from 1 on, got {wrong}")
    return sizes


def _known(name, given, known):
    wrong = [word for word in given if word not in known]
    if isinstance(given, str) or wrong:
        raise ValueError(f"{name} must be some of {known}, got {given!r}")


def _marked(mark):
    return f" Marked: {', '.join(mark)}." if mark else ""


def _describe_attention(steps, mark, d_model, names):
    source = " and ".join(dict.fromkeys(names))
    comes = f"{source} times W_q, W_k and W_v gives Q, K and V. " if d_model else ""
    words = {"scale": "divided by √d_k", "mask": "masked", "softmax": "put through a softmax"}
    done = ", ".join(words[step] for step in steps if step in words)
    return (
        f"Attention. {comes}Q times K transposed gives the scores, a row for each query. They are "
        f"{done}, which gives the weights. Weights times V give the output.{_marked(mark)}"
    )
