"""Statements that a proof decides."""
