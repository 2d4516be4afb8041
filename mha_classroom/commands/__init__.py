"""The command mha-course, a file for each thing that it does."""
