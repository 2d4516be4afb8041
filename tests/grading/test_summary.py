"""What the terminal shows, at the end of a run and on the way."""

import contextlib
import os
import pty
import re
import termios
from dataclasses import replace

from results_made_up import (
    EVIL,
    FOUR,
    MERGE,
    SPLIT,
    good,
    result,
    settled,
    task,
)

from mha_classroom.checks import find
from mha_classroom.grading.report.summary import LISTED, Progress, summary
from mha_classroom.grading.report.tally import tally_of


def test_the_summary_counts_draws_and_names(tmp_path):
    wrong = [good(f"s{i}") for i in range(3)]
    other = result("o", tasks=[task(SPLIT, "wrong", mistake="unheard-of"), task(MERGE, "wrong")])
    full = result(
        "f", tasks=[task(SPLIT, "passed", 2.0), task(MERGE, "passed", 3.0, 3.0)], human=("odd\x1b",)
    )
    bad = [
        result("x", problem="is not a notebook: bla", human=()),
        result("y", problem="nothing was handed in"),
    ]
    told = [("Not used", ["overrides.csv, line 2: no 'Bob'"])]
    text = summary(tally_of(settled(*wrong, other, full, *bad), told=told))
    assert "5 of 6 submissions graded.\n  1 not graded: is not a notebook\n" in text
    assert "Nothing handed in, by student and lesson: 1." in text
    assert "Tasks: 5 passed, 5 wrong." in text
    assert f"{FOUR}: 6 handed in, 5 of them with a mark, mean 2.2 and median 2 of 5 points" in text
    assert re.search("40–49 %  █{40} 3\n", text) and re.search("90–100 %  █{13} 1\n", text)
    [did] = [m.did for m in find(MERGE).mistakes if m.id == "merge-without-transpose"]
    assert f"3 × {did} (merge-without-transpose)" in " ".join(text.split())
    assert "1 × unheard-of" in text and "1 × (no known mistake)" in text
    needs = text.split("Needs a human (2)")[1]
    assert f"f, {FOUR}: odd\\x1b\n" in needs and f"x, {FOUR}: is not a notebook: bla" in needs
    assert "  overrides.csv, line 2: no 'Bob'\n" in needs


def test_what_has_no_mark_is_no_zero_in_the_mean():
    bad = [result(name, problem="is empty") for name in ("x", "y")]
    text = summary(tally_of(settled(good(), *bad)))
    assert f"{FOUR}: 3 handed in, 1 of them with a mark, mean 2.0 and median 2 of 5" in text
    assert re.search("0–9 %\n", text) and re.search("40–49 %  █+ 1\n", text)
    text = summary(tally_of(settled(*bad)))
    assert f"{FOUR}: 2 handed in, none with a mark yet" in text


def test_the_list_for_a_human_is_cut_and_names_stay_on_their_line():
    many = (replace(good(f"{i}{EVIL}\n"), human=("look\r",)) for i in range(23))
    text = summary(tally_of(settled(*many)))
    lines = text.split("Needs a human (23)\n")[1].splitlines()
    assert len(lines) == LISTED + 1 and lines[-1] == "  and 3 more"
    assert not {"\x1b", "\r", "\u202e", "\ud800"} & set(text)


def test_hints_do_not_hide_what_has_to_be_decided():
    texts = {(f"{i}{who}", FOUR): (str(i), 1, 20) for i in range(LISTED) for who in "ab"}
    names = [name for name, _ in texts]
    text = summary(tally_of(settled(*map(good, names), result("x", problem="is empty")), texts))
    assert f"Needs a human ({LISTED + 1})\n  x, {FOUR}: is empty\n" in text


def test_the_summary_of_nothing_and_of_two_mistakes_at_once():
    assert summary(tally_of([])) == "0 of 0 submissions graded.\n"
    one = result(tasks=[task(MERGE, "wrong", 0.0, 3.0, "merge-interleaved + unheard-of")])
    text = summary(tally_of(settled(one)))
    assert "(merge-interleaved)" in text and "1 × unheard-of" in text


def test_without_a_terminal_there_is_a_line_for_every_tenth(capsys):
    with Progress(23) as progress:
        for _ in range(23):
            progress.step(good())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[-1] == "graded 23 of 23 (100 %)"
    assert lines[0] == "graded 3 of 23 (13 %)"


def test_a_terminal_gets_a_bar():
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(theirs, "w") as stream, Progress(7, stream=stream) as progress:
        progress.step()
        for _ in range(6):
            progress.step(good())
    text = b""
    with contextlib.suppress(OSError):  # how Linux says that this is all
        while piece := os.read(ours, 100_000):
            text += piece
    os.close(ours)
    text = text.decode()
    assert re.search(r"100%\|.*\| 7/7 ", text)
    assert progress.bar.initial == 1
