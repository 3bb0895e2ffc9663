"""The Gamma law."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.numerics.quadrature import coordinate, jacobi_rule, power
from sgmcmc_verification.targets.numerics.validation import require_positive
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def gamma(shape: float, rate: float = 1.0, name: str = "gamma") -> Target:
    """Gamma(shape, rate) on (0, inf).

        U(x) = rate x - (shape - 1) log x

    For shape < 1 the density is unbounded at zero, where Euler steps and reflections go wrong. The fourth moment is
    then so skewed that a sample mean is far from normal; it is given for shape >= 1 only.

    Source: closed form; baker2018large, section 3 (sparse Gamma laws as the hard case).

    Args:
        shape: a > 0.
        rate: b > 0.
        name: name of the target.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_positive(shape=shape, rate=rate)

    def potential(x):
        return rate * x[0] - (shape - 1) * jnp.log(x[0])

    def sample(key, n):
        return jax.random.gamma(key, shape, (n, 1)) / rate

    def quadrature(n):
        """Generalised Gauss-Laguerre: exact to degree 2 n - 1 in x; slow for log x, which is singular at zero."""
        k = np.arange(n)
        points, weights = jacobi_rule(2.0 * k + shape, np.sqrt(k[1:] * (k[1:] + shape - 1)))
        return points[:, None] / rate, weights

    moments = {
        "theta[0]": Moment(coordinate(0), shape / rate),
        "theta[0]^2": Moment(power(0, 2), shape * (shape + 1) / rate**2),
        "log theta[0]": Moment(_log, float(special.digamma(shape) - math.log(rate))),
    }
    if shape >= 1:
        moments["theta[0]^4"] = Moment(power(0, 4), shape * (shape + 1) * (shape + 2) * (shape + 3) / rate**4)
    edge = special.gammaincinv(shape, 0.01) / rate
    return Target(
        name=name,
        manifold=Positive(1),
        example=jnp.full(1, 0.7 * shape / rate),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs={"theta[0]": Cdf(coordinate(0), lambda x: special.gammainc(shape, rate * np.maximum(np.asarray(x), 0)))},
        quadrature=quadrature,
        interval=(0.0, float(special.gammainccinv(shape, 5e-15) / rate)),
        # U'' at the first percentile; U is concave for shape <= 1, where the rate is the only scale left
        curvature=float((shape - 1) / edge**2) if shape > 1 else rate**2,
        source="closed form",
    )


def gamma_smooth() -> Target:
    """Gamma(2.5, 1): the density vanishes at zero."""
    return gamma(2.5, name="gamma")


def gamma_sparse() -> Target:
    """Gamma(0.3, 1): the density is unbounded at zero."""
    return gamma(0.3, name="gamma-sparse")


def _log(x):
    """Statistic: log x."""
    return jnp.log(x[0])


ENTRIES = (
    TargetRow("gamma", gamma_smooth),
    TargetRow("gamma-sparse", gamma_sparse),
)
