"""Grade a class: submissions in, marks and feedback out.

One submission passes through these files, in this order:

 1. ../commands/grade.py: the command; what was asked for becomes the Settings
 2. grade_class.py: the whole run, from the folder of submissions to the summary
 3. handed_in/find_submissions.py: whose files these are and for which lesson; makes a HandedIn
 4. local_pool.py: processes that grade several submissions at a time
 5. judge/grade_submission.py: one submission; run again without what ended it, or with the course's
    version of what is wrong; makes the Graded
 6. handed_in/read_notebook.py: opens the file and reads the notebook so that it does no harm
 7. fit/assembly.py: the instructor's notebook with the student's answers and probes in it
 8. fit/matching.py: which cell of the student's is which cell of the exercise
 9. judge/make_plan.py: what an answer is to be run on (the Plan), what its kernel may import
10. kernels/nbval_run.py: nbval runs the notebook in a kernel of its own; makes the Run
11. kernels/inside/probe.py: beside the answer: runs it as planned, sends out what came of it
12. judge/records.py: reads what was sent (the Records), and trusts none of it
13. judge/judge_answer.py: the Feedback on an answer, and what of it the student may see
14. results.py: the verdicts that there are; TaskResult and Result, which hold them
15. report/write_reports.py: grades.csv, results.json, run.json, a page for each student

What these lean on, each where it is called:

- settings.py: the limits and every default
- handed_in/platform_names.py: what Moodle and Canvas call the files of a download
- register.py: the class beside its notebooks: handed_in/students.py (students.csv, which
  read_table.py reads) and handed_in/arrival.py (when something was handed in)
- fit/: assignment.py (an exercise set) with own_tasks.py (an instructor's); slicing.py (sources
  for the kernel, without answers); cell_sources.py, cell_notes.py, own_text.py and odd_names.py
  (about the student's cells)
- kernels/, the sandbox: start_zygote.py starts zygote.py, which has the imports done; through
  provisioner.py it is asked for a kernel, and forks supervisor.py; that builds the walls (jail.py,
  seccomp.py) and becomes kernel.py; inside/watch.py notes what no answer needs
- values on their way out of it: kernels/inside/encoding.py, judge/decoding.py
- judge/without_quotes.py: what is told of a run that had the course's answers in it
- judge/self_check.py: refuses to grade where grading would go wrong
- report/: feedback_page.py, overrides.py (what humans decide), due.py (who was late), tally.py
  with summary.py and class_page.py (for the instructor), platform_files.py (for Moodle and Canvas),
  safe_text.py
- dask_pool.py, dask_worker.py: the same as local_pool.py on a cluster

Who imports whom: report and judge import results; judge imports fit and kernels; what runs inside a
kernel imports nothing of the rooms around it.
"""
