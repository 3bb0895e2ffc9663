"""The Riemannian metric of logistic regression: Fisher information of the labels plus precision of the prior."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.riemannian.metrics import SymmetricRoot
from sgmcmc_verification.samplers.validation import require, require_positive


@dataclass(frozen=True, eq=False)
class LogisticMetric(SymmetricRoot):
    """G(w) = a sum_n c_n x_n x_n^T + I / alpha with c_n = s_n (1 - s_n), s_n = sigmoid(x_n . w).

        grad log |G| = a sum_n f_n (x_n^T G^-1 x_n) x_n,  f_n = c_n (1 - 2 s_n),   div G^-1 = -G^-1 grad log |G|

    The second identity holds because G is the Hessian of a function, minus the log-posterior.

    Source: liu2018riemannian, section 5.1; girolami2011riemann, section 7 (the metric).

    Args:
        features: X (n, d).
        prior_variance: alpha > 0.
        scale: a > 0, of the sum: (number of data) / n for a minibatch of n. G is then unbiased; G^-1 is not, by
            Jensen's inequality its mean is above the inverse of the mean.

    Raises:
        ValueError: if `features` is no matrix, or another argument not positive.
    """

    features: np.ndarray | jax.Array
    prior_variance: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        require(np.ndim(self.features) == 2, "features: must have shape (n, d)", np.shape(self.features))
        require_positive(self, "prior_variance", "scale")

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1 (d, d)."""
        X = jnp.asarray(self.features, theta.dtype)
        s = jax.nn.sigmoid(X @ theta)
        G = (X.T * (self.scale * s * (1 - s))) @ X + jnp.eye(theta.size, dtype=theta.dtype) / self.prior_variance
        return jnp.linalg.inv(G)

    def divergence(self, theta: jax.Array) -> jax.Array:
        """div G^-1 (d,), in closed form."""
        X, A = jnp.asarray(self.features, theta.dtype), self.inverse(theta)
        s = jax.nn.sigmoid(X @ theta)
        f = self.scale * s * (1 - s) * (1 - 2 * s)
        return -A @ (X.T @ (f * jnp.sum((X @ A) * X, axis=1)))
