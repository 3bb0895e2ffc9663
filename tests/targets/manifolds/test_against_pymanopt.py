"""Manifolds against pymanopt: exponential map, projection, dimension, length; its retractions are seen to differ."""

import numpy as np
import pymanopt.manifolds as oracle
import pytest

from tests.helpers.manifold_examples import EPS, Space, spaces

pytestmark = pytest.mark.xdist_group("manifolds")
LENGTHS = (1e-5, 0.4, 2.5)


def rows(x):
    """(k n,) -> (n, k): pymanopt has the spheres in columns."""
    return x.reshape(2, 3).T


CASES = {
    "euclidean(3)": (oracle.Euclidean(3), lambda x: x),
    "sphere(1)": (oracle.Sphere(2), lambda x: x),
    "sphere(4)": (oracle.Sphere(5), lambda x: x),
    "sphere(2)^2": (oracle.Oblique(3, 2), rows),
    "stiefel(3,2)": (oracle.Stiefel(3, 2), lambda x: x.reshape(3, 2)),
    "stiefel(3,3)": (oracle.Stiefel(3, 3), lambda x: x.reshape(3, 3)),
}
every_case = pytest.mark.parametrize("name", sorted(CASES))


def case(name: str) -> tuple[Space, oracle.manifold.Manifold, object]:
    return spaces()[name], *CASES[name]


@every_case
def test_the_exponential_map_is_that_of_pymanopt_and_its_retraction_is_not(name):
    space, other, shape = case(name)
    for seed in range(3):
        x = space.draw(seed)
        for length in LENGTHS:
            v = space.tangent_vector(x, seed, length)
            y, _ = space.flow(x, v, 1.0)
            error = np.max(np.abs(shape(y) - other.exp(shape(x), shape(v))))
            allowance = 32 * len(x) * EPS * space.growth(length)
            assert error <= allowance
        if name != "euclidean(3)":
            assert np.max(np.abs(shape(y) - other.retraction(shape(x), shape(v)))) > 1e6 * allowance


@every_case
def test_projection_dimension_and_length_are_those_of_pymanopt(name):
    space, other, shape = case(name)
    assert space.manifold.dim == other.dim
    rng = np.random.default_rng(100)
    for seed in range(3):
        x = space.draw(seed)
        u = rng.normal(size=len(x))
        mine = space.point_maps(x, u)[1]
        theirs = other.projection(shape(x), shape(u))
        np.testing.assert_allclose(shape(mine), theirs, rtol=0, atol=16 * len(x) * EPS * np.linalg.norm(u))
        # the metric is that of the embedding
        np.testing.assert_allclose(other.norm(shape(x), theirs), np.linalg.norm(mine), rtol=16 * len(x) * EPS)
