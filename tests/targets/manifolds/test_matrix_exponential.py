"""The matrix exponential against closed forms, mpmath and SciPy; its derivative; both precisions."""

import jax
import mpmath
import numpy as np
import pytest
from scipy import linalg

from sgmcmc_verification.targets.manifolds.matrix_exponential import matrix_exponential

exponential = jax.jit(matrix_exponential)
NORMS = [0.0, 1e-200, 0.3, 0.5, 0.51, 5.3, 8.0, 10.7, 21.4, 100.0, 1e6]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_exponential_of_a_skew_matrix_is_the_rotation(dtype):
    for angle in np.array(NORMS).astype(dtype).astype(float):
        generator = np.array([[0, -angle], [angle, 0]], dtype)
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        result = exponential(generator)
        assert result.dtype == dtype
        # every squaring doubles the relative error of what came before: eps times the norm, and a few eps
        assert np.max(np.abs(result - rotation)) <= 8 * np.finfo(dtype).eps * (1 + angle)


def test_a_batch_of_small_matrices_of_any_norm_agrees_with_many_digits():
    rng = np.random.default_rng(0)
    norms = (0.01, 1.0, 6.0, 30.0)
    matrices = rng.normal(size=(4, 4, 4))
    matrices *= (norms / np.abs(matrices).sum(axis=1).max(axis=1))[:, None, None]
    results = jax.jit(jax.vmap(matrix_exponential))(matrices)
    with mpmath.workdps(60):
        for norm, matrix, result in zip(norms, matrices, results, strict=True):
            exact = np.array(mpmath.expm(mpmath.matrix(matrix.tolist())).tolist(), float)
            # exp(norm) bounds the exponential, and the growth of an error in it
            assert np.max(np.abs(result - exact)) <= 64 * np.finfo(float).eps * (1 + norm) * np.exp(norm)


def test_the_derivative_is_that_of_the_block_triangular_exponential():
    rng = np.random.default_rng(1)
    matrix, direction = rng.normal(size=(2, 4, 4))
    _, derivative = jax.jit(lambda *given: jax.jvp(matrix_exponential, given[:1], given[1:]))(matrix, direction)
    block = linalg.expm(np.block([[matrix, direction], [np.zeros((4, 4)), matrix]]))
    scale = np.max(np.abs(block)) * np.abs(matrix).sum(axis=0).max()
    assert np.max(np.abs(derivative - block[:4, 4:])) <= 64 * np.finfo(float).eps * scale


def test_what_is_not_finite_gives_nan():
    assert np.all(np.isnan(exponential(np.full((2, 2), np.nan))))
    assert not np.any(np.isfinite(exponential(np.full((2, 2), np.inf))))
