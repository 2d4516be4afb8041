"""Lesson 06: the mask, self-attention, its output, a layer, published names."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.bert.BertConfig", "mha_course.bert.BertFeedForward")
