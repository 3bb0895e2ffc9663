"""Langevin dynamics with loopless variance reduction, systematic minibatches and an exponential integrator.

The gradient of the data is the full one at an anchor, and N/n times the sum over a batch of the differences to the anchor. The anchor moves
to the position by a coin in each step, instead of every m-th step. A batch is systematic: indices u + floor(k N / n) modulo N of one uniform
u, so that each datum is in it with weight n/N in the mean, whatever N and n are. A linear part r x of the drift is integrated exactly:

    x' = e^{-rh} x - (1 - e^{-rh}) / r (grad U - r x) + sqrt((1 - e^{-2rh}) / r) xi.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class Anchored(NamedTuple):
    position: Any
    anchor: Any
    anchor_slope: Any


def normal_like(key, tree):
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves)])


class DataSlopes:
    """Slopes of the sum over all rows, and over some of them."""

    def __init__(self, terms):
        self.terms = terms
        self.of_prior = jax.grad(terms.prior)

    def over(self, x, rows):
        total = lambda q: jnp.sum(jax.vmap(self.terms.datum, (None, 0))(q, rows))
        return jax.grad(total)(x)

    def rows(self, index):
        return jax.tree.map(lambda a: jnp.asarray(a)[index], self.terms.data)

    def full(self, x):
        return self.over(x, jax.tree.map(jnp.asarray, self.terms.data))

    def systematic(self, key, size):
        start = jax.random.randint(key, (), 0, self.terms.size)
        offsets = jnp.asarray([k * self.terms.size // size for k in range(size)])
        return (start + offsets) % self.terms.size

    def reduced(self, key, state, size):
        rows = self.rows(self.systematic(key, size))
        scale = self.terms.size / size
        here, there = self.over(state.position, rows), self.over(state.anchor, rows)
        combine = lambda p, full, a, b: p + full + scale * (a - b)
        return jax.tree.map(combine, self.of_prior(state.position), state.anchor_slope, here, there)


class LooplessSVRG:
    claims = Claims(Source("", "own"), StationaryLaw(order=1))

    def __init__(self, target, batch=3, renewal=0.15, linear=0.8):
        if batch < 1 or not 0 < renewal <= 1 or linear <= 0:
            raise ValueError("batch counts data, renewal is a probability, linear a positive rate")
        self.batch, self.renewal, self.linear = batch, renewal, linear
        self.slopes = None if target.terms is None else DataSlopes(target.terms)

    def init(self, key, position, estimator):
        if self.slopes is None:
            return Anchored(position, (), ())
        return Anchored(position, position, self.slopes.full(position))

    def move_anchor(self, key, state):
        moved = lambda s: Anchored(s.position, s.position, self.slopes.full(s.position))
        return jax.lax.cond(jax.random.bernoulli(key, self.renewal), moved, lambda s: s, state)

    def step(self, key, state, step_size, estimator):
        coin_key, batch_key, noise_key = jax.random.split(key, 3)
        if self.slopes is None:
            g = estimator.estimate(batch_key, (), state.position)[0].gradient
        else:
            state = self.move_anchor(coin_key, state)
            g = self.slopes.reduced(batch_key, state, self.batch)
        r = self.linear
        lost = -jnp.expm1(-r * step_size)
        scale = jnp.sqrt(-jnp.expm1(-2 * r * step_size) / r)
        move = lambda x, slope, n: (1 - lost) * x - lost / r * (slope - r * x) + scale * n
        noise = normal_like(noise_key, state.position)
        return state._replace(position=jax.tree.map(move, state.position, g, noise))
