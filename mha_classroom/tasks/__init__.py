"""The tasks of the course: a folder for each lesson, in it a file for each task.

Beside them runs.py: what is sent into the sandbox to try an answer, and knows no right one.
"""
