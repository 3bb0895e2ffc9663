"""Rows of the particle methods."""

from sgmcmc_verification.samplers.particles.particle_flow import ENTRIES as PARTICLE_FLOW
from sgmcmc_verification.samplers.particles.parvi import ENTRIES as PARVI
from sgmcmc_verification.samplers.particles.psghmc import ENTRIES as PSGHMC
from sgmcmc_verification.samplers.particles.psghmc import HAMILTONIAN as PSGHMC_HAMILTONIAN
from sgmcmc_verification.samplers.particles.rsvgd import ENTRIES as RSVGD
from sgmcmc_verification.samplers.particles.rsvgd_arcsine import ENTRIES as RSVGD_ARCSINE
from sgmcmc_verification.samplers.particles.rsvgd_embedded import ENTRIES as RSVGD_EMBEDDED
from sgmcmc_verification.samplers.particles.svgd import ENTRIES as SVGD

ENTRIES = (
    *SVGD,
    *RSVGD,
    *RSVGD_EMBEDDED,
    *RSVGD_ARCSINE,
    *PARVI,
    *PSGHMC,
    *PARTICLE_FLOW,
    *PSGHMC_HAMILTONIAN,
)
