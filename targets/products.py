"""Laws on the product of a curved or bounded space and a line, as tuples of a point and an array of one number."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr, roots_hermitenorm

from sgmcmc_verification.targets.directional.product_laws import independent, oracles_of
from sgmcmc_verification.targets.directional.von_mises_fisher import von_mises_fisher
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian import scaled
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.positive.truncated_gaussian import truncated_gaussian
from sgmcmc_verification.targets.simplex.dirichlet import concentrated
from sgmcmc_verification.targets.target import Cdf, Moment, Position, Target

SHARE = 0.2
"""Standard deviation of the number on the line given the point, over that of the coordinate that it follows."""


def followed(part: Target, name: str, squares: str, spread: float | None = None) -> Target:
    """The law of (x, z) with x from a part and a normal z whose mean is the first coordinate of x.

        U(x, z) = U_1(x) + (z - x_1)^2 / (2 s^2);  E z = E x_1, E z^2 = E x_1^2 + s^2, E x_1 z = E x_1^2

    x and z are far from independent, so that a sampler which moves them in turn, and works out the test of the second
    from where the first was, is off here: on independent parts what it leaves out does not depend on the second.

    Source: the law of z given x; the oracles of x are those of the part.

    Args:
        part: a target whose positions are vectors.
        name: name of the target.
        squares: name of the moment E x_1^2 of the part.
        spread: s; `SHARE` standard deviations of x_1 by default.
    """
    mean, square = part.moments["theta[0]"], part.moments[squares]
    s = SHARE * math.sqrt(square.value - mean.value**2) if spread is None else spread
    moments, cdfs = oracles_of(part, 0)

    def sample(key: jax.Array, n: int) -> Position:
        assert part.sample is not None
        first, second = jax.random.split(key)
        x = part.sample(first, n)
        return x, x[:, :1] + s * jax.random.normal(second, (n, 1), x.dtype)

    def quadrature(n: int) -> tuple[np.ndarray, np.ndarray]:
        assert part.quadrature is not None
        points, weights = part.quadrature(n)
        line, line_weights = roots_hermitenorm(n)
        both = np.repeat(points, n, axis=0)
        z = both[:, :1] + s * np.tile(line, len(points))[:, None]
        return np.concatenate([both, z], axis=1), np.outer(weights, line_weights / line_weights.sum()).ravel()

    def tempered(temperature: float) -> Target:
        assert part.tempered is not None
        return followed(part.tempered(temperature), name, squares, math.sqrt(temperature) * s)

    return Target(
        name=name,
        manifold=Product((part.manifold, Euclidean(1))),
        example=(part.example, part.example[:1] + s / 2),
        potential=lambda x: part.potential(x[0]) + jnp.sum((x[1] - x[0][:1]) ** 2) / (2 * s**2),
        sample=sample,
        moments={
            **moments,
            "1:theta[0]": Moment(lambda x: x[1][..., 0], mean.value, mean.error),
            "1:theta[0]^2": Moment(lambda x: x[1][..., 0] ** 2, square.value + s**2, square.error),
            "0:theta[0]*1:theta[0]": Moment(lambda x: x[0][..., 0] * x[1][..., 0], square.value, square.error),
        },
        cdfs={**cdfs, "distance": Cdf(lambda x: (x[1][..., 0] - x[0][..., 0]) / s, ndtr)},
        quadrature=quadrature,
        # of the sum: the largest eigenvalue of [[1, -1], [-1, 1]] / s^2 is 2 / s^2
        curvature=part.curvature + 2 / s**2,
        tempered=tempered,
        source=f"{part.source}; the law of z given x",
    )


def _half() -> Target:
    return truncated_gaussian([1.0], [[1.0]], "positive part")


def sphere_and_line() -> Target:
    """A von Mises-Fisher law on S^2 and a Gaussian one on R."""
    return independent((von_mises_fisher(), scaled()), "vmf-s2-and-line")


def positive_and_line() -> Target:
    """N(1, 1) given x > 0, whose density has a slope at 0, and a Gaussian law on R."""
    return independent((_half(), scaled()), "positive-and-line")


def simplex_and_line() -> Target:
    """A Dirichlet law on three probabilities and a Gaussian one on R."""
    return independent((concentrated(), scaled()), "dirichlet-and-line")


def followed_sphere() -> Target:
    """A von Mises-Fisher law on S^2, and a number near the first coordinate."""
    return followed(von_mises_fisher(), "vmf-s2-followed", "theta[0]*theta[0]")


def followed_positive() -> Target:
    """N(1, 1) given x > 0, and a number near x."""
    return followed(_half(), "positive-followed", "theta[0]^2")


def followed_simplex() -> Target:
    """A Dirichlet law on three probabilities, and a number near the first of them."""
    return followed(concentrated(), "dirichlet-followed", "theta[0]^2")


ENTRIES = (
    TargetRow("vmf-s2-and-line", sphere_and_line),
    TargetRow("positive-and-line", positive_and_line),
    TargetRow("dirichlet-and-line", simplex_and_line),
    TargetRow("vmf-s2-followed", followed_sphere),
    TargetRow("positive-followed", followed_positive),
    TargetRow("dirichlet-followed", followed_simplex),
)
