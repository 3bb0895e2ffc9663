"""Mixture weights: shift mass between two randomly chosen components, reject what leaves the simplex."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def shift_mass(rng, w, scale):
    i, j = rng.choice(w.size, size=2, replace=False)
    delta = scale * rng.uniform(-1, 1)
    new = w.copy()
    new[i] += delta
    new[j] -= delta
    return new


def weights_step(rng, w, step_size, estimator):
    energy = lambda v: estimator.estimate(rng, (), v)[0].potential
    w = np.asarray(w)
    e = energy(w)
    for _ in range(w.size):
        new = shift_mass(rng, w, np.sqrt(step_size))
        if new.min() <= 0.0:
            continue
        e_new = energy(new)
        if np.log(rng.uniform()) < e - e_new:
            w, e = new, e_new
    return w


weights = simple_sampler(
    weights_step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",))
)
