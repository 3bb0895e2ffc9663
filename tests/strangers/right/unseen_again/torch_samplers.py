"""Bayesian deep learning in torch: four samplers behind the (init, step) interface."""

from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def to_torch(array):
    return torch.tensor(np.array(array))  # a copy: the updates below are in place


def torch_grad(estimator, rng, theta):
    return to_torch(estimator.estimate(rng, (), theta.numpy())[0].gradient)


# ------------------------------------------------------------------ an optimiser that adds noise


class SGLD(torch.optim.Optimizer):
    """lr is the time step; precond is a constant diagonal preconditioner, one number for even and one for odd."""

    def __init__(self, params, lr, precond=(1.0, 0.5)):
        super().__init__(params, dict(lr=lr, precond=precond))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                G = torch.full_like(p, group["precond"][0]).flatten()
                G[1::2] = group["precond"][1]
                G = G.view_as(p)
                p.add_(G * p.grad, alpha=-lr)
                p.add_((2 * lr * G).sqrt() * torch.randn_like(p))


def sgld_step(rng, position, step_size, estimator):
    p = torch.nn.Parameter(to_torch(position))
    optimizer = SGLD([p], lr=float(step_size))
    optimizer.zero_grad()
    p.grad = torch_grad(estimator, rng, p.detach())
    optimizer.step()
    return p.detach().numpy()


optimizer_sgld = simple_sampler(sgld_step, backend="host")


# ------------------------------------------------------------------ SGHMC, ABOBA splitting


class SGHMCState(NamedTuple):
    position: np.ndarray
    momentum_buffer: np.ndarray


class SGHMC:
    backend = "host"

    def __init__(self, friction=1.0):
        self.friction = friction

    def init(self, rng, position, estimator):
        torch.manual_seed(int(rng.integers(2**31)))
        theta = to_torch(position)
        return SGHMCState(theta.numpy(), torch.randn_like(theta).numpy())

    def step(self, rng, state, step_size, estimator):
        torch.manual_seed(int(rng.integers(2**31)))
        eps = float(step_size)
        theta, v = to_torch(state.position), to_torch(state.momentum_buffer)
        decay = float(np.exp(-self.friction * eps))
        std = float(np.sqrt(-np.expm1(-2 * self.friction * eps)))
        theta.add_(v, alpha=eps / 2)
        grad = torch_grad(estimator, rng, theta)
        v.add_(grad, alpha=-eps / 2)
        v.mul_(decay).add_(torch.normal(torch.zeros_like(v), std * torch.ones_like(v)))
        v.add_(grad, alpha=-eps / 2)
        theta.add_(v, alpha=eps / 2)
        return SGHMCState(theta.numpy(), v.numpy())


# ------------------------------------------------------------------ mSGNHT: a thermostat per weight


class ThermostatPerWeight:
    backend = "host"

    def __init__(self, A=1.0):
        self.A = A

    def _generator(self, rng):
        return torch.Generator().manual_seed(int(rng.integers(2**31)))

    def init(self, rng, position, estimator):
        gen = self._generator(rng)
        theta = to_torch(position)
        u = torch.randn(theta.shape, generator=gen, dtype=theta.dtype)
        alpha = self.A + torch.randn(theta.shape, generator=gen, dtype=theta.dtype)
        return {"theta": theta.numpy(), "u": u.numpy(), "alpha": alpha.numpy()}

    def position(self, state):
        return state["theta"]

    def step(self, rng, state, step_size, estimator):
        gen, h = self._generator(rng), float(step_size)
        theta, u, alpha = (to_torch(state[name]) for name in ("theta", "u", "alpha"))
        noise = torch.randn(u.shape, generator=gen, dtype=u.dtype)
        u = u - h * torch_grad(estimator, rng, theta) - h * alpha * u + (2 * self.A * h) ** 0.5 * noise
        theta = theta + h * u
        alpha = alpha + h * (u * u - 1)
        return {"theta": theta.numpy(), "u": u.numpy(), "alpha": alpha.numpy()}


# ------------------------------------------------------------------ Barker proposal, with Metropolis


class Barker:
    """Livingstone and Zanella: flip the sign of a symmetric jump z with probability 1 / (1 + exp(z dlogpi))."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "n_accept": 0, "n_total": 0}

    def position(self, state):
        return state["position"]

    def step(self, rng, state, step_size, estimator):
        gen = torch.Generator()
        gen.manual_seed(int(rng.integers(2**31)))
        x = to_torch(state["position"])
        at_x = estimator.estimate(rng, (), x.numpy())[0]
        score_x = -to_torch(at_x.gradient)
        z = float(2 * step_size) ** 0.5 * torch.randn(x.shape, generator=gen, dtype=x.dtype)
        keep = torch.rand(x.shape, generator=gen, dtype=x.dtype) < torch.sigmoid(z * score_x)
        z = torch.where(keep, z, -z)
        y = x + z
        at_y = estimator.estimate(rng, (), y.numpy())[0]
        score_y = -to_torch(at_y.gradient)
        log_alpha = float(at_x.potential) - float(at_y.potential)
        log_alpha += float(
            torch.sum(torch.nn.functional.softplus(-z * score_x) - torch.nn.functional.softplus(z * score_y))
        )
        accept = bool(torch.log(1 - torch.rand((), generator=gen, dtype=torch.float64)) < log_alpha)
        return {
            "position": y.numpy() if accept else x.numpy(),
            "n_accept": state["n_accept"] + int(accept),
            "n_total": state["n_total"] + 1,
        }
