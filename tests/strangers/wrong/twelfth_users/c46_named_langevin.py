"""Underdamped Langevin dynamics by BAOAB for trees of parameters, with draws that belong to the names of parameters.

Each parameter gets its key from that of the step and from its own name. So the noise of a layer stays what it is if another layer is added
to the model, or if parameters are stored in another order, and runs of two versions of a model can be compared draw by draw.
"""

import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Phase(NamedTuple):
    position: Any
    momentum: Any


def name_of(path):
    """The name of a parameter in its tree: a key of a dictionary, a field or an index; "" for a tree that is one array."""
    if not path:
        return ""
    entry = path[-1]
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def named_normals(key, tree):
    """Standard normals like the leaves of a tree."""

    def draw(path, leaf):
        leaf_key = jax.random.fold_in(key, zlib.crc32(name_of(path).encode()) & 0x7FFFFFFF)
        return jax.random.normal(leaf_key, leaf.shape, leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, tree)


class BAOAB:
    """One step of size h moves x by h p; the friction is a rate per unit of time."""

    def __init__(self, friction=1.0, temperature=1.0):
        if friction <= 0 or temperature <= 0:
            raise ValueError("friction and temperature are positive")
        self.friction, self.temperature = friction, temperature

    def init(self, key, position, estimator):
        noise = named_normals(key, position)
        return Phase(position, jax.tree.map(lambda n: (self.temperature**0.5 * n).astype(n.dtype), noise))

    def kick(self, key, position, momentum, time, estimator):
        gradient = estimator.estimate(key, (), position)[0].gradient
        return jax.tree.map(lambda p, g: (p - time * g).astype(p.dtype), momentum, gradient)

    def drift(self, position, momentum, time):
        return jax.tree.map(lambda x, p: (x + time * p).astype(x.dtype), position, momentum)

    def rotate(self, key, momentum, time):
        """The Ornstein-Uhlenbeck process of the momentum, exactly."""
        kept = jnp.exp(-self.friction * time)
        spread = jnp.sqrt(self.temperature * -jnp.expm1(-2 * self.friction * time))
        noise = named_normals(key, momentum)
        return jax.tree.map(lambda p, n: (kept * p + spread * n).astype(p.dtype), momentum, noise)

    def step(self, key, state, step_size, estimator):
        first_key, noise_key, second_key = jax.random.split(key, 3)
        h = jnp.asarray(step_size)
        x, p = state.position, state.momentum
        p = self.kick(first_key, x, p, h / 2, estimator)
        x = self.drift(x, p, h / 2)
        p = self.rotate(noise_key, p, h)
        x = self.drift(x, p, h / 2)
        p = self.kick(second_key, x, p, h / 2, estimator)
        return Phase(x, p)
