"""What was planned, what came back, and the verdict, in processes that run no student's code."""
