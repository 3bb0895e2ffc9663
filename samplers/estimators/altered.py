"""An estimator whose estimates are changed on their way to the sampler, for checks and for planted bugs."""

from collections.abc import Callable
from dataclasses import dataclass

from sgmcmc_verification.samplers.estimators.host import in_numpy
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator
from sgmcmc_verification.samplers.interface.trees import EstimatorState, Key, Position


@dataclass(frozen=True, eq=False)
class Altered:
    """The estimates of `inner` after `change`.

    Args:
        inner: an estimator.
        change: (estimate, position) -> estimate.
    """

    inner: Estimator
    change: Callable[[Estimate, Position], Estimate]

    def init(self, key: Key, position: Position) -> EstimatorState:
        """First state of the estimator."""
        return self.inner.init(key, position)

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        estimate, estate = self.inner.estimate(key, estate, position)
        changed = self.change(estimate, position)
        return in_numpy(changed) if on_host(self.inner) else changed, estate
