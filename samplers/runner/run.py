"""The runner: many steps of any sampler, on many chains, with schedules, thinning, averages and checkpoints.

    run(SGLD(), target, jax.random.key(0), step_size=0.1, num_steps=10_000, num_chains=4)

Streams: chain c has the key `fold_in(key, c)`; its `init` takes `fold_in(chain_key, 0)` and its step t = 1, 2, ...
takes `fold_in(chain_key, t)`. So the random numbers of a chain depend neither on the other chains, nor on blocks,
nor on where a run was interrupted, nor on the number of devices that chains are shared out to: as many of the process's
as share them evenly, with two chains each at least.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.aliases import Tree
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.sampler import Estimator, Position, Sampler, State
from sgmcmc_verification.samplers.runner.config import RunConfig, Setup
from sgmcmc_verification.samplers.runner.digests import is_key
from sgmcmc_verification.samplers.runner.engine import JaxEngine
from sgmcmc_verification.samplers.runner.host import HostEngine
from sgmcmc_verification.samplers.runner.loop import drive
from sgmcmc_verification.samplers.runner.starts import initial_positions
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import Target


class NonFiniteError(FloatingPointError):
    """A chain left the finite numbers."""


@dataclass(frozen=True, eq=False)
class Run:
    """The draws of a run, and where it ended.

    Attributes:
        samples: pytree of `collect(position)`, axes (chain, draw, ...); None for `keep="average"`. Draws to which the
            schedule gives no weight (the exploration stage of a cyclical one) are left out.
        weights: (draws,), the step size of the step that leaves each draw [teh2016consistency, equation (3)], or what
            the schedule says; all equal for a constant step size.
        average: pytree, axes (chain, ...): the average of `collect(position)` over the draws with these weights.
            For `keep="samples"` computed from the samples on first use.
        state: the sampler's state after the last step, with a leading chain axis (a list of states for a host
            sampler).
        position: the positions after the last step, axes (chain, ...).
        nonfinite: (chains,), True for chains whose position is not finite at the end of the run or at the end of
            one of its segments.
        steps: steps taken by each chain, burn-in included.
    """

    samples: Tree
    weights: np.ndarray
    state: State
    position: Position
    nonfinite: np.ndarray
    steps: int
    averages: Tree = None

    @functools.cached_property
    def average(self) -> Tree:
        """The weighted average of the draws, axes (chain, ...)."""
        return self.averages if self.samples is None else self.expectation(lambda x: x)

    def expectation(self, function: Callable[[Position], Tree]) -> Tree:
        """Weighted averages over the draws of each chain, axes (chain, ...).

            sum_k w_k f(x_k) / sum_k w_k

        Args:
            function: one collected value -> pytree of arrays.

        Raises:
            ValueError: if the run kept no samples.
        """
        if self.samples is None:
            raise ValueError("expectation: the run kept no samples; pass keep='samples', or the function as `collect`")
        weights = self.weights / self.weights.sum()
        values = jax.vmap(jax.vmap(function))(self.samples)
        return jax.tree.map(lambda v: jnp.tensordot(jnp.asarray(weights, v.dtype), v, (0, 1)), values)


def run(
    sampler: Sampler, problem: Target | Estimator, key: jax.Array, config: RunConfig | None = None, **settings: Any
) -> Run:
    """Run a sampler.

    Args:
        sampler: a `Sampler`, or an object with a `step`, of which one is made; for `backend == "host"` the chains run
            one after the other in Python, each with a `numpy.random.Generator` of its own.
        problem: an estimator, or a target, which stands for its exact gradient.
        key: a typed key, `jax.random.key(seed)`.
        config: the configuration; without one it is made of the keywords.
        settings: fields of `samplers.runner.config.RunConfig`, which explains them: `step_size` and `num_steps`, and
            `num_chains`, `position` or `positions`, `burn_in`, `thin`, `collect`, `keep`, `progress`, `checkpoint`,
            `on_nonfinite` and others. They replace those of `config`.

    Raises:
        TypeError: if `sampler` is a class, or has no `step`.
        ValueError: if an argument does not fit; `CheckpointError` (a ValueError) if the checkpoint does not.
        NonFiniteError: if a chain left the finite numbers and `on_nonfinite="raise"`.
    """
    config = RunConfig(**settings) if config is None else replace(config, **settings)
    sampler = complete(sampler)
    estimator = Exact(problem) if isinstance(problem, Target) else problem
    require(is_key(key) and key.ndim == 0, "key: must be one typed key, as jax.random.key(seed) gives", key)
    setup = Setup(sampler, estimator, key, initial_positions(estimator, config), config)
    engine = HostEngine(setup) if sampler.backend == "host" else JaxEngine(setup)
    chains = _Chains(engine, config)
    drive(chains, config.stops, config.loop)
    _report(chains.nonfinite, config)
    samples, weights = chains.samples(), config.weights
    weighted = weights > 0
    if not weighted.all():
        samples, weights = jax.tree.map(lambda a: a[:, weighted], samples), weights[weighted]
    return Run(
        samples=samples,
        weights=weights,
        state=engine.state(),
        position=engine.position(),
        nonfinite=chains.nonfinite,
        steps=config.total,
        averages=engine.averages() if config.averaged else None,
    )


class _Chains:
    """The driver of an engine: it collects the draws, and notes which chains leave the finite numbers."""

    def __init__(self, engine: JaxEngine | HostEngine, config: RunConfig) -> None:
        self.engine, self.config = engine, config
        self.chunks: list[Tree] = []
        self.nonfinite = np.zeros(engine.setup.chains, bool)

    def advance(self, start: int, count: int) -> None:
        if start < self.config.burn_in:
            self.engine.advance(start, count)
            return
        draws = self.engine.draw(start, count // self.config.thin)
        if not self.config.averaged:
            # a run that writes checkpoints keeps its draws on the host, where they go at every checkpoint anyway
            self.chunks.append(draws if self.config.checkpoint is None else jax.tree.map(np.asarray, draws))

    def evaluate(self, done: int, seconds: float) -> dict[str, str]:
        del seconds
        self.nonfinite = self.nonfinite | ~self.engine.finite()
        if self.config.on_nonfinite == "raise" and self.nonfinite.any():
            raise NonFiniteError(_message(self.nonfinite, done))
        return {}

    def samples(self) -> Tree:
        """All draws so far, axes (chain, draw, ...); None if there are none."""
        self.chunks = [_join(self.chunks)] if self.chunks else []
        return jax.tree.map(jnp.asarray, self.chunks[0]) if self.chunks else None

    def identity(self) -> dict[str, object]:
        config = self.config
        return {
            **self.engine.identity(),
            "num_chains": len(self.nonfinite),
            "first_chain": config.first_chain,
            "burn_in": config.burn_in,
            "draws": config.draws,
            "thin": config.thin,
            "keep": config.keep,
            "every": config.piece,
            "step_size": repr(config.schedule),
        }

    def dump(self) -> list[np.ndarray]:
        self.chunks = [_join(self.chunks)] if self.chunks else []
        return [*self.engine.dump(), self.nonfinite, *jax.tree.leaves(self.chunks)]

    def restore(self, arrays: list[np.ndarray]) -> None:
        self.engine.restore(arrays)
        self.nonfinite = arrays.pop(0)
        self.chunks = [jax.tree.unflatten(self.engine.structure, arrays)] if arrays else []


def _join(chunks: list[Tree]) -> Tree:
    """Concatenate parts of the samples along the axis of draws."""
    if len(chunks) == 1:
        return chunks[0]
    join = np.concatenate if isinstance(jax.tree.leaves(chunks)[0], np.ndarray) else jnp.concatenate
    return jax.tree.map(lambda *a: join(a, axis=1), *chunks)


def _message(nonfinite: np.ndarray, steps: int) -> str:
    """Text of the warning or error for chains that have left the finite numbers."""
    return f"{int(nonfinite.sum())} of {nonfinite.size} chains are not finite after {steps} steps; reduce step_size"


def _report(nonfinite: np.ndarray, config: RunConfig) -> None:
    """Warn of, or raise for, chains that have left the finite numbers."""
    if config.on_nonfinite == "ignore" or not nonfinite.any():
        return
    if config.on_nonfinite == "raise":
        raise NonFiniteError(_message(nonfinite, config.total))
    warnings.warn(_message(nonfinite, config.total), RuntimeWarning, stacklevel=3)
