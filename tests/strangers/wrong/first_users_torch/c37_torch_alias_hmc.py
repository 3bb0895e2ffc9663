"""HMC in PyTorch, in place to save memory."""

import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, position, h, estimator):
    def look(q):
        found = estimator.estimate(rng, (), q.numpy())[0]
        return float(found.potential), torch.tensor(found.gradient.tolist(), dtype=torch.float64)

    x = torch.tensor(position.tolist(), dtype=torch.float64)
    p = torch.from_numpy(rng.standard_normal(tuple(x.shape)))
    old = x
    u, g = look(x)
    start = u + 0.5 * float((p * p).sum())
    for _ in range(3):
        p.add_(g, alpha=-0.5 * float(h))
        x.add_(p, alpha=float(h))
        u, g = look(x)
        p.add_(g, alpha=-0.5 * float(h))
    end = u + 0.5 * float((p * p).sum())
    accepted = float(rng.random()) < torch.exp(torch.tensor(start - end)).item()
    return (x if accepted else old).numpy()


hmc = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
