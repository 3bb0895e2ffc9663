"""Why a mutant that is not equivalent survives the checks: what no check looks at, in one sentence each."""

REASONS: dict[str, str] = {}
"""Change of a mutant -> the reason. A test fails when a published survivor has none."""
