"""pSGLD whose preconditioner is learnt during a burn-in and kept from then on.

While `burn_in` steps last, the metric 1 / (eps + sqrt(v)) follows a running mean v of squared gradients, as in RMSprop. Afterwards the metric
is frozen: samples then come from Langevin dynamics with a constant preconditioner, which needs no correction term. With `burn_in=0` nothing
is learnt, and the step is that of SGLD. The running mean goes on beside the frozen one, as a diagnostic (`sharpness`).

The loss is the mean over `num_data` data.
"""

import math

import torch


class FrozenMetricSGLD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1000, burn_in=1000, beta=0.99, eps=1e-3, temperature=1.0):
        if lr <= 0 or eps <= 0:
            raise ValueError("lr and eps are positive")
        if not 0 <= beta < 1:
            raise ValueError("beta lies in [0, 1)")
        defaults = {
            "lr": lr,
            "num_data": num_data,
            "burn_in": burn_in,
            "beta": beta,
            "eps": eps,
            "temperature": temperature,
        }
        super().__init__(params, defaults)

    def _begin(self, p):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["square"] = torch.zeros_like(p)
            state["frozen"] = None
        return state

    @staticmethod
    def _metric(state, group):
        if group["burn_in"] == 0:
            return None
        if state["frozen"] is None:
            square = state["square"] / (1 - group["beta"] ** state["step"])
        else:
            square = state["frozen"]
        return square.sqrt().add_(group["eps"]).reciprocal_()

    def sharpness(self):
        """The mean of the running second moments, for the log of a run."""
        return {id(p): float(state["square"].mean()) for p, state in self.state.items()}

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, beta = group["lr"], group["beta"]
            std = math.sqrt(2 * lr * group["temperature"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._begin(p)
                state["step"] += 1
                state["square"].mul_(beta).addcmul_(p.grad, p.grad, value=1 - beta)
                if state["step"] == group["burn_in"]:
                    state["frozen"] = state["square"]
                metric, noise = self._metric(state, group), torch.randn_like(p)
                if metric is None:
                    p.add_(p.grad, alpha=-lr).add_(noise, alpha=std)
                else:
                    p.addcmul_(metric, p.grad, value=-lr).addcmul_(metric.sqrt(), noise, value=std)
        return loss
