"""The page that a student gets, whatever a student is called or writes."""

from dataclasses import replace
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from nbformat import v4
from results_made_up import (
    COUNT,
    FIVE,
    FOUR,
    MERGE,
    NAMES,
    SPLIT,
    good,
    plain,
    result,
    settled,
    task,
    texts,
    tricky,
)

from mha_classroom.grading.report.feedback_page import heading, page
from mha_classroom.grading.results import VERDICTS, Result, Verdict


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether its tags match."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def shown(one, **more):
    [one] = settled(one)
    return page(one, **more)


def test_the_page_stands_alone_and_can_be_read_aloud():
    text = shown(good(), title="Exercises 4: splitting heads")
    tags = Tags(text)
    assert tags.open == [] and text.startswith("<!doctype html>")
    kinds = [tag for tag, _ in tags.found]
    assert not {"script", "img", "link", "iframe", "form", "object"} & set(kinds)
    assert dict(tags.found)["html"] == {"lang": "en"} and kinds.count("h1") == 1
    policy = next(a["content"] for _, a in tags.found if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "pre { white-space: pre-wrap !important; overflow-wrap: anywhere; }" in text
    assert "prefers-color-scheme: dark" in text and "<caption>" in text
    assert {a["scope"] for tag, a in tags.found if tag == "th"} == {"col", "row"}
    targets = {a["href"] for tag, a in tags.found if tag == "a"}
    assert targets == {"#task-1", "#task-2"} <= {f"#{a.get('id')}" for _, a in tags.found}
    assert not any(name.startswith("on") for _, a in tags.found for name in a)
    assert (
        "role=" not in text and "url(" not in text and "http:" not in text and "https:" not in text
    )
    assert "<title>Exercises 4: splitting heads · Ann</title>" in text


def test_the_page_says_what_was_right_and_wrong_in_the_checks_words():
    text = plain(shown(good()))
    assert "2 of 5 points · 1 of 2 tasks passed" in text
    assert "✓ passed: 04-transpose_qkv · right in 7 cases." in text
    assert "✗ not yet: 04-transpose_output · You join without swapping back." in text
    assert "Read again: lesson 04, “And back again”" in text
    done = plain(shown(result(lesson=FIVE, tasks=[task(COUNT, "passed", 5.0, 5.0)])))
    assert "Every task is right" in done and "Begin with" not in done


@given(texts | tricky | st.sampled_from(NAMES))
def test_nothing_of_a_student_gets_out_of_its_place(text):
    fields = {
        "kind": "raises",
        "message": text,
        "details": ((text, text),),
        "remarks": (text,),
        "sections": (text,),
        "lesson": text,
    }
    said = task(SPLIT, "error", mistake=text, carried=[text], **fields)
    said = replace(said, machine=0.0, comment=text)
    one = Result(text, FOUR, "", text, (text,), (), (said,))
    made = page(one, title=text)
    tags = Tags(made)
    assert tags.open == []
    allowed = {tag for tag, _ in Tags(shown(good())).found} | {"pre", "em", "div", "ul", "li"}
    assert {tag for tag, _ in tags.found} <= allowed and "script" not in allowed
    assert made.count("<a ") == 1
    body = made.split("</style>")[1]
    assert "$" not in body and not {"\x1b", "\u202e", "\u2066", "\x00", "\ud800"} & set(made)
    made.encode("utf-8")


def test_every_verdict_is_put_into_words():
    assert set(VERDICTS) == set(Verdict)
    for verdict, row in VERDICTS.items():
        text = plain(shown(result(tasks=[task(SPLIT, verdict)]), seconds=60.0))
        expected = "stopped after 60 s" if verdict == Verdict.TIMEOUT else row.words
        mark = "✓" if verdict == Verdict.PASSED else "✗"
        assert f"{mark} {expected} 0 of 2" in text


def test_carried_forward_is_explained():
    carried = task(MERGE, "passed", 3.0, 3.0, carried=[SPLIT], kind="passed", message="right.")
    text = plain(shown(result(tasks=[task(SPLIT, "wrong"), carried])))
    assert (
        "Carried forward: with the course's version in place of your earlier transpose_qkv, this "
        "task is right: full points."
    ) in text
    twice = replace(carried, carried=(SPLIT, "04-x"), points=1.5)
    text = plain(shown(result(tasks=[task(SPLIT, "wrong"), twice])))
    assert "the course's versions in place of your earlier transpose_qkv and x, this" in text
    assert "full points" not in text
    text = plain(shown(result(tasks=[task(SPLIT, "wrong"), replace(carried, verdict="wrong")])))
    assert (
        "This was found with the course's version in place of your earlier transpose_qkv, so it is "
        "about this task alone."
    ) in text
    assert "arried forward" not in text


def test_notes_are_shown_to_the_student_and_what_a_human_should_see_is_not():
    text = plain(
        shown(replace(good(), notes=("it stands twice",), human=("calls gc.get_objects",)))
    )
    assert "About your notebook It stands twice." in text and "get_objects" not in text


def test_nothing_is_said_about_the_student_in_the_third_person():
    said = {
        "an own cell ended the kernel and was left out (added 3)": (
            "A cell of your own ended the kernel and was left out (code cell 3)."
        ),
        "own code cells that were put in: 2": "Your own code cells that were put in: 2.",
        "answers version 1; 2 is the current one": (
            "Your notebook answers version 1; 2 is the current one."
        ),
        "taken from a.ipynb, there was b. Which one counts?": (
            "Taken from a.ipynb, there was b. Which one counts?"
        ),
    }
    text = plain(shown(replace(good(), notes=tuple(said))))
    assert all(sentence in text for sentence in said.values())
    for problem, sentence in {
        "is empty": "Your file is empty.",
        "has more than 10 MB": "Your file has more than 10 MB.",
        "nothing was handed in": "Nothing was handed in.",
        "the student's folder is a symbolic link": "Your folder is a symbolic link.",
    }.items():
        assert sentence in plain(shown(result(problem=problem)))


def test_a_notebook_that_was_not_graded_says_why():
    text = plain(shown(result(problem="is empty")))
    assert "Your file is empty. " in text and "There is no mark yet." in text
    assert "0 of 5" not in text and "not yet:" not in text and "was not run" not in text
    text = plain(
        shown(result(tasks=[task(SPLIT, "passed", 2.0), task(MERGE, "not run", best=3.0)]))
    )
    assert "2 of 5 points" in text and "Not all is graded yet, so this is no mark." in text
    assert "Begin with" not in text
    assert "0 of 5 points" in plain(shown(result(problem="nothing was handed in")))


def test_the_heading_of_a_notebook():
    cells = [v4.new_code_cell("# no"), v4.new_markdown_cell("text\n# Exercises 4: heads \n# b")]
    assert heading(v4.new_notebook(cells=cells)) == "Exercises 4: heads"
    assert heading(v4.new_notebook()) == ""
