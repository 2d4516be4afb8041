"""The drawings: what is written in them, that it fits, and words for who cannot see them."""

import re
from xml.etree import ElementTree

import pytest
import torch

from mha_course import drawings
from mha_course.style import COLOURS, HEADS, coloured, ink

SVG = "{http://www.w3.org/2000/svg}"
ALL = {
    "attention": lambda mark=(): drawings.attention(
        2, 5, 3, 7, d_model=11, steps=("scores", "scale", "mask", "softmax", "output"), mark=mark
    ),
    "attention without projections": lambda mark=(): drawings.attention(2, 5, 3, 7, mark=mark),
    "cross-attention": lambda mark=(): drawings.attention(
        2, 5, 3, 7, d_model=11, names=("X", "Y"), mark=mark
    ),
    "multi_head": lambda mark=(): drawings.multi_head(2, 3, 20, 4, mark=mark),
    "multi_head of two inputs": lambda mark=(): drawings.multi_head(2, 3, 35, 7, S=11, mark=mark),
    "bert_layer": lambda mark=(): drawings.bert_layer(7, 384, 12, 1536, mark=mark),
    "bert": lambda mark=(): drawings.bert(9, 384, 6, mark=mark),
    "bert with weights": lambda mark=(): drawings.bert(9, 384, 6, H=12, mark=mark),
    "encoder_decoder": lambda mark=(): drawings.encoder_decoder(7, 11, 64, 2, mark=mark),
    "token_lines with a long title": lambda: drawings.token_lines(
        [[1]], ["a"], title="A title that is a good deal wider than the lines below it"
    ),
    "token_lines": lambda: drawings.token_lines([[0.9, 0.1], [0.3, 0.7]], ["the", "<cat>"]),
}


def parsed(drawing):
    return ElementTree.fromstring(drawing._repr_html_())


def texts(drawing):
    return ["".join(t.itertext()).replace("\u200b", "") for t in parsed(drawing).iter(SVG + "text")]


@pytest.mark.parametrize("name", ALL)
def test_a_drawing_is_an_image_with_words_for_it_and_colours_of_the_page(name):
    drawing = ALL[name]()
    root = parsed(drawing)
    assert root.get("role") == "img" and root.get("aria-label") == repr(drawing)
    assert len(repr(drawing)) > 30 and "0x" not in repr(drawing)
    assert root.get("fill") == "currentColor"
    known = {"none", "currentColor", "black", "white", *COLOURS.values(), *HEADS}
    used = {e.get(role) for e in root.iter() for role in ("fill", "stroke")} - {None}
    assert used <= known
    assert ALL[name]()._repr_html_() == drawing._repr_html_()  # the same on every machine


@pytest.mark.parametrize("name", ALL)
def test_nothing_leaves_the_drawing(name):
    drawing = ALL[name]()
    for element in parsed(drawing).iter():
        if element.tag == SVG + "rect":
            left, top = float(element.get("x")), float(element.get("y"))
            right = left + float(element.get("width"))
            bottom = top + float(element.get("height"))
        elif element.tag == SVG + "text":
            half = 3.4 * len("".join(element.itertext()))
            x, y = float(element.get("x")), float(element.get("y"))
            shift = {"start": half, "end": -half, "middle": 0}[element.get("text-anchor")]
            left, right, top, bottom = x + shift - half, x + shift + half, y - 11, y + 3
        else:
            continue
        assert left >= 0 and top >= 0, element.attrib
        assert right <= drawing.width and bottom <= drawing.height, element.attrib


