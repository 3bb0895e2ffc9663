"""Student's t law."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import coordinate, power
from sgmcmc_verification.targets.numerics.validation import require_positive
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def student_t(freedom: float = 5.0, location: float = 0.5, scale: float = 2.0) -> Target:
    """location + scale t_nu, with polynomial tails.

        U(x) = (nu + 1) / 2 log(1 + z^2 / nu),  z = (x - location) / scale

    Moments with an infinite variance are left out (a sample mean of x^4 has no standard error for nu = 5);
    1 / (1 + z^2 / nu), with mean nu / (nu + 1), is bounded and takes their place.

    The quadrature is the midpoint rule in the angle phi of z = sqrt(nu) tan(phi), where the law is proportional to
    cos(phi)^(nu - 1): for odd nu it is exact for polynomials in x of degree below nu once n >= nu.

    Source: closed form.

    Args:
        freedom: nu > 0.
        location: centre of symmetry.
        scale: positive.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_positive(freedom=freedom, scale=scale)
    if not math.isfinite(location):
        raise ValueError(f"location: must be finite, got {location!r}")

    def potential(x):
        z = (x[0] - location) / scale
        return (freedom + 1) / 2 * jnp.log1p(z * z / freedom)

    def sample(key, n):
        return location + scale * jax.random.t(key, freedom, (n, 1))

    def quadrature(n):
        angle = (np.arange(n) + 0.5) * (math.pi / n) - math.pi / 2
        weights = np.cos(angle) ** (freedom - 1)
        return (location + scale * math.sqrt(freedom) * np.tan(angle))[:, None], weights / weights.sum()

    moments = {"peak": Moment(_peak(freedom, location, scale), freedom / (freedom + 1))}
    if freedom > 2:
        moments["theta[0]"] = Moment(coordinate(0), location)
    if freedom > 4:
        moments["theta[0]^2"] = Moment(power(0, 2), location**2 + scale**2 * freedom / (freedom - 2))
    law = scipy.stats.t(freedom, location, scale)
    return Target(
        name="student-t",
        manifold=Euclidean(1),
        example=jnp.full(1, location + 0.5 * scale),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs={"theta[0]": Cdf(coordinate(0), law.cdf)},
        quadrature=quadrature,
        interval=(float(law.ppf(4e-15)), float(law.isf(4e-15))),
        curvature=(freedom + 1) / (freedom * scale**2),  # U'' is largest at the centre
        source="closed form; sampling by a normal over the root of a chi-square",
    )


def _peak(freedom: float, location: float, scale: float):
    """Statistic: 1 / (1 + z^2 / nu), a Beta(nu / 2, 1 / 2) variable."""
    return lambda x: 1 / (1 + ((x[0] - location) / scale) ** 2 / freedom)


ENTRIES = (TargetRow("student-t", student_t),)
