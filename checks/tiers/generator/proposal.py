"""The proposal of a Metropolis kernel, from the code alone: drift and diffusion of the dynamics that it declares.

Every proposal whose density is known gives the right law, if it is accepted with the right probability, and so does one
that is accepted half as often as it could be: the checks of the law see neither.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import informative, last, planar
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.numerics.quadrature import neville, noise_rule
from sgmcmc_verification.checks.tracing.acceptance import accepted_share, decided
from sgmcmc_verification.checks.tracing.kinds import single_uniform
from sgmcmc_verification.checks.tracing.one_step_moments import LEVELS, step_sizes
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, Diffusion, ExactLaw, HamiltonianProposal
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.targets.target import Target

DRAWS = 4
"""Values of the normals at each point at which the acceptance is followed."""


def walled(target: Target, inside: np.ndarray) -> Target:
    """The target with a potential that is finite at `inside` (d,), in ravel order, and nowhere else.

    It is infinite where the first coordinate is larger, and not a number where it is smaller. The target is changed,
    not the estimator: libraries read the potential from where they like.
    """

    def potential(position):
        flat = ravel_pytree(position)[0]
        outside = jnp.where(flat[0] > inside[0], jnp.inf, jnp.nan)
        return jnp.where(jnp.all(flat == inside), target.potential(position), outside)

    return dataclasses.replace(target, potential=potential)


def _moved(step: JaxStep, x, xi, share, h):
    """The variable after a step, its uniform a share of the way from what accepts (0) to what rejects (1)."""
    return decided(step, x, xi, jnp.zeros(step.program.count("integer"), int), share, h)


def _metropolis(subject: Subject, target: Target) -> tuple[JaxStep, Callable]:
    """The step of a Metropolis kernel, and (x, normals, uniform, h) -> the variable after it."""
    step = step_map(subject, target)
    assert isinstance(step, JaxStep)  # as `single_uniform` asks
    return step, functools.partial(_moved, step)


def _declared(claims: Claims, target: Target) -> tuple[Dynamics | EmbeddedDynamics, Callable[[np.ndarray], np.ndarray]]:
    """The dynamics of which a proposal is a step, and the time that passes in one as a function of the step size.

    Raises:
        NotApplicable: if none are declared.
    """
    if HamiltonianProposal in claims:
        steps = claims[HamiltonianProposal].steps
        return claims[HamiltonianProposal].dynamics(target), lambda h: (steps * h) ** 2 / 2
    if Composite in claims or Diffusion not in claims:
        raise NotApplicable("no proposal that is a step of declared dynamics")
    return claims[Diffusion].dynamics(target), lambda h: h


def proposal_limits(step: JaxStep, points: np.ndarray, hs: np.ndarray, times: np.ndarray | None = None):
    """Limits of (E y - x) / t, (P, n), and E (y - x)(y - x)^T / (2 t), (P, n, n), each with its error, at `points`.

    y is what is proposed; `hs` are the step sizes from which h goes to 0, `times` the times t that pass in
    a step of these sizes: h itself, if not given.

    Raises:
        NotApplicable: if the step draws too many normals for quadrature.
    """
    try:
        nodes, weights = noise_rule(step.noise_size)
    except ValueError:
        raise OutOfReach(f"{step.noise_size} normals a step are too many for quadrature") from None

    @jax.jit
    def moments(x, h):
        moves = jax.vmap(lambda xi: _moved(step, x, xi, jnp.zeros(()), h))(jnp.asarray(nodes)) - x
        return weights @ moves, jnp.einsum("k,ka,kb->ab", weights, moves, moves)

    ts = hs if times is None else times
    found = [[moments(jnp.asarray(x), h) for x in points] for h in hs]
    rates = [np.array([[np.asarray(m[i]) / t for m in row] for row, t in zip(found, ts, strict=True)]) for i in (0, 1)]
    (drift, drift_error), (square, square_error) = (neville(hs, values) for values in rates)
    return drift, drift_error, square / 2, square_error / 2


@statement(
    tier="generator",
    equation="(E y - x) / t -> f and Cov(y) / t -> 2 D for the proposal y of a Metropolis kernel, t = h or (L h)^2 / 2",
    targets=planar,
    draws=single_uniform,
    cost=1.0,
    decides="dynamics",
)
def proposal_generator(case: Case, law: ExactLaw) -> Finding:
    """(E y - x) / t -> f and E (y - x)(y - x)^T / t -> 2 D for the proposal y, whatever its acceptance.

    t is the step size h, and (L h)^2 / 2 for the end of L steps along a Hamiltonian flow (`HamiltonianProposal`). A
    proposal that is not a step of the declared dynamics, with a gradient of the wrong sign, without Gamma or of
    another length, is rejected more often instead, which the checks of the law do not see.

    Source: the definition of weak consistency, order 1 (talay1990expansion); neal2011mcmc, section 5.5.2, for one
    leapfrog step as a step of Langevin dynamics.
    """
    step, _ = _metropolis(case.subject, case.target)
    claims = step.sampler.claims
    dynamics, time = _declared(claims, case.target)
    points, hs = generic_points(step), step_sizes(case.subject, case.target)
    times = time(hs)
    drift, drift_error, diffusion, diffusion_error = proposal_limits(step, points, hs, times)
    z = jnp.asarray(points)
    f, D = np.asarray(jax.jit(jax.vmap(dynamics.drift))(z)), np.asarray(jax.jit(jax.vmap(dynamics.D))(z))
    f_scale, d_scale = 1 + np.abs(f).max(), 1 + np.abs(D).max()
    gaps = np.abs(drift - f).max() / f_scale, np.abs(diffusion - D).max() / d_scale
    roundoff = 100 * float(np.finfo(float).eps) * (1 + np.abs(points).max()) / times[-1]
    allowance = float(10 * max(drift_error.max() / f_scale, diffusion_error.max() / d_scale) + roundoff)
    p, i = np.unravel_index(np.argmax(np.abs(drift - f)), f.shape)
    return Finding(
        effect=float(max(gaps)),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=f"drift of {dynamics.names[i]} at x = {np.round(points[p], 3).tolist()}: the proposal has "
        f"{drift[p, i]:.6g}, the dynamics {f[p, i]:.6g}; largest gap of the diffusion {gaps[1]:.3g}",
        statistic="largest gap of drift and diffusion",
        unit="relative to the largest entry plus one",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=float(hs[0]),
    )


@statement(
    tier="generator",
    equation="P(accepted | x, xi) -> 1 as h -> 0",
    targets=planar,
    draws=single_uniform,
    cost=1.0,
    decides="dynamics",
)
def acceptance_limit(
    case: Case, law: ExactLaw, proposal: HamiltonianProposal | None, equation: Diffusion | None
) -> Finding:
    """P(accepted | x, xi) -> 1 as h -> 0, for given normals xi: else the kernel is no step of what its proposal is.

    The probability is the largest uniform that accepts, found by bisection. It is a smooth function of sqrt(h) once h
    is small: U(y) - U(x) and the densities of the proposal are, and min(1, .) has its kink where they cancel. A
    proposal that is accepted half as often as it could be, or not at all somewhere, leaves the law what it is.

    Source: metropolis1953equation, the acceptance min(1, exp(-dE / T)) with dE -> 0.
    """
    step, move = _metropolis(case.subject, case.target)
    if proposal is None and equation is None:
        raise NotApplicable("no dynamics are declared: with another rule than min(1, .) the limit need not be 1")
    points, hs = generic_points(step), case.step_size / 4.0 ** np.arange(LEVELS)

    @jax.jit
    def chance(x, xi, h):
        y, start = move(x, xi, jnp.zeros(()), h)[: case.target.size], x[: case.target.size]

        def accepts(share):
            end = move(x, xi, share, h)[: case.target.size]
            # nearer, not equal: two compilations of a move may differ by round-off; never, if a uniform of 0 stays
            return jnp.sum(jnp.abs(end - y)) < jnp.sum(jnp.abs(end - start))

        return accepted_share(accepts)

    draws = 1.3 * np.cos(2.7 * np.arange(DRAWS)[:, None] + 1.9 * np.arange(step.noise_size))
    chances = jax.jit(jax.vmap(jax.vmap(chance, (None, 0, None)), (0, None, None)))
    found = np.array([np.asarray(chances(jnp.asarray(points), jnp.asarray(draws), h)) for h in hs])
    limit, error = neville(np.sqrt(hs), found)
    gaps = np.abs(limit - 1)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    # the energies lose a few eps, the residual of a proposal of size sqrt(h) that of the position over sqrt(h)
    energy = np.abs(np.asarray(jax.vmap(case.target.flat_potential)(jnp.asarray(points[:, : case.target.size])))).max()
    size = 1 + energy / step.sampler.claims.temperature + np.abs(points).max() / np.sqrt(hs[-1])
    allowance = float(10 * error.max() + 1e3 * np.finfo(float).eps * size)
    return Finding(
        effect=float(gaps[worst]),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=f"at x = {np.round(points[worst[0]], 3).tolist()} the proposal is accepted with probability "
        f"{limit[worst]:.6g} as h goes to 0",
        statistic="largest gap of the acceptance",
        unit="probability",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-3,
        step_size=float(hs[0]),
    )


def beyond_the_wall(subject: Subject, target: Target) -> np.ndarray:
    """Length (k,) of a step that a uniform of 0 decides, where the potential is not finite but at the start.

    Raises:
        NotApplicable: if the kernel has no Metropolis test of a potential.
        Inconclusive: if the step does not move either where the potential is what it is.
    """
    sampler = subject.sampler(target)
    if "potential" not in sampler.needs:
        raise NotApplicable("the kernel does not ask for the potential")
    free, go = _metropolis(subject, target)
    start, h, n = generic_points(free)[0], subject.step_size(target) / 10, target.size
    _, move = _metropolis(_as_found(subject, target), walled(target, start[:n]))
    draws = 1.3 * np.cos(2.7 * np.arange(DRAWS)[:, None] + 1.9 * np.arange(free.noise_size))
    back = np.concatenate([start[:n], -start[n:]])  # with the draws and a momentum reversed the step goes the other way
    z, xi = np.repeat([start, back], DRAWS, axis=0), np.concatenate([draws, -draws])
    ends = lambda step: np.asarray(
        jax.jit(jax.vmap(lambda z, e: (step(z, e, 0.0, h) - z)[:n]))(jnp.asarray(z), jnp.asarray(xi))
    )
    moves = ends(go)
    if not (np.abs(moves).max(axis=1) > 0).all() or np.ptp(np.sign(moves[:, 0])) < 2:
        raise Inconclusive("the step does not move both ways where the potential is what it is")
    return np.abs(ends(move)).max(axis=1)


def _as_found(subject: Subject, target: Target) -> Subject:
    """The subject with what was found out of its sampler on `target`, where the potential is finite."""
    sampler = subject.sampler(target)
    if not isinstance(sampler, Completed):
        return subject
    return dataclasses.replace(subject, row=dataclasses.replace(subject.row, build=lambda *_, **__: sampler))


@statement(
    tier="law",
    equation="a(x, y) = 0 where U(y) is infinite or not a number",
    targets=last(informative),
    draws=single_uniform,
    cost=1.0,
    decides="conduct",
    once=True,
)
def finite_potential(case: Case, law: ExactLaw) -> Finding:
    """No uniform, not even 0, accepts a position where U is infinite, or is not a number.

    exp(-U / T) is zero where U is infinite: such a position is outside of the support. A chain whose energy is not a
    number has no acceptance any more.

    Source: metropolis1953equation, the acceptance min(1, exp(-dE / T)) at dE = infinity.
    """
    moves = beyond_the_wall(case.subject, case.target)
    return Finding(
        effect=float(moves.max()),
        tolerance=Tolerance(0.0, "what is rejected stays where it is"),
        reason=f"{np.sum(moves > 0)} of {len(moves)} proposals were accepted where the potential is not finite",
        statistic="largest move",
        unit="coordinates",
        minimum_detectable_effect=0.0,
        required_sensitivity=1e-6,
        step_size=case.step_size / 10,
    )
