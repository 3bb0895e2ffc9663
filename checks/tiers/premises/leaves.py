"""Leaves: what all coordinates share answers to each of them alike, in whichever leaf of a pytree it is.

The friction of a thermostat follows the kinetic energy of all degrees of freedom, d xi = |p|^2 / d - T: each of them
moves it by the same. The mean of the means of the leaves gives those of a small leaf more weight, and keeps another
law, in which small leaves are too cold and large ones too hot. One array, or leaves of one size, do not show it.

On a product of equal laws, at a state whose coordinates are all equal and without noise, a number of z that moves with
coordinates of two leaves has to move by the same with either, where the leaves themselves move alike. A number for each
leaf answers to its own.

Source: ding2014bayesian, equation (7), in which n is the number of all parameters.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach, statement
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import claims_of
from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.checks.tiers.premises.coordinates import energy_of_product
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator
from sgmcmc_verification.checks.tracing.noise_tape import Noise
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, host_ravel, step_map
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target

SIZES = (2, 7)
"""Coordinates of the two leaves."""
SHIFT, SMALL = 0.01, 64.0
"""Shift of a coordinate; part of the usual step size, as for equal coordinates."""
ANSWER, TOLERANCE, APART = 1e-9, 1e-4, 1e-2
"""Move of a number by a shift above which it answers to it; relative difference of two moves, of which round-off is
1e-7 at that size; one of the moves of leaves, which what they share has a part in."""


class Answers(NamedTuple):
    """Moves of a step's end by a shift of one coordinate in each leaf.

    Attributes:
        own: of that coordinate in each part of z, less the shift itself, (parts, parts, 2).
        shared: of the numbers of z that are none of a coordinate, (parts, 2, numbers).
    """

    own: np.ndarray
    shared: np.ndarray


@lru_cache(maxsize=1)
def _two_leaves() -> Target:
    """Equal coordinates in two leaves."""
    example = {"first": placed(np.full(SIZES[0], 0.7)), "second": placed(np.full(SIZES[1], 0.7))}
    return Target("product-of-two-leaves", Euclidean(sum(SIZES)), example, energy_of_product, curvature=2.0)


def _parts(z: Any) -> tuple[list[tuple[int, int]], list[int], np.ndarray]:
    """Places in the flat z of the first coordinate of either leaf, for each part of z; those of the rest; z itself.

    A part is two leaves in a row with the sizes of those of a position, or one with the number of all coordinates. Its
    coordinates are made equal.
    """
    sizes, flat = [np.size(leaf) for leaf in jax.tree.leaves(z)], host_ravel(z)
    ends = np.cumsum([0, *sizes]).tolist()
    parts: list[tuple[int, int]] = []
    rest: list[int] = []
    i = 0
    while i < len(sizes):
        pair = tuple(sizes[i : i + 2]) == SIZES
        if pair or sizes[i] == sum(SIZES):
            flat[ends[i] : ends[i] + sum(SIZES)] = 0.7 - 0.4 * len(parts)
            parts.append((ends[i], ends[i] + SIZES[0]))
        else:
            rest += range(ends[i], ends[i + 1])
        i += 2 if pair else 1
    return parts, rest, flat


def answers(subject: Subject) -> Answers:
    """The answers of a step. Raises NotApplicable, or OutOfReach where draws cannot be chosen."""
    target = _two_leaves()
    try:
        step = step_map(subject, target)
    except RAISED as error:
        raise NotApplicable(f"the method takes no such pytree ({one_line(error, 120)})") from None
    parts, rest, flat = _parts(step.sampler.unpack(step.template.state))
    if not parts or not rest:
        raise NotApplicable("z holds nothing that coordinates of two leaves could share")
    move = _without_noise(step, subject.step_size(target) / SMALL)
    end = move(flat)
    moved = np.zeros((len(parts), 2, flat.size))
    for number, places in enumerate(parts):
        for leaf, place in enumerate(places):
            moved[number, leaf] = move(flat + SHIFT * (np.arange(flat.size) == place)) - end
    places = np.array(parts)
    own = np.stack([moved[:, leaf, places[:, leaf]] for leaf in range(2)], axis=-1)
    return Answers(own - SHIFT * np.eye(len(parts))[:, :, None], moved[:, :, rest])


def _without_noise(step: JaxStep | HostStep, h: float) -> Callable[[np.ndarray], np.ndarray]:
    """z -> z' with normals of 0. Raises NotFed, or Unintercepted when it is called, where draws cannot be chosen."""
    if isinstance(step, HostStep):
        return lambda z: step.once(ScriptedGenerator(np.zeros(0)), z, h)[0]
    step.require_known_draws()
    count = step.program.count
    noise = Noise(np.zeros(count("normal")), np.full(count("uniform"), 0.5), np.zeros(count("integer"), int))
    run = jax.jit(lambda z: step.program(noise, z, h)[0])
    return lambda z: np.asarray(run(z), float)


def _targets(subject: Subject) -> tuple[str, ...]:
    claims = claims_of(subject)
    flat = "euclidean" in claims.spaces and not isinstance(claims.law, ParticleLaw)
    return subject.row.targets[:1] if flat else ()


@statement(
    tier="contract",
    equation="the part of z that all coordinates share moves by the same with each of them, in leaves of 2 and of 7",
    targets=_targets,
    cost=0.5,
    decides="dynamics",
    once=True,
)
def equal_leaves(case: Case) -> Finding:
    """Numbers of z that the coordinates of two leaves move are moved alike by those of either.

    Undecided where the leaves themselves do not move alike, as with a step size for each.
    """
    try:
        found = answers(case.subject)
    except NotApplicable:
        raise
    except RAISED as error:  # such as draws that cannot be chosen
        raise OutOfReach(f"no step of two leaves is followed ({one_line(error, 120)})") from None
    apart = np.abs(found.own[..., 0] - found.own[..., 1])
    if not np.all(apart <= ANSWER + APART * np.abs(found.own).max(axis=-1)):
        raise OutOfReach("the leaves do not move alike")
    size = np.abs(found.shared)
    both = size.min(axis=1) > ANSWER
    gaps = np.where(both, np.abs(found.shared[:, 0] - found.shared[:, 1]) / np.maximum(size.max(axis=1), ANSWER), 0.0)
    worst = np.unravel_index(np.argmax(gaps), gaps.shape)
    ratio = found.shared[worst[0], 0, worst[1]] / found.shared[worst[0], 1, worst[1]] if both.any() else 1.0
    few, many = SIZES
    said = "nothing in z moves with the coordinates of both leaves"
    if both.any():
        said = (
            f"a coordinate of a leaf of {few} moves what all share {ratio:.4g} times as much as one of a leaf of {many}"
        )
    return Finding(
        effect=float(gaps[worst]),
        tolerance=Tolerance(TOLERANCE, "round-off of the smallest answer that counts"),
        required_sensitivity=1e-3,
        reason=said,
        statistic="difference of the answers to the coordinates of two leaves",
        unit="relative to the larger one",
        step_size=case.step_size,
    )
