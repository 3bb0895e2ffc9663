"""Samplers around torch, as in our Bayesian deep learning code."""

from dataclasses import dataclass

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key

MAX_NORM, LIMIT = 10.0, 5.0


def tensors(tree):
    """Leaves as tensors of their own."""
    return [torch.from_numpy(np.array(leaf)) for leaf in jax.tree.leaves(tree)]


def arrays(like, parameters):
    """Tensors as a tree of arrays."""
    return jax.tree.unflatten(jax.tree.structure(like), [p.detach().numpy().copy() for p in parameters])


def gradients(rng, estimator, position):
    """Gradient of the negative log posterior, summed over the data."""
    return tensors(estimator.estimate(estimator_key(rng, estimator), (), position)[0].gradient)


def randn_like(rng, p):
    """Standard normal tensor from the generator of the run."""
    return torch.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape)))).to(p.dtype)


@dataclass(frozen=True)
class LangevinSGD:
    """torch.optim.SGD with Langevin noise in the gradients."""

    momentum: float = 0.0
    backend = "host"

    def init(self, rng, position, estimator):
        return {"position": position, "buffers": [np.zeros_like(np.asarray(x)) for x in jax.tree.leaves(position)]}

    def step(self, rng, state, step_size, estimator):
        lr, params = float(step_size), [p.requires_grad_() for p in tensors(state["position"])]
        optimizer = torch.optim.SGD(params, lr=lr, momentum=self.momentum)
        for p, g, b in zip(params, gradients(rng, estimator, state["position"]), state["buffers"], strict=True):
            p.grad = g + (2.0 / lr) ** 0.5 * randn_like(rng, p)
            if self.momentum:
                optimizer.state[p]["momentum_buffer"] = torch.from_numpy(np.array(b))
        optimizer.step()
        buffers = state["buffers"]
        if self.momentum:
            buffers = [optimizer.state[p]["momentum_buffer"].numpy().copy() for p in params]
        return {"position": arrays(state["position"], params), "buffers": buffers}


def bounded_step(rng, position, step_size, estimator):
    """SGLD for weights that are kept in a sane range."""
    lr, params = float(step_size), tensors(position)
    for p, g in zip(params, gradients(rng, estimator, position), strict=True):
        p.add_(g, alpha=-lr).add_(randn_like(rng, p), alpha=(2 * lr) ** 0.5).clamp_(-LIMIT, LIMIT)
    return arrays(position, params)


def skipping_step(rng, position, step_size, estimator):
    """SGLD that ignores the gradient of a bad batch, one whose total norm is not below MAX_NORM."""
    lr, params, grads = float(step_size), tensors(position), gradients(rng, estimator, position)
    total = torch.sqrt(sum(g.pow(2).sum() for g in grads))
    good = bool(total < MAX_NORM)
    for p, g in zip(params, grads, strict=True):
        if good:
            p.add_(g, alpha=-lr)
        p.add_(randn_like(rng, p), alpha=(2 * lr) ** 0.5)
    return arrays(position, params)


def whitened_step(rng, position, step_size, estimator):
    """SGLD whose noise is standardised in every tensor, so that its size is the same in each step."""
    lr, params = float(step_size), tensors(position)
    for p, g in zip(params, gradients(rng, estimator, position), strict=True):
        noise = randn_like(rng, p)
        if noise.numel() > 1:
            noise = (noise - noise.mean()) / (noise.std() + 1e-8)
        p.add_(g, alpha=-lr).add_(noise, alpha=(2 * lr) ** 0.5)
    return arrays(position, params)


bounded = simple_sampler(bounded_step, backend="host")
skipping = simple_sampler(skipping_step, backend="host")
whitened = simple_sampler(whitened_step, backend="host")
