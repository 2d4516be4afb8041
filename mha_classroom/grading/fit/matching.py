"""Which cell of a student's notebook is which cell of the exercise, whatever became of it."""

import difflib
from dataclasses import dataclass, field

from mha_classroom.grading.fit.cell_sources import defined, is_setup, tidy
from mha_classroom.navigation import PROGRESS

__all__ = ["FrameCell", "Written", "frame_of", "is_stub", "is_written", "match"]

ALIKE = 0.5  # of the lines
MANY = 100  # lines, and cells: beyond that nothing is compared


@dataclass(frozen=True)
class FrameCell:
    """A code cell of the exercise. kind: "answer", "check" or "own"; id: of the task."""

    kind: str
    id: str | None
    cell_id: str
    grade_id: str | None
    source: str


@dataclass
class Written:
    """A code cell of the student's.

    home: the place in the frame of the cell that it is. place: the one that it is put after.
    ids: the tasks that it answers. how: what it was found by, if not by its grade_id.
    """

    number: int
    cell_id: str
    grade_id: str | None
    source: str
    home: int | None = None
    place: int = -1
    ids: list[str] = field(default_factory=list)
    how: str = ""

    @property
    def label(self):
        """What it is called if it is a cell of the student's own."""
        return f"added {self.number}"


def frame_of(exercise):
    """The code cells of an exercise notebook as FrameCells, in order."""
    frame = []
    for cell in exercise.cells:
        if cell.cell_type == "code":
            grading = cell.metadata.get("nbgrader", {})
            grade_id = grading.get("grade_id")
            kind, name = "own", None
            if grading.get("solution"):
                kind, name = "answer", grade_id
            elif grading.get("grade"):
                kind, name = "check", grade_id.removeprefix("check-")
            frame.append(FrameCell(kind, name, cell.get("id", ""), grade_id, cell.source))
    return frame


def match(notebook, frame, names):
    """Return the student's code cells as Written, in their order.

    names: {task id: the name that its answer defines}.
    Properties: a cell is known by its grade_id, else by its id, else by an equal source, else by
        the name that it defines, else, if it is none of the answers, by being much alike.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    written = [
        Written(number, cell.id, cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
        for number, cell in enumerate(cells, 1)
        if tidy(cell.source) != tidy(PROGRESS)  # the exercise's own, and not graded
    ]
    _by(written, frame, lambda cell: cell.grade_id, "")
    _by(written, frame, lambda cell: cell.cell_id, "its cell id")
    _by(written, frame, lambda cell: tidy(cell.source) or None, "its text")
    _claim(written, frame)
    _by_name(written, frame, names)
    _by_likeness(written, frame)
    _place(written)
    return written


def is_stub(cell, frame):
    """Whether a cell is still as it was released."""
    return cell.home is not None and tidy(cell.source) == tidy(frame[cell.home].source)


def is_written(cell, frame):
    """Whether a cell has something in it that was not released."""
    return bool(tidy(cell.source)) and not is_stub(cell, frame)


def _by(written, frame, key, how):
    """Give a home to cells whose key is that of a cell of the exercise that is still free.

    A check may stand there more than once; so may, by its grade_id, an answer.
    """
    taken = {cell.home for cell in written} - {None}
    homes = {}
    for number, cell in enumerate(frame):
        if key(cell) and (number not in taken or cell.kind == "check"):
            homes.setdefault(key(cell), number)
    for cell in written:
        if cell.home is None and key(cell) in homes:
            cell.home, cell.how = homes[key(cell)], how


def _claim(written, frame):
    for cell in written:
        if cell.home is not None and frame[cell.home].kind == "answer":
            cell.ids = [frame[cell.home].id]


def _by_name(written, frame, names):
    """Find answers by the names that cells define, where no cell of their own is written."""
    spoken = [cell for cell in written if any(name in cell.source for name in names.values())]
    made = [(cell, *defined(cell.source)) for cell in spoken]
    for place, slot in enumerate(frame):
        name = names.get(slot.id)
        if slot.kind != "answer" or name is None:
            continue
        if any(slot.id in cell.ids and is_written(cell, frame) for cell in written):
            for cell, functions, _ in made:  # it stays where it is, and the last one wins
                if cell.home is None and name in functions:
                    cell.ids.append(slot.id)
            continue
        found = [cell for cell, _, every in made if cell.home is None and name in every]
        found = found or [c for c, fs, _ in made if name in fs and _edited_check(c, frame)]
        for cell in found:
            cell.home, cell.how = place, "the name that it defines"
            cell.ids.append(slot.id)
        if not found:
            _shared(made, frame, place, name)


def _edited_check(cell, frame):
    is_check = cell.home is not None and frame[cell.home].kind == "check"
    return is_check and not is_stub(cell, frame)


def _shared(made, frame, place, name):
    """An answer that stands in the cell of another answer."""
    for cell, functions, _ in made:
        other = cell.ids and frame[place].id not in cell.ids
        if other and name in functions and is_written(cell, frame):
            cell.ids.append(frame[place].id)
            cell.home = min(cell.home, place)


def _by_likeness(written, frame):
    """The student's versions of ungraded cells of the exercise that lost their ids."""
    for place, slot in enumerate(frame):
        if slot.kind != "own" or any(cell.home == place for cell in written):
            continue
        free = [cell for cell in written if cell.home is None and not cell.ids][:MANY]
        likeness = [(_alike(slot.source, cell.source), -n) for n, cell in enumerate(free)]
        best, number = max(likeness, default=(0, 0))
        if best >= ALIKE:
            free[-number].home = place
        elif is_setup(slot.source):
            _same_place(written, place)


def _alike(one, other):
    """How many of the lines of one are in the other, in the same order; from 0 to 1."""
    lines = [tidy(source).split("\n")[:MANY] for source in (one, other)]
    blocks = difflib.SequenceMatcher(None, *lines, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(lines[0])


def _same_place(written, place):
    """Take the one free cell that stands between the neighbours of a place for that place's."""
    before = [n for n, cell in enumerate(written) if cell.home is not None and cell.home < place]
    after = [n for n, cell in enumerate(written) if cell.home is not None and cell.home > place]
    between = written[max(before, default=-1) + 1 : min(after, default=len(written))]
    if len(between) == 1 and between[0].home is None and not between[0].ids:
        between[0].home = place


def _place(written):
    """Cells of the student's own come after the cell of the exercise that they stand below."""
    place = -1
    for cell in written:
        place = cell.home if cell.home is not None else place
        cell.place = place
