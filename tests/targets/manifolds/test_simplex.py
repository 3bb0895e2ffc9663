"""The flat simplex: reflections against unfolding and exact rational paths, sparse points, bounded work, its law."""

from fractions import Fraction
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.simplex import Simplex

EPS = np.finfo(np.float64).eps
EXAMPLES = settings(deadline=None, max_examples=25, derandomize=True)
seeds = st.integers(0, 2**31 - 1)
pytestmark = pytest.mark.xdist_group("manifolds")


@cache
def flow(size, max_reflections=10_000):
    """Jitted geodesic of a simplex."""
    return jax.jit(Simplex(size, max_reflections).geodesic)


def start(size, seed, speed=1.0):
    """A uniform point and a tangent vector of a given length, from NumPy."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=size)
    v -= v.mean()
    return rng.dirichlet(np.ones(size)), speed * v / np.linalg.norm(v)


def rational_path(x, v, time):
    """Exact path in rational numbers, the normal of a face being e_j - 1/K: end point, end velocity, reflections."""
    size = len(x)
    x, v, left = [Fraction(float(c)) for c in x], [Fraction(float(c)) for c in v], Fraction(float(time))
    mean = sum(v) / size
    v = [c - mean for c in v]
    count = 0
    while True:
        hits = [(x[j] / -v[j], j) for j in range(size) if v[j] < 0]
        first, j = min(hits) if hits else (left, 0)
        step = min(first, left)
        x = [a + step * b for a, b in zip(x, v, strict=True)]
        left -= step
        if first >= left + step:
            return np.array(x, float), np.array(v, float), count
        normal = [Fraction(int(i == j)) - Fraction(1, size) for i in range(size)]
        along = sum(a * b for a, b in zip(v, normal, strict=True)) / sum(n * n for n in normal)
        v = [a - 2 * along * n for a, n in zip(v, normal, strict=True)]
        count += 1


def roundoff(length, count):
    """As the manifold says: (1 + L) (1 + r) eps."""
    return 16 * EPS * (1 + length) * (1 + count)


@EXAMPLES
@given(seeds, st.floats(-30, 30))
def test_two_corners_give_a_triangular_wave(seed, length):
    x, v = start(2, seed)
    y, w = flow(2)(x, v, length)
    unfolded = x[0] + length * v[0]
    phase, tolerance = unfolded % 2, roundoff(abs(length), abs(length))
    assert abs(y[0] - min(phase, 2 - phase)) <= tolerance
    if min(phase % 1, 1 - phase % 1) > tolerance:
        assert abs(w[0] - (v[0] if phase < 1 else -v[0])) <= tolerance


@EXAMPLES
@given(seeds, st.floats(-10, 10))
def test_three_corners_give_the_straight_line_folded_into_the_triangle(seed, length):
    x, v = start(3, seed)
    y, w = flow(3)(x, v, length)
    # The triangles of reflections tile the plane, so folding the end of the straight line gives the end of the path.
    end, turned = x + length * v, v.copy()
    folds = 0
    while end.min() < 0:
        j = np.argmin(end)
        for vector in (end, turned):
            vector += vector[j] * np.array([1.0, 1.0, 1.0]) - 3 * vector[j] * np.eye(3)[j]
        folds += 1
    tolerance = roundoff(abs(length), 2 * folds)
    assert np.max(np.abs(y - end)) <= tolerance
    if end.min() > tolerance:
        assert np.max(np.abs(w - turned)) <= tolerance


@settings(EXAMPLES, max_examples=10)
@given(seeds, st.floats(-2, 2))
def test_five_corners_give_the_exact_rational_path(seed, time):
    x, v = start(5, seed)
    y, w = flow(5)(x, v, time)
    sign = -1.0 if time < 0 else 1.0
    end, turned, count = rational_path(x, sign * v, abs(time))
    assert np.max(np.abs(y - end)) <= roundoff(abs(time), count)
    assert np.max(np.abs(w - sign * turned)) <= roundoff(abs(time), count)


@pytest.mark.parametrize("tiny", [0.0, 1e-300, 1e-17])
def test_coordinates_far_below_roundoff_are_reflected_and_kept_inside(tiny):
    x = np.array([tiny, 3 * tiny, 0.25, tiny, 0.75])
    x /= x.sum()
    for seed in range(4):
        _, v = start(5, seed)
        v[0] = -abs(v[0])
        v -= v.mean()
        y, w = flow(5)(x, v, 0.4)
        end, turned, count = rational_path(x, v, 0.4)
        assert count >= 1
        assert np.min(y) >= 0
        assert np.max(np.abs(y - end)) <= roundoff(0.4, count)
        assert np.max(np.abs(w - turned)) <= roundoff(0.4, count)
        back, _ = flow(5)(y, -w, 0.4)
        assert np.max(np.abs(back - x)) <= 2 * roundoff(0.4, count)


def test_single_precision_reflects_the_smallest_numbers_too():
    x = np.array([2e-38, 1e-30, 0.25, 0.0, 0.75], np.float32)
    v = np.array([-1.0, -0.5, 0.25, -0.25, 1.5], np.float32)
    with jax.numpy_dtype_promotion("strict"):
        y, w = flow(5)(x, v, np.float32(0.125))
    end, turned, count = rational_path(x, v, 0.125)
    assert y.dtype == w.dtype == np.float32
    assert np.min(y) >= 0
    scale = float(np.finfo(np.float32).eps) / EPS
    assert np.max(np.abs(y - end)) <= scale * roundoff(np.linalg.norm(v), count)
    assert np.max(np.abs(w - turned)) <= scale * roundoff(np.linalg.norm(v), count)


def test_a_path_with_too_many_reflections_turns_round_which_is_reversible_and_bounded():
    bounded, free = flow(4, 2), flow(4)
    turned = followed = 0
    for seed in range(30):
        x, v = start(4, seed)
        *_, count = rational_path(x, v, 1.0)
        y, w = bounded(x, v, 1.0)
        if count > 2:
            turned += 1
            np.testing.assert_array_equal(y, x)
            np.testing.assert_array_equal(w, -v)
        else:
            followed += 1
            np.testing.assert_array_equal(np.stack([y, w]), np.stack(free(x, v, 1.0)))
        back, reverse = bounded(y, -w, 1.0)
        assert np.max(np.abs(back - x)) <= roundoff(2, 4)
        assert np.max(np.abs(reverse + v)) <= roundoff(2, 4)
    assert min(turned, followed) >= 3


@cache
def moved(max_reflections, n=20_000):
    """Uniform points (n, 4) after a flow for time 0.6 with standard normal tangent velocities."""
    manifold = Simplex(4, max_reflections)
    rng = np.random.default_rng(7)
    x, v = rng.dirichlet(np.ones(4), size=n), rng.normal(size=(n, 4))
    v -= v.mean(axis=1, keepdims=True)
    return np.asarray(jax.jit(jax.vmap(manifold.geodesic, (0, 0, None)))(x, v, 0.6)[0]), x


@pytest.mark.parametrize("max_reflections", [10_000, 1])
def test_the_flow_keeps_the_uniform_law_also_when_its_work_is_bounded(max_reflections):
    points, before = moved(max_reflections)
    if max_reflections > 1:
        assert np.mean(np.all(points == before, axis=1)) == 0
    else:
        assert 0.1 < np.mean(np.all(points == before, axis=1)) < 0.9
    n = len(points)
    # each coordinate is Beta(1, 3); DKW at 1e-7 for each of eight
    for column in np.sort(points, axis=0).T:
        distance = np.max(np.abs(1 - (1 - column) ** 3 - np.arange(1, n + 1) / n))
        assert distance <= np.sqrt(np.log(2 / 1e-7) / (2 * n)) + 1 / n


def test_a_batch_of_paths_is_the_same_paths_one_at_a_time():
    points, before = moved(10_000)
    rng = np.random.default_rng(7)
    rng.dirichlet(np.ones(4), size=len(points))
    v = rng.normal(size=(len(points), 4))
    v -= v.mean(axis=1, keepdims=True)
    for i in range(5):
        y, _ = flow(4)(before[i], v[i], 0.6)
        # the two programs may order sums differently
        assert np.max(np.abs(y - points[i])) <= roundoff(3, 12)


def test_a_corner_is_left_and_a_path_without_motion_stays():
    corner = np.array([0.0, 0.0, 0.0, 1.0])
    y, _ = flow(4)(corner, np.array([-1.0, -1.0, 1.0, 1.0]), 0.25)
    assert bool(Simplex(4).contains(y))
    assert abs(y[3] - 1) > 0.1
    y, w = flow(4)(corner, np.zeros(4), 5.0)
    np.testing.assert_array_equal(np.stack([y, w]), np.stack([corner, np.zeros(4)]))
    assert np.all(np.isnan(flow(4)(corner, np.full(4, np.nan), 1.0)[0]))


def test_lines_are_reflected_where_a_coordinate_of_the_positive_orthant_is_zero():
    manifold = Positive(3)
    point = {"a": np.array([1.0, 2.0]), "b": np.array(0.5)}
    velocity = {"a": np.array([-1.0, 1.0]), "b": np.array(-4.0)}
    moved_point, turned = manifold.geodesic(point, velocity, 2.0)
    np.testing.assert_array_equal(moved_point["a"], [1.0, 4.0])
    np.testing.assert_array_equal(turned["a"], [1.0, 1.0])
    assert (moved_point["b"], turned["b"]) == (7.5, 4.0)
    edge, kept = Positive(2).geodesic(np.array([1.0, 1.0]), np.array([-1.0, 0.0]), 1.0)
    assert not bool(Positive(2).contains(edge))
    np.testing.assert_array_equal(Positive(2).geodesic(edge, kept, 1.0)[0], [1.0, 1.0])
    assert not bool(Positive(2).contains(jnp.array([1.0, jnp.inf])))
