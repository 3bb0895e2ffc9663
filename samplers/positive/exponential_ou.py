"""The exponential Ornstein-Uhlenbeck process: log-normal laws from unbiased estimates of their location."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.overdamped import reversible_dynamics
from sgmcmc_verification.samplers.entry import MANIFOLD_TIERS, Row
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, ExactLaw, Source
from sgmcmc_verification.samplers.interface.from_step import PositionMixin, PositionState
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class ExponentialOU(PositionMixin):
    """Exact transitions of the logarithm, an Ornstein-Uhlenbeck process, with a location estimated afresh.

        log theta' = mu^ + (log theta - mu^) e^-h + N(0, sigma^2 (1 - e^-2h))

    for independent log-normal laws, log theta ~ N(mu, sigma^2).

    Source: baker2018large, section 2.3 (log-normal laws). Differs from the source in:
        1. the process: a geometric Brownian motion, which the source names, has no stationary law.

    Args:
        scale: sigma > 0, standard deviation of log theta.

    Error: none for the exact location, at any step size. Unbiased estimates of variance v leave the mean of log theta
    exact and add tanh(h/2) v to its variance.

    Raises:
        ValueError: if `scale` is not positive, or the estimator returns no `statistics`.
    """

    scale: float = 1.0

    backend = "jax"
    needs = frozenset({"statistics"})

    def __post_init__(self) -> None:
        require_positive(self, "scale")

    def dynamics(self, target: Target) -> Dynamics:
        """H = U, D = sigma^2 diag(theta^2), Q = 0."""
        return reversible_dynamics(target, lambda z: self.scale**2 * jnp.diag(z * z))

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("baker2018large", "section 2.3"),
            ExactLaw(),
            Diffusion(self.dynamics),
            conditions=("exact location",),
            spaces=("positive",),
        )

    def step(self, key: jax.Array, state: PositionState, step_size: Scalar, estimator: Estimator) -> PositionState:
        """Take one step."""
        estimate_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(estimate_key, state.estate, state.position)
        if estimate.statistics is None:
            raise ValueError("estimator: ExponentialOU needs unbiased locations; use one that returns `statistics`")
        y = jnp.log(state.position)
        noise = self.scale * jnp.sqrt(-jnp.expm1(-2 * step_size)) * normal_like(noise_key, y)
        y = y - jnp.expm1(-step_size) * (estimate.statistics - y) + noise
        return PositionState(jnp.exp(y), estate)


@dataclass(frozen=True, eq=False)
class LogLocation(Stateless):
    """The mean of log data, as `statistics`, of all of them or of a minibatch with replacement.

    Args:
        logs: (N, K), logarithms of the data.
        batch_size: n; None for all data.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N.
    """

    logs: np.ndarray
    batch_size: int | None = None

    def __post_init__(self) -> None:
        total = len(self.logs)
        if self.batch_size is not None:
            require(1 <= self.batch_size <= total, f"batch_size: must lie between 1 and {total}", self.batch_size)

    def estimate(self, key: jax.Array, estate: EstimatorState, position: jax.Array) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        logs = jnp.asarray(np.asarray(self.logs), position.dtype)
        if self.batch_size is not None:
            logs = logs[jax.random.randint(key, (self.batch_size,), 0, len(self.logs))]
        return Estimate(None, statistics=jnp.mean(logs, axis=0)), estate


def _log_moments(target: Target) -> tuple[float, float]:
    """Mean and standard deviation of log theta."""
    mean, square = (target.moments[name].value for name in ("log theta[0]", "log theta[0]^2"))
    return mean, float(np.sqrt(square - mean**2))


ENTRIES: tuple[Row, ...] = (
    Row(
        "exponential-ou",
        lambda target: ExponentialOU(_log_moments(target)[1]),
        tiers=MANIFOLD_TIERS,
        targets=("log-normal", "log-normal-narrow"),
        step_size=0.05,  # an expectation over the noise is then resolved to round-off
        step_power=0.0,
        estimator=lambda target: LogLocation(np.full((1, target.size), _log_moments(target)[0])),
        diffusion=published.GEOMETRIC,
    ),
)
