"""Planted bugs of splittings: stages missing, repeated, in the wrong order, of the wrong length."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.dynamics.underdamped import MomentumState, PhasePoint
from sgmcmc_verification.samplers.interface.claims import EpochLaw, StationaryMoments
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.overdamped.leimkuhler_matthews import LeimkuhlerMatthews, LeimkuhlerMatthewsState
from sgmcmc_verification.samplers.underdamped.splitting import BAOAB, OBABO, ornstein_uhlenbeck
from sgmcmc_verification.samplers.underdamped.ubu import UBU


def add(x, t, y):
    """x + t y, leaf by leaf."""
    return jax.tree.map(lambda a, b: a + t * b, x, y)


@dataclass(frozen=True)
class Stages(BAOAB):
    """A splitting with free lengths: `stages` is a tuple of (letter, share of the step).

    Letters: A, B, O as in `LangevinSplitting`; b is a kick with the gradient of the last B.
    """

    stages: ClassVar[tuple[tuple[str, float], ...]] = (("B", 0.5), ("A", 0.5), ("O", 1.0), ("A", 0.5), ("B", 0.5))

    def pack(self, key, z, estimator):
        return MomentumState(z.position, z.momentum, estimator.init(key, z.position))

    def noise(self, key, r, t):
        """The stage O."""
        return ornstein_uhlenbeck(key, r, t, self.friction, self.temperature)

    def step(self, key, state: MomentumState, step_size, estimator):
        x, r, estate = state
        gradient = None
        keys = jax.random.split(key, len(self.stages))
        for stage_key, (letter, share) in zip(keys, self.stages, strict=True):
            t = share * step_size
            if letter == "A":
                x = add(x, t, r)
            elif letter == "O":
                r = self.noise(stage_key, r, t)
            else:
                if letter == "B":
                    estimate, estate = estimator.estimate(stage_key, estate, x)
                    gradient = estimate.gradient
                r = add(r, -t, gradient)
        return MomentumState(x, r, estate)


def word(*stages: tuple[str, float]) -> type[Stages]:
    """BAOAB with other stages."""
    return dataclass(frozen=True)(type("Planted", (Stages,), {"stages": stages}))


@dataclass(frozen=True)
class NoSquareRoot(OBABO):
    """O: r <- c r + (1 - c^2) sqrt(T) R."""

    def step(self, key, state, step_size, estimator):
        first, second, gradient_key = jax.random.split(key, 3)
        c = jnp.exp(-0.5 * self.friction * step_size)
        scale = (1 - c**2) * jnp.sqrt(self.temperature)
        refresh = lambda k, r: jax.tree.map(lambda a, n: c * a + scale * n, r, normal_like(k, r))
        x, r, gradient, estate = state
        r = add(refresh(first, r), -0.5 * step_size, gradient)
        x = add(x, step_size, r)
        estimate, estate = estimator.estimate(gradient_key, estate, x)
        r = refresh(second, add(r, -0.5 * step_size, estimate.gradient))
        return state._replace(position=x, momentum=r, gradient=estimate.gradient, estate=estate)


@dataclass(frozen=True)
class SharedNoise(OBABO):
    """Both O of a step use one key."""

    def step(self, key, state, step_size, estimator):
        noise_key, gradient_key = jax.random.split(key)
        h, C, T = step_size, self.friction, self.temperature
        x, r, gradient, estate = state
        r = add(ornstein_uhlenbeck(noise_key, r, 0.5 * h, C, T), -0.5 * h, gradient)
        x = add(x, h, r)
        estimate, estate = estimator.estimate(gradient_key, estate, x)
        r = ornstein_uhlenbeck(noise_key, add(r, -0.5 * h, estimate.gradient), 0.5 * h, C, T)
        return state._replace(position=x, momentum=r, gradient=estimate.gradient, estate=estate)


@dataclass(frozen=True)
class WrongDecay(Stages):
    """O: r <- exp(-C t) r + sqrt(T (1 - exp(-C t))) R."""

    def noise(self, key, r, t):
        c = jnp.exp(-self.friction * t)
        scale = jnp.sqrt(self.temperature * (1 - c))
        return jax.tree.map(lambda a, n: c * a + scale * n, r, normal_like(key, r))


@dataclass(frozen=True)
class ShortTimeNoise(UBU):
    """U with the leading term T C t^3 / 6 of the variance of the position's own noise, fit for C t << 1."""

    def step(self, key, state, step_size, estimator):
        first, gradient_key, last = jax.random.split(key, 3)
        x, r = self.drift(first, state.position, state.momentum, 0.5 * step_size)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        x, r = self.drift(last, x, add(r, -step_size, estimate.gradient), 0.5 * step_size)
        return state._replace(position=x, momentum=r, estate=estate)

    def drift(self, key, x, r, t):
        """The stage U."""
        kick_key, own_key = jax.random.split(key)
        C, T, e = self.friction, self.temperature, jnp.exp(-self.friction * t)
        kick = jax.tree.map(lambda n: jnp.sqrt(T * (1 - e * e)) * n, normal_like(kick_key, r))
        own = jax.tree.map(lambda n: jnp.sqrt(T * C * t**3 / 6) * n, normal_like(own_key, r))
        x = add(add(add(x, (1 - e) / C, r), (1 - e) / (C * (1 + e)), kick), 1.0, own)
        return x, jax.tree.map(lambda b, n: e * b + n, r, kick)


