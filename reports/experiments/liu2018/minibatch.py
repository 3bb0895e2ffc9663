"""SVGD and RSVGD with minibatches: what gradient noise does to particles, and why a naive RSVGD fails.

    python -m sgmcmc_verification.reports.experiments.liu2018.minibatch [--quick] [--resume] [--out FOLDER]

Three parts. (1) Particles on N(0, 1) with a gradient of known variance V: their stationary fluctuation beside the one
derived (`derived`). (2) The velocity on the logistic regression of Splice, from batches: bias and noise. (3) Test
log-likelihood of Splice by iteration with batches. Every cell is a JSON line in FOLDER/liu2018-minibatch.jsonl;
`--resume` skips what the file has. Needs the files of Splice.

Source: liu2018riemannian, section 5: "the naive mini-batch implementation of RSVGD does not perform well".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from sgmcmc_verification.reports.experiments.common.cli import publish
from sgmcmc_verification.reports.experiments.common.grid import Keyed, Lines
from sgmcmc_verification.reports.experiments.common.markdown import experiment_page, new_figure, number
from sgmcmc_verification.reports.experiments.liu2018.figure1 import KERNELS, RSVGD_STEP, SVGD_STEP, VARIANCE, problem
from sgmcmc_verification.samplers.estimators.basic import KnownNoise
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.particles.rsvgd import RSVGD
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.riemannian.logistic_metric import LogisticMetric
from sgmcmc_verification.samplers.riemannian.metrics import FlatMetric
from sgmcmc_verification.targets.euclidean.gaussian import gaussian
from sgmcmc_verification.targets.regression.logistic import Prediction, predictive
from sgmcmc_verification.targets.target import Target

NAME = "liu2018-minibatch"
STEP_SIZE, BANDWIDTH, PARTICLES = 0.1, 0.5, 5
"""On N(0, 1); the slowest mode of more particles takes thousands of steps to settle."""
NOISES = (0.1, 1.0, 4.0)
REPLICATES, BURN_IN, STEPS = 100, 1000, 2000
BATCHES = (1000, 500, 200, 50)
"""Of the 1000 training rows of Splice, drawn without replacement."""
SPLICE_PARTICLES = 50
ITERATIONS, EVERY = {"SVGD": 300, "RSVGD, metric of all rows": 80, "RSVGD, metric of the batch": 80}, 10
WHOLE, NAIVE = tuple(ITERATIONS)[1:]
DRAWS = 100
"""Batches, for the bias of the velocity."""
COLOURS = dict(zip(ITERATIONS, ("#D55E00", "#0072B2", "#CC79A7"), strict=True))
STYLES: dict[int, str] = dict(zip(BATCHES, ("-", "--", "-.", ":"), strict=True))


@dataclass(frozen=True)
class Cell(Keyed):
    """`kind` is `gaussian`, `velocity` or `splice`; `size` the variance V, or the rows of a batch."""

    kind: str
    method: str
    size: float
    steps: int
    seed: int = 0


# Particles on N(0, 1) ----------------------------------------------------------------------------------------------


def law() -> Target:
    """N(0, 1)."""
    return gaussian(np.zeros(1), np.eye(1), "standard Gaussian")


def flat(method: str) -> Any:
    """SVGD or RSVGD, in the latter's case with the metric G = I."""
    return SVGD(BANDWIDTH) if method == "SVGD" else RSVGD(FlatMetric(), BANDWIDTH)


class Response(NamedTuple):
    """Fixed point x* (M,), shift (M,) of the mean and covariance (M, M) that noise adds, to first order in V."""

    rest: np.ndarray
    shift: np.ndarray
    covariance: np.ndarray

    @property
    def centre(self) -> float:
        """Variance of the mean of the particles."""
        return float(self.covariance.mean())

    @property
    def spread(self) -> float:
        """Mean of the variance of the particles about their centre."""
        moved = self.rest.var() + 2 * np.mean((self.rest - self.rest.mean()) * self.shift)
        return float(moved + np.trace(self.covariance) / len(self.rest) - self.centre)


