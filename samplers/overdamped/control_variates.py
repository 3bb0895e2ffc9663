"""Control variates: minibatch gradients corrected at a fixed centre, and SGLD with them (SGLD-CV)."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import REGRESSION, Row, langevin_row, plain
from sgmcmc_verification.samplers.estimators.basic import terms_of
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.overdamped.variance_reduced import (
    AnchoredMinibatch,
    VarianceReducedSGLD,
    corrected_gradient,
    total_gradient,
)
from sgmcmc_verification.targets.target import DataTerms, Target


@dataclass(frozen=True, eq=False)
class ControlVariates(AnchoredMinibatch):
    """grad U_0(x) + sum_i grad U_i(c) + (N/n) sum_{i in S} (grad U_i(x) - grad U_i(c)) with a fixed centre c.

    Unbiased for any c. Covariance: see `samplers.overdamped.variance_reduced.corrected_gradient`; it vanishes at c, and
    is of order |x - c|^2 for smooth data terms, so c should be near the mode. `init` computes the sum over all data at
    c, the estimator's state; a step costs 2 n gradients of data.

    Source: baker2019control, section 2.2 (SGLD-CV), with gradients of U = -log density.

    Args:
        terms: prior and datum potentials with the data.
        batch_size: n.
        centre: c, like the position; near the mode as a rule.
        replace: draw with replacement (independent, uniform), else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N.
    """

    terms: DataTerms
    batch_size: int
    centre: Position
    replace: bool = True

    anchors: ClassVar[str] = "centre"

    def centre_like(self, position: Position) -> Position:
        """c in the dtype of the position."""
        return jax.tree.map(lambda c, x: jnp.asarray(c, jnp.result_type(x)), self.centre, position)

    def init(self, key: jax.Array, position: Position) -> Tree:
        """Sum of grad U_i over all data at the centre."""
        del key
        return total_gradient(self.terms, self.centre_like(position))

    def at(self, indices: jax.Array, estate: Tree, position: Position) -> Estimate:
        """The estimate for given indices (n,)."""
        return Estimate(corrected_gradient(self.terms, indices, position, self.centre_like(position), estate))

    def estimate(self, key: jax.Array, estate: Tree, position: Position) -> tuple[Estimate, Tree]:
        """Estimate at a position, and the next state of the estimator."""
        return self.at(self.minibatch.draw(key), estate, position), estate


@dataclass(frozen=True)
class SGLDCV(VarianceReducedSGLD):
    """SGLD for the `ControlVariates` estimator: theta' = theta - h grad U~(theta) + N(0, 2 h T).

    The kernel is that of `SGLD`; the variance reduction is in the estimator.

    Source: baker2019control, section 2.2 (SGLD-CV), with h = (step of the source) / 2. Differs from the source in:
        1. the temperature T;
        2. the centre is given, not found by a run of stochastic optimisation, and is no start of the chain.

    Args:
        temperature: T > 0; the law is exp(-U / T).
        compensate: must be False: the estimator returns no covariance.

    Error: weak order 1 and invariant law O(h) for exact gradients, and O(h) with minibatches.

    Raises:
        ValueError: if `temperature` is not positive, or `compensate` is set.
    """

    source: ClassVar[Source] = Source("baker2019control", "section 2.2 (SGLD-CV)")


def full_control_variates(target: Target) -> ControlVariates:
    """Control variates at a centre off the mode, with all data in every batch."""
    terms = terms_of(target)
    return ControlVariates(terms, terms.size, target.example, replace=False)


ENTRIES: tuple[Row, ...] = (
    langevin_row("sgld-cv", plain(SGLDCV), targets=REGRESSION, estimator=full_control_variates),
)
