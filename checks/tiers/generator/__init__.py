"""The code has the drift and diffusion that it declares."""

from checks.core.check import Check
from checks.tiers.generator.drift_and_diffusion import generator_of_code
from checks.tiers.generator.proposal import acceptance_limit, finite_potential, proposal_generator
from checks.tiers.generator.published_diffusion import published_diffusion

CHECKS: tuple[Check, ...] = (
    generator_of_code,
    proposal_generator,
    acceptance_limit,
    published_diffusion,
    finite_potential,
)
