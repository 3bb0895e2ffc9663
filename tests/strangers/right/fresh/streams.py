"""Chains with random numbers of their own: a key that is carried and split, a seed with a counter, a ring of keys that
is filled anew. Each draw is used once, so that the noise is independent; the steps are SGLD, exp(-U) + O(h)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def langevin(key, x, h, estimator):
    """A step of SGLD."""
    a, b = jax.random.split(key)
    noise = jax.random.normal(b, x.shape, x.dtype)
    return x - h * estimator.estimate(a, (), x)[0].gradient + jnp.sqrt(2 * h) * noise


class Chain(NamedTuple):
    params: Any
    rng: Any


class Carried:
    """The key of `init` is carried and split; that of a step is not used. No unpack, no pack."""

    def init(self, key, position, estimator):
        return Chain(position, key)

    def position(self, state):
        return state.params

    def step(self, key, state, step_size, estimator):
        rng, use = jax.random.split(state.rng)
        return Chain(langevin(use, state.params, step_size, estimator), rng)


carried_key = Carried()


class Counted(NamedTuple):
    x: Any
    seed: Any
    n: Any


def _counted(key, state, h, estimator):
    use = jax.random.fold_in(state.seed, state.n)
    return Counted(langevin(use, state.x, h, estimator), state.seed, state.n + 1)


# A counter-based stream: the seed is the key of `init`, the counter goes into it.
seed_and_counter = simple_sampler(
    _counted,
    init=lambda key, x, estimator: Counted(x, key, jnp.zeros((), jnp.uint32)),
    position=lambda state: state.x,
)


class Ring:
    """Four keys in a ring, used one after the other; when all are used up, the key of the step makes four new ones."""

    def init(self, key, position, estimator):
        return {"keys": jax.random.split(key, 4), "next": jnp.zeros((), jnp.int32), "position": position}

    def step(self, key, state, step_size, estimator):
        keys, i = state["keys"], state["next"]
        x = langevin(keys[i], state["position"], step_size, estimator)
        fresh = jax.random.split(key, 4)
        data = jnp.where(i == 3, jax.random.key_data(fresh), jax.random.key_data(keys))
        return {"keys": jax.random.wrap_key_data(data), "next": (i + 1) % 4, "position": x}


key_ring = Ring()
