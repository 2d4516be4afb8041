"""Results of made-up students with the oddest names, for the tests of the reports."""

import csv
import html
import json
import re

from hypothesis import strategies as st

from mha_classroom.checks import Feedback
from mha_classroom.grading.report.overrides import Overrides, apply_overrides, read_overrides
from mha_classroom.grading.report.safe_text import plain_text
from mha_classroom.grading.results import Result, TaskResult, Verdict

FOUR, FIVE = "04_head_splitting", "05_parameter_counting"
SPLIT, MERGE, COUNT = "04-transpose_qkv", "04-transpose_output", "05-count_parameters"
POINTS = {FOUR: {SPLIT: 2.0, MERGE: 3.0}, FIVE: {COUNT: 5.0}}
EVIL = "<script>alert('x')</script> $\\alpha$ \u202e\x1b[2J & \"quoted\" \ud800"
NAMES = [
    "Ann",
    "ann",
    "Ann Lee",
    "安娜",
    "-Ann",
    "'-Ann",
    "'t Hooft",
    "=cmd|' /C calc'!A0",
    "＝1+1",
    " @SUM(1)",
    "\t=1",
    "a\nb",
    "a\\nb",
    "a;=1+1",
    'x"y;"=1',
    "..",
    ".",
    "a/b",
    "a\\b",
    "CON",
    "con.txt",
    "_con.txt",
    "lpt1 ",
    "name.",
    "name ",
    "n" * 255,
    "n" * 254 + "m",
    "安" * 85,
    "e\u0301",
    "\u00e9",
    EVIL,
]
texts = st.text(st.characters(codec=None), max_size=30)
tricky = st.text(
    st.sampled_from("=+-@＝－'\"; \t\r\n\\xu20nA.~/aA安\u200c\u202e\ud800"), max_size=12
)


NOTHING_SAID = {"kind": "not run", "message": "This was not graded."}


def task(task_id, verdict="passed", points=0.0, best=2.0, mistake=None, carried=(), **fields):
    feedback = Feedback(task_id, **NOTHING_SAID | fields)
    return TaskResult(task_id, Verdict(verdict), points, best, feedback, mistake, tuple(carried))


def result(student="Ann", lesson=FOUR, tasks=None, **more):
    if tasks is None:
        tasks = [task(name, "not run", 0.0, best) for name, best in POINTS[lesson].items()]
    known = {"file": f"{student}/{lesson}.ipynb", "problem": "", "notes": (), "human": ()}
    made = Result(student, lesson, tasks=tuple(tasks), **known | more)
    # As it comes from a file.
    return Result.from_json(json.loads(json.dumps(made.as_json())))


def good(student="Ann"):
    right = task(SPLIT, "passed", 2.0, kind="passed", message="right in 7 cases.")
    wrong = task(
        MERGE,
        "wrong",
        0.0,
        3.0,
        "merge-without-transpose",
        kind="mistake",
        message="You join without swapping back.",
        sections=("And back again",),
        lesson=FOUR,
    )
    return result(student, tasks=[right, wrong])


def read_grades(path):
    """The rows of grades.csv as dicts of texts, names and notes as they were."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return [
            {plain_text(name): plain_text(cell) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]


def overrides(tmp_path, text, students=("Ann",), lessons=(FOUR, FIVE)):
    path = tmp_path / "overrides.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_overrides(path, POINTS, [(s, lesson) for s in students for lesson in lessons])


def settled(*results):
    return [apply_overrides(one, Overrides()) for one in results]


def runs_as_formula(cell):
    """Whether a spreadsheet may run it; each way of taking it apart, as blunt as can be."""
    parts = [cell, *cell.split(";"), *re.split("[;\t\r\n]", cell)]
    signs = "=+-@＝＋－＠−\t\r"
    return any(part.strip(' "\u200c\u200d\u00a0\u3000')[:1] in tuple(signs) for part in parts)


def plain(text):
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", text.split("</style>")[1])).split())
