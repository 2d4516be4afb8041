"""The tasks of the course: a folder for each lesson, in it a file for each task.

A file says first what an answer is tried on, `…_cases`, and what a right one computes on the way,
`…_stages`; then how the result of a run is examined. The known mistakes follow: `build_…` returns
an answer that is right unless a part of it is replaced, and each mistake says which parts it
replaces. `TASK` puts everything together.

Beside them runs.py: what is sent into the sandbox to try an answer, and knows no right one.
"""
