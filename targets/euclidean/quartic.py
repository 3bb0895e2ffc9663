"""One-dimensional laws with an even quartic potential: the double well and the anharmonic oscillator."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import DensityLaw, coordinate, power, rejection
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def double_well() -> Target:
    """Two wells at -1 and 1 with a barrier of 1 between them.

        U(x) = x^4 - 2 x^2

    Exact draws: (x^2 - 1)^2 >= (|x| - 1)^2, so |x| is drawn from N(1, 1/2) on the positive axis and accepted with
    probability exp((|x| - 1)^2 - (x^2 - 1)^2); the sign is fair. Acceptance 0.56.

    Source: chen2014stochastic, figure 1; ma2015complete, section 4.1.
    """

    def radii(key, n):
        return 1 + math.sqrt(0.5) * jax.random.normal(key, (n, 1))

    def log_accept(a):
        a = a[0]
        return jnp.where(a > 0, (a - 1) ** 2 - (a**2 - 1) ** 2, -jnp.inf)

    def sample(key, n):
        radius_key, sign_key = jax.random.split(key)
        radius = rejection(radius_key, n, radii, log_accept)
        return radius * jax.random.rademacher(sign_key, (n, 1), radius.dtype)

    return _quartic("double-well", 1.0, -2.0, sample, 2.75)


def anharmonic() -> Target:
    """A single well that is stiffer than quadratic.

        U(x) = x^4 / 4 + x^2 / 2

    Exact draws: N(0, 1) accepted with probability exp(-x^4 / 4); acceptance 0.77.

    Source: closed form; the quartic oscillator.
    """

    def propose(key, n):
        return jax.random.normal(key, (n, 1))

    def log_accept(x):
        return -(x[0] ** 4) / 4

    def sample(key, n):
        return rejection(key, n, propose, log_accept)

    return _quartic("anharmonic", 0.25, 0.5, sample, 3.4)


def quartic_moment(quartic: float, quadratic: float, order: int) -> float:
    """E x^order (even) under exp(-a x^4 - b x^2), correctly rounded from 30 digits.

        int x^2k exp(-a x^4 - b x^2) dx = (2a)^(-(k + 1/2)/2) Gamma(k + 1/2) exp(b^2/(8a)) D_(-k-1/2)(b / sqrt(2a))

    Source: gradshteyn2014table, 3.462.1, with y = x^2.
    """
    with mpmath.workdps(30):
        a, b, k = mpmath.mpf(quartic), mpmath.mpf(quadratic), order // 2
        half = mpmath.mpf(1) / 2

        def integral(k):
            return (
                (2 * a) ** (-(k + half) / 2) * mpmath.gamma(k + half) * mpmath.pcfd(-k - half, b / mpmath.sqrt(2 * a))
            )

        return float(integral(k) / integral(0))


def _quartic(name: str, a: float, b: float, sample, reach: float) -> Target:
    """The target exp(-a x^4 - b x^2) on (-reach, reach)."""

    def potential(x):
        square = x[0] * x[0]
        return a * square * square + b * square

    law = DensityLaw(lambda x: np.exp(-a * x**4 - b * x**2), (-reach, reach))
    moments = {"theta[0]": Moment(coordinate(0), 0.0)}
    for order in (2, 4):
        moments[f"theta[0]^{order}"] = Moment(power(0, order), quartic_moment(a, b, order))
    return Target(
        name=name,
        manifold=Euclidean(1),
        example=jax.device_put(np.full(1, 0.8)),  # not a stationary point of U: a gradient of zero would hide mistakes
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs={"theta[0]": Cdf(coordinate(0), law.cdf)},
        quadrature=law.rule,
        interval=(-reach, reach),
        curvature=_bulk_curvature(a, b, law),
        source="moments by parabolic cylinder functions [gradshteyn2014table, 3.462.1]; distribution by quadrature",
    )


def _bulk_curvature(a: float, b: float, law: DensityLaw) -> float:
    """U'' = 12 a x^2 + 2 b at the edge of the central 99 % of the mass."""
    x = np.linspace(0, law.interval[1], 4001)
    edge = x[np.searchsorted(law.cdf(x), 0.995)]
    return float(12 * a * edge**2 + 2 * b)


ENTRIES = (
    TargetRow("double-well", double_well),
    TargetRow("anharmonic", anharmonic),
)
