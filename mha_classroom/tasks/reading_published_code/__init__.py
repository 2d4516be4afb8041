"""Lesson 11: four functions to mend, promises without a right answer, tests of attention."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.implementations",)
