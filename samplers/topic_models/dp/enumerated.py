"""Kernels of the Dirichlet-process mixture on users whose partitions are enumerated, and their rows."""

from dataclasses import dataclass, field

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.positive.gamma_updates import CIRUpdate, ExactGamma, ExpandedMeanUpdate, GammaUpdate
from sgmcmc_verification.samplers.topic_models.common import kernel_row
from sgmcmc_verification.samplers.topic_models.dp.slice import DPSlice, Users
from sgmcmc_verification.targets.topic_models.registry import Enumerated


@dataclass(frozen=True, eq=False)
class Slices:
    """The slice sampler with all users where it keeps the posterior.

    Args:
        posterior: the tiny model and its users.
        sampler: of the model.
        update: of sticks and atoms.
        steps: of a chain; one where the update remembers where it was (`DPSlice`, Error).
        chains: of the first stage.
    """

    posterior: Enumerated
    sampler: type[DPSlice] = DPSlice
    update: GammaUpdate = field(default_factory=ExactGamma)
    steps: int = 3
    chains: int = 3000

    backend = "host"

    def made(self) -> DPSlice:
        """The sampler."""
        return self.sampler(self.posterior.law.model, self.update)


@dataclass(frozen=True, eq=False)
class Batches:
    """The stochastic slice sampler as h -> 0.

    A step looks at a batch of users. Over a time of order 1 these are 1 / h batches, and sticks and atoms see the mean
    of their counts over batches and labels: with SGRLD the law tends to the posterior. With SCIR it tends to a law next
    to it, which at this size these chains cannot tell from it: what `DPSlice` calls Error.

    Args:
        posterior: the tiny model and its users.
        update: of sticks and atoms.
        batch: users a step.
        steps: of the largest size.
        users: data and batch size -> what is handed to the sampler.
    """

    posterior: Enumerated
    update: GammaUpdate
    batch: int = 2
    steps: int = 4
    users: type[Users] = Users

    backend = "host"


ENTRIES: tuple[Row, ...] = (
    kernel_row("dp/gibbs", Slices, "dp-tiny", "dp-tiny-fixed"),
    kernel_row(
        "dp/scir",
        lambda posterior, **options: Slices(posterior, update=CIRUpdate(), steps=1, chains=4000, **options),
        "dp-tiny-fixed",
        step_size=3.0,
    ),
    kernel_row(
        "dp/scir-batch",
        lambda posterior, **options: Batches(posterior, CIRUpdate(), **options),
        "dp-tiny-smooth",
        step_size=0.2,
    ),
    kernel_row(
        "dp/sgrld-batch",
        lambda posterior, **options: Batches(posterior, ExpandedMeanUpdate(), **options),
        "dp-tiny-smooth",
        step_size=0.1,
    ),
)
