"""The code has the drift and diffusion that it declares."""

from sgmcmc_verification.checks.tiers.generator.drift_and_diffusion import generator_of_code
from sgmcmc_verification.checks.tiers.generator.proposal import acceptance_limit, finite_potential, proposal_generator
from sgmcmc_verification.checks.tiers.generator.published_diffusion import published_diffusion

__all__ = [
    "acceptance_limit",
    "finite_potential",
    "generator_of_code",
    "proposal_generator",
    "published_diffusion",
]
