"""Bijections from R^n to where constrained parameters live, with the logarithm of the Jacobian's determinant.

With y = T(x), the density of x is p(T(x)) |det T'(x)|. The maps are those that Stan takes, so positions are those that
Stan samples.
"""

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp


class Bijection(Protocol):
    """A smooth bijection T of R^n onto an open set; the arrays x and y have the same shape."""

    def forward(self, x: jax.Array) -> jax.Array:
        """y = T(x)."""
        ...

    def inverse(self, y: jax.Array) -> jax.Array:
        """x = T^-1(y); not finite if y is not in the set."""
        ...

    def log_jacobian(self, x: jax.Array) -> jax.Array:
        """log |det T'(x)|, a scalar."""
        ...


@dataclass(frozen=True)
class Identity:
    """R^n itself: y = x."""

    def forward(self, x):
        """Constrained value of an unconstrained x."""
        return x

    def inverse(self, y):
        """Unconstrained value of a constrained y."""
        return y

    def log_jacobian(self, x):
        """Logarithm of |dy / dx| at an unconstrained x."""
        return jnp.zeros((), x.dtype)


@dataclass(frozen=True)
class Positive:
    """Positive numbers: y = exp(x), log |det T'| = sum x."""

    def forward(self, x):
        """Constrained value of an unconstrained x."""
        return jnp.exp(x)

    def inverse(self, y):
        """Unconstrained value of a constrained y."""
        return jnp.log(y)

    def log_jacobian(self, x):
        """Logarithm of |dy / dx| at an unconstrained x."""
        return jnp.sum(x)


@dataclass(frozen=True)
class UnitInterval:
    """Numbers between 0 and 1: y = 1 / (1 + exp(-x)), log |det T'| = -sum [log(1 + exp(x)) + log(1 + exp(-x))]."""

    def forward(self, x):
        """Constrained value of an unconstrained x."""
        return jax.nn.sigmoid(x)

    def inverse(self, y):
        """Unconstrained value of a constrained y."""
        return jnp.log(y) - jnp.log1p(-y)

    def log_jacobian(self, x):
        """Logarithm of |dy / dx| at an unconstrained x."""
        return -jnp.sum(jax.nn.softplus(x) + jax.nn.softplus(-x))


@dataclass(frozen=True)
class Ordered:
    """Increasing vectors: y_1 = x_1, y_k = y_{k-1} + exp(x_k), log |det T'| = sum_{k >= 2} x_k."""

    def forward(self, x):
        """Constrained value of an unconstrained x."""
        return jnp.cumsum(jnp.concatenate([x[:1], jnp.exp(x[1:])]))

    def inverse(self, y):
        """Unconstrained value of a constrained y."""
        return jnp.concatenate([y[:1], jnp.log(jnp.diff(y))])

    def log_jacobian(self, x):
        """Logarithm of |dy / dx| at an unconstrained x."""
        return jnp.sum(x[1:])
