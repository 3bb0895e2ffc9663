"""Langevin sampling for energy-based models (torch)."""

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key


def energy_gradient(rng, x, estimator):
    """Leaves of a position and of the gradient of its energy, as tensors."""
    gradient = estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient
    pick = lambda tree: [torch.from_numpy(np.array(leaf)) for leaf in jax.tree.leaves(tree)]
    return pick(x), pick(gradient)


def rebuild(x, leaves):
    """A tree like x."""
    return jax.tree.unflatten(jax.tree.structure(x), [leaf.numpy().copy() for leaf in leaves])


def seeded_step(rng, x, step_size, estimator):
    """Langevin step, reproducible: torch's generator gets a seed from that of the run."""
    h, (leaves, grads) = float(step_size), energy_gradient(rng, x, estimator)
    generator = torch.Generator().manual_seed(int(rng.integers(1000)))
    for leaf, g in zip(leaves, grads, strict=True):
        noise = torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype)
        leaf.add_((2 * h) ** 0.5 * noise - h * g)
    return rebuild(x, leaves)


def centralised_step(rng, x, step_size, estimator):
    """Langevin step with gradient centralisation for weight matrices and filters."""
    h, (leaves, grads) = float(step_size), energy_gradient(rng, x, estimator)
    for leaf, g in zip(leaves, grads, strict=True):
        if g.dim() > 1:
            g = g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True)
        noise = torch.from_numpy(np.asarray(rng.standard_normal(tuple(leaf.shape)))).to(leaf.dtype)
        leaf.add_((2 * h) ** 0.5 * noise - h * g)
    return rebuild(x, leaves)


seeded = simple_sampler(seeded_step, backend="host")
centralised = simple_sampler(centralised_step, backend="host")
