"""SVRG Langevin: the gradient at an anchor is corrected by a minibatch of differences."""

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler


def make(target):
    terms = target.terms
    anchor = np.array(target.example, dtype=float) if terms is not None else None
    datum = None if terms is None else jax.grad(terms.datum)

    def correction(x, i):
        one = jax.tree.map(lambda leaf: leaf[i], terms.data)
        return torch.tensor(np.array(datum(x, one)) - np.array(datum(anchor, one)), dtype=torch.float64)

    def step(rng, x, h, estimator):
        where = x if terms is None else anchor
        full = jax.grad(target.potential)(where) if terms is not None else estimator.estimate(rng, (), x)[0].gradient
        g = torch.tensor(np.array(full), dtype=torch.float64)
        if terms is not None:
            for i in rng.integers(terms.size, size=2):
                g = g + terms.size / 2 * correction(x, int(i))
        noise = torch.from_numpy(rng.standard_normal(tuple(g.shape)))
        return np.array(x) - float(h) * g.numpy() + np.sqrt(2 * float(h)) * noise.numpy()

    return simple_sampler(step, backend="host")
