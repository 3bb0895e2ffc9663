"""Small manifolds with their constraints written in NumPy, and what a geodesic flow has to satisfy, as numbers.

Every constraint here is a quadratic polynomial c(x) = 0, so its derivatives are differences: exact, and independent of
the code under test.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.box import Box
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel

EPS = np.finfo(np.float64).eps


class Shape(NamedTuple):
    """A manifold without the code under test, in flat coordinates.

    Attributes:
        constraint: flat point (n,) -> residuals (m,), quadratic, with independent gradients on the manifold.
        draw: generator -> a random point (n,).
        growth: path length -> factor by which round-off grows along it, as the manifold's docstring states.
    """

    constraint: Callable[[np.ndarray], np.ndarray]
    draw: Callable[[np.random.Generator], np.ndarray]
    growth: Callable[[float], float] = lambda length: 1 + length


def flat(n: int, positive: bool = False) -> Shape:
    """R^n, or its positive orthant."""
    return Shape(lambda x: np.zeros(0), lambda rng: rng.exponential(size=n) if positive else rng.normal(size=n))


def simplex(size: int) -> Shape:
    """Sum one. The growth is the path length times the number of reflections, 0.4 L K^(3/2)."""
    return Shape(
        lambda x: np.array([x.sum() - 1]),
        lambda rng: rng.dirichlet(np.ones(size)),
        lambda length: (1 + length) * (1 + length * size**1.5),
    )


def spheres(count: int, n: int) -> Shape:
    """Rows of length one."""

    def draw(rng):
        x = rng.normal(size=(count, n))
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).ravel()

    return Shape(lambda x: (x.reshape(count, n) ** 2).sum(axis=1) - 1, draw)


def frames(n: int, p: int) -> Shape:
    """X^T X = I for an (n, p) matrix; for n < 2 p the block of its geodesic has Jordan chains and errors grow twice."""

    def constraint(x):
        frame = x.reshape(n, p)
        return (frame.T @ frame - np.eye(p))[np.triu_indices(p)]

    return Shape(
        constraint, lambda rng: np.linalg.qr(rng.normal(size=(n, p)))[0].ravel(), lambda length: (1 + length) ** 2
    )


def joined(*parts: Shape) -> Shape:
    """The product, its coordinates one after the other."""
    sizes = [len(part.draw(np.random.default_rng(0))) for part in parts]

    def constraint(x):
        pieces = np.split(x, np.cumsum(sizes)[:-1])
        return np.concatenate([part.constraint(piece) for part, piece in zip(parts, pieces, strict=True)])

    return Shape(
        constraint,
        lambda rng: np.concatenate([part.draw(rng) for part in parts]),
        lambda length: max(part.growth(length) for part in parts),
    )


class Space:
    """A manifold in flat coordinates, with jitted maps that all tests share.

    Args:
        manifold: what is tested.
        shape: what it should be.
    """

    def __init__(self, manifold: Manifold, shape: Shape):
        self.manifold, self.constraint, self.growth = manifold, shape.constraint, shape.growth
        self.draw = lambda seed: shape.draw(np.random.default_rng(seed))

    @cached_property
    def unravel(self) -> Callable[[Any], Any]:
        example = jax.eval_shape(self.manifold.random, jax.random.key(0))
        return ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape), example))[1]

    @cached_property
    def flow(self) -> Callable[..., Any]:
        """(point, velocity, time) -> (point, velocity), flat."""

        def flow(x, v, time):
            y, w = self.manifold.geodesic(self.unravel(x), self.unravel(v), time)
            return ravel_pytree(y)[0], ravel_pytree(w)[0]

        compiled = jax.jit(flow)
        return lambda x, v, time: tuple(np.asarray(part) for part in compiled(x, v, time))

    @cached_property
    def jet(self) -> Callable[..., Any]:
        """(point, u, s) -> point, first and second derivative in s of the geodesic with velocity s u at time 1."""

        def jet(x, u, s):
            def path(s):
                return ravel_pytree(self.manifold.geodesic(self.unravel(x), self.unravel(s * u), 1.0)[0])[0]

            def slope(s):
                return jax.jvp(path, (s,), (1.0,))

            (y, first), (_, second) = jax.jvp(slope, (s,), (1.0,))
            return y, first, second

        compiled = jax.jit(jet)
        return lambda x, u, s: tuple(np.asarray(part) for part in compiled(x, u, s))

    @cached_property
    def point_maps(self) -> Callable[..., Any]:
        """Flat point and vector -> point after `project_roundoff`, tangent vector, mean curvature, `contains`."""

        def maps(x, u):
            m, point = self.manifold, self.unravel(x)
            parts = (m.project_roundoff(point), m.tangent(point, self.unravel(u)), m.mean_curvature(point))
            return *(ravel_pytree(part)[0] for part in parts), m.contains(point)

        compiled = jax.jit(maps)
        return lambda x, u: tuple(np.asarray(part) for part in compiled(x, u))

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Derivative (m, n) of the constraint."""
        unit = np.eye(len(x))
        return np.stack([self.constraint(x + e) - self.constraint(x - e) for e in unit], axis=-1) / 2

    def curvature(self, u: np.ndarray) -> np.ndarray:
        """Second derivative (m,) of the constraint along u."""
        return self.constraint(u) + self.constraint(-u) - 2 * self.constraint(0 * u)

    def tangent_basis(self, x: np.ndarray) -> np.ndarray:
        """Orthonormal basis (dim, n) of the null space of the Jacobian."""
        jacobian = self.jacobian(x)
        return np.linalg.svd(jacobian)[2][len(jacobian) :]

    def tangent_vector(self, x: np.ndarray, seed: int, speed: float) -> np.ndarray:
        """A random tangent vector (n,) of a given length."""
        basis = self.tangent_basis(x)
        u = np.random.default_rng(seed).normal(size=len(basis)) @ basis
        return speed * u / np.linalg.norm(u)

    def acceleration(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Second derivative (n,) of a geodesic: the normal vector that keeps c(x(t)) = 0 to second order."""
        return -np.linalg.pinv(self.jacobian(x)) @ self.curvature(u)


class Violation(NamedTuple):
    """An error and the round-off that is granted."""

    error: float
    allowance: float

    @property
    def holds(self) -> bool:
        return bool(self.error <= self.allowance)


def flow_violations(space: Space, seed: int, speed: float, length: float) -> dict[str, Violation]:
    """What a geodesic of some speed and (signed) length does: errors and allowances by property."""
    x = space.draw(seed)
    v = space.tangent_vector(x, seed + 1, speed)
    time = length / speed
    y, w = space.flow(x, v, time)
    size = len(x) * EPS * (1 + np.abs(x).max())
    allowance = 4 * size * space.growth(abs(length))
    normal = space.jacobian(y) @ w
    back, reverse = space.flow(y, -w, time)
    undone, forwards = space.flow(y, w, -time)
    half, turn = space.flow(*space.flow(x, v, 0.3 * time), 0.7 * time)
    errors = {
        "constraint": (np.max(np.abs(space.constraint(y)), initial=0), 1),
        "tangency": (np.max(np.abs(normal), initial=0), speed),
        "speed": (abs(np.linalg.norm(w) - speed), speed),
        "reversed point": (np.max(np.abs(back - x)), 4),
        "reversed velocity": (np.max(np.abs(reverse + v)), 4 * speed),
        "inverse point": (np.max(np.abs(undone - x)), 4),
        "inverse velocity": (np.max(np.abs(forwards - v)), 4 * speed),
        "composed point": (np.max(np.abs(half - y)), 4),
        "composed velocity": (np.max(np.abs(turn - w)), 4 * speed),
    }
    return {name: Violation(float(error), float(scale * allowance)) for name, (error, scale) in errors.items()}


def jet_violations(space: Space, seed: int, at: float) -> dict[str, Violation]:
    """Derivatives of a unit-speed geodesic at arc length `at` (0: of the exponential map at zero velocity)."""
    x = space.draw(seed)
    u = space.tangent_vector(x, seed + 1, 1.0)
    y, first, second = space.jet(x, u, at)
    _, w = space.flow(x, u, at)
    allowance = 256 * len(x) * EPS * space.growth(at)
    return {
        "velocity": Violation(float(np.max(np.abs(first - w))), allowance),
        "acceleration": Violation(float(np.max(np.abs(second - space.acceleration(y, first)))), allowance),
    }


@cache
def spaces() -> dict[str, Space]:
    """The small manifolds, by name."""
    product = Product((Sphere(2), Simplex(3), Euclidean(2)))
    found = [
        Space(Euclidean(3), flat(3)),
        Space(Positive(2), flat(2, positive=True)),
        Space(Box(2), Shape(lambda x: np.zeros(0), lambda rng: rng.uniform(size=2))),
        Space(Sphere(2), spheres(1, 2)),
        Space(Sphere(5), spheres(1, 5)),
        Space(ProductOfSpheres(2, 3), spheres(2, 3)),
        Space(Simplex(2), simplex(2)),
        Space(Simplex(5), simplex(5)),
        Space(Stiefel(3, 2), frames(3, 2)),
        Space(Stiefel(3, 3), frames(3, 3)),
        Space(product, joined(spheres(1, 2), simplex(3), flat(2))),
    ]
    return {space.manifold.name: space for space in found}
