"""A tiny library behind the bridge, for tests: what a far side has to offer, and what can go wrong there."""

import os
import time

import jax
import jax.numpy as jnp
from jax import lax, random

_normal = random.normal  # under the tape already, as in a library that imports the name


def versions():
    return {"fake": "1.0"}


class Euler:
    """theta' = theta - h grad U + scale sqrt(2 h) xi, in `loops` equal steps of size h, a jitted part inside."""

    map_index = 1

    def __init__(self, law, scale=1.0, loops=1, draw="normal"):
        self.law, self.scale, self.loops, self.draw = law, scale, loops, draw

    def first(self, key, x, h):
        return (x,)

    def start(self, key, z, h, eta):
        return z

    def read(self, state, h):
        return state

    def advance(self, i, key, state, h, eta):
        @jax.jit
        def noise(key, like):
            if self.draw == "gamma":
                return random.gamma(key, 1.0, like.shape) - 1
            if self.draw == "hidden":
                return jax.random.fold_in(key, 1).astype(like.dtype).sum() * 1e-9 + 0 * like
            return _normal(key, like.shape)

        def body(x, key):
            gradient = jax.grad(self.law.potential)(x) + eta
            return x - h * gradient + self.scale * jnp.sqrt(2 * h) * noise(key, x), None

        return (lax.scan(body, state[0], random.split(key, self.loops))[0],)


class Broken(Euler):
    def advance(self, i, key, state, h, eta):
        raise RuntimeError("the library\ndoes not like this")


def kernel(name, law, options):
    if name == "exit":
        os._exit(7)
    if name == "sleep":
        time.sleep(60)
    if name == "euler":
        return Euler(law, **options)
    if name == "broken":
        return Broken(law)
    raise ValueError(f"no such kernel: {name}")
