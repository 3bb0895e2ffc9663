"""Multiple-try Metropolis (Liu, Liang and Wong, 2000) with independent normal tries.

Of `tries` proposals one is chosen with a probability that is proportional to its density, and is accepted or not by comparing the sum of
the weights of all tries with that of as many tries from the chosen point. The energies of all tries are evaluated at once, by vmap.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

TINY = 1e-30


def weight(energy):
    """Weights for a symmetric proposal and lambda = 1 / T: the density. They are not 0, so that a choice is possible far out, too."""
    return jnp.exp(-energy) + TINY


def choose(key, weights):
    """An index with a probability that is proportional to its weight."""
    total = jnp.cumsum(weights)
    u = jax.random.uniform(key, (), weights.dtype) * total[-1]
    return jnp.clip(jnp.searchsorted(total, u, side="right"), 0, weights.size - 1)


@dataclass(frozen=True)
class MultipleTry:
    tries: int = 4
    width: float = 1.0

    claims = Claims(Source("liu2000", "section 2, MTM (II)"), ExactLaw())

    def __post_init__(self):
        if self.tries < 1 or self.width <= 0:
            raise ValueError("one try at least, of a positive width")

    def spread_out(self, key, centre, scale, number):
        """Independent tries around a point."""
        return centre + scale * jax.random.normal(key, (number, centre.size), centre.dtype)

    def step(self, key, position, step_size, estimator):
        try_key, choice_key, back_key, accept_key, batch_key = jax.random.split(key, 5)
        x, unravel = ravel_pytree(position)
        scale = self.width * jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))
        weights_of = jax.vmap(lambda q: weight(estimator.estimate(batch_key, (), unravel(q))[0].potential))

        tries = self.spread_out(try_key, x, scale, self.tries)
        forth = weights_of(tries)
        chosen = tries[choose(choice_key, forth)]

        references = self.spread_out(back_key, chosen, scale, self.tries - 1)
        back = weights_of(jnp.concatenate([references, x[None]]))

        u = jax.random.uniform(accept_key, (), x.dtype)
        return unravel(jnp.where(u * jnp.sum(back) < jnp.sum(forth), chosen, x))
