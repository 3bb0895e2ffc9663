"""Optimisers that sample with velocities, thermostats or a test (torch)."""

import math

import torch
from torch.optim import Optimizer


# v' = (1 - m) v - lr g + sqrt(2 m lr T / N) xi, w' = w + v'; y = w + (1 - m)/m v obeys y' = y - lr/m g(w) + s/m xi.
# So a = lr / m, s^2 = 2 lr T / (N m): tau = s^2 / (2 a) = T / N. Law exp(-N L / T) + O(lr), each parameter by the
# options of its own group, in both branches.
class GroupedSGHMC(Optimizer):
    """SGHMC of all groups at once: scalars of a group are lists beside the tensors, for foreach kernels."""

    def __init__(self, params, lr=1e-5, mdecay=0.1, num_data=1000, temperature=1.0, foreach=True):
        if lr <= 0 or num_data <= 0 or temperature <= 0:
            raise ValueError("lr, num_data and temperature have to be positive")
        if not 0 < mdecay <= 1:
            raise ValueError("mdecay has to be in (0, 1]")
        super().__init__(
            params, dict(lr=lr, mdecay=mdecay, num_data=num_data, temperature=temperature, foreach=foreach)
        )

    @staticmethod
    def _std(group):
        return math.sqrt(2 * group["mdecay"] * group["lr"] * group["temperature"] / group["num_data"])

    def _velocity(self, p):
        state = self.state[p]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(p, memory_format=torch.preserve_format)
        return state["velocity"]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        params, grads, velocities, kept, rates, stds = [], [], [], [], [], []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not group["foreach"]:
                    v = self._velocity(p)
                    v.mul_(1 - group["mdecay"]).add_(p.grad, alpha=-group["lr"])
                    v.add_(torch.randn_like(p), alpha=self._std(group))
                    p.add_(v)
                    continue
                params.append(p)
                grads.append(p.grad)
                velocities.append(self._velocity(p))
                kept.append(1 - group["mdecay"])
                rates.append(-group["lr"])
                stds.append(self._std(group))
        if params:
            noise = [torch.randn_like(p) for p in params]
            torch._foreach_mul_(velocities, kept)
            torch._foreach_add_(velocities, torch._foreach_mul(grads, rates))
            torch._foreach_add_(velocities, torch._foreach_mul(noise, stds))
            torch._foreach_add_(params, velocities)
        return loss