class ReportingState(NamedTuple):
    """Position, momentum, the momentum that is reported, the estimator's own state."""

    position: Any
    momentum: Any
    reported: Any
    estate: Any


@dataclass(frozen=True)
class ReportsEarlyMomentum(BAOAB):
    """BAOAB whose reported momentum lacks the last half kick."""

    def init(self, key, position, estimator):
        state = super().init(key, position, estimator)
        return ReportingState(position, state.momentum, state.momentum, state.estate)

    def pack(self, key, z, estimator):
        return ReportingState(z.position, z.momentum, z.momentum, estimator.init(key, z.position))

    def unpack(self, state: ReportingState):
        return PhasePoint(state.position, state.reported)

    def step(self, key, state, step_size, estimator):
        first, noise_key, last = jax.random.split(key, 3)
        h = step_size
        estimate, estate = estimator.estimate(first, state.estate, state.position)
        r = add(state.momentum, -0.5 * h, estimate.gradient)
        x = add(state.position, 0.5 * h, r)
        r = ornstein_uhlenbeck(noise_key, r, h, self.friction, self.temperature)
        x = add(x, 0.5 * h, r)
        estimate, estate = estimator.estimate(last, estate, x)
        return ReportingState(x, add(r, -0.5 * h, estimate.gradient), r, estate)


@dataclass(frozen=True)
class NoiseNotAveraged(LeimkuhlerMatthews):
    """x' = x - h grad U + sqrt(T h / 2) (R + R), the same draw twice."""

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, state.estate, state.hidden)
        noise = normal_like(noise_key, state.hidden)
        scale = jnp.sqrt(0.5 * self.temperature * step_size)
        hidden = jax.tree.map(
            lambda x, g, n: x - step_size * g + scale * (n + n), state.hidden, estimate.gradient, noise
        )
        return LeimkuhlerMatthewsState(hidden, noise, jnp.asarray(step_size, state.last_step_size.dtype), estate)

    def position(self, state):
        return state.hidden


@dataclass(frozen=True)
class EulerMaruyamaClaimsTwo(NoiseNotAveraged):
    """Euler-Maruyama under the claim of an invariant law of order 2."""

    @property
    def claims(self):
        return super().claims.amended(without=(StationaryMoments,))


@dataclass(frozen=True)
class EpochsClaimTwo(LeimkuhlerMatthews):
    """The order that exact gradients give is claimed for epochs of minibatches, which reduce it to 1."""

    @property
    def claims(self):
        return super().claims.amended(EpochLaw(order=2))


