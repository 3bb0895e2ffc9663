"""The von Mises-Fisher law on the two-dimensional sphere."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from targets.manifolds.sphere import Sphere
from targets.rules import DensityLaw, coordinate, product
from targets.target import Cdf, Moment, Target


def von_mises_fisher(direction: Any = (2.0, -1.0, 2.0), concentration: float = 3.0) -> Target:
    """vMF(mu, kappa) on S^2, density exp(kappa mu . x) with respect to the surface measure.

        U(x) = -kappa mu . x

    w = mu . x has density proportional to exp(kappa w) on [-1, 1], so it is drawn by inversion; the angle about mu is
    uniform. E w = A = coth kappa - 1 / kappa, E w^2 = 1 - 2 A / kappa,
    E x = A mu, E x x^T = E w^2 mu mu^T + (1 - E w^2) / 2 (I - mu mu^T).

    Source: mardia2000directional, section 9.3.

    Args:
        direction: mu (3,), normalised here.
        concentration: kappa > 0.

    Raises:
        ValueError: if an argument is out of range.
    """
    mu = np.array(direction, np.float64)
    if mu.shape != (3,) or not np.all(np.isfinite(mu)) or not mu.any():
        raise ValueError(f"direction: must be a non-zero vector of three finite numbers, got {direction!r}")
    kappa = concentration
    if not 0 < kappa < math.inf:
        raise ValueError(f"concentration: must be positive and finite, got {kappa!r}")
    mu = mu / np.linalg.norm(mu)
    first = np.cross(mu, np.eye(3)[np.argmin(np.abs(mu))])
    first /= np.linalg.norm(first)
    frame = np.stack([first, np.cross(mu, first), mu])  # rows: two tangents and mu

    def along(index):
        return lambda x: x @ jnp.asarray(frame[index], x.dtype)

    def potential(x):
        return -kappa * along(2)(x)

    def angle(x):
        return jnp.arctan2(along(1)(x), along(0)(x))

    def sample(key, n):
        height_key, angle_key = jax.random.split(key)
        u = jax.random.uniform(height_key, (n,))
        w = 1 + jnp.log(u + (1 - u) * math.exp(-2 * kappa)) / kappa
        phi = 2 * math.pi * jax.random.uniform(angle_key, (n,))
        radius = jnp.sqrt(jnp.maximum(1 - w * w, 0))
        local = jnp.stack([radius * jnp.cos(phi), radius * jnp.sin(phi), w], axis=1)
        return local @ jnp.asarray(frame, local.dtype)

    height_law = DensityLaw(lambda w: np.exp(kappa * (w - 1)), (-1.0, 1.0))

    def quadrature(n):
        """Gauss in w times the midpoint rule in the angle: exact for polynomials of degree below n."""
        w, weights = height_law.rule(n)
        phi = 2 * math.pi * (np.arange(n) + 0.5) / n
        radius = np.sqrt(1 - w**2)
        local = np.stack([radius * np.cos(phi), radius * np.sin(phi), np.broadcast_to(w, (n, n))], axis=-1)
        return local.reshape(-1, 3) @ frame, np.repeat(weights / n, n)

    def height_cdf(w):
        w = np.clip(np.asarray(w, np.float64), -1, 1)
        return (np.exp(kappa * (w - 1)) - math.exp(-2 * kappa)) / -math.expm1(-2 * kappa)

    mean = 1 / math.tanh(kappa) - 1 / kappa
    square = 1 - 2 * mean / kappa
    moments = {
        "height": Moment(along(2), mean),
        "height^2": Moment(lambda x: along(2)(x) ** 2, square),
        "height^4": Moment(lambda x: along(2)(x) ** 4, _height_moment(kappa, 4)),
    }
    second = square * np.outer(mu, mu) + (1 - square) / 2 * (np.eye(3) - np.outer(mu, mu))
    for i in range(3):
        moments[f"theta[{i}]"] = Moment(coordinate(i), float(mean * mu[i]))
        for j in range(i + 1):
            moments[f"theta[{j}]*theta[{i}]"] = Moment(product(j, i), float(second[i, j]))
    return Target(
        name="vmf-s2",
        manifold=Sphere(3),
        example=jnp.asarray(frame.T @ np.array([0.6, 0.0, 0.8])),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs={
            "height": Cdf(along(2), height_cdf),
            "angle": Cdf(angle, lambda x: np.clip((np.asarray(x) + math.pi) / (2 * math.pi), 0, 1)),
        },
        quadrature=quadrature,
        curvature=float(kappa),
        tempered=lambda temperature: von_mises_fisher(direction, concentration / temperature),
        source="mardia2000directional, section 9.3; closed form",
    )


def _height_moment(kappa: float, order: int) -> float:
    """E w^order by parts: m_n = (e^kappa - (-1)^n e^-kappa) / (2 sinh kappa) - (n / kappa) m_(n-1), m_0 = 1."""
    value = 1.0
    for n in range(1, order + 1):
        value = (1.0 if n % 2 == 0 else 1 / math.tanh(kappa)) - n / kappa * value
    return value
