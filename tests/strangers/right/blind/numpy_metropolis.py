"""Metropolis kernels in NumPy: caches of the energy, single sites, persistent momenta, several tries."""

import functools
import math
from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

BOTH = frozenset({"gradient", "potential"})


def exact(where):
    return Claims(Source("", where), ExactLaw(), conditions=("exact gradient",))


def flatten(position):
    leaves, treedef = jax.tree.flatten(position)
    leaves = [np.asarray(leaf) for leaf in leaves]
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def rebuild(flat):
        parts = zip(np.split(flat, cuts), leaves, strict=True)
        return jax.tree.unflatten(treedef, [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in parts])

    return np.concatenate([leaf.ravel() for leaf in leaves]), rebuild


class Chain:
    """Where a chain is, what the energy and its slope are there, and how it went so far."""

    def __init__(self, point, energy, slope):
        self.point = point
        self.energy = energy
        self.slope = slope
        self.tried = 0
        self.accepted = 0


class CachedMala:
    """MALA, the state an object that is updated in place; U and grad U at its point are kept and change with it only.

    Right at every h: log ratio = U(x) - U(y) + (|y - x + h g(x)|^2 - |x - y + h g(y)|^2) / 4h, and -log u ~ Exp(1).
    """

    backend = "host"
    needs = BOTH
    claims = exact("Metropolis-adjusted Langevin, Roberts and Tweedie 1996")

    def _look(self, rng, point, estimator):
        found = estimator.estimate(rng, (), point)[0]
        return float(found.potential), jax.tree.map(np.array, found.gradient)

    def init(self, rng, position, estimator):
        point = jax.tree.map(np.array, position)
        return Chain(point, *self._look(rng, point, estimator))

    def step(self, rng, chain, step_size, estimator):
        h = float(step_size)

        def move(x, g):
            noise = np.asarray(rng.standard_normal(x.shape)).astype(x.dtype)
            return np.asarray(x - h * g + math.sqrt(2 * h) * noise)

        proposal = jax.tree.map(move, chain.point, chain.slope)
        energy, slope = self._look(rng, proposal, estimator)
        forth = self._misfit(chain.point, chain.slope, proposal, h)
        back = self._misfit(proposal, slope, chain.point, h)
        climb = energy - chain.energy + (back - forth) / (4 * h)
        chain.tried += 1
        if rng.standard_exponential() > climb:
            chain.point, chain.energy, chain.slope = proposal, energy, slope
            chain.accepted += 1
        return chain

    @staticmethod
    def _misfit(start, slope, end, h):
        """|end - start + h slope|^2."""
        gaps = jax.tree.map(lambda x, g, y: np.sum((y - x + h * g) ** 2, dtype=float), start, slope, end)
        return float(sum(jax.tree.leaves(gaps)))

    def position(self, chain):
        return jax.tree.map(np.copy, chain.point)


cached_mala = CachedMala()


def sweep(rng, position, step_size, estimator):
    """Metropolis within Gibbs: all coordinates, in a random order, uniform proposals of variance 2h.

    Right at every h: each site is a reversible kernel (symmetric proposal), and the order does not depend on the state.
    """
    here, rebuild = flatten(position)
    energy_of = lambda flat: float(estimator.estimate(rng, (), rebuild(flat))[0].potential)
    width, energy = math.sqrt(6 * float(step_size)), energy_of(here)
    for site in rng.permutation(here.size):
        there = here.copy()
        there[site] += rng.uniform(-width, width)
        other = energy_of(there)
        if rng.exponential() > other - energy:
            here, energy = there, other
    return rebuild(here)


single_sites = simple_sampler(sweep, backend="host", needs=("potential",), claims=exact("Metropolis within Gibbs"))


@dataclass(frozen=True)
class Horowitz:
    """Generalised HMC of Horowitz (1991): partial refreshment, one leapfrog, momentum turned round on rejection.

    Right at every h for exp(-U(q) - p^2/2): the refreshment keeps N(0, 1); leapfrog and flip are a volume-preserving
    involution tested by Metropolis, then flipped once more (so that accepted ones go on, rejected ones turn).
    """

    friction: float = 1.0
    backend = "host"
    needs = BOTH
    claims = exact("generalised HMC, Horowitz 1991")

    def init(self, rng, position, estimator):
        q, _ = flatten(position)
        state = {"position": jax.tree.map(np.array, position)}
        state["momentum"] = rng.standard_normal(q.size).astype(q.dtype)
        return state | self._cache(rng, state["position"], estimator)

    @staticmethod
    def _cache(rng, position, estimator):
        found, _ = estimator.estimate(rng, (), position)
        return {"energy": np.asarray(found.potential, float), "slope": flatten(found.gradient)[0]}

    def step(self, rng, state, step_size, estimator):
        h = float(step_size)
        q, rebuild = flatten(state["position"])
        keep = math.exp(-self.friction * h)
        fresh = rng.standard_normal(q.size).astype(q.dtype)
        p = keep * state["momentum"] + math.sqrt(1 - keep * keep) * fresh
        half = p - 0.5 * h * state["slope"]
        new = rebuild(q + h * half)
        cache = self._cache(rng, new, estimator)
        end = half - 0.5 * h * cache["slope"]
        gain = cache["energy"] - state["energy"] + 0.5 * float(end @ end - p @ p)
        if math.log(1.0 - rng.random()) < -gain:
            return {"position": new, "momentum": end} | cache
        return {**state, "momentum": -p}

    def position(self, state):
        return state["position"]


horowitz = Horowitz()


def many_tries(rng, position, step_size, estimator, *, tries):
    """Multiple-try Metropolis of Liu, Liang and Wong (2000), symmetric Gaussian proposals, Gumbel's trick to choose.

    Right at every h: for T(x, y) = T(y, x) the weights are pi(y_j), and the acceptance is sum_j pi(y_j) over
    sum_j pi(x*_j), with x*_1 .. x*_(k-1) ~ T(y, .) and x*_k = x.
    """
    x, rebuild = flatten(position)
    scale = math.sqrt(2 * float(step_size))

    def log_density(flat):
        value = -float(estimator.estimate(rng, (), rebuild(flat))[0].potential)
        return value if math.isfinite(value) else -math.inf

    def around(centre, count):
        return list(centre + scale * rng.standard_normal((count, x.size)).astype(x.dtype))

    candidates = around(x, tries)
    weights = np.array([log_density(y) for y in candidates])
    y = candidates[int(np.argmax(weights + rng.gumbel(size=tries)))]
    references = np.array([log_density(each) for each in [*around(y, tries - 1), x]])
    log_ratio = np.logaddexp.reduce(weights) - np.logaddexp.reduce(references)
    return rebuild(y if math.log(1.0 - rng.random()) < log_ratio else x)


four_tries = simple_sampler(
    functools.partial(many_tries, tries=4),
    backend="host",
    needs=["potential"],
    claims=exact("multiple-try Metropolis, Liu, Liang and Wong 2000"),
)
