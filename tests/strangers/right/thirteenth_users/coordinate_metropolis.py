"""Metropolis within Gibbs: one coordinate after the other, each with an accept step of its own.

A coordinate is moved by a uniform number from (-w, w), w = sqrt(6 h), whose variance is 2 h. A sweep visits all
coordinates once: in order, from the last to the first, or in an order that is drawn anew for each sweep. Each visit leaves
the target as it is, and so does the sweep, although a sweep in a fixed order is not reversible.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def order_of_visits(key, size, scan):
    if scan == "shuffled":
        return jax.random.permutation(key, size)
    forward = jnp.arange(size)
    return forward if scan == "forward" else forward[::-1]


def coordinate_metropolis(sweeps: int = 1, scan: Literal["forward", "backward", "shuffled"] = "forward"):
    if sweeps < 1:
        raise ValueError("at least one sweep")
    if scan not in ("forward", "backward", "shuffled"):
        raise ValueError(f"no such scan: {scan}")

    def step(key, position, step_size, estimator):
        batch_key, *sweep_keys = jax.random.split(key, sweeps + 1)
        x, unravel = ravel_pytree(position)
        width = jnp.sqrt(6 * step_size)

        def energy(flat):
            return estimator.estimate(batch_key, (), unravel(flat))[0].potential

        def visit(carry, now):
            x, old = carry
            index, move, log_uniform = now
            y = x.at[index].add(width * move)
            new = energy(y)
            accepted = log_uniform < old - new
            return (jnp.where(accepted, y, x), jnp.where(accepted, new, old)), None

        carry = x, energy(x)
        for sweep_key in sweep_keys:
            order_key, move_key, accept_key = jax.random.split(sweep_key, 3)
            moves = jax.random.uniform(move_key, x.shape, x.dtype, -1, 1)
            log_uniforms = jnp.log(jax.random.uniform(accept_key, x.shape, x.dtype))
            visits = order_of_visits(order_key, x.size, scan), moves, log_uniforms
            carry, _ = jax.lax.scan(visit, carry, visits)
        return unravel(carry[0])

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