def derived(sampler: Any, h: float, V: float, count: int) -> Response:
    """Fluctuations of particles under a gradient noise eta ~ N(0, V) that is the same for all of them.

    The velocity is linear in the gradients, so that x' = x + h v(x) - h b(x) eta, b = -dv / d eta. There is no other
    noise. With J = dv/dx at the fixed point of v, to first order in V,

        S = (I + h J) S (I + h J)^T + h^2 V b b^T,   J shift = -(1/2) tr(v'' S)

    both O(h V): they die with the step size, and what is left is the fixed point.
    """
    weights = jnp.full(count, 1 / count)
    field = lambda x, eta=0.0: sampler.velocity(x[:, None], x[:, None] + eta, weights)[:, 0]
    start = jnp.sqrt(2.0) * jax.scipy.special.erfinv(2 * (jnp.arange(count) + 0.5) / count - 1)
    x = jax.jit(lambda x: jax.lax.fori_loop(0, 20_000, lambda t, x: x + h * field(x), x))(start)
    J, bend, b = jax.jit(
        lambda x: (jax.jacfwd(field)(x), jax.hessian(field)(x), -jax.jacfwd(lambda e: field(x, e))(0.0))
    )(x)
    A = np.eye(count) + h * J
    S = linalg.solve_discrete_lyapunov(A, h**2 * V * np.outer(b, b))
    return Response(np.asarray(x), -np.linalg.solve(J, 0.5 * np.einsum("jab,ab->j", bend, S)), S)


def fluctuated(cell: Cell) -> dict[str, Any]:
    """Variance of the centre over time and replicates, and mean variance of the particles about it."""
    sampler, h = flat(cell.method), STEP_SIZE
    found = derived(sampler, h, cell.size, PARTICLES)
    estimator = KnownNoise(law(), np.full((1, 1), cell.size))
    one = sampler.init(jax.random.key(0), jnp.asarray(found.rest)[:, None], estimator)
    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (REPLICATES, *leaf.shape)), one)
    step = jax.vmap(lambda k, s: sampler.step(k, s, h, estimator))

    def body(carry, t):
        state, total = carry
        state = step(jax.random.split(jax.random.fold_in(cell.random, t), REPLICATES), state)
        x = state.position[..., 0]
        centre = jnp.mean(x, axis=1)
        entry = jnp.stack([centre**2, jnp.var(x, axis=1)])
        return (state, total + jnp.where(t >= BURN_IN, entry, 0.0)), None

    run = jax.jit(lambda s: jax.lax.scan(body, (s, jnp.zeros((2, REPLICATES))), jnp.arange(BURN_IN + cell.steps))[0][1])
    means = np.asarray(run(start)) / cell.steps
    error = means.std(axis=1, ddof=1) / np.sqrt(REPLICATES)
    return {
        "centre": [float(means[0].mean()), float(error[0])],
        "spread": [float(means[1].mean()), float(error[1])],
        "derived centre": found.centre,
        "derived spread": found.spread,
        "spread at rest": float(found.rest.var()),
    }


# Logistic regression ------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """grad U of logistic regression from some rows: w / alpha + a X^T (sigmoid(X w) - y)."""

    features: Any
    labels: Any
    scale: float

    def init(self, key, position):
        """No state."""
        del key, position
        return ()

    def estimate(self, key, estate, position):
        """The gradient; nothing is drawn."""
        del key
        residual = jax.nn.sigmoid(self.features @ position) - self.labels
        return Estimate(position / VARIANCE + self.scale * self.features.T @ residual), estate


def of_batch(method: str, size: int, key: jax.Array) -> tuple[Any, Rows]:
    """(sampler, estimator) of one iteration: the batch is drawn with the key, the same for all particles."""
    total = len(problem("splice").train.labels)
    chosen = jnp.arange(total) if size == total else jax.random.choice(key, total, (size,), replace=False)
    return of_rows(method, chosen)


def of_rows(method: str, chosen: jax.Array) -> tuple[Any, Rows]:
    """(sampler, estimator) with a gradient, and for NAIVE a metric, from the chosen training rows (n,)."""
    X: Any
    X, y = (jnp.asarray(a) for a in problem("splice").train)
    rows: Any = Rows(X[chosen], y[chosen], X.shape[0] / chosen.shape[0])
    if method == "SVGD":
        return SVGD(KERNELS, adagrad=True), rows
    if method == NAIVE:
        return RSVGD(LogisticMetric(rows.features, VARIANCE, rows.scale), KERNELS), rows
    return RSVGD(LogisticMetric(X, VARIANCE), KERNELS), rows


