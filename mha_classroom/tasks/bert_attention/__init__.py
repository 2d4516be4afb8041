"""Lesson 06: the mask, the parts of a layer, the layer; published names; biases; pre-norm."""

# What an answer may import of the course while it is graded.
LENDS = ("mha_course.bert.BertConfig",)
