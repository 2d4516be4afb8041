"""Notebooks run in place in canonical form, and edited as text."""

import sys

import nbformat
import pytest
from nbformat import v4

from mha_classroom.clone import CourseError
from mha_classroom.commands import edit
from mha_classroom.commands import run_notebooks as execute

NBGRADER = {"grade_id": "04-f", "solution": True, "points": 2, "schema_version": 3}
CODE = "import sys, os\nfor n in range(3):\n    print(n, flush=True)\nprint(sys.executable)"


def lesson():
    cells = [
        v4.new_markdown_cell("# 4. Title\n\nThe scale is $\\frac{1}{\\sqrt{d_k}}$.", id="title"),
        v4.new_code_cell(CODE, id="numbers"),
        v4.new_code_cell("os.getcwd().split(os.sep)[-1]", id="folder"),
        v4.new_code_cell("1 / 0", id="fails", metadata={"tags": ["raises-exception"]}),
        v4.new_code_cell("def f():\n    return 1", id="f", metadata={"nbgrader": NBGRADER}),
        v4.new_code_cell("", id="empty"),
    ]
    return v4.new_notebook(cells=cells)


@pytest.fixture
def root(tmp_path):
    """A clone with one lesson and its solution."""
    root = tmp_path / "mein Kürs"
    for folder in ("notebooks", "solutions"):
        (root / folder).mkdir(parents=True)
        nbformat.write(lesson(), root / folder / "04_head_splitting.ipynb")
    return root


@pytest.fixture
def runs(monkeypatch):
    """What would be run; starting kernels is not the point where this is used."""
    paths = []
    monkeypatch.setattr(execute, "run", lambda words, root: paths.extend(words) or 0)
    return paths


def path_of(root, folder="notebooks"):
    return root / folder / "04_head_splitting.ipynb"


def view_of(root, folder="notebooks"):
    return root / ".edit" / folder / "04_head_splitting.py"


def swap(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_run_executes_lesson_and_solution_and_again_gives_the_same_bytes(root, capsys):
    assert execute.run(["4"], root) == 0
    first = path_of(root).read_bytes()
    assert first == path_of(root, "solutions").read_bytes().replace(b"'solutions'", b"'notebooks'")
    assert b"\r" not in first and first.endswith(b"}\n")
    _, numbers, folder, fails, _, empty = execute.read(path_of(root)).cells
    # The kernel is this very Python, in the folder of the notebook.
    assert [output.text for output in numbers.outputs] == [f"0\n1\n2\n{sys.executable}\n"]
    assert folder.outputs[0].data["text/plain"] == "'notebooks'"
    assert fails.outputs[0].ename == "ZeroDivisionError" and empty.execution_count is None
    assert b"timestamp" not in first and b'"version"' not in first
    capsys.readouterr()
    assert execute.run([str(path_of(root))]) == 0
    assert "unchanged" in capsys.readouterr().out
    assert path_of(root).read_bytes() == first


def test_failing_cell_is_shown_and_the_file_stays(root, capsys):
    swap(path_of(root), "os.getcwd()", "os.no_such()")
    before = path_of(root).read_bytes()
    assert execute.run([str(path_of(root))]) == 1
    shown = capsys.readouterr().err
    assert "Cell 3, code cell [2]" in shown and "os.no_such()" in shown
    assert "AttributeError" in shown and "\x1b" not in shown
    assert path_of(root).read_bytes() == before


@pytest.mark.parametrize(
    ("code", "reason"),
    [("import time; time.sleep(60)", "more than 1 s"), ("import os; os._exit(3)", "died")],
)
def test_cell_that_never_ends_or_ends_the_kernel(tmp_path, capsys, code, reason):
    path = tmp_path / "01_x.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(code)]), path)
    before = path.read_bytes()
    assert execute.run([str(path)], timeout=1) == 1
    shown = capsys.readouterr().err.lower()
    assert "cell 1, code cell [1]" in shown and reason in shown
    assert path.read_bytes() == before


def test_what_cannot_be_run_is_a_sentence(root):
    with pytest.raises(CourseError, match="There are: 04_head_splitting"):
        execute.run(["05"], root)
    path_of(root).write_text("not a notebook", "utf-8")
    with pytest.raises(CourseError, match="is not a notebook"):
        execute.run(["04"], root)


def test_canonical_form_does_not_depend_on_chunks_or_on_the_run():
    def stream(text, name="stdout"):
        return v4.new_output("stream", text=text, name=name)

    noisy = lesson()
    noisy.metadata = nbformat.from_dict({"widgets": {"a": 1}, "course": "kept"})
    cell = noisy.cells[1]
    cell.metadata.update(tags=["kept"], execution={"iopub.execute_input": "now"}, scrolled=True)
    widget = {"text/plain": "HBox()", execute.WIDGET: {"model_id": "random"}}
    cell.outputs = [
        stream("a"), stream("b"), stream("!", "stderr"), stream("c"),
        v4.new_output("display_data", widget), stream("d"),
    ]  # fmt: skip
    notebook = execute.canonical(noisy)
    shown = [(output.get("name"), output.get("text")) for output in cell.outputs]
    assert shown == [("stdout", "abc"), ("stderr", "!"), (None, None), ("stdout", "d")]
    assert cell.outputs[2].data == {"text/plain": "HBox()"}
    assert cell.metadata == {"tags": ["kept"]}
    assert set(notebook.metadata) == {"course", "kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.display_name == "Python 3 (ipykernel)"
    assert execute.as_text(notebook) == execute.as_text(nbformat.from_dict(notebook))


def test_traceback_does_not_say_where_the_clone_lies():
    lines = [
        "\x1b[32mFile \x1b[39m\x1b[32m/home/me/my course/mha_course/attention.py:33\x1b[39m, in f",
        "File ~/x/.venv/lib/python3.11/site-packages/torch/nn/functional.py:1, in g",
        r"File C:\Users\me\mha_course\mha_course\lab.py:3",
        "mask/scores: a ratio of 1/2 stays",
    ]
    error = v4.new_output("error", ename="E", evalue="", traceback=lines)
    notebook = v4.new_notebook(cells=[v4.new_code_cell("x", outputs=[error])])
    assert execute.canonical(notebook).cells[0].outputs[0].traceback == [
        "\x1b[32mFile \x1b[39m\x1b[32mmha_course/attention.py:33\x1b[39m, in f",
        "File site-packages/torch/nn/functional.py:1, in g",
        r"File mha_course\lab.py:3",
        "mask/scores: a ratio of 1/2 stays",
    ]


def test_missing_and_doubled_ids_become_ids_that_follow_from_the_text():
    def fresh():
        notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in "xxyz"])
        for cell in notebook.cells[:2]:
            del cell["id"]
        notebook.cells[2].id = notebook.cells[3].id = "same"
        notebook.nbformat_minor = 4
        return [cell.id for cell in execute.canonical(notebook).cells]

    ids = fresh()
    assert ids == fresh() and len(set(ids)) == 4 and ids[2] == "same"


