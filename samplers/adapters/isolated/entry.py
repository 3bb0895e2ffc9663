"""Builders of the rows of libraries behind the bridge, and the reasons that several of them share."""

from typing import Any

from sgmcmc_verification.samplers.adapters.common import COMPOSITE, LAW_TIERS
from sgmcmc_verification.samplers.entry import SAMPLED_TIERS, Row
from sgmcmc_verification.samplers.interface.aliases import Builder

PRECONDITIONED: dict[str, str] = dict.fromkeys(
    ("recipe", "generator", "order", "law"),
    "the preconditioner is a moving average over the chain, without the term Gamma: no dynamics are declared; "
    "its exact limit is in reports/findings",
)


def bridged_row(library: str, name: str, build: Builder, **given: Any) -> Row:
    """A row `library/name`."""
    return Row(f"{library}/{name}", build, **given)


def momentum_row(library: str, name: str, build: Builder, **given: Any) -> Row:
    """A row of a sampler with a momentum."""
    return bridged_row(library, name, build, step_power=0.5, **given)


def composite_row(library: str, name: str, build: Builder, **given: Any) -> Row:
    """A row of a sampler whose step has several inner iterations after a full refresh."""
    return momentum_row(library, name, build, tiers=LAW_TIERS, unsupported=COMPOSITE, **given)


def sampled_row(library: str, name: str, build: Builder, why: dict[str, str], **given: Any) -> Row:
    """A row whose law independent chains decide alone."""
    return bridged_row(library, name, build, tiers=("contract", *SAMPLED_TIERS), unsupported=why, **given)
