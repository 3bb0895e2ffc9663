import torch


class UnderdampedLangevin:
    """OBA steps of underdamped Langevin dynamics on one block of weights."""

    backend = "host"

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def noise(self, theta):
        return torch.randn(theta.shape[-1], dtype=theta.dtype, generator=self.generator)

    def init(self, rng, position, estimator):
        self.generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        theta = torch.tensor(position)
        return {"position": theta, "velocity": torch.zeros_like(theta) + self.noise(theta)}

    @torch.no_grad()
    def step(self, rng, state, dt, estimator):
        self.generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        theta, v = state["position"], state["velocity"]
        force = -torch.as_tensor(estimator.estimate(rng, (), theta.numpy())[0].gradient)
        keep = torch.exp(torch.tensor(-self.gamma * float(dt), dtype=theta.dtype))
        v = keep * v + torch.sqrt(1 - keep**2) * self.noise(theta)
        v = v + float(dt) * force
        return {"position": theta + float(dt) * v, "velocity": v}


langevin = UnderdampedLangevin()
