"""HMC with delayed rejection for positive parameters, in softplus coordinates.

x = log(1 + exp(y)); y has the density exp(-U(x)) dx/dy. The number of leapfrog steps is drawn from 1, ..., `max_leapfrog`. If the first
proposal is rejected, a second one starts from the same momentum with a step that is `reduction` times smaller; its acceptance
accounts for the first proposal that it would itself have rejected (Modi, Barnett and Carpenter 2023).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def to_line(x):
    return x + jnp.log(-jnp.expm1(-x))


def to_positive(y):
    return jax.nn.softplus(y)


def log1mexp(a):
    """log(1 - exp(-a)) for a >= 0."""
    return jnp.where(a < 0.693, jnp.log(-jnp.expm1(-a)), jnp.log1p(-jnp.exp(-a)))


@dataclass(frozen=True)
class SoftplusDRHMC:
    max_leapfrog: int = 4
    reduction: float = 3.0

    claims = Claims(Source("", "Modi, Barnett and Carpenter 2023, algorithm 2"), ExactLaw(), spaces=("positive",))

    def __post_init__(self):
        if self.max_leapfrog < 1 or self.reduction <= 1:
            raise ValueError("max_leapfrog is at least 1 and reduction above 1")

    def step(self, key, position, step_size, estimator):
        momentum_key, length_key, estimate_key, first_key, second_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        h = jnp.asarray(step_size, x.dtype)

        def estimate(y):
            return estimator.estimate(estimate_key, (), unravel(to_positive(y)))[0]

        def hamiltonian(y, p):
            value = estimate(y).potential + jnp.sum(jax.nn.softplus(-y)) + jnp.sum(p**2) / 2
            return jnp.where(jnp.isnan(value), jnp.inf, value)

        def slope(y):
            gradient = ravel_pytree(estimate(y).gradient)[0]
            share = jax.nn.sigmoid(y)
            return gradient * share - (1 - share)

        def trajectory(y, p, size, steps):
            """Leapfrog steps and a flip of the momentum: an involution."""

            def body(_, z):
                y, p = z
                y = y + size * p
                return y, p - size * slope(y)

            p = p - size / 2 * slope(y)
            y, p = jax.lax.fori_loop(0, steps - 1, body, (y, p))
            y = y + size * p
            return y, -(p - size / 2 * slope(y))

        def cost(before, after):
            """-log of the probability that a proposal is accepted in the first stage."""
            return jnp.maximum(after - before, 0)

        y0 = to_line(x)
        p0 = jax.random.normal(momentum_key, x.shape, x.dtype)
        steps = jax.random.randint(length_key, (), 1, self.max_leapfrog + 1)
        y1, p1 = trajectory(y0, p0, h, steps)
        y2, p2 = trajectory(y0, p0, h / self.reduction, steps)
        ghost = trajectory(y2, p2, h, steps)
        e0, e1, e2, e3 = hamiltonian(y0, p0), hamiltonian(y1, p1), hamiltonian(y2, p2), hamiltonian(*ghost)

        finite = jnp.isfinite(e2)
        refused = log1mexp(cost(e0, e1))
        refused_back = log1mexp(cost(jnp.where(finite, e2, 0), e3))
        first = jnp.log(jax.random.uniform(first_key, (), x.dtype)) < -cost(e0, e1)
        ratio = jnp.where(first | ~finite, -jnp.inf, e0 - e2 + refused_back - refused)
        second = jnp.log(jax.random.uniform(second_key, (), x.dtype)) < ratio
        return unravel(jnp.where(first, to_positive(y1), jnp.where(second, to_positive(y2), x)))
