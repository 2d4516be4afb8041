"""Lesson 12: embeddings, encoder, loading, text vectors, search, labels."""
