"""Lesson 01: softmax, attention of one query and of all, additive scores, predictions."""
