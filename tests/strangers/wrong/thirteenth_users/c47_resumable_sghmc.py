"""SGHMC (Chen, Fox and Guestrin, 2014) with noise that can be reproduced from any epoch on.

    v' = (1 - a) v - lr g + N(0, 2 a lr T / N)        w' = w + v'

g is the gradient of the mean loss of a minibatch, N = `num_data`, a = `friction`. The noise comes from a generator that belongs to the
optimiser. At the beginning of each epoch it is seeded anew by `seed` and the number of the epoch, so that a run that is resumed from the
checkpoint of an epoch repeats what the first run did, whatever else has drawn random numbers in between.
"""

import math

import torch


class ResumableSGHMC(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-6, friction=0.1, num_data=50_000, batch_size=32, temperature=1.0, seed=0):
        if lr <= 0 or num_data < 1 or batch_size < 1:
            raise ValueError("lr, num_data and batch_size are positive")
        if not 0 < friction <= 1:
            raise ValueError("friction lies in (0, 1]")
        defaults = {"lr": lr, "friction": friction, "num_data": num_data, "temperature": temperature}
        super().__init__(params, defaults)
        self.seed = seed
        self.steps_per_epoch = math.ceil(num_data / batch_size)
        self.steps = 0
        self.generator = torch.Generator()

    def _begin_step(self):
        offset = self.steps % self.steps_per_epoch
        if offset == 0:
            self.generator.manual_seed(self.seed + offset)
        self.steps += 1

    def _noise(self, p):
        return torch.randn(p.shape, generator=self.generator, dtype=p.dtype)

    def state_dict(self):
        return {**super().state_dict(), "steps": self.steps}

    def load_state_dict(self, state_dict):
        state_dict = dict(state_dict)
        self.steps = state_dict.pop("steps", 0)
        super().load_state_dict(state_dict)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._begin_step()
        for group in self.param_groups:
            lr, friction = group["lr"], group["friction"]
            std = math.sqrt(2 * friction * lr * group["temperature"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(p)
                velocity = state["velocity"]
                velocity.mul_(1 - friction).add_(p.grad, alpha=-lr).add_(self._noise(p), alpha=std)
                p.add_(velocity)
        return loss
