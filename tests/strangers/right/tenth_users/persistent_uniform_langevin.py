"""Langevin Monte Carlo with persistent momentum and a persistent uniform variable for the acceptance decisions.

After R. Neal, "Non-reversibly updating a uniform [0, 1] value for Metropolis accept/reject decisions" (2020).
The decision variable u lives on the circle [-1, 1). A proposal is accepted if |u| < pi(new)/pi(old), upon which u is
multiplied by pi(old)/pi(new): the height u pi is what stays. Between the decisions u is carried around the circle, so
that rejections, each of which reverses the momentum, come in clusters.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def wrap(u):
    return (u + 1) % 2 - 1


class PersistentUniformLangevin:
    """One leapfrog step of size h between two partial refreshments of the momentum.

    friction   rate at which the momentum forgets
    drift      how far u is carried in each step
    wobble     standard deviation of a random part of that
    """

    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, friction=1.0, drift=0.15, wobble=0.05):
        if friction <= 0 or wobble < 0:
            raise ValueError("friction has to be positive, wobble not negative")
        self.friction, self.drift, self.wobble = friction, drift, wobble

    def init(self, key, position, estimator):
        p_key, u_key = jax.random.split(key)
        flat, _ = ravel_pytree(position)
        return {
            "position": position,
            "momentum": jax.random.normal(p_key, flat.shape, flat.dtype),
            "u": jax.random.uniform(u_key, (), flat.dtype, -1.0, 1.0),
        }

    def refresh(self, key, momentum, time):
        kept = jnp.exp(-self.friction * time)
        noise = jax.random.normal(key, momentum.shape, momentum.dtype)
        return kept * momentum + jnp.sqrt(1 - kept**2) * noise

    def step(self, key, state, step_size, estimator):
        first, second, batch, turn = jax.random.split(key, 4)
        x, unravel = ravel_pytree(state["position"])
        h = jnp.asarray(step_size, x.dtype)

        def evaluate(q):
            estimate = estimator.estimate(batch, (), unravel(q))[0]
            return estimate.potential, ravel_pytree(estimate.gradient)[0]

        p = self.refresh(first, state["momentum"], h / 2)

        energy, slope = evaluate(x)
        middle = p - h / 2 * slope
        new_x = x + h * middle
        new_energy, new_slope = evaluate(new_x)
        new_p = middle - h / 2 * new_slope

        rise = new_energy + jnp.sum(new_p**2) / 2 - energy - jnp.sum(p**2) / 2
        u = state["u"]
        accepted = jnp.abs(u) < jnp.exp(-rise)
        x = jnp.where(accepted, new_x, x)
        p = jnp.where(accepted, new_p, -p)
        u = jnp.where(accepted, u * jnp.exp(rise), u)

        p = self.refresh(second, p, h / 2)
        u = wrap(u + self.drift + self.wobble * jax.random.normal(turn, (), u.dtype))
        return {"position": unravel(x), "momentum": p, "u": u.astype(x.dtype)}
