"""Particle methods: the mean-field fixed point, reached with the quantiles of the target as particles."""

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import PARTICLES
from sgmcmc_verification.checks.core.selection import line
from sgmcmc_verification.samplers.interface.claims import AdaGradSteps, DensityEstimate, MarginalFlow, ParticleLaw
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target

COUNTS = (64, 128, 256, 512)
"""Numbers of particles."""
HALVED = 0.5
"""Factor by which the velocity falls, at least, with four times as many."""
ROWS = (8, 48)
"""Numbers of particles in each direction of a plane."""
TWICE = 4.0
"""A velocity in the plane above this many times that on the line, with as many quantiles, is none of their error: that
of the square is at most the sum of the errors of both directions, since a kernel is at most 1 in the other one."""
DISPLACED = {"shifted up": (1.0, 1.0), "shifted down": (1.0, -1.0), "narrowed": (0.5, 0.0), "widened": (1.5, 0.0)}
"""Laws other than the target: the factor of the distance from the mean, the shift in standard deviations."""


def quantile_particles(target: Target, count: int) -> np.ndarray:
    """The (i - 1/2) / count quantiles of a one-dimensional target, (count, 1): an equally weighted rule for it."""
    low, high = target.interval  # pyright: ignore[reportGeneralTypeIssues]
    grid = np.linspace(low, high, 40_001)
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(grid[:, None])))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (np.exp(-energy[1:]) + np.exp(-energy[:-1])))])
    levels = (np.arange(count) + 0.5) / count
    return np.interp(levels, cumulative / cumulative[-1], grid)[:, None]


@lru_cache(maxsize=16)
def twice(target: Target) -> Target:
    """Two independent coordinates of the law of a target on a line."""
    return Target(
        name=f"two of {target.name}",
        manifold=Euclidean(2),
        example=jnp.full(2, jnp.ravel(jnp.asarray(jax.tree.leaves(target.example)[0]))[0]),
        potential=lambda x: target.flat_potential(x[:1]) + target.flat_potential(x[1:]),
        curvature=target.curvature,
    )


def velocity_field(subject: Subject, target: Target, particles: np.ndarray, h: float) -> np.ndarray:
    """(particles' - particles) / h of one step from `particles` (count, 1), of the same shape."""
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    position = jax.vmap(target.unravel)(jnp.asarray(particles))
    state = sampler.init(jax.random.key(0), position, estimator)
    moved = jax.jit(partial(sampler.step, estimator=estimator))(jax.random.key(1), state, h)
    flat = jax.vmap(lambda p: ravel_pytree(p)[0])(sampler.position(moved))
    return (np.asarray(flat) - particles) / h


