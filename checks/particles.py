"""Particle methods: the mean-field fixed point, reached with the quantiles of the target as particles."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from checks.check import Check, NotApplicable
from checks.result import Result
from checks.subject import Subject
from checks.verdict import decide
from targets.target import Target

COUNTS = (64, 128, 256, 512)


def quantile_particles(target: Target, count: int) -> np.ndarray:
    """The (i - 1/2) / count quantiles of a one-dimensional target, (count, 1): an equally weighted rule for it."""
    low, high = target.interval  # pyright: ignore[reportGeneralTypeIssues]
    grid = np.linspace(low, high, 40_001)
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(grid[:, None])))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (np.exp(-energy[1:]) + np.exp(-energy[:-1])))])
    levels = (np.arange(count) + 0.5) / count
    return np.interp(levels, cumulative / cumulative[-1], grid)[:, None]


def velocity_field(subject: Subject, target: Target, count: int, h: float) -> np.ndarray:
    """(particles' - particles) / h of one step from the quantiles of the target, (count, 1)."""
    particles = quantile_particles(target, count)
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    position = jax.vmap(target.unravel)(jnp.asarray(particles))
    state = sampler.init(jax.random.key(0), position, estimator)
    moved = jax.jit(partial(sampler.step, estimator=estimator))(jax.random.key(1), state, h)
    flat = jax.vmap(lambda p: ravel_pytree(p)[0])(sampler.position(moved))
    return (np.asarray(flat) - particles) / h


def mean_field_fixed_point(check: Check, subject: Subject, target: Target, seed: int) -> Result:
    """With particles that represent the target, the velocity of every particle goes to 0 as their number grows.

    The mean-field velocity E_p[k(y, x) grad log p(y) + grad_y k(y, x)] vanishes by Stein's identity (liu2016stein,
    lemma 2.2); n quantiles represent the target to O(1/n) up to tails, so four times the particles have to at least
    halve the velocity in the bulk, while a wrong term leaves a velocity that does not depend on n.
    """
    del seed
    sampler = subject.sampler(target)
    if sampler.claims.kind != "particle":
        raise NotApplicable("not a particle method")
    if target.size != 1 or target.interval is None:
        raise NotApplicable("quantiles need a one-dimensional target")
    h = 1e-4 * subject.step_size(target)
    speeds = []
    for count in COUNTS:
        v = velocity_field(subject, target, count, h)
        speeds.append(float(np.sqrt(np.mean(v[count // 10 : -count // 10] ** 2))))
    ratio = speeds[-1] / speeds[-3]
    return decide(
        check,
        subject,
        target,
        effect=ratio,
        allowance=0.5,
        allowance_source="O(1/n) error of n quantiles: a factor 4 in n at least halves the velocity",
        reason=f"root mean square velocity in the bulk {', '.join(f'{s:.3g}' for s in speeds)} for n = {COUNTS}",
        statistic=f"velocity at n = {COUNTS[-1]} over that at n = {COUNTS[-3]}",
        unit="ratio",
        detectable=0.5,
        promised=0.9,
        step_size=h,
        detail={"speeds": speeds},
    )
