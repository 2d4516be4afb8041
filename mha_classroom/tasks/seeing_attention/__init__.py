"""Lesson 07: attended tokens, entropy, offsets, heads with a role, and what they bring."""
