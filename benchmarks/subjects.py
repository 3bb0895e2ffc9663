"""Subjects of the benchmarks: the rows of the registry of samplers, each at its default options, on one target."""

from typing import Any

import jax
import numpy as np

from sgmcmc_verification.samplers.entry import PARTICLE_TIERS, Row
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.targets.target import Target

SMALL_LAWS = ("anharmonic", "double-well")
"""Targets of the orders: one coordinate, and no Gaussian, on which leading errors can cancel."""

SMALL_GAUSSIANS = ("gaussian-correlated-2d", "gaussian-1d-scaled")
"""Targets of time and memory: so cheap that the sampler's own work shows."""

PARTICLES = dict.fromkeys(
    (row.name for row in SAMPLERS if row.tiers == PARTICLE_TIERS), "a deterministic flow of particles: no diffusion"
)
"""Rows of particle methods."""

FINITE = ("gibbs", "gibbs-with-gradients")
METROPOLIS = ("mala", "mmala", "mmala-recipe-metric")
REFRESHED = ("hmc", "rmhmc", "rmhmc-recipe-metric", "gmc", "chmc")
CONJUGATE = ("scir", "exponential-ou")
NO_ORDER = {
    "csgld": "it learns as it runs",
    **dict.fromkeys(("amagold", *METROPOLIS, *REFRESHED, *CONJUGATE, *FINITE), "exact: no weak order is claimed"),
    **PARTICLES,
}
"""Rows that have no local weak order to measure, with the reason."""

NO_DEFECT = {
    "csgld": "it learns as it runs",
    "amagold": "one step is a trajectory: it is judged by its law",
    **dict.fromkeys(METROPOLIS, "draws uniforms"),
    **dict.fromkeys(REFRESHED, "one step refreshes momentum or velocity: it is judged by its limit h -> 0"),
    **dict.fromkeys(FINITE, "positions are whole numbers"),
    **dict.fromkeys(CONJUGATE, "exact: one step from the target stays there, there is no series"),
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