def test_the_shapes_written_are_those_of_the_tensors():
    drawing = ALL["attention"]()
    X, W_q, W_v = torch.ones(2, 11), torch.ones(11, 3), torch.ones(11, 7)
    K = torch.ones(5, 3)
    made = [X, W_q, W_q, W_v, X @ W_q, K, torch.ones(5, 7), X @ W_q @ K.T, X @ W_q @ K.T]
    made.append(made[-1] @ torch.ones(5, 7))
    written = sorted(text for text in texts(drawing) if text.startswith("("))
    assert written == sorted(str(tuple(tensor.shape)) for tensor in made)
    assert drawing.sizes == {"L": 2, "S": 5, "d_k": 3, "d_v": 7, "d_model": 11}


def test_the_multi_head_block_writes_the_width_of_a_head():
    written = texts(ALL["multi_head of two inputs"]())
    assert "split" in written and "7 × 5" in written
    assert written.count("(2, 3, 5)") == 3  # heads 0, 1 and the last, of seven
    assert [text for text in written if text.startswith("head ")] == ["head 0", "head 1", "head 6"]
    assert written.count("(2, 11, 35)") == 4  # keys, values, K, V
    assert written.count("(35, 35)") == 4


def test_bert_writes_its_layers_and_tables_of_weights():
    written = texts(ALL["bert with weights"]())
    assert "layer 5" in written and "layer 6" not in written and "(12, 9, 9)" in written
    assert "384 → 1536 → 384" in texts(ALL["bert_layer"]())


@pytest.mark.parametrize(
    "name, marks",
    [
        ("attention", ("scale", "projections", "weights")),
        ("multi_head", ("split", "join", "heads", "W_o")),
        ("bert_layer", ("attention", "sum", "norm")),
        ("bert with weights", ("weights", "embeddings", "output")),
        ("encoder_decoder", ("cross-attention", "output")),
    ],
)
def test_a_mark_is_a_thick_frame_and_is_said(name, marks):
    plain = ALL[name]()._repr_html_().count(COLOURS["mark"])
    assert plain == 0
    for mark in marks:
        drawing = ALL[name](mark=(mark,))
        assert drawing._repr_html_().count(COLOURS["mark"]) >= 1
        assert repr(drawing).endswith(f"Marked: {mark}.")


def test_lines_are_as_thick_as_their_weights():
    drawing = drawings.token_lines(
        torch.tensor([[0.9, 0.1, 0], [0.25, 0.05, 0.7]]), ["a", "b"], "xyz"
    )
    widths = [float(line.get("stroke-width")) for line in parsed(drawing).iter(SVG + "line")]
    assert widths == pytest.approx([5, 1, 1.75, 0.75, 4], abs=0.06)
    assert "a to x, b to z" in repr(drawing)
    assert "<cat>" in texts(ALL["token_lines"]())


@pytest.mark.parametrize(
    "draw, words",
    [
        (lambda: drawings.attention(0, 5, 3, 4), "'L': 0"),
        (lambda: drawings.attention(2, 5, 3, 4, mark=("scale",)), "scale"),
        (lambda: drawings.attention(2, 5, 3, 4, mark="softmax"), "'softmax'"),
        (lambda: drawings.attention(2, 5, 3, 4, steps=("dropout",)), "dropout"),
        (lambda: drawings.multi_head(2, 3, 8, 3), "H=3 does not divide d_model=8"),
        (lambda: drawings.bert(9, 384, 6, mark=("weights",)), "weights"),
        (lambda: drawings.bert_layer(7, 384, 12, 1.5), "1.5"),
        (lambda: drawings.token_lines([[1, 0]], ["a", "b"]), r"\(1, 2\)"),
    ],
)
def test_bad_input_is_quoted(draw, words):
    with pytest.raises(ValueError, match=words):
        draw()


def test_ink_is_readable_on_every_colour():
    assert [coloured(head) for head in (0, len(HEADS))] == [HEADS[0]] * 2
    for colour in (*COLOURS.values(), *HEADS):
        assert re.fullmatch("#[0-9a-f]{6}", colour)
        assert ink(colour) in ("black", "white")
    assert ink("#ffffff") == ink((1, 1, 1, 1)) == "black" and ink("#000000") == "white"
