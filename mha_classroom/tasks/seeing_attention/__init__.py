"""Lesson 07: attended tokens, entropy, how far a head looks, the head that looks back."""
