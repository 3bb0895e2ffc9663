"""Table 1 of the SGGMC paper, measured: stochastic gradients, inner iterations, global coordinates, order.

    python -m sgmcmc_verification.reports.experiments.liu2016.table1 [--quick] [--resume] [--out FOLDER]

Every cell is a JSON line in FOLDER/liu2016-table1.jsonl; `--resume` skips what the file has.

- *Stochastic gradient*: chains with minibatches of 2 of 4 data at two step sizes, extrapolated to h = 0, against the
  target and against the law that a Metropolis test on minibatches has as h -> 0 (`limit_of_a_noisy_test`).
- *Inner iterations*: the jaxpr of a step is interpreted and the iterations of its loops with a condition are counted.
- *Global coordinates*: the manifolds that the sampler claims, and where the chains above ended.
- *Order*: local weak order of the code's step against its generator; for trajectories with a Metropolis test, the
  exponent of the energy error of a trajectory of fixed length.

Source: liu2016stochastic, table 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.numerics.convergence_rate import slope
from sgmcmc_verification.checks.tiers.order.weak_order import local_errors
from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, mean_and_error, pair
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact, Minibatch
from sgmcmc_verification.samplers.geodesic.chmc import CHMC
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.interface.capabilities import TrajectorySampler
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.riemannian.metrics import DiagonalMetric
from sgmcmc_verification.samplers.riemannian.mmala import MMALA
from sgmcmc_verification.samplers.riemannian.rmhmc import RMHMC
from sgmcmc_verification.samplers.riemannian.sgrhmc import SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.samplers.runner.run import run
from sgmcmc_verification.samplers.thermostats.sgnht import SGNHT
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import DataTerms, Target

NAME = "liu2016-table1"
STEPS = 3
"""Steps of the integrator a transition."""
BATCH = 2
DURATION, DRAWS = 30.0, 100
"""Time of a run in units of the SDE (a trajectory of length t counts t^2 / 2), and draws; the first half is dropped."""
TRAJECTORY = (8, 16, 32, 64)
"""Steps into which a trajectory of length 1 is cut."""


class Method(NamedTuple):
    """A row of the table.

    Attributes:
        build: target -> sampler.
        step_size: the larger of the two step sizes of the law.
        curved: runs on the circle, else on the line, with a metric where the method has one.
        printed: the four entries of the paper: stochastic gradient, no inner iteration, no global coordinates, order.
        order: name of the row and target whose local weak order is measured; None for trajectories.
    """

    build: Callable[[Target], Any]
    step_size: float
    curved: bool
    printed: tuple[str, str, str, str]
    order: tuple[str, str] | None = None


METRIC = DiagonalMetric()
ROWS = {"gsgnht": Row("gsgnht", lambda target: GSGNHT(target.manifold), step_power=0.5)}
"""Names that the registry may not hold."""
METHODS = {
    "GMC": Method(lambda t: GMC(t.manifold, STEPS), 0.2, True, ("×", "✓", "✓", "2nd")),
    "RMLD (with its test: mMALA)": Method(
        lambda t: MMALA(METRIC), 0.1, False, ("×", "✓", "×", "1st"), ("sgrld-recipe-metric", "double-well")
    ),
    "RMHMC": Method(lambda t: RMHMC(METRIC, STEPS), 0.2, False, ("×", "×", "×", "2nd †")),
    "CHMC": Method(lambda t: CHMC(t.manifold, STEPS), 0.2, True, ("×", "×", "✓", "2nd †")),
    "SGLD": Method(lambda t: SGLD(), 0.1, False, ("✓", "✓", "–", "1st"), ("sgld", "double-well")),
    "SGHMC": Method(lambda t: SGHMC(2.0), 0.2, False, ("✓", "✓", "–", "1st ‡"), ("sghmc", "double-well")),
    "SGNHT": Method(lambda t: SGNHT(2.0), 0.05, False, ("✓", "✓", "–", "1st ‡"), ("sgnht", "double-well")),
    "SGRLD": Method(
        lambda t: SGRLD(METRIC), 0.1, False, ("✓", "✓", "×", "1st"), ("sgrld-recipe-metric", "double-well")
    ),
    "SGRHMC": Method(
        lambda t: SGRHMC(METRIC), 0.1, False, ("✓", "✓", "×", "1st"), ("sgrhmc-recipe-metric", "double-well")
    ),
    "SGGMC": Method(lambda t: SGGMC(t.manifold, 2.0), 0.2, True, ("✓", "✓", "✓", "2nd"), ("sggmc", "vmf-s1")),
    "gSGNHT": Method(lambda t: GSGNHT(t.manifold, 2.0), 0.2, True, ("✓", "✓", "✓", "2nd"), ("gsgnht", "vmf-s1")),
}


@dataclass(frozen=True)
class Cell(Keyed):
    """One entry: `kind` is law, iterations or order; `chains` of a law."""

    kind: str
    method: str
    chains: int = 0
    seed: int = 0


# Stochastic gradients ----------------------------------------------------------------------------------------------


@cache
def problem(curved: bool) -> Target:
    """Four data: on the line U = sum (theta - y_i)^2 / 4, y = -1, -1, 1, 1; on the circle U = -sum 0.8 x . y_i."""
    if curved:
        angles = np.array([-1.2, -0.8, 0.8, 1.2])
        data = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        terms = DataTerms(lambda x: jnp.zeros((), x.dtype), lambda x, y: -0.8 * (x @ y), jnp.asarray(data), 4)
        manifold, example = Sphere(2), jnp.array([0.8, 0.6])
    else:
        data = np.array([[-1.0], [-1.0], [1.0], [1.0]])
        datum = lambda x, y: 0.25 * jnp.sum((x - y) ** 2)
        terms = DataTerms(lambda x: jnp.zeros((), x.dtype), datum, jnp.asarray(data), 4)
        manifold, example = Euclidean(1), jnp.array([0.3])
    potential = lambda x: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, terms.data))
    return Target("four data", manifold, example, potential, terms=terms)


def statistic(curved: bool) -> Callable[[jax.Array], jax.Array]:
    """theta^2 on the line, the first coordinate on the circle."""
    return (lambda x: x[0]) if curved else (lambda x: x[0] ** 2)


def estimator(curved: bool) -> Minibatch:
    """Two of the four data, with replacement: both the gradient and the potential."""
    terms = problem(curved).terms
    assert terms is not None
    return Minibatch(terms, BATCH)


def expectation(curved: bool, log_density: Callable[[jax.Array], jax.Array]) -> float:
    """Of the statistic under a density on the line or the circle, by the trapezoidal rule."""
    grid = np.linspace(-math.pi, math.pi, 400, endpoint=False) if curved else np.linspace(-8, 8, 1601)
    points = jnp.asarray(np.stack([np.cos(grid), np.sin(grid)], axis=1) if curved else grid[:, None])
    weights = np.exp(np.asarray(jax.vmap(log_density)(points)))
    return float(weights @ np.asarray(jax.vmap(statistic(curved))(points)) / weights.sum())


@cache
def exact(curved: bool) -> float:
    """E of the statistic under the target."""
    return expectation(curved, lambda x: -problem(curved).potential(x))


@cache
def limit_of_a_noisy_test(curved: bool) -> float:
    """E of the statistic under the mean of exp(-U_S) over all minibatches S.

    A chain that keeps the estimate U_S of its potential and accepts with the ratio of the estimates is a
    pseudo-marginal chain: if its proposals do not depend on S, which they cease to do as h -> 0, then (x, S) has the
    law exp(-U_S(x)). It is the target only if the mean of exp(-U_S + U) does not depend on x.
    """
    batches = estimator(curved)
    every = jnp.asarray(batches.indices())
    density = lambda i, x: jnp.exp(-jnp.asarray(batches.at(i, x).potential))
    return expectation(curved, lambda x: jnp.log(jnp.sum(jax.vmap(density, (0, None))(every, x))))


def law(cell: Cell) -> dict[str, Any]:
    """Means of the statistic at h and h / 2, and their extrapolation to 0, with standard errors over chains."""
    method = METHODS[cell.method]
    target = problem(method.curved)
    sampler: Sampler = method.build(target)
    noisy = estimator(method.curved)
    trajectory = isinstance(sampler, TrajectorySampler)
    means, off = [], 0.0
    for i in range(2):
        h = method.step_size / 2**i
        pace = (STEPS * h) ** 2 / 2 if trajectory else h
        thin = math.ceil(DURATION / pace / DRAWS)
        found = run(
            sampler,
            noisy,
            jax.random.fold_in(cell.random, i),
            step_size=h,
            num_steps=DRAWS * thin,
            thin=thin,
            num_chains=cell.chains,
            position=target.example,
            collect=statistic(method.curved),
            on_nonfinite="raise",
        )
        means.append(mean_and_error(np.asarray(found.samples)[:, DRAWS // 2 :].mean(axis=1)))
        x = np.asarray(found.position)
        off = max(off, float(np.abs(np.sum(x * x, axis=1) - 1).max())) if method.curved else 0.0
    (coarse, e0), (fine, e1) = means
    return {"means": means, "limit": (2 * fine - coarse, math.hypot(2 * e1, e0)), "off": off}


# Inner iterations --------------------------------------------------------------------------------------------------


class Counter:
    """Evaluates a jaxpr and counts the iterations of its `while` loops, those within loops included."""

    def __init__(self):
        self.count = 0

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The values of a jaxpr."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        read = lambda v: v.val if isinstance(v, core.Literal) else known[v]
        for equation in jaxpr.eqns:
            found = self._apply(equation, [read(v) for v in equation.invars])
            known.update(zip(equation.outvars, found, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _closed(self, jaxpr: Any, *args: Any) -> list[Any]:
        return self.evaluate(jaxpr.jaxpr, jaxpr.consts, args)

    def _apply(self, equation: Any, inputs: list[Any]) -> Sequence[Any]:
        name, params = equation.primitive.name, equation.params
        if name in ("jit", "pjit"):
            return self._closed(params["jaxpr"], *inputs)
        if name == "while":
            a, b = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
            first, second, carry = inputs[:a], inputs[a:b], inputs[b:]
            while bool(self._closed(params["cond_jaxpr"], *first, *carry)[0]):
                carry = self._closed(params["body_jaxpr"], *second, *carry)
                self.count += 1
            return carry
        if name == "scan":
            a, b = params["num_consts"], params["num_consts"] + params["num_carry"]
            consts, carry, xs, ys = inputs[:a], inputs[a:b], inputs[b:], []
            order = range(params["length"])
            for i in reversed(order) if params["reverse"] else order:
                found = self._closed(params["jaxpr"], *consts, *carry, *(x[i] for x in xs))
                carry = found[: b - a]
                ys.append(found[b - a :])
            ys = ys[::-1] if params["reverse"] else ys
            return [*carry, *(jnp.stack(column) for column in zip(*ys, strict=True))]
        bound = equation.primitive.get_bind_params(params)
        # jax 0.9 returns (subfunctions, parameters), jax 0.10 the parameters alone.
        subfunctions, parameters = bound if isinstance(bound, tuple) else ((), bound)
        found = equation.primitive.bind(*subfunctions, *inputs, **parameters)
        return found if equation.primitive.multiple_results else [found]


def count_iterations(function: Callable, *args: Any) -> int:
    """Iterations of the loops with a condition in one call of a JAX function."""
    jaxpr = jax.make_jaxpr(function)(*args)
    counter = Counter()
    counter.evaluate(jaxpr.jaxpr, jaxpr.consts, jax.tree.leaves(args))
    return counter.count


def iterations(cell: Cell) -> dict[str, Any]:
    """Iterations for one step of the integrator, mean over a few transitions at the larger step size."""
    method = METHODS[cell.method]
    target = problem(method.curved)
    sampler, gradients = method.build(target), Exact(target)
    state = sampler.init(jax.random.key(0), target.example, gradients)
    step = lambda key, state: sampler.step(key, state, jnp.asarray(method.step_size), gradients)
    counts = [count_iterations(step, jax.random.key(i + 1), state) for i in range(3)]
    return {"count": float(np.mean(counts)) / (sampler.num_steps if isinstance(sampler, TrajectorySampler) else 1)}


# Order -------------------------------------------------------------------------------------------------------------


def order(cell: Cell) -> dict[str, Any]:
    """The measured order."""
    method = METHODS[cell.method]
    if method.order is None:
        return {"order": energy_order(method), "of": "energy error of a trajectory"}
    return {"order": weak_order(*method.order), "of": "weak error"}


@cache
def weak_order(name: str, target: str) -> float:
    """Of the local weak error against two terms of the generator's series, less one: 1 or 2, whatever is claimed."""
    hs, errors = local_errors(Subject(ROWS.get(name) or sampler_row(name)), find_target(target), 2)
    return slope(hs, errors, 1e4 * np.finfo(float).eps * np.sqrt(errors.size))[0] - 1


