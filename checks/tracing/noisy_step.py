"""A step with gradient noise of known covariance."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.tracing.potential_estimator import with_energy
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.entry import known_noise
from sgmcmc_verification.samplers.estimators.basic import KnownNoise, square_root
from sgmcmc_verification.samplers.estimators.host import HostExact, in_numpy
from sgmcmc_verification.samplers.interface.claims import UncompensatedNoise
from sgmcmc_verification.samplers.interface.sampler import Estimate, Sampler
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class HostNoise(HostExact):
    """`KnownNoise` for host samplers: it draws from their generator."""

    covariance: np.ndarray

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        estimate, estate = super().estimate(key, estate, position)
        flat, unravel = ravel_pytree(estimate.gradient)
        noisy = np.asarray(flat) + square_root(self.covariance) @ key.standard_normal(flat.shape)
        return in_numpy(Estimate(unravel(noisy), None, jnp.asarray(self.covariance))), estate


def noisy_step(subject: Subject, target: Target, scale: float = 1.0) -> JaxStep | HostStep:
    """The step with gradient noise N(0, scale V) of known, correlated V."""
    covariance = scale * known_noise(target).covariance
    sampler = subject.sampler(target)
    if sampler.backend == "host":
        return step_map(subject, target, HostNoise(target, covariance))
    return step_map(subject, target, with_energy(subject, target, KnownNoise(target, covariance)))


def compensates(sampler: Sampler) -> bool:
    """True if gradient noise of reported covariance leaves the law that exact gradients give."""
    return "covariance" in sampler.needs and UncompensatedNoise not in sampler.claims
