"""An ensemble of walkers in one array."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from tests.helpers.strangers import normal, potential

NOTHING = Claims(Source("", "none"), StationaryLaw(order=1))


class Ensemble:
    """Four walkers: each of one half is moved by a multiple of the difference of the other two, and tested.

    Without a `shift` a multiple is as likely as the opposite one, and the proposal is symmetric. Each walker has a
    temperature of its own.
    """

    def __init__(self, temperatures=(1.0,) * 4, shift=0.0, claims=NOTHING):
        self.temperatures, self.shift, self.claims = temperatures, shift, claims

    def init(self, key, position, estimator):
        return {"walkers": position + 0.3 * jax.random.normal(key, (4, *position.shape))}

    def position(self, state):
        return state["walkers"][0]

    def step(self, key, state, step_size, estimator):
        x = state["walkers"]
        for i in range(4):
            key, first, second, coin = jax.random.split(key, 4)
            others = x[2:] if i < 2 else x[:2]
            gamma = jnp.sqrt(step_size) * (self.shift + jax.random.normal(first, ()))
            jump = gamma * (others[0] - others[1]) + jnp.sqrt(step_size) * normal(second, x[i])
            rise = (potential(estimator, x[i] + jump) - potential(estimator, x[i])) / self.temperatures[i]
            accept = jnp.log(jax.random.uniform(coin)) < -rise
            x = x.at[i].set(jnp.where(accept, x[i] + jump, x[i]))
        return {"walkers": x}
