"""Real data sets: one loader a file. Every loader asserts shapes and counts, and nothing is read on import."""
