"""Lesson 11: four functions to mend, promises without a reference, and a test of tests."""
