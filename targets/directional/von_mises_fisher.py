"""The von Mises-Fisher law on a sphere of any dimension."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.numerics.bessel import mean_resultant
from sgmcmc_verification.targets.numerics.quadrature import DensityLaw, coordinate, legendre_rule, product
from sgmcmc_verification.targets.numerics.spherical import (
    circle_rule,
    frame,
    sample_vmf,
    sphere_rule,
    unit_vector,
    vmf_height_law,
)
from sgmcmc_verification.targets.numerics.validation import require_positive
from sgmcmc_verification.targets.target import Cdf, Moment, Target

MOST_COORDINATES = 100
"""Coordinates up to which the normalising constant, as a power series, is no number too large."""


def von_mises_fisher(direction: Any = (2.0, -1.0, 2.0), concentration: float = 3.0, name: str | None = None) -> Target:
    """vMF(mu, kappa) on S^(n-1), density c_n(kappa) exp(kappa mu . x) with respect to Hausdorff (surface) measure.

        U(x) = -kappa mu . x

    With the mean resultant A = I_(n/2)(kappa) / I_(n/2-1)(kappa) (on S^2: coth kappa - 1 / kappa), w = mu . x has
    E w = A, E w^2 = 1 - (n - 1) A / kappa; the rest of x is uniform on the sphere about mu, so E x = A mu and
    E x x^T = E w^2 mu mu^T + (1 - E w^2) / (n - 1) (I - mu mu^T).

    Draws by rejection (by inversion on S^2), the distribution functions of heights by quadrature in one variable.

    Source: mardia2000directional, section 9.3; wood1994simulation (draws).

    Args:
        direction: mu (n,), n >= 2, normalised here.
        concentration: kappa > 0.
        name: name of the target; `vmf-s(n-1)` by default.

    Raises:
        ValueError: if an argument is out of range.
    """
    mu = unit_vector("direction", direction)
    kappa = concentration
    require_positive(concentration=kappa)
    n = len(mu)
    rows = frame(mu) if n <= 3 else _tangent_and_axis(mu)

    def along(index):
        return lambda x: x @ jnp.asarray(rows[index], x.dtype)

    def potential(x):
        return -kappa * along(-1)(x)

    def sample(key, count):
        return sample_vmf(key, jnp.broadcast_to(jnp.asarray(mu), (count, n)), jnp.full(count, float(kappa)))

    heights = vmf_height_law(mu, [1.0], [mu], [kappa])
    mean = float(mean_resultant(n, kappa))
    square = 1 - (n - 1) * mean / kappa
    moments = {
        "height": Moment(along(-1), mean),
        "height^2": Moment(lambda x: along(-1)(x) ** 2, square),
        "height^4": Moment(lambda x: along(-1)(x) ** 4, heights.expect(lambda t: t**4), 1e-14),
    }
    cdfs = {"height": Cdf(along(-1), heights.cdf)}
    if n == 2:
        turn = DensityLaw(
            lambda angle: np.exp(-2 * kappa * np.sin(angle / 2) ** 2), (-math.pi, math.pi), _panels(kappa)
        )
        cdfs["angle"] = Cdf(lambda x: jnp.arctan2(along(0)(x), along(1)(x)), turn.cdf)
    elif n == 3:
        angle = lambda x: jnp.arctan2(along(1)(x), along(0)(x))
        cdfs["angle"] = Cdf(angle, lambda x: np.clip((np.asarray(x) + math.pi) / (2 * math.pi), 0, 1))
    else:
        cdfs["tangent"] = Cdf(_tangent(along), lambda t: uniform_height_cdf(n - 1, t))
    shown = range(n) if n <= 3 else (0, n - 1)
    variance = (1 - square) / (n - 1)
    for i in shown:
        moments[f"theta[{i}]"] = Moment(coordinate(i), float(mean * mu[i]))
        for j in shown:
            if j <= i:
                value = (square - variance) * mu[i] * mu[j] + (variance if i == j else 0)
                moments[f"theta[{j}]*theta[{i}]"] = Moment(product(j, i), float(value))
    cdfs["theta[0]"] = Cdf(coordinate(0), vmf_height_law(np.eye(1, n)[0], [1.0], [mu], [kappa]).cdf)
    return Target(
        name=name or f"vmf-s{n - 1}",
        manifold=Sphere(n),
        example=jnp.asarray(0.6 * rows[0] + 0.8 * mu),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs=cdfs,
        quadrature=(lambda m: vmf_rule(mu, kappa, m)) if n <= 4 else None,
        characteristic=(lambda w: vmf_characteristic(mu, kappa, w)) if n <= MOST_COORDINATES else None,
        curvature=float(kappa),
        tempered=lambda temperature: von_mises_fisher(direction, concentration / temperature, name),
        source="mardia2000directional, section 9.3; closed form",
    )


def circle() -> Target:
    """S^1, kappa = 2."""
    return von_mises_fisher((1.0, -2.0), 2.0)


def concentrated() -> Target:
    """S^2, kappa = 5."""
    return von_mises_fisher((2.0, -1.0, 2.0), 5.0, "vmf-s2-concentrated")


def sphere_3() -> Target:
    """S^3, kappa = 3, where neither a cross product nor two tangent directions will do."""
    return von_mises_fisher((2.0, -1.0, 2.0, 1.0), 3.0)


def sphere_49() -> Target:
    """S^49, kappa = 40, a generic direction."""
    return von_mises_fisher(np.cos(1.7 * np.arange(50) + 0.3), 40.0)


def sphere_4999() -> Target:
    """S^4999, kappa = 10^4, a generic direction: the size of a vocabulary."""
    return von_mises_fisher(np.cos(1.7 * np.arange(5000) + 0.3), 1e4)


def vmf_rule(mu: np.ndarray, kappa: float, m: int):
    """Rule for vMF(mu, kappa) on S^1, S^2 or S^3.

    S^1: m equidistant angles, converging geometrically. S^2: m Gauss nodes in the height times 2 m equidistant
    angles, exact for polynomials of degree below 2 m. S^3: m Gauss nodes in the angle theta from mu, whose density is
    sin^2(theta) exp(kappa cos theta), times such a rule on S^2, converging geometrically.
    """
    if len(mu) == 2:
        angles, points = circle_rule(m)
        weights = np.exp(-2 * kappa * np.sin(angles / 2) ** 2)
        return points[:, ::-1] @ frame(mu), weights / weights.sum()
    if len(mu) == 4:
        law = DensityLaw(
            lambda a: np.sin(a) ** 2 * np.exp(-2 * kappa * np.sin(a / 2) ** 2), (0, math.pi), _panels(kappa)
        )
        theta, weights = law.rule(m)
        heights, uniform = legendre_rule(-1.0, 1.0, 1, m)
        around, shares = sphere_rule(heights, uniform / 2, np.eye(3))
        tangents = around @ np.linalg.svd(mu[None, :])[2][1:]
        points = np.sin(theta)[..., None] * tangents + np.cos(theta)[..., None] * mu
        return points.reshape(-1, 4), np.outer(weights, shares).ravel()
    heights, weights = DensityLaw(lambda w: np.exp(kappa * (w - 1)), (-1.0, 1.0), _panels(kappa)).rule(m)
    return sphere_rule(heights[:, 0], weights, frame(mu))


def vmf_characteristic(mu: np.ndarray, kappa: float, w: np.ndarray) -> np.ndarray:
    """E exp(i w . x) (J,) for w (J, n): the normalising constant, an entire function of kappa mu, at kappa mu + i w.

        c(eta) = 0F1(; n / 2; eta . eta / 4) up to a factor,   E exp(i w . x) = c(kappa mu + i w) / c(kappa mu)

    Source: mardia2000directional, section 9.3.2 (the constant). The absolute error is that of the power series, eps
    times c(|kappa mu + i w|) / c(kappa mu): 1e-9 for n = 50, kappa = 40, |w| = 20.
    """
    n = len(mu)
    squares = kappa**2 - np.sum(w**2, axis=1) + 2j * kappa * (w @ mu)
    return special.hyp0f1(n / 2, squares / 4) / special.hyp0f1(n / 2, complex(kappa**2 / 4))


def uniform_height_cdf(n: int, height: np.ndarray) -> np.ndarray:
    """Distribution function of one coordinate of a uniform point of S^(n-1): (1 + t) / 2 ~ Beta((n-1)/2, (n-1)/2)."""
    return special.betainc((n - 1) / 2, (n - 1) / 2, np.clip((1 + np.asarray(height, np.float64)) / 2, 0, 1))


def _tangent(along):
    """Statistic: one coordinate of the direction in which x lies from mu, uniform on S^(n-2)."""
    return lambda x: along(0)(x) / jnp.sqrt((1 - along(-1)(x)) * (1 + along(-1)(x)))


def _tangent_and_axis(mu: np.ndarray) -> np.ndarray:
    """A unit tangent and mu, (2, n)."""
    tangent = np.roll(mu, 1) - (np.roll(mu, 1) @ mu) * mu
    return np.stack([tangent / np.linalg.norm(tangent), mu])


def _panels(kappa: float) -> int:
    """Panels that resolve exp(kappa cos) or exp(kappa w)."""
    return 40 + int(kappa)


ENTRIES = (
    TargetRow("vmf-s1", circle),
    TargetRow("vmf-s2", von_mises_fisher),
    TargetRow("vmf-s2-concentrated", concentrated),
    TargetRow("vmf-s3", sphere_3),
    TargetRow("vmf-s49", sphere_49),
    TargetRow("vmf-s4999", sphere_4999),
)
