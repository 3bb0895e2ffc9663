"""Experiments of papers, run again: one module a figure or table."""
