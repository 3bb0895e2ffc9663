"""Geweke's joint-distribution test of a posterior sampler, on independent chains."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from sgmcmc_verification.checks.statistics.distribution import ks_two_sample_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_sample
from sgmcmc_verification.targets.numerics.arrays import AnyArray

Theta = TypeVar("Theta")
Data = TypeVar("Data")
"""Parameters and data, R of each, in whatever form the functions of the user take them."""


def joint_test(
    prior: Callable[[np.random.Generator, int], Theta],
    data: Callable[[np.random.Generator, Theta], Data],
    transition: Callable[[np.random.Generator, Theta, Data], Theta],
    functions: Callable[[Theta, Data], AnyArray],
    *,
    seed: int,
    replicates: int,
    sweeps: int = 4,
    names: Sequence[str] | None = None,
) -> list[Outcome]:
    """Test that a transition leaves p(theta | y) invariant, for all y of a model at once.

    Two ways to simulate the joint law p(theta) p(y | theta) are compared. Marginal-conditional: theta from the prior, y
    given theta. Successive-conditional: from such a pair on, `sweeps` times theta <- K(theta, . | y) and, between two
    sweeps, y <- p(. | theta). If K is right, every pair after an update of theta has the joint law as well:

        E g(theta_s, y_s) = E g(theta_0, y_0)

    Each of the R = `replicates` chains starts from a draw of its own and only its end point is used, so the end points
    are i.i.d. and nothing is assumed about autocorrelation. For each test function g there are two tests: of the mean
    of g(end) - g(start), which is 0 (`moments.mean_test` of R i.i.d. differences, in standard deviations of g), and of
    the law of g(end) against that of R fresh draws (`distribution.ks_two_sample_test`, an independent
    marginal-conditional sample).

    The pair is looked at after the update of theta and before y is refreshed. Afterwards (theta, y) has the joint law
    for any K that keeps the prior, such as one that ignores the data and draws from it. Among the functions should
    be some that depend on the data, like the likelihood.

    Source: geweke2004getting, section 3.
    Differs from the source in: (1) independent chains from exact starts in place of one long chain and an estimate of
    its spectral density at 0; (2) for the mean, both simulators share their starts, which takes the common part of the
    variance out.

    Args:
        prior: (generator, R) -> R draws of theta, an array with leading axis R or anything the other functions take.
        data: (generator, theta) -> R data sets, one for each theta.
        transition: (generator, theta, y) -> theta after one step of the sampler, R chains at once.
        functions: (theta, y) -> (R, k), the test functions.
        seed: of the generator.
        replicates: R.
        sweeps: steps of each chain; more find errors that build up, and fewer are cheaper.
        names: of the k functions.

    Returns:
        2k outcomes: for each function the mean, then the law.

    Raises:
        ValueError: fewer than two replicates or one sweep; test functions of a wrong shape or not finite.
    """
    if sweeps < 1:
        raise ValueError(f"sweeps is {sweeps}: give at least 1")
    if replicates < 2:
        raise ValueError(f"replicates is {replicates}: give at least 2")
    rng = np.random.default_rng(seed)

    def joint() -> tuple[Theta, Data]:
        theta = prior(rng, replicates)
        return theta, data(rng, theta)

    theta, y = joint()
    start = evaluated(functions, theta, y, replicates)
    for sweep in range(sweeps):
        if sweep > 0:
            y = data(rng, theta)
        theta = transition(rng, theta, y)
    end, fresh = evaluated(functions, theta, y, replicates), evaluated(functions, *joint(), replicates)
    labels = [f"function {j}" for j in range(start.shape[1])] if names is None else list(names)
    if len(labels) != start.shape[1]:
        raise ValueError(f"names has {len(labels)} entries for {start.shape[1]} functions: give one for each")
    outcomes = []
    for j, label in enumerate(labels):
        scale = float(np.std(start[:, j])) or 1.0
        difference = end[:, j] - start[:, j]
        outcomes.append(mean_test(difference, 0.0, name=f"mean of {label}", unit="standard deviations", scale=scale))
        outcomes.append(ks_two_sample_test(end[:, j], fresh[:, j], name=f"law of {label}"))
    return outcomes


def evaluated(
    functions: Callable[[Theta, Data], AnyArray], theta: Theta, y: Data, count: int
) -> Float[np.ndarray, "count k"]:
    """functions(theta, y) as a float64 array (count, k).

    Raises:
        ValueError: another shape, or values that are not finite.
    """
    values = checked_sample("functions(theta, y)", functions(theta, y), 2)
    if values.shape[0] != count:
        raise ValueError(
            f"functions(theta, y) has shape {values.shape}: give one row for each of the {count} replicates"
        )
    return values
