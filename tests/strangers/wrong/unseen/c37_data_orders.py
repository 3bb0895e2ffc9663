"""Two more ways to go through the data."""

import jax
import jax.numpy as jnp
from jax import random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def total(terms, x, indices):
    """Potential with the data of a batch scaled up to all."""
    rows = jax.tree.map(lambda a: jnp.asarray(a)[indices], terms.data)
    losses = jax.vmap(terms.datum, in_axes=(None, 0))(x, rows)
    return terms.prior(x) + jnp.sum(losses) * (terms.size / indices.shape[0])


def shifted(key, x, scale):
    """A Gaussian step from x."""
    leaves, treedef = jax.tree.flatten(x)
    keys = random.split(key, len(leaves))
    draws = [random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)]
    return jax.tree.map(lambda a, n: a + scale.astype(a.dtype) * n, x, treedef.unflatten(draws))


class ShuffledOnce:
    """SGLD with a loader that shuffles the data when it is made and yields whole batches in turn."""

    def __init__(self, target, batch_size):
        self.terms = target.terms
        self.batch_size = batch_size if self.terms is None else min(batch_size, self.terms.size)

    def init(self, key, position, estimator):
        if self.terms is None:
            return {"position": position}
        order = random.permutation(key, self.terms.size)
        return {"position": position, "order": order, "cursor": jnp.zeros((), jnp.int32)}

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = random.split(key)
        x, state = state["position"], dict(state)
        if self.terms is None:
            gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        else:
            n, batches = self.batch_size, self.terms.size // self.batch_size
            batch = jax.lax.dynamic_slice(state["order"], (state["cursor"] * n,), (n,))
            gradient = jax.grad(lambda y: total(self.terms, y, batch))(x)
            state["cursor"] = (state["cursor"] + 1) % batches
        drifted = jax.tree.map(lambda a, g: a - jnp.asarray(step_size, a.dtype) * g, x, gradient)
        return state | {"position": shifted(noise_key, drifted, jnp.sqrt(2 * step_size))}


class NoisyMetropolis:
    """Random-walk Metropolis with pseudo-marginal energies, each from a minibatch of its own."""

    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, target, batch_size):
        self.terms, self.batch_size = target.terms, batch_size

    def energy(self, key, x, estimator):
        if self.terms is None:
            return estimator.estimate(key, (), x)[0].potential
        return total(self.terms, x, random.randint(key, (self.batch_size,), 0, self.terms.size))

    def step(self, key, x, step_size, estimator):
        walk_key, old_key, new_key, accept_key = random.split(key, 4)
        y = shifted(walk_key, x, jnp.sqrt(2 * step_size))
        difference = self.energy(new_key, y, estimator) - self.energy(old_key, x, estimator)
        accepted = jnp.log(random.uniform(accept_key, (), difference.dtype)) < -difference
        return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), y, x)


def shuffled_once(target, batch_size=2):
    """SGLD over a data loader."""
    return ShuffledOnce(target, batch_size)


def noisy_metropolis(target, batch_size=2):
    """Pseudo-marginal random-walk Metropolis on minibatches."""
    return NoisyMetropolis(target, batch_size)
