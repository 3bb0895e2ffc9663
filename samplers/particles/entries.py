"""Rows of the particle methods."""

from samplers.particles.particle_flow import ENTRIES as PARTICLE_FLOW
from samplers.particles.parvi import ENTRIES as PARVI
from samplers.particles.psghmc import ENTRIES as PSGHMC
from samplers.particles.psghmc import HAMILTONIAN as PSGHMC_HAMILTONIAN
from samplers.particles.rsvgd import ENTRIES as RSVGD
from samplers.particles.rsvgd_arcsine import ENTRIES as RSVGD_ARCSINE
from samplers.particles.rsvgd_embedded import ENTRIES as RSVGD_EMBEDDED
from samplers.particles.svgd import ENTRIES as SVGD

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
