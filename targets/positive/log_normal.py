"""The log-normal law."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.numerics.quadrature import coordinate, power, standard_normal_rule
from sgmcmc_verification.targets.numerics.validation import require_positive
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def log_normal(location: float = 0.3, scale: float = 0.5, name: str = "log-normal") -> Target:
    """log x ~ N(location, scale^2) on (0, inf).

        U(x) = (log x - location)^2 / (2 scale^2) + log x

    The quadrature is Gauss-Hermite in log x. Powers above the second are left out: their sample means are far from
    normal.

    Source: closed form.

    Args:
        location: mean of log x.
        scale: standard deviation of log x, positive.
        name: name of the target.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_positive(scale=scale)
    if not math.isfinite(location):
        raise ValueError(f"location: must be finite, got {location!r}")

    def potential(x):
        log = jnp.log(x[0])
        return (log - location) ** 2 / (2 * scale**2) + log

    def sample(key, n):
        return jnp.exp(location + scale * jax.random.normal(key, (n, 1)))

    def quadrature(n):
        points, weights = standard_normal_rule(n)
        return np.exp(location + scale * points)[:, None], weights

    def cdf(x):
        with np.errstate(divide="ignore"):
            return special.ndtr((np.log(np.maximum(np.asarray(x, np.float64), 0)) - location) / scale)

    low = math.exp(location - 2.33 * scale)
    return Target(
        name=name,
        manifold=Positive(1),
        example=jnp.full(1, math.exp(location + 0.5 * scale)),
        potential=potential,
        sample=sample,
        moments={
            "theta[0]": Moment(coordinate(0), math.exp(location + scale**2 / 2)),
            "theta[0]^2": Moment(power(0, 2), math.exp(2 * location + 2 * scale**2)),
            "1/theta[0]": Moment(power(0, -1), math.exp(-location + scale**2 / 2)),
            "log theta[0]": Moment(_log_power(1), location),
            "log theta[0]^2": Moment(_log_power(2), location**2 + scale**2),
        },
        cdfs={"theta[0]": Cdf(coordinate(0), cdf)},
        quadrature=quadrature,
        # the fourth moment sits 4 scale^2 higher in log x than the law, and is to be complete too
        interval=(math.exp(location - 8 * scale), math.exp(location + 4 * scale**2 + 8 * scale)),
        # U'' = ((1 - log x + location) / scale^2 - 1) / x^2 at the first percentile
        curvature=((1 + 2.33 * scale) / scale**2 - 1) / low**2,
        source="closed form",
    )


def narrow() -> Target:
    """log x ~ N(0.3, 1/16): nearly symmetric."""
    return log_normal(scale=0.25, name="log-normal-narrow")


def _log_power(exponent: int):
    """Statistic: (log x)^exponent."""
    return lambda x: jnp.log(x[0]) ** exponent


ENTRIES = (
    TargetRow("log-normal", log_normal),
    TargetRow("log-normal-narrow", narrow),
)
