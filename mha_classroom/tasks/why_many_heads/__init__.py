"""Lesson 03: one head, the loop of heads, their output as a sum, heads made by hand and removed."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.attention",)
