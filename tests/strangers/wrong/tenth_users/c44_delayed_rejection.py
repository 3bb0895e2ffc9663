"""Random-walk Metropolis with delayed rejection (Tierney and Mira 1999): a bold proposal, and a timid one if that is refused.

The second stage tries a Gaussian step of a fraction of the scale before the chain stays where it is. Both proposals are symmetric
about the present point, so that the test of the second stage is made of the density and of the probabilities that the bold proposal
is refused, from either side.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def acceptance(energy_from, energy_to):
    """Probability of Metropolis' rule for a symmetric proposal."""
    return jnp.exp(jnp.minimum(0.0, energy_from - energy_to))


def second_acceptance(energy_x, energy_y, energy_z):
    """Probability that z is accepted from x after y was refused."""
    refused_forward = 1 - acceptance(energy_x, energy_y)
    refused_backward = 1 - acceptance(energy_z, energy_y)
    ratio = jnp.exp(jnp.minimum(energy_x - energy_z, 50.0)) * refused_backward
    # where the first proposal cannot be refused the second stage is never entered
    ratio = ratio / jnp.where(refused_forward > 0, refused_forward, 1.0)
    return jnp.minimum(1.0, ratio)


def delayed_rejection(fraction=0.25):
    """`fraction` is the scale of the second proposal relative to the first."""
    if not 0 < fraction <= 1:
        raise ValueError("fraction is above 0 and at most 1")

    def step(key, position, step_size, estimator):
        batch_key, first_key, second_key, coin_key = jax.random.split(key, 4)
        x, unravel = ravel_pytree(position)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))

        def energy(q):
            return estimator.estimate(batch_key, (), unravel(q))[0].potential

        y = x + scale * jax.random.normal(first_key, x.shape, x.dtype)
        z = x + fraction * scale * jax.random.normal(second_key, x.shape, x.dtype)
        energy_x, energy_y, energy_z = energy(x), energy(y), energy(z)

        first_coin, second_coin = jax.random.uniform(coin_key, (2,), x.dtype)
        first = first_coin < acceptance(energy_x, energy_y)
        second = second_coin < second_acceptance(energy_x, energy_y, energy_z)
        return unravel(jnp.where(first, y, jnp.where(second, z, x)))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
