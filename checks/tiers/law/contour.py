"""Contour methods: the force of the flattened density, and where the weights of the energies settle.

The law with kept weights is exp(-U / tau) / Psi(U)^zeta. What the code adds to the position, without noise, is held to
the gradient of that by automatic differentiation of an interpolation; what it adds to the weights, to its mean over
that law by quadrature, which vanishes where the weights are those of the bins.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.tracing.step_map import JaxStep, require_traced, step_map
from sgmcmc_verification.samplers.interface.claims import FlattenedLaw

EPS = np.finfo(float).eps
NODES = 4001
"""Points of the line."""
ROUNDS, DAMPING = 3000, 0.1
"""Rounds of the iteration for the weights that do not move any more, and the share that a round changes: with one half
it does not settle at zeta = 1, where a round of its own overshoots."""


def log_psi(claims: FlattenedLaw, log_weights, potential):
    """log Psi: the interpolation of log w between the upper edges of the bins, going on beyond the last one."""
    edges = jnp.asarray(claims.edges)
    beyond = jnp.maximum(potential - edges[-1], 0.0)
    slope = (log_weights[-1] - log_weights[-2]) / (edges[-1] - edges[-2])
    return jnp.interp(potential, edges, log_weights) + slope * beyond


def _contour(case: Case, claim: FlattenedLaw) -> tuple[JaxStep, np.ndarray, np.ndarray, np.ndarray]:
    """The step, points (m, d) inside of bins with their weights under exp(-U / tau), and energies."""
    step, target = step_map(case.subject, case.target), case.target
    if not claim.rate:
        raise NotApplicable("no weights of energies are learned")
    step = require_traced(step)
    if target.size != 1:
        raise NotApplicable("for one-dimensional targets")
    step.require_gaussian()
    if target.interval is None:
        raise NotApplicable("no interval holds the law")
    # the equations hold for any law on points in the place of exp(-U / tau) dx: so many that no bin is empty
    points = np.linspace(*target.interval, NODES)[:, None]
    energy = np.asarray(jax.vmap(target.flat_potential)(jnp.asarray(points)))
    weights = np.exp(-(energy - energy.min()) / claim.temperature)
    weights /= weights.sum()
    place = (energy - claim.edges[0]) / (claim.edges[1] - claim.edges[0])
    # at an edge the force jumps, and round-off decides on which side a point is
    inside = (np.abs(place - np.round(place)) > 1e-9) & (weights > 1e-14)
    return step, points[inside], weights[inside] / weights[inside].sum(), energy[inside]


def _generic(claims: FlattenedLaw) -> np.ndarray:
    """log w (m,) of generic weights, whose ratios between neighbours differ from bin to bin."""
    log_weights = -0.15 * np.arange(len(claims.edges)) + 0.3 * np.cos(2.1 * np.arange(len(claims.edges)))
    return log_weights - np.log(np.exp(log_weights).sum())


def _moved(step: JaxStep, points: np.ndarray, log_weights: np.ndarray, h: float) -> np.ndarray:
    """z' (m, 1 + bins) without noise."""
    none = jnp.zeros(step.noise_size)
    size = step.size - len(log_weights)
    starts = np.concatenate([points, np.tile(log_weights, (len(points), 1))], axis=1)
    # the order of z is that of ravel_pytree: position, then weights
    example = ravel_pytree(step.template.unravel(jnp.arange(float(step.size))).position)[0]
    assert np.array_equal(np.asarray(example), np.arange(size))
    return np.asarray(jax.jit(jax.vmap(lambda z: step.run(z, none, jnp.asarray(h))[0]))(jnp.asarray(starts)))


