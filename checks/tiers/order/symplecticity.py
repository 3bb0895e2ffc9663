"""Symplecticity: a force keeps phase-space volume, and with U = 0 one step is the exact transition of the SDE."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import informative, last, several
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian
from sgmcmc_verification.checks.exact_laws.sde_law import EPS, linear_law
from sgmcmc_verification.checks.tracing.step_map import JaxStep, require_traced, step_map
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactFreeMotion, ShearingForce

TIMES = (1.0, 10.0, 100.0)
"""Multiples of the usual step size: an exact motion is exact at all of them, whichever branch computes it."""


def steepened(centre: np.ndarray, slope: np.ndarray) -> Callable[[Any, Any], Any]:
    """grad U(theta) -> grad U(theta) + S (theta - theta_0): the same force at theta_0 (d,), with another derivative."""

    def change(estimate, position):
        flat, unravel = ravel_pytree(position)
        more = unravel(jnp.asarray(slope, flat.dtype) @ (flat - jnp.asarray(centre, flat.dtype)))
        return estimate._replace(gradient=jax.tree.map(jnp.add, estimate.gradient, more))

    return change


@statement(
    tier="order",
    equation="|det dz' / dz| does not depend on the Hessian of U",
    targets=last(informative),
    cost=0.5,
    decides="dynamics",
)
def force_keeps_volume(case: Case, claim: ShearingForce) -> Finding:
    """|det dz' / dz| is the same for a force with another Hessian S + grad^2 U, at fixed noise and one position.

    A kick of the momentum by a force is a shear of phase space, as are moves by a momentum and, up to a factor, linear
    friction: a scheme composed of them (leimkuhler2004simulating, chapter 4: symplectic Euler, leapfrog and splittings)
    changes volume by a factor that does not know the Hessian, and for U = 0 and without friction by none. Explicit
    Euler, which moves position and momentum from the old values of both, has det(I + h^2 grad^2 U - ..) instead: of
    the same order, with energies that grow without friction.
    """
    step = require_traced(step_map(case.subject, case.target))
    step.require_gaussian()
    h, n = case.step_size, case.target.size
    point = generic_points(step)[0]
    k = np.arange(n)
    slope = np.cos(1.1 * (k[:, None] + k) + 0.3 * k[:, None] * k) / h
    steep = step_map(case.subject, case.target, Altered(step.estimator, steepened(point[:n], (slope + slope.T) / 2)))
    assert isinstance(steep, JaxStep)
    normals = jnp.cos(1.9 * jnp.arange(step.noise_size) + 0.7)
    volumes, errors = [], []
    for each in (step, steep):
        matrix = np.asarray(jax.jacfwd(lambda z, run=each.run: run(z, normals, h)[0])(jnp.asarray(point)))
        volumes.append(np.linalg.slogdet(matrix)[1])
        errors.append(EPS * np.linalg.cond(matrix))
    allowance = float(100 * step.size * max(errors))
    gap = float(abs(volumes[0] - volumes[1]))
    return Finding(
        effect=gap,
        tolerance=Tolerance(
            allowance, "round-off of a logarithm of a determinant, 100 n eps times the condition number"
        ),
        reason=f"log |det dz' / dz| is {volumes[0]:.9g}, with another Hessian of the potential {volumes[1]:.9g}",
        statistic="change of log |det dz' / dz| with the Hessian of the potential",
        unit="logarithm of a volume",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
        measurements={"log_volume": float(volumes[0]), "log_volume_steep": float(volumes[1])},
    )


@statement(
    tier="law",
    equation="z' = e^(J h) z + N(0, 2 int_0^h e^(J s) D e^(J^T s) ds) for U = 0, at every step size",
    targets=last(several),
    cost=0.3,
    decides="dynamics",
)
def exact_without_force(case: Case, claim: ExactFreeMotion, equation: Diffusion) -> Finding:
    """For U = 0 a step of any size is the transition of the declared linear SDE: mean and covariance to round-off.

    Source of the oracle: the exponential of a block matrix (vanloan1978computing, section II).
    """
    free = replace(case.target, potential=lambda x: 0.0 * jnp.sum(ravel_pytree(x)[0]), gaussian=None, terms=None)
    step = require_traced(step_map(case.subject, free))
    n, dynamics, usual = step.size, equation.dynamics(free), case.step_size
    # the block matrix loses what its largest entry times h is to one
    slope = np.abs(np.asarray(jax.jacfwd(dynamics.drift)(jnp.zeros(n)))).sum()
    start = np.concatenate([np.zeros((n, 1)), np.eye(n)], axis=1)
    worst, allowance, where = 0.0, 0.0, (0.0, "")
    for h in usual * np.array(TIMES):
        move = np.asarray(step.run(jnp.cos(jnp.arange(n)), jnp.ones(step.noise_size), jnp.asarray(float(h)))[0])
        if not np.all(np.isfinite(move)):
            worst, where = np.inf, (float(h), "result")
            break
        code = step.pair(float(h))
        columns = [linear_law(dynamics, Gaussian(e, np.zeros((n, n))), float(h)) for e in start.T]
        mean, noise = np.stack([c.mean for c in columns], axis=1), columns[0].covariance
        gaps = (
            np.abs(code.matrix[:n] @ start + code.offset[:n, None] - mean).max() / (1 + np.abs(mean).max()),
            np.abs(code.noise[:n] @ code.noise[:n].T - noise).max() / (1 + np.abs(noise).max()),
        )
        if max(gaps) >= worst:
            worst, where = float(max(gaps)), (float(h), "mean" if gaps[0] >= gaps[1] else "covariance")
        allowance = max(allowance, 1e3 * EPS * (1 + slope * float(h)))
    return Finding(
        effect=worst,
        tolerance=Tolerance(
            allowance, "round-off of the exponential of the block matrix, 1000 eps times the norm of its argument"
        ),
        reason=f"without a force the {where[1]} of a step of size {where[0]:.3g} is off by {worst:.3g}",
        statistic="largest gap of mean and covariance of one step with U = 0",
        unit="relative to the largest entry plus one",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-8,
        step_size=usual,
    )
