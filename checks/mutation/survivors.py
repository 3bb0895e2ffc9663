"""Reasons why mutants that are not equivalent survive the checks, in one sentence each."""

REASONS: dict[str, str] = {}
"""Change of a mutant -> the reason. A test fails when a published survivor has none."""
