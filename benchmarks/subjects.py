"""Subjects of the benchmarks: the rows of the registry of samplers, each at its default options, on one target."""

from typing import Any

import jax
import numpy as np

from samplers.entry import PARTICLE_TIERS, Row
from samplers.registry import SAMPLERS
from targets.target import Target

SMALL_LAWS = ("anharmonic", "double-well")
"""Targets of the orders: one coordinate, and no Gaussian, on which leading errors can cancel."""

SMALL_GAUSSIANS = ("gaussian-correlated-2d", "gaussian-1d-scaled")
"""Targets of time and memory: so cheap that the sampler's own work shows."""

PARTICLES = dict.fromkeys(
    (row.name for row in SAMPLERS if row.tiers == PARTICLE_TIERS), "a deterministic flow of particles: no diffusion"
)
"""Rows of particle methods."""

NO_ORDER = {
    "hmc": "exact: no weak order is claimed",
    "csgld": "it learns as it runs",
    "amagold": "exact: no weak order is claimed",
    "mala": "exact: no weak order is claimed",
    "mmala": "exact: no weak order is claimed",
    "mmala-recipe-metric": "exact: no weak order is claimed",
    "rmhmc": "exact: no weak order is claimed",
    "rmhmc-recipe-metric": "exact: no weak order is claimed",
    "gmc": "exact: no weak order is claimed",
    "chmc": "exact: no weak order is claimed",
    "scir": "exact: no weak order is claimed",
    "exponential-ou": "exact: no weak order is claimed",
    **PARTICLES,
}
"""Rows that have no local weak order to measure, with the reason."""

NO_DEFECT = {
    "hmc": "one step refreshes the momentum: it is judged by its limit h -> 0",
    "csgld": "it learns as it runs",
    "amagold": "one step is a trajectory: it is judged by its law",
    "mala": "draws uniforms",
    "mmala": "draws uniforms",
    "mmala-recipe-metric": "draws uniforms",
    "rmhmc": "one step refreshes the momentum: it is judged by its limit h -> 0",
    "rmhmc-recipe-metric": "one step refreshes the momentum: it is judged by its limit h -> 0",
    "gmc": "one step refreshes the velocity: it is judged by its limit h -> 0",
    "chmc": "one step refreshes the momentum: it is judged by its limit h -> 0",
    "scir": "exact: one step from the target stays there, there is no series",
    "exponential-ou": "exact: one step from the target stays there, there is no series",
    **PARTICLES,
}
"""Rows without a defect series, with the reason."""

COSTLY_DEFECT = {
    "resgld-noisy": "two replicas and noise of their energies: too many points of a grid",
    "ubu": "four normals a step: too many points of a grid",
    "sghmc-reflected": "two coordinates and as many momenta: too many points of a grid",
    "sgrhmc-expanded-mean": "two coordinates and as many momenta: too many points of a grid",
    "recipe-sgrhmc": "four variables and four normals a step: millions of points of a grid",
    "sggmc": "two coordinates and as many velocities: minutes",
    "sggmc-matrix": "two coordinates and as many velocities: minutes",
    "sggmc-compensated": "two coordinates, as many velocities and as much gradient noise: minutes",
    "gsgnht": "two coordinates, as many velocities and a thermostat: minutes",
}
"""Rows whose defect series is left to `pytest checks`, with the reason."""

ALL = tuple(row.name for row in SAMPLERS)
WITH_ORDER = tuple(name for name in ALL if name not in NO_ORDER)
WITH_DEFECT = tuple(name for name in ALL if name not in NO_DEFECT and name not in COSTLY_DEFECT)


def preferred(row: Row, names: tuple[str, ...]) -> str:
    """The first of `names` that the row has among its targets, else the first target of the row."""
    return next((name for name in names if name in row.targets), row.targets[0])


def particle_starts(target: Target, example: Any, key: jax.Array, count: int) -> Any:
    """`count` particles around an example position, since equal ones have no distances; spread over a manifold."""
    if not target.manifold.is_linear:
        return jax.vmap(target.manifold.random)(jax.random.split(key, count))
    return jax.tree.map(lambda a: a + jax.random.normal(key, (count, *np.shape(a)), a.dtype), example)
