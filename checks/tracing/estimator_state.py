"""The state of an estimator through the steps of a sampler: what one evaluation returns is what a later one receives.

An estimator that goes through the data in epochs, or that keeps gradients of the past, is its state. A sampler that
carries the first state and drops those that follow is right with every estimator that has none. Which value reaches
which is read off the program of a few steps, by dead-code elimination.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import EstimatorState, Key, Position

STEPS = 3
"""Steps after which what the first one returned has reached a position, gradients that are kept for a step included."""


@dataclass(frozen=True, eq=False)
class Counting:
    """Estimates to which the state, a number, is added; each evaluation adds `advance` to it.

    Args:
        inner: whose own state is not carried.
        first: the first state.
        advance: by an evaluation.
        shown: whether the state enters the estimates.
    """

    inner: Estimator
    first: Any
    advance: Any
    shown: bool

    def init(self, key: Key, position: Position) -> EstimatorState:
        """First state."""
        del key, position
        return self.first

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state; one that was not carried here counts as none."""
        estimate, _ = self.inner.estimate(key, self.inner.init(key, position), position)
        if jax.tree.structure(estate) != jax.tree.structure(self.first):
            return estimate, estate
        if self.shown:
            estimate = jax.tree.map(lambda part: part + estate.astype(part.dtype), estimate)
        return estimate, estate + self.advance

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def drops_state(sampler: Sampler, estimator: Estimator, position: Position, h: float) -> bool:
    """True if steps read the first state of an estimator for ever: what the first step returned reaches no later one.

    Args:
        sampler: that is traced.
        estimator: whose estimates it gets.
        position: from which it starts.
        h: step size.
    """

    def run(first: jax.Array, advance: jax.Array) -> Any:
        keys = jax.random.split(jax.random.key(0), STEPS + 1)
        state = sampler.init(keys[0], position, Counting(estimator, first, jnp.zeros_like(first), False))
        for i in range(STEPS):
            moved = advance if i == 0 else jnp.zeros_like(first)
            state = sampler.step(keys[i + 1], state, h, Counting(estimator, first, moved, True))
        return sampler.position(state)

    jaxpr = jax.make_jaxpr(run)(jnp.zeros(()), jnp.zeros(())).jaxpr
    reads_first, reads_advance = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[1]
    return reads_first and not reads_advance
