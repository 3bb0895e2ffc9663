"""Stochastic gradient Hamiltonian Monte Carlo (SGHMC), three discretisations."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumMixin, MomentumState, langevin_dynamics
from sgmcmc_verification.samplers.entry import EXPLICIT, FRICTIONS, Row, known_noise, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, Scalar, State
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.interface.estimates import CompensationMixin
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

Scheme = Literal["semi-implicit", "explicit", "symmetric"]


@dataclass(frozen=True)
class SGHMC(CompensationMixin, MomentumMixin):
    """Discretised underdamped Langevin dynamics d theta = r dt, dr = -grad U dt - C r dt + sqrt(2 C T) dW.

    semi-implicit (chen2014stochastic, equation (13), r before theta):
        r' = r - h grad U~(theta) - h C r + N(0, 2 C T h - h^2 V^),  theta' = theta + h r'
    explicit (ma2015complete, Algorithm 1 read literally: theta moves with the old r, r with the old theta):
        theta' = theta + h r,  r' = r - h grad U~(theta) - h C r + N(0, 2 C T h - h^2 V^)
    symmetric (chen2015convergence, section 4.1; A = drift, B = friction, O = gradient and noise):
        A(h/2) B(h/2) O(h) B(h/2) A(h/2), B: r <- exp(-C h/2) r, O: r <- r - h grad U~ + N(0, 2 C T h - h^2 V^)

    with V^ = 0 unless `compensate`. Differs from the sources in:
        1. the parameterisation (momentum and friction in SDE time, unit mass), and the temperature T;
        2. V^ is the covariance of the gradient, where chen2014stochastic has B = h V / 2.

    Args:
        friction: C > 0.
        temperature: T > 0.
        compensate: subtract the estimate's covariance from the injected noise.
        scheme: which discretisation.

    Error, for exact gradients or compensated noise: order 1 (semi-implicit, explicit), order 2 (symmetric), weakly
    and in the invariant law; the explicit scheme needs h lambda < C. Uncompensated gradient noise V inflates the
    temperature of a Gaussian target by 1 + h V / (2 C), exactly, for semi-implicit and symmetric.

    Raises:
        ValueError: if `friction` or `temperature` is not positive, or `scheme` is unknown.
    """

    friction: float = 1.0
    temperature: float = 1.0
    compensate: bool = False
    scheme: Scheme = "semi-implicit"

    backend = "jax"

    def __post_init__(self) -> None:
        require_positive(self, "friction", "temperature")
        require(self.scheme in ("semi-implicit", "explicit", "symmetric"), "scheme: unknown", self.scheme)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        order = 2 if self.scheme == "symmetric" else 1
        where = {
            "semi-implicit": Source("chen2014stochastic", "equation (13)"),
            "explicit": Source("ma2015complete", "Algorithm 1"),
            "symmetric": Source("chen2015convergence", "section 4.1"),
        }
        return Claims(
            where[self.scheme],
            StationaryLaw(order=order, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=order),
            StationaryMoments(self.discrete_law),
            IndependentNoise(),
            ShearingForce() if self.scheme != "explicit" else None,
            conditions=("exact gradient or compensated noise",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]]."""
        return langevin_dynamics(target, self.friction, self.temperature)

    def discrete_law(self, h: float, curvature: float) -> dict[str, float]:
        """Stationary variances on U = curvature x^2 / 2: fixed point of the 2 x 2 Lyapunov equation, solved by hand."""
        C, T = self.friction, self.temperature
        u, q = C * h / 2, h * h * curvature / 4
        if self.scheme == "semi-implicit":
            r = 1 / (1 - u - q)
            return {"position": T * (1 - u) * r / curvature, "momentum": T * r, "covariance": T * h / 2 * r}
        if self.scheme == "explicit":
            w = 2 * C * h - h * h * curvature - 4
            r = -4 * C / ((C - h * curvature) * w)
            x = 2 * C * (C * h - h * h * curvature - 2) / ((C - h * curvature) * w)
            return {"position": T * x / curvature, "momentum": T * r, "covariance": -T * h / 2 * r}
        x = u / np.sinh(u)
        return {
            "position": float(T * x / curvature),
            "momentum": float(T * x / (np.cosh(u) - q)),
            "covariance": 0.0,
        }

    def step(self, key: jax.Array, state: State, step_size: Scalar, estimator: Estimator) -> State:
        """Take one step."""
        gradient_key, noise_key = jax.random.split(key)
        h, C = step_size, self.friction
        x, r = state.position, state.momentum
        if self.scheme == "symmetric":
            x = jax.tree.map(lambda a, b: a + 0.5 * h * b, x, r)
            r = jax.tree.map(lambda b: jnp.exp(-0.5 * C * h) * b, r)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        covariance = estimate.covariance if self.compensate else None
        noise = injected_noise(noise_key, r, 2 * C * self.temperature * h, h, covariance)
        if self.scheme == "symmetric":
            r = jax.tree.map(lambda b, g, n: jnp.exp(-0.5 * C * h) * (b - h * g + n), r, estimate.gradient, noise)
            x = jax.tree.map(lambda a, b: a + 0.5 * h * b, x, r)
            return MomentumState(x, r, estate)
        new_r = jax.tree.map(lambda b, g, n: b - h * g - h * C * b + n, r, estimate.gradient, noise)
        mover = new_r if self.scheme == "semi-implicit" else r
        x = jax.tree.map(lambda a, b: a + h * b, x, mover)
        return MomentumState(x, new_r, estate)


ENTRIES: tuple[Row, ...] = (
    momentum_row("sghmc", plain(SGHMC), FRICTIONS, diffusion=published.UNDERDAMPED),
    momentum_row(
        "sghmc-compensated",
        plain(SGHMC, compensate=True),
        FRICTIONS,
        step_size=0.015,  # h V^ <= 2 C T for the strongest noise that the checks feed, else it cannot be compensated
        estimator=known_noise,
        diffusion=published.UNDERDAMPED,
    ),
    momentum_row(
        "sghmc-explicit",
        plain(SGHMC, scheme="explicit"),
        EXPLICIT,
        step_size=0.05,
        diffusion=published.UNDERDAMPED,
    ),
    momentum_row("sghmc-symmetric", plain(SGHMC, scheme="symmetric"), FRICTIONS, diffusion=published.UNDERDAMPED),
)
