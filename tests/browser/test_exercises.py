"""An exercise as it is done: wrong, wrong again, right, saved, and opened the next day."""

import pytest
from clean_clone import ROOT
from learner import START, close_everything

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("exercises")]
EXERCISES = sorted(path.stem for path in (ROOT / "exercises").glob("*.ipynb"))
STEM = "04_head_splitting"
TASK = "04-transpose_qkv"
HEAD = "def transpose_qkv(X, num_heads):\n"
WRONG = HEAD + "    return X.reshape(X.shape[0] * num_heads, X.shape[1], -1)"
RIGHT = HEAD + "    return X.unflatten(2, (num_heads, -1)).transpose(1, 2).flatten(0, 1)"
BEFORE = "label => getComputedStyle(label, '::before').content"


def label(learner, path):
    """What the tab of a notebook says."""
    tab = learner.tab_of(path).locator(".lm-TabBar-tabLabel")
    return tab.evaluate(BEFORE).strip('"').replace("none", "") + tab.inner_text()


@pytest.fixture
def wrong():
    """What is to be said of the wrong answer."""
    from mha_course.checks import diagnose

    names = {}
    exec(WRONG, names)
    feedback = diagnose(TASK, names["transpose_qkv"])
    assert feedback.mistake == "split-without-transpose"
    return feedback


def test_a_task_done_wrong_then_right_then_saved(learner, course, new_tab, wrong):
    name = f"exercises/{STEM}.ipynb"
    learner.follow(learner.page.locator(f"table a[href*='{name}']"))
    learner.wait_until_ready(name)
    learner.run(learner.cell("import torch"), 1)
    answer, check = learner.cell("def transpose_qkv"), learner.cell(f'check("{TASK}"')
    box = check.get_by_role("status")
    solution = check.locator("details", has_text=f"The course's solution of {TASK}")

    # Wrong: the mistake is named, and after the third try the solution can be opened.
    learner.write(answer, WRONG)
    learner.run(answer, 2)
    for number in (3, 4, 5):
        assert solution.count() == 0
        learner.run(check, number)
        box.filter(has_text=wrong.message).wait_for()
        assert box.inner_text().startswith(f"✗ not yet: {TASK}")
    code = solution.locator("code")
    solution.wait_for()
    assert not code.is_visible()
    solution.locator("summary").click()
    code.filter(has_text="X.permute(0, 2, 1, 3)").wait_for()

    # What it says to read again is in view as soon as the lesson is open.
    (section,) = wrong.sections
    learner.follow(box.get_by_role("link", name=section))
    learner.wait_until_ready(f"notebooks/{STEM}.ipynb")
    heading = learner.page.get_by_role("heading", name=section)
    learner.tab.wait_for_function(IN_VIEW, arg=heading.element_handle())
    assert label(learner, f"notebooks/{STEM}") == f"{STEM}.ipynb"
    assert label(learner, name) == f"Exercises: {STEM}.ipynb"
    learner.tab_of(name).click()
    learner.wait_until_ready(name)

    # Right: it counts.
    learner.write(answer, RIGHT)
    learner.run(answer, 6)
    learner.run(check, 7)
    box.filter(has_text=f"✓ passed: {TASK}").wait_for()
    progress = learner.cell("progress()")
    learner.run(progress, 8)
    progress.get_by_role("progressbar", name=f"{STEM}: 1 of 8").wait_for()
    progress.get_by_text("✓\xa0transpose_qkv").wait_for()

    # From the top: up to the first check that is not passed.
    prompts = learner.restart_and_run_all(cells=5, errors=1)
    assert prompts[:6] == ["[1]:", "[2]:", "[3]:", "[4]:", "[5]:", "[ ]:"]
    box.filter(has_text=f"✓ passed: {TASK}").wait_for()
    learner.cell('check("04-transpose_output"').get_by_text("is not written yet").first.wait_for()

    # The next day it is as it was left.
    learner.save()
    learner.tab.goto("about:blank")
    close_everything(course.address)
    assert RIGHT.splitlines()[1].strip() in (course.work / name).read_text("utf-8")
    learner.open(name)
    lines = learner.cell("def transpose_qkv").locator(".cm-line").all_text_contents()
    assert "\n".join(lines) == RIGHT
    box.filter(has_text=f"✓ passed: {TASK}").wait_for()
    assert box.first.evaluate("tag => getComputedStyle(tag).borderLeftWidth") == "4px"
    assert not learner.unsaved()


IN_VIEW = """heading => {
    const place = heading.getBoundingClientRect();
    const page = heading.closest('.jp-NotebookPanel').getBoundingClientRect();
    return place.top >= page.top && place.bottom <= page.bottom;
}"""


def test_every_exercise_opens_from_the_start_page_as_it_was_handed_out(learner, course):
    for stem in EXERCISES:
        name = f"exercises/{stem}.ipynb"
        before = (course.work / name).read_bytes()
        learner.follow(learner.page.locator(f"table a[href*='{name}']"))
        learner.wait_until_ready(name)
        assert not learner.unsaved() and (course.work / name).read_bytes() == before
        assert label(learner, name) == f"Exercises: {stem}.ipynb"
        learner.tab_of(START).click()
