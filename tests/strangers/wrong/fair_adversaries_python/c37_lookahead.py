"""SGLD inside Lookahead (Zhang et al. 2019): every k steps the fast weights are pulled back to the slow ones."""

import torch


def torch_generator(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


class LookaheadSGLD:
    backend = "host"

    def __init__(self, alpha=0.5, k=5):
        self.alpha = alpha
        self.k = k

    def init(self, rng, position, estimator):
        fast = torch.tensor(position)
        return {"position": fast, "slow": fast.clone(), "count": 0}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        fast, slow, count = state["position"], state["slow"], state["count"]
        gradient = torch.as_tensor(estimator.estimate(rng, (), fast.numpy())[0].gradient)
        noise = torch.randn(fast.shape, generator=torch_generator(rng), dtype=fast.dtype)
        fast = fast - h * gradient + (2 * h) ** 0.5 * noise
        count += 1
        if count % self.k == 0:
            slow = slow + self.alpha * (fast - slow)
            fast = slow.clone()
        return {"position": fast, "slow": slow, "count": count}
