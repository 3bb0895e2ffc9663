"""Far field: what a step is in the bulk of a Gaussian it is everywhere, for large draws and small step sizes too.

On a Gaussian the step of most samplers is affine in state and noise, or a polynomial of low degree along a line. A
clip, a box, a guard or a switch in the tails bends that line somewhere; the laws, which are those of the bulk, do not
see it. On spaces with faces there is no such line: see `near_faces`.
"""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.accept_step import level_that_matters
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import EPS, Finding, Tolerance
from sgmcmc_verification.checks.core.selection import gaussian
from sgmcmc_verification.checks.tiers.premises.near_faces import near_faces
from sgmcmc_verification.checks.tracing.probe import Ends, ends_of, normals_of
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw

NODES = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
"""Places on a line at which the step is looked at; a polynomial of degree 4 goes through them."""
BETWEEN = np.array([-0.75, 0.25, 0.8])
"""Places at which that polynomial has to be the step, else the step is no polynomial."""
NEAR = np.array([2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0])
REACH = np.array([50.0, 70.0])
BEYOND = 10.0 ** np.arange(3, 8)
"""Distances from the mean in standard deviations: NEAR for all, REACH where no energy is compared. A bend in them
fails: gradients of sums over data are of that size, long before a chain is in the bulk. A bend BEYOND is named."""
DRAWS = np.array([1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0])
"""Sizes of single normals. In single precision JAX draws none above 5.42."""
BENT = 1e-8
"""Relative gap of an affine step beyond round-off: 5e7 units in the last place, solvers included."""

SAME = 1e-13
"""Relative gap to which a step has to be a polynomial near by: what is only nearly one tells nothing far away."""
SMALL = 16.0
"""Factor of a second, smaller step size at which a bend has to be where it is."""
WIDE = 3.0
"""Distance up to which a polynomial that is no line has to be one to round-off."""


class Bend(NamedTuple):
    """The bend of a line: its distance, in standard deviations, and its size, relative to the terms of the step."""

    distance: float
    gap: float
    what: str


def _targets(subject: Subject) -> tuple[str, ...]:
    return gaussian(subject)[-1:] or subject.row.targets[:1]


@statement(
    tier="contract",
    equation="z' is the same polynomial of state and noise in the bulk of a Gaussian and far from it",
    targets=_targets,
    cost=0.3,
    decides="dynamics",
    once=True,
    about=("clipped-draw", "guarded-gradient"),
)
def far_field(case: Case) -> Finding:
    """Along lines through the bulk the step stays the polynomial that it is there, up to 70 standard deviations.

    Lines are taken in the position, in what else z holds, in both, and in the noise, both ways. Kernels that accept and
    reject are looked at as far as 30, with every proposal accepted. Potentials of sums over data are large: a constant
    added to one changes nothing. On the orthant, boxes and the simplex a step of size 0 rests, near faces too.
    """
    if case.target.gaussian is None:
        return near_faces(case)
    sampler = case.subject.sampler(case.target)
    if AdaptiveLaw in sampler.claims and "potential" in sampler.needs:
        raise OutOfReach("weights of energies are adapted: no line in state and noise")
    if (level := level_that_matters(case.subject, case.target)) is not None:
        return _other_at(level, case.step_size)
    step = step_map(case.subject, case.target)
    reach, uniforms = np.concatenate([NEAR, REACH]), 0
    if isinstance(step, JaxStep):
        step.require_known_draws()
        uniforms = 0 if step.exchanging else step.program.count("uniform")
        if uniforms > 1:
            raise OutOfReach(f"{uniforms} uniforms a step: no line in state and noise")
        reach = NEAR if uniforms else reach
    ends, smaller = (ends_of(step, case.step_size / f) for f in (1.0, SMALL))
    accepting = ends_of(step, case.step_size, extreme=True)
    found, followed = [], 0
    beyond = () if len(reach) == len(NEAR) else BEYOND
    spread = np.sqrt(np.diag(np.linalg.inv(case.target.gaussian.precision)))
    for what, direction, shock in _lines(step.size, normals_of(step), spread):
        far = DRAWS if not direction.any() else np.concatenate([reach, beyond])
        bend = _bend(ends, np.asarray(step.template.flat, float), direction, shock, far)
        followed += bend is not None
        if bend is None or bend.gap == 0:
            continue
        again = _bend(smaller, np.asarray(step.template.flat, float), direction, shock, far)
        stays = again is not None and 0 < again.distance <= 1.5 * bend.distance and again.gap > 0
        if uniforms and stays:  # an exchange of energies that are far apart is all but never accepted
            surely = _bend(accepting, np.asarray(step.template.flat, float), direction, shock, far)
            stays = surely is not None and surely.gap > 0
        if stays:  # else it is a clip that gives way as h -> 0, as tamed schemes have it
            found.append(bend._replace(what=what))
    if not followed:
        raise OutOfReach("the step is no polynomial of state and noise, even on a Gaussian")
    within = [b for b in found if b.distance <= reach[-1]]
    first = min(within or found, key=lambda b: b.distance, default=None)
    reason = f"{followed} lines stay what they are in the bulk, up to {reach[-1]:.0f} standard deviations"
    if first is not None:
        unit = "sigma" if "noise" in first.what else "standard deviations"
        reason = f"{first.what}: from {first.distance:.3g} {unit} on the step is not what it is in the bulk: a clip, "
        reason += "a box, a guard or another branch"
    return Finding(
        effect=max((b.gap for b in within), default=0.0),
        tolerance=Tolerance(BENT, "round-off of the extrapolation along a line"),
        required_sensitivity=1e-6,
        reason=reason,
        statistic="step far from the bulk less that of the bulk",
        unit="relative to the terms of the step",
        step_size=case.step_size,
        measurements={"not examined": reason} if found and not within else {},
    )


