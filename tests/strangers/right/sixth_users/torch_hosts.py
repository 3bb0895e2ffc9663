"""Samplers in torch that are no optimisers; positions are arrays or trees of arrays."""

import math

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def to_torch(tree):
    return jax.tree.map(lambda a: torch.from_numpy(np.array(a)), tree)


def slope(estimator, rng, x):
    at = jax.tree.map(lambda t: t.detach().numpy().copy(), x)
    return to_torch(estimator.estimate(rng, (), at)[0].gradient)


def generator_of(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


def normals(generator, x):
    return jax.tree.map(lambda t: torch.randn(t.shape, generator=generator, dtype=t.dtype), x)


# k steps y' = y - h g(y) + sqrt(2 h / alpha) xi from y = x, then x' = x + alpha (y - x), all in one step of the kernel.
# E (x' - x) = -alpha k h g(x) + O(h^2), covariance alpha^2 k 2 h / alpha = 2 alpha k h: Langevin at temperature 1 for the
# time alpha k h. Law exp(-U) + O(h) for 0 < alpha <= 1 and every k.
class LookaheadLangevin:
    backend = "host"

    def __init__(self, inner_steps=4, alpha=0.5):
        if inner_steps < 1 or not 0 < alpha <= 1:
            raise ValueError("inner_steps >= 1, 0 < alpha <= 1")
        self.inner_steps, self.alpha = inner_steps, alpha

    def init(self, rng, position, estimator):
        return {"position": to_torch(position)}

    @torch.no_grad()
    def step(self, rng, state, step_size, estimator):
        h, slow, generator = float(step_size), state["position"], generator_of(rng)
        std = math.sqrt(2 * h / self.alpha)
        fast = slow
        for _ in range(self.inner_steps):
            g, xi = slope(estimator, rng, fast), normals(generator, fast)
            fast = jax.tree.map(lambda y, g, xi: y - h * g + std * xi, fast, g, xi)
        return {"position": jax.tree.map(lambda x, y: x + self.alpha * (y - x), slow, fast)}


# BAOAB: half kick, half drift, exact Ornstein-Uhlenbeck with c = exp(-friction h), half drift, half kick with the gradient
# at the new position, which is the one that the next step begins with (kept in the state). Law of positions exp(-U) + O(h^2).
class CachedBAOAB:
    backend = "host"
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def __init__(self, friction=1.0):
        if friction <= 0:
            raise ValueError("friction has to be positive")
        self.friction = friction

    def init(self, rng, position, estimator):
        x = to_torch(position)
        return {"position": x, "velocity": normals(generator_of(rng), x), "gradient": slope(estimator, rng, x)}

    @torch.no_grad()
    def step(self, rng, state, step_size, estimator):
        h = float(step_size)
        c = math.exp(-self.friction * h)
        s = math.sqrt(-math.expm1(-2 * self.friction * h))
        x, v, g = state["position"], state["velocity"], state["gradient"]
        v = jax.tree.map(lambda v, g: v - 0.5 * h * g, v, g)
        x = jax.tree.map(lambda x, v: x + 0.5 * h * v, x, v)
        v = jax.tree.map(lambda v, xi: c * v + s * xi, v, normals(generator_of(rng), v))
        x = jax.tree.map(lambda x, v: x + 0.5 * h * v, x, v)
        g = slope(estimator, rng, x)
        v = jax.tree.map(lambda v, g: v - 0.5 * h * g, v, g)
        return {"position": x, "velocity": v, "gradient": g}


# dx = (-phi grad U + grad phi) dt + sqrt(2 phi) dW with D = phi(x) I, phi = floor + 1 / (1 + |x|^2 / n), n numbers in all:
# Gamma_i = sum_j d_j D_ij = d_i phi. So exp(-U) is invariant; Euler's step has it + O(h).
class ScalarMobility:
    backend = "host"

    def __init__(self, floor=0.2):
        if floor <= 0:
            raise ValueError("floor has to be positive")
        self.floor = floor

    def init(self, rng, position, estimator):
        return {"position": to_torch(position)}

    def step(self, rng, state, step_size, estimator):
        h = float(step_size)
        leaves, treedef = jax.tree.flatten(state["position"])
        leaves = [x.detach().clone().requires_grad_() for x in leaves]
        size = sum(x.numel() for x in leaves)
        with torch.enable_grad():
            phi = self.floor + 1 / (1 + sum(x.square().sum() for x in leaves) / size)
            gamma = torch.autograd.grad(phi, leaves)
        phi = phi.detach()
        gradients = jax.tree.leaves(slope(estimator, rng, jax.tree.unflatten(treedef, leaves)))
        generator = generator_of(rng)
        moved = []
        for x, g, extra in zip(leaves, gradients, gamma):
            x = x.detach()
            xi = torch.randn(x.shape, generator=generator, dtype=x.dtype)
            moved.append(x + h * (extra - phi * g) + (2 * h * phi).sqrt() * xi)
        return {"position": jax.tree.unflatten(treedef, moved)}
