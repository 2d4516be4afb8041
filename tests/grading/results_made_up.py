"""Results of made-up students with the oddest names, for the tests of the reports."""

import dataclasses
import html
import json
import re

from hypothesis import strategies as st

from mha_classroom.checks import Feedback
from mha_classroom.grading.report.overrides import (
    Overrides,
    apply_overrides,
    read_overrides,
)

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


def task(task_id, verdict="passed", points=0.0, best=2.0, mistake=None, carried=(), **fields):
    feedback = dataclasses.asdict(Feedback(task_id, **fields)) if fields else None
    return {
        "id": task_id,
        "verdict": verdict,
        "points": points,
        "max": best,
        "mistake": mistake,
        "carried": list(carried),
        "feedback": feedback,
    }


def result(student="Ann", lesson=FOUR, tasks=(), **more):
    tasks = list(tasks)
    total = sum(one["points"] for one in tasks)
    best = sum(POINTS.get(lesson, {}).values())
    plain = {"student": student, "lesson": lesson, "file": f"{student}/{lesson}.ipynb"}
    known = {"problem": "", "notes": [], "human": [], "points": total, "max": best}
    # As it comes from a file: lists where there were tuples.
    return json.loads(json.dumps({**plain, **known, "tasks": tasks, **more}))


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


def overrides(tmp_path, text, students=("Ann",), lessons=(FOUR, FIVE)):
    path = tmp_path / "overrides.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_overrides(path, POINTS, [(s, lesson) for s in students for lesson in lessons])


def settled(*results):
    return [apply_overrides(one, Overrides(), POINTS) for one in results]


def runs_as_formula(cell):
    """Whether a spreadsheet may run it; each way of taking it apart, as blunt as can be."""
    parts = [cell, *cell.split(";"), *re.split("[;\t\r\n]", cell)]
    signs = "=+-@＝＋－＠−\t\r"
    return any(part.strip(' "\u200c\u200d\u00a0\u3000')[:1] in tuple(signs) for part in parts)


def plain(text):
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", text.split("</style>")[1])).split())
