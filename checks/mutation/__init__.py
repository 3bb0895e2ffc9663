"""Systematic mutation: every small change of the code that a sampler's step runs, generated from its source."""
