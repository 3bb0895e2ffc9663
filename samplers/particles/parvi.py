"""Langevin dynamics as a deterministic flow of particles: GFSD, GFSF, Blob and w-SGLD."""

from dataclasses import dataclass

import jax

from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.entry import Row, plain
from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.interface.claims import (
    BalancedVelocity,
    Claims,
    DensityEstimate,
    KernelWidth,
    MarginalFlow,
    ParticleLaw,
    ParticleVelocity,
    Source,
)
from sgmcmc_verification.samplers.particles.common import BANDWIDTHS, PARTICLE_FLAT, ParticleMixin, particle_row
from sgmcmc_verification.samplers.particles.density_gradients import (
    BALANCED,
    DENSITIES,
    RIDGE,
    Density,
    density_gradient,
)
from sgmcmc_verification.samplers.particles.kernels import Bandwidth, carried_width, require_bandwidth
from sgmcmc_verification.samplers.validation import require, require_positive

SOURCES: dict[Density, Source] = {
    "gfsd": Source("liu2019accelerating", "GFSD"),
    "gfsf": Source("liu2019accelerating", "GFSF"),
    "blob": Source("chen2018unified", "w-SGLD-B"),
    "jko": Source("chen2018unified", "w-SGLD"),
}


@dataclass(frozen=True)
class ParVI(ParticleMixin):
    """The gradient flow of the Kullback-Leibler divergence in Wasserstein space, with an estimate of its own density.

        x_j' = x_j + h (-grad U~(x_j) - grad log q^(x_j))

    Its marginals are those of Langevin dynamics (SGLD) where the estimate is exact.

    Source: liu2019accelerating; chen2018unified; the estimates are in `samplers.particles.density_gradients`.

    Args:
        density: `"gfsd"`, `"gfsf"`, `"blob"` or `"jko"` (w-SGLD).
        bandwidth: of the estimate, a squared length; `"median"` or `"he"`.
        ridge: of `"gfsf"`.

    Error: the target is a fixed point as M -> infinity and then h -> 0 for the bandwidth h.

    Raises:
        ValueError: if an argument is out of range.
    """

    density: Density = "blob"
    bandwidth: Bandwidth = "median"
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        require(self.density in DENSITIES, f"density: must be one of {', '.join(DENSITIES)}", self.density)
        require_bandwidth(self.bandwidth, several=False)
        require_positive(self, "ridge")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            SOURCES[self.density],
            ParticleLaw(),
            carried_width(self.bandwidth),
            ParticleVelocity(self.velocity),
            DensityEstimate(self),
            KernelWidth(self, "bandwidth"),
            BalancedVelocity() if self.density in BALANCED else None,
            MarginalFlow(lambda target: overdamped_dynamics(target, 1.0)),
        )

    def move(
        self, particles: jax.Array, gradients: jax.Array, weights: jax.Array, bandwidths: tuple[Scalar, ...]
    ) -> jax.Array:
        """grad log (p / q^), (M, d)."""
        return -gradients - density_gradient(self.density, particles, weights, bandwidths[0], self.ridge)


ENTRIES: tuple[Row, ...] = (
    particle_row("gfsd", plain(ParVI, density="gfsd"), PARTICLE_FLAT, *BANDWIDTHS),
    particle_row(
        "gfsf",
        plain(ParVI, density="gfsf"),
        PARTICLE_FLAT[:2],
        {"ridge": 1e-3, "bandwidth": 0.5},
        {"ridge": 1e-1, "bandwidth": "he"},
    ),
    particle_row("blob", plain(ParVI), PARTICLE_FLAT, *BANDWIDTHS),
    particle_row("w-sgld", plain(ParVI, density="jko"), PARTICLE_FLAT, *BANDWIDTHS),
)