def test_edit_and_save_unchanged_leave_the_notebook_as_it_is(root, runs):
    execute.write(path_of(root), execute.read(path_of(root)))
    before = path_of(root).read_bytes()
    edit.edit(root, "4")
    assert edit.save(root, "4") == 0
    assert path_of(root).read_bytes() == before
    assert runs == [str(path_of(root, folder)) for folder in execute.FOLDERS]


def test_view_is_readable():
    text = edit.as_view(lesson())
    assert text.startswith('# %% [markdown]\nr"""\n# 4. Title\n\nThe scale is $\\frac{1}{')
    assert '# %% tags=["raises-exception"]\n1 / 0\n' in text


def test_save_keeps_ids_outputs_and_metadata_of_what_was_not_edited(root, runs):
    notebook = execute.read(path_of(root))
    notebook.cells[1].outputs = [v4.new_output("stream", text="kept")]
    execute.write(path_of(root), notebook)
    edit.edit(root, "04")
    swap(view_of(root), "return 1", "return 2")
    swap(view_of(root), "# %%\nos.getcwd()", "# %%\nnew = 1\n\n# %%\nos.getcwd()")
    edit.save(root, "04")
    saved = execute.read(path_of(root))
    ids = [cell.id for cell in saved.cells]
    assert ids[:2] + ids[3:] == [cell.id for cell in notebook.cells]
    assert saved.cells[1].outputs[0].text == "kept"
    assert saved.cells[5].metadata.nbgrader == NBGRADER and "return 2" in saved.cells[5].source
    assert saved.cells[4].metadata.tags == ["raises-exception"]
    assert saved.nbformat_minor == 5


def test_new_notebook_is_made_from_a_view_alone(root, runs):
    view = root / ".edit" / "notebooks" / "05_parameter_counting.py"
    view.parent.mkdir(parents=True)
    view.write_text('# %% [markdown]\n"""\n# 5. Title\n"""\n\n# %% tags=["a"]\n1 + 1\n', "utf-8")
    made = root / "notebooks" / "05_parameter_counting.ipynb"
    texts = []
    for _ in range(2):
        edit.save(root, "05")
        texts.append(made.read_bytes())
        made.unlink()
    assert texts[0] == texts[1]
    notebook = nbformat.reads(texts[0].decode(), as_version=4)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec == execute.KERNEL
    assert [cell.source for cell in notebook.cells] == ["# 5. Title", "1 + 1"]
    assert notebook.cells[1].metadata == {"tags": ["a"]}


def test_edit_does_not_drop_an_edited_view(root, runs):
    edit.edit(root, "04")
    swap(view_of(root), "return 1", "return 2")
    with pytest.raises(CourseError, match="has edits"):
        edit.edit(root, "04")
    assert "return 2" in view_of(root).read_text("utf-8")
    edit.edit(root, "04", force=True)
    assert "return 1" in view_of(root).read_text("utf-8")


def test_edit_renews_a_view_that_was_not_edited(root, runs):
    edit.edit(root, "04")
    swap(path_of(root), "return 1", "return 3")
    edit.edit(root, "04")
    assert "return 3" in view_of(root).read_text("utf-8")


def test_save_does_not_undo_what_was_changed_in_the_notebook(root, runs):
    edit.edit(root, "04")
    swap(view_of(root), "return 1", "return 2")
    swap(path_of(root), "return 1", "return 3")
    with pytest.raises(CourseError, match="has changed since"):
        edit.save(root, "04")
    assert "return 3" in path_of(root).read_text("utf-8") and runs == []
    edit.save(root, "04", force=True)
    assert "return 2" in path_of(root).read_text("utf-8")


@pytest.mark.parametrize("source", ['quotes """ inside', "# %% heading", 'ends in "', "", "\\"])
def test_awkward_text_comes_back(source):
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(source), v4.new_markdown_cell("next")])
    back = edit.from_view(edit.as_view(execute.canonical(notebook)))
    assert [cell.source for cell in back.cells] == [source, "next"]


def test_code_that_no_view_can_show_is_refused():
    notebook = v4.new_notebook(cells=[v4.new_code_cell("x = 1\n# %% not a cell\ny = 2")])
    with pytest.raises(CourseError, match="Cell 1 cannot be shown"):
        edit.as_view(execute.canonical(notebook))