def energy_order(method: Method, starts: int = 64) -> float:
    """Exponent of the root mean square of H(end) - H(start) over trajectories of length 1, from the two finest."""
    target = problem(method.curved)
    sampler, gradients = method.build(target), Exact(target)

    def change(key, n):
        momentum_key, place_key = jax.random.split(key)
        shift = target.manifold.tangent(target.example, jax.random.normal(place_key, target.example.shape))
        x = target.manifold.geodesic(target.example, shift, jnp.asarray(1.0))[0]
        state, p = sampler.init(key, x, gradients), sampler.refresh(momentum_key, x)
        energy = lambda state, p: state.potential + sampler.kinetic(state.position, p)

        def body(_, carry):
            state, p, valid = carry
            state, p, fine = sampler.integrate(key, state, p, 1.0 / n, gradients)
            return state, p, valid & fine

        end, q, valid = jax.lax.fori_loop(0, n, body, (state, p, jnp.asarray(True)))
        return jnp.where(valid, energy(end, q) - energy(state, p), jnp.nan)

    every = jax.jit(jax.vmap(change, (0, None)))
    keys = jax.random.split(jax.random.key(4), starts)
    errors = np.stack([np.asarray(every(keys, jnp.asarray(n))) for n in TRAJECTORY])
    errors = errors[:, np.all(np.isfinite(errors), axis=0)]  # RATTLE has no solution for the fastest
    sizes = np.sqrt(np.mean(errors**2, axis=1))
    return float(np.log2(sizes[-2] / sizes[-1]))


