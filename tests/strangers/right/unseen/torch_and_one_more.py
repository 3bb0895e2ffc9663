"""Four samplers in PyTorch, with tensors that are changed in place, and one in NumPy with the noise of Laplace."""

import math
from dataclasses import dataclass

import jax
import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key


def as_tensor(leaf):
    return torch.tensor(np.array(leaf))  # a copy of its own


def as_array(tensor):
    return tensor.detach().cpu().numpy().copy()


def ask(rng, estimator, tree):
    """Potential (or None) and gradient, as a list of tensors, at a tree of tensors."""
    found = estimator.estimate(estimator_key(rng, estimator), (), jax.tree.map(as_array, tree))[0]
    pairs = zip(jax.tree.leaves(found.gradient), jax.tree.leaves(tree), strict=True)
    return found.potential, [as_tensor(g).to(x) for g, x in pairs]


def generator_from(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


def randn_like(x, generator):
    return torch.randn(x.shape, generator=generator, dtype=x.dtype)


# OBABO, as an optimiser would do it --------------------------------------------------------------------------------


class Cloud:
    __slots__ = ("momenta", "tree")

    def __init__(self, tree, momenta):
        self.tree, self.momenta = tree, momenta

    @property
    def position(self):
        return jax.tree.map(as_array, self.tree)


class TorchOBABO:
    backend = "host"

    def __init__(self, friction: float = 1.0):
        self.friction = friction

    def init(self, rng, position, estimator):
        tree, generator = jax.tree.map(as_tensor, position), generator_from(rng)
        return Cloud(tree, [randn_like(x, generator) for x in jax.tree.leaves(tree)])

    @torch.no_grad()
    def step(self, rng, cloud, step_size, estimator):
        h, generator, momenta = float(step_size), generator_from(rng), cloud.momenta
        kept = math.exp(-self.friction * h / 2)
        fresh = math.sqrt(1 - kept**2)

        def thermostat():
            for p in momenta:
                p.mul_(kept).add_(randn_like(p, generator), alpha=fresh)

        def kick():
            for p, g in zip(momenta, ask(rng, estimator, cloud.tree)[1], strict=True):
                p.sub_(g, alpha=h / 2)

        thermostat()
        kick()
        for x, p in zip(jax.tree.leaves(cloud.tree), momenta, strict=True):
            x.add_(p, alpha=h)
        kick()
        thermostat()
        return cloud


# MALTA: the drift is cut off at a length, in the proposal and in its density alike: exact --------------------------


@dataclass(frozen=True)
class TruncatedMALA:
    longest: float = 3.0

    backend = "host"
    claims = Claims(Source("", "Roberts and Tweedie 1996, MALTA"), ExactLaw())

    def at(self, rng, estimator, tree):
        u, slopes = ask(rng, estimator, tree)
        g = torch.cat([s.reshape(-1) for s in slopes])
        return float(u), g * (self.longest / torch.clamp(torch.linalg.vector_norm(g), min=self.longest))

    def step(self, rng, position, step_size, estimator):
        h = float(step_size)
        leaves, treedef = jax.tree.flatten(jax.tree.map(as_tensor, position))
        here = torch.cat([x.reshape(-1) for x in leaves])
        noise = torch.from_numpy(rng.standard_normal(len(here))).to(here)
        u, drift = self.at(rng, estimator, treedef.unflatten(leaves))
        there = here - h * drift + math.sqrt(2 * h) * noise
        pieces = torch.split(there, [x.numel() for x in leaves])
        proposal = treedef.unflatten([p.reshape(x.shape) for p, x in zip(pieces, leaves, strict=True)])
        u_new, drift_new = self.at(rng, estimator, proposal)
        # squares of what the noise was, and of what it would have to be on the way back
        forth = torch.sum((there - here + h * drift) ** 2).item() / (4 * h)
        back = torch.sum((here - there + h * drift_new) ** 2).item() / (4 * h)
        accepted = math.log(1 - rng.random()) < u - u_new + forth - back
        return jax.tree.map(as_array, proposal if accepted else treedef.unflatten(leaves))


# Nose-Hoover thermostat with noise (SGNHT), the state a dictionary of trees of tensors -----------------------------

NOISE = 1.0


def sgnht_init(rng, position, estimator):
    tree, generator = jax.tree.map(as_tensor, position), generator_from(rng)
    momentum = jax.tree.map(lambda x: randn_like(x, generator), tree)
    return {"position": tree, "momentum": momentum, "xi": torch.full((), NOISE, dtype=torch.float64)}


def sgnht_step(rng, state, step_size, estimator):
    h, generator = float(step_size), generator_from(rng)
    xs, ps = map(jax.tree.leaves, (state["position"], state["momentum"]))
    for p, g in zip(ps, ask(rng, estimator, state["position"])[1], strict=True):
        p.mul_(1 - h * state["xi"].item()).add_(g, alpha=-h)
        p.add_(randn_like(p, generator), alpha=math.sqrt(2 * NOISE * h))
    for x, p in zip(xs, ps, strict=True):
        x.add_(p, alpha=h)
    numbers = sum(p.numel() for p in ps)
    state["xi"].add_(h * (sum(p.square().sum().item() for p in ps) / numbers - 1))
    return state


torch_sgnht = simple_sampler(
    sgnht_step,
    init=sgnht_init,
    position=lambda state: jax.tree.map(as_array, state["position"]),
    backend="host",
)


# The sphere: a Gaussian step in the tangent plane, pulled back by the norm; its density depends on the angle alone ---


def sphere_step(rng, position, step_size, estimator):
    x = as_tensor(position)
    v = randn_like(x, generator_from(rng)).mul_(math.sqrt(2 * float(step_size)))
    v.sub_(x * torch.dot(v, x))
    y = x + v
    y.div_(torch.linalg.vector_norm(y))
    (u, _), (u_new, _) = (ask(rng, estimator, point) for point in (x, y))
    return as_array(y if rng.random() < math.exp(min(0.0, float(u) - float(u_new))) else x)


torch_sphere = simple_sampler(
    sphere_step, backend="host", claims=Claims(Source("", "random walk"), ExactLaw(), spaces=("sphere",))
)


# NumPy again: tamed Euler steps with Laplace noise of the same variance --------------------------------------------


@dataclass(frozen=True)
class TamedLaplace:
    temperature: float = 1.0

    backend = "host"

    def step(self, rng, position, step_size, estimator):
        h = float(step_size)
        gradient = estimator.estimate(estimator_key(rng, estimator), (), position)[0].gradient

        def move(x, g):
            x, g = np.asarray(x), np.asarray(g)
            noise = rng.laplace(0.0, math.sqrt(h * self.temperature), x.shape)  # a variance of 2 h T
            return (x - h * g / (1 + h * np.abs(g)) + noise).astype(x.dtype)

        return jax.tree.map(move, position, gradient)
