"""The optional parts of an estimate: who needs them, and access to them."""

import jax

from sgmcmc_verification.samplers.interface.sampler import Estimate, Need


class CompensationMixin:
    """`needs` of a sampler that, with `compensate`, injects less noise by as much as the estimated gradient brings."""

    compensate: bool

    @property
    def needs(self) -> frozenset[Need]:
        """Parts of an estimate that a step reads."""
        return frozenset({"gradient", "covariance"} if self.compensate else {"gradient"})


def covariance_of(estimate: Estimate) -> jax.Array:
    """Return V^ (d, d), the covariance of an estimate of the gradient.

    Raises:
        ValueError: if the estimate has none.
    """
    if estimate.covariance is None:
        raise ValueError("estimator: this sampler needs a covariance of the gradient; use one that returns it")
    return estimate.covariance
