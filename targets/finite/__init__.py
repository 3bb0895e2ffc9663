"""Laws on finitely many states, enumerated."""
