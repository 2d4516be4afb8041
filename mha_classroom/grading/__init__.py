"""Grade a class: submissions in, marks and feedback out."""
