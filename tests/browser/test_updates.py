"""The course is updated while a learner is in it; a terminal, where fresh copies come from."""

import json

import clean_clone
import pytest
from learner import Learner, served_lab

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("updates")]
MINE = "exercises/04_head_splitting.ipynb"
NEXT = "exercises/04_head_splitting.new_version.ipynb"
READ = "notebooks/05_parameter_counting.ipynb"


def change(path, text):
    notebook = json.loads(path.read_bytes())
    notebook["cells"][2]["source"] = text
    path.write_text(json.dumps(notebook, indent=1), "utf-8")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that was started before: one notebook was changed there, and then two here."""
    folder = tmp_path_factory.mktemp("update")
    root = clean_clone.copy_to(folder / "mha course")
    with served_lab(root, folder) as first:
        assert first.printed.endswith("/lab/tree/notebooks/00_start_here.ipynb")
    change(root / "work" / MINE, "my_answer = 1")
    change(root / MINE, "new_text = 2")
    change(root / READ, "new_text = 3")
    with served_lab(root, folder) as course:
        yield course


def test_what_is_new_is_said_first_and_the_new_version_lies_below_the_old(course, new_tab):
    learner = Learner(course, new_tab())
    learner.open_printed_address()
    news = learner.tab.locator(".jp-MarkdownViewer")
    news.get_by_role("heading", name="You have changed these: yours stay as they are").wait_for()
    assert news.get_by_role("listitem").all_inner_texts() == [READ]
    learner.follow(news.get_by_role("link", name=NEXT))
    learner.wait_until_ready(NEXT)
    assert not learner.unsaved()
    learner.cell("new_text = 2").wait_for()

    listing = learner.tab.locator(".jp-DirListing-content .jp-DirListing-itemText")
    listing.get_by_text("exercises", exact=True).dblclick()
    listing.filter(has_text="new_version").wait_for()
    names = [name.removeprefix("exercises/") for name in (MINE, NEXT)]
    shown = listing.all_inner_texts()
    assert shown[shown.index(names[0]) + 1] == names[1]
    assert learner.tab.errors == []


def test_a_terminal_knows_the_command_and_opens_where_it_works(course, new_tab):
    learner = Learner(course, new_tab())
    learner.open("notebooks/00_start_here.ipynb")
    learner.tab.click("#jp-MainMenu .lm-MenuBar-item:has-text('File')")
    learner.tab.hover(".lm-Menu-item:has-text('New')")
    learner.tab.click("li[data-command='terminal:create-new']")
    learner.tab.locator(".jp-Terminal .xterm-screen").click()
    fresh = course.work / "notebooks/07_seeing_attention.new_version.ipynb"
    assert not fresh.exists()
    learner.tab.keyboard.type("ls notebooks && mha-course reset 07")
    learner.tab.keyboard.press("Enter")
    listing = learner.tab.locator(".jp-DirListing-content .jp-DirListing-itemText")
    listing.filter(has_text=fresh.name).wait_for()
    assert fresh.read_bytes() == (course.work / "notebooks/07_seeing_attention.ipynb").read_bytes()
