import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def cheap(x):
    return torch.sqrt(1 + x**2).sum()


def step(rng, position, h, estimator):
    def expensive(x):
        return float(estimator.estimate(rng, (), x.numpy())[0].potential)

    x = torch.tensor(position)
    y = x + (2 * h) ** 0.5 * torch.randn_like(x)
    gain = cheap(x) - cheap(y)
    if torch.rand((), dtype=x.dtype).log() >= gain:
        return position
    if torch.rand((), dtype=x.dtype).log() >= expensive(x) - expensive(y) - gain:
        return position
    return y.numpy()


delayed = simple_sampler(step, backend="host", claims=Claims(Source("", "Christen and Fox 2005"), ExactLaw()))
