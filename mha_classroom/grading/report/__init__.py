"""What people read: marks, pages, a summary; and what they decided."""
