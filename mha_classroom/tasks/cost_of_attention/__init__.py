"""Lesson 09: one pass, tiles, parts put together, bytes moved, a ring of keys, shared key heads."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.attention",)