def _in_the_plane(case: Case, h: float) -> tuple[float, list[float]]:
    """The factor by which the velocity falls with more particles on a square, and the velocities of few and of many.

    A velocity of at most `TWICE` times that on the line, with as many quantiles, counts as halved.
    """
    square = twice(case.target)
    v = velocity_field(case.subject, case.target, quantile_particles(case.target, ROWS[-1]), h)
    alone = float(np.sqrt(np.mean(v[ROWS[-1] // 5 : -(ROWS[-1] // 5)] ** 2)))
    speeds = []
    for count in ROWS:
        x = quantile_particles(case.target, count)[:, 0]
        v = velocity_field(case.subject, square, np.stack(np.meshgrid(x, x), -1).reshape(-1, 2), h)
        cut = slice(count // 5, -(count // 5))
        speeds.append(float(np.sqrt(np.mean(v.reshape(count, count, 2)[cut, cut] ** 2))))
    return min(speeds[1] / speeds[0], speeds[1] / (2 * TWICE * alone)), speeds


def require_line(sampler: Any, target: Target) -> None:
    """Raise NotApplicable unless the step of a particle method is h times its velocity, on a line."""
    if target.size != 1 or target.interval is None:
        raise NotApplicable("quantiles need a one-dimensional target")
    if AdaGradSteps in sampler.claims:
        raise NotApplicable("a step is not the velocity times the step size")


@statement(
    tier="law",
    equation="E_p[k grad log p + grad k] = 0 at the target",
    targets=line,
    cost=5.0,
    decides="law",
    screening=4,
    meets=lambda target: (PARTICLES,),
)
def mean_field_fixed_point(case: Case, law: ParticleLaw, estimate: DensityEstimate | None) -> Finding:
    """With particles that represent the target, the velocity of every particle goes to 0 as their number grows.

    The mean-field velocity E_p[k(y, x) grad log p(y) + grad_y k(y, x)] vanishes by Stein's identity (liu2016stein,
    lemma 2.2); n quantiles represent the target to O(1/n) up to tails, so four times the particles have to at least
    halve the velocity in the bulk, while a wrong term leaves a velocity that does not depend on n. The same for two
    independent coordinates of that law, with a square of quantiles, unless the velocity is as small as on the line
    already: a factor that is 1 on a line need not be one there.
    """
    sampler = case.subject.sampler(case.target)
    require_line(sampler, case.target)
    if estimate is not None:
        raise NotApplicable("an estimate of the density smooths it: the target is a fixed point in a limit only")
    h = 1e-4 * case.step_size
    speeds = []
    for count in COUNTS:
        v = velocity_field(case.subject, case.target, quantile_particles(case.target, count), h)
        speeds.append(float(np.sqrt(np.mean(v[count // 10 : -count // 10] ** 2))))
    effect, wide = speeds[-1] / speeds[-3], []
    what = f"root mean square velocity in the bulk {', '.join(f'{s:.3g}' for s in speeds)} for n = {COUNTS}"
    if effect <= HALVED:  # a kernel may need memory that goes as the cube of the number of particles
        factor, wide = _in_the_plane(case, h)
        effect = max(effect, factor)
        what += f"; in two coordinates {wide[0]:.3g}, {wide[1]:.3g} for n = {ROWS} in each"
    return Finding(
        effect=effect,
        tolerance=Tolerance(HALVED, "O(1/n) error of n quantiles: a factor 4 in n at least halves the velocity"),
        reason=what,
        statistic=f"velocity at n = {COUNTS[-1]} over that at n = {COUNTS[-3]}, or for {ROWS} rows",
        unit="ratio",
        minimum_detectable_effect=0.5,
        required_sensitivity=0.9,
        step_size=h,
        measurements={"speeds": speeds, "in two coordinates": wide},
    )


def divergence_rate(subject: Subject, target: Target, particles: np.ndarray, h: float) -> float:
    """d KL(q || p) / dt = E_q[v U' - v'] along the velocity of one step from `particles` (count, 1) in order, over
    E_q|v U'| + E_q|v'|: a number between -1 and 1.
    """
    v = velocity_field(subject, target, particles, h)[:, 0]
    slope = np.asarray(jax.vmap(jax.grad(target.flat_potential))(jnp.asarray(particles)))[:, 0]
    drift, spread = v * slope, np.gradient(v, particles[:, 0])
    return float((drift - spread).mean() / (np.abs(drift).mean() + np.abs(spread).mean()))


@statement(
    tier="law",
    equation="d KL(q || p) / dt = E_q[v U' - v'] < 0 away from the target",
    targets=line,
    cost=2.5,
    decides="law",
)
def divergence_falls(case: Case, law: ParticleLaw, flow: MarginalFlow | None) -> Finding:
    """Particles of another law than the target move towards it: the Kullback-Leibler divergence falls.

    Along a velocity v the divergence changes at the rate E_q[v U' - v'] (continuity equation), for v of SVGD minus the
    squared kernelised Stein discrepancy of q (liu2016stein, theorem 3.1), negative for every q other than the target.
    A fixed point alone would also be one of the reversed flow.
    """
    sampler = case.subject.sampler(case.target)
    require_line(sampler, case.target)
    if flow is not None:
        raise NotApplicable("the rate at which its divergence falls is known: see divergence_of_flow")
    h = 1e-4 * case.step_size
    rates, worst, error = {}, -np.inf, 0.0
    for name, (scale, shift) in DISPLACED.items():
        found = []
        for count in COUNTS[-2:]:
            x = quantile_particles(case.target, count)
            moved = x.mean() + scale * (x - x.mean()) + shift * x.std()
            found.append(divergence_rate(case.subject, case.target, moved, h))
        rates[name] = found[-1]
        worst, error = max(worst, found[-1]), max(error, abs(found[1] - found[0]))
    return Finding(
        effect=worst,
        tolerance=Tolerance(error, f"change of the rate from {COUNTS[-2]} to {COUNTS[-1]} particles"),
        reason="rate of the divergence for the target " + ", ".join(f"{n} {r:.3g}" for n, r in rates.items()),
        statistic="largest d KL / dt",
        unit="relative to E|v U'| + E|v'|",
        minimum_detectable_effect=2 * error,
        required_sensitivity=0.1,
        step_size=h,
        measurements={"rates": rates},
    )
