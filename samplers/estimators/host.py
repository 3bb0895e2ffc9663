"""What samplers with `backend == "host"` share: random numbers from NumPy, estimators of either kind."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from samplers.estimators.basic import Exact
from samplers.interface.sampler import Estimate


class Unintercepted(Exception):
    """The step drew from a law that the given generator cannot feed; the message names it."""


def estimator_key(generator: np.random.Generator, estimator: Any) -> Any:
    """What `estimator` takes as a key: the generator if it has `backend == "host"`, else a typed JAX key from it."""
    if getattr(estimator, "backend", "jax") == "host":
        return generator
    return jax.random.key(int(generator.integers(2**63)))


@dataclass(frozen=True, eq=False)
class HostExact(Exact):
    """`Exact` for host samplers: it takes their generator, and draws nothing from it."""

    backend = "host"

    def estimate(self, key, estate, position):
        del key
        value, gradient = _value_and_gradient(self.target)(position)
        return Estimate(gradient, value), estate


def is_exact(estimator: Any) -> bool:
    """True for the exact gradient itself; subclasses may add noise to it."""
    return type(estimator) in (Exact, HostExact)


@lru_cache(maxsize=32)
def _value_and_gradient(target):
    """Compiled once a target: a host sampler asks for one gradient at a time."""
    return jax.jit(jax.value_and_grad(target.potential))
