import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler


def step(rng, x, lr, estimator):
    theta = torch.tensor(np.asarray(x))
    grad = torch.tensor(np.asarray(estimator.estimate(rng, (), x)[0].gradient))
    noise = torch.from_numpy(np.asarray(rng.standard_normal(tuple(theta.shape))))
    theta.add_(grad, alpha=-lr).add_(noise, alpha=(2 * lr) ** 0.5)
    return theta.numpy()


sgld = simple_sampler(step, backend="host")
