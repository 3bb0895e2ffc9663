"""Multinomial HMC with a static trajectory (Betancourt 2017, appendix A.3), NumPy.

A trajectory of ``num_steps`` leapfrog steps contains the present state at a uniformly drawn place; one of its states is then
drawn with weights exp(-H). All leapfrog steps of a trajectory have one length, jittered between trajectories. Momenta and
choices have a stream each, spawned from the generator of the step, so that a change of the trajectory's length leaves the
momenta of a run where they were. Positions may be trees of arrays.
"""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


@dataclass
class PhasePoint:
    x: list
    p: list
    gradient: list
    energy: float


def _kinetic(p):
    return 0.5 * sum(float(np.sum(leaf * leaf)) for leaf in p)


def _leapfrog(point, epsilon, evaluate):
    half = [p - 0.5 * epsilon * g for p, g in zip(point.p, point.gradient)]
    x = [q + epsilon * p for q, p in zip(point.x, half)]
    potential, gradient = evaluate(x)
    p = [p - 0.5 * epsilon * g for p, g in zip(half, gradient)]
    return PhasePoint(x, p, gradient, potential + _kinetic(p))


def _extend(point, epsilon, count, evaluate):
    """``count`` leapfrog steps of length ``epsilon``, which may be negative."""
    points = []
    for _ in range(count):
        point = _leapfrog(point, epsilon, evaluate)
        points.append(point)
    return points


def _choose(rng, energies):
    """An index with probability proportional to exp(-energy)."""
    energies = np.where(np.isfinite(energies), energies, np.inf)
    weights = np.exp(np.min(energies) - energies)
    edges = np.cumsum(weights)
    index = np.searchsorted(edges, rng.random() * edges[-1], side="right")
    return min(int(index), len(edges) - 1)


def multinomial_hmc(num_steps=5, jitter=0.2):
    if num_steps < 1:
        raise ValueError("num_steps must be at least 1")
    if not 0 <= jitter < 1:
        raise ValueError("jitter must be in [0, 1)")

    def step(rng, position, step_size, estimator):
        momentum_rng, choice_rng = rng.spawn(2)
        leaves, tree = jax.tree_util.tree_flatten(position)

        def evaluate(x):
            found = estimator.estimate(rng, (), jax.tree_util.tree_unflatten(tree, x))[0]
            return float(found.potential), [np.asarray(g) for g in jax.tree_util.tree_leaves(found.gradient)]

        x = [np.array(leaf) for leaf in leaves]
        p = [momentum_rng.standard_normal(leaf.shape) for leaf in x]
        potential, gradient = evaluate(x)
        start = PhasePoint(x, p, gradient, potential + _kinetic(p))

        epsilon = step_size * (1 + jitter * choice_rng.uniform(-1.0, 1.0))
        before = int(choice_rng.integers(num_steps + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            backward = _extend(start, -epsilon, before, evaluate)
            forward = _extend(start, epsilon, num_steps - before, evaluate)
        trajectory = [*backward[::-1], start, *forward]
        chosen = trajectory[_choose(choice_rng, np.array([point.energy for point in trajectory]))]
        return jax.tree_util.tree_unflatten(tree, chosen.x)

    return simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
