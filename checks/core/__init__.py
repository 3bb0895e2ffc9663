"""Checks, their findings, and the objects that they are given."""
