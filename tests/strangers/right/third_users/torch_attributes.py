"""Optimisers of torch that keep what they need as attributes, not in their groups or their state."""

import torch
from torch.optim import SGD, Optimizer


class RootKept(Optimizer):
    """SGLD on the mean loss; the factor of the noise is worked out once."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0):
        super().__init__(params, dict(lr=lr, num_data=num_data))
        self._root = (2 * temperature / num_data) ** 0.5

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"])
                    p.add_(torch.randn_like(p), alpha=self._root * group["lr"] ** 0.5)
        return loss


class OwnGenerator(Optimizer):
    """SGLD on the mean loss with a generator of its own, so that a run can be repeated."""

    def __init__(self, params, lr=1e-4, num_data=1000, seed=0):
        super().__init__(params, dict(lr=lr, num_data=num_data))
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    noise = torch.randn(p.shape, generator=self.generator, dtype=p.dtype)
                    p.add_(p.grad, alpha=-group["lr"])
                    p.add_(noise, alpha=(2 * group["lr"] / group["num_data"]) ** 0.5)


class Scaled(SGD):
    """Gradient descent whose step is scaled by an attribute."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr=lr)
        self.factor = 1.0

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-self.factor * group["lr"])


class Around(Optimizer):
    """Noise around another optimiser, an attribute that has the same groups."""

    def __init__(self, params, lr=1e-4, num_data=1000):
        params = list(params)
        super().__init__(params, dict(lr=lr, num_data=num_data))
        self.inner = Scaled(params, lr)
        self.inner.param_groups = self.param_groups

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(torch.randn_like(p), alpha=(2 * group["lr"] / group["num_data"]) ** 0.5)
        self.inner.step()


class ModuleInState:
    """A parameter and its optimiser are the state of a sampler in Python."""

    backend = "host"

    def init(self, rng, position, estimator):
        parameter = torch.nn.Parameter(torch.tensor(position))
        return parameter, RootKept([parameter], lr=1e-2, num_data=1)

    def position(self, state):
        return state[0].detach().numpy()

    def step(self, rng, state, step_size, estimator):
        torch.manual_seed(int(rng.integers(2**31)))
        parameter, optimiser = state
        for group in optimiser.param_groups:
            group["lr"] = step_size
        x = parameter.detach().numpy()
        parameter.grad = torch.from_numpy(estimator.estimate(rng, (), x)[0].gradient)
        optimiser.step()
        return parameter, optimiser
