"""Tests of samplers that others use, without any of the checks: moments, the joint distribution, finite numbers.

Each takes a sampler, or a function of a target that makes one, and says whether it sees an error. All are run at one
step size, with one seed, as the tests of libraries are.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.compilation import OPTIMISED
from sgmcmc_verification.checks.statistics.geweke import joint_test
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Key, Position, Scalar, State
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Estimate, Sampler, Stateless
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import DataTerms, Target

STEP = 0.02
"""Step size in time of the SDE, times the smallest variance of the target."""
TOLERANCE = 0.1
"""Error of a mean in standard deviations, and of a variance as a share of it, that such tests allow."""
BURN_IN, STEPS = 2_000, 200_000
"""Steps of the long chain."""
PARTICLES, CLOUD_STEPS = 50, 5_000
TARGETS = {
    "euclidean": ("gaussian-standard", "tiny-gaussian-data"),
    "positive": ("gamma",),
    "sphere": ("vmf-s2",),
}
"""Space -> targets with known moments: a Gaussian and a posterior, as a library would take them."""
SIZE, DATA, REPLICATES, HOST_REPLICATES = 2, 5, 400, 100
"""Coordinates, data, and chains of the joint distribution test."""
SWEEP, LEVEL = 50, 0.01
"""Steps between two draws of the data; level of the whole test."""
JOINT_STEP = 0.05 / (1 + DATA)
"""In time of the SDE; the posterior has the precision 1 + DATA."""
FIRST_STEPS = 10


class Seen(NamedTuple):
    """Finding of a test.

    Attributes:
        sees: the test fails; None where it does not apply.
        why: the largest error, the smallest p-value, or the reason for which it does not apply.
    """

    sees: bool | None
    why: str


def built(value: Any, target: Target) -> Sampler:
    """The sampler itself, or the one that a function makes of the target."""
    return value if callable(getattr(value, "step", None)) else value(target)


def space(sampler: Sampler) -> str:
    """The first space that a sampler claims to run on."""
    return sampler.claims.spaces[0]


def first_target(value: Any) -> str:
    """Name of the first target of a sampler's space."""
    return TARGETS[space(built(value, find_target(TARGETS["euclidean"][0])))][0]


def moments_within_tolerance(value: Any, seed: int = 0) -> Seen:
    """Mean and variance of each coordinate of a long chain, or of a cloud of particles, against the exact ones."""
    spaces = space(built(value, find_target(TARGETS["euclidean"][0])))
    found = [_moments(value, find_target(name), seed) for name in TARGETS[spaces]]
    return max(found, key=lambda seen: bool(seen.sees))


