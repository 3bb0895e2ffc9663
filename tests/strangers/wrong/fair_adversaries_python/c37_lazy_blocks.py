"""SGLD with lazy updates, as for embedding tables: a step touches one pair of coordinates, which makes up for lost time."""

import torch

from sgmcmc_verification.samplers import simple_sampler

ROW = 2


def init(rng, position, estimator):
    weights = torch.tensor(position)
    return {"position": weights, "age": torch.zeros(weights.numel(), dtype=torch.long)}


@torch.no_grad()
def lazy_step(rng, state, lr, estimator):
    weights, age = state["position"].clone(), state["age"] + 1
    flat = weights.view(-1)

    rows = -(-flat.numel() // ROW)
    start = ROW * int(rng.integers(rows))
    touched = slice(start, min(start + ROW, flat.numel()))

    grad = torch.as_tensor(estimator.estimate(rng, (), weights.numpy())[0].gradient).reshape(-1)
    noise = torch.from_numpy(rng.standard_normal(flat[touched].numel()))
    missed = age[touched].to(flat.dtype)
    flat[touched] -= lr * missed * grad[touched]
    flat[touched] += (2 * lr) ** 0.5 * missed * noise
    age[touched] = 0
    return {"position": weights, "age": age}


lazy = simple_sampler(lazy_step, init=init, backend="host")
