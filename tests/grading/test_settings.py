"""Each option and its default stand in one place, and the guide says the same."""

import argparse
import re
from pathlib import Path

from mha_classroom.commands.cli import _add_grade
from mha_classroom.grading.settings import DEADLINE, MEGABYTES, SECONDS, Limits, Settings

GUIDE = Path(__file__).parents[2] / "docs" / "grading.md"


def options():
    """{option: its argparse action} of `mha-course grade`."""
    parser = argparse.ArgumentParser(add_help=False)
    _add_grade(parser)
    return {action.option_strings[0]: action for action in parser._actions if action.option_strings}


def rows():
    """{option: what the guide's table says of it}."""
    table = re.findall(r"^\| `(--[a-z-]+)[^`]*` \| (.*) \|$", GUIDE.read_text("utf-8"), re.M)
    return dict(table)


def test_the_guides_table_has_each_option_with_its_default():
    known, told = options(), rows()
    assert known.keys() == told.keys() | {"--out"}  # which stands in the command above the table
    for option, action in known.items():
        numbers = [
            float(text)
            for text in re.findall(r"(\S+) unless told", told.get(option, ""))
            if text[0].isdigit()
        ]
        has_number = isinstance(action.default, (int, float)) and action.default is not False
        assert numbers == ([action.default] if has_number else []), option
    assert "the number of cores unless told" in told["--workers"]


def test_the_command_line_and_the_settings_have_the_same_defaults():
    known = options()
    assert known["--timeout"].default == SECONDS == Limits().seconds
    assert known["--deadline"].default == DEADLINE == Limits().deadline
    assert known["--memory"].default == MEGABYTES == Settings().limits.memory >> 20
