"""Access to the optional parts of an estimate."""

import jax

from samplers.interface.sampler import Estimate


def covariance_of(estimate: Estimate) -> jax.Array:
    """Return V^ (d, d), the covariance of an estimate of the gradient.

    Raises:
        ValueError: if the estimate has none.
    """
    if estimate.covariance is None:
        raise ValueError("estimator: this sampler needs a covariance of the gradient; use one that returns it")
    return estimate.covariance
