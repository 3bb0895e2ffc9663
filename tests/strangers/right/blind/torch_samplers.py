"""Samplers in PyTorch: an optimiser, a module, and two Metropolis kernels on flat tensors."""

import math

import jax
import numpy as np
import torch
import torch.nn.functional as F

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def tensor(array, like=None):
    made = torch.from_numpy(np.array(array))
    return made if like is None else made.to(like.dtype)


def seeded(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))


def exact(where):
    return Claims(Source("", where), ExactLaw(), conditions=("exact gradient",))


class FlatView:
    """A tree of arrays as one vector of torch, and back."""

    def __init__(self, position):
        self.leaves, self.treedef = jax.tree.flatten(position)
        self.sizes = [int(np.size(leaf)) for leaf in self.leaves]

    def vector(self, tree):
        return torch.cat([tensor(leaf).reshape(-1) for leaf in jax.tree.leaves(tree)])

    def tree(self, vector):
        parts = zip(torch.split(vector, self.sizes), self.leaves, strict=True)
        return jax.tree.unflatten(
            self.treedef,
            [part.numpy().reshape(np.shape(leaf)).astype(np.asarray(leaf).dtype) for part, leaf in parts],
        )

    def look(self, rng, estimator, vector):
        found = estimator.estimate(rng, (), self.tree(vector))[0]
        return float(found.potential), self.vector(found.gradient)


class LangevinSGD(torch.optim.Optimizer):
    """Plain SGD with noise of the variance 2 lr."""

    def __init__(self, params, lr, generator):
        super().__init__(params, {"lr": lr})
        self.generator = generator

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                noise = torch.randn(p.shape, generator=self.generator, dtype=p.dtype)
                p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=math.sqrt(2 * group["lr"]))


def optimiser_step(rng, position, step_size, estimator):
    """SGLD as an optimiser of torch, made anew in each step; its generator is seeded from the one that is given.

    Right to O(h): x - h grad U + N(0, 2h), with fresh normals in every step.
    """
    leaves, treedef = jax.tree.flatten(position)
    gradients = jax.tree.leaves(estimator.estimate(rng, (), position)[0].gradient)
    parameters = [torch.nn.Parameter(tensor(leaf)) for leaf in leaves]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = tensor(gradient, parameter).reshape(parameter.shape)
    LangevinSGD(parameters, lr=float(step_size), generator=seeded(rng)).step()
    return jax.tree.unflatten(treedef, [parameter.detach().numpy().copy() for parameter in parameters])


optimiser = simple_sampler(optimiser_step, backend="host")


class Inertia(torch.nn.Module):
    """Underdamped Langevin as a module; the state holds tensors, updated in place on copies.

    Right to O(h): kick, exact Ornstein-Uhlenbeck, drift, each for a time h: a splitting of dq = p dt,
    dp = -grad U dt - c p dt + sqrt(2c) dW, which keeps exp(-U - p^2 / 2).
    """

    backend = "host"
    needs = ("gradient",)

    def __init__(self, friction: float = 2.0) -> None:
        super().__init__()
        self.register_buffer("friction", torch.tensor(friction, dtype=torch.float64))

    def init(self, rng, position, estimator):
        q = jax.tree.map(tensor, position)
        p = jax.tree.map(lambda x: tensor(rng.standard_normal(tuple(x.shape)), x), q)
        return {"q": q, "p": p}

    @torch.no_grad()
    def step(self, rng, state, step_size, estimator):
        h = float(step_size)
        keep = math.exp(-h * self.friction.item())
        spread = math.sqrt(1 - keep**2)
        gradient = estimator.estimate(rng, (), self.position(state))[0].gradient
        q, p = jax.tree.map(torch.clone, state["q"]), jax.tree.map(torch.clone, state["p"])
        for x, v, g in zip(jax.tree.leaves(q), jax.tree.leaves(p), jax.tree.leaves(gradient), strict=True):
            v.sub_(tensor(g, v).reshape(v.shape), alpha=h)
            v.mul_(keep).add_(tensor(rng.standard_normal(tuple(v.shape)), v), alpha=spread)
            x.add_(v, alpha=h)
        return {"q": q, "p": p}

    def position(self, state):
        return jax.tree.map(lambda x: x.numpy().copy(), state["q"])


inertia = Inertia()


def laplace_step(rng, position, step_size, estimator):
    """HMC with Laplace momenta, K = |p|_1, 1 + Poisson(2) leapfrogs, and a jitter of each coordinate's step.

    Right at every h: lengths and steps do not depend on the state; p - e g / 2, q + e sign p, p - e g / 2 are shears,
    and the map is its own inverse after p -> -p. The jitter takes the chain off the lattice of multiples of e.
    """
    view = FlatView(position)
    q0 = view.vector(position)
    draw = lambda array: torch.from_numpy(np.asarray(array)).to(q0.dtype)
    eps = math.sqrt(float(step_size)) * draw(rng.uniform(0.5, 1.5, q0.numel()))
    p = draw(rng.laplace(size=q0.numel()))
    q, (u0, g) = q0.clone(), view.look(rng, estimator, q0)
    start, u = u0 + float(p.abs().sum()), u0
    for _ in range(1 + int(rng.poisson(2.0))):
        p = p - 0.5 * eps * g
        q = q + eps * torch.sign(p)
        u, g = view.look(rng, estimator, q)
        p = p - 0.5 * eps * g
    end = u + float(p.abs().sum())
    return view.tree(q if math.log1p(-rng.random()) < start - end else q0)


laplace = simple_sampler(
    laplace_step,
    backend="host",
    needs=("gradient", "potential"),
    claims=exact("HMC with Laplace momenta, after Nishimura, Dunson and Lu 2020"),
)


def barker_step(rng, position, step_size, estimator):
    """Barker's proposal of Livingstone and Zanella (2022), y = x +- z, z ~ N(0, 2h), by torch.bernoulli.

    Right at every h: q(x, y) = 2 phi(y - x) / (1 + exp((y - x) g(x))) in each coordinate, so that the log ratio is
    U(x) - U(y) + sum log sigma((y - x) g(y)) - log sigma(-(y - x) g(x)).
    """
    generator, view = seeded(rng), FlatView(position)
    x = view.vector(position)
    u, g = view.look(rng, estimator, x)
    z = math.sqrt(2 * float(step_size)) * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    along = torch.bernoulli(torch.sigmoid(-z * g), generator=generator)
    jump = (2 * along - 1) * z
    v, k = view.look(rng, estimator, x + jump)
    log_ratio = u - v + float((F.logsigmoid(jump * k) - F.logsigmoid(-jump * g)).sum())
    toss = torch.rand((), generator=generator, dtype=torch.float64)
    return view.tree(x + jump if torch.log(toss).item() < log_ratio else x)


barker = simple_sampler(
    barker_step,
    backend="host",
    needs=("gradient", "potential"),
    claims=exact("Livingstone and Zanella 2022"),
)
