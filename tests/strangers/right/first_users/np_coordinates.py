"""One coordinate at a time: a sweep in order, and one coordinate a step in a shuffled order."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def potential(rng, estimator, x):
    return float(estimator.estimate(rng, (), x)[0].potential)


def sweep_step(rng, x, h, estimator):
    x = np.array(x)
    u = potential(rng, estimator, x)
    for i in range(x.size):
        y = x.copy()
        y.flat[i] += np.sqrt(h) * rng.standard_cauchy()
        v = potential(rng, estimator, y)
        if rng.exponential() > v - u:
            x, u = y, v
    return x


def scan_init(rng, position, estimator):
    return {"position": np.array(position), "order": rng.permutation(np.size(position)), "next": 0}


def scan_step(rng, state, h, estimator):
    x, order, k = state["position"], state["order"], state["next"]
    if k == len(order):
        order, k = rng.permutation(len(order)), 0
    y = x.copy()
    y.flat[order[k]] += np.sqrt(2 * h) * rng.standard_normal()
    if rng.exponential() > potential(rng, estimator, y) - potential(rng, estimator, x):
        x = y
    return {"position": x, "order": order, "next": k + 1}


sweep = simple_sampler(sweep_step, backend="host")
scan = simple_sampler(scan_step, init=scan_init, backend="host")
