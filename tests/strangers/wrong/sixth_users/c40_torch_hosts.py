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


# WRONG: Lookahead around SGLD: k steps y' = y - h g(y) + sqrt(2 h) xi from y = x, then x' = x + alpha (y - x).
# E (x' - x) = -alpha k h g(x) + O(h^2), covariance alpha^2 2 k h: the noise shrinks by alpha^2 where alpha is due.
# Law exp(-U / alpha) as h -> 0: a temperature of 1/2 at alpha = 1/2; right for alpha = 1.
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
        std = math.sqrt(2 * h)
        fast = slow
        for _ in range(self.inner_steps):
            g, xi = slope(estimator, rng, fast), normals(generator, fast)
            fast = jax.tree.map(lambda y, g, xi: y - h * g + std * xi, fast, g, xi)
        return {"position": jax.tree.map(lambda x, y: x + self.alpha * (y - x), slow, fast)}


# WRONG (order 2 is claimed, it has order 1): the gradient is asked for in the middle of the drift, between its two halves,
# and used for the half kick behind it and the first one of the next step. With y the position in the middle the scheme is
# y' = y + h v - h^2/2 k y, v' = c (v - h k y) + s xi on a Gaussian of curvature k (two half kicks with k y in one).
# Its stationary equations for Y = E y^2, C = E y v, W = E v^2, with a = h^2 k / 2:
#   Y a (2 - a) = 2 (1 - a) h C + h^2 W,  C (1 - c + 3 a c) = h c (W - k (1 - a) Y),  W (1 - c^2) = 1 - c^2 + c^2 h^2 k^2 Y - 2 c^2 h k C
# give C = O(h^3), k Y = W + O(h^2) and W = 1 + h k / (2 friction) + O(h^2); the position y + h/2 v has Y + O(h^2).
# So k E x^2 = 1 + h k / (2 friction) + O(h^2): a bias of order 1.
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
        g = slope(estimator, rng, x)
        x = jax.tree.map(lambda x, v: x + 0.5 * h * v, x, v)
        v = jax.tree.map(lambda v, g: v - 0.5 * h * g, v, g)
        return {"position": x, "velocity": v, "gradient": g}


# WRONG: D = phi(x) I, and its divergence is taken as the gradient of the sum of the diagonal, which is n grad phi where
# grad phi is due (D_jj depends on all of x). The drift -phi grad U + n grad phi with D = phi is that of the law
# exp(-U) phi^(n - 1): right for n = 1; N(0, I_2) with floor 0.2 has the variance (0.2 + 0.404) / (0.2 + 0.596) = 0.758.
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
            mobility = [phi * torch.ones_like(x) for x in leaves]
            gamma = torch.autograd.grad(sum(d.sum() for d in mobility), leaves)
        gradients = jax.tree.leaves(slope(estimator, rng, jax.tree.unflatten(treedef, leaves)))
        generator = generator_of(rng)
        moved = []
        for x, d, g, extra in zip(leaves, mobility, gradients, gamma):
            x, d = x.detach(), d.detach()
            xi = torch.randn(x.shape, generator=generator, dtype=x.dtype)
            moved.append(x + h * (extra - d * g) + (2 * h * d).sqrt() * xi)
        return {"position": jax.tree.unflatten(treedef, moved)}
