"""What runs beside the learner's code, which may change all of it."""
