"""Preconditioners that are learnt from the gradients: each step of a run by the algorithm of the source."""

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import last, several
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.claims import FisherScoring, LearntPreconditioner, RunningSquares
from sgmcmc_verification.targets.target import Target

NUM_STEPS = 4
"""Steps of the run: a mean of four terms tells its weights from those of any other recursion."""


def telling(target: Target) -> Altered:
    """Exact gradients with a covariance that depends on the position and is not diagonal: no noise, but it is told."""
    told = lambda estimate, x: estimate._replace(covariance=told_covariance(target, ravel_pytree(x)[0]))
    return Altered(Exact(target), told)


def told_covariance(target: Target, x: Any) -> Any:
    """V(x) = k (I / 2 + u u^T) with u = 3/2 + sin(x sqrt k), k the curvature of the target."""
    u = 1.5 + jnp.sin(x * target.curvature**0.5)
    return target.curvature * (0.5 * jnp.eye(x.shape[0], dtype=x.dtype) + jnp.outer(u, u))


@statement(
    tier="law",
    equation="E [theta_t - theta_(t-1)] = -M_t g_t and Cov = M_t (2 B / h) M_t, "
    "M_t from all gradients so far; 2 h T G_t",
    targets=last(several),
    cost=1.0,
    decides="dynamics",
    about=("sgmcmc_verification.samplers.overdamped.sgfs",),
)
def preconditioner_by_definition(case: Case, claim: LearntPreconditioner) -> Finding:
    """Mean and covariance of each step of a run, given the positions so far, are those of the source's algorithm.

    The preconditioner is computed in NumPy from all gradients, and all covariances that were told, at the positions of
    the run. The noise of the steps is fed by the tape; a step is affine in its own. Checks of a single step see the
    first value of a running mean alone, and those of the limit h -> 0 not even that.
    """
    sampler: Any = case.subject.sampler(case.target)
    h, estimator, temperature = case.step_size, telling(case.target), sampler.claims.temperature
    start = jax.tree.map(jnp.asarray, case.target.example)

    def run(step_size):
        keys = jax.random.split(jax.random.key(0), NUM_STEPS + 1)
        state, seen = sampler.init(keys[0], start, estimator), []
        for key in keys[1:]:
            state = sampler.step(key, state, step_size, estimator)
            seen.append(ravel_pytree(sampler.position(state))[0])
        return jnp.stack(seen)

    program = record(run, jnp.asarray(h))
    count, d = program.count("normal") // NUM_STEPS, case.target.size
    if program.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(program.unintercepted)}")
    if program.count("uniform") or program.ranges or not count or program.count("normal") % NUM_STEPS:
        raise OutOfReach("the steps draw something else than as many normals each")
    base = np.random.default_rng(0).standard_normal((NUM_STEPS, count))
    # of each step: its noise as drawn, zero, and each unit vector; the last row of a batch is the run itself
    directions = np.concatenate([np.zeros((1, count)), np.eye(count)])
    noises = np.repeat(base[None], NUM_STEPS * len(directions) + 1, axis=0)
    for t in range(NUM_STEPS):
        noises[t * len(directions) : (t + 1) * len(directions), t] = directions
    normals = jnp.asarray(noises.reshape(len(noises), -1))
    play = jax.jit(jax.vmap(lambda e: program(Noise(e, jnp.zeros(0), jnp.zeros(0, int)), jnp.asarray(h))))
    ends = np.asarray(play(normals))
    path = np.concatenate([np.asarray(ravel_pytree(start)[0])[None], ends[-1]])
    gradients = np.asarray(jax.vmap(jax.grad(case.target.flat_potential))(jnp.asarray(path[:-1])))
    told = np.asarray(jax.vmap(lambda x: told_covariance(case.target, x))(jnp.asarray(path[:-1])))
    effects, sizes = [], []
    for t in range(NUM_STEPS):
        own = ends[t * len(directions) : (t + 1) * len(directions), t]
        mean, columns = own[0], (own[1:] - own[0]).T
        drift, covariance = move_by_definition(claim, temperature, gradients[: t + 1], told[: t + 1], h)
        spread = np.sqrt(np.diag(covariance))
        affine = mean + columns @ base[t] - path[t + 1]
        excess = (columns @ columns.T - covariance) / np.outer(spread, spread)
        gaps = (mean - path[t] - drift) / spread, affine / spread, excess
        effects.append(max(float(np.abs(gap).max()) for gap in gaps))
        sizes.append(1 + float(((np.abs(path[t : t + 2]).max() + np.abs(drift).max()) / spread).max()))
    t = int(np.argmax(effects))
    allowance = 1e3 * np.finfo(float).eps * d * max(sizes)
    return Finding(
        effect=effects[t],
        tolerance=Tolerance(allowance, "round-off of a step, of a size in units of its noise"),
        reason=f"step {t + 1} of {NUM_STEPS} differs by {effects[t]:.3g} from the definition ({type(claim).__name__})",
        statistic="largest gap of mean and covariance of a step",
        unit="standard deviations of the noise of the step",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


@singledispatch
def move_by_definition(
    claim: LearntPreconditioner, temperature: float, gradients: np.ndarray, told: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) of the move of step t and its covariance (d, d) from gradients (t, d) and covariances (t, d, d)."""
    raise NotApplicable(f"no definition of {type(claim).__name__}")


@move_by_definition.register
def _(claim: FisherScoring, temperature: float, gradients: np.ndarray, told: np.ndarray, h: float):
    """-M g and M (2 B / h) M with M = (B / h + F / 2)^-1, F = (1 + n/N) times the mean of V_1 .. V_t.

    Source: ahn2012bayesian, Algorithm 1: theta + 2 (gamma N I_t + 4 B / eps)^-1 (grad log p + eta), eta ~ N(0, 4 B /
    eps), I_t the mean of all so far, gamma = (n + N) / n; eps = 2 h. Diagonals of B and I_t alone where the option
    says so.
    """
    del temperature
    d = gradients.shape[1]
    B = np.asarray(claim.preconditioner) * (np.eye(d) if np.ndim(claim.preconditioner) == 0 else 1.0)
    F = (1 + claim.batch_fraction) * np.mean(told, axis=0)
    if claim.diagonal:
        B, F = B * np.eye(d), F * np.eye(d)
    M = np.linalg.inv(B / h + F / 2)
    return -M @ gradients[-1], M @ (2 * B / h) @ M


@move_by_definition.register
def _(claim: RunningSquares, temperature: float, gradients: np.ndarray, told: np.ndarray, h: float):
    """-h G g and 2 h T G, G = diag 1 / (lambda + sqrt V).

        V = alpha^t V_0 + (1 - alpha) sum_s alpha^(t - s) (g_s / N)^2

    Source: li2016preconditioned, Algorithm 1, with h = eps / 2, and no Gamma.
    """
    del told
    t, decay = len(gradients), claim.decay
    weights = (1 - decay) * decay ** np.arange(t - 1, -1, -1.0)
    V = decay**t * np.asarray(claim.second_moment) + weights @ (gradients / claim.data_size) ** 2
    G = 1 / (claim.regularisation + np.sqrt(V))
    return -h * G * gradients[-1], 2 * h * temperature * np.diag(G)