# SGNHT, a thermostat for each tensor of n numbers, lr = time h, U = N L:
# dp = -(N g + xi p) dt + sqrt(2 A T) dW, dw = p dt, dxi = (|p|^2 / n - T) dt.
# exp(-(U + |p|^2/2 + n (xi - A)^2 / 2) / T) is invariant: friction and noise give (xi - A)(n - |p|^2/T), the last
# equation n (xi - A)(|p|^2/n - T)/T = (xi - A)(|p|^2/T - n), for each tensor. Law of w: exp(-U / T) + O(lr).
class TensorwiseSGNHT(Optimizer):
    """Stochastic gradient Nose-Hoover thermostat with one friction a tensor."""

    def __init__(self, params, lr=1e-3, num_data=1000, temperature=1.0, diffusion=1.0):
        for name, value in dict(lr=lr, num_data=num_data, temperature=temperature, diffusion=diffusion).items():
            if value <= 0:
                raise ValueError(f"invalid {name}: {value}")
        super().__init__(params, dict(lr=lr, num_data=num_data, temperature=temperature, diffusion=diffusion))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, T, A = group["lr"], group["temperature"], group["diffusion"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.randn_like(p) * math.sqrt(T)
                    state["xi"] = torch.full((), A, dtype=p.dtype, device=p.device)
                r, xi = state["momentum"], state["xi"]
                r.mul_(1 - h * xi)
                r.add_(p.grad, alpha=-h * group["num_data"])
                r.add_(torch.randn_like(p), alpha=math.sqrt(2 * A * T * h))
                p.add_(r, alpha=h)
                xi.add_(r.square().mean() - T, alpha=h)
        return loss


# Scale-adapted SGHMC (Springenberg et al., 2016): V is learned in the burn-in and kept from then on; M = 1/(sqrt(V) + e).
# v' = (1 - m) v - lr M N g + sqrt(2 m lr M T) xi, w' = w + v': a = lr M / m times grad U, s^2 = 2 lr M T / m, in each
# coordinate tau = T with a constant M. Law after the burn-in exp(-U / T) + O(lr).
class ScaleAdaptedSGHMC(Optimizer):
    def __init__(
        self, params, lr=1e-3, num_burn_in_steps=2000, mdecay=0.1, num_data=1000, temperature=1.0, epsilon=0.1
    ):
        if lr <= 0 or num_data <= 0 or temperature <= 0 or epsilon <= 0:
            raise ValueError("lr, num_data, temperature and epsilon have to be positive")
        if num_burn_in_steps < 0 or not 0 < mdecay <= 1:
            raise ValueError("bad num_burn_in_steps or mdecay")
        defaults = dict(lr=lr, num_burn_in_steps=num_burn_in_steps, mdecay=mdecay, num_data=num_data)
        super().__init__(params, dict(defaults, temperature=temperature, epsilon=epsilon))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            m, lr = group["mdecay"], group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["iteration"] = 0
                    state["tau"] = torch.ones_like(p)
                    state["g"] = torch.ones_like(p)
                    state["v_hat"] = torch.ones_like(p)
                    state["velocity"] = torch.zeros_like(p)
                state["iteration"] += 1
                tau, g, v_hat, velocity = state["tau"], state["g"], state["v_hat"], state["velocity"]
                gradient = p.grad * group["num_data"]
                if state["iteration"] <= group["num_burn_in_steps"]:
                    r = 1.0 / (tau + 1.0)
                    tau.mul_(1.0 - g * g / (v_hat + 1e-16)).add_(1.0)
                    g.add_(r * (gradient - g))
                    v_hat.add_(r * (gradient * gradient - v_hat))
                minv = 1.0 / (v_hat.sqrt() + group["epsilon"])
                noise = torch.randn_like(p) * (2.0 * m * lr * group["temperature"] * minv).sqrt()
                velocity.mul_(1.0 - m).sub_(lr * minv * gradient).add_(noise)
                p.add_(velocity)
        return loss


# MALA for exp(-N L / T) with all parameters accepted or rejected together: proposal y = x - lr N g + sqrt(2 lr T) xi,
# log ratio = -N (L(y) - L(x)) / T + |xi|^2 / 2 - |x - y + lr N g(y)|^2 / (4 lr T) (groups with their own lr: sums).
# Detailed balance, so that the law is exp(-N L / T) at each lr.
class MetropolisLangevin(Optimizer):
    """Needs a closure that clears gradients, computes the mean loss of all data, goes backward and returns the loss."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0):
        if lr <= 0 or num_data <= 0 or temperature <= 0:
            raise ValueError("lr, num_data and temperature have to be positive")
        super().__init__(params, dict(lr=lr))
        self.num_data, self.temperature = num_data, temperature

    def __getstate__(self):
        return {**super().__getstate__(), "num_data": self.num_data, "temperature": self.temperature}

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        N, T = self.num_data, self.temperature
        loss = torch.as_tensor(closure()).detach().clone()
        moved, forward = [], 0.0
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                xi = torch.randn_like(p)
                moved.append((p, p.clone(), lr))
                forward = forward + 0.5 * xi.square().sum()
                p.add_(p.grad, alpha=-lr * N).add_(xi, alpha=math.sqrt(2 * lr * T))
        if not moved:
            return loss
        proposed = torch.as_tensor(closure()).detach().clone()
        backward = 0.0
        for p, x, lr in moved:
            backward = backward + (x - p + lr * N * p.grad).square().sum() / (4 * lr * T)
        log_ratio = -N * (proposed - loss) / T + forward - backward
        u = torch.rand((), dtype=loss.dtype, device=loss.device)
        if not torch.log(u) < log_ratio:
            for p, x, _ in moved:
                p.copy_(x)
        return loss
