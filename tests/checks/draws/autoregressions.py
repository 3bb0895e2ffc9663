"""Chains of known laws: autoregressions, among them Euler steps of a Langevin equation on a Gaussian target."""

import numpy as np
from scipy.signal import lfilter

from sgmcmc_verification.targets.registry import target


def autoregression(generator, chains, draws, memory, mean, sd):
    """Stationary chains (chains, draws) of x' = m + memory (x - m) + noise with the law N(m, sd^2)."""
    noise = generator.standard_normal((chains, draws)) * np.sqrt(1 - memory**2)
    noise[:, 0] = generator.standard_normal(chains)
    return mean + sd * lfilter([1.0], [1.0, -memory], noise, axis=1)


def gaussian_chains(name, generator, draws, memory=0.6, temperature=1.0, chains=4):
    """Stationary chains (chains, draws, d) with the law of a Gaussian target at a temperature.

    The whitened coordinates are independent autoregressions with one memory.
    """
    law = target(name).gaussian
    root = np.linalg.cholesky(np.linalg.inv(law.precision)) * np.sqrt(temperature)
    normals = [autoregression(generator, chains, draws, memory, 0.0, 1.0) for _ in law.mean]
    return law.mean + np.stack(normals, axis=-1) @ root.T


def euler_chains(generator, step_size, draws, noise=2.0, chains=4):
    """Chains of x' = x - h U' + N(0, noise h) on `gaussian-1d-scaled`: an autoregression.

    With a = 1 - h P the stationary variance is noise h / (1 - a^2) = (noise / 2) / (P (1 - h P / 2)).
    """
    law = target("gaussian-1d-scaled").gaussian
    memory = 1 - step_size * law.precision[0, 0]
    sd = np.sqrt(noise * step_size / (1 - memory**2))
    return autoregression(generator, chains, draws, memory, law.mean[0], sd)[..., None]


def euler_runs(generator, step_size, draws, noise=2.0):
    """Runs h1, h2, h4 of `gaussian-1d-scaled`."""
    return {f"h{k}": euler_chains(generator, step_size / k, draws, noise) for k in (1, 2, 4)}
