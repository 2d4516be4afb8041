"""The way of a submission, as the package tells it, is the way there is, and not a long one."""

import re
from pathlib import Path

from mha_classroom import grading

ROOM = Path(grading.__file__).parent


def test_each_file_is_named_once_and_a_submission_passes_at_most_fifteen():
    passed, leant_on = grading.__doc__.split("What these lean on")
    way = re.findall(r"^ ?\d+\. (\S+\.py): ", passed, re.M)
    assert len(way) <= 15 and all((ROOM / path).is_file() for path in way)
    named = re.findall(r"\w+\.py", leant_on.replace("as local_pool.py", ""))
    assert len(named) == len(set(named))
    there = {path.name for path in ROOM.rglob("*.py")} - {"__init__.py"}
    assert there == {Path(path).name for path in way if not path.startswith("..")} | set(named)


def test_what_runs_inside_a_kernel_imports_nothing_of_the_rooms_around_it():
    for path in (ROOM / "kernels" / "inside").glob("*.py"):
        imported = re.findall(r"mha_classroom\.grading\.([\w.]+) import", path.read_text("utf-8"))
        assert all(name.startswith("kernels.inside.") for name in imported), path
