import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# variance of a standard normal variable kept between -2 and 2
VARIANCE = 1 - 4 * math.exp(-2.0) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2.0))


class State(NamedTuple):
    momentum: Any
    position: Any


@dataclass
class Kinetic:
    friction: float = 1.5
    mass: float = 1.0

    def init(self, key, position, estimator):
        return State(self.mass**0.5 * jax.random.normal(key, position.shape, position.dtype), position)

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        p, q = state
        q = q + step_size * p / self.mass
        p = p - step_size * estimator.estimate(a, (), q)[0].gradient
        keep = jnp.exp(-self.friction * step_size).astype(p.dtype)
        xi = jax.random.truncated_normal(b, -2.0, 2.0, p.shape, p.dtype) / VARIANCE**0.5
        p = keep * p + jnp.sqrt(self.mass * (1 - keep**2)) * xi
        return State(momentum=p, position=q)
