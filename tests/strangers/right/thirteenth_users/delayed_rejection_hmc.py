"""Hamiltonian Monte Carlo with a second try: delayed rejection (Modi, Barnett and Carpenter, 2023).

Let F_e be `leapfrog` steps of size e followed by a change of sign of the momentum: an involution that preserves volume.
The first proposal is F_h(z) and is accepted with a(z) = min(1, exp(H(z) - H(F_h z))). If it is rejected, y = F_{h/r}(z) is
tried with the smaller step and accepted with

    min(1, exp(H(z) - H(y)) (1 - a(y)) / (1 - a(z)))

where a(y) asks what the first try would have been from y. Momenta are drawn anew in each step.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def log_one_minus_exp(a):
    """log(1 - exp(a)) for a <= 0."""
    return jnp.log(-jnp.expm1(a))


def delayed_rejection_hmc(leapfrog: int = 3, reduction: float = 3.0):
    if leapfrog < 1:
        raise ValueError("at least one leapfrog step")
    if reduction <= 1:
        raise ValueError("the second try has a smaller step")

    def step(key, position, step_size, estimator):
        batch_key, momentum_key, first_key, second_key = jax.random.split(key, 4)
        x, unravel = ravel_pytree(position)

        def gradient(q):
            return ravel_pytree(estimator.estimate(batch_key, (), unravel(q))[0].gradient)[0]

        def hamiltonian(z):
            q, p = z
            value = estimator.estimate(batch_key, (), unravel(q))[0].potential + jnp.sum(p**2) / 2
            return jnp.where(jnp.isnan(value), jnp.inf, value)

        def flow(z, size):
            """F of the text: leapfrog steps, then the momentum is turned."""

            def kick_drift_kick(carry, _):
                q, p, g = carry
                p = p - size / 2 * g
                q = q + size * p
                g = gradient(q)
                return (q, p - size / 2 * g, g), None

            (q, p, _), _ = jax.lax.scan(kick_drift_kick, (*z, gradient(z[0])), length=leapfrog)
            return q, -p

        start = x, jax.random.normal(momentum_key, x.shape, x.dtype)
        energy = hamiltonian(start)

        first = flow(start, step_size)
        log_first = jnp.minimum(0.0, energy - hamiltonian(first))
        take_first = jnp.log(jax.random.uniform(first_key, dtype=x.dtype)) < log_first

        second = flow(start, step_size / reduction)
        second_energy = hamiltonian(second)
        log_ghost = jnp.minimum(0.0, second_energy - hamiltonian(flow(second, step_size)))
        log_second = energy - second_energy + log_one_minus_exp(log_ghost) - log_one_minus_exp(log_first)
        take_second = jnp.log(jax.random.uniform(second_key, dtype=x.dtype)) < log_second

        return unravel(jnp.where(take_first, first[0], jnp.where(take_second, second[0], x)))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
