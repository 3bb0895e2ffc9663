"""Aliases of what a sampler and an estimator pass on without looking inside."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

Tree = Any
"""A pytree of arrays, as a rule like a position: a momentum, a gradient, a full variable z."""
Position = Tree
"""A pytree of arrays, a point of the target's manifold."""
State = Tree
"""The pytree that a sampler carries from step to step."""
EstimatorState = Tree
"""The pytree that an estimator carries from step to step; `()` if it has none."""
Key = Any
"""A typed JAX key (scalar), or a `numpy.random.Generator` where the backend is the host."""
Scalar = float | jax.Array
"""A real number, traced or not: a step size, a time, a friction."""
Options = Mapping[str, Any]
"""Options of a sampler or a run, by name."""
Builder = Callable[..., Any]
"""A function that makes a sampler, a kernel or a function of them; the caller knows its arguments."""
