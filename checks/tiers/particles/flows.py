"""Flows of particles that follow the marginals of an SDE (H, D, Q): the law of a Gaussian cloud, and its divergence.

The particles are a fine grid with the weights of a Gaussian law q = N(m, S). The bandwidth of their density estimate is
taken to zero by extrapolation, where the estimate is grad log q, so that what the mean and covariance of q and its
divergence from the target do at that moment is known in closed form.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import PARTICLES
from sgmcmc_verification.checks.core.selection import everywhere, gaussian
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tiers.particles.velocity import EPS, gradients_of, velocity_of
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.claims import DensityEstimate, MarginalFlow
from sgmcmc_verification.targets.target import Target

GRIDS = {1: (6.0, 0.1), 2: (5.0, 0.2)}
"""Reach and spacing of the grid by its dimension, in standard deviations of q. The narrowest kernel is 0.19 wide."""
BANDWIDTH = 0.2
"""The largest bandwidth, in the smallest variance of q."""
SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18)
"""Fractions of the bandwidth, and of the ridge."""
RIDGE = 1e-4
"""The largest ridge, in that of the option: its effect is no power series, and has to be small beside that of h."""
PROMISED = 0.03
"""Effects that a check sees, relative to the size of the terms."""
CORRELATED = np.array([[1.0, 0.2], [0.2, 0.9]])
INDEPENDENT = np.diag([1.0, 0.8])
SHIFT = np.array([0.5, -0.4])


class Cloud(NamedTuple):
    """Weighted particles of a Gaussian law.

    Attributes:
        nodes: (M, n).
        weights: (M,).
        mean: (n,).
        covariance: (n, n).
    """

    nodes: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @property
    def score(self) -> np.ndarray:
        """grad log q at the nodes, (M, n)."""
        return -np.linalg.solve(self.covariance, (self.nodes - self.mean).T).T


class Rates(NamedTuple):
    """Velocities (k, M, n) of a cloud for k bandwidths, and the bandwidths over the first one."""

    cloud: Cloud
    velocities: np.ndarray
    model: Dynamics


def cloud_of(model: Dynamics, target: Target, independent: bool) -> Cloud:
    """A Gaussian law beside the target: displaced, of another covariance. Raises NotApplicable beyond two variables."""
    n = model.dim
    if n not in GRIDS:
        raise OutOfReach(f"a grid in {n} variables is too large")
    covariance = (INDEPENDENT if independent else CORRELATED)[:n, :n]
    mean = np.zeros(n)
    if target.gaussian is not None:
        mean[: target.size] = target.gaussian.mean
    mean = mean + SHIFT[:n]
    reach, spacing = GRIDS[n]
    ticks = np.arange(-reach, reach + spacing / 2, spacing)
    grid = np.stack(np.meshgrid(*[ticks] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weights = np.exp(-0.5 * np.sum(grid**2, axis=1))
    return Cloud(mean + grid @ np.linalg.cholesky(covariance).T, weights / weights.sum(), mean, covariance)


def rates_of(subject: Subject, target: Target, flow: MarginalFlow) -> Rates:
    """The velocities of a cloud as the bandwidth falls. Raises NotApplicable."""
    model, estimate = flow.dynamics(target), subject.sampler(target).claims[DensityEstimate]
    # densities of position and auxiliaries apart are that of z for independent ones only
    apart = model.dim > model.size and not estimate.joint
    cloud = cloud_of(model, target, apart)
    slopes = gradients_of(subject.row, target)(cloud.nodes[:, : model.size])
    widest = BANDWIDTH * float(np.linalg.eigvalsh(cloud.covariance)[0])
    whole = [jnp.asarray(a) for a in (cloud.nodes, slopes, cloud.weights)]
    run = jax.jit(lambda h, ridge: velocity_of(estimate.given(h, ridge))(*whole))
    ridge = RIDGE * estimate.sampler.ridge
    found = [np.asarray(run(widest * s, ridge * s)) for s in SCALES]
    return Rates(cloud, np.stack(found), model)


def _limit(values: np.ndarray, expected: np.ndarray, scale: float) -> tuple[float, float, np.ndarray]:
    """(largest difference of the limit from what is expected, error of the limit, limit), relative to `scale`.

    Values that get farther from what is expected as the bandwidth falls have another limit, or none: then the last one
    is returned for it, as exact as it is.
    """
    off = np.abs(values - expected).reshape(len(values), -1).max(axis=1) / scale
    if off[-1] > max(PROMISED, off[0]) or not np.isfinite(off).all():
        return float(off[-1]), 0.0, values[-1]
    limit, error = neville(np.array(SCALES), values)
    return float(np.abs(limit - expected).max()) / scale, float(np.max(error)) / scale, limit


@statement(
    tier="law",
    equation="dS/dt = -(D + Q) P S - S P (D - Q) + 2 D as the bandwidth goes to 0",
    targets=gaussian,
    cost=0.8,
    decides="law",
)
def gaussian_flow(case: Case, flow: MarginalFlow) -> Finding:
    """Mean and covariance of a Gaussian cloud change as those of the SDE, as the bandwidth goes to zero.

        dm/dt = -(D + Q) P (m - mu),   dS/dt = -(D + Q) P S - S P (D - Q) + 2 D

    for a Gaussian target N(mu, P^-1) of z and constant D and Q (a consequence of liu2019understanding, lemma 1, and of
    its theorem 5 likewise).
    """
    if case.target.gaussian is None:
        raise NotApplicable("the target is not Gaussian")
    cloud, velocities, model = rates_of(case.subject, case.target, flow)
    here, there = (jnp.asarray(z) for z in (cloud.mean, cloud.mean + 0.7))
    drag = [np.asarray(model.D(z) + model.Q(z)) for z in (here, there)]
    if np.abs(drag[0] - drag[1]).max() > 1e3 * EPS:
        raise NotApplicable("D or Q depends on the position")
    D = np.asarray(model.D(here))
    P = np.asarray(jax.hessian(model.H)(here))
    mu = cloud.mean - np.linalg.solve(P, np.asarray(jax.grad(model.H)(here)))
    away = cloud.nodes - cloud.mean
    first = np.einsum("i,kia->ka", cloud.weights, velocities)
    cross = np.einsum("i,kia,ib->kab", cloud.weights, velocities, away)
    values = np.concatenate([first, (cross + cross.transpose(0, 2, 1)).reshape(len(cross), -1)], axis=1)
    turn = drag[0] @ P @ cloud.covariance
    change = -turn - turn.T + 2 * D
    expected = np.concatenate([-drag[0] @ P @ (cloud.mean - mu), change.ravel()])
    scale = float(np.abs(turn).max() + np.abs(drag[0] @ P @ (cloud.mean - mu)).max())
    effect, error, _ = _limit(values, expected, scale)
    return _decide(
        case.subject,
        case.target,
        effect,
        error,
        "rate of the mean and the covariance",
        f"limit of the rates is off by {effect:.3g} of their size",
    )


@statement(
    tier="law",
    equation="d KL(q || p) / dt = -E_q [grad log(p / q) . D grad log(p / q)] as the bandwidth goes to 0",
    targets=everywhere,
    cost=0.4,
    decides="law",
    meets=lambda target: (PARTICLES,),
)
def divergence_of_flow(case: Case, flow: MarginalFlow) -> Finding:
    """The divergence of a Gaussian cloud from the target falls at the rate of the SDE, as the bandwidth goes to zero.

        d KL(q || p) / dt = -E_q [grad log(p / q) . v] = -E_q [grad log(p / q) . D grad log(p / q)]

    It is zero for D = 0: Hamiltonian flows keep the divergence.
    """
    cloud, velocities, model = rates_of(case.subject, case.target, flow)
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(model.H)))(jnp.asarray(cloud.nodes)))
    gap = -slopes - cloud.score
    D = np.asarray(jax.jit(jax.vmap(model.D))(jnp.asarray(cloud.nodes)))
    expected = -float(cloud.weights @ np.einsum("ia,iab,ib->i", gap, D, gap))
    values = -np.einsum("i,ia,kia->k", cloud.weights, gap, velocities)
    scale = float(np.einsum("i,ia,ia->", cloud.weights, np.abs(gap), np.abs(velocities[-1])))
    effect, error, limit = _limit(values, np.asarray(expected), scale)
    return _decide(
        case.subject,
        case.target,
        effect,
        error,
        "rate of the divergence",
        f"d KL / dt is {float(limit):.6g}, expected {expected:.6g}",
    )


def _decide(subject, target, effect, error, statistic, reason) -> Finding:
    allowance = 10 * error + 1e-6  # the grid ends where q has a mass below 1e-7
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "error of the extrapolation to bandwidth zero"),
        reason=reason,
        statistic=statistic,
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=PROMISED,
    )
