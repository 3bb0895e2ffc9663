"""Simulation-based calibration of a posterior sampler, with ranks that are exactly uniform."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from sgmcmc_verification.checks.statistics.distribution import ks_test
from sgmcmc_verification.checks.statistics.geweke import Data, Theta, evaluated
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.targets.numerics.arrays import AnyArray

Draws = Callable[[np.random.Generator, Theta, Data, int], Sequence[Theta]]
"""(generator, theta_0, y, L) -> L posterior draws for each data set, exchangeable with theta_0 given y."""


def sbc_ranks(
    prior: Callable[[np.random.Generator, int], Theta],
    data: Callable[[np.random.Generator, Theta], Data],
    draws: Draws[Theta, Data],
    quantities: Callable[[Theta, Data], AnyArray],
    *,
    seed: int,
    replicates: int,
    length: int = 63,
) -> Float[np.ndarray, "R k"]:
    """Randomised ranks u (R, k), uniform on (0, 1) and independent over R replicates if the posterior draws are right.

        theta_0 ~ p(theta),  y ~ p(y | theta_0),  theta_1, .., theta_L from the sampler
        u = (#{l: f(theta_l, y) < f(theta_0, y)} + V (1 + #{l: f(theta_l, y) = f(theta_0, y)}))/(L + 1),    V ~ U(0, 1)

    Given y, theta_0 is itself a draw from the posterior. If the L + 1 draws are exchangeable, every order of them is
    equally likely, so the rank is uniform on {0, .., L}, ties broken at random, and u is exactly uniform for every L.

    The draws of one Markov chain are not exchangeable with theta_0: either `draws` gives independent draws, or it is
    `exact_start_draws`.

    Source: talts2018validating, theorem 1 and algorithm 1; modrak2023simulation (quantities that depend on the data,
    and ties).

    Args:
        prior: (generator, R) -> R draws of theta.
        data: (generator, theta) -> R data sets.
        draws: posterior draws; see `Draws`.
        quantities: (theta, y) -> (R, k). One of them should be the likelihood: a sampler that returns the prior has
            uniform ranks for every function of theta alone.
        seed: of the generator.
        replicates: R.
        length: L, draws of each posterior.

    Raises:
        ValueError: no draw or fewer than two replicates; quantities of a wrong shape or not finite; not L draws.
    """
    if length < 1:
        raise ValueError(f"length is {length}: give at least 1")
    if replicates < 2:
        raise ValueError(f"replicates is {replicates}: give at least 2")
    rng = np.random.default_rng(seed)
    theta = prior(rng, replicates)
    y = data(rng, theta)
    truth = evaluated(quantities, theta, y, replicates)
    drawn = draws(rng, theta, y, length)
    if len(drawn) != length:
        raise ValueError(f"draws returned {len(drawn)} draws of each posterior: give {length}")
    below, equal = np.zeros(truth.shape), np.zeros(truth.shape)
    for one in drawn:
        values = evaluated(quantities, one, y, replicates)
        below += values < truth
        equal += values == truth
    return (below + rng.random(truth.shape) * (1 + equal)) / (length + 1)


def sbc_test(
    prior: Callable[[np.random.Generator, int], Theta],
    data: Callable[[np.random.Generator, Theta], Data],
    draws: Draws[Theta, Data],
    quantities: Callable[[Theta, Data], AnyArray],
    *,
    seed: int,
    replicates: int,
    length: int = 63,
    names: Sequence[str] | None = None,
) -> list[Outcome]:
    """Test that the ranks of simulation-based calibration are uniform: arguments and source as `sbc_ranks`.

    For each quantity: Kolmogorov-Smirnov (the tail holds for every R), the mean of u, which is 1/2 (bias), and that of
    12 (u - 1/2)^2, which is 1 (above it the draws are too narrow, below it too wide).

    Returns:
        3k outcomes: for each quantity law, location, width.
    """
    u = sbc_ranks(prior, data, draws, quantities, seed=seed, replicates=replicates, length=length)
    labels = [f"quantity {j}" for j in range(u.shape[1])] if names is None else list(names)
    if len(labels) != u.shape[1]:
        raise ValueError(f"names has {len(labels)} entries for {u.shape[1]} quantities: give one for each")
    outcomes = []
    for j, label in enumerate(labels):
        outcomes.append(ks_test(u[:, j], name=f"ranks of {label}"))
        outcomes.append(mean_test(u[:, j], 0.5, name=f"mean rank of {label}", unit="rank", skewness=0.0))
        width = 12 * (u[:, j] - 0.5) ** 2
        outcomes.append(mean_test(width, 1.0, name=f"spread of the ranks of {label}", unit="relative", skewness=_WIDTH))
    return outcomes


_WIDTH = 2 * 5**0.5 / 7
"""Skewness of (u - 1/2)^2: w = 2|u - 1/2| is uniform, and w^2 has variance 4/45 and third central moment 16/945."""


def exact_start_draws(
    transition: Callable[[np.random.Generator, Theta, Data], Theta],
    steps: int,
    reverse: Callable[[np.random.Generator, Theta, Data], Theta] | None = None,
) -> Draws[Theta, Data]:
    """L draws that are exchangeable with theta_0, from a transition that leaves the posterior invariant.

    From theta_0, `steps` steps of the reversed chain lead to a hub; from it L chains take `steps` steps forward each.
    By stationarity theta_0 is reached from the hub in the same way, and so all L + 1 are independent given hub and y,
    however slowly the chain mixes.

    Source: besag1989generalized, section 2 (the parallel method); gandy2020unit, section 2.

    Args:
        transition: (generator, theta, y) -> theta, one step of all R chains.
        steps: more make the draws less alike, which is what the test feeds on.
        reverse: the reversed transition; by default `transition` itself, which is right for reversible ones only. For a
            sweep of Gibbs updates it is the sweep in the opposite order.

    Raises:
        ValueError: no step.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}: give at least 1")
    back = transition if reverse is None else reverse

    def draws(rng: np.random.Generator, theta: Theta, y: Data, length: int) -> Sequence[Theta]:
        hub = theta
        for _ in range(steps):
            hub = back(rng, hub, y)
        drawn = []
        for _ in range(length):
            one = hub
            for _ in range(steps):
                one = transition(rng, one, y)
            drawn.append(one)
        return drawn

    return draws
