"""Lesson 08: masks for heads, importance, removal, grouped heads, a budget, and a study."""
