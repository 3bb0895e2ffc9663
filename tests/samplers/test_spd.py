"""Linear algebra of small positive definite matrices, against SciPy, beyond the size that is written out too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.samplers.numerics.spd import MOST, log_det, solve

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("n", [1, 2, 5, MOST, MOST + 1])
def test_solution_and_determinant_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n))
    matrix, right = root @ root.T + np.eye(n), rng.standard_normal(n)
    condition = np.linalg.cond(matrix)
    expected = np.linalg.solve(matrix, right)
    found = np.asarray(jax.jit(solve)(jnp.asarray(matrix), jnp.asarray(right)))
    assert np.abs(found - expected).max() <= 10 * n * EPS * condition * np.abs(expected).max()
    # each pivot is known to the round-off of the sums that it is left over from
    assert abs(float(jax.jit(log_det)(jnp.asarray(matrix))) - np.linalg.slogdet(matrix)[1]) <= 10 * n * EPS * condition


def test_the_gradient_of_the_determinant_is_the_inverse():
    matrix = np.array([[2.0, 0.3, -0.4], [0.3, 1.0, 0.2], [-0.4, 0.2, 0.7]])
    # the lower triangle alone is read: an entry off the diagonal stands for two
    gradient = np.asarray(jax.grad(log_det)(jnp.asarray(matrix)))
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(gradient, np.tril(2 * inverse) - np.diag(np.diag(inverse)), rtol=0, atol=1e3 * EPS)


def test_a_singular_matrix_has_no_finite_solution():
    assert not np.isfinite(np.asarray(solve(jnp.ones((2, 2)), jnp.array([1.0, 2.0])))).any()


def test_many_chains_of_several_factorisations_come_to_an_end():
    """In jaxlib 0.10 several batched LAPACK calls of one program may wait for each other for ever."""

    def energy(matrix):
        return log_det(matrix) + log_det(matrix + jnp.eye(5)) + solve(matrix, matrix[0]).sum()

    matrices = jnp.broadcast_to(jnp.eye(5) + 0.1, (16_384, 5, 5))
    many = np.asarray(jax.jit(jax.vmap(energy))(matrices))
    assert np.ptp(many) <= 100 * EPS * abs(many[0])
