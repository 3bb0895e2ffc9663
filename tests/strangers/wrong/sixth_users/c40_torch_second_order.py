"""Optimisers that sample with velocities, thermostats or a test (torch)."""

import math

import torch
from torch.optim import Optimizer


# WRONG: the deviation of the noise is computed after the loop over groups, by the options of the last one. A parameter of
# group i has a = lr_i / m_i and s = sqrt(2 m_l lr_l T_l / N) / m_i, tau = (m_l lr_l) / (m_i lr_i) T_l / N: with lr 1 : 2 the
# first group has twice its temperature. Right for one group, and in the loop (foreach=False).
class GroupedSGHMC(Optimizer):
    """SGHMC of all groups at once, for foreach kernels."""

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
        params, grads, velocities, kept, rates = [], [], [], [], []
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
        if params:
            noise = [torch.randn_like(p) for p in params]
            torch._foreach_mul_(velocities, kept)
            torch._foreach_add_(velocities, torch._foreach_mul(grads, rates))
            torch._foreach_add_(velocities, noise, alpha=self._std(group))
            torch._foreach_add_(params, velocities)
        return loss


# WRONG: |p|^2 is divided by the length of the tensor, its first axis of r numbers, not by its n numbers. With
# dxi = (|p|^2 / r - T) dt = (n / r) (|p|^2 / n - T r / n) dt the law is exp(-(U + |p|^2/2 + ..) / T'), T' = T r / n, since
# that is invariant: xi settles at A T / T'. Vectors are right; a matrix of c columns has the temperature T / c.
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
                n = len(r) if r.dim() else 1
                xi.add_(r.square().sum() / n - T, alpha=h)
        return loss


# WRONG: the comparison with the burn-in is the other way round: V is learned after it, for ever. With exact gradients,
# as lr -> 0, tau -> 1 and V -> G(w)^2 within a few steps, so that M = 1 / (|G| + e) depends on w, and its divergence is
# missing: y = w + (1 - m)/m v obeys dy = -M G dt + sqrt(2 M T) dW (Ito), in one dimension of the law exp(-U / T) / M =
# (|U'| + e) exp(-U / T). N(0, 1) with e = 0.1 gets the variance (0.1 + 1.596) / (0.1 + 0.798) = 1.89.
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
                if state["iteration"] > group["num_burn_in_steps"]:
                    r = 1.0 / (tau + 1.0)
                    tau.mul_(1.0 - g * g / (v_hat + 1e-16)).add_(1.0)
                    g.add_(r * (gradient - g))
                    v_hat.add_(r * (gradient * gradient - v_hat))
                minv = 1.0 / (v_hat.sqrt() + group["epsilon"])
                noise = torch.randn_like(p) * (2.0 * m * lr * group["temperature"] * minv).sqrt()
                velocity.mul_(1.0 - m).sub_(lr * minv * gradient).add_(noise)
                p.add_(velocity)
        return loss


# WRONG: the test compares mean losses, the proposal has N times their gradient. With d = y - x the logarithm of the ratio
# is -d.g / T + N d.g / T + O(lr) = (N - 1) d.g / T: to order sqrt(lr) the test adds +lr (N - 1) g to the mean move
# (E[d min(1, exp(a.d))] = 1/2 E[d d'] a, beyond E d), and what is left is -lr g with noise 2 lr T: law exp(-L / T), the
# temperature is N T for the posterior exp(-N L / T). Right for N = 1 alone.
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
        log_ratio = -(proposed - loss) / T + forward - backward
        u = torch.rand((), dtype=loss.dtype, device=loss.device)
        if not torch.log(u) < log_ratio:
            for p, x, _ in moved:
                p.copy_(x)
        return loss
