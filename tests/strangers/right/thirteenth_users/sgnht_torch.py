"""The stochastic gradient Nose-Hoover thermostat (Ding et al. 2014) as a torch optimiser, by a symmetric splitting."""

import torch


class SGNHT(torch.optim.Optimizer):
    r"""Friction that adapts itself to the noise of minibatches, one thermostat for each tensor.

    For a tensor of n numbers, with U(theta) = num_data * loss + prior_precision |theta|^2 / 2,

        d theta = p dt
        d p     = -grad U dt - xi p dt + sqrt(2 A) dW
        d xi    = (p.p / n - 1) dt / Q

    whose stationary law is exp(-U) N(p; 0, 1) N(xi; A, 1 / (n Q)). White noise of the gradient raises the friction and leaves theta as it
    is. A step is

        kick(h)  drift(h/2)  thermostat(h/2)  friction(h/2)  noise(h)  friction(h/2)  thermostat(h/2)  drift(h/2)

    with the kick first as the gradient is known there: seen from the middle of a kick this is palindromic, and a kick moves no theta,
    so that the law of theta is of second order. (A simplification of BADODAB, Leimkuhler and Shang 2016: friction and noise are
    separate, so that nothing is divided by xi.)

    Args:
        params: tensors or groups.
        lr: time step h.
        num_data: data that the loss is the mean of.
        prior_precision: of a normal prior of mean 0.
        diffusion: A, the noise that is injected, and the friction to begin with.
        thermostat_mass: Q; a heavy thermostat follows slowly.
    """

    def __init__(self, params, lr, num_data, prior_precision=0.0, diffusion=1.0, thermostat_mass=1.0):
        for name, value in (("lr", lr), ("num_data", num_data), ("diffusion", diffusion), ("Q", thermostat_mass)):
            if not value > 0:
                raise ValueError(f"{name} has to be positive")
        if prior_precision < 0:
            raise ValueError("prior_precision has to be 0 or more")
        super().__init__(
            params,
            {
                "lr": lr,
                "num_data": num_data,
                "prior_precision": prior_precision,
                "diffusion": diffusion,
                "thermostat_mass": thermostat_mass,
            },
        )

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for theta in group["params"]:
                if theta.grad is not None:
                    self._move(theta, self._state_of(theta, group), group)
        return loss

    def _state_of(self, theta, group):
        state = self.state[theta]
        if "momentum" not in state:
            state["momentum"] = torch.randn_like(theta)
            state["xi"] = torch.full((), float(group["diffusion"]), dtype=theta.dtype, device=theta.device)
        return state

    @staticmethod
    def _heat(state, time, mass):
        state["xi"].add_(state["momentum"].square().mean() - 1, alpha=time / mass)

    def _move(self, theta, state, group):
        h, mass, p = group["lr"], group["thermostat_mass"], state["momentum"]
        p.sub_(theta.grad, alpha=h * group["num_data"]).sub_(theta, alpha=h * group["prior_precision"])
        theta.add_(p, alpha=h / 2)
        self._heat(state, h / 2, mass)
        friction = torch.exp(-state["xi"] * h / 2)
        p.mul_(friction)
        p.add_(torch.randn_like(p), alpha=(2 * group["diffusion"] * h) ** 0.5)
        p.mul_(friction)
        self._heat(state, h / 2, mass)
        theta.add_(p, alpha=h / 2)
