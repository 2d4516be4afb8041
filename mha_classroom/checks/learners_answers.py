"""The learner's own answers, taken out of their exercise notebooks."""

import ast
import contextlib
import functools
import io
import linecache
from pathlib import Path

from mha_classroom.checks import diagnose, find
from mha_classroom.checks.registry import lesson_of
from mha_classroom.clone import CourseError, find_root

__all__ = ["load"]

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def load(grade_id, quiet=False):
    """Return the learner's answer to a task if it passes its check, else the course's; say which.

    In a notebook under work/, answers are taken from work/exercises/ as they were last saved;
    elsewhere, as in the tests of the course, from solutions/. With the answer comes what it
    needs: imports, functions and classes of its notebook. Nothing else there is run.
    Raises: ValueError naming the ids that are near if there is no task of this id.
    Lesson: notebooks/12_your_bert.ipynb.
    """
    task = find(grade_id)
    answer, said = _look_up(task)
    if not quiet:
        print(f"{grade_id}: {said}")
    return answer


def _look_up(task):
    """(The answer to use, whose it is and why)."""
    course = "the course's is used"
    try:
        root = find_root()
    except CourseError:
        return task.reference, f"{course}, as there are no notebooks here"
    work = (root / "work").resolve()
    here = Path.cwd().resolve()
    own = work in (here, *here.parents)
    path = (work / "exercises" if own else root / "solutions") / f"{lesson_of(task.id)}.ipynb"
    place = path.relative_to(root.resolve()).as_posix()
    whose, copies = ("yours", "your") if own else ("the solution's", "the")
    if not path.is_file():
        return task.reference, f"{course}; there is no {place}"
    try:
        answers = _answers(path, path.stat().st_mtime_ns)
    except (ValueError, OSError) as error:
        return task.reference, f"{course}; {place} cannot be read ({error})"
    answer = answers.get(task.name)
    if answer is None:
        return task.reference, f"{course}; {copies} {place} does not define {task.name}"
    if isinstance(answer, Exception):
        kind = type(answer).__name__
        return task.reference, f"{course}; {whose} in {place} ends in {kind}: {answer}"
    feedback = diagnose(task.id, answer)
    if feedback.kind == "unwritten":
        return task.reference, f"{course}; {whose} in {place} is not written yet"
    if not feedback.passed:
        why = feedback.mistake or feedback.kind
        return task.reference, f"{course}; {whose} in {place} does not pass its check ({why})"
    return answer, f"{whose}, from {place}"


@functools.lru_cache(maxsize=32)
def _answers(path, _saved):
    """{name: answer, or the exception that its cell ends in} of one notebook.

    A name that a marked answer cell defines is that cell's, whatever stands further down.
    """
    namespace = {"__name__": f"work.{path.stem}"}
    answers = {}
    for number, cell in enumerate(_code_cells(path)):
        grading = cell.metadata.get("nbgrader", {})
        marked = bool(grading.get("solution"))
        name = str(grading.get("grade_id", "")).split("-", 1)[-1]
        label = f"<{path.name}, {name if marked else f'code cell {number + 1}'}>"
        error = _run(cell.source, label, marked, namespace)
        if marked:
            answers[name] = error or namespace.get(name)
    answers = {name: answer for name, answer in answers.items() if answer is not None}
    # What the answers call are each other, not a trial of the same name.
    namespace.update({n: a for n, a in answers.items() if not isinstance(a, Exception)})
    return {**namespace, **answers}


def _code_cells(path):
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
        return [cell for cell in cells if cell.cell_type == "code"]
    except Exception as error:  # nbformat trips over a broken file in many ways
        raise ValueError(f"{type(error).__name__}: {str(error)[:99]}") from error


def _run(source, label, marked, namespace):
    """Run what a cell defines; returns the exception that ended it, or None."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        tree = ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError as error:
        return error
    tree.body = [statement for statement in tree.body if _is_kept(statement, marked)]
    linecache.cache[label] = (len(source), None, source.splitlines(keepends=True), label)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for statement in tree.body:
            code = compile(ast.Module([statement], []), label, "exec")
            try:
                exec(code, namespace)
            except Exception as error:
                if marked:
                    return error
    return None


def _is_kept(statement, marked):
    """In an answer's cell all but calls on their own; elsewhere definitions and constants."""
    if marked:
        return not isinstance(statement, ast.Expr)
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(
                part, ast.Constant | ast.Tuple | ast.List | ast.Load | ast.UnaryOp | ast.USub
            )
            for part in ast.walk(statement.value)
        )
    return isinstance(statement, DEFINITIONS)
