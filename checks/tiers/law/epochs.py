"""Epochs: the exact law under minibatches that go through all data, over all orders of them."""

import functools

import numpy as np

from sgmcmc_verification.checks.core.check import Case, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.exact_laws.epochs import batches, mean_of, word
from sgmcmc_verification.checks.tiers.law.gaussian import limit_of_bias, whitened
from sgmcmc_verification.samplers.interface.claims import EpochLaw


@statement(
    tier="law",
    equation="the law at the end of an epoch is pi + O(h^q), over all orders of the batches",
    targets=lambda _: ("tiny-regression",),
    cost=1.5,
    decides="order",
    once=True,
)
def epoch_law(case: Case, claim: EpochLaw) -> Finding:
    """With batches of one datum, each used once in an epoch, the exact law errs at the claimed order of h.

    The mean is taken over all orders: an epoch draws its own. The Hessians of the data differ.
    """
    drawn = batches(case.subject, case.target)
    temperature = drawn.steps[0].sampler.claims.temperature

    @functools.cache
    def bias(h: float) -> tuple[np.ndarray, float, float]:
        maps = drawn.moments(h)
        epoch = mean_of([word(maps, order) for order in drawn.orders])
        mean, covariance, law = drawn.position(epoch, h)
        return whitened(case.target, mean, covariance, temperature), law.radius, law.condition

    extra = f"; {len(drawn.orders)} orders of {len(drawn.steps)} batches"
    return limit_of_bias(case.subject, case.target, bias, claim.order, extra)
