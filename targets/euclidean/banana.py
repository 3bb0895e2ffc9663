"""A two-dimensional banana with heavy curvature and light tails."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import (
    DensityLaw,
    coordinate,
    legendre_rule,
    power,
    product,
    standard_normal_rule,
)
from sgmcmc_verification.targets.target import Cdf, Moment, Target

REACH = 4.4
"""exp(-REACH^4 / 10) is below 1e-16."""


def banana(temperature: float = 1.0) -> Target:
    """The banana of the recipe paper, exp(-U / T).

        U(x) = x_0^4 / 10 + (4 (x_1 + 1.2) - x_0^2)^2 / 2

    x_0 has density proportional to exp(-x_0^4 / (10 T)), that is |x_0| = (10 T G)^(1/4) with G ~ Gamma(1/4, 1), and
    x_1 given x_0 is N(x_0^2 / 4 - 1.2, T / 16). Moments: E |x_0|^k = (10 T)^(k/4) Gamma((k + 1) / 4) / Gamma(1/4).

    Source: ma2015complete, section 4.1 (two-dimensional synthetic potential).
    """
    T = temperature
    width, reach = math.sqrt(T) / 4, REACH * T**0.25

    def potential(x):
        residual = _residual(x)
        return (x[0] ** 4 / 10 + residual * residual / 2) / T

    def sample(key, n):
        gamma_key, sign_key, normal_key = jax.random.split(key, 3)
        radius = (10 * T * jax.random.gamma(gamma_key, 0.25, (n,))) ** 0.25
        first = radius * jax.random.rademacher(sign_key, (n,), radius.dtype)
        second = first**2 / 4 - 1.2 + width * jax.random.normal(normal_key, (n,))
        return jnp.stack([first, second], axis=1)

    first_law = DensityLaw(lambda x: np.exp(-(x**4) / (10 * T)), (-reach, reach))

    def quadrature(n):
        first, first_weights = first_law.rule(n)
        normal, normal_weights = standard_normal_rule(n)
        second = first**2 / 4 - 1.2 + width * normal
        points = np.stack([np.broadcast_to(first, second.shape), second], axis=-1)
        return points.reshape(-1, 2), np.outer(first_weights, normal_weights).ravel()

    nodes, node_weights = legendre_rule(0.0, reach, 20)
    node_weights = node_weights * np.exp(-(nodes**4) / (10 * T))

    def second_density(x):
        residuals = 4 * (np.asarray(x)[..., None] + 1.2) - nodes**2
        return np.exp(-(residuals**2) / (2 * T)) @ node_weights

    second_law = DensityLaw(second_density, (-1.2 - 8.3 * width, reach**2 / 4 - 1.2 + 8.3 * width))
    return Target(
        name="banana" if T == 1 else f"banana at temperature {T:g}",
        manifold=Euclidean(2),
        example=jnp.array([0.7, -0.9]),
        potential=potential,
        sample=sample,
        moments=_moments(T),
        cdfs={
            "theta[0]": Cdf(coordinate(0), lambda x: _first_cdf(np.asarray(x) / T**0.25)),
            "theta[1]": Cdf(coordinate(1), second_law.cdf),
            "residual": Cdf(_residual, lambda x: special.ndtr(np.asarray(x) / math.sqrt(T))),
        },
        quadrature=quadrature,
        curvature=39.3 / T,  # 99th percentile of the largest eigenvalue of the Hessian at T = 1
        tempered=lambda t: banana(t * T),
        source="ma2015complete, section 4.1; closed-form moments; exact draws by a Gamma variable and a Gaussian",
    )


def _residual(x):
    """4 (x_1 + 1.2) - x_0^2, a standard normal variable independent of x_0."""
    return 4 * (x[1] + 1.2) - x[0] * x[0]


def _first_cdf(x):
    x = np.asarray(x, np.float64)
    return 0.5 + 0.5 * np.sign(x) * special.gammainc(0.25, x**4 / 10)


def _moments(T: float) -> dict[str, Moment]:
    def m(k):
        return (10 * T) ** (k / 4) * math.gamma((k + 1) / 4) / math.gamma(1 / 4)

    a, s = 1.2, T / 16
    # moments of x_0^2 / 4 - a
    second = m(4) / 16 - m(2) * a / 2 + a**2
    fourth = m(8) / 256 - m(6) * a / 16 + 6 * m(4) * a**2 / 16 - m(2) * a**3 + a**4
    return {
        "theta[0]": Moment(coordinate(0), 0.0),
        "theta[0]^2": Moment(power(0, 2), m(2)),
        "theta[0]^4": Moment(power(0, 4), m(4)),
        "theta[1]": Moment(coordinate(1), m(2) / 4 - a),
        "theta[1]^2": Moment(power(1, 2), second + s),
        "theta[1]^4": Moment(power(1, 4), fourth + 6 * second * s + 3 * s**2),
        "theta[0]*theta[1]": Moment(product(0, 1), 0.0),
        "theta[0]^2*theta[1]": Moment(lambda x: x[0] ** 2 * x[1], m(4) / 4 - a * m(2)),
    }


ENTRIES = (TargetRow("banana", banana),)
