"""Samplers written around torch."""

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

ORDER_ONE = Claims(Source("", "own"), StationaryLaw(order=1))
EXACT = Claims(Source("", "own"), ExactLaw())


def to_torch(tree):
    leaves, treedef = jax.tree.flatten(tree)
    return [torch.from_numpy(np.array(leaf)) for leaf in leaves], treedef


def to_tree(params, treedef):
    return jax.tree.unflatten(treedef, [p.detach().numpy().copy() for p in params])


def gradients(rng, params, treedef, estimator):
    found = estimator.estimate(rng, (), to_tree(params, treedef))[0]
    return to_torch(found.gradient)[0], float(found.potential)


# ----------------------------------------------------------------- noise from torch


class TorchSGLD:
    """SGLD whose noise is drawn by torch, from a generator seeded by the one of the chain."""

    backend = "host"
    claims = ORDER_ONE

    def init(self, rng, position, estimator):
        return position

    def position(self, state):
        return state

    def step(self, rng, state, step_size, estimator):
        params, treedef = to_torch(state)
        grads, _ = gradients(rng, params, treedef, estimator)
        generator = torch.Generator().manual_seed(int(rng.integers(0, 1000)))
        for p, g in zip(params, grads):
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.add_(g, alpha=-step_size).add_(noise, alpha=(2 * step_size) ** 0.5)
        return to_tree(params, treedef)


# ----------------------------------------------------------------- parameter groups


class LangevinOptimizer(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, rng):
        std = (2 * self.param_groups[0]["lr"]) ** 0.5
        for group in self.param_groups:
            for p in group["params"]:
                noise = torch.from_numpy(np.asarray(rng.normal(size=tuple(p.shape)))).to(p.dtype)
                p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=std)


def _grouped(rng, position, step_size, estimator):
    """Weights at the full step size, biases and other vectors at a quarter of it."""
    params, treedef = to_torch(position)
    grads, _ = gradients(rng, params, treedef, estimator)
    for p, g in zip(params, grads):
        p.requires_grad_(True)
        p.grad = g
    weights, biases = [p for p in params if p.ndim > 1], [p for p in params if p.ndim <= 1]
    groups = [{"params": weights, "lr": step_size}, {"params": biases, "lr": step_size / 4}]
    LangevinOptimizer([group for group in groups if group["params"]], lr=step_size).step(rng)
    return to_tree(params, treedef)


grouped = simple_sampler(_grouped, claims=ORDER_ONE, backend="host")


# ----------------------------------------------------------------- momentum buffers


class MomentumSGLD:
    """SGHMC; momentum lives in buffers, as in torch.optim."""

    backend = "host"
    claims = ORDER_ONE

    def __init__(self, friction=1.5):
        self.friction = friction
        self.buffers = {}

    def init(self, rng, position, estimator):
        self.buffers.clear()
        return position

    def position(self, state):
        return state

    def step(self, rng, state, step_size, estimator):
        params, treedef = to_torch(state)
        grads, _ = gradients(rng, params, treedef, estimator)
        for i, (p, g) in enumerate(zip(params, grads)):
            if i not in self.buffers:
                self.buffers[i] = torch.from_numpy(np.asarray(rng.normal(size=tuple(p.shape)))).to(p.dtype)
            noise = torch.from_numpy(np.asarray(rng.normal(size=tuple(p.shape)))).to(p.dtype)
            v = self.buffers[i] * (1 - self.friction * step_size) - step_size * g
            self.buffers[i] = v + (2 * self.friction * step_size) ** 0.5 * noise
            p.add_(self.buffers[i], alpha=step_size)
        return to_tree(params, treedef)


# ----------------------------------------------------------------- HMC with a way back


def _hmc(rng, position, step_size, estimator, leapfrogs=4):
    params, treedef = to_torch(position)
    saved = [p.detach() for p in params]
    momentum = [torch.from_numpy(np.asarray(rng.normal(size=tuple(p.shape)))).to(p.dtype) for p in params]
    grads, potential = gradients(rng, params, treedef, estimator)
    before = potential + sum(0.5 * float((v**2).sum()) for v in momentum)
    for _ in range(leapfrogs):
        for p, v, g in zip(params, momentum, grads):
            v.add_(g, alpha=-step_size / 2)
            p.add_(v, alpha=step_size)
        grads, potential = gradients(rng, params, treedef, estimator)
        for v, g in zip(momentum, grads):
            v.add_(g, alpha=-step_size / 2)
    after = potential + sum(0.5 * float((v**2).sum()) for v in momentum)
    if np.log(rng.uniform()) >= before - after:
        params = saved
    return to_tree(params, treedef)


hmc = simple_sampler(_hmc, claims=EXACT, backend="host")


# ----------------------------------------------------------------- a thermostat for each tensor


class LayerNoseHoover:
    """SGNHT with one thermostat a tensor: xi' = p . p / n - 1."""

    backend = "host"
    claims = ORDER_ONE

    def __init__(self, diffusion=1.0):
        self.diffusion = diffusion

    def init(self, rng, position, estimator):
        leaves, treedef = jax.tree.flatten(position)
        momentum = [rng.normal(size=np.shape(x)) for x in leaves]
        return {
            "x": position,
            "p": jax.tree.unflatten(treedef, momentum),
            "xi": np.full(len(leaves), float(self.diffusion)),
        }

    def position(self, state):
        return state["x"]

    def step(self, rng, state, step_size, estimator):
        params, treedef = to_torch(state["x"])
        momentum, _ = to_torch(state["p"])
        xi = torch.from_numpy(np.array(state["xi"]))
        grads, _ = gradients(rng, params, treedef, estimator)
        for i, (x, p, g) in enumerate(zip(params, momentum, grads)):
            noise = torch.from_numpy(np.asarray(rng.normal(size=tuple(x.shape)))).to(x.dtype)
            p.add_(-step_size * (g + xi[i] * p) + (2 * self.diffusion * step_size) ** 0.5 * noise)
            x.add_(p, alpha=step_size)
            rows = torch.atleast_1d(p)
            xi[i] += step_size * ((rows * rows).sum() / len(rows) - 1)
        return {"x": to_tree(params, treedef), "p": to_tree(momentum, treedef), "xi": xi.numpy().copy()}
