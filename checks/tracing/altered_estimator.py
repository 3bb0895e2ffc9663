"""An estimator whose estimates are changed on their way to the sampler, for checks and for planted bugs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Altered:
    """The estimates of `inner` after `change`.

    Args:
        inner: an estimator.
        change: (estimate, position) -> estimate.
    """

    inner: Any
    change: Callable[[Any, Any], Any]

    def init(self, key, position):
        """First state of the estimator."""
        return self.inner.init(key, position)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        estimate, estate = self.inner.estimate(key, estate, position)
        return self.change(estimate, position), estate