def trained(cell: Cell) -> dict[str, Any]:
    """Test log-likelihood by iteration; None from where particles were not finite."""
    found, size = problem("splice"), int(cell.size)
    h = (SVGD_STEP if cell.method == "SVGD" else RSVGD_STEP)["splice"]
    place, walk = jax.random.split(cell.random)
    start = VARIANCE**0.5 * jax.random.normal(place, (SPLICE_PARTICLES, found.target.size))
    sampler, estimator = of_rows(cell.method, jnp.arange(size))
    state = sampler.init(walk, start, estimator)
    total, generator = len(found.train.labels), np.random.default_rng(cell.seed)
    # drawn outside of the compiled loop, which has been seen to hang with the sort of a draw inside
    batches = np.array([generator.permutation(total)[:size] for _ in range(cell.steps)])

    def body(state, chosen):
        sampler, estimator = of_rows(cell.method, chosen)
        return sampler.step(walk, state, h, estimator), None

    advance = jax.jit(lambda s, chosen: jax.lax.scan(body, s, chosen)[0])
    iterations = [0]
    scores: list[Prediction | None] = [predictive(np.asarray(start), found.test.features, found.test.labels)]
    for first in range(0, cell.steps, EVERY):
        state = advance(state, jnp.asarray(batches[first : first + EVERY]))
        x = np.asarray(state.position)
        iterations.append(first + EVERY)
        scores.append(predictive(x, found.test.features, found.test.labels) if np.isfinite(x).all() else None)
    return {
        "iterations": iterations,
        "log_likelihood": [s and s.log_likelihood for s in scores],
        "accuracy": [s and s.accuracy for s in scores],
    }


def velocities(cell: Cell) -> dict[str, Any]:
    """Bias and noise of the velocity from batches where particles start, in units of its size from all rows.

    The bias is that of the mean over DRAWS batches; an unbiased velocity leaves noise / DRAWS^1/2.
    """
    found, size = problem("splice"), int(cell.size)
    x = VARIANCE**0.5 * jax.random.normal(jax.random.key(cell.seed), (SPLICE_PARTICLES, found.target.size))
    weights = jnp.full(SPLICE_PARTICLES, 1 / SPLICE_PARTICLES)

    def velocity(key, size):
        sampler, rows = of_batch(cell.method, size, key)
        gradients = jax.vmap(lambda w: rows.estimate(key, (), w)[0].gradient)(x)
        return sampler.velocity(x, gradients, weights)

    right = np.asarray(jax.jit(lambda k: velocity(k, len(found.train.labels)))(cell.random))
    one, total, square = jax.jit(lambda k: velocity(k, size)), np.zeros_like(right), 0.0
    for t in range(cell.steps):
        v = np.asarray(one(jax.random.fold_in(cell.random, t)))
        total, square = total + v, square + float(np.sum((v - right) ** 2))
    scale = float(np.linalg.norm(right))
    return {
        "bias": float(np.linalg.norm(total / cell.steps - right)) / scale,
        "noise": float(np.sqrt(square / cell.steps)) / scale,
    }


def measured(cell: Cell) -> dict[str, Any]:
    """The result of a cell."""
    return {"gaussian": fluctuated, "splice": trained, "velocity": velocities}[cell.kind](cell)


def plan(quick: bool) -> list[Cell]:
    """All cells."""
    steps, batches = (50, BATCHES[-1:]) if quick else (STEPS, BATCHES)
    noises = NOISES[:1] if quick else NOISES
    own = [Cell("gaussian", m, V, steps) for m in ("SVGD", "RSVGD") for V in noises]
    speeds = [
        Cell("velocity", m, n, 20 if quick else DRAWS)
        for m in ITERATIONS
        for n in batches
        if n < BATCHES[0] and m != WHOLE  # that one is linear in the gradient, as SVGD is
    ]
    runs = [
        Cell("splice", m, n, EVERY if quick else k)
        for m, k in ITERATIONS.items()
        for n in batches
        if n < BATCHES[0] or m != NAIVE  # with all rows the two are one
    ]
    return own + speeds + runs


# The page -----------------------------------------------------------------------------------------------------------


