"""What goes on around the lessons: checks and tasks, grading, and the command mha-course."""
