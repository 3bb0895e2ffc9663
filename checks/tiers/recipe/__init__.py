"""The declared dynamics have the target as a stationary law."""
