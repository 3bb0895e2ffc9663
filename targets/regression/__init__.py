"""Posteriors of logistic regressions."""
