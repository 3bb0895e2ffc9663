"""Samplers that draw minibatches of their own.

U is written as a finite sum of N terms that only the sampler knows: U = sum_i s_i U with sum s_i = 1 (unequal shares),
or U = sum_i (U / N + t_i sum_j x_j) with sum t_i = 0 (tilts). Both have the right sum for every U; a minibatch of
terms gives an unbiased gradient with noise of the sampler's own.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler


class EpochState(NamedTuple):
    position: Any
    order: jax.Array
    batch: jax.Array


@dataclass(frozen=True)
class PermutationEpochs:
    """SGLD over random permutations: 12 tilted terms, 3 batches of 4 an epoch, each term once, a new order each epoch.

    Right to O(h): gradient = g + (N / n) sum_(i in B) t_i; the order is uniform, so each batch is unbiased, and over
    an epoch the tilts sum to zero.
    """

    spread: float = 0.5

    @property
    def tilts(self):
        ramp = np.linspace(-1.0, 1.0, 12)
        return self.spread * (ramp - ramp.mean())

    def init(self, key, position, estimator):
        return EpochState(position, jnp.arange(12, dtype=jnp.int32), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        shuffle_key, gradient_key, noise_key = jax.random.split(key, 3)
        order = jax.lax.cond(
            state.batch == 0,
            lambda order: jax.random.permutation(shuffle_key, order),
            lambda order: order,
            state.order,
        )
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        terms = jax.lax.dynamic_slice(order, (4 * state.batch,), (4,))
        tilt = 12 / 4 * jnp.sum(jnp.asarray(self.tilts, x.dtype)[terms])
        g, _ = ravel_pytree(estimator.estimate(gradient_key, (), state.position)[0].gradient)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        x = x - h * (g + tilt) + (2 * h) ** 0.5 * noise
        return EpochState(unravel(x), order, (state.batch + 1) % 3)

    def position(self, state):
        return state.position


permutation_epochs = PermutationEpochs()


class Momentum(NamedTuple):
    position: Any
    momentum: Any


SHARES = np.array([0.30, 0.20, 0.15, 0.10, 0.10, 0.05, 0.05, 0.05])
CHANCES = np.sqrt(SHARES) / np.sqrt(SHARES).sum()


def importance_sghmc(draws=5, friction=1.0):
    """SGHMC with importance sampling: `draws` terms with replacement, i with probability p_i, weighted by s_i / p_i.

    Right to O(h): E_p s_i / p_i = sum s_i = 1, so the gradient is unbiased; half a drift, kick, exact Ornstein-Uhlenbeck
    and half a drift split the Langevin equation that keeps exp(-U - p^2 / 2).
    """

    def init(key, position, estimator):
        flat, unravel = ravel_pytree(position)
        return Momentum(position, unravel(jax.random.normal(key, flat.shape, flat.dtype)))

    def step(key, state, step_size, estimator):
        k_batch, k_gradient, k_noise = jax.random.split(key, 3)
        q, unravel = ravel_pytree(state.position)
        p, _ = ravel_pytree(state.momentum)
        h = jnp.asarray(step_size, q.dtype)
        terms = jax.random.categorical(k_batch, jnp.log(jnp.asarray(CHANCES, q.dtype)), shape=(draws,))
        weight = jnp.mean(jnp.asarray(SHARES / CHANCES, q.dtype)[terms])
        q = q + h / 2 * p
        g, _ = ravel_pytree(estimator.estimate(k_gradient, (), unravel(q))[0].gradient)
        kept = jnp.exp(-friction * h)
        p = kept * (p - h * weight * g)
        p = p + jnp.sqrt(1 - kept**2) * jax.random.normal(k_noise, q.shape, q.dtype)
        q = q + h / 2 * p
        return Momentum(unravel(q), unravel(p))

    return simple_sampler(step, init=init)


importance = importance_sghmc()

TEN = np.arange(1, 11) / 55.0


def short_batch_step(key, position, step_size, estimator):
    """One step is one epoch of SGLD over ten terms in batches of 4, 4 and 2, in a new random order.

    Right to O(h): a batch gets the time h |B| / N, so its drift h (|B| / N)(N / |B|) sum_B s_i g and noise 2h |B| / N
    add up to h g and 2h; the short batch is scaled by its own size, and E sum_B s_i = |B| / N.
    """
    shuffle_key, scan_key = jax.random.split(key)
    x, unravel = ravel_pytree(position)
    order = jnp.concatenate([jax.random.permutation(shuffle_key, 10), jnp.zeros(2, int)]).reshape(3, 4)
    there = jnp.asarray(np.arange(12).reshape(3, 4) < 10, x.dtype)
    shares = jnp.asarray(TEN, x.dtype)

    def one_batch(x, inputs):
        key, terms, used = inputs
        gradient_key, noise_key = jax.random.split(key)
        size = jnp.sum(used)
        time = step_size * size / 10
        mean_share = jnp.sum(used * shares[terms]) / size
        g, _ = ravel_pytree(estimator.estimate(gradient_key, (), unravel(x))[0].gradient)
        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return (x - time * 10 * mean_share * g + jnp.sqrt(2 * time) * noise).astype(x.dtype), None

    x, _ = jax.lax.scan(one_batch, x, (jax.random.split(scan_key, 3), order, there))
    return unravel(x)


short_batch = simple_sampler(short_batch_step)
