"""The Gaussian law restricted to the positive orthant."""

import itertools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy import linalg, special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian import require_gaussian
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.numerics.quadrature import (
    DensityLaw,
    Rule,
    coordinate,
    legendre_rule,
    power,
    product,
    until_accepted,
)
from sgmcmc_verification.targets.numerics.spherical import NEGLIGIBLE
from sgmcmc_verification.targets.target import Cdf, Moment, Target

LEAST_LOG = -300.0
"""Least log Phi(mu - l): beyond it (24 standard deviations) the quantile of a draw would underflow."""


def truncated_gaussian(mean: Any, covariance: Any, name: str) -> Target:
    """N(m, S) given x > 0, on (0, inf)^n, density with respect to Lebesgue measure.

        U(x) = (x - m)^T S^-1 (x - m) / 2

    Draws by minimax tilting, exact in any dimension: with S = L L^T and z = L^-1 (x - m), z_k is drawn from N(mu_k, 1)
    above its bound l_k(z_1 .. z_(k-1)) = -(m_k + sum_(j<k) L_kj z_j) / L_kk and the whole is accepted with probability
    exp(psi(z; mu) - psi(z*; mu)),

        psi(z; mu) = sum_k mu_k^2 / 2 - mu_k z_k + log Phi(mu_k - l_k(z)),   (z*, mu) its saddle point, z_n* = mu_n = 0

    psi is concave in z, so its value at the saddle is its maximum; for a diagonal S every proposal is accepted.

    Moments and distribution functions of a coordinate are integrals over the other ones, by Gauss-Legendre panels: for
    n <= 3, and for a diagonal S of any size. Beyond that there are none, and the law has draws alone.

    Source: botev2017normal, sections 2.1 and 2.2 (draws); quadrature.

    Args:
        mean: m (n,).
        covariance: S (n, n), symmetric positive definite.
        name: name of the target.

    Raises:
        ValueError: if an argument is out of range, or the orthant is so far in the tail that no saddle is found.
    """
    mean, covariance = np.array(mean, np.float64), np.array(covariance, np.float64)
    require_gaussian(mean, covariance)
    n = len(mean)
    precision = np.linalg.inv(covariance)
    scales = np.sqrt(np.diagonal(covariance))
    diagonal = not np.any(covariance - np.diag(np.diagonal(covariance)))
    root = np.linalg.cholesky(covariance)
    tilt, level = _saddle(mean, root)

    def potential(x):
        d = x - jnp.asarray(mean, x.dtype)
        return d @ jnp.asarray(precision, x.dtype) @ d / 2

    def sample(key, count):
        return _sample(key, count, jnp.asarray(mean), jnp.asarray(root), jnp.asarray(tilt), level)

    # P(x_i > high) below exp(-NEGLIGIBLE) of the mass of the orthant, whose logarithm is about `level`
    highs = mean + scales * math.sqrt(2 * (NEGLIGIBLE - level))
    panels = {1: 10, 2: 10}.get(n, 5)

    def rule(panels, order=16):
        axes = [legendre_rule(0.0, high, panels, order) for high in highs]
        points = np.stack(np.meshgrid(*[x for x, _ in axes], indexing="ij"), axis=-1).reshape(-1, n)
        weights = np.prod(np.stack(np.meshgrid(*[w for _, w in axes], indexing="ij"), axis=-1), axis=-1).ravel()
        centred = points - mean
        weights = weights * np.exp(-np.sum(centred @ precision * centred, axis=1) / 2)
        return points, weights / weights.sum()

    moments, cdfs = {}, {}
    if diagonal:
        for i in range(n):
            high = mean[i] + scales[i] * math.sqrt(2 * (NEGLIGIBLE - special.log_ndtr(mean[i] / scales[i])))
            part = _line(mean[i], scales[i], high)
            cdfs[f"theta[{i}]"] = Cdf(coordinate(i), part.cdf)
            x, w = legendre_rule(0.0, high, part.panels)
            w = w * part.density(x)
            for k in (1, 2, 4):
                value = float(w @ x**k / w.sum())
                moments[_power_label(i, k)] = Moment(power(i, k), value, 1e-14 * max(1.0, value))
    elif n <= 3:
        fine, coarse = rule(panels), rule(panels - 2)
        for i in range(n):
            for k in (1, 2, 4):
                moments[_power_label(i, k)] = _moment(power(i, k), lambda x, i=i, k=k: x[:, i] ** k, fine, coarse)
            for j in range(i):
                pair = lambda x, i=i, j=j: x[:, i] * x[:, j]
                moments[f"theta[{j}]*theta[{i}]"] = _moment(product(j, i), pair, fine, coarse)
            cdfs[f"theta[{i}]"] = Cdf(coordinate(i), _marginal(mean, precision, highs, i, panels).cdf)
    return Target(
        name=name,
        manifold=Positive(n),
        example=jnp.asarray(np.maximum(mean, 0) + 0.6 * scales),
        potential=potential,
        sample=sample,
        moments=moments,
        cdfs=cdfs,
        quadrature=(lambda m: rule(1, m)) if n <= 3 else None,
        interval=(0.0, float(highs[0])) if n == 1 else None,
        curvature=float(np.linalg.eigvalsh(precision)[-1]),
        tempered=lambda t: truncated_gaussian(mean, t * covariance, f"{name} at temperature {t:g}"),
        source="botev2017normal (draws); quadrature",
    )


