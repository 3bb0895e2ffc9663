"""Pointwise detailed balance of a Metropolis kernel, from the code alone: pi(x) k(x, y) = pi(y) k(y, x).

Under the noise tape the step is a function y = F(x, xi) of the normals when the uniform of the accept step is 0 (so
that everything is accepted), and its acceptance probability alpha(x, xi) is the largest uniform that still accepts,
found by bisection. With k(x, y) = N(xi; 0, I) / |det dF/dxi| alpha for y != x, both sides of the equation are numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import Case, Inconclusive, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import EPS, Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target, reaches_boundary
from sgmcmc_verification.checks.core.selection import and_all, and_tree_of_options, planar
from sgmcmc_verification.checks.diagnosis.acceptance import ratio_of_acceptances
from sgmcmc_verification.checks.diagnosis.cause import Diagnosis, explained
from sgmcmc_verification.checks.diagnosis.evidence import known_numbers
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.checks.tiers.law.many_pairs import elsewhere, unbalanced
from sgmcmc_verification.checks.tracing.acceptance import accepted_share, decided
from sgmcmc_verification.checks.tracing.kinds import accept_or_reject
from sgmcmc_verification.checks.tracing.noise_tape import Program
from sgmcmc_verification.checks.tracing.probe import ends_of
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import ExactLaw
from sgmcmc_verification.targets.target import GaussianLaw

RATES = (0.9, 0.5)
"""Mean probabilities of acceptance at which a kernel is examined, beside that of its usual step size."""
FAR = (3.0, 10.0, 30.0)
"""Standard deviations of further points on a Gaussian: what an acceptance does beyond the bulk shows there alone."""
FEW = 3
"""Coordinates up to which thousands of pairs are looked at."""
RARE = 1e-8
"""Acceptance below which the rounding of a uniform, 2^-53, leaves too few digits in its logarithm."""
SOLVED = 1e-5
"""Gap that is left where a step solves an equation by an iteration that ends at a tolerance, 1e-6 as a rule, times the
size of a gradient: a relative error of the law that 1e10 draws do not show."""
LEAST = 8
"""Pairs that have to be reversed."""
STARTS = 48
"""Places from which other ways back are looked for, where one way does not balance."""


class Pairs(NamedTuple):
    """Pairs x -> y of a kernel, with the noise that leads back; a row each.

    Attributes:
        y: what is proposed, (P, d).
        back: the noise with which x is proposed from y, (P, d).
        gap: distance from x to which the way back leads, infinite where it was lost, (P,).
        acceptance: of y from x, and of x from y, (P, 2).
        density: log of the density of the proposal, there and back, (P, 2).
        stay: distance between x and what a rejection returns, (P,).
    """

    y: Any
    back: Any
    gap: Any
    acceptance: Any
    density: Any
    stay: Any


def _moves(step: JaxStep) -> Callable[..., jax.Array]:
    """(x, xi, h, share) -> y, the uniform a share of the way from the one that accepts (0) to the one that rejects."""
    integers = jnp.zeros(step.program.count("integer"), int)
    # compiled, so that a program with many moves in it traces one: a trajectory is long
    return jax.jit(lambda x, xi, h, share: decided(step, x, xi, integers, share, h))


def _inverse(proposal: Callable[..., jax.Array], steps: int) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """(x, y, h, start) -> xi with F(x, xi) = y by Newton's method, and the sign of det dF/dxi there."""
    slope = jax.jit(jax.jacfwd(proposal, 1))

    def invert(x, y, h, start):
        newton = lambda xi, _: (xi - jnp.linalg.solve(slope(x, xi, h), proposal(x, xi, h) - y), None)
        xi = jax.lax.scan(newton, start, None, length=steps)[0]
        return xi, jnp.linalg.slogdet(slope(x, xi, h))[0]

    return invert


def other_ways(step: JaxStep) -> Callable[..., jax.Array]:
    """(x (P, d), y (P, d), xi (P, d), h) -> (P,), True where another noise than xi leads from y to x, compiled.

    Then the density of the kernel is a sum over the ways, and its term of one of them says nothing. They are looked for
    by Newton's method from `STARTS` draws.
    """
    move = _moves(step)
    proposal = lambda x, xi, h: move(x, xi, h, jnp.zeros(()))
    invert = _inverse(proposal, 12)
    spread = jnp.asarray(np.random.default_rng(0).normal(0.0, 1.5, (STARTS, step.noise_size)))

    def another(x, y, known, h):
        found = jax.vmap(lambda start: invert(y, x, h, start)[0])(spread)
        gap = jax.vmap(lambda xi: jnp.abs(proposal(y, xi, h) - x).max())(found)
        there = gap <= 1e-9 * (1 + jnp.abs(x).max())
        return jnp.any(there & (jnp.abs(found - known).max(axis=1) > 1e-3 * (1 + jnp.abs(known).max())))

    return jax.jit(jax.vmap(another, (0, 0, 0, None)))