LINE = ("gaussian-1d-scaled", "double-well")
LIMIT = "pi_h -> pi as h -> 0"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "ubu-noise-for-short-times",
        "ubu",
        ShortTimeNoise,
        "the position's own noise from the leading term of its variance: of order 2 as well, wrong for C h of order 1",
        Kill("exact_without_force", "gaussian-correlated-2d", "z' = e^(J h) z + N(0, ..) for U = 0"),
        "order",
    ),
    planted(
        "baoab-full-kick",
        "baoab",
        word(("B", 1.0), ("A", 0.5), ("O", 1.0), ("A", 0.5), ("B", 1.0)),
        "two full kicks where half kicks belong: the force counts twice",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT),
        "stages",
        targets=LINE,
        diagnosis=r"drift of r.*Q grad H.* is counted twice",
    ),
    planted(
        "baoab-missing-half-drift",
        "baoab",
        word(("B", 0.5), ("A", 0.5), ("O", 1.0), ("B", 0.5)),
        "the second half step of the position is missing",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT),
        "stages",
        source="improbable-research/keanu#492",
        targets=LINE,
        diagnosis=r"drift of theta.*Q grad H.* is halved",
    ),
    planted(
        "baoab-stale-gradient",
        "baoab",
        word(("B", 0.5), ("A", 0.5), ("O", 1.0), ("A", 0.5), ("b", 0.5)),
        "the last kick uses the gradient from before the move",
        Kill("stationary_covariance", "gaussian-1d-scaled", "lambda Var x = T, Var r = T (1 - h^2 lambda / 4)"),
        "stages",
        "order",
        targets=LINE,
        diagnosis=r"of order 1: the h\^2 term of r.* from r",
    ),
    planted(
        "baoab-stages-in-wrong-order",
        "baoab",
        word(("B", 0.5), ("B", 0.5), ("A", 0.5), ("O", 1.0), ("A", 0.5)),
        "BBAOA for BAOAB: order 1",
        Kill("local_weak_order", "double-well", "E phi(z_h) = sum_{j <= 2} h^j L^j phi / j! + O(h^3)"),
        "stages",
        "order",
        targets=LINE,
        diagnosis=r"of order 1: .*symmetrically",
    ),
    planted(
        "baoab-full-noise-twice",
        "baoab",
        word(("B", 0.5), ("A", 0.5), ("O", 1.0), ("O", 1.0), ("A", 0.5), ("B", 0.5)),
        "the stage O is run twice: friction 2 C, and the law is right",
        Kill("generator_of_code", "gaussian-1d-scaled", "f_r = -grad U - C r"),
        "stages",
        targets=LINE,
        diagnosis=r"noise has the factor 2.*friction term .* is counted twice",
    ),
    planted(
        "baoab-reports-early-momentum",
        "baoab",
        ReportsEarlyMomentum,
        "positions are right; the momentum reported lacks the last half kick",
        Kill("stationary_covariance", "gaussian-1d-scaled", "lambda Var x = T, Var r = T (1 - h^2 lambda / 4)"),
        "reported",
        source="openmm/openmm#2532",
        diagnosis=r"holds more than unpack shows",
    ),
    planted(
        "baoab-noise-exponent",
        "baoab",
        WrongDecay,
        "noise of variance T (1 - exp(-C t)) for T (1 - exp(-2 C t)): half the temperature",
        Kill("defect", "double-well", "c_1 = c_2 = 0"),
        "variance",
        targets=LINE,
        diagnosis=r"noise has the factor 0\.5\b",
    ),
    planted(
        "obabo-noise-not-a-root",
        "obabo",
        NoSquareRoot,
        "partial refresh with noise (1 - c^2) R for sqrt(1 - c^2) R",
        Kill("gaussian_limit", "gaussian-1d-scaled", LIMIT),
        "variance",
        source="TuringLang/AdvancedHMC.jl#280",
        targets=LINE,
        diagnosis=r"variance of the noise goes like h\^2",
    ),
    planted(
        "obabo-noise-shared",
        "obabo",
        SharedNoise,
        "both refreshments of a step use the same key",
        Kill("key_discipline", "gaussian-pytree", "a key is consumed once"),
        "streams",
        source="pyro-ppl/numpyro#1949",
        targets=LINE,
    ),
    planted(
        "leimkuhler-matthews-noise-not-averaged",
        "leimkuhler-matthews",
        NoiseNotAveraged,
        "the draws of two steps averaged, R_n + R_{n+1}, are one draw: Euler-Maruyama",
        Kill("stationary_covariance", "gaussian-1d-scaled", "Var x = T / lambda"),
        "order",
        "streams",
        targets=LINE,
        diagnosis=r"variance has a bias",
    ),
    planted(
        "euler-maruyama-claims-order-two",
        "leimkuhler-matthews",
        EulerMaruyamaClaimsTwo,
        "Euler-Maruyama claims an invariant law of order 2",
        Kill("invariant_law_for_every_potential", LINE[0], "c_2 = 0 for every smooth U"),
        "order",
        "claims",
        targets=LINE,
    ),
    planted(
        "leimkuhler-matthews-claims-epochs-of-order-two",
        "leimkuhler-matthews",
        EpochsClaimTwo,
        "claims a law of order 2 with minibatches that are each used once in an epoch: it has order 1",
        Kill("epoch_law", "tiny-regression", "the law at the end of an epoch is pi + O(h^2)"),
        "order",
        "claims",
        "data",
        targets=(*LINE, "tiny-regression"),
    ),
)
