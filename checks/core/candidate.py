"""Subject of the checks: a sampler row at given options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class Subject:
    """A row of the registry, or a stranger's object wrapped in one, at given options.

    Attributes:
        row: how to build the sampler and which tiers and targets apply.
        options: option values that differ from the defaults.
        reference: the name under which `--sampler` finds it again (for reproductions).
    """

    row: Row
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None

    @property
    def name(self) -> str:
        """`sghmc` or `sghmc[friction=2.0]`."""
        if not self.options:
            return self.row.name
        return f"{self.row.name}[{','.join(f'{k}={v}' for k, v in self.options.items())}]"

    def sampler(self, target: Target) -> Sampler:
        """The sampler for a target."""
        return self.row.build(target, **self.options)

    def estimator(self, target: Target) -> Estimator:
        """The estimator that the noise-free checks use."""
        return self.row.estimator(target)

    def step_size(self, target: Target) -> float:
        """The usual step size on this target."""
        return self.row.step_size / target.curvature**self.row.step_power
