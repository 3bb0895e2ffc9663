"""Log densities of priors: normalised, on the half-line and on the unit interval, and flat."""

import math

import jax
import jax.numpy as jnp
from jax.scipy import stats

from sgmcmc_verification.targets.posteriordb.model import Values


def half_normal(value: jax.Array, scale: float) -> jax.Array:
    """log 2 N(value; 0, scale^2) for a value > 0."""
    return math.log(2) + stats.norm.logpdf(value, 0.0, scale)


def half_cauchy(value: jax.Array, scale: float) -> jax.Array:
    """log 2 / (pi scale (1 + value^2 / scale^2)) for a value > 0."""
    return math.log(2) + stats.cauchy.logpdf(value, 0.0, scale)


def beta(value: jax.Array, first: float, second: float) -> jax.Array:
    """log value^(first - 1) (1 - value)^(second - 1) / B(first, second) for a value between 0 and 1."""
    constant = math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)
    return (first - 1) * jnp.log(value) + (second - 1) * jnp.log1p(-value) - constant


def flat(values: Values) -> jax.Array:
    """Zero: the improper prior of all parameters."""
    return jnp.zeros((), next(iter(values.values())).dtype)
