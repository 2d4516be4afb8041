"""Lesson 10: a Bahdanau step, masks, cross-attention, a decoder layer, writing, positions."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.attention.length_mask", "mha_course.attention.masked_softmax")
