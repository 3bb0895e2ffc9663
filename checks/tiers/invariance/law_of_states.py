"""The law on finitely many states by sampling, where the ways that the draws of a step can fall cannot be listed.

Runs start from exact draws of the target, which an exact kernel keeps. The average of a function along one run is one
value; those of runs with their own starts and keys are independent. The functions are the indicators of the values of
each site and of equal neighbours, and random signs, which no difference between two laws escapes.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, Inconclusive, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.obligations import BRANCHES, FINITE, KNOWN_DRAWS, REACHED
from sgmcmc_verification.checks.core.selection import nowhere
from sgmcmc_verification.checks.end_points.error_rates import (
    Sensitivity,
    current_fraction,
    decide_statistically,
    not_finite,
    stage_seed,
)
from sgmcmc_verification.checks.exact_laws.transition_matrix import classes, law_at, period
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ExactLaw

RUNS, HOST_RUNS, STEPS = 1 << 13, 1 << 10, 32
"""Runs of the first stage, those in Python, and steps of each."""
SIGNS = 32
"""Functions with random signs."""
PROMISED = 0.1
"""Error of the probability of a value of a site that is seen."""
UNIT = "probability"


class _Runs:
    """Runs of a sampler on a finite space, as places of states."""

    def __init__(self, case: Case) -> None:
        self.target, self.law = case.target, case.target.finite
        self.sampler, self.estimator = case.subject.sampler(case.target), case.subject.estimator(case.target)
        self.host = on_host(self.sampler)
        self._many = None if self.host else jax.jit(jax.vmap(self._one, (0, 0, None)))

    def _one(self, key: jax.Array, start: jax.Array, h: jax.Array) -> jax.Array:
        keys = jax.random.split(key, STEPS + 1)
        state = self.sampler.init(keys[0], self.target.unravel(start), self.estimator)

        def advance(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            state = self.sampler.step(key, state, h, self.estimator)
            return state, self.target.ravel(self.sampler.position(state))

        return jax.lax.scan(advance, state, keys[1:])[1]

    def places(self, seed: int, starts: np.ndarray, h: float) -> np.ndarray:
        """Places (N, STEPS) of the states of runs from states (N,); -1 outside."""
        assert self.law is not None
        points = self.law.states[starts]
        if self._many is not None:
            keys = jax.random.split(jax.random.key(seed), len(starts))
            return self.law.place(np.asarray(self._many(keys, jnp.asarray(points), jnp.asarray(h))))
        return self.law.place(
            np.stack([self._on_host(np.random.default_rng([seed, i]), x, h) for i, x in enumerate(points)])
        )

    def _on_host(self, generator: np.random.Generator, start: np.ndarray, h: float) -> np.ndarray:
        shape, found = np.shape(self.target.example), []
        state = self.sampler.init(generator, start.reshape(shape).copy(), self.estimator)
        for _ in range(STEPS):
            state = self.sampler.step(generator, state, h, self.estimator)
            found.append(np.ravel(np.asarray(self.sampler.position(state))).copy())
        return np.stack(found)


def _functions(states: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Values (S, K) of functions of the states between 0 and 1, and their names."""
    values = np.unique(states)
    found = [states[:, i] == v for i in range(states.shape[1]) for v in values[1:]]
    names = [f"P(x[{i}] = {v})" for i in range(states.shape[1]) for v in values[1:]]
    found += [states[:, i] == states[:, i + 1] for i in range(states.shape[1] - 1)]
    names += [f"P(x[{i}] = x[{i + 1}])" for i in range(states.shape[1] - 1)]
    found += list(np.random.default_rng(0).random((SIGNS, len(states))) < 1 / 2)
    names += [f"P(random set {i})" for i in range(SIGNS)]
    return np.stack(found, axis=1).astype(float), tuple(names)


@statement(
    tier="invariance",
    equation="E f(x_n) = sum of pi(x) f(x) for x_0 ~ pi and all n",
    targets=nowhere,
    cost=5.0,
    decides="law",
    meets=lambda target: (FINITE, KNOWN_DRAWS, BRANCHES),
    samples=True,
    finite=True,
)
def law_of_states(case: Case, seed: int) -> Finding:
    """Runs from exact draws of a law on finitely many states keep it, at the usual step size.

    It runs by itself where the matrix of a step cannot be computed. That every state is reached is shown where the
    steps that were seen lead from every state to every other.
    """
    claims = case.subject.sampler(case.target).claims
    require_stationary_law(claims)
    runs, h = _Runs(case), case.step_size
    assert runs.law is not None
    pi = law_at(runs.law, claims.temperature)
    values, names = _functions(runs.law.states)
    expected = pi @ values
    seen = np.zeros((len(pi), len(pi)), bool)
    count = max(256, int(current_fraction() * (HOST_RUNS if runs.host else RUNS)))

    def run(stage: int, n: int) -> list[Outcome]:
        starts = np.random.default_rng(stage_seed(seed, stage, 10)).choice(len(pi), n, p=pi)
        places = runs.places(stage_seed(seed, stage, 20), starts, h)
        if np.any(places < 0):
            return [not_finite("a step that leaves the states", n, UNIT)]
        path = np.concatenate([starts[:, None], places], axis=1)
        seen[path[:, :-1], path[:, 1:]] = True
        means = values[places].mean(axis=1)
        return [mean_test(means[:, k], float(expected[k]), name=name, unit=UNIT) for k, name in enumerate(names)]

    found = decide_statistically(
        run,
        first_n=count,
        promised=Sensitivity(PROMISED, chains=RUNS).of(count),
        allowance_source="nothing: an exact kernel keeps its law",
        reason=lambda o: (
            f"by sampling, {o.name} along runs from pi is {o.measured:.5g}, exact {o.expected:.5g}"
            if o.measured is not None
            else o.name
        ),
        steps=STEPS,
        step_size=h,
    )
    if found.verdict == "fail" and ExactLaw not in claims and _reads(runs, h, seed):
        raise Inconclusive(f"{found.reason}: the law at one step size is not pi, and no limit h -> 0 is sampled here")
    return _with_reached(found, runs, seen, h, seed)


def _reads(runs: _Runs, h: float, seed: int) -> bool:
    """True if a step depends on its size: the law of one that does not is exact, or wrong at all sizes."""
    assert runs.law is not None
    starts = np.arange(len(runs.law.states))
    return bool(np.any(runs.places(seed, starts, h) != runs.places(seed, starts, h / 2)))


def _with_reached(found: Finding, runs: _Runs, seen: np.ndarray, h: float, seed: int) -> Finding:
    """The finding, failed if no run changes a coordinate; it meets `REACHED` if the steps connect the states."""
    if found.verdict != "pass":
        return found
    assert runs.law is not None
    states = runs.law.states
    starts = np.tile(np.arange(len(states)), 1 if runs.host else 32)
    places = runs.places(stage_seed(seed, 0, 30), starts, h)
    path = np.concatenate([starts[:, None], places], axis=1)
    seen[path[:, :-1], path[:, 1:]] = True
    x, y = np.nonzero(seen)
    still = [i for i in range(states.shape[1]) if np.all(states[x, i] == states[y, i])]
    if still:
        reason = f"no step of {len(path) * STEPS} changes the coordinate {', '.join(map(str, still))}"
        return dataclasses.replace(found, violated=True, reason=reason)
    connected = not classes(seen).max() and period(seen) == 1
    return dataclasses.replace(found, meets=(REACHED,) if connected else ())
