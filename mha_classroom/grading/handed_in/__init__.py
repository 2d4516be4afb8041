"""What was handed in: found, and read so that nothing in it can do harm."""
