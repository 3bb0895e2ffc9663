"""Neal's funnel."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import coordinate, power, tensor_rule
from sgmcmc_verification.targets.numerics.validation import require_positive, require_some
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def funnel(leaves: int = 2, scale: float = 3.0) -> Target:
    """v ~ N(0, scale^2) and x_i given v ~ N(0, exp(v)), i = 1 .. leaves; the position is (v, x_1, ...).

        U = v^2 / (2 scale^2) + exp(-v) sum_i x_i^2 / 2 + leaves v / 2

    E x_i^2 = exp(scale^2 / 2) is finite, but its own variance is so large (E x_i^4 = 3 exp(2 scale^2)) that no sample
    mean of practical size is near normal. The catalogue of moments therefore has the standardised leaves
    x_i exp(-v / 2) and sqrt |x_i|, whose mean is exp(scale^2 / 32) 2^(1/4) Gamma(3/4) / sqrt(pi).

    Source: neal2003slice, section 8 (nine leaves, scale 3). Differs from the source in:
        1. the number of leaves, two by default, so that tensor quadrature is possible.

    Args:
        leaves: number of coordinates below v, at least 1.
        scale: standard deviation of v, positive.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_some(leaves=leaves)
    require_positive(scale=scale)
    dim = 1 + leaves

    def potential(position):
        v, x = position[0], position[1:]
        return v * v / (2 * scale**2) + jnp.exp(-v) * (x @ x) / 2 + leaves * v / 2

    def sample(key, n):
        normals = jax.random.normal(key, (n, dim))
        v = scale * normals[:, :1]
        return jnp.concatenate([v, jnp.exp(v / 2) * normals[:, 1:]], axis=1)

    def quadrature(n):
        """Gauss-Hermite in (v, x exp(-v / 2)): geometric for smooth functions, slow for sqrt |x|."""
        normals, weights = tensor_rule(dim, n)
        v = scale * normals[:, :1]
        return np.concatenate([v, np.exp(v / 2) * normals[:, 1:]], axis=1), weights

    moments = {
        "theta[0]": Moment(coordinate(0), 0.0),
        "theta[0]^2": Moment(power(0, 2), scale**2),
        "theta[0]^4": Moment(power(0, 4), 3 * scale**4),
    }
    root = math.exp(scale**2 / 32) * 2**0.25 * math.gamma(0.75) / math.sqrt(math.pi)
    cdfs = {"theta[0]": Cdf(coordinate(0), lambda x: special.ndtr(np.asarray(x) / scale))}
    for i in range(1, dim):
        moments[f"standardised[{i}]"] = Moment(_standardised(i, 1), 0.0)
        moments[f"standardised[{i}]^2"] = Moment(_standardised(i, 2), 1.0)
        moments[f"standardised[{i}]^4"] = Moment(_standardised(i, 4), 3.0)
        moments[f"sqrt|theta[{i}]|"] = Moment(_root(i), root)
        cdfs[f"standardised[{i}]"] = Cdf(_standardised(i, 1), special.ndtr)
    return Target(
        name="funnel",
        manifold=Euclidean(dim),
        example=jnp.asarray([0.5] + [0.8 * (-1) ** i for i in range(leaves)], float),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs=cdfs,
        quadrature=quadrature if dim <= 3 else None,
        curvature=math.exp(2.33 * scale),  # exp(-v) at the first percentile of v
        source="neal2003slice, section 8; closed form",
    )


def _standardised(index: int, exponent: int):
    """Statistic: (x_i exp(-v / 2))^exponent."""
    return lambda position: (position[index] * jnp.exp(-position[0] / 2)) ** exponent


def _root(index: int):
    """Statistic: sqrt |x_i|."""
    return lambda position: jnp.sqrt(jnp.abs(position[index]))


ENTRIES = (TargetRow("funnel", funnel),)
