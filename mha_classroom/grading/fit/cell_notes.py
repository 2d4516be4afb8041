"""What is said to the instructor about the cells of a submission."""

from mha_classroom.grading.fit.cell_sources import tidy
from mha_classroom.grading.fit.matching import is_stub, is_written

__all__ = ["notes_of", "status_of"]


def status_of(written, frame, names):
    """{task id: "written", "unchanged" or "missing"}."""
    status = dict.fromkeys(names, "missing")
    for cell in written:
        for name in set(cell.ids) & set(status):
            if is_written(cell, frame):
                status[name] = "written"
            elif tidy(cell.source) and status[name] == "missing":
                status[name] = "unchanged"
    return status


def notes_of(notebook, written, frame, status):
    """Return (notes, what needs a human's eye) about answers, checks, order and added cells."""
    notes, human = [], []
    for name in status:
        cells = [cell for cell in written if name in cell.ids]
        different = {tidy(cell.source) for cell in cells if is_written(cell, frame)}
        if status[name] == "missing":
            why = _why_missing(notebook, frame, name, cells)
            (human if "not a code cell" in why else notes).append(f"the answer of {name} {why}")
        if len(cells) > 1:
            times = "twice" if len(cells) == 2 else f"{len(cells)} times"
            notes.append(f"the answer of {name} stands {times}: the last counts")
        if len(different) > 1:
            human.append(f"{name}: there are {len(different)} different answers, the last counts")
        notes += _how_found(name, cells)
    notes += _about_checks(written, frame)
    homes = [c.home for c in written if c.home is not None and frame[c.home].kind == "answer"]
    if homes != sorted(homes):
        notes.append("the answers stand in another order than in the exercise")
    return notes + _about_own(written, frame), human


def _how_found(name, cells):
    for cell in cells:
        if len(cell.ids) > 1 and cell.ids[0] != name:
            yield f"the answer of {name} stands in the cell of {cell.ids[0]}"
        elif cell.how and cell.home is not None:
            yield f"the answer of {name} was found by {cell.how}"


def _why_missing(notebook, frame, name, cells):
    if cells:
        return "is an empty cell"
    slot = next(slot for slot in frame if slot.kind == "answer" and slot.id == name)
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if cell.cell_type != "code" and (grade_id == slot.grade_id or cell.id == slot.cell_id):
            return f"is a {cell.cell_type} cell and not a code cell"
    return "is missing: there is no cell of it"


def _about_checks(written, frame):
    kinds = {"deleted": [], "duplicated": [], "edited": []}
    for place, slot in enumerate(frame):
        if slot.kind == "check":
            cells = [cell for cell in written if cell.home == place]
            if len(cells) != 1:
                kinds["duplicated" if cells else "deleted"].append(slot.id)
            if not all(is_stub(cell, frame) for cell in cells):
                kinds["edited"].append(slot.id)
    return [
        f"check cells that were {what}, which costs nothing: {', '.join(names)}"
        for what, names in kinds.items()
        if names
    ]


def _about_own(written, frame):
    own = [cell for cell in written if not cell.ids and tidy(cell.source)]
    added = sum(cell.home is None for cell in own)
    changed = sum(
        cell.home is not None and frame[cell.home].kind == "own" and not is_stub(cell, frame)
        for cell in own
    )
    notes = [f"own code cells that were put in: {added}"] if added else []
    if changed:
        notes.append(f"ungraded cells of the exercise that were changed: {changed}")
    return notes
