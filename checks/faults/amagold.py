"""Planted bugs of AMAGOLD and MAKLA: the kinetic energy and its substitute, where the energy is taken, rejections."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.underdamped.amagold import AMAGOLD, AmagoldState
from sgmcmc_verification.samplers.underdamped.hmc import potential_of
from sgmcmc_verification.samplers.underdamped.makla import MAKLA


@dataclass(frozen=True)
class Work(AMAGOLD):
    """rho is made of weights (before, after) times h g . r and h g . r'."""

    weights: tuple[float, float] = (0.5, 0.5)

    def work(self, step_size, gradient, before, after):
        first, second = self.weights
        return step_size * (first * inner(gradient, before) + second * inner(gradient, after))


@dataclass(frozen=True)
class Decides(AMAGOLD):
    """The test and what follows on it, in parts."""

    flips: bool = True
    kinetic: bool = False
    late: float = 0.0
    tempered: bool = True

    def step(self, key, state, step_size, estimator):
        trajectory_key, energy_key, accept_key = jax.random.split(key, 3)
        x, r, estate, rho = self.trajectory(trajectory_key, state, step_size, estimator)
        where = jax.tree.map(lambda a, b: a - self.late * step_size * b, x, r)
        estimate, estate = estimator.estimate(energy_key, estate, where)
        potential = potential_of(estimate)
        gap = state.potential - potential + rho
        if self.kinetic:
            gap = gap + 0.5 * (inner(state.momentum, state.momentum) - inner(r, r))
        log_ratio = finite_or_reject(potential, gap / (self.temperature if self.tempered else 1.0))
        back = jax.tree.map(jnp.negative, state.momentum) if self.flips else state.momentum
        end = AmagoldState(x, r, potential, ())
        return accept(accept_key, log_ratio, end, state._replace(momentum=back, estate=()))._replace(estate=estate)


@dataclass(frozen=True)
class Explicit(AMAGOLD):
    """r' = (1 - h C) r - h g + N(0, 2 C T h), the step of SGHMC, which is not reversible."""

    def trajectory(self, key, state, step_size, estimator):
        h, C = step_size, self.friction
        x = jax.tree.map(lambda a, b: a + 0.5 * h * b, state.position, state.momentum)
        r, estate, rho = state.momentum, state.estate, 0.0
        keys = jax.random.split(key, 2 * self.num_steps)
        for i in range(self.num_steps):
            if i:
                x = jax.tree.map(lambda a, b: a + h * b, x, r)
            estimate, estate = estimator.estimate(keys[2 * i], estate, x)
            noise = injected_noise(keys[2 * i + 1], r, 2 * C * self.temperature * h)
            new = jax.tree.map(lambda b, d, n: (1 - h * C) * b - h * d + n, r, estimate.gradient, noise)
            rho = rho + self.work(h, estimate.gradient, r, new)
            r = new
        return jax.tree.map(lambda a, b: a + 0.5 * h * b, x, r), r, estate, rho


def deciding(**how):
    """A builder of `Decides`."""
    return lambda target, **options: Decides(**how, **options)


@dataclass(frozen=True)
class NoTurn(MAKLA):
    """A rejection keeps the sign of the momentum."""

    def rejected(self, momentum):
        return momentum


@dataclass(frozen=True)
class PotentialOnly(MAKLA):
    """The test compares potentials only."""

    def kinetic(self, momentum):
        return 0.0 * super().kinetic(momentum)


BALANCE = "pi(z) k(z, z') = pi(R z') k(R z', R z)"
LINE = ("anharmonic", "tiny-gaussian-data")

DEFECTS: tuple[Defect, ...] = (
    planted(
        "amagold-sign-of-rho",
        "amagold",
        lambda target, **options: Work(weights=(-0.5, -0.5), **options),
        "rho has the opposite sign",
        Kill("skew_detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "amagold-rho-of-new-momentum",
        "amagold",
        lambda target, **options: Work(weights=(0.0, 1.0), **options),
        "rho adds h g . r' for h g . (r + r') / 2",
        Kill("skew_detailed_balance", "tiny-gaussian-data", BALANCE),
        "metropolis",
        "gradient-noise",
        targets=LINE,
    ),
    planted(
        "amagold-keeps-momentum-on-rejection",
        "amagold",
        deciding(flips=False),
        "a rejection keeps the sign of the momentum",
        Kill("skew_detailed_balance", "anharmonic", "k(z, {R z}) is the chance of a rejection"),
        "metropolis",
        "state",
        targets=LINE,
    ),
    planted(
        "amagold-energy-before-last-half-step",
        "amagold",
        deciding(late=0.5),
        "the energy is that of the position before the last half step",
        Kill("skew_detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        "stages",
        targets=LINE,
        diagnosis=r"holds more than unpack shows",
    ),
    planted(
        "amagold-counts-kinetic-energy",
        "amagold",
        deciding(kinetic=True),
        "the test has the kinetic energies too, which rho stands for",
        Kill("skew_detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "amagold-energy-not-tempered",
        "amagold",
        deciding(tempered=False),
        "the energies are not divided by the temperature",
        Kill("skew_detailed_balance", "anharmonic", BALANCE, {"num_steps": 1, "friction": 2.0, "temperature": 0.5}),
        "metropolis",
        "options",
        targets=LINE,
    ),
    planted(
        "amagold-explicit-friction",
        "amagold",
        Explicit,
        "the friction acts on the old momentum only",
        Kill("skew_detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        "stages",
        targets=LINE,
    ),
    planted(
        "makla-keeps-momentum-on-rejection",
        "makla",
        NoTurn,
        "a rejection keeps the sign of the momentum",
        Kill("law_of_runs", "anharmonic", "time averages of f along runs from the target -> pi(f)"),
        "metropolis",
        "state",
    ),
    planted(
        "makla-without-kinetic-energy",
        "makla",
        PotentialOnly,
        "the acceptance compares potentials only",
        Kill("law_of_runs", "anharmonic", "time averages of f along runs from the target -> pi(f)"),
        "metropolis",
    ),
)
