"""Lesson 02: scores, masked softmax, causal mask, attention, a leak to mend."""
