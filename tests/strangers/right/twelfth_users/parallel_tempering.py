"""Parallel tempering of random walks, in NumPy.

Replica k has the law exp(-U / T_k) on a geometric ladder T_k = ratio^k with T_0 = 1. In a step every replica makes one random walk
Metropolis move, of a width that grows with the root of its temperature, and one pair of neighbours, chosen at random, is offered an exchange.
The samples are those of the coldest replica.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def accepted(rng, log_ratio):
    return np.log(rng.random()) < log_ratio


def parallel_tempering(replicas=4, ratio=2.0, exchanges=1):
    """Metropolis-coupled chains: `exchanges` offers of an exchange after each sweep of moves."""
    if replicas < 2:
        raise ValueError("two replicas at least")
    if ratio <= 1:
        raise ValueError("the ladder has to rise")
    temperatures = ratio ** np.arange(replicas)

    def energy(rng, x, estimator):
        return float(estimator.estimate(rng, (), x)[0].potential)

    def init(rng, position, estimator):
        position = np.array(position)
        spread = np.sqrt(temperatures - 1.0).reshape((-1,) + (1,) * position.ndim)
        points = position + spread * rng.standard_normal((replicas,) + position.shape)
        return {"points": points, "energies": np.array([energy(rng, x, estimator) for x in points])}

    def move(rng, points, energies, h, estimator):
        offsets = rng.standard_normal(points.shape)
        for k, temperature in enumerate(temperatures):
            proposal = points[k] + np.sqrt(2 * h * temperature) * offsets[k]
            proposed = energy(rng, proposal, estimator)
            if accepted(rng, (energies[k] - proposed) / temperature):
                points[k] = proposal
                energies[k] = proposed

    def exchange(rng, points, energies):
        k = int(rng.integers(replicas - 1))
        gap = 1.0 / temperatures[k] - 1.0 / temperatures[k + 1]
        if accepted(rng, gap * (energies[k] - energies[k + 1])):
            points[[k, k + 1]] = points[[k + 1, k]]
            energies[[k, k + 1]] = energies[[k + 1, k]]

    def step(rng, state, h, estimator):
        points, energies = state["points"].copy(), state["energies"].copy()
        move(rng, points, energies, h, estimator)
        for _ in range(exchanges):
            exchange(rng, points, energies)
        return {"points": points, "energies": energies}

    return simple_sampler(
        step,
        init=init,
        position=lambda state: state["points"][0],
        backend="host",
        claims=Claims(Source("", "Geyer (1991)"), ExactLaw()),
    )
