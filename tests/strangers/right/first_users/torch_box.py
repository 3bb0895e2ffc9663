import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def fold(y):
    return 1 - (1 - y.remainder(2)).abs()


def step(rng, position, h, estimator):
    U = lambda z: float(estimator.estimate(rng, (), z.numpy())[0].potential)
    x = torch.tensor(position)
    y = fold(x + (6 * h) ** 0.5 * torch.tensor(rng.uniform(-1, 1, size=x.shape), dtype=x.dtype))
    return (y if rng.exponential() > U(y) - U(x) else x).numpy()


reflected = simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("box",)))
