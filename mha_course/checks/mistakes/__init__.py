"""The known mistakes, a module for each lesson: small wrong answers and what to say of them."""
