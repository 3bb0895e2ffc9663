"""Posteriors with so few data that every minibatch can be listed."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import DensityLaw, coordinate, power, product, rejection
from sgmcmc_verification.targets.target import Cdf, DataTerms, Moment, Target

GAUSSIAN_DATA = np.array([[1.3, -0.4], [0.2, 0.9], [-0.7, 1.6], [2.1, 0.3], [0.8, -1.1]])
NOISE_COVARIANCE = np.array([[1.5, 0.4], [0.4, 0.8]])
PRIOR_VARIANCE = 4.0

REGRESSION_FEATURES = np.array([[1.0, -1.5], [1.0, -0.6], [1.0, 0.2], [1.0, 0.9], [1.0, 1.8]])
REGRESSION_RESPONSES = np.array([-0.9, 0.4, 0.1, 1.7, 1.2])
REGRESSION_NOISE_VARIANCE = 0.7

LOGISTIC_FEATURES = np.array([[1.0, -1.2], [1.0, -0.3], [1.0, 0.1], [1.0, 0.6], [1.0, 1.4], [1.0, 2.0]])
LOGISTIC_LABELS = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
LOGISTIC_PRIOR_VARIANCE = 2.25


def tiny_gaussian_data() -> Target:
    """Posterior of a Gaussian mean, five data in the plane.

        y_i ~ N(x, S), x ~ N(0, t I):  U(x) = |x|^2 / (2 t) + sum_i (y_i - x)^T S^-1 (y_i - x) / 2

    The posterior is N(m, P^-1) with P = I / t + N S^-1 and P m = S^-1 sum_i y_i. The gradient noise of a minibatch
    does not depend on x.

    Source: conjugacy, closed form.
    """
    noise_precision = np.linalg.inv(NOISE_COVARIANCE)
    covariance = np.linalg.inv(np.eye(2) / PRIOR_VARIANCE + len(GAUSSIAN_DATA) * noise_precision)
    mean = covariance @ noise_precision @ GAUSSIAN_DATA.sum(axis=0)

    def datum(x, y):
        d = jnp.asarray(y, x.dtype) - x
        return d @ jnp.asarray(noise_precision, x.dtype) @ d / 2

    return _conjugate("tiny-gaussian-data", mean, covariance, datum, jax.device_put(np.asarray(GAUSSIAN_DATA)))


def tiny_regression() -> Target:
    """Posterior of a linear regression, intercept and slope, five data.

        y_i ~ N(z_i . x, v), x ~ N(0, t I):  U(x) = |x|^2 / (2 t) + sum_i (y_i - z_i . x)^2 / (2 v)

    The posterior is N(m, P^-1) with P = I / t + Z^T Z / v and P m = Z^T y / v. The data have Hessians z_i z_i^T / v of
    their own, so that the gradient noise of a minibatch depends on x, and is still there where gradients are corrected
    by those at another point.

    Source: conjugacy, closed form.
    """
    features, responses, noise = REGRESSION_FEATURES, REGRESSION_RESPONSES, REGRESSION_NOISE_VARIANCE
    covariance = np.linalg.inv(np.eye(2) / PRIOR_VARIANCE + features.T @ features / noise)
    mean = covariance @ features.T @ responses / noise

    def datum(x, record):
        z, y = (jnp.asarray(part, x.dtype) for part in record)
        return (y - z @ x) ** 2 / (2 * noise)

    return _conjugate("tiny-regression", mean, covariance, datum, (jnp.asarray(features), jnp.asarray(responses)))


def tiny_logistic() -> Target:
    """Posterior of a Bayesian logistic regression, intercept and slope, six data that no line separates.

        s_i in {-1, 1}, P(s_i) = sigmoid(s_i z_i . x), x ~ N(0, t I):
        U(x) = |x|^2 / (2 t) + sum_i log(1 + exp(-s_i z_i . x))

    U - |x|^2 / (2 t) is convex, so U(x) >= U(x*) + |x - x*|^2 / (2 t) at the mode x*: draws from N(x*, t I) accepted
    with probability exp(U(x*) + |x - x*|^2 / (2 t) - U(x)) are exact.

    The quadrature is the tensor midpoint rule in coordinates whitened by the Hessian at the mode, which converges
    geometrically in n for an analytic density: moments to 1e-4 at n = 30, 1e-10 at n = 60.

    Source: derived here; moments by that rule at two resolutions, their difference in the error bound.
    """
    variance = LOGISTIC_PRIOR_VARIANCE
    signed = LOGISTIC_FEATURES * LOGISTIC_LABELS[:, None]

    def host_potential(x):
        """U for NumPy points (..., 2)."""
        return np.sum(x**2, axis=-1) / (2 * variance) + np.sum(np.logaddexp(0, -x @ signed.T), axis=-1)

    mode, hessian = _mode(signed, variance)
    root = np.linalg.cholesky(np.linalg.inv(hessian))
    reach = _reach(lambda z: host_potential(mode + z @ root.T) - host_potential(mode))

    def quadrature(n):
        line = (2 * (np.arange(n) + 0.5) / n - 1) * reach
        points = mode + np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2) @ root.T
        weights = np.exp(host_potential(mode) - host_potential(points))
        return points, weights / weights.sum()

    def prior(x):
        return x @ x / (2 * variance)

    def datum(x, record):
        features, label = (jnp.asarray(part, x.dtype) for part in record)
        return jax.nn.softplus(-label * (features @ x))

    terms = DataTerms(prior, datum, (jax.device_put(LOGISTIC_FEATURES), jax.device_put(LOGISTIC_LABELS)), len(signed))
    potential = _total(terms)

    def propose(key, n):
        return jnp.asarray(mode) + math.sqrt(variance) * jax.random.normal(key, (n, 2))

    def log_accept(x):
        start = jnp.asarray(mode, x.dtype)
        return potential(start) + (x - start) @ (x - start) / (2 * variance) - potential(x)

    def sample(key, n):
        return rejection(key, n, propose, log_accept)

    def marginal(i):
        scale = reach * math.sqrt(np.sum(root[i] ** 2))
        other_scale = reach * math.sqrt(np.sum(root[1 - i] ** 2)) * math.sqrt(2)
        line = mode[1 - i] + (2 * (np.arange(160) + 0.5) / 160 - 1) * other_scale

        def density(x):
            x = np.broadcast_to(np.asarray(x)[..., None], (*np.shape(x), line.size))
            points = np.stack((x, np.broadcast_to(line, x.shape))[:: 1 if i == 0 else -1], axis=-1)
            return np.exp(host_potential(mode) - host_potential(points)).sum(axis=-1)

        return DensityLaw(density, (float(mode[i] - math.sqrt(2) * scale), float(mode[i] + math.sqrt(2) * scale))).cdf

    return Target(
        name="tiny-logistic",
        manifold=Euclidean(2),
        example=jax.device_put(np.array([0.3, -0.2])),
        potential=potential,
        sample=sample,
        moments=_moments(quadrature),
        cdfs={f"theta[{i}]": Cdf(coordinate(i), marginal(i)) for i in range(2)},
        quadrature=quadrature,
        terms=terms,
        # sigmoid' <= 1/4
        curvature=float(1 / variance + np.linalg.eigvalsh(signed.T @ signed)[-1] / 4),
        source="two-dimensional quadrature; exact draws by rejection from a Gaussian envelope",
    )


def _conjugate(name: str, mean: np.ndarray, covariance: np.ndarray, datum: Callable, data: Any) -> Target:
    """N(mean, covariance) as the posterior of data under the prior N(0, t I)."""
    law = gaussian(mean, (covariance + covariance.T) / 2, name)
    terms = DataTerms(lambda x: x @ x / (2 * PRIOR_VARIANCE), datum, data, len(jax.tree.leaves(data)[0]))
    return replace(law, potential=_total(terms), terms=terms, source="conjugacy, closed form")


def _total(terms: DataTerms):
    """x -> prior(x) + sum_i datum(x, data[i])."""
    return lambda x: terms.prior(x) + jnp.sum(jax.vmap(terms.datum, (None, 0))(x, terms.data))


def _mode(signed: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Minimum of the logistic U and the Hessian there, by Newton's method (U is strongly convex and mild)."""
    x = np.zeros(2)
    hessian = np.eye(2)
    for _ in range(50):
        p = special.expit(-signed @ x)
        gradient = x / variance - signed.T @ p
        hessian = np.eye(2) / variance + (signed.T * (p * (1 - p))) @ signed
        x = x - np.linalg.solve(hessian, gradient)
    return x, hessian


