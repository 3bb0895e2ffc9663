"""MALA with steps relative to the size of a parameter, as Adafactor has them.

Layers of a network differ in scale by orders of magnitude, and one learning rate does not suit all.  The step of each
tensor is scaled by its own root mean square r(w) = sqrt(mean(w^2) + floor^2):

    w' = w - lr r(w)^2 grad(w) + sqrt(2 lr) r(w) N(0, 1)

The scale depends on the position, so that forward and backward proposals differ in their widths as well as in their means;
all tensors are proposed together, and tested once.  The closure clears gradients, calls backward and returns the loss,
minus the log density.
"""

import math

import torch


def rms(w, floor):
    return torch.sqrt(w.square().mean() + floor**2)


def log_proposal(new, old, grad, lr, floor):
    """log density of the proposal `new` from `old`, up to a constant."""
    scale = rms(old, floor)
    residual = (new - old + lr * scale**2 * grad) / scale
    return -residual.square().sum() / (4 * lr) - torch.log(scale)


class RelativeMALA(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, floor=0.1, temperature=1.0):
        if lr <= 0 or floor <= 0 or temperature <= 0:
            raise ValueError("lr, floor and temperature have to be positive")
        super().__init__(params, dict(lr=lr, floor=floor, temperature=temperature))
        self.temperature = temperature
        self.accepted = 0
        self.proposed = 0

    def _tensors(self):
        return [(p, group) for group in self.param_groups for p in group["params"] if p.requires_grad]

    def _evaluate(self, closure):
        """Loss, and gradients of loss / temperature, at the present parameters."""
        with torch.enable_grad():
            loss = closure()
        grads = [p.grad.detach().clone() / self.temperature for p, _ in self._tensors()]
        return float(loss), grads

    @torch.no_grad()
    def step(self, closure):
        tensors = self._tensors()
        loss, grads = self._evaluate(closure)
        before = [p.detach().clone() for p, _ in tensors]
        for (p, group), grad in zip(tensors, grads):
            scale = rms(p, group["floor"])
            p.add_(-group["lr"] * scale**2 * grad + math.sqrt(2 * group["lr"]) * scale * torch.randn_like(p))
        after = [p.detach().clone() for p, _ in tensors]
        new_loss, new_grads = self._evaluate(closure)

        log_ratio = (loss - new_loss) / self.temperature
        for (_, group), old, new, grad, new_grad in zip(tensors, before, after, grads, new_grads):
            backward = log_proposal(old, new, new_grad, group["lr"], group["floor"])
            forward = log_proposal(new, old, grad, group["lr"], group["floor"])
            log_ratio += float(backward - forward)

        self.proposed += 1
        if math.log(max(float(torch.rand(())), 1e-300)) < log_ratio:
            self.accepted += 1
            return torch.tensor(new_loss)
        for (p, _), old in zip(tensors, before):
            p.copy_(old)
        return torch.tensor(loss)
