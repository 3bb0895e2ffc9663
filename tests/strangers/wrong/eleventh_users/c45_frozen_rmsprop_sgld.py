"""SGLD with a diagonal preconditioner that is learnt in a burn-in, and fixed from then on.

A preconditioner that goes on to learn depends on the position, and would need the divergence of its inverse in the drift
(Li et al. 2016 leave it out).  Here RMSprop's running average of squared gradients is taken as it is after `burn_in`
steps; the chain that follows has a constant metric.  `staleness` says how far the average has moved since, and thus
whether the burn-in was long enough.
"""

import torch


class FrozenRMSpropSGLD(torch.optim.Optimizer):
    """Gradients are those of the mean loss over `num_data` data, with weight decay as a Gaussian prior."""

    def __init__(self, params, lr=1e-3, num_data=1000, beta=0.99, eps=1e-4, burn_in=1000, weight_decay=0.0):
        if not 0 <= beta < 1:
            raise ValueError("beta has to be in [0, 1)")
        if eps <= 0 or lr <= 0:
            raise ValueError("eps and lr have to be positive")
        defaults = dict(lr=lr, num_data=num_data, beta=beta, eps=eps, burn_in=burn_in, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def _init_state(self, p):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["square_avg"] = torch.ones_like(p)
            state["frozen"] = None
        return state

    def staleness(self):
        """Mean relative change of the running averages since they were frozen."""
        changes = [
            (s["square_avg"] / s["frozen"] - 1).abs().mean() for s in self.state.values() if s["frozen"] is not None
        ]
        return float(torch.stack(changes).mean()) if changes else float("nan")

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self._update(p, p.grad, group)
        return loss

    def _update(self, p, grad, group):
        state = self._init_state(p)
        average = state["square_avg"]
        if state["step"] == group["burn_in"]:
            state["frozen"] = average
        average.mul_(group["beta"]).addcmul_(grad, grad, value=1 - group["beta"])
        state["step"] += 1

        square = average if state["frozen"] is None else state["frozen"]
        metric = square.sqrt().add_(group["eps"]).reciprocal_()
        drift = grad.add(p, alpha=group["weight_decay"]).mul_(metric)
        noise = torch.randn_like(p).mul_((2 * group["lr"] / group["num_data"] * metric).sqrt_())
        p.add_(drift, alpha=-group["lr"]).add_(noise)
