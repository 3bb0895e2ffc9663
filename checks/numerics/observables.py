"""Vectors of test functions: a single test function can cross zero and hide an error."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def observables(v: Any) -> Any:
    """Test functions of vectors (..., n): monomials of degree 1 to 4 and bounded oscillating ones, on the last axis.

    Contains v_i, v_i v_j (i <= j), v_i^3, v_i^4, and two sines along fixed generic directions; `observable_names` has
    their names. NumPy arrays stay NumPy arrays.
    """
    xp = np if isinstance(v, np.ndarray) else jnp
    n = v.shape[-1]
    i, j = np.triu_indices(n)
    waves = xp.stack(
        [xp.sin(v @ d.astype(v.dtype) + phase) for d, phase in zip(*wave_directions(n), strict=True)], axis=-1
    )
    return xp.concatenate([v, v[..., i] * v[..., j], v**3, v**4, waves], axis=-1)


def observable_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the entries of `observables` for coordinates with these names."""
    i, j = np.triu_indices(len(names))
    products = [f"{names[a]}*{names[b]}" if a != b else f"{names[a]}^2" for a, b in zip(i, j, strict=True)]
    cubes, fourths = [f"{n}^3" for n in names], [f"{n}^4" for n in names]
    return (*names, *products, *cubes, *fourths, "sin(w.z + 0.3)", "sin(w'.z - 1.1)")


def wave_directions(n: int) -> tuple[list[np.ndarray], tuple[float, float]]:
    """Two generic directions (n,) of length 0.4, multiples of irrational numbers modulo one, centred; their phases.

    Short, so that the quadrature rules of the checks resolve the waves in every dimension.
    """
    k = np.arange(1, n + 1)
    raw = [np.modf(k * np.sqrt(2.0))[0] - 0.35, np.modf(k * np.sqrt(5.0))[0] - 0.45]
    return [0.4 * r / np.linalg.norm(r) for r in raw], (0.3, -1.1)