def _acceptance(move: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """(x, xi, h) -> the probability with which the proposal F(x, xi) is accepted."""

    def acceptance(x, xi, h):
        y = move(x, xi, h, jnp.zeros(()))
        # where the ways through a step were read one by one, each computes y by itself
        near = 64 * EPS * (1 + jnp.abs(y).max())
        return accepted_share(lambda share: jnp.abs(move(x, xi, h, share) - y).max() <= near)

    return acceptance


def pairs_of(step: JaxStep) -> Callable[..., Pairs]:
    """(x (P, d), xi (P, d), h) -> pairs, compiled: proposals F(x, xi), their acceptance, and the way back from each."""
    move = _moves(step)
    proposal = lambda x, xi, h: move(x, xi, h, jnp.zeros(()))
    slope, invert = jax.jit(jax.jacfwd(proposal, 1)), _inverse(proposal, 6)

    def log_density(x, xi, h):
        return -0.5 * xi @ xi - jnp.linalg.slogdet(slope(x, xi, h))[1]

    acceptance = _acceptance(move)

    def way_back(x, xi, h):
        """The noise that leads back, followed from small steps, where it is nearly -xi, and whether it is the one.

        A long trajectory has several ways back; where the one that is followed meets another, the determinant changes
        its sign. Two such places lie at least a factor of 2 in h apart if the first of them is one. A mirror changes
        the sign of the way there: the way back through it is another.
        """

        def back(now, part):
            there = jnp.linalg.slogdet(slope(x, xi, part * h))[0]
            found, sign = invert(proposal(x, xi, part * h), x, part * h, now)
            return found, jnp.stack([there, sign])

        found, signs = jax.lax.scan(back, -xi, 2.0 ** jnp.arange(-6, 0.25, 0.25))
        return found, jnp.all(signs == signs[0, 0])

    def pair(x, xi, h):
        y, (back, unique) = proposal(x, xi, h), way_back(x, xi, h)
        gap = jnp.abs(proposal(y, back, h) - x).max()
        size = 1 + jnp.abs(x).max()
        # near a fold, where two ways back meet, round-off in x moves the density of the way back
        moved = back + jnp.linalg.solve(slope(y, back, h), jnp.full_like(x, 1e3 * EPS * size))
        blur = jnp.abs(log_density(y, moved, h) - log_density(y, back, h))
        found = unique & jnp.isfinite(gap) & (gap <= 1e-11 * size) & (blur <= _tolerance(1.0).value)
        back = jnp.where(found, back, 0.0)
        return Pairs(
            y,
            back,
            jnp.where(found, gap, jnp.inf),
            jnp.stack([acceptance(x, xi, h), acceptance(y, back, h)]),
            jnp.stack([log_density(x, xi, h), log_density(y, back, h)]),
            jnp.abs(move(x, xi, h, jnp.ones(())) - x).max(),
        )

    return jax.jit(jax.vmap(pair, (0, 0, None)))


def far_points(gaussian: GaussianLaw, directions: int = 4) -> np.ndarray:
    """Points (P, d) of a Gaussian at the distances `FAR` from its mean, in a few generic directions."""
    unit = np.cos(2.3 * np.arange(directions)[:, None] + 1.1 * np.arange(len(gaussian.mean)) ** 2 + 0.2)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    root = np.linalg.cholesky(np.linalg.inv(gaussian.precision))
    return np.concatenate([gaussian.mean + reach * unit @ root.T for reach in FAR])


def step_sizes_of(accepted: Callable[[float], float], usual: float) -> list[float]:
    """The usual step size, and those at which 0.9 and 0.5 of the proposals are accepted, as far as there are such.

    Args:
        accepted: step size -> mean probability of acceptance.
        usual: the usual step size.
    """
    ladder = usual * 2.0 ** np.arange(-4, 9)
    rates = np.array([accepted(float(h)) for h in ladder])
    found = [usual]
    for rate in RATES:
        below = np.flatnonzero((rates[:-1] >= rate) & (rates[1:] < rate))
        if below.size:
            low, high = ladder[below[0]], ladder[below[0] + 1]
            for _ in range(6):
                middle = float(np.sqrt(low * high))
                low, high = (middle, high) if accepted(middle) >= rate else (low, middle)
            found.append(float(low))
    return found


def _kernel_with_one_normal_a_coordinate(case: Case) -> tuple[JaxStep, int]:
    """The step, and its number of normals. Raises OutOfReach for a step that is no such Metropolis kernel."""
    step = step_map(case.subject, case.target)
    assert isinstance(step, JaxStep)
    normals = step.program.count("normal")
    if case.target.manifold.dim < case.target.size:
        raise OutOfReach("the density of the proposal is with respect to Lebesgue measure: needs a flat space")
    if step.size != case.target.size or normals != case.target.size:
        raise OutOfReach("needs one normal a coordinate, and the position as the full variable")
    shocks = np.cos(1.3 * np.arange(normals) + 0.2)
    end = ends_of(step, case.step_size)(np.asarray(step.template.flat)[None], shocks[None])[0]
    if not np.allclose(end[: step.size], end[step.size :], rtol=1e-9, atol=0):
        raise OutOfReach("the position is computed from the full variable, which has a density of its own")
    return step, normals


@statement(
    tier="law",
    equation="pi(x) k(x, y) = pi(y) k(y, x)",
    targets=and_tree_of_options(and_all(lambda _: True, planar)),
    draws=accept_or_reject,
    cost=0.1,
    decides="law",
    screening=3,
    meets=of_target,
)
def detailed_balance(case: Case, exact: ExactLaw | None) -> Finding:
    """log [pi(x) k(x, y)] - log [pi(y) k(y, x)] = 0 at generic pairs x, y, for proposal density and acceptance.

    On a Gaussian also at 3, 10 and 30 standard deviations, where guards in the acceptance bind, for proposals within 8
    of them that are others than those of the bulk, and between bounds for thousands of pairs there.

    Source: metropolis1953equation; hastings1970monte.
    """
    step, normals = _kernel_with_one_normal_a_coordinate(case)
    temperature = step.sampler.claims.temperature
    x = np.repeat(generic_points(step, 6), 4, axis=0)
    near = slice(len(x))
    if case.target.gaussian is not None:
        x = np.concatenate([x, far_points(case.target.gaussian)])
    xi = 1.3 * np.cos(2.7 * (np.arange(len(x)) % 4)[:, None] + 1.9 * np.arange(normals) + x.sum(axis=1)[:, None])
    if exact and _has_many_pairs(case):
        x, xi = (np.concatenate(both) for both in zip((x, xi), elsewhere(step, case.step_size), strict=True))
    compiled, compiled_ways = pairs_of(step), other_ways(step)
    U, slope = (evaluated(jax.vmap(f)) for f in (case.target.flat_potential, jax.grad(case.target.flat_potential)))
    run = lambda h: Pairs(*map(np.asarray, compiled(x, xi, np.float64(h))))
    h0 = case.step_size
    rates = jax.jit(jax.vmap(_acceptance(_moves(step)), (0, 0, None)))  # without the ways back, which take long
    mean = lambda h: float(np.nan_to_num(np.asarray(rates(x[near], xi[near], np.float64(h)))).mean())
    hs = step_sizes_of(mean, h0) if exact else [h0]
    worst, reason, tested, rejecting, scale, blunt, rows, at = 0.0, "all pairs balance", 0, 0, 1.0, 0.0, [], h0
    summed, lost = 0, 0
    for h in hs:
        found = run(h)
        if h != h0 and np.isfinite(found.gap[near]).mean() < 0.5:
            continue  # trajectories so long that most proposals have several ways back
        lost += int(np.sum(~np.isfinite(found.gap) & np.isfinite(found.y).all(axis=1)))
        # what is hardly ever accepted has too few digits in its logarithm
        usable = np.isfinite(found.gap) & np.all(found.acceptance > RARE, axis=1)
        # what is accepted for every uniform is never rejected
        stay = np.where(found.acceptance[:, 0] < 1 - 1e-9, found.stay, 0.0)
        if exact and usable.any() and stay.max() > 1e2 * EPS * (1 + np.abs(x).max()):
            p = int(np.argmax(stay))
            return _not_kept(x[p], float(stay[p]), h)
        energies = -np.stack([np.asarray(U(x)), np.asarray(U(found.y))], axis=1) / temperature
        sides = energies + found.density + np.log(np.maximum(found.acceptance, RARE))
        rounding = EPS * np.sum(1 / np.maximum(found.acceptance, RARE), axis=1)
        with np.errstate(invalid="ignore"):  # far out both sides may be infinite: such a pair is not usable
            gaps = np.maximum(np.abs(sides[:, 1] - sides[:, 0]) - rounding, 0.0)
        doubtful = usable & ~(gaps <= _tolerance(np.abs(sides[usable]).max(initial=1.0)).value)
        if doubtful.any():
            several = doubtful & np.asarray(compiled_ways(x, found.y, found.back, np.float64(h)))
            usable, summed = usable & ~several, summed + int(np.sum(several & (gaps > SOLVED)))
        cross = np.sum((found.y - x) * np.asarray(slope(x) + slope(found.y)), axis=1)
        tested += int(usable.sum())
        rejecting += int(np.sum(np.any(found.acceptance[usable] < 1 - 1e-9, axis=1)))
        if not usable.any():
            continue
        scale = max(scale, float(np.abs(sides[usable]).max()))
        blunt = max(blunt, float(rounding[usable].max()))
        logs = np.log(np.maximum(found.acceptance, RARE))
        columns = [pair[:, 1] - pair[:, 0] for pair in (energies[usable], found.density[usable], -logs[usable])]
        rows.append(np.stack([*columns, cross[usable] / (2 * temperature)], axis=1))
        if not gaps[usable].max() <= worst:
            p = np.flatnonzero(usable)[int(np.argmax(gaps[usable]))]
            worst, at = float(gaps[p]), h
            reason = (
                f"x = {np.round(x[p], 3).tolist()} -> y = {np.round(found.y[p], 3).tolist()} at h = {h:.4g}: "
                f"log pi(x) k(x, y) - log pi(y) k(y, x) = {sides[p, 0] - sides[p, 1]:.4g}"
            )
    if exact and _has_many_pairs(case) and (far := unbalanced(step, hs, temperature)).gap > worst:
        worst, reason = far.gap, far.text
    tolerance, promised = _allowed(step, scale, worst)
    wrong = worst > tolerance.value
    if wrong and not exact:
        raise OutOfReach(f"no balance at this step size, and none is claimed: {reason}")
    _require_enough(tested, wrong or rejecting > 0)
    if not wrong and reaches_boundary(case.target):
        _require_one_way(summed, lost)
    columns = np.concatenate(rows).T
    cause = ratio_of_acceptances(columns, known_numbers(step.sampler, case.target)) if wrong else None
    return Finding(
        effect=worst,
        tolerance=tolerance,
        reason=f"{reason} ({tested} pairs, {rejecting} with a rejection, h = {', '.join(f'{h:.3g}' for h in hs)})",
        statistic="largest gap of the logarithms",
        unit="natural logarithm",
        minimum_detectable_effect=2 * tolerance.value + blunt,
        required_sensitivity=promised,
        step_size=at,
        measurements=explained(cause),
    )


def _require_enough(tested: int, rejecting: bool) -> None:
    """Raise Inconclusive where few pairs were reversed, or none is rejected, and balances all the same."""
    if tested < LEAST or not rejecting:
        raise Inconclusive(
            f"only {tested} pairs could be reversed" + ", none of them with a rejection" * (not rejecting)
        )


def _require_one_way(summed: int, lost: int) -> None:
    """Raise OutOfReach where pairs near a face that balance do not show that those of a mirror do.

    Args:
        summed: pairs that do not balance by one way, and have another: the density is a sum over the ways.
        lost: pairs without a way back.
    """
    if summed:
        raise OutOfReach(f"{summed} pairs do not balance by one way alone, and have another")
    if lost:
        raise OutOfReach(f"{lost} pairs near a face were not reversed: a mirror may lead from one to the other")


def _has_many_pairs(case: Case) -> bool:
    """True on the Gaussians of few coordinates, at default options."""
    return case.target.gaussian is not None and case.target.size <= FEW and not case.subject.options


def _allowed(step: JaxStep, scale: float, gap: float) -> tuple[Tolerance, float]:
    """The tolerance of a gap between logarithms of this size, and the sensitivity that is promised.

    A loop that ends where what it has computed says so leaves what it was told to.
    """
    tolerance, program = _tolerance(scale), step.program
    solves = isinstance(program, Program) and "while" in operation_names(program.jaxpr.jaxpr)
    if solves and tolerance.value < gap <= SOLVED:
        return Tolerance(SOLVED, "an iteration of the step that ends at a tolerance"), 4 * SOLVED
    return tolerance, 1e-6


def _tolerance(scale: float) -> Tolerance:
    """Of a gap between logarithms of this size."""
    # Bisection leaves 2^-60 in the acceptance, the Newton inverse a few eps times its condition.
    return Tolerance.roundoff(1e6 * scale, "the inverse of the proposal")


def _not_kept(x: np.ndarray, distance: float, h: float) -> Finding:
    """A rejection that does not return where the chain was."""
    text = f"a rejection returns a point {distance:.3g} away from where the chain was, x = {np.round(x, 3).tolist()}"
    return Finding(
        effect=distance,
        tolerance=Tolerance.identity("what is rejected leaves the chain where it was"),
        reason=text,
        statistic="distance after a rejection",
        unit="coordinates",
        required_sensitivity=1e-6,
        step_size=h,
        measurements=explained(Diagnosis("acceptance", text)),
    )
