"""Random numbers that are the same where they should be new: across chains, runs, coordinates, or from draw to draw.

Each noise on its own has the right law.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _gradient(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


class Seeded(NamedTuple):
    """Position and a key of its own."""

    position: Any
    key: Any


def _own_key(first):
    """SGLD that draws from a key in its state, which starts as `first(key of init)`."""

    def step(key, state, h, estimator):
        following, k1, k2 = jax.random.split(state.key, 3)
        x = state.position
        return Seeded(x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x), following)

    return simple_sampler(
        step, init=lambda key, x, estimator: Seeded(x, first(key)), position=lambda state: state.position
    )


# Every chain is started with the same seed.
maud_51_before = _own_key(lambda key: jax.random.key(1234))
maud_51_after = _own_key(lambda key: key)


class Counted(NamedTuple):
    """Position and number of steps."""

    position: Any
    steps: Any


def _by_step(fresh):
    """SGLD whose noise is that of the number of the step, under the key of the run or under a constant one."""

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x = state.position
        noise = _normal(jax.random.fold_in(k2 if fresh else jax.random.key(0), state.steps), x)
        return Counted(x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * noise, state.steps + 1)

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Counted(x, jnp.zeros((), jnp.int32)),
        position=lambda state: state.position,
    )


# Each run draws the same sequence, whatever run it continues.
gpumd_191_before = _by_step(False)
gpumd_191_after = _by_step(True)


def _two_moves(reuse):
    """Two Langevin steps of h / 2; the key of the second is split from that of the first draw, or from a new one."""

    def step(key, x, h, estimator):
        k1, k2, k3, first = jax.random.split(key, 4)
        x = x - h / 2 * _gradient(estimator, k1, x) + jnp.sqrt(h) * _normal(first, x)
        second = jax.random.split(first if reuse else k3)[0]
        return x - h / 2 * _gradient(estimator, k2, x) + jnp.sqrt(h) * _normal(second, x)

    return simple_sampler(step)


# A key is consumed by a draw, and then split for those that follow.
blackjax_53_before = _two_moves(True)
blackjax_53_after = _two_moves(False)


def _halves(shared):
    """The first and the second half of the coordinates, translations and rotations, have seeds of their own."""

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        n = (x.size + 1) // 2
        draw = lambda k: jax.random.normal(k, (n,), x.dtype)
        noise = jnp.concatenate([draw(k2), draw(k2 if shared else k3)])[: x.size].reshape(x.shape)
        return x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * noise

    return simple_sampler(step)


# Translation and rotation draw from one seed, so that their noises are equal.
espresso_3355_before = _halves(True)
espresso_3355_after = _halves(False)
