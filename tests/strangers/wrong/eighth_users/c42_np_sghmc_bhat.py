"""SGHMC with the correction of Chen et al. for the noise of the gradient: friction C, injected noise 2 (C - B)."""

import jax
import numpy as np

B_HAT = 0.1  # estimate of the diffusion by the gradient's own noise, as in the paper's code


class CorrectedSGHMC:
    backend = "host"

    def __init__(self, friction=1.0):
        if friction <= B_HAT:
            raise ValueError("the friction has to exceed the noise estimate")
        self.friction = friction

    def init(self, rng, position, estimator):
        leaves, _ = jax.tree.flatten(position)
        return {
            "position": jax.tree.map(np.array, position),
            "momenta": [np.array(rng.standard_normal(np.shape(a))) for a in leaves],
        }

    def step(self, rng, state, h, estimator):
        gradient = jax.tree.leaves(estimator.estimate(rng, (), state["position"])[0].gradient)
        params, treedef = jax.tree.flatten(state["position"])
        std = np.sqrt(2 * (self.friction - B_HAT) * h)
        new_params, new_momenta = [], []
        for x, r, g in zip(params, state["momenta"], gradient):
            r = r - h * g - h * self.friction * r + std * rng.standard_normal(r.shape)
            new_momenta.append(np.asarray(r))
            new_params.append(np.asarray(x + h * r))
        return {"position": jax.tree.unflatten(treedef, new_params), "momenta": new_momenta}
