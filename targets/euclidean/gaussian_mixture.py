"""Gaussian mixtures."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import coordinate, power, product, tensor_rule
from sgmcmc_verification.targets.target import Cdf, Moment, Target


def gaussian_mixture(weights: Any, means: Any, covariances: Any, name: str, separated: bool = False) -> Target:
    """sum_k w_k N(m_k, S_k).

        U(x) = -log sum_k w_k |S_k|^(-1/2) exp(-(x - m_k)^T S_k^-1 (x - m_k) / 2)

    Source: closed form.

    Args:
        weights: (k,), positive, with sum one.
        means: (k, d).
        covariances: (k, d, d), each symmetric positive definite.
        name: name of the target.
        separated: True if a local move does not connect the modes in reasonable time.

    Raises:
        ValueError: if a shape does not fit, the weights are no probabilities, or a covariance is not symmetric
            positive definite.
    """
    weights, means, covariances = (np.array(a, np.float64) for a in (weights, means, covariances))
    _validate(weights, means, covariances)
    count, dim = means.shape
    roots = np.linalg.cholesky(covariances)
    precisions = np.linalg.inv(covariances)
    levels = np.log(weights) - np.sum(np.log(np.diagonal(roots, axis1=1, axis2=2)), axis=1)

    def potential(x):
        d = x - jnp.asarray(means, x.dtype)
        squares = jnp.einsum("ki,kij,kj->k", d, jnp.asarray(precisions, x.dtype), d)
        return -jax.nn.logsumexp(jnp.asarray(levels, x.dtype) - squares / 2)

    def sample(key, n):
        label_key, normal_key = jax.random.split(key)
        labels = jax.random.choice(label_key, count, (n,), p=jnp.asarray(weights))
        normals = jax.random.normal(normal_key, (n, dim))
        return jnp.asarray(means)[labels] + jnp.einsum("nij,nj->ni", jnp.asarray(roots)[labels], normals)

    def quadrature(n):
        points, point_weights = tensor_rule(dim, n)
        return np.concatenate([m + points @ r.T for m, r in zip(means, roots, strict=True)]), np.outer(
            weights, point_weights
        ).ravel()

    scales = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))  # (k, d)

    def marginal(i):
        return lambda x: special.ndtr((np.asarray(x)[..., None] - means[:, i]) / scales[:, i]) @ weights

    interval = float(np.min(means - 8.2 * scales)), float(np.max(means + 8.2 * scales))
    return Target(
        name=name,
        manifold=Euclidean(dim),
        example=jnp.asarray(means[0] + 0.5 * scales[0] * (-1.0) ** np.arange(dim)),
        potential=potential,
        sample=sample,
        moments=_moments(weights, means, covariances),
        cdfs={f"theta[{i}]": Cdf(coordinate(i), marginal(i)) for i in range(dim)},
        quadrature=quadrature if dim <= 3 else None,
        interval=interval if dim == 1 else None,
        # The Hessian is the mean precision minus a covariance of gradients.
        curvature=float(max(np.linalg.eigvalsh(p)[-1] for p in precisions)),
        separated=separated,
        source="closed form; sampling by the label of the component",
    )


def mixture_1d() -> Target:
    """Modes at -3 and 3 with weights 0.3 and 0.7 and standard deviations 0.6 and 0.9."""
    return gaussian_mixture([0.3, 0.7], [[-3.0], [3.0]], [[[0.36]], [[0.81]]], "gaussian-mixture", separated=True)


def three_widths() -> Target:
    """Normal laws of standard deviations 8 about -20, 1e-3 about 0 and 0.7 about 5, of weights 0.4, 0.3 and 0.3.

    Kernels that stop looking for a point after some tries are off in the narrow one. Those whose interval is wider seen
    from a wide mode than from the one beside it are off in both.
    """
    means, covariances = [[-20.0], [0.0], [5.0]], [[[64.0]], [[1e-6]], [[0.49]]]
    return gaussian_mixture([0.4, 0.3, 0.3], means, covariances, "three-widths", separated=True)


def mixture_2d() -> Target:
    """Three components of unequal weights and shapes that touch each other."""
    means = [[0.0, 0.0], [2.5, 0.5], [-0.5, 2.5]]
    covariances = [[[0.5, 0.2], [0.2, 0.4]], [[0.6, -0.3], [-0.3, 0.8]], [[0.9, 0.0], [0.0, 0.3]]]
    return gaussian_mixture([0.5, 0.3, 0.2], means, covariances, "gaussian-mixture-2d")


def require_weights(weights: np.ndarray, count: int) -> None:
    """Raise ValueError unless `weights` are `count` positive numbers with sum one."""
    if weights.shape != (count,) or not np.all(weights > 0) or abs(weights.sum() - 1) > 1e-12:
        raise ValueError(f"weights: must be {count} positive numbers with sum one, got {weights}")


def _validate(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> None:
    if means.ndim != 2 or means.size == 0 or not np.all(np.isfinite(means)):
        raise ValueError(f"means: must be a finite (k, d) array, got shape {means.shape}")
    count, dim = means.shape
    require_weights(weights, count)
    if covariances.shape != (count, dim, dim) or not np.all(np.isfinite(covariances)):
        raise ValueError(f"covariances: must be a finite ({count}, {dim}, {dim}) array, got shape {covariances.shape}")
    for matrix in covariances:
        asymmetry = np.max(np.abs(matrix - matrix.T))
        if asymmetry > 8 * np.finfo(np.float64).eps * np.max(np.abs(matrix)) or np.linalg.eigvalsh(matrix)[0] <= 0:
            raise ValueError(f"covariances: must be symmetric positive definite, got {matrix}")


def _moments(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> dict[str, Moment]:
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    first = weights @ means
    second = weights @ (means**2 + variances)
    fourth = weights @ (means**4 + 6 * means**2 * variances + 3 * variances**2)
    cross = np.einsum("k,kij->ij", weights, means[:, :, None] * means[:, None, :] + covariances)
    moments = {}
    for i in range(means.shape[1]):
        moments[f"theta[{i}]"] = Moment(coordinate(i), float(first[i]))
        moments[f"theta[{i}]^2"] = Moment(power(i, 2), float(second[i]))
        moments[f"theta[{i}]^4"] = Moment(power(i, 4), float(fourth[i]))
        for j in range(i):
            moments[f"theta[{j}]*theta[{i}]"] = Moment(product(j, i), float(cross[i, j]))
    return moments


ENTRIES = (
    TargetRow("gaussian-mixture", mixture_1d),
    TargetRow("three-widths", three_widths),
    TargetRow("gaussian-mixture-2d", mixture_2d),
)