# The page ----------------------------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Cell], dict[str, Any]]] = {"law": law, "iterations": iterations, "order": order}


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    methods, chains = (("GMC",), 400) if quick else (METHODS, 1000)
    return [cell for m in methods for cell in (Cell("iterations", m), Cell("order", m), Cell("law", m, chains))]


def right_limit(method: Method, limit: Sequence[float]) -> bool:
    """True if the extrapolation is nearer to the target than to the limit of a noisy test."""
    gaps = [abs(limit[0] - value) for value in (exact(method.curved), limit_of_a_noisy_test(method.curved))]
    return gaps[0] < gaps[1]


def measured(name: str, found: dict[str, dict]) -> tuple[str, str, str, str]:
    """The four entries as the paper prints them, from the results of a method."""
    method, sampler = METHODS[name], METHODS[name].build(problem(METHODS[name].curved))
    spaces = "sphere" in sampler.claims.spaces and found["law"]["off"] < 1e-12
    flat = method.printed[2] == "–"
    rank = {1: "1st", 2: "2nd"}.get(round(found["order"]["order"]))
    return (
        "✓" if right_limit(method, found["law"]["limit"]) else "×",
        "✓" if found["iterations"]["count"] == 0 else "×",
        "–" if flat else "✓" if spaces else "×",
        rank or "–",
    )


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    found: dict[str, dict[str, dict]] = {}
    for cell in plan(quick):
        found.setdefault(cell.method, {})[cell.kind] = lines[cell.key]["result"]
    table, numbers, agree = [], [], []
    for name, results in found.items():
        method, entries = METHODS[name], measured(name, results)
        same = [m == p.split()[0] for m, p in zip(entries, method.printed, strict=True) if m != "–"]
        agree += same
        both = " | ".join(f"{p} / {m}" for p, m in zip(method.printed, entries, strict=True))
        table.append(f"| {name} | {both} | {'yes' if all(same) else '**no**'} |")
        r = results["law"]
        values = " | ".join(pair(v) for v in (*r["means"], r["limit"]))
        expected = f"{exact(method.curved):.4f} | {limit_of_a_noisy_test(method.curved):.4f}"
        degree = f"{results['order']['order']:.3f}, {results['order']['of']}"
        place = f"circle, off by {r['off']:.1e}" if method.curved else "line"
        numbers.append(
            f"| {name} | {place} | {method.step_size:g} | {values} | {expected} | "
            f"{results['iterations']['count']:.1f} | {degree} |"
        )
    return experiment_page(NAME, lines, total_agree=sum(agree), num_agree=len(agree), table=table, numbers=numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, lambda cell: KINDS[cell.kind](cell), text)


if __name__ == "__main__":
    raise SystemExit(main())
