"""Tools that the laws on spheres share: laws of one height, exact von Mises-Fisher draws, rules on S^1 and S^2."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy import special

from sgmcmc_verification.targets.numerics.arrays import ArrayLike
from sgmcmc_verification.targets.numerics.bessel import log_mean_exponential, log_vmf_constant
from sgmcmc_verification.targets.numerics.quadrature import DensityLaw, Rule, Values, legendre_rule, until_accepted

NEGLIGIBLE = 45.0
"""exp(-45) = 3e-20: a density below this part of its maximum is left out."""


class HeightLaw:
    """The law of a height t = d . x in [-1, 1] under a law on S^(n-1), n >= 2, by quadrature in the angle arccos t.

        density of theta: sin^(n-2)(theta) exp(f(cos theta, sin theta))

    where f(t, sqrt(1 - t^2)) is the log of the mean of the density over the points at height t. The angle has no
    singularity at the poles. Integrals are exact to round-off where 16-point panels resolve the density.

    Args:
        n: dimension of the embedding space.
        log_mean: f(cos, sin), NumPy-vectorised, up to a constant.
        panels: number of panels over the mass.
    """

    def __init__(self, n: int, log_mean: Callable[[Values, Values], Values], panels: int = 60):
        def log_density(theta: Values) -> Values:
            sine = np.sin(theta)
            return special.xlogy(n - 2, sine) + log_mean(np.cos(theta), sine)

        grid = np.linspace(0, math.pi, 1001)
        levels = log_density(grid)
        peak = levels.max()
        (inside,) = np.nonzero(levels > peak - NEGLIGIBLE)
        interval = float(grid[max(inside[0] - 1, 0)]), float(grid[min(inside[-1] + 1, len(grid) - 1)])
        self._law = DensityLaw(lambda theta: np.exp(log_density(theta) - peak), interval, panels)

    def cdf(self, height: ArrayLike) -> Float[np.ndarray, "..."]:
        """P(t <= height), vectorised."""
        return np.asarray(1 - self._law.cdf(np.arccos(np.clip(np.asarray(height, np.float64), -1, 1))))

    def expect(self, function: Callable[[Values], Values]) -> float:
        """E function(t)."""
        theta, weights = legendre_rule(*self._law.interval, self._law.panels)
        weights = weights * self._law.density(theta)
        return float(weights @ function(np.cos(theta)) / weights.sum())


def vmf_height_law(
    axis: ArrayLike, weights: Sequence[float] | Values, directions: ArrayLike, concentrations: Sequence[float] | Values
) -> HeightLaw:
    """The law of axis . x under sum_k w_k vMF(mu_k, kappa_k) on S^(n-1).

    With a = axis . mu and b = sqrt(1 - a^2), the points at height t are a sphere S^(n-2) of radius sqrt(1 - t^2), over
    which exp(kappa mu . x) has the mean exp(kappa a t) E exp(kappa b sqrt(1 - t^2) y_1), y uniform on it.

    Args:
        axis: unit vector (n,).
        weights: (k,).
        directions: unit vectors (k, n).
        concentrations: (k,).
    """
    axis, directions = np.asarray(axis), np.asarray(directions)
    n = len(axis)
    parts = []
    for weight, direction, kappa in zip(weights, directions, concentrations, strict=True):
        along = float(axis @ direction)
        across = float(np.linalg.norm(direction - along * axis))
        parts.append((math.log(weight) + float(log_vmf_constant(n, kappa)), kappa * along, kappa * across))

    def log_mean(cosine: Values, sine: Values) -> Values:
        sine = np.maximum(sine, 0)
        terms = [c + u * cosine + log_mean_exponential(n - 1, v * sine) for c, u, v in parts]
        return np.logaddexp.reduce(terms)

    return HeightLaw(n, log_mean)


@partial(jax.jit, static_argnums=1)
def sample_heights(
    key: Key[Array, ""], n: int, concentrations: Float[Array, " N"]
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Exact draws of w = mu . x under vMF(mu, kappa) on S^(n-1), n >= 1, and sqrt(1 - w^2), both (N,).

    n = 1: a sign. n = 3: inversion. Otherwise rejection from the envelope of wood1994simulation, in a form without
    cancellation: with b = (n-1) / (2 kappa + sqrt(4 kappa^2 + (n-1)^2)), z ~ Beta((n-1)/2, (n-1)/2) and
    y = 1 - (1 - b) z,

        w = 1 - 2 b z / y,   1 - w^2 = 4 b z (1 - z) / y^2
        log acceptance = 2 kappa b (1 - 2 z) / ((1 + b) y) + (n - 1) log((1 + b) / (2 y))

    which is 0 at z = 1/2 and negative elsewhere. More than half of the proposals are accepted for every n and kappa.

    Source: wood1994simulation, algorithm VM*; ulrich1984computer; rewritten here.

    Args:
        key: typed key.
        n: dimension of the embedding space.
        concentrations: kappa (N,), not negative; one law a draw.
    """
    kappa, dtype = concentrations, concentrations.dtype
    if n == 1:
        positive = jax.random.uniform(key, kappa.shape, dtype) < jax.nn.sigmoid(2 * kappa)
        return jnp.where(positive, 1, -1).astype(dtype), jnp.zeros_like(kappa)
    if n == 3:
        safe = jnp.maximum(kappa, jnp.finfo(dtype).tiny / jnp.finfo(dtype).eps)
        u = jax.random.uniform(key, kappa.shape, dtype)
        below = -jnp.log1p((1 - u) * jnp.expm1(-2 * safe)) / safe  # 1 - w
        return 1 - below, jnp.sqrt(jnp.maximum(below * (2 - below), 0))
    b = (n - 1) / (2 * kappa + jnp.sqrt(4 * kappa**2 + (n - 1) ** 2))

    def parts(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = 1 - (1 - b) * z
        return y, 2 * kappa * b * (1 - 2 * z) / ((1 + b) * y) + (n - 1) * jnp.log((1 + b) / (2 * y))

    def attempt(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        turn_key, radius_key, accept_key = jax.random.split(key, 3)
        turn = jnp.cos(2 * math.pi * jax.random.uniform(turn_key, kappa.shape, dtype))
        radius = jax.random.uniform(radius_key, kappa.shape, dtype)
        # the symmetric Beta law of z without Gamma draws [ulrich1984computer]
        spread = jnp.sqrt(-jnp.expm1(2 / (n - 2) * jnp.log(radius))) if n > 2 else 1
        z = (1 + spread * turn) / 2
        accepted = jnp.log(jax.random.uniform(accept_key, kappa.shape, dtype)) < parts(z)[1]
        return z[:, None], accepted

    z = until_accepted(key, attempt)[:, 0]
    y, _ = parts(z)
    return 1 - 2 * b * z / y, 2 * jnp.sqrt(b * z * (1 - z)) / y


@jax.jit
def sample_vmf(
    key: Key[Array, ""], directions: Float[Array, "N n"], concentrations: Float[Array, " N"]
) -> Float[Array, "N n"]:
    """Exact draws (N, n) of vMF(mu_i, kappa_i), i = 1 .. N.

    Args:
        key: typed key.
        directions: unit vectors mu (N, n).
        concentrations: kappa (N,).
    """
    height_key, tangent_key = jax.random.split(key)
    heights, radii = sample_heights(height_key, directions.shape[1], concentrations)
    normals = jax.random.normal(tangent_key, directions.shape, directions.dtype)
    tangents = unit_rows(without(unit_rows(without(normals, directions)), directions))  # twice: orthogonal to round-off
    return heights[:, None] * directions + radii[:, None] * tangents


def without(vectors: Float[Array, "N n"], directions: Float[Array, "N n"]) -> Float[Array, "N n"]:
    """Rows (N, n) less their components along unit rows (N, n)."""
    return vectors - jnp.sum(vectors * directions, axis=1, keepdims=True) * directions


def unit_rows(vectors: Float[Array, "N n"]) -> Float[Array, "N n"]:
    """Rows (N, n) divided by their lengths."""
    return vectors / jnp.linalg.norm(vectors, axis=1, keepdims=True)


def frame(direction: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
    """Orthonormal rows (n, n), the last one `direction`, for S^1 and S^2."""
    if len(direction) == 2:
        return np.array([[-direction[1], direction[0]], direction])
    first = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(direction, first), direction])


def circle_rule(n: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k 2"]]:
    """n equidistant angles of (0, 2 pi) and the points (n, 2) there."""
    angles = 2 * math.pi * (np.arange(n) + 0.5) / n
    return angles, np.stack([np.cos(angles), np.sin(angles)], axis=1)


def sphere_rule(
    heights: Float[np.ndarray, " k"],
    weights: Float[np.ndarray, " k"],
    rows: Float[np.ndarray, "3 3"],
    angles: int | None = None,
) -> Rule:
    """Rule on S^2 from one (m,) of heights along the last of `rows`, with equidistant angles about it.

    2 m angles unless told: as many as make the rule exact to the degree of m Gauss heights, 2 m - 1.
    """
    m = len(heights)
    n = angles or 2 * m
    _, circle = circle_rule(n)
    around = np.sqrt(1 - heights**2)[:, None, None] * circle
    local = np.concatenate([around, np.broadcast_to(heights[:, None, None], (m, n, 1))], axis=2)
    return local.reshape(-1, 3) @ rows, np.repeat(weights / n, n)


def frame_rule(m: int) -> Rule:
    """Rule (m^3, 6) for the uniform law on V_2(R^3), exact for polynomials of degree below m.

    m Gauss heights and m angles for the first column, m angles about it for the second.
    """
    heights, weights = legendre_rule(-1.0, 1.0, 1, m)
    first, weights = sphere_rule(heights, weights / 2, np.eye(3), m)
    _, circle = circle_rule(m)
    second = np.concatenate([circle @ frame(column)[:2] for column in first])
    both = np.stack([np.repeat(first, m, axis=0), second], axis=2)
    return both.reshape(-1, 6), np.repeat(weights / m, m)


def unit_vector(argument: str, value: ArrayLike, n: int | None = None) -> Float[np.ndarray, " d"]:
    """`value` as a float64 unit vector. Raises ValueError, naming the argument, if it is not a direction."""
    vector = np.array(value, np.float64)
    size = "two or more" if n is None else str(n)
    if vector.ndim != 1 or (len(vector) < 2 if n is None else len(vector) != n):
        raise ValueError(f"{argument}: must be a vector of {size} numbers, got shape {vector.shape}")
    if not np.all(np.isfinite(vector)) or not vector.any():
        raise ValueError(f"{argument}: must be non-zero and finite, got {value!r}")
    return vector / np.linalg.norm(vector)