def final(result: dict[str, Any]) -> str:
    """The last log-likelihood, or from where there is none."""
    values = result["log_likelihood"]
    if None in values:
        return f"not finite from iteration {result['iterations'][values.index(None)]}"
    return f"{values[-1]:.4f}"


def text(lines: Lines, quick: bool) -> str:
    """Text of the page."""
    of = lambda kind: [(c, lines[c.key]["result"]) for c in plan(quick) if c.kind == kind]
    short = lambda value: number(float(value), 3)
    flatland = [
        f"| {c.method} | {c.size:g} | {short(r['centre'][0])} ± {short(r['centre'][1])} | {short(r['derived centre'])} "
        f"| {r['spread'][0]:.5f} ± {r['spread'][1]:.5f} | {r['derived spread']:.5f} | {r['spread at rest']:.5f} |"
        for c, r in of("gaussian")
    ]
    speeds = [
        f"| {c.method} | {c.size:g} | {r['bias']:.3g} | {r['noise'] / np.sqrt(c.steps):.3g} | {r['noise']:.3g} |"
        for c, r in of("velocity")
    ]
    batches = sorted({c.size for c, _ in of("splice")}, reverse=True)
    last = batches[-1]
    ends = {(c.method, c.size): final(r) for c, r in of("splice")}
    table = [
        f"| {m} | {ITERATIONS[m]} | " + " | ".join(ends.get((m, n), "as above") for n in batches) + " |"
        for m in ITERATIONS
    ]
    return experiment_page(
        NAME,
        lines,
        splice_particles=SPLICE_PARTICLES,
        particles=PARTICLES,
        replicates=REPLICATES,
        last=f"{last:g}",
        naive_end=ends[NAIVE, last],
        whole_end=ends[WHOLE, last],
        svgd_end=ends["SVGD", last],
        bandwidth=f"{BANDWIDTH:g}",
        step_size=f"{STEP_SIZE:g}",
        flatland=flatland,
        draws=DRAWS,
        speeds=speeds,
        batches=" | ".join("all rows" if n == BATCHES[0] else f"{n:g}" for n in batches),
        num_batches="---|" * len(batches),
        table=table,
        rsvgd_splice_step=f"{RSVGD_STEP['splice']:g}",
        svgd_splice_step=f"{SVGD_STEP['splice']:g}",
    )


def draw(lines: Lines, quick: bool, path: Path) -> None:
    """Left the fluctuation on N(0, 1); right log-likelihoods by iteration, a panel a method."""
    figure, axes = new_figure(1, 4, (15, 3.8))
    axis = axes[0, 0]
    for method, marker, colour in (("SVGD", "o", "#D55E00"), ("RSVGD", "s", "#0072B2")):
        found = [(c.size, lines[c.key]["result"]) for c in plan(quick) if c.kind == "gaussian" and c.method == method]
        V = [v for v, _ in found]
        axis.plot(V, [r["derived centre"] for _, r in found], color=colour, lw=1.2, label=f"{method}, derived")
        axis.plot(V, [r["centre"][0] for _, r in found], marker, ms=5, color=colour, label=f"{method}, measured")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("variance of the gradient V")
    axis.set_ylabel("variance of the centre, N(0, 1)")
    axis.grid(alpha=0.25, lw=0.4)
    axis.legend(fontsize=7.5)
    panels = dict(zip(ITERATIONS, axes[0, 1:], strict=True))
    for cell in plan(quick):
        if cell.kind != "splice":
            continue
        r = lines[cell.key]["result"]
        values = [np.nan if v is None else v for v in r["log_likelihood"]]
        label = "all rows" if cell.size == BATCHES[0] else f"{cell.size:g} rows"
        panels[cell.method].plot(
            r["iterations"], values, STYLES[int(cell.size)], color=COLOURS[cell.method], lw=1.6, label=label
        )
    for method, axis in panels.items():
        axis.set_title(f"Splice: {method}", fontsize=9)
        axis.set_ylim(-0.75, -0.42)
        axis.set_xlabel("iteration")
        axis.grid(alpha=0.25, lw=0.4)
        axis.legend(fontsize=7.5, title="batch", title_fontsize=7.5)
    axes[0, 1].set_ylabel("test log-likelihood")
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    return publish(arguments, __file__, NAME, plan, measured, text, draw)


if __name__ == "__main__":
    raise SystemExit(main())