def truncated_2d() -> Target:
    """Two correlated coordinates, the mean of one of them outside."""
    return truncated_gaussian([0.5, -0.8], [[1.0, 0.6], [0.6, 1.2]], "truncated-gaussian")


def half_gaussian() -> Target:
    """|x| for x standard normal: half of its mass is within 0.67 of the mirror, where its density is largest.

    U continues evenly through zero, so that a step that is mirrored there is the folded step of the normal law.
    """
    return truncated_gaussian([0.0], [[1.0]], "half-gaussian")


def _power_label(index: int, exponent: int) -> str:
    return f"theta[{index}]" + (f"^{exponent}" if exponent > 1 else "")


def _moment(function, host, fine: Rule, coarse: Rule) -> Moment:
    value, other = (float(weights @ host(points)) for points, weights in (fine, coarse))
    return Moment(function, value, abs(value - other) + 1e-14 * max(1.0, abs(value)))


def _line(mean: float, scale: float, high: float) -> DensityLaw:
    """One coordinate alone; from its largest value, so that nothing underflows far in the tail."""
    top = max(mean, 0.0)
    density = lambda x: np.exp(-(x - top) * (x + top - 2 * mean) / (2 * scale**2))
    return DensityLaw(density, (0.0, float(high)), 10)


def _marginal(mean: np.ndarray, precision: np.ndarray, highs: np.ndarray, i: int, panels: int) -> DensityLaw:
    """A coordinate, by quadrature over the others."""
    n = len(mean)
    others = [j for j in range(n) if j != i]
    axes = [legendre_rule(0.0, highs[j], panels) for j in others]
    points = np.array(list(itertools.product(*[x for x, _ in axes])))
    weights = np.prod(np.array(list(itertools.product(*[w for _, w in axes]))), axis=1)
    rest = points - mean[others]
    quadratic = np.sum(rest @ precision[np.ix_(others, others)] * rest, axis=1) / 2
    slope = rest @ precision[others, i]

    def density(x):
        d = np.asarray(x, np.float64) - mean[i]
        return np.array([weights @ np.exp(-quadratic - slope * v - precision[i, i] * v * v / 2) for v in d])

    return DensityLaw(density, (0.0, float(highs[i])), panels)


def _saddle(mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, float]:
    """mu (n,) and psi at the saddle point."""
    n = len(mean)
    scales = np.diagonal(root)
    lower = root / scales[:, None] - np.eye(n)  # strictly lower triangular

    def gradient(both):
        z, mu = np.append(both[: n - 1], 0.0), np.append(both[n - 1 :], 0.0)
        inside = mu + mean / scales + lower @ z
        ratio = np.exp(-(inside**2) / 2 - special.log_ndtr(inside)) / math.sqrt(2 * math.pi)
        return np.concatenate([(-mu + lower.T @ ratio)[: n - 1], (mu - z + ratio)[: n - 1]])

    both = scipy.optimize.root(gradient, np.zeros(2 * n - 2)).x if n > 1 else np.zeros(0)
    z, mu = np.append(both[: n - 1], 0.0), np.append(both[n - 1 :], 0.0)
    inside = mu + mean / scales + lower @ z
    if (n > 1 and not linalg.norm(gradient(both)) <= 1e-6) or not np.min(special.log_ndtr(inside)) > LEAST_LOG:
        raise ValueError(f"mean: too far outside of the orthant for its scale, got {mean}; move it closer")
    return mu, float(np.sum(mu**2 / 2 - mu * z + special.log_ndtr(inside)))


@partial(jax.jit, static_argnums=1)
def _sample(key, count, mean, root, tilt, level):
    n = len(mean)
    scales = jnp.diagonal(root)

    def attempt(key):
        draw_key, accept_key = jax.random.split(key)
        uniforms = jax.random.uniform(draw_key, (n, count), mean.dtype, minval=jnp.finfo(mean.dtype).tiny)

        def extend(k, carry):
            z, psi = carry
            bound = -(mean[k] + z @ root[k]) / scales[k]  # entries of z from k on are still 0
            inside = jax.scipy.special.log_ndtr(tilt[k] - bound)
            # mu - z is a standard normal below mu - bound
            value = tilt[k] - jax.scipy.special.ndtri(uniforms[k] * jnp.exp(inside))
            value = jnp.maximum(value, bound)
            return z.at[:, k].set(value), psi + tilt[k] ** 2 / 2 - tilt[k] * value + inside

        z, psi = jax.lax.fori_loop(0, n, extend, (jnp.zeros((count, n), mean.dtype), jnp.zeros(count, mean.dtype)))
        x = mean + z @ root.T
        accepted = jnp.log(jax.random.uniform(accept_key, (count,), mean.dtype)) < psi - level
        return jnp.maximum(x, jnp.finfo(x.dtype).tiny), accepted

    return until_accepted(key, attempt)


ENTRIES = (
    TargetRow("truncated-gaussian", truncated_2d),
    TargetRow("half-gaussian", half_gaussian),
)
