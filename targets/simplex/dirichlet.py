"""Dirichlet laws, on the flat simplex and through the sphere map."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.sphere_chart import to_simplex, to_sphere
from sgmcmc_verification.targets.numerics.quadrature import Rule, jacobi_rule
from sgmcmc_verification.targets.target import Cdf, Moment, Target

LEAST_MASS = 1e-12
"""A coordinate below the smallest float with more than this probability gets no oracle of its own."""
TOP_MASS = 1e-6
"""A coordinate that rounds to 1 with more than this probability gets no distribution function."""
MOST_COORDINATES = 4
"""Coordinates for which a product rule is small enough."""
LEAST_TOTAL = 20.0
"""Sum of alpha from which the integrand of the characteristic function falls fast: by s^-20 and more."""
LINE_NODES = 4001
"""Nodes of that integral."""
SOURCE = "patterson2013stochastic, section 3.3; closed form"


def dirichlet(alpha: Any, name: str) -> Target:
    """Dirichlet(alpha) on the flat simplex, density with respect to Hausdorff measure (Lebesgue, K - 1 coordinates).

        U(theta) = -sum_k (alpha_k - 1) log theta_k,   theta_k ~ Beta(alpha_k, alpha_0 - alpha_k),  alpha_0 = sum alpha

    Draws are made in log space (`sample_log_dirichlet`). For small alpha_k most of them are below the smallest float:
    theta_k < 2e-308 has probability near exp(-708 alpha_k), half for alpha_k = 1e-3. Such a coordinate of a position is
    set to the smallest normal float, so U and its gradient stay finite, and has no moments of its logarithm and no
    distribution function here; `log_cdf` is that of log theta_k.

    Source: patterson2013stochastic, section 3.3; closed form.

    Args:
        alpha: (K,), positive, K >= 2; tested down to 1e-3.
        name: name of the target.

    Raises:
        ValueError: if alpha is out of range.
    """
    alpha = _validated(alpha)

    def potential(theta):
        return -jnp.sum(jnp.asarray(alpha - 1, theta.dtype) * jnp.log(theta))

    def place(log_theta, key):
        del key
        theta = jnp.exp(log_theta)
        return _floored(theta / jnp.sum(theta, axis=-1, keepdims=True))

    def tempered(temperature):
        hotter = _at_temperature(alpha, 1.0, temperature)
        return dirichlet(hotter, f"{name} at temperature {temperature:g}")

    return Target(
        name=name,
        manifold=Simplex(len(alpha)),
        example=jnp.asarray(_example(alpha)),
        potential=potential,
        sample=_sampler(alpha, place),
        quadrature=(lambda m: simplex_rule(alpha, m)) if len(alpha) <= MOST_COORDINATES else None,
        characteristic=(lambda w: dirichlet_characteristic(alpha, w)) if alpha.sum() >= LEAST_TOTAL else None,
        curvature=_curvature(alpha - 1, alpha, 2),
        tempered=tempered,
        source=SOURCE,
        **_statistics(alpha, lambda position: position),
    )


def dirichlet_sphere(alpha: Any, name: str) -> Target:
    """The law of x on S^(K-1) with theta_k = x_k^2 ~ Dirichlet(alpha) and independent fair signs.

        U(x) = -sum_k (2 alpha_k - 1) log |x_k|   with respect to Hausdorff (surface) measure

    which is that of `dirichlet` less log prod |x_k|, the Jacobian of the map. The 2^K orthants are alike and, for
    alpha_k > 1/2, separated by walls where the density is zero, so all statistics here are even. Oracles as in
    `dirichlet`; x_k is below the smallest float with probability near exp(-1416 alpha_k).

    Source: byrne2013geodesic (the map); patterson2013stochastic, section 3.3 (the law).

    Args:
        alpha: (K,), positive, K >= 2; tested down to 1e-3.
        name: name of the target.

    Raises:
        ValueError: if alpha is out of range.
    """
    alpha = _validated(alpha)

    def potential(x):
        return -jnp.sum(jnp.asarray(2 * alpha - 1, x.dtype) * jnp.log(jnp.abs(x)))

    def place(log_theta, key):
        signs = jax.random.rademacher(key, log_theta.shape, log_theta.dtype)
        x = jnp.exp(log_theta / 2)
        return signs * _floored(x / jnp.linalg.norm(x, axis=-1, keepdims=True))

    def quadrature(m):
        """All orthants: with both signs a Gauss rule in theta is one in x, exact for odd polynomials too."""
        theta, weights = simplex_rule(alpha, m)
        signs = np.array(np.meshgrid(*[[1.0, -1.0]] * len(alpha))).reshape(len(alpha), -1).T
        return (signs[:, None, :] * np.sqrt(theta)).reshape(-1, len(alpha)), np.tile(weights / len(signs), len(signs))

    def tempered(temperature):
        hotter = _at_temperature(alpha, 0.5, temperature)
        return dirichlet_sphere(hotter, f"{name} at temperature {temperature:g}")

    return Target(
        name=name,
        manifold=Sphere(len(alpha)),
        example=to_sphere(jnp.asarray(_example(alpha))),
        potential=potential,
        sample=_sampler(alpha, place),
        quadrature=quadrature if len(alpha) <= MOST_COORDINATES else None,
        curvature=_curvature(2 * alpha - 1, alpha, 1),
        tempered=tempered,
        source=SOURCE,
        **_statistics(alpha, to_simplex),
    )


@partial(jax.jit, static_argnums=2)
def sample_log_dirichlet(key: jax.Array, alpha: jax.Array, n: int) -> jax.Array:
    """n draws (n, K) of log theta, theta ~ Dirichlet(alpha), from Gamma draws in log space: exact for small alpha."""
    logs = jax.random.loggamma(key, alpha, (n, len(alpha)))
    return logs - jax.nn.logsumexp(logs, axis=1, keepdims=True)


def log_cdf(alpha: Any, index: int, log_theta: np.ndarray) -> np.ndarray:
    """P(log theta_k <= y), vectorised, for y of any size.

    Below theta = 1e-20 it is theta^a / (a B(a, b)), the leading term of the Beta integral, to a relative error of 1e-20
    (1 + |b - 1|). Where the other alphas are small too, draws of theta_k round to 1, which this law does not.
    """
    alpha = np.asarray(alpha, np.float64)
    a, b = alpha[index], alpha.sum() - alpha[index]
    y = np.minimum(np.asarray(log_theta, np.float64), 0.0)
    lowest = np.exp(a * y - np.log(a) - special.betaln(a, b))
    return np.where(y < np.log(1e-20), lowest, special.betainc(a, b, np.exp(np.maximum(y, -100.0))))


def dirichlet_characteristic(alpha: np.ndarray, w: np.ndarray) -> np.ndarray:
    """E exp(i w . theta) (J,) for w (J, K).

        E exp(i t w . theta) t^(a - 1) / Gamma(a)  has the Laplace transform  prod_k (s - i w_k)^(-alpha_k)

    with a = sum alpha, because theta is a vector of Gamma variables over their sum, which is independent of it.
    Inverted at t = 1 by the trapezoidal rule on Re s = a, near the saddle: it converges geometrically, and the
    integrand falls like |s|^(-a).

    Source: closed form. Numerical range: a of at least `LEAST_TOTAL`.
    """
    total, found = alpha.sum(), []
    for row in w:
        centre = alpha @ row / total
        half = np.abs(row - centre).max() + 60 * np.sqrt(total)
        line, spacing = np.linspace(centre - half, centre + half, LINE_NODES, retstep=True)
        s = total + 1j * line
        logs = s - np.log(s[:, None] - 1j * row) @ alpha + special.gammaln(total)
        found.append(np.exp(logs).sum() * spacing / (2 * np.pi))
    return np.array(found)


def dense() -> Target:
    """Dirichlet(2, 3.5, 1.5) on the flat simplex."""
    return dirichlet([2.0, 3.5, 1.5], "dirichlet")


def sparse() -> Target:
    """Dirichlet(0.2, 0.3, 0.25) on the flat simplex: unbounded at every face."""
    return dirichlet([0.2, 0.3, 0.25], "dirichlet-sparse")


def concentrated() -> Target:
    """Dirichlet(8, 12, 9) on the flat simplex: the force has a finite fourth moment, at temperature 2 too."""
    return dirichlet([8.0, 12.0, 9.0], "dirichlet-concentrated")


def four() -> Target:
    """Dirichlet(8, 12, 9, 10): four categories."""
    return dirichlet([8.0, 12.0, 9.0, 10.0], "dirichlet-four")


def fifty() -> Target:
    """Dirichlet(alpha) on the flat simplex, fifty categories with alpha between 40 and 80."""
    return dirichlet(np.linspace(40.0, 80.0, 50)[np.arange(50) * 7 % 50], "dirichlet-fifty")


def dense_sphere() -> Target:
    """Dirichlet(2, 3.5, 1.5) through the sphere map."""
    return dirichlet_sphere([2.0, 3.5, 1.5], "dirichlet-sphere")


def concentrated_sphere() -> Target:
    """Dirichlet(24, 36, 30) through the sphere map: nearly Gaussian in each orthant, far from the walls."""
    return dirichlet_sphere([24.0, 36.0, 30.0], "dirichlet-sphere-concentrated")


def sparse_sphere() -> Target:
    """Dirichlet(0.2, 0.3, 0.25) through the sphere map."""
    return dirichlet_sphere([0.2, 0.3, 0.25], "dirichlet-sphere-sparse")


def _statistics(alpha: np.ndarray, theta: Callable[[Any], Any]) -> dict[str, Any]:
    """Moments and distribution functions of `theta(position)`, fields of a `Target`; of three coordinates of many."""
    total, count = alpha.sum(), len(alpha)
    shown = range(count) if count <= MOST_COORDINATES else (0, count // 2, count - 1)
    moments, cdfs = {}, {}
    smallest = np.log(np.finfo(np.float64).tiny)
    for k in shown:
        part = lambda position, k=k: theta(position)[k]
        a = alpha[k]
        moments[f"theta[{k}]"] = Moment(part, float(a / total))
        moments[f"theta[{k}]^2"] = Moment(lambda p, f=part: f(p) ** 2, float(a * (a + 1) / (total * (total + 1))))
        for j in (j for j in shown if j < k):
            value = a * alpha[j] / (total * (total + 1))
            pair = lambda position, j=j, k=k: theta(position)[j] * theta(position)[k]
            moments[f"theta[{j}]*theta[{k}]"] = Moment(pair, float(value))
        if log_cdf(alpha, k, smallest) < LEAST_MASS:
            value = float(special.digamma(a) - special.digamma(total))
            moments[f"log theta[{k}]"] = Moment(lambda p, f=part: jnp.log(f(p)), value)
            if special.betainc(total - a, a, np.finfo(np.float64).eps) < TOP_MASS:
                cdfs[f"theta[{k}]"] = Cdf(part, lambda x, a=a: special.betainc(a, total - a, np.clip(x, 0, 1)))

    return {"moments": moments, "cdfs": cdfs}


def _sampler(alpha: np.ndarray, place: Callable[..., Any]) -> Callable[..., Any]:
    """Exact draws; `place` takes log theta (n, K) and a key to positions."""

    def sample(key, n):
        draw_key, place_key = jax.random.split(key)
        return place(sample_log_dirichlet(draw_key, jnp.asarray(alpha), n), place_key)

    return sample


def _at_temperature(alpha: np.ndarray, free: float, temperature: float) -> np.ndarray:
    """Parameters of exp(-U / T), U that of alpha and zero at `free`. Raises ValueError if it cannot be normalised."""
    hotter = (alpha - free) / temperature + free
    if not np.all(hotter > 0):
        raise ValueError(f"temperature: exp(-U / {temperature:g}) cannot be normalised for alpha = {alpha}")
    return hotter


def _floored(values):
    """No smaller than the smallest normal float: an underflow to zero would make U infinite."""
    return jnp.maximum(values, jnp.finfo(values.dtype).tiny)


def simplex_rule(alpha: np.ndarray, m: int) -> Rule:
    """Sticks theta_k / (theta_k + ... + theta_K) are independent Beta: a product of Gauss-Jacobi rules (m^(K-1), K).

    Exact for polynomials of degree 2 m - 1; slow for logarithms.
    """
    points, weights = np.ones((1, 0)), np.ones(1)
    left = np.ones(1)
    for k in range(len(alpha) - 1):
        rest = alpha[k + 1 :].sum()
        stick, w = _beta_rule(alpha[k], rest, m)
        points = np.concatenate([np.repeat(points, m, axis=0), np.outer(left, stick).reshape(-1, 1)], axis=1)
        weights = np.outer(weights, w).ravel()
        left = np.outer(left, 1 - stick).ravel()
    return np.concatenate([points, left[:, None]], axis=1), weights


def _beta_rule(a: float, b: float, m: int) -> Rule:
    """m-point Gauss rule (m,), (m,) of Beta(a, b), from the recurrence of the Jacobi polynomials."""
    k = np.arange(1.0, m)
    total = a + b - 2
    centre = (a - b) * total / ((2 * k + total) * (2 * k + total + 2))
    square = 4 * k * (k + a - 1) * (k + b - 1) / ((2 * k + total) ** 2 * (2 * k + total + 1))
    square[1:] *= (k[1:] + total) / (2 * k[1:] + total - 1)  # 1 at k = 1, where both may vanish
    points, weights = jacobi_rule(np.concatenate([[(a - b) / (a + b)], centre]), np.sqrt(square))
    return (1 + points) / 2, weights


def _curvature(powers: np.ndarray, alpha: np.ndarray, order: int) -> float:
    """Largest second derivative of U on all but 1 % of the mass, 1 for a U that is concave.

    It is powers_k / theta_k^order at the quantile of each theta_k; `order` is 2 on the simplex and 1 on the sphere.
    """
    convex = powers > 0
    edge = scipy.stats.beta.ppf(0.01 / len(alpha), alpha[convex], alpha.sum() - alpha[convex])
    return float(np.max(powers[convex] / edge**order, initial=0.0)) or 1.0


def _example(alpha: np.ndarray) -> np.ndarray:
    """A point between the mean and the centre, which is neither."""
    tilted = alpha / alpha.sum() + (1 + np.arange(len(alpha))) / len(alpha)
    return tilted / tilted.sum()


def _validated(alpha: Any) -> np.ndarray:
    alpha = np.array(alpha, np.float64)
    if alpha.ndim != 1 or len(alpha) < 2 or not np.all((alpha > 0) & np.isfinite(alpha)):
        raise ValueError(f"alpha: must hold two or more positive finite numbers, got {alpha}")
    return alpha


def faces() -> Target:
    """Dirichlet(1, 1, 2): a density that does not vanish at two of the faces."""
    return dirichlet([1.0, 1.0, 2.0], "dirichlet-faces")


ENTRIES = (
    TargetRow("dirichlet", dense),
    TargetRow("dirichlet-sparse", sparse),
    TargetRow("dirichlet-concentrated", concentrated),
    TargetRow("dirichlet-four", four),
    TargetRow("dirichlet-fifty", fifty),
    TargetRow("dirichlet-faces", faces),
    TargetRow("dirichlet-sphere", dense_sphere),
    TargetRow("dirichlet-sphere-concentrated", concentrated_sphere),
    TargetRow("dirichlet-sphere-sparse", sparse_sphere),
)
