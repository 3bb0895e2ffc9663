"""The sphere in particular: rotations, zero and extreme speeds, high dimension, single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc_verification.targets.manifolds.sphere import Sphere

flow = jax.jit(Sphere(4).geodesic)


def start(n, seed):
    """A unit point and a unit tangent vector, from NumPy."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=(2, n))
    x /= np.linalg.norm(x)
    v -= x * (x @ v)
    return x, v / np.linalg.norm(v)


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.integers(0, 2**31 - 1), st.floats(0.1, 3), st.floats(-3, 3))
def test_a_great_circle_is_the_rotation_in_its_plane(seed, speed, time):
    x, v = start(4, seed)
    v *= speed
    generator = np.outer(v, x) - np.outer(x, v)  # skew, takes x to v
    values, vectors = np.linalg.eigh(1j * generator)
    rotation = (vectors * np.exp(-1j * values * time)) @ vectors.conj().T
    y, w = flow(x, v, time)
    tolerance = 64 * np.finfo(np.float64).eps * (1 + abs(speed * time))
    np.testing.assert_allclose(y, (rotation @ x).real, rtol=0, atol=tolerance)
    np.testing.assert_allclose(w, (rotation @ v).real, rtol=0, atol=tolerance * speed)


def test_at_zero_speed_the_point_stays_and_derivatives_are_those_of_the_exponential_map():
    x, time = np.array([0.6, 0.0, 0.8, 0.0]), 2.0
    y, w = flow(x, np.zeros(4), time)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(w, np.zeros(4))

    def end(v):
        return Sphere(4).geodesic(x, v, time)[0]

    @jax.jit
    def derivatives(v):
        return jax.jacfwd(end)(v), jax.jacrev(end)(v), jax.hessian(end)(v)

    forward, reverse, second = derivatives(np.zeros(4))
    np.testing.assert_array_equal(forward, time * np.eye(4))
    np.testing.assert_array_equal(reverse, time * np.eye(4))
    # x (1 - |t v|^2 / 2) + t v (1 - |t v|^2 / 6)
    np.testing.assert_allclose(second, -(time**2) * x[:, None, None] * np.eye(4), rtol=4 * np.finfo(float).eps)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 5000])
def test_constraint_tangency_and_speed_are_kept_at_any_speed_and_dimension(dtype, n):
    eps = float(np.finfo(dtype).eps)
    manifold = Sphere(n)

    @jax.jit
    def step(x, v, time):
        y, w = manifold.geodesic(x, v, time)
        return y, w, manifold.project_roundoff(y), manifold.contains(manifold.project_roundoff(y))

    x, u = (part.astype(dtype) for part in start(n, 3))
    for speed in (1e-15 if dtype is np.float32 else 1e-140, 1e-9, 1e-3, 1.0, 1e5, 1e15):
        for length in (0.0, 1e-6, 0.09, 0.11, 3.0, 100.0):
            v = (speed * u).astype(dtype)
            y, w, projected, inside = step(x, v, dtype(length / speed))
            # components err independently by eps of their size, the input by eps, the angle by eps of itself
            tolerance = 16 * eps * (1 + length)
            y, w, projected = (np.asarray(part, float) for part in (y, w, projected))
            assert abs(y @ y - 1) <= tolerance
            assert abs(y @ w) <= tolerance * speed
            assert abs(np.linalg.norm(w) - speed) <= tolerance * speed
            # the inner product of n numbers, summed in the precision itself
            assert abs(projected @ projected - 1) <= (8 + n) * eps
            assert inside
            circle = x.astype(float) * np.cos(length) + u.astype(float) * np.sin(length)
            assert np.linalg.norm(y - circle) <= tolerance


def test_contains_refuses_a_point_that_is_off_by_more_than_roundoff_in_high_dimension():
    manifold = Sphere(5000)
    x, _ = start(5000, 1)
    contains = jax.jit(manifold.contains)
    assert bool(contains(x))
    assert not bool(contains(x * (1 + 1e-11)))
    single = x.astype(np.float32)
    assert bool(contains(single))
    assert not bool(contains(jnp.asarray(1.001, jnp.float32) * single))
