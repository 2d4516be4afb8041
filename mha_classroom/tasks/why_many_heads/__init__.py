"""Lesson 03: one head, the loop of heads, the output as a sum, heads made by hand."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.attention",)
