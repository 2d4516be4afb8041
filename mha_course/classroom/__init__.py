"""For those who write the course and those who teach with it."""

__all__ = []
