"""Grade one submission: run it, run it again without what ended it, and judge its tasks.

This is the unit of work that can be done on any machine.
"""

import time
from dataclasses import replace

from mha_classroom.checks.feedback import Feedback
from mha_classroom.checks.praise import PRAISE
from mha_classroom.checks.time_limit import OutOfTime, time_limit
from mha_classroom.grading.fit.assembly import assemble
from mha_classroom.grading.fit.cell_sources import defined
from mha_classroom.grading.fit.odd_names import odd_names
from mha_classroom.grading.fit.own_text import own_text
from mha_classroom.grading.handed_in.read_notebook import Unreadable, parse
from mha_classroom.grading.judge.judge_answer import forbidden_name, hidden, judge, needs_stages
from mha_classroom.grading.judge.make_plan import PROBE, blob_of, modules_of, plan_for
from mha_classroom.grading.judge.records import decode
from mha_classroom.grading.judge.without_quotes import Allowed
from mha_classroom.grading.kernels.inside.probe import PLAN
from mha_classroom.grading.kernels.nbval_run import run_notebook
from mha_classroom.grading.results import Graded, Result, TaskResult, Verdict, of_end, of_feedback

__all__ = ["failed_result", "grade_notebook", "grade_submission"]

END_OF_OWN = {"timeout": "did not come to an end", "output": "printed without end"}
# Cells of the student's own that may end the kernel before all others are left out that define
# nothing; after as many again, all of them.
MOST_OWN = 3
BORROWED = "Your code calls {}. The task asks you to do it yourself."
JUDGING = 20.0  # seconds for what came of one task
# Of the time until the deadline: when no kernel runs any more, and when nothing is judged any more.
# What is left is for whoever would end this process.
RUNNING, ALL = 0.7, 0.9
MOST_HUMAN = 5  # notes of one submission for a human


def grade_submission(handed_in, assignment, settings, zygote, seconds=None):
    """Grade one submission, a HandedIn with its content; returns the Graded.

    seconds: until its deadline, that of the settings unless told.
    """
    started = time.monotonic()
    problem, human, kernels, fault, text = handed_in.problem, handed_in.human, 0, "", None
    if not problem:
        try:
            with time_limit(JUDGING):
                notebook = parse(handed_in.content)
            done = grade_notebook(notebook, assignment, settings, zygote, seconds)
            result, kernels, fault = _result(handed_in, done), done.kernels, done.fault
            text = own_text(done.answers, assignment.exercise)
        except Unreadable as error:
            problem, human = str(error), True
        except OutOfTime:
            problem, human = f"the notebook could not be read within {JUDGING:g} s", True
    if problem:
        result = failed_result(handed_in, assignment, problem, human)
    return Graded(result, time.monotonic() - started, kernels, fault, text)


def failed_result(handed_in, assignment, problem, human=True):
    """The Result of what could not be graded; human: whether someone could fix it."""
    something = handed_in.file or human  # a link or a folder is something
    verdict = Verdict.NOT_RUN if something else Verdict.MISSING
    tasks = tuple(
        task_result(assignment, name, verdict, Feedback(name, "not run", "This was not graded."))
        for name in assignment.tasks
    )
    return Result(handed_in.student, handed_in.lesson, handed_in.file, problem, (), (), tasks)


def _result(handed_in, done):
    notes = [handed_in.note] if handed_in.note else []
    human = [handed_in.note] if handed_in.human else []
    return Result(
        *(handed_in.student, handed_in.lesson, handed_in.file),
        problem="",
        notes=tuple(dict.fromkeys(notes + done.notes)),
        human=_at_most(MOST_HUMAN, list(dict.fromkeys(human + done.human))),
        tasks=tuple(done.tasks),
    )


def _at_most(most, texts):
    """So many of the texts, and how many more there are."""
    if len(texts) <= most:
        return tuple(texts)
    return (*texts[: most - 1], f"and {len(texts) - most + 1} more of this kind")