def exact_moments(target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and variance (d,) of the coordinates of a target."""
    value = {name: moment.value for name, moment in target.moments.items()}
    names = [f"theta[{i}]" for i in range(target.size)]
    mean = np.array([value[name] for name in names])
    square = np.array([value.get(f"{name}^2", value.get(f"{name}*{name}")) for name in names])
    return mean, square - mean**2


def _moments(value: Any, target: Target, seed: int) -> Seen:
    sampler, (mean, variance) = built(value, target), exact_moments(target)
    h = STEP * float(variance.min())
    run = _cloud if ParticleLaw in sampler.claims else _chain
    positions = np.asarray(jax.vmap(target.ravel)(run(sampler, target, h, seed)))
    if not np.isfinite(positions).all():
        return Seen(True, f"{target.name}: not finite")
    errors = {
        "mean": np.abs(positions.mean(axis=0) - mean) / np.sqrt(variance),
        "variance": np.abs(positions.var(axis=0) / variance - 1),
    }
    worst = max(errors, key=lambda name: errors[name].max())
    return Seen(bool(errors[worst].max() > TOLERANCE), f"{target.name}: {worst} off by {errors[worst].max():.2g}")


def _chain(sampler: Sampler, target: Target, h: float, seed: int) -> Position:
    """Positions of one chain after its burn-in, with a leading axis."""
    if on_host(sampler):
        rng, estimator = np.random.default_rng(seed), HostExact(target)
        state, kept = sampler.init(rng, target.example, estimator), []
        for i in range(BURN_IN + STEPS):
            state = sampler.step(rng, state, h, estimator)
            if i >= BURN_IN:
                kept.append(np.array(sampler.position(state)))
        return np.stack(kept)
    estimator = Exact(target)

    def run(first: Key, rest: Key) -> Position:
        start = sampler.init(first, target.example, estimator)
        return positions_of(sampler, rest, start, estimator, h, BURN_IN + STEPS)

    positions = jax.jit(run, compiler_options=OPTIMISED)(*jax.random.split(jax.random.key(seed)))
    return jax.tree.map(lambda leaf: leaf[BURN_IN:], positions)


def _cloud(sampler: Sampler, target: Target, h: float, seed: int) -> Position:
    """The last positions of some particles that start around the example of the target."""
    first, rest = jax.random.split(jax.random.key(seed))
    scatter = lambda leaf: leaf + jax.random.normal(first, (PARTICLES, *jnp.shape(leaf)), jnp.result_type(leaf))
    start = sampler.init(first, jax.tree.map(scatter, target.example), Exact(target))
    run = jax.jit(
        lambda key: positions_of(sampler, key, start, Exact(target), h, CLOUD_STEPS), compiler_options=OPTIMISED
    )
    return jax.tree.map(lambda leaf: leaf[-1], run(rest))


def positions_of(
    sampler: Sampler, key: Key, state: State, estimator: Estimator, step_size: Scalar, steps: int
) -> Position:
    """Positions after each of some steps, with a leading axis; to be traced."""

    def step(state: State, key: Key) -> tuple[State, Position]:
        state = sampler.step(key, state, step_size, estimator)
        return state, sampler.position(state)

    first, rest = jax.random.split(key)
    state = sampler.step(first, state, step_size, estimator)  # its dtypes are those of all later states
    return jax.lax.scan(step, state, jax.random.split(rest, steps))[1]


def prior(x: jax.Array) -> jax.Array:
    """Potential of N(0, I)."""
    return jnp.sum(x**2) / 2


def datum(x: jax.Array, y: jax.Array) -> jax.Array:
    """Minus the log-likelihood of y ~ N(x, I)."""
    return jnp.sum((y - x) ** 2) / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior(Stateless):
    """The exact gradient and potential of a sum over data."""

    terms: DataTerms

    def potential(self, x: jax.Array) -> jax.Array:
        """U."""
        return self.terms.prior(x) + jnp.sum(jax.vmap(self.terms.datum, (None, 0))(x, self.terms.data))

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and no state."""
        del key
        value, gradient = jax.value_and_grad(self.potential)(position)
        return Estimate(gradient, value), estate


@dataclasses.dataclass(frozen=True, eq=False)
class HostPosterior(Posterior):
    """The same in NumPy, by the closed form, for samplers that run in Python."""

    backend = "host"

    def estimate(self, key: Any, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and no state."""
        del key
        x, y = np.asarray(position), np.asarray(self.terms.data)
        value = (np.sum(x**2) + np.sum((y - x) ** 2)) / 2
        return Estimate(x + np.sum(x - y, axis=0), value), estate


def joint_distribution(value: Any, seed: int = 0) -> Seen:
    """Geweke's joint distribution test: draws of parameter and data by both simulators have one law.

    The model is N(0, I) with `DATA` observations of variance 1; looked at are each coordinate, its square and the
    log-likelihood. A transition is `SWEEP` steps from the first state at the parameter.

    Source: geweke2004getting, by `checks.statistics.geweke`.
    """
    plain = find_target("tiny-gaussian-data")
    sampler = built(value, plain)
    if ParticleLaw in sampler.claims:
        return Seen(None, "particles are no chain")
    if space(sampler) != "euclidean":
        return Seen(None, f"no prior: the parameter of the model is no point of the space {space(sampler)}")
    host = on_host(sampler)
    try:
        outcomes = joint_test(
            lambda rng, count: rng.standard_normal((count, SIZE)),
            lambda rng, theta: theta[:, None] + rng.standard_normal((len(theta), DATA, SIZE)),
            _host_transition(value, plain) if host else _transition(value, plain),
            lambda theta, y: np.column_stack([theta, theta**2, -np.sum((y - theta[:, None]) ** 2, axis=(1, 2)) / 2]),
            seed=seed,
            replicates=HOST_REPLICATES if host else REPLICATES,
        )
    except ValueError as error:  # numbers that are not finite
        return Seen(True, str(error))
    smallest = min(outcome.log_p for outcome in outcomes)
    return Seen(bool(smallest < np.log(LEVEL / len(outcomes))), f"smallest p-value {np.exp(smallest):.2g}")


Transition = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]
"""(generator, parameters (R, SIZE), data (R, DATA, SIZE)) -> parameters."""


def _posterior(y: Any) -> DataTerms:
    return DataTerms(prior, datum, y, DATA)


def _of_model(value: Any, plain: Target, posterior: Posterior) -> Sampler:
    """The sampler for a target of the model."""
    return built(value, dataclasses.replace(plain, potential=posterior.potential, terms=posterior.terms))


def _transition(value: Any, plain: Target) -> Transition:
    def chain(key: Key, theta: jax.Array, y: jax.Array) -> jax.Array:
        posterior = Posterior(_posterior(y))
        sampler, (first, rest) = _of_model(value, plain, posterior), jax.random.split(key)
        state = sampler.init(first, theta, posterior)
        return positions_of(sampler, rest, state, posterior, JOINT_STEP, SWEEP)[-1]

    chains = jax.jit(jax.vmap(chain), compiler_options=OPTIMISED)

    def transition(rng: np.random.Generator, theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), len(theta))
        return np.asarray(chains(keys, jnp.asarray(theta), jnp.asarray(y)))

    return transition


def _host_transition(value: Any, plain: Target) -> Transition:
    def transition(rng: np.random.Generator, theta: np.ndarray, y: np.ndarray) -> np.ndarray:
        ends = []
        for start, data in zip(theta, y, strict=True):
            posterior = HostPosterior(_posterior(data))
            sampler = built(value, plain)
            state = sampler.init(rng, start, posterior)
            for _ in range(SWEEP):
                state = sampler.step(rng, state, JOINT_STEP, posterior)
            ends.append(np.array(sampler.position(state)))
        return np.stack(ends)

    return transition


def finite_and_shaped(value: Any, seed: int = 0) -> Seen:
    """Ten steps from the example of the target: positions are finite and keep shape and dtype."""
    target = find_target(first_target(value))
    sampler = built(value, target)
    host = on_host(sampler)
    key: Any = np.random.default_rng(seed) if host else jax.random.key(seed)
    draw: Callable[[int], Any] = lambda i: key if host else jax.random.fold_in(key, i)
    estimator = HostExact(target) if host else Exact(target)
    start = target.example
    if ParticleLaw in sampler.claims:
        start = jax.tree.map(lambda leaf: jnp.stack([leaf + 0.1 * i for i in range(6)]), start)
    state = sampler.init(draw(0), start, estimator)
    for i in range(1, FIRST_STEPS + 1):
        state = sampler.step(draw(i), state, STEP / target.curvature, estimator)
        for old, new in zip(jax.tree.leaves(start), jax.tree.leaves(sampler.position(state)), strict=True):
            if jnp.shape(old) != jnp.shape(new) or jnp.result_type(old) != jnp.result_type(new):
                return Seen(True, f"step {i}: another shape or dtype")
            if not np.isfinite(np.asarray(new)).all():
                return Seen(True, f"step {i}: not finite")
    return Seen(False, f"{FIRST_STEPS} steps")


RIVALS: dict[str, Callable[[Any], Seen]] = {
    "moments": moments_within_tolerance,
    "joint distribution": joint_distribution,
    "finite": finite_and_shaped,
}
"""Name -> test."""
