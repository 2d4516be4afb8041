"""The page for the instructor: what it says, that it is safe, and that its links lead somewhere."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

from handed_notebooks import ANSWER, SPLIT, handed_in
from results_made_up import EVIL, FOUR, MERGE, NAMES, good, plain, result, settled, task

from mha_classroom.checks import find
from mha_classroom.grading.fit.assignment import load_assignment
from mha_classroom.grading.fit.own_text import LEAST_LINES, own_text
from mha_classroom.grading.report.class_page import OPEN, class_page
from mha_classroom.grading.report.summary import summary
from mha_classroom.grading.report.tally import tally_of
from mha_classroom.grading.report.write_reports import write_pages


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.links, self.open = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.links += [value for name, value in attrs if name == "href"]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page_of(*results, texts=None, told=(), titles=None):
    text = class_page(tally_of(settled(*results), texts, told), titles or {})
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return text, tags


def test_it_says_how_each_task_went_and_what_went_wrong():
    wrong = [good(f"s{i}") for i in range(3)]
    other = result("o", tasks=[task(SPLIT, "timeout"), task(MERGE, "wrong")])
    text, _ = page_of(*wrong, other, result("x", problem="nothing was handed in"))
    told = plain(text)
    assert "4 of 4 submissions graded" in told
    assert "Nothing handed in, by student and lesson: 1" in told
    assert "4 handed in, mean 1.5 and median 2 of 5 points" in told
    assert re.search(rf"{SPLIT} 75% 3 1 {MERGE} 0% 4 3 × You ", told)
    [did] = [m.did for m in find(MERGE).mistakes if m.id == "merge-without-transpose"]
    assert f"3 × {did} (merge-without-transpose) 1 × (no known mistake)" in told
    assert re.search(r"s0 2 of 5 2 s1", told) and "x nothing 0" in told


def test_each_link_leads_to_a_page_and_nothing_is_run_or_loaded(tmp_path):
    class_of = [replace(good(name), human=(f"odd {EVIL}",)) for name in NAMES]
    text, tags = page_of(*class_of, told=[(EVIL, [EVIL])], titles={FOUR: EVIL})
    (tmp_path / "index.html").write_text(text, "utf-8")
    write_pages(tmp_path, class_of, {}, {one.student for one in class_of})
    pages = [link for link in tags.links if not link.startswith("#")]
    assert len(pages) == 2 * len(NAMES)
    assert all((tmp_path / unquote(link)).is_file() for link in pages)
    assert {unquote(link) for link in pages} == {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("0*.html")
    }
    assert not tags.seen & {"script", "img", "link", "iframe", "object"}
    assert "http" not in text.replace("http-equiv", "") and "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert not {"\x1b", "\u202e", "\ud800"} & set(text) and "$" not in text.split("</style>")[1]


def test_what_needs_a_human_is_all_there_and_folded_where_it_is_long():
    many = [replace(good(f"s{i:03}"), human=("look",)) for i in range(40)]
    text, _ = page_of(*many, result("x", problem="is empty"))
    assert f"{41 - OPEN} more" in text and all(
        f"s{i:03}</a>, {FOUR}: look" in text for i in range(40)
    )
    assert f"x</a>, {FOUR}: is empty" in text and "x no mark yet –" in plain(text)
    assert "Nothing." in plain(page_of(good())[0])
    assert "none with a mark yet" in page_of(result(problem="is empty"))[0]


def test_all_are_named_whose_text_is_the_same():
    """The line of the terminal names five."""
    names = [f"s{i}" for i in range(9)]
    texts = {(name, FOUR): ("x", 1, 20) for name in names}
    text, _ = page_of(*map(good, names), texts=texts)
    assert " = ".join(names) in plain(text)
    assert "more" not in plain(text)
    assert "s4 and 4 more, 04" in summary(tally_of(settled(*map(good, names)), texts))


LONG = "def transpose_qkv(X, num_heads):\n" + "".join(f"    a{i} = X\n" for i in range(LEAST_LINES))


def text_of(assignment, **answers):
    notebook = handed_in(assignment, **answers)
    by_id = {c.metadata.get("nbgrader", {}).get("grade_id"): c.source for c in notebook.cells}
    return own_text({f"04-{name}": by_id[f"04-{name}"] for name in answers}, assignment.exercise)


def test_equal_text_of_some_length_is_noted_as_a_hint():
    assignment = load_assignment("04_head_splitting")
    one = text_of(assignment, transpose_qkv=LONG)
    assert one[1:] == (1, LEAST_LINES)
    assert text_of(assignment, transpose_qkv="\n" + LONG.replace("X\n", "X  \n\n")) == one
    assert text_of(assignment, transpose_qkv=LONG, repack="    return 3") != one
    assert text_of(assignment, transpose_qkv=LONG + "    # mine") != one
    by_name = {"Ann": one, "Bob": one, "Eve": None, "Li": ("x", 1, 9)}
    texts = {(name, FOUR): text for name, text in by_name.items()}
    tally = tally_of(settled(*map(good, by_name)), texts)
    [note] = tally.needs_a_human()
    assert note.students == ("Ann", "Bob") and "A hint and no proof" in note.text
    assert "Needs a human (1)\n  Ann = Bob, 04_head_splitting: the same text" in summary(tally)
    assert "Ann = Bob , 04_head" in plain(class_page(tally, {}))


def test_a_little_text_and_what_was_handed_out_are_no_hint():
    assignment = load_assignment("04_head_splitting")
    assert text_of(assignment, transpose_qkv=ANSWER) is None
    stub = handed_in(assignment).cells
    stub = next(c.source for c in stub if c.metadata.get("nbgrader", {}).get("grade_id") == SPLIT)
    assert text_of(assignment, transpose_qkv=(stub + "\n") * 20) is None
    lines = {name.split("-")[1]: "    return 3" for name in assignment.tasks}
    assert text_of(assignment, **lines) is None


def test_of_many_equal_ones_a_few_are_named():
    names = [f"s{i:02}" for i in range(30)]
    texts = {(name, FOUR): ("sum", 3, 20) for name in names}
    [note] = tally_of(settled(*map(good, names)), texts).needs_a_human()
    assert note.line.startswith("s00 = s01 = s02 = s03 = s04 and 25 more, 04_head_splitting: ")


def test_one_submission_has_one_line_however_much_there_is_to_look_at():
    [note] = tally_of(settled(replace(good(), human=("a", "b", "c")))).needs_a_human()
    assert note.line == f"Ann, {FOUR}: a; b; c"
