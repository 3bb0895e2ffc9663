"""The Gaussian law restricted to the unit box."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian import require_gaussian
from sgmcmc_verification.targets.manifolds.box import Box
from sgmcmc_verification.targets.numerics.quadrature import (
    DensityLaw,
    Rule,
    coordinate,
    legendre_rule,
    power,
    product,
    rejection,
)
from sgmcmc_verification.targets.target import Cdf, Moment, Target

NODES = 32
"""Nodes of a coordinate for moments and distribution functions; half of them tell the error."""
MOST = 2
"""Coordinates that a law may have: all answers are integrals over the box."""


def gaussian_in_box(mean: Any, covariance: Any, name: str) -> Target:
    """N(m, S) given 0 <= x <= 1, density with respect to Lebesgue measure on [0, 1]^n.

        U(x) = (x - m)^T S^-1 (x - m) / 2

    It vanishes at no face and has a slope there, so that what a step does at a face is a part of the law. Draws by
    rejection from the uniform law; all else by Gauss-Legendre rules, whose error falls geometrically.

    Source: quadrature.

    Args:
        mean: m (n,), n at most 2.
        covariance: S (n, n), symmetric positive definite.
        name: name of the target.

    Raises:
        ValueError: if an argument is out of range.
    """
    mean, covariance = np.array(mean, np.float64), np.array(covariance, np.float64)
    require_gaussian(mean, covariance)
    n = len(mean)
    if n > MOST:
        raise ValueError(f"mean: must have at most {MOST} coordinates, got {n}")
    precision = np.linalg.inv(covariance)

    def energy(points: np.ndarray) -> np.ndarray:
        return np.sum((points - mean) @ precision * (points - mean), axis=-1) / 2

    def potential(x: jax.Array) -> jax.Array:
        d = x - jnp.asarray(mean, x.dtype)
        return d @ jnp.asarray(precision, x.dtype) @ d / 2

    def rule(nodes: int) -> Rule:
        x, w = legendre_rule(0.0, 1.0, 1, nodes)
        points = np.stack(np.meshgrid(*[x] * n, indexing="ij"), axis=-1).reshape(-1, n)
        weights = np.prod(np.stack(np.meshgrid(*[w] * n, indexing="ij"), axis=-1), axis=-1).ravel()
        weights = weights * np.exp(-energy(points))
        return points, weights / weights.sum()

    propose = lambda key, count: jax.random.uniform(key, (count, n))
    fine, coarse = rule(NODES), rule(NODES // 2)

    def moment(function: Callable[[Any], jax.Array], host: Callable[[np.ndarray], np.ndarray]) -> Moment:
        value, other = (float(weights @ host(points)) for points, weights in (fine, coarse))
        return Moment(function, value, abs(value - other) + 1e-15)

    moments, cdfs = {}, {}
    for i in range(n):
        for k in (1, 2, 4):
            label = f"x[{i}]" + (f"^{k}" if k > 1 else "")
            moments[label] = moment(power(i, k), lambda x, i=i, k=k: x[:, i] ** k)
        cdfs[f"x[{i}]"] = Cdf(coordinate(i), _marginal(energy, n, i).cdf)
    if n == 2:
        moments["x[0]*x[1]"] = moment(product(0, 1), lambda x: x[:, 0] * x[:, 1])
    return Target(
        name=name,
        manifold=Box(n),
        example=jnp.asarray(0.3 + 0.4 * np.clip(mean, 0, 1)),
        potential=potential,
        sample=lambda key, count: rejection(key, count, propose, lambda x: -potential(x)),
        moments=moments,
        cdfs=cdfs,
        quadrature=rule,
        curvature=float(np.linalg.eigvalsh(precision)[-1]),
        tempered=lambda t: gaussian_in_box(mean, t * covariance, f"{name} at temperature {t:g}"),
        source="quadrature",
    )


def _marginal(energy: Any, n: int, i: int) -> DensityLaw:
    """A coordinate, by quadrature over the other one."""
    x, w = legendre_rule(0.0, 1.0, 1, NODES)

    def density(values: ArrayLike) -> np.ndarray:
        at = np.asarray(values, np.float64)[..., None]
        if n == 1:
            return np.exp(-energy(at))
        pair = np.stack(np.broadcast_arrays(at, x), axis=-1)
        return np.exp(-energy(pair if i == 0 else pair[..., ::-1])) @ w

    return DensityLaw(density, (0.0, 1.0), 4)


def in_interval() -> Target:
    """One coordinate, N(0.2, 0.09) given 0 <= x <= 1: most of its mass is near the lower face."""
    return gaussian_in_box([0.2], [[0.09]], "truncated-interval")


def in_square() -> Target:
    """Two correlated coordinates, the mean of one of them above the upper face."""
    return gaussian_in_box([0.2, 1.1], [[0.12, 0.08], [0.08, 0.2]], "truncated-box")


ENTRIES = (
    TargetRow("truncated-interval", in_interval),
    TargetRow("truncated-box", in_square),
)
