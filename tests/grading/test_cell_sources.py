"""What nbval obeys is made harmless, and what a cell defines is known without running it."""

import time

import pytest
from nbval.plugin import comment_markers, find_comment_markers

from mha_classroom.grading.fit.cell_sources import defined, defused, is_setup, setup_lines


@pytest.mark.parametrize("marker", comment_markers)
@pytest.mark.parametrize("line", ["# {}", "  ##{}  ", "x = 1\x0c#{}", "x = 1\u2028 # {} \r\ny = 2"])
def test_comments_that_nbval_obeys_are_defused(marker, line):
    source = "a = 1\n" + line.format(marker) + "\nb = 2"
    assert list(find_comment_markers(source))
    assert not list(find_comment_markers(defused(source)))
    assert len(defused(source)) == len(source) and defused(source).count("\n") == source.count("\n")


def test_other_text_is_left_alone():
    source = "x_y = 1  # NBVAL_SKIP is a comment of nbval\n# a_b\n"
    assert defused(source) == source


@pytest.mark.parametrize(
    ("source", "functions", "others"),
    [
        ("def f(): pass\nclass G: pass\nh = 1", "fG", "h"),
        ("if 1:\n    def f(): pass\nfor k in ():\n    pass", "", "fk"),
        ("%matplotlib inline\n!pip install x\nx = !ls\ndef f(): pass\ng?\n?h", "f", "x"),
        ("%%time\ndef f(): pass", "f", ""),
        ("%%bash\ndef f(): pass", "", ""),
        ("async def f(): pass\nx = = 2", "f", ""),
        ("def f(:\n    def g(): pass", "f", ""),
        ("'''\ndef f(): pass\n'''", "", ""),
        ("x = '\\d'", "", "x"),
        ("-" * 30_000 + "1", "", ""),
        ("a" + ".a" * 30_000, "", ""),
        ("#" * 300_000 + "\ndef f(): pass", "f", ""),
    ],
    ids=range(12),
)
def test_what_a_cell_defines(source, functions, others):
    found, names = defined(source)
    assert found == set(functions) and names == set(functions) | set(others)


@pytest.mark.parametrize(
    "source",
    [" " * 150_000 + "!", "a, " * 50_000, "a b\n" * 40_000 + "=", "x" * 150_000 + " ="],
    ids=range(4),
)
def test_no_source_takes_for_ever(source):
    start = time.process_time()
    assert not defined(source)[0] and setup_lines(source) == "" and defused(source) == source
    assert time.process_time() - start < 2


def test_setup_and_trial_cells():
    assert is_setup("import x") and is_setup("A, B = 1, -2") and is_setup("def f(): pass\nf()")
    assert not is_setup("x = f()") and not is_setup("A = 1\nprint(A)") and not is_setup("import (")
    assert setup_lines("f()\n@g\ndef f(): pass\nA = 1; f()") == "\n@g\ndef f(): pass\nA = 1; f()"
    assert setup_lines("x = (") == ""