def _reach(excess) -> float:
    """Half-width of a square (in whitened coordinates) with exp(-excess) below 1e-18 on its boundary."""
    line = np.linspace(-1, 1, 201)
    one = np.ones_like(line)
    boundary = np.concatenate([np.stack(s, axis=-1) for s in ((line, one), (line, -one), (one, line), (-one, line))])
    reach = 5.0
    while np.min(excess(reach * boundary)) < 42:
        reach += 0.5
    return reach


def _moments(quadrature) -> dict[str, Moment]:
    """First, second and fourth moments and the cross product from the rule; error from two resolutions."""
    fine, coarse = quadrature(160), quadrature(120)

    def moment(function, host):
        values = [float(weights @ host(points.T)) for points, weights in (fine, coarse)]
        return Moment(function, values[0], abs(values[0] - values[1]) + 1e-14 * max(1.0, abs(values[0])))

    moments = {}
    for i in range(2):
        moments[f"theta[{i}]"] = moment(coordinate(i), lambda x, i=i: x[i])
        for k in (2, 4):
            moments[f"theta[{i}]^{k}"] = moment(power(i, k), lambda x, i=i, k=k: x[i] ** k)
    moments["theta[0]*theta[1]"] = moment(product(0, 1), lambda x: x[0] * x[1])
    return moments


ENTRIES = (
    TargetRow("tiny-gaussian-data", tiny_gaussian_data),
    TargetRow("tiny-regression", tiny_regression),
    TargetRow("tiny-logistic", tiny_logistic),
)
