"""SGLD in torch with adaptive gradient clipping (Brock et al., 2021)."""

import torch


def adaptive_clip_(grad, weight, clipping=5.0, eps=1e-3):
    limit = clipping * weight.norm().clamp_min(eps)
    norm = grad.norm()
    if norm > limit:
        grad.mul_(limit / norm)
    return grad


class ClippedSGLD:
    backend = "host"

    def __init__(self, clipping=5.0):
        self.clipping = clipping

    def init(self, rng, position, estimator):
        return {"position": torch.as_tensor(position).clone()}

    @torch.no_grad()
    def step(self, rng, state, lr, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        w = state["position"]
        grad = torch.as_tensor(estimator.estimate(rng, (), w.numpy())[0].gradient).clone()
        adaptive_clip_(grad, w, self.clipping)
        return {"position": w.add(grad, alpha=-float(lr)).add(torch.randn_like(w), alpha=(2 * float(lr)) ** 0.5)}


clipped = ClippedSGLD()
