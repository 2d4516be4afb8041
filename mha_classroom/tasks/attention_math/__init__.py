"""Lesson 01: softmax, attention, other scores, predictions, the way back, projections."""
