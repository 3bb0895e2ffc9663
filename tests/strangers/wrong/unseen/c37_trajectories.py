"""Hamiltonian samplers in JAX."""

import functools

import jax
import jax.numpy as jnp
from jax import random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

NUM_LEAPFROG = 3


def tree_normal(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = random.split(key, len(leaves))
    return treedef.unflatten([random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)])


def axpy(a, x, y):
    """y + a x, leaf by leaf."""
    return jax.tree.map(lambda u, v: v + jnp.asarray(a, v.dtype) * u, x, y)


def energy_of(momentum):
    """Kinetic energy |p|^2 / 2."""
    return sum(jnp.sum(p**2) for p in jax.tree.leaves(momentum)) / 2


def energy_of_leaves(momentum):
    """Kinetic energy, one term for each parameter array."""
    return functools.reduce(lambda total, p: 0.5 * jnp.vdot(p, p), jax.tree.leaves(momentum), 0.0)


def leapfrog(key, q, p, eps, estimator):
    """A trajectory; its end and the potential energies of both ends."""
    first = estimate = estimator.estimate(key, (), q)[0]
    for _ in range(NUM_LEAPFROG):
        p = axpy(-eps / 2, estimate.gradient, p)
        q = axpy(eps, p, q)
        estimate = estimator.estimate(key, (), q)[0]
        p = axpy(-eps / 2, estimate.gradient, p)
    return q, p, first.potential, estimate.potential


def hmc(kinetic, acceptance):
    """A step of HMC with a kinetic energy and a rule of acceptance."""

    def step(key, position, step_size, estimator):
        momentum_key, accept_key, data_key = random.split(key, 3)
        p = tree_normal(momentum_key, position)
        end, p_end, before, after = leapfrog(data_key, position, p, jnp.sqrt(2 * step_size), estimator)
        error = after + kinetic(p_end) - before - kinetic(p)
        accepted = random.uniform(accept_key, (), jnp.result_type(error)) < acceptance(error)
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, position)

    return step


def probability(error):
    """Chance to accept a trajectory, a number between 0 and 1 for either sign of the energy error."""
    return jnp.exp(-jnp.abs(error))


EXACT = Claims(Source("", "own"), ExactLaw())
bounded_hmc = simple_sampler(hmc(energy_of, probability), claims=EXACT)
layered_hmc = simple_sampler(hmc(energy_of_leaves, lambda error: jnp.exp(-error)), claims=EXACT)
