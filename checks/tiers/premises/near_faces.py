"""Faces: as h -> 0 a step rests wherever it starts, a millionth of the bulk from a face of the space and far off too.

A floor under a positive coordinate, or a bound on it, lies where the laws of tests have little mass and those of users
may have much: half of Gamma(0.1) is below 6e-4. Where a small step rests in the bulk, it has to rest there as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.tracing.probe import ends_of, normals_of
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.targets.manifolds.box import Box
from sgmcmc_verification.targets.manifolds.open_simplex import Corner
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.target import Target

DEPTHS = (1e-2, 1e-4, 1e-6)
"""Distances from a face, relative to the position in the bulk. A floor below the last is one below most laws."""
OUT = (3.0, 10.0, 30.0)
"""Distances from zero, likewise, of one coordinate of the orthant."""
TINY = (1e-20, 1e-24)
"""Shares of the usual step size. A walk moves by sqrt(2 h): 1e-6 of the smallest distance at the second."""
MOVED = 1e-2
"""Relative move of a coordinate that does not rest."""


class Place(NamedTuple):
    """A position (d,), and in words where it is."""

    position: np.ndarray
    where: str


def places(target: Target) -> Iterator[Place]:
    """Positions near the faces of a space, and far off in the orthant. Raises NotApplicable for a space without any."""
    bulk, space = np.asarray(target.ravel(target.example), float), target.manifold
    if not (isinstance(space, Simplex | Corner | Box) or space.is_positive):
        raise NotApplicable("needs a Gaussian target, or a space with faces")

    def at(i: int, value: float, text: str) -> Place:
        # the other probabilities make up for it
        rest = (1 - value) / (1 - bulk[i]) if isinstance(space, Simplex) else 1.0
        return Place(np.where(np.arange(len(bulk)) == i, value, rest * bulk), f"coordinate {i} at {text}")

    for i, value in enumerate(bulk):
        for share in DEPTHS:
            yield at(i, share * value, f"{share * value:.2g}")
            if isinstance(space, Box):
                yield at(i, 1 - share * (1 - value), f"1 - {share * (1 - value):.2g}")
        for factor in OUT if space.is_positive else ():
            yield at(i, factor * value, f"{factor * value:.3g}")


def near_faces(case: Case) -> Finding:
    """The finding on rest near faces. Raises OutOfReach if a small step does not rest in the bulk."""
    found = list(places(case.target))
    step = step_map(case.subject, case.target)
    if isinstance(step, JaxStep):
        step.require_known_draws()
    bulk = Place(np.asarray(case.target.ravel(case.target.example), float), "")
    moves = [_moves(step, [bulk, *found], h * case.step_size) for h in TINY]
    if not moves[-1][0] <= MOVED:
        raise OutOfReach("a small step does not rest in the bulk")
    # both, so that what is slow to come to rest is not taken for what never does
    effects = np.minimum(*moves)[1:]
    worst = int(np.argmax(effects))
    reason = f"as h -> 0 a step rests at {len(found)} places, as near as {DEPTHS[-1]:g} of the bulk to a face"
    if effects[worst] > MOVED:
        reason = f"with {found[worst].where} a step moves it by {effects[worst]:.3g} times its size, however small h is"
    return Finding(
        effect=float(effects[worst]),
        tolerance=Tolerance(MOVED, "the noise of a small step"),
        required_sensitivity=1.0,
        reason=reason,
        statistic="move of a coordinate in a step as h -> 0",
        unit="of its distance from the face",
        step_size=TINY[-1] * case.step_size,
    )


def _moves(step: JaxStep | HostStep, starts: list[Place], h: float) -> np.ndarray:
    """Largest move of a coordinate relative to its distance from the nearest face, for each start; 0 if not finite."""
    d, base = step.target.size, np.asarray(step.template.flat, float)
    states = np.stack([np.concatenate([start.position, base[d:]]) for start in starts])
    shocks = np.cos(1.9 * np.arange(normals_of(step)) + 0.4)
    ends = ends_of(step, h)
    moved = np.zeros(len(states))
    for sign in (1.0, -1.0):
        after = ends(states, np.broadcast_to(sign * shocks, (len(states), len(shocks))))[:, -d:]
        distance = np.abs(states[:, :d])
        if isinstance(step.target.manifold, Box):
            distance = np.minimum(distance, np.abs(1 - states[:, :d]))
        gaps = (np.abs(after - states[:, :d]) / distance).max(axis=1)
        moved = np.maximum(moved, np.where(np.isfinite(gaps), gaps, 0.0))
    return moved
