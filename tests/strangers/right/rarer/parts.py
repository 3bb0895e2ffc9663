"""Samplers of a part of a position, given the rest: the last layer, a mask, a block of a Gibbs sampler, on the host.
The Metropolis one is exact; the others err by O(h)."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Moves, Source, StationaryLaw

EVERY_SECOND = Moves(lambda part: jnp.zeros(2 * part.size).at[::2].set(part))


def langevin(moves):
    return Claims(Source("", "Langevin of a part"), StationaryLaw(order=1), moves)


def _gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    draws = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)]
    return jax.tree.unflatten(structure, draws)


def _last_layer(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = _gradient(estimator, k1, x)["last"]
    move = lambda x, g, n: x - h * g + jnp.sqrt(2 * h) * n
    return {"body": x["body"], "last": jax.tree.map(move, x["last"], g, _normal(k2, x["last"]))}


# SGLD of the last layer, any tree; the body is left.
last_layer = simple_sampler(_last_layer, claims=langevin(Moves(lambda part: {"body": jnp.zeros(3), "last": part})))


def _masked(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return jnp.where(jnp.arange(x.size) % 2 == 0, y, x)


# SGLD of every second coordinate.
masked = simple_sampler(_masked, claims=langevin(EVERY_SECOND))


class MaskedUnderdamped:
    """Symplectic Euler with momenta of all coordinates, those of the rest set to zero."""

    claims = langevin(EVERY_SECOND)

    def init(self, key, position, estimator):
        return {"position": position, "momentum": jnp.zeros_like(position)}

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x, p = state["position"], state["momentum"]
        kept = jnp.exp(-step_size)
        p = kept * (p - step_size * _gradient(estimator, k1, x)) + jnp.sqrt(1 - kept**2) * _normal(k2, x)
        p = jnp.where(jnp.arange(x.size) % 2 == 0, p, 0)
        return {"position": x + step_size * p, "momentum": p}


masked_underdamped = MaskedUnderdamped()


def _block(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    step = jax.tree.map(lambda x, n: x + jnp.sqrt(2 * h) * n, x["block"], _normal(k1, x["block"]))
    y = {"block": step, "others": x["others"]}
    ratio = estimator.estimate(k2, (), x)[0].potential - estimator.estimate(k3, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k4)) < ratio
    return jax.tree.map(lambda new, old: jnp.where(accept, new, old), y, x)


# Random walk Metropolis within Gibbs, of one block given the others.
gibbs_block = simple_sampler(
    _block,
    claims=Claims(
        Source("", "Metropolis within Gibbs"), ExactLaw(), Moves(lambda part: {"block": part, "others": jnp.zeros(2)})
    ),
)


def _host_masked(rng, x, h, estimator):
    y = np.array(x)
    g = np.asarray(_gradient(estimator, rng, x))
    y[1:] += -h * g[1:] + np.sqrt(2 * h) * rng.standard_normal(len(y) - 1)
    return y


# NumPy, all coordinates but the first.
host_masked = simple_sampler(_host_masked, backend="host", claims=langevin(Moves(lambda part: np.append(0.0, part))))
