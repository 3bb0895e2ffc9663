"""Splittings of the underdamped Langevin equation, each written as a word over exact sub-flows."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import CachedMomentumMixin, PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import FRICTIONS, SPLITTING, Row, momentum_row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import (
    Claims,
    Diffusion,
    EpochLaw,
    ExactFreeMotion,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
    StationaryMoments,
)
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.numerics.ornstein_uhlenbeck import decay_ratio, tanh_excess
from sgmcmc_verification.samplers.validation import require, require_positive
from sgmcmc_verification.targets.target import Target

Scheme = Literal["BAOAB", "ABOBA", "OBABO", "OABAO", "UBU", "BUB"]

SOURCES = {
    "BAOAB": Source("leimkuhler2013rational", "the method BAOAB"),
    "ABOBA": Source("leimkuhler2013rational", "the method ABOBA"),
    "OBABO": Source("leimkuhler2013rational", "the method OBABO"),
    "OABAO": Source("leimkuhler2013rational", "the method OABAO"),
    "UBU": Source("sanzserna2021wasserstein", "the integrator UBU"),
    "BUB": Source("sanzserna2021wasserstein", "the integrator BUB"),
}

# (lambda Var x, Var r) over T on U = lambda x^2 / 2 as functions of q = h^2 lambda / 4, whatever the friction
_QUADRATIC_LAWS = {
    "BAOAB": lambda q: (1.0, 1 - q),
    "ABOBA": lambda q: (1.0, 1 / (1 - q)),
    "OBABO": lambda q: (1 / (1 - q), 1.0),
    "OABAO": lambda q: (1 - q, 1.0),
}


def _pair_law(word: str, h: float, curvature: float, friction: float, temperature: float) -> dict[str, float]:
    """Stationary second moments of UBU or BUB on U = curvature x^2 / 2: S = A S A^T + N.

    Source: sanzserna2021wasserstein, the covariance of the flow U as printed (`free_langevin` computes it otherwise).
    """
    matrix, noise = np.eye(2), np.zeros((2, 2))
    for letter in word:
        t = h / word.count(letter)
        a, e = friction * t, np.exp(-friction * t)
        flow, own = np.array([[1.0, 0.0], [-t * curvature, 1.0]]), np.zeros((2, 2))
        if letter == "U":
            flow = np.array([[1.0, (1 - e) / friction], [0.0, e]])
            across = (1 - e) ** 2 / friction
            own = temperature * np.array([[(2 * a - 3 + 4 * e - e * e) / friction**2, across], [across, 1 - e * e]])
        matrix, noise = flow @ matrix, flow @ noise @ flow.T + own
    law = np.linalg.solve(np.eye(4) - np.kron(matrix, matrix), noise.ravel())
    return {"position": float(law[0]), "momentum": float(law[3]), "covariance": float(law[1])}


class SplittingState(NamedTuple):
    """Position, momentum, the gradient at the position if the next step starts with it (else None), estimator state."""

    position: Position
    momentum: Tree
    gradient: Tree
    estate: EstimatorState


def ornstein_uhlenbeck(key: jax.Array, momentum: Tree, time: Scalar, friction: float, temperature: float) -> Tree:
    """The flow O: r <- exp(-C t) r + sqrt(T (1 - exp(-2 C t))) R, R ~ N(0, I), exact in law."""
    decay = jnp.exp(-friction * time)
    scale = jnp.sqrt(-temperature * jnp.expm1(-2 * friction * time))
    return jax.tree.map(lambda r, n: decay * r + scale * n, momentum, normal_like(key, momentum))


def free_langevin(
    key: jax.Array, position: Position, momentum: Tree, time: Scalar, friction: float, temperature: float
) -> tuple[Position, Tree]:
    """The flow U: the Langevin equation without force, exact in law for the pair (x, r).

        r' = e r + N_r,   x' = x + (1 - e) / C r + N_x,   e = exp(-C t),  a = C t,
        Var N_r = T (1 - e^2),   Cov(N_x, N_r) = T (1 - e)^2 / C,   Var N_x = T (2 a - 3 + 4 e - e^2) / C^2

    Source: sanzserna2021wasserstein, the solution of the Ornstein-Uhlenbeck part. Differs from the source in:
        1. the temperature, and the form of the covariance: N_x = Cov / Var N_r * N_r + an independent part of
           variance 2 T (a - 2 tanh(a / 2)) / C^2. The two are equal; this one has no cancellation, where the
           printed Var N_x loses all its digits in single precision below a = 1e-2.
    """
    a = friction * time
    ratio = decay_ratio(a)
    decay = jnp.exp(-a)
    # sqrt(time) and time ** 1.5 stand outside so that the roots below are of smooth, positive functions
    momentum_scale = jnp.sqrt(time) * jnp.sqrt(2 * friction * temperature * decay_ratio(2 * a))
    carried = time * ratio / (1 + decay)  # Cov / Var N_r = (1 - e) / (C (1 + e))
    position_scale = time * jnp.sqrt(time) * jnp.sqrt(friction * temperature * tanh_excess(0.5 * a) / 2)
    first_key, second_key = jax.random.split(key)
    momentum_noise = jax.tree.map(lambda n: momentum_scale * n, normal_like(first_key, momentum))
    own_noise = jax.tree.map(lambda n: position_scale * n, normal_like(second_key, momentum))
    position = jax.tree.map(
        lambda x, r, n, m: x + time * ratio * r + carried * n + m, position, momentum, momentum_noise, own_noise
    )
    return position, jax.tree.map(lambda r, n: decay * r + n, momentum, momentum_noise)


@dataclass(frozen=True)
class LangevinSplitting(CachedMomentumMixin):
    """Symmetric splitting of underdamped Langevin dynamics d theta = r dt, dr = -grad U dt - C r dt + sqrt(2 C T) dW.

    A scheme is a word; its letters are sub-flows run from left to right, each for h over the number of times that
    its letter occurs, so that every letter runs for a time h in all:

        A(t): x <- x + t r                               B(t): r <- r - t grad U~(x)
        O(t): r <- exp(-C t) r + sqrt(T (1 - exp(-2 C t))) R
        U(t): A and O at once, solved exactly (`free_langevin`)

    One gradient per step: it is evaluated where a kick needs it at a new position, and kept for as long as the
    position stays, across the end of a step too (BAOAB, OBABO, BUB).

    Source: leimkuhler2013rational, for the words in A, B, O; sanzserna2021wasserstein for those in U, B. Differs from
    the sources in:
        1. unit mass, and stochastic gradients: with the gradient kept, the two half kicks around a position share the
           noise of one estimate.
        2. the letter B is a kick and O the whole Ornstein-Uhlenbeck process; the symmetric scheme of
           chen2015convergence, also of the form ABOBA, is `SGHMC(scheme="symmetric")`.

    Args:
        scheme: the word.
        friction: C > 0.
        temperature: T > 0; the law is exp(-(U + |r|^2 / 2) / T).
        fresh_gradients: a new estimate for every kick instead of one per step (two gradients per step where the word
            has two B). The same law for exact gradients.

    Error: weak order 2 and invariant law O(h^2), for exact gradients; stable for h^2 lambda < 4. On quadratic targets
    BAOAB and ABOBA have the exact law of positions, OBABO and OABAO of momenta. Gradient noise V that is not accounted
    for adds O(h V / C) to the temperature: for BAOAB, lambda Var x / T = 1 + h^2 V coth(C h / 2) / (4 T (1 - q)) with
    q = h^2 lambda / 4; half of the excess with `fresh_gradients`. With minibatches
    that are each used once in an epoch the law at the end of an epoch keeps the error O(h^2), if one gradient is taken
    in a step.

    Raises:
        ValueError: if `scheme` is unknown, or `friction` or `temperature` is not positive.
    """

    scheme: Scheme = "BAOAB"
    friction: float = 1.0
    temperature: float = 1.0
    fresh_gradients: bool = False

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require(self.scheme in SOURCES, f"scheme: must be one of {', '.join(SOURCES)}", self.scheme)
        require_positive(self, "friction", "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            SOURCES[self.scheme],
            StationaryLaw(order=2, temperature=self.temperature),
            Diffusion(self.dynamics, weak_order=2),
            StationaryMoments(self.discrete_law),
            IndependentNoise(),
            ShearingForce(),
            ExactFreeMotion() if "U" in self.scheme else None,
            EpochLaw(order=2) if self.num_estimates == 1 else None,
            conditions=("exact gradient",),
        )

    def dynamics(self, target: Target) -> Dynamics:
        """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]]."""
        return langevin_dynamics(target, self.friction, self.temperature)

    def discrete_law(self, h: float, curvature: float) -> dict[str, float]:
        """Stationary variances on U = curvature x^2 / 2: fixed point of the 2 x 2 Lyapunov equation.

        Solved by hand for the words in A, B, O; for those in U, B numerically, with the printed moments of the flow U.
        """
        if self.scheme not in _QUADRATIC_LAWS:
            return _pair_law(self.scheme, h, curvature, self.friction, self.temperature)
        position, momentum = _QUADRATIC_LAWS[self.scheme](h * h * curvature / 4)
        T = self.temperature
        return {"position": T * position / curvature, "momentum": T * momentum, "covariance": 0.0}

    @property
    def num_estimates(self) -> int:
        """Number of gradients that a step estimates."""
        return self.scheme.count("B") if self.fresh_gradients else 1

    @property
    def keeps_gradient(self) -> bool:
        """True if the last kick of a step is at the final position, so that the next step starts with its gradient."""
        return not self.fresh_gradients and self.scheme.rindex("B") > max(map(self.scheme.rfind, "AU"))

    def step(self, key: jax.Array, state: SplittingState, step_size: Scalar, estimator: Estimator) -> SplittingState:
        """Take one step."""
        word = self.scheme
        # one key per estimate and per noisy sub-flow, none for A
        keys = iter(jax.random.split(key, self.num_estimates + word.count("O") + word.count("U")))
        x, r, gradient, estate = state
        for letter in word:
            t = step_size / word.count(letter)
            if letter == "A":
                x = jax.tree.map(lambda a, b, t=t: a + t * b, x, r)
                gradient = None  # the position has moved: the next kick asks for a new estimate
            elif letter == "O":
                r = ornstein_uhlenbeck(next(keys), r, t, self.friction, self.temperature)
            elif letter == "U":
                x, r = free_langevin(next(keys), x, r, t, self.friction, self.temperature)
                gradient = None
            else:
                if gradient is None:
                    estimate, estate = estimator.estimate(next(keys), estate, x)
                    gradient = estimate.gradient
                r = jax.tree.map(lambda b, g, t=t: b - t * g, r, gradient)
                # else kept, until the position moves or into the next step: one estimate per step
                if self.fresh_gradients:
                    gradient = None
        return SplittingState(x, r, gradient, estate)

    def pack(self, key: jax.Array, z: PhasePoint, estimator: Estimator) -> SplittingState:
        """State with the full variable z; caches are computed anew."""
        estate_key, gradient_key = jax.random.split(key)
        estate = estimator.init(estate_key, z.position)
        if not self.keeps_gradient:
            return SplittingState(z.position, z.momentum, None, estate)
        estimate, estate = estimator.estimate(gradient_key, estate, z.position)
        return SplittingState(z.position, z.momentum, estimate.gradient, estate)


@dataclass(frozen=True)
class BAOAB(LangevinSplitting):
    """`LangevinSplitting` B(h/2) A(h/2) O(h) A(h/2) B(h/2)."""

    scheme: Scheme = field(default="BAOAB", init=False)


@dataclass(frozen=True)
class ABOBA(LangevinSplitting):
    """`LangevinSplitting` A(h/2) B(h/2) O(h) B(h/2) A(h/2)."""

    scheme: Scheme = field(default="ABOBA", init=False)


@dataclass(frozen=True)
class OBABO(LangevinSplitting):
    """`LangevinSplitting` O(h/2) B(h/2) A(h) B(h/2) O(h/2)."""

    scheme: Scheme = field(default="OBABO", init=False)


@dataclass(frozen=True)
class OABAO(LangevinSplitting):
    """`LangevinSplitting` O(h/2) A(h/2) B(h) A(h/2) O(h/2)."""

    scheme: Scheme = field(default="OABAO", init=False)


ENTRIES: tuple[Row, ...] = (
    momentum_row("baoab", plain(BAOAB), SPLITTING, diffusion=published.UNDERDAMPED),
    momentum_row("aboba", plain(ABOBA), FRICTIONS, diffusion=published.UNDERDAMPED),
    momentum_row("obabo", plain(OBABO), SPLITTING, diffusion=published.UNDERDAMPED),
    momentum_row("oabao", plain(OABAO), FRICTIONS, diffusion=published.UNDERDAMPED),
)