@statement(
    tier="law",
    equation="theta' - theta = -h tau grad [U / tau + zeta log Psi(U)] + N(0, 2 h tau)",
    targets=everywhere,
    cost=0.5,
    decides="law",
)
def contour_force(case: Case, claims: FlattenedLaw) -> Finding:
    """(theta' - theta) / h = -tau grad [U / tau + zeta log Psi(U)] without noise, with generic weights, in every bin.

    And the noise of the step is N(0, 2 h tau), whatever the weights.

    Source: deng2020contour, the gradient of the flattened density.
    """
    step, points, _, energy = _contour(case, claims)
    h, log_weights = case.step_size, _generic(claims)
    force = (_moved(step, points, log_weights, h)[:, :1] - points) / h
    tau, zeta = claims.temperature, claims.zeta

    def flattened(x):
        potential = case.target.flat_potential(x)
        return potential / tau + zeta * log_psi(claims, jnp.asarray(log_weights), potential)

    expected = -tau * np.asarray(jax.vmap(jax.grad(flattened))(jnp.asarray(points)))
    scale = 1 + np.abs(expected)
    gaps = np.abs(force - expected) / scale
    k = int(np.argmax(gaps))
    start = jnp.asarray(np.concatenate([points[k], log_weights]))
    answer = np.asarray(jax.jacfwd(lambda n: step.run(start, n, jnp.asarray(h))[0][:1])(jnp.zeros(step.noise_size)))
    spread = float(np.sum(answer**2)) / (2 * h * tau)
    # theta' - theta loses eps |theta| / h
    allowance = 1e2 * EPS * (1 + float(np.abs(points).max()) / h)
    bins = len(np.unique(np.ceil((energy - claims.edges[0]) / (claims.edges[1] - claims.edges[0]))))
    return Finding(
        effect=max(float(gaps.flat[k]), abs(spread - 1)),
        tolerance=Tolerance(allowance, "round-off of a difference divided by h"),
        reason=f"at energy {energy[k]:.4g} the force is {force.flat[k]:.8g}, by autodiff {expected.flat[k]:.8g} "
        f"({bins} bins); the variance of the noise is {spread:.8g} of 2 h tau",
        statistic="largest gap of the force, or of the noise",
        unit="relative to 1 + |force|, or to 2 h tau",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


def bins_of(claims: FlattenedLaw, energy: np.ndarray) -> np.ndarray:
    """The number of the bin of each energy, from 0."""
    number = np.ceil((energy - claims.edges[0]) / (claims.edges[1] - claims.edges[0]))
    return np.clip(number, 0, len(claims.edges) - 1).astype(int)


def resting_weights(claims: FlattenedLaw, weights: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """w (bins,) with w_i proportional to the sum over bin i of (w_i / Psi)^zeta weights: where the mean update is 0.

    Every bin has to hold a point.
    """
    count, place = len(claims.edges), bins_of(claims, energy)
    w, smooth = np.full(count, 1 / count), jax.jit(lambda log_w: log_psi(claims, log_w, jnp.asarray(energy)))
    for _ in range(ROUNDS):
        psi = np.exp(np.asarray(smooth(jnp.asarray(np.log(w)))))
        mass = np.bincount(place, weights * (w[place] / psi) ** claims.zeta, minlength=count)
        w += DAMPING * (mass / mass.sum() - w)
    return w


@statement(
    tier="law",
    equation="E [w' - w] = omega E w_J^zeta (e_J - w) under the flattened law, 0 where w_i ~ E w_J^zeta [J = i]",
    targets=everywhere,
    cost=0.5,
    decides="law",
)
def contour_weights(case: Case, claims: FlattenedLaw) -> Finding:
    """The mean update of the weights is omega E w_J^zeta (e_J - w) for generic weights, and 0 for those of the bins.

    The mean is over the flattened law, by quadrature; the weights keep the sum 1.

    Source: deng2020contour, Algorithm 1 and its mean field.
    """
    step, points, weights, energy = _contour(case, claims)
    h, count = case.step_size, len(claims.edges)
    omega, place = min(1.0, claims.rate * h), bins_of(claims, energy)
    effect, reason = 0.0, "the weights move as published, and rest where they should"
    for name, log_weights in (
        ("generic weights", _generic(claims)),
        ("the weights of the bins", np.log(resting_weights(claims, weights, energy))),
    ):
        new = np.exp(_moved(step, points, log_weights, h)[:, 1:])
        w = np.exp(log_weights)
        psi = np.exp(np.asarray(log_psi(claims, jnp.asarray(log_weights), jnp.asarray(energy))))
        law = weights * psi**-claims.zeta
        law /= law.sum()
        drift = (law * w[place] ** claims.zeta) @ (np.eye(count)[place] - w)
        gaps = {
            "the sum": float(np.abs(new.sum(axis=1) - 1).max()),
            "the mean update": float(np.abs((law @ new - w) / omega - drift).max()),
        }
        if name != "generic weights":
            gaps["the mean update, where it is 0,"] = float(np.abs((law @ new - w) / omega).max())
        for what, gap in gaps.items():
            if not gap <= effect:
                effect, reason = gap, f"{what} of {name} is off by {gap:.3g}"
    allowance = 1e3 * EPS * count / omega
    return Finding(
        effect=effect,
        tolerance=Tolerance(float(allowance), "round-off of a mean divided by omega"),
        reason=reason,
        statistic="largest gap of the weights' drift",
        unit="of a probability",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-6,
        step_size=h,
    )
