"""What samplers with `backend == "host"` share: random numbers from NumPy, estimators of either kind."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from samplers.gradients import Exact


def estimator_key(generator: np.random.Generator, estimator: Any) -> Any:
    """What `estimator` takes as a key: the generator if it has `backend == "host"`, else a typed JAX key from it."""
    if getattr(estimator, "backend", "jax") == "host":
        return generator
    return jax.random.key(int(generator.integers(2**63)))


@dataclass(frozen=True, eq=False)
class HostExact(Exact):
    """`Exact` for host samplers: it takes their generator, and draws nothing from it."""

    backend = "host"