def _other_at(level: float, h: float) -> Finding:
    """A potential that is read by its level, which has no meaning."""
    return Finding(
        effect=1.0,
        tolerance=Tolerance.identity("a constant in the potential changes no law"),
        required_sensitivity=1e-6,
        reason=f"a constant of {level:g} added to the potential changes the step: energies are clipped or rounded",
        statistic="steps that a constant in the potential changes",
        unit="steps",
        step_size=h,
    )


def _lines(size: int, normals: int, spread: np.ndarray) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(name, direction of z, direction of the noise): one standard deviation, or one sigma, at distance 1."""
    d = len(spread)
    scale = np.concatenate([spread, np.ones(size - d)])
    wave = np.cos(1.7 * np.arange(size) + 0.4)
    other = np.sin(2.9 * np.arange(size) + 1.1)
    still, calm = np.zeros(size), np.zeros(normals)
    block_of = np.minimum(np.arange(size) // d, 2)
    blocks = {name: block_of == i for i, name in enumerate(("position", "momentum", "auxiliary variables"))}
    lines = []
    for name, block in blocks.items():
        for pattern in (wave, other):
            if block.any():
                unit = np.where(block, pattern, 0.0) * scale
                unit /= max(np.linalg.norm(unit / scale), EPS)
                lines += [(f"along the {name}", sign * unit, calm) for sign in (1.0, -1.0)]
    shocks = [*np.eye(normals)[:8], np.sign(np.cos(2.3 * np.arange(normals) + 0.9))] if normals else []
    lines += [("along the noise", still, sign * shock) for shock in shocks for sign in (1.0, -1.0)]
    return lines


def _bend(ends: Ends, base: np.ndarray, direction: np.ndarray, shock: np.ndarray, far: np.ndarray) -> Bend | None:
    """The first place of `far` where the line bends, of size 0 if nowhere; None if it is no polynomial near by."""
    places = np.concatenate([NODES, BETWEEN, far])
    values = ends(base + places[:, None] * direction, places[:, None] * shock)
    near, rest = values[: len(NODES)], values[len(NODES) :]
    if not np.all(np.isfinite(near)):
        return None
    for degree in (1, 2, 4):
        weights = _extrapolation(degree, places[len(NODES) :])
        predicted = weights @ near
        # round-off of the nodes, times what the extrapolation makes of it
        noise = 1e2 * EPS * np.abs(weights).sum(axis=1, keepdims=True) * np.abs(near).max()
        terms = np.abs(near).max() + np.abs(predicted)
        gaps = np.maximum(np.abs(rest - predicted) - noise, 0.0) / terms
        gaps = np.where(np.isfinite(rest), gaps, np.inf).max(axis=1)
        # exp(-t^2 h) is nearly a polynomial near by, and none far away
        inside = len(BETWEEN) + (0 if degree == 1 else np.sum(far <= WIDE))
        if gaps[:inside].max() <= SAME:
            break
    else:
        return None
    bent = np.flatnonzero(gaps[len(BETWEEN) :] > BENT)
    if not bent.size:
        return Bend(0.0, 0.0, "")
    place = len(BETWEEN) + bent[0]
    return Bend(float(places[len(NODES) + place]), float(min(gaps[place], 1e300)), "")


def _extrapolation(degree: int, places: np.ndarray) -> np.ndarray:
    """Weights (p, 5) that give the least squares polynomial of a degree through `NODES` at `places`."""
    basis = np.vander(NODES, degree + 1)
    return np.vander(places, degree + 1) @ np.linalg.pinv(basis)
