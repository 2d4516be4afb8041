"""The student's answers in the instructor's notebook, and what its kernel may import."""
