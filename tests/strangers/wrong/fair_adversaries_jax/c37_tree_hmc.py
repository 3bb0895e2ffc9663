"""Hamiltonian Monte Carlo for parameters in a pytree (weights and biases of a network, say)."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def normal_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves)])


def axpy(a, x, y):
    return jax.tree.map(lambda u, v: v + a * u, x, y)


def kinetic_energy(momentum):
    return 0.5 * jax.tree.reduce(lambda total, leaf: jnp.sum(leaf * leaf), momentum, 0.0)


def hmc(target, n_leapfrog=4):
    def step(key, position, step_size, estimator):
        momentum_key, batch_key, accept_key = jax.random.split(key, 3)

        def potential(q):
            return estimator.estimate(batch_key, (), q)[0].potential

        def kick(size, p, q):
            return axpy(-size, estimator.estimate(batch_key, (), q)[0].gradient, p)

        p = normal_like(momentum_key, position)
        before = potential(position) + kinetic_energy(p)

        def leapfrog(_, carry):
            q, p = carry
            p = kick(0.5 * step_size, p, q)
            q = axpy(step_size, p, q)
            return q, kick(0.5 * step_size, p, q)

        q, p = jax.lax.fori_loop(0, n_leapfrog, leapfrog, (position, p))
        log_ratio = before - potential(q) - kinetic_energy(p)
        accepted = jnp.log(jax.random.uniform(accept_key)) < log_ratio
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), q, position)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
