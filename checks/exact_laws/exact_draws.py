"""Exact, independent draws of the full variable z = (theta, r, xi, ...) from the law that a sampler claims."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import NotApplicable, OutOfReach
from sgmcmc_verification.checks.core.start_position import in_one_program
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import at_temperature, auxiliary_law
from sgmcmc_verification.checks.numerics.geodesic_dynamics import draw_tangent
from sgmcmc_verification.checks.programs.evaluation import Evaluated, evaluated
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep
from sgmcmc_verification.samplers.interface.claims import Diffusion, EmbeddedDiffusion, Exchange
from sgmcmc_verification.targets.target import Target

GRID = 20_001
"""Points of the table by which a one-dimensional law is inverted; the error of its distribution function is below
1e-7, far below what any number of chains resolves."""

NUMBERS = (1 << 10, 1 << 12, 1 << 14)
"""Numbers of draws that are made for fewer: each number of them is a program of its own."""


class Gaussian(NamedTuple):
    """Mean (n,) and covariance (n, n)."""

    mean: np.ndarray
    covariance: np.ndarray


def line_grid(target: Target, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (m,) of the interval and the distribution function of exp(-U / T) at them (trapezoidal in a map s(x)).

    On (0, inf) the points are x = high s^6, which turns an algebraic singularity of the density at 0 into a harmless
    one.

    Raises:
        OutOfReach: if the target is not one-dimensional.
    """
    if target.interval is None or target.size != 1:
        raise OutOfReach("not a one-dimensional law")
    low, high = target.interval
    stretch = max(1.0, temperature)
    s = np.linspace(0.0, 1.0, GRID)
    if target.manifold.is_positive:
        power = 6
        x, slope = stretch * high * s**power, s ** (power - 1)
    else:
        x = (low + high) / 2 + (high - low) / 2 * stretch * (2 * s - 1)
        slope = np.ones_like(s)
    inner = x if slope[0] else x[1:]
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(inner[:, None])))
    density = np.exp(-(energy - energy.min()) / temperature) * slope[-len(inner) :]
    density = np.concatenate([np.zeros(GRID - len(inner)), density])
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return x, mass / mass[-1]


def draw_positions(target: Target, temperature: float, generator: np.random.Generator, count: int) -> np.ndarray:
    """`count` exact draws (count, d) from exp(-U / T).

    Raises:
        OutOfReach: if no exact sampler is known at this temperature.
    """
    if target.gaussian is not None:
        root = np.linalg.cholesky(temperature * np.linalg.inv(target.gaussian.precision))
        return target.gaussian.mean + generator.standard_normal((count, target.size)) @ root.T
    on_line = target.interval is not None and target.size == 1
    if temperature != 1.0 and (target.tempered is not None or not on_line):
        return draw_positions(at_temperature(target, temperature), 1.0, generator, count)
    if temperature == 1.0 and target.sample is not None:
        key = jax.random.key(int(generator.integers(2**31)))
        made = next((number for number in NUMBERS if number >= count), count)
        draws, program = _sampler(target, made)
        return np.asarray(in_one_program(draws, key, program=program))[:count]
    x, mass = line_grid(target, temperature)
    return np.interp(generator.random(count), mass, x)[:, None]


@lru_cache(maxsize=64)
def _sampler(target: Target, count: int) -> tuple[Callable[[jax.Array], jax.Array], Evaluated]:
    """Key -> exact draws (count, d), and the same in one program."""
    assert target.sample is not None
    sample = target.sample
    draws = lambda key: jax.vmap(target.ravel)(sample(key, count))
    return draws, evaluated(draws)


def gaussian_start(step: JaxStep | HostStep) -> Gaussian:
    """Mean and covariance of the claimed law of z where the whole of it is Gaussian. Raises NotApplicable."""
    target, claims = step.target, step.sampler.claims
    if target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    mean, covariance = target.gaussian.mean, claims.temperature * np.linalg.inv(target.gaussian.precision)
    extra = step.size - target.size
    if not extra:
        return Gaussian(mean, covariance)
    if Diffusion not in claims:
        raise OutOfReach("the law of the auxiliary variables is not declared")
    points = np.stack([mean, mean + 1.0])
    aux_mean, aux_covariance = auxiliary_law(claims[Diffusion].dynamics(target).H, points, extra)
    zero = np.zeros((target.size, extra))
    return Gaussian(np.concatenate([mean, aux_mean]), np.block([[covariance, zero], [zero.T, aux_covariance]]))


def draw_variables(step: JaxStep | HostStep, generator: np.random.Generator, count: int) -> np.ndarray:
    """`count` exact draws (count, n) of z, or of the position alone, (count, d), where no law of the rest is declared.

    Raises:
        OutOfReach: if positions cannot be drawn exactly.
    """
    target, claims = step.target, step.sampler.claims
    positions = draw_positions(target, claims.temperature, generator, count)
    extra = step.size - target.size
    if not extra:
        return positions
    if Exchange in claims:
        return np.concatenate(
            [positions, draw_positions(target, claims[Exchange].temperature, generator, count)], axis=1
        )
    if Diffusion in claims:
        mean, covariance = auxiliary_law(claims[Diffusion].dynamics(target).H, positions[:2], extra)
        aux = mean + generator.standard_normal((count, extra)) @ np.linalg.cholesky(covariance).T
        return np.concatenate([positions, aux], axis=1)
    if EmbeddedDiffusion in claims or (extra == target.size and target.manifold.dim < target.size):
        return draw_tangent(target, claims, positions, generator, extra)
    return positions
