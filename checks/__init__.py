"""The evidence: checks are plain functions that return a `Result`; the test_*.py files are thin."""
