"""Equality of arrays, or of trees of them, up to round-off."""

import jax
import numpy as np


def assert_close(actual, expected, factor=100):
    """Equal up to the round-off of `factor` operations of the size of the largest entry."""
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert np.abs(a - b).max() <= factor * np.finfo(float).eps * (1 + np.abs(b).max())
