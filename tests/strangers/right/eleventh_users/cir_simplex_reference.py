"""A Crank-Nicolson proposal for the simplex, preserving a symmetric Dirichlet law, with a Metropolis test.

A Dirichlet(a, .., a) point times an independent total Gamma(K a) has independent coordinates g_i ~ Gamma(a). These are moved by the exact
transition of a Cox-Ingersoll-Ross process,

    N_i ~ Poisson(g_i / h),      g_i' ~ Gamma(a + N_i) / (1 + 1/h),

two conditional laws of one joint law of (g_i, N_i), so that the move is reversible with respect to Gamma(a), and so is the move of
x = g / sum g with respect to Dirichlet(a). What is left of the target beside this reference is tested. As in preconditioned
Crank-Nicolson no gradient is used, and the reference alone would never be rejected.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def lift(key, x, a):
    """A point of the simplex to independent Gamma(a) coordinates, if it is Dirichlet(a)."""
    return x * jax.random.gamma(key, a * x.size, dtype=x.dtype)


def cir_transition(key, g, a, h):
    count_key, gamma_key = jax.random.split(key)
    counts = jax.random.poisson(count_key, g / h, g.shape).astype(g.dtype)
    return jax.random.gamma(gamma_key, a + counts, g.shape, g.dtype) * (h / (1 + h))


def cir_reference(concentration=2.0, speed=1.0):
    """`concentration` is that of the reference, `speed` the time of the process in units of the step size."""
    if concentration < 1 or speed <= 0:
        raise ValueError("concentration has to be at least 1, and speed positive")

    def beside_reference(estimator, key, x):
        return estimator.estimate(key, (), x)[0].potential + (concentration - 1) * jnp.sum(jnp.log(x))

    def step(key, x, step_size, estimator):
        total_key, move_key, accept_key, energy_key = jax.random.split(key, 4)
        h = speed * step_size
        moved = cir_transition(move_key, lift(total_key, x, concentration), concentration, h)
        y = moved / jnp.sum(moved)
        log_ratio = beside_reference(estimator, energy_key, x) - beside_reference(estimator, energy_key, y)
        accepted = jnp.log(jax.random.uniform(accept_key, dtype=x.dtype)) < log_ratio
        return jnp.where(accepted, y, x), {"accepted": accepted}

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)))
