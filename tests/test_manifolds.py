"""Manifolds: geodesics keep constraint, tangency and speed, and run backwards; edge cases of the sphere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from targets.manifolds.base import Manifold
from targets.manifolds.euclidean import Euclidean
from targets.manifolds.positive import Positive
from targets.manifolds.sphere import Sphere

EPS = np.finfo(np.float64).eps
EXAMPLES = settings(deadline=None, max_examples=25, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
times = st.floats(-10, 10, allow_subnormal=False)


def tangent_vector(n, seed, speed):
    """A unit point and a tangent vector of given speed, from NumPy."""
    rng = np.random.default_rng(seed)
    point = rng.normal(size=n)
    point /= np.linalg.norm(point)
    vector = rng.normal(size=n)
    vector -= point * (point @ vector)
    return point, speed * vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    ("manifold", "name", "dim"),
    [(Euclidean(3), "euclidean(3)", 3), (Positive(2), "positive(2)", 2), (Sphere(3), "sphere(2)", 2)],
)
def test_manifolds_follow_the_protocol_with_their_intrinsic_dimension(manifold, name, dim):
    assert isinstance(manifold, Manifold)
    assert (manifold.name, manifold.dim) == (name, dim)
    point = manifold.random(jax.random.key(3))
    assert bool(manifold.contains(point))
    assert not bool(manifold.contains(point * jnp.nan))
    assert hash(manifold) == hash(type(manifold)(*vars(manifold).values()))


@pytest.mark.parametrize(("build", "argument"), [(Euclidean, "dim"), (Positive, "dim"), (Sphere, "n")])
def test_a_dimension_out_of_range_is_refused_by_name(build, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        build(0)


def test_geodesics_of_flat_space_are_straight_on_pytrees():
    manifold = Euclidean(3)
    point = {"a": np.array([1.0, -2.0]), "b": np.array(0.5)}
    velocity = {"a": np.array([0.25, 4.0]), "b": np.array(-1.5)}
    moved, kept = manifold.geodesic(point, velocity, 2.0)
    np.testing.assert_array_equal(moved["a"], [1.5, 6.0])
    assert moved["b"] == -2.5
    assert kept is velocity
    assert manifold.tangent(point, velocity) is velocity
    assert manifold.project_roundoff(point) is point
    assert bool(manifold.contains(point))
    assert not bool(manifold.contains({"a": np.array([1.0, np.inf]), "b": np.array(0.5)}))


def test_a_line_may_leave_the_positive_orthant_and_contains_says_so():
    manifold = Positive(2)
    point, velocity = np.array([1.0, 2.0]), np.array([-1.0, 1.0])
    inside, _ = manifold.geodesic(point, velocity, 0.5)
    edge, _ = manifold.geodesic(point, velocity, 1.0)
    outside, _ = manifold.geodesic(point, velocity, 2.0)
    np.testing.assert_array_equal(outside, [-1.0, 4.0])
    assert [bool(manifold.contains(x)) for x in (inside, edge, outside)] == [True, False, False]
    assert not bool(manifold.contains(np.array([1.0, np.inf])))


@EXAMPLES
@given(st.integers(2, 6), seeds, st.floats(1e-3, 5), times)
def test_great_circles_keep_constraint_tangency_and_speed_and_run_backwards(n, seed, speed, time):
    manifold = Sphere(n)
    x, v = tangent_vector(n, seed, speed)
    y, w = manifold.geodesic(x, v, time)
    # the angle speed * time is known to eps * |angle|
    tolerance = 8 * n * EPS * (1 + abs(speed * time))
    assert abs(y @ y - 1) <= tolerance
    assert abs(y @ w) <= tolerance * speed
    assert abs(np.linalg.norm(w) - speed) <= tolerance * speed
    back, velocity = manifold.geodesic(y, -w, time)
    assert np.max(np.abs(back - x)) <= 4 * tolerance
    assert np.max(np.abs(velocity + v)) <= 4 * tolerance * speed


@EXAMPLES
@given(seeds, st.floats(0.1, 3), st.floats(-3, 3))
def test_a_great_circle_is_the_rotation_in_its_plane(seed, speed, time):
    x, v = tangent_vector(4, seed, speed)
    generator = np.outer(v, x) - np.outer(x, v)  # skew, takes x to v
    values, vectors = np.linalg.eigh(1j * generator)
    rotation = (vectors * np.exp(-1j * values * time)) @ vectors.conj().T
    y, w = Sphere(4).geodesic(x, v, time)
    tolerance = 64 * EPS * (1 + abs(speed * time))
    np.testing.assert_allclose(y, (rotation @ x).real, rtol=0, atol=tolerance)
    np.testing.assert_allclose(w, (rotation @ v).real, rtol=0, atol=tolerance * speed)


@EXAMPLES
@given(st.integers(2, 6), seeds)
def test_the_tangent_projection_is_orthogonal(n, seed):
    rng = np.random.default_rng(seed)
    x, _ = tangent_vector(n, seed, 1.0)
    u, w = rng.normal(size=(2, n))
    project = Sphere(n).tangent
    tolerance = 8 * n * EPS * (1 + np.linalg.norm(u)) * (1 + np.linalg.norm(w))
    assert abs(x @ project(x, u)) <= tolerance
    assert np.max(np.abs(project(x, project(x, u)) - project(x, u))) <= tolerance
    assert abs(w @ project(x, u) - project(x, w) @ u) <= tolerance  # symmetric


def test_at_zero_speed_the_point_stays_and_derivatives_are_finite():
    manifold, x = Sphere(3), jnp.array([0.6, 0.0, 0.8])
    y, w = manifold.geodesic(x, jnp.zeros(3), 2.0)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(w, np.zeros(3))
    derivative = jax.jacobian(lambda v: manifold.geodesic(x, v, 2.0)[0])(jnp.zeros(3))
    np.testing.assert_array_equal(derivative, 2.0 * np.eye(3))  # x + t v to first order


def test_roundoff_projection_returns_to_the_sphere_and_moves_a_valid_point_by_roundoff():
    manifold = Sphere(3)
    x = manifold.random(jax.random.key(0))
    assert np.max(np.abs(manifold.project_roundoff(x) - x)) <= 2 * EPS
    drifted = x * (1 + 1e-9)
    assert not bool(manifold.contains(drifted))
    assert bool(manifold.contains(manifold.project_roundoff(drifted)))


def test_random_points_of_the_sphere_are_uniform():
    points = jax.vmap(Sphere(3).random)(jax.random.split(jax.random.key(1), 20_000))
    # on the two-sphere each coordinate is uniform on (-1, 1) [Archimedes]
    distance = np.max(np.abs(np.sort(points, axis=0) - np.linspace(-1, 1, 20_000)[:, None])) / 2
    # DKW: P(distance > e) <= 2 exp(-2 n e^2), here 3e-7 per coordinate; 1/n for the step of the empirical law
    assert distance <= np.sqrt(np.log(2 / 3e-7) / (2 * 20_000)) + 1 / 20_000


@pytest.mark.parametrize("manifold", [Euclidean(3), Positive(3), Sphere(3)])
def test_single_precision_stays_single(manifold):
    x = jnp.array([0.6, 0.64, 0.48], jnp.float32)
    with jax.numpy_dtype_promotion("strict"):
        y, w = manifold.geodesic(x, manifold.tangent(x, jnp.ones(3, jnp.float32)), 0.5)
        assert {y.dtype, w.dtype, manifold.project_roundoff(y).dtype} == {jnp.dtype("float32")}
        assert bool(manifold.contains(y))
