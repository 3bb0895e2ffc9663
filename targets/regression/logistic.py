"""Bayesian logistic regression: the model, its Laplace approximation and its predictions."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.quadrature import tensor_rule
from sgmcmc_verification.targets.numerics.validation import require_positive
from sgmcmc_verification.targets.target import DataTerms, GaussianLaw, Target

MAX_QUADRATURE_DIM = 3
"""Up to this dimension a tensor rule is given."""


def logistic_regression(features: np.ndarray, labels: np.ndarray, prior_variance: float, name: str) -> Target:
    """The posterior of logistic regression with a Gaussian prior.

        U(w) = w.w / (2 alpha) + sum_i [ log(1 + exp(x_i.w)) - y_i x_i.w ]

    Source: liu2018riemannian, section 5.1 (there alpha = 0.01 and the last column of x is constant 1). The Hessian is
    sum_i s_i (1 - s_i) x_i x_i^T + I / alpha with s_i = sigmoid(x_i.w), so U is strongly convex with largest
    curvature at most lambda_max(X^T X) / 4 + 1 / alpha, for all w.

    Args:
        features: X (n, d), finite; append a constant column for an intercept.
        labels: y (n,), 0 or 1.
        prior_variance: alpha > 0, of the prior N(0, alpha I).
        name: name of the target.

    Returns:
        A target on R^d whose positions are arrays (d,) in the dtype of the position, without an exact sampler; with
        a quadrature rule for d <= 3.

    Raises:
        ValueError: naming the argument, if a shape does not fit, a number is not finite, a label is not 0 or 1 or
            the variance is not positive.
    """
    features, labels = _validate(features, labels, prior_variance)
    size, dim = features.shape
    law = laplace(features, labels, prior_variance)
    scales = np.sqrt(np.diag(np.linalg.inv(law.precision)))
    signs = 2 * labels - 1

    def prior(position):
        return position @ position / (2 * prior_variance)

    def datum(position, row):
        x, y = jnp.asarray(row["features"], position.dtype), jnp.asarray(row["labels"], position.dtype)
        return jax.nn.softplus((1 - 2 * y) * (x @ position))

    def potential(position):
        X, s = jnp.asarray(features, position.dtype), jnp.asarray(signs, position.dtype)
        return prior(position) + jnp.sum(jax.nn.softplus(-s * (X @ position)))

    return Target(
        name=name,
        manifold=Euclidean(dim),
        # half a standard deviation off the mode: there the gradient vanishes, which would hide mistakes
        example=jnp.asarray(law.mean + 0.5 * scales * (-1.0) ** np.arange(dim), jnp.result_type(float)),
        potential=potential,
        terms=DataTerms(prior, datum, {"features": features, "labels": labels}, size),
        curvature=float(np.linalg.eigvalsh(features.T @ features)[-1] / 4 + 1 / prior_variance),
        quadrature=_rule(features, signs, prior_variance, law) if dim <= MAX_QUADRATURE_DIM else None,
        source="liu2018riemannian, section 5.1",
    )


def laplace(features: np.ndarray, labels: np.ndarray, prior_variance: float) -> GaussianLaw:
    """The mode of the posterior and the Hessian of U there, by Newton's method with halved steps.

    Source: closed-form gradient and Hessian, see `logistic_regression`.

    Returns:
        Mode (d,), with a gradient that is zero up to round-off, and Hessian (d, d).
    """
    signs = 2 * labels - 1
    weights = np.zeros(features.shape[1])
    value = _potential(weights[None], features, signs, prior_variance)[0]

    def derivatives(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = special.expit(features @ weights)
        gradient = features.T @ (s - labels) + weights / prior_variance
        return gradient, (features.T * (s * (1 - s))) @ features + np.eye(weights.size) / prior_variance

    gradient, hessian = derivatives(weights)
    for _ in range(100):
        step = np.linalg.solve(hessian, gradient)
        decrement = gradient @ step
        if decrement < 1e-24 * max(1.0, abs(value)):
            break
        scale = 1.0
        while True:
            proposed = weights - scale * step
            new = _potential(proposed[None], features, signs, prior_variance)[0]
            # near the mode the decrease drowns in the round-off of U, where full steps are right
            if new <= value - 0.25 * scale * decrement or decrement < 1e-10 * max(1.0, abs(value)):
                break
            scale /= 2
        weights, value = proposed, new
        gradient, hessian = derivatives(weights)
    return GaussianLaw(weights, hessian)


def _potential(weights: np.ndarray, features: np.ndarray, signs: np.ndarray, prior_variance: float) -> np.ndarray:
    """U at weights (m, d), in NumPy: (m,)."""
    margins = weights @ features.T * signs
    return np.logaddexp(0, -margins).sum(axis=1) + (weights**2).sum(axis=1) / (2 * prior_variance)


def _rule(features, signs, prior_variance, law) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """Gauss-Hermite rule of the Laplace approximation, reweighted to the posterior; converges geometrically."""

    def quadrature(n):
        points, weights = tensor_rule(law.mean.size, n)
        # x = mode + L z with L L^T = H^-1
        positions = law.mean + np.linalg.solve(np.linalg.cholesky(law.precision).T, points.T).T
        log_ratio = (points**2).sum(axis=1) / 2 - _potential(positions, features, signs, prior_variance)
        weights = weights * np.exp(log_ratio - log_ratio.max())
        return positions, weights / weights.sum()

    return quadrature


def expectations(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], centre: np.ndarray
) -> Mapping[str, Callable[[jax.Array], jax.Array]]:
    """The statistics whose posterior expectations a reference holds, by name.

        weight[j] = w_j,  square[j] = (w_j - c_j)^2,  log likelihood = sum_i log p(y_i | x_i, w) (training rows),
        test log likelihood = the mean of log p(y | x, w) over the test rows,
        probability[k] = sigmoid(x_k.w) for the first five test rows

    Args:
        train: features (n, d) and labels (n,).
        test: features (m, d) and labels (m,), m >= 5.
        centre: c (d,), close to the posterior mean (the mode), so that squares are sensitive to variances.
    """

    def log_likelihood(table):
        features, signs = table[0], 2 * table[1] - 1

        def total(w):
            return -jnp.sum(jax.nn.softplus(-jnp.asarray(signs, w.dtype) * (jnp.asarray(features, w.dtype) @ w)))

        return total

    train_total, test_total = log_likelihood(train), log_likelihood(test)
    weights = {f"weight[{j}]": lambda w, j=j: w[j] for j in range(len(centre))}
    squares = {f"square[{j}]": lambda w, j=j, c=float(c): (w[j] - c) ** 2 for j, c in enumerate(centre)}
    probabilities = {
        f"probability[{k}]": lambda w, x=test[0][k]: jax.nn.sigmoid(jnp.asarray(x, w.dtype) @ w) for k in range(5)
    }
    totals = {"log likelihood": train_total, "test log likelihood": lambda w: test_total(w) / len(test[1])}
    return weights | squares | totals | probabilities


class Prediction(NamedTuple):
    """Quality of posterior predictions on a table.

    Attributes:
        accuracy: share of rows whose label has predictive probability of at least one half.
        log_likelihood: mean over the rows of the log predictive probability of the label.
    """

    accuracy: float
    log_likelihood: float


def predictive(weights: np.ndarray, features: np.ndarray, labels: np.ndarray) -> Prediction:
    """Predictions averaged over draws: p(y = 1 | x) = (1/m) sum_i sigmoid(x.w_i).

    Source: liu2018riemannian, section 5.1.

    Args:
        weights: draws or particles (m, d).
        features: (n, d).
        labels: (n,), 0 or 1.

    Raises:
        ValueError: naming the argument, if a shape does not fit, a number is not finite or a label is not 0 or 1.
    """
    features, labels = _validate(features, labels, 1.0)
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 2 or weights.shape[0] == 0 or weights.shape[1] != features.shape[1]:
        raise ValueError(f"weights: must have shape (m, {features.shape[1]}), got {weights.shape}")
    if not np.all(np.isfinite(weights)):
        raise ValueError("weights: must be finite")
    margins = (features @ weights.T) * (2 * labels - 1)[:, None]
    log_probability = special.logsumexp(special.log_expit(margins), axis=1) - np.log(len(weights))
    return Prediction(float(np.mean(log_probability >= np.log(0.5))), float(np.mean(log_probability)))


def _validate(features, labels, prior_variance) -> tuple[np.ndarray, np.ndarray]:
    features, labels = np.array(features, np.float64), np.array(labels, np.float64)
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"features: must have shape (n, d) with n, d >= 1, got {features.shape}")
    if not np.all(np.isfinite(features)):
        raise ValueError(f"features: must be finite; row {int(np.argwhere(~np.isfinite(features))[0, 0])} is not")
    if labels.shape != (len(features),):
        raise ValueError(
            f"labels: must have shape ({len(features)},), one for each row of features, got {labels.shape}"
        )
    if not np.all((labels == 0) | (labels == 1)):
        raise ValueError(f"labels: must be 0 or 1; row {int(np.argwhere((labels != 0) & (labels != 1))[0, 0])} is not")
    require_positive(prior_variance=prior_variance)
    return features, labels