def grade_notebook(notebook, assignment, settings, zygote, seconds=None):
    """Grade a parsed notebook; returns the Grading.

    seconds: until its deadline, that of the settings unless told.
    Raises: Unreadable if it is of another exercise set; OutOfTime if that is not found out in time.
    """
    seconds = settings.limits.deadline if seconds is None else seconds
    with time_limit(JUDGING):
        grading = Grading(notebook, assignment, settings, zygote, seconds)
    try:
        grading.run_all()
        grading.carry_forward()
        grading.look_at_stages()  # of what is still wrong
    except OutOfTime:
        grading.stop()
    return grading


class Grading:
    """What becomes of the tasks of one notebook.

    tasks: a TaskResult for each. answers: the student's sources. notes, human: for the instructor.
    kernels: how many were started. fault: what the grader itself could not do, "" if nothing.
    """

    def __init__(self, notebook, assignment, settings, zygote, seconds):
        self.started, self.seconds, self.waited = time.monotonic(), seconds, 0.0
        self.notebook, self.assignment, self.settings = notebook, assignment, settings
        self.zygote, self.kernels, self.fault = zygote, 0, ""
        self.plans = {name: self._plan(name) for name in assignment.tasks}
        first = self._assemble(self.plans)
        self.status, self.notes, self.human = first.status, first.notes, list(first.human)
        odd = odd_names(_own_sources(first))
        if odd:
            self.human.insert(0, f"the code names {', '.join(odd)}, which no answer needs")
        self.answers = first.answers
        self.records = {}  # of what was probed
        self.ended = {}  # why the kernel ended, by the task whose cell ended it
        self.by_check = set()  # those of them that did so when they were tried
        self.raised = {}  # [name, text] of the exception in which the cell of an answer ends
        self.verdicts, self.feedback, self.carried = {}, {}, {}
        self.left_out = []

    def complete(self, name):
        """Whether each planned run of a task was made and its outcome received."""
        return name in self.records and set(self.records[name].outcomes) == self._planned(name)

    def _planned(self, name):
        return {(way, i) for way, i in self.plans[name].runs if way != "calls"}

    @property
    def tasks(self):
        """The TaskResult of each task, in order."""
        return [
            task_result(
                self.assignment,
                name,
                self.verdicts[name],
                hidden(self.feedback[name]),
                self.carried.get(name, ()),
            )
            for name in self.assignment.tasks
        ]

    def run_all(self):
        """Run the notebook, and again without the cell that ended it where one did, and judge."""
        failures = 0
        while True:
            waiting = [name for name in self.assignment.tasks if name not in self.records]
            assembled = self._assemble(self.plans, leave_out=self.left_out, only=waiting)
            if not assembled.probed:
                break
            run = self._run(assembled)
            self._take(run)
            if run.why == "deadline":
                if run.stopped is None and not self.ended:  # else cells that hang took the time
                    self.fault = "no kernel could be started in time"
                raise OutOfTime()
            guilty = run.stopped or {}
            cell = guilty.get("answer") or guilty.get("task") or guilty.get("added")
            if not run.why:
                break
            if cell is None and failures and "own" in guilty:
                cell = self._above(guilty, assembled)
            if run.why == "start" or cell is None or cell in self.left_out:
                failures += 1  # the machine's fault, which may pass
                if failures > 1:
                    self.fault = f"the grading itself stopped: {run.why} {run.text}"[:300]
                    self.human.append(self.fault)
                    break
            elif "own" in guilty and cell in self.records:  # what it answers stays as it is
                self._leave_out(cell, assembled)
            else:
                self.ended[cell] = run.why
                self.by_check |= {guilty["task"]} if "task" in guilty else set()
                self.verdicts.pop(cell, None)
                self._leave_out(cell, assembled)
        self._judge_all(self.assignment.tasks)

    def stop(self):
        """End the grading where the deadline is over: what is judged by then stays."""
        known = {*self.ended, *(n for n, s in self.status.items() if s in ("older", "missing"))}
        self._judge_all(name for name in self.assignment.tasks if name in known)
        late = [name for name in self.assignment.tasks if name not in self.verdicts]
        limit = self.settings.limits.deadline
        if 2 * self.waited > time.monotonic() - self.started:
            self.fault = f"others kept the processors busy for the {limit:g} s that there were"
        elif self.seconds < limit:
            self.fault = f"an earlier try took most of the {limit:g} s that there were"
        for name in late:
            message = f"The whole notebook took more than {limit:g} s, and was stopped before this."
            self.verdicts[name] = Verdict.TIMEOUT
            self.feedback[name] = Feedback(name, "timeout", message)
        listed = ", ".join(late)[:300] or "what is said of wrong answers"
        self.human.append(f"it took more than {limit:g} s, and was stopped before {listed}")

    def _judge_all(self, names):
        for name in names:
            if name not in self.verdicts:
                self.verdicts[name], self.feedback[name] = self._judge(name)

    def _in_time(self, work, *given):
        """What comes of reading or judging what a kernel has sent; None if it takes too long."""
        left = self.started + ALL * self.seconds - time.monotonic()
        try:
            with time_limit(min(JUDGING, max(left, 0.001))):
                return work(*given)
        except OutOfTime:
            return None

    def _above(self, role, assembled):
        """The student's last cell above one of the exercise, None if there is none: it has left
        something behind, since the solution gets by that place."""
        roles = [cell.metadata["mha_course"] for cell in assembled.notebook.cells]
        found = None
        for above in roles[: roles.index(role)]:
            found = above.get("answer") or above.get("added") or found
        if found:
            what = "the kernel ended in a cell of the exercise, and runs without what stands above"
            self.human.append(f"{found}: {what}")
        return found

    def _leave_out(self, cell, assembled):
        """Leave a cell out of further runs; others of the student's own if many end the kernel."""
        self.left_out.append(cell)
        if not cell.startswith("added "):
            return
        what = END_OF_OWN.get(self.ended[cell], "ended the kernel")
        self.notes.append(f"an own cell {what} and was left out ({cell})")
        guilty = [name for name in self.ended if name.startswith("added ")]
        if len(guilty) <= MOST_OWN:
            return
        more = [
            other.metadata["mha_course"]["added"]
            for other in assembled.notebook.cells
            if "added" in other.metadata["mha_course"]
            and (len(guilty) > 2 * MOST_OWN or not any(defined(other.source)))
        ]
        more = [name for name in more if name not in self.left_out]
        if more:
            self.left_out += more
            self.notes.append(
                f"own cells that were left out because {len(guilty)} others had to be: {len(more)}"
            )

    def carry_forward(self):
        """Judge again, with the course's answers in place of earlier ones that are not right.

        So what is told of a task is its own. Nothing is taken from these runs but what came of
        that one task: the course's answers are in them.
        """
        for name in self.assignment.tasks:
            earlier = self._flawed_before(name)
            if not earlier or not self._is_flawed(name) or self._out_of_reach(name):
                continue
            records = self._run_with(earlier, name)
            if not records or records.state == "undefined":
                continue
            word, feedback = self._of_records(name, records)
            before = self.feedback[name]
            if before.passed:
                if feedback.passed:
                    self.feedback[name] = self._told(name, feedback, records)
            elif feedback != before and self._is_own(name, word):
                self.carried[name], self.verdicts[name] = earlier, word
                self.feedback[name] = self._told(name, feedback, records)

    def _told(self, name, feedback, records):
        """The Feedback without what the answer's code says; keeps the Records that it comes of."""
        allowed = Allowed(self.notebook, self.assignment.tasks[name].forbidden)
        known = feedback.passed or feedback.kind == "mistake"
        told = allowed.records(records, values=known)
        if feedback.passed:
            return self._of_records(name, told)[1]
        self.records[name] = records if known else told
        if known:  # in the course's words, but for these
            own = [d for d in feedback.details if d[0].startswith("case")]
            return replace(feedback, details=tuple(own))
        if feedback.kind == "borrowed":
            called = next(
                (n for n in self.assignment.tasks[name].forbidden if n in str(feedback)), ""
            )
            called = called or "what it should do itself"
            return replace(feedback, message=BORROWED.format(called))
        return self._of_records(name, told)[1]

    def _flawed_before(self, name):
        """The earlier tasks that its answer may call, also through others, and that are flawed."""
        found, waiting = set(), [*self.assignment.tasks[name].uses]
        while waiting:
            other = waiting.pop()
            found |= {other}
            waiting += self.assignment.tasks[other].uses
        return [task for task in self.assignment.tasks if task in found and self._is_flawed(task)]

    def _is_flawed(self, name):
        """Whether an answer is not right, or right with a remark, as if its numbers are float32."""
        remarks = set(self.feedback[name].remarks) - PRAISE
        return self.verdicts[name] != Verdict.PASSED or bool(remarks)

    def _run_with(self, earlier, name):
        """The Records of a task from a run with the course's answers to earlier ones."""
        plans = {name: self._plan(name)}
        # What an earlier answer made hang or crash was left out for no fault of its own.
        back = {name, *(other for other in earlier if other in self.by_check)}
        left_out = [other for other in self.left_out if other not in back]
        run = self._run(self._assemble(plans, leave_out=left_out, replaced=earlier, only=[name]))
        if run.why and not run.stopped:
            self.fault = f"the grading itself stopped: {run.why} {run.text}"[:300]
        return self._decoded(name, run, plans)

    def _is_own(self, name, word):
        """Whether a verdict with the course's earlier answers is fairer to this one.

        A result that was compared says more than an error: an earlier function of the student's may
        take other arguments than the course's.
        """
        compared = Verdict.PASSED, Verdict.WRONG, Verdict.BORROWED
        return word in compared or self.verdicts[name] != Verdict.WRONG

    def _out_of_reach(self, name):
        """Whether no earlier task can explain the verdict; "missing" may come of a call of one."""
        unwritten = self.verdicts[name] == Verdict.MISSING and self.status[name] != "written"
        return unwritten or self.verdicts[name] == Verdict.NOT_RUN

    def _seed(self, name):
        return self.settings.seed_of(name)

    def _plan(self, name, record=()):
        return plan_for(self.assignment, name, self.settings, record)

    def _assemble(self, plans, **how):
        probes = dict.fromkeys(self.assignment.tasks, PROBE)
        assembled = assemble(self.notebook, self.assignment, probes, **how)
        for cell in assembled.notebook.cells:
            task = cell.metadata["mha_course"].get("task")
            if task in plans:
                cell.metadata[PLAN] = blob_of(plans[task])
        return assembled

    def _run(self, assembled):
        """The Run of a notebook. Raises: OutOfTime if there is no time for it any more."""
        until = self.started + RUNNING * self.seconds
        if time.monotonic() > until:
            raise OutOfTime()
        self.kernels += 1
        modules, limits = modules_of(self.assignment), self.settings.limits
        run = run_notebook(assembled.notebook, modules, self.zygote, limits, until)
        self.waited += run.waited
        return run

    def _take(self, run):
        for cell in run.cells:
            if cell.error and "answer" in cell.role:
                self.raised[cell.role["answer"]] = cell.error
        for name in self.assignment.tasks:
            records = self._decoded(name, run, self.plans, tell=True)
            if records:
                self.records[name] = records
        self._judge_all(name for name in self.records if name not in self.ended)

    def _decoded(self, name, run, plans, tell=False):
        """The Records of a task in what came of a run, None if there are none that can be used."""
        cells = [cell for cell in run.cells if cell.role.get("task") == name]
        outputs = [output for cell in cells for output in cell.outputs]
        problem = "something else wrote into the results of its check"
        if len(outputs) == 1:
            try:
                records = self._in_time(decode, outputs[0], plans[name])
                if records:
                    return records
                problem = "what its check sent takes too long to be read"
            except ValueError as error:
                problem = f"what its check sent cannot be read: {error}"
        if outputs and tell:
            self.human.append(f"{name}: {problem}"[:300])
        return None

    def _judge(self, name):
        """(Verdict, Feedback) of one task, from its records."""
        task, limits = self.assignment.tasks[name], self.settings.limits
        if self.status[name] == "older":
            message = "The exercises that you handed in asked for something else here."
            return Verdict.NOT_RUN, Feedback(name, "not run", message)
        if self.status[name] == "missing":
            return Verdict.MISSING, Feedback(name, "unwritten", "There is no answer to this task.")
        if name in self.ended:
            word, why = of_end(self.ended[name])
            why = why.format(seconds=limits.seconds, megabytes=limits.memory >> 20)
            return word, Feedback(name, word.value, f"{task.name} was stopped. {why}")
        if name not in self.records:
            self.human.append(f"{name}: nothing came of its check")
            word, message = of_end("start")
            return word, Feedback(name, word.value, message)
        records = self.records[name]
        self.human += [f"{name}: {what}" for what in records.suspicious]
        if records.state == "undefined" and name in self.raised:
            return self._ends_in(name, *self.raised[name])
        return self._of_records(name, records)

    def _of_records(self, name, records):
        task = self.assignment.tasks[name]
        feedback = self._in_time(judge, task, records, self._seed(name))
        if feedback is None:
            self.human.append(f"{name}: what it returned takes too long to be judged")
            message = f"What {task.name} returns takes too long to be compared."
            return Verdict.TIMEOUT, Feedback(name, "timeout", message)
        if feedback.passed and set(records.outcomes) != self._planned(name):
            message = f"{task.name} did not come to the end of its check."
            feedback = Feedback(name, "raises", message)
        return of_feedback(feedback.kind, records.memory), feedback

    def _ends_in(self, name, kind, text):
        """Of an answer whose cell ended before its name was defined."""
        task = self.assignment.tasks[name]
        called = forbidden_name(task, kind, text)
        if called:
            return Verdict.BORROWED, Feedback(name, "borrowed", BORROWED.format(called))
        word = of_feedback("raises", memory=kind == "MemoryError")
        message = f"The cell of {task.name} ends in {kind}: {text}"
        return word, Feedback(name, "raises", message)

    def look_at_stages(self):
        """Find the first wrong stage of what is wrong and no known mistake."""
        groups = {}  # {the tasks that the course answers: {task id: its Plan}}
        for name, word in self.verdicts.items():
            task = self.assignment.tasks[name]
            if name in self.records and word in (Verdict.WRONG, Verdict.ERROR):
                cases = self._in_time(needs_stages, task, self.records[name], self._seed(name))
                if cases:
                    group = groups.setdefault(tuple(self.carried.get(name, ())), {})
                    group[name] = self._plan(name, cases)
        for replaced, plans in groups.items():
            how = {"leave_out": self.left_out, "replaced": replaced, "only": list(plans)}
            run = self._run(self._assemble(plans, **how))
            for name in plans:
                records = self._decoded(name, run, plans)
                if records:
                    task, whole = self.assignment.tasks[name], self.records[name]
                    whole = whole.with_stages(records)
                    feedback = self._in_time(judge, task, whole, self._seed(name))
                    self.feedback[name] = feedback or self.feedback[name]


def _own_sources(assembled):
    """The sources of what the student has written, of answers and other cells."""
    for cell in assembled.notebook.cells:
        if {"answer", "added"} & set(cell.metadata["mha_course"]):
            yield cell.source


def task_result(assignment, name, verdict, feedback, carried=()):
    """The TaskResult of a task of an assignment."""
    most = assignment.points[name]
    points = most if verdict == Verdict.PASSED else 0.0
    return TaskResult(name, verdict, points, most, feedback, feedback.mistake, tuple(carried))
