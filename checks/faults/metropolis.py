"""Planted bugs of Metropolis kernels: proposal density, acceptance, trajectory."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.interface.metropolis import accept, finite_or_reject, inner
from sgmcmc_verification.samplers.metropolis.barker import SGBD, Barker
from sgmcmc_verification.samplers.metropolis.elliptical_slice import EllipticalSlice
from sgmcmc_verification.samplers.metropolis.pcn import PCN
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.overdamped.mala import MALA
from sgmcmc_verification.samplers.underdamped.hmc import HMC, MetropolisState, potential_of


@dataclass(frozen=True)
class FlippedDensity(MALA):
    """log q(x, y) = -|y - x - h grad U(x)|^2 / (4 h T); the proposal itself is right."""

    def log_proposal(self, start, gradient, end, step_size):
        return super().log_proposal(start, jax.tree.map(jnp.negative, gradient), end, step_size)


@dataclass(frozen=True)
class NoDensity(MALA):
    """a = (U(x) - U(y)) / T, as if the proposal were symmetric."""

    def log_proposal(self, start, gradient, end, step_size):
        return 0.0 * super().log_proposal(start, gradient, end, step_size)


@dataclass(frozen=True)
class UntemperedDensity(MALA):
    """log q without the temperature."""

    def log_proposal(self, start, gradient, end, step_size):
        return self.temperature * super().log_proposal(start, gradient, end, step_size)


@dataclass(frozen=True)
class CachesOldGradient(MALA):
    """The gradient of an accepted point is that of the point before, from the start on; its potential is its own."""

    def step(self, key, state, step_size, estimator):
        after = super().step(key, state, step_size, estimator)
        return after._replace(gradient=state.gradient)


@dataclass(frozen=True)
class Unadjusted(MALA):
    """Every proposal is accepted."""

    def step(self, key, state, step_size, estimator):
        noise_key, gradient_key = jax.random.split(key)
        scale = jnp.sqrt(2 * step_size * self.temperature)
        noise = normal_like(noise_key, state.position)
        y = jax.tree.map(lambda a, g, n: a - step_size * g + scale * n, state.position, state.gradient, noise)
        estimate, estate = estimator.estimate(gradient_key, state.estate, y)
        return MetropolisState(y, potential_of(estimate), estimate.gradient, estate)


@dataclass(frozen=True)
class Variant(HMC):
    """HMC with the energy of the acceptance, its factor exp(-reluctance), its answer to an energy
    that is not finite and the last half kick to choose."""

    kinetic: float = 0.5
    last_kick: float = 0.5
    energy_temperature: float | None = None
    reluctance: float = 0.0
    careless: bool = False

    def step(self, key, state, step_size, estimator):
        momentum_key, gradient_key, accept_key = jax.random.split(key, 3)
        momentum = jax.tree.map(lambda n: jnp.sqrt(self.temperature) * n, normal_like(momentum_key, state.position))
        end, last = self.trajectory(gradient_key, state, momentum, step_size, estimator)
        # undo a part of the last half kick
        last = jax.tree.map(lambda r, g: r + (0.5 - self.last_kick) * step_size * g, last, end.gradient)
        before = state.potential + self.kinetic * inner(momentum, momentum)
        after = end.potential + self.kinetic * inner(last, last)
        log_ratio = (before - after) / (self.energy_temperature or self.temperature)
        guard = (lambda _, ratio: jnp.nan_to_num(ratio, neginf=0.0)) if self.careless else finite_or_reject
        log_ratio = jnp.minimum(guard(end.potential, log_ratio), 0.0) - self.reluctance
        chosen = accept(accept_key, log_ratio, end._replace(estate=()), state._replace(estate=()))
        return chosen._replace(estate=end.estate)


@dataclass(frozen=True)
class OneMore(HMC):
    """A trajectory of one leapfrog step more than it is asked for."""

    def trajectory(self, key, state, momentum, step_size, estimator):
        longer = HMC(self.num_steps + 1, self.temperature)
        return longer.trajectory(key, state, momentum, step_size, estimator)


@dataclass(frozen=True)
class WrongWay(MALA):
    """Proposals up the potential, with their own density."""

    def step(self, key, state, step_size, estimator):
        # what the kernel sees is -grad U with U as it is, for the proposal and for its density alike
        turned = lambda held: held._replace(gradient=jax.tree.map(jnp.negative, held.gradient))
        return turned(super().step(key, turned(state), step_size, Altered(estimator, lambda e, _: turned(e))))


@dataclass(frozen=True)
class WithReference(PCN):
    """The acceptance has the whole potential: the reference law is counted twice."""

    def relative(self, state):
        return state.potential / self.temperature


@dataclass(frozen=True)
class LinearDecay(PCN):
    """x (1 - h T / s^2) for x exp(-h T / s^2), with the spread as it was: not reversible for the reference law."""

    def propose(self, key, x, step_size):
        time = step_size * self.temperature / self.scale**2
        added = 1 - time - jnp.exp(-time)
        return jax.tree.map(lambda a, b: b + added * a, x, super().propose(key, x, step_size))


@dataclass(frozen=True)
class Logarithms(PCN):
    """A walk of log |x| with its Jacobian: the law of x > 0 is kept, and that of x < 0, and any mixture of them."""

    def propose(self, key, x, step_size):
        factor = lambda n: jnp.exp(jnp.sqrt(2 * step_size * self.temperature).astype(n.dtype) * n)
        return jax.tree.map(lambda a, n: a * factor(n), x, normal_like(key, x))

    def relative(self, state):
        sizes = [jnp.sum(jnp.log(jnp.abs(leaf))) for leaf in jax.tree.leaves(state.position)]
        return state.potential / self.temperature - sum(sizes)


@dataclass(frozen=True)
class SliceOfAll(EllipticalSlice):
    """The level is one of the whole potential, from which the reference law is not taken off."""

    def relative(self, state, variance):
        return state.potential / self.temperature


@dataclass(frozen=True)
class NoSigns(Barker):
    """a = (U(x) - U(y)) / T, as if the signs were fair."""

    def log_proposal(self, start, gradient, end):
        return 0.0 * super().log_proposal(start, gradient, end)


@dataclass(frozen=True)
class TwiceTheSlope(SGBD):
    """Signs by 2 grad U: the drift is that of the temperature T / 2, the noise that of T."""

    def step(self, key, state, step_size, estimator):
        steeper = lambda e, _: e._replace(gradient=jax.tree.map(lambda g: 2 * g, e.gradient))
        return super().step(key, state, step_size, Altered(estimator, steeper))


BALANCE = "pi(x) k(x, y) = pi(y) k(y, x)"
LINE = ("gaussian-1d-scaled", "anharmonic")

DEFECTS: tuple[Defect, ...] = (
    planted(
        "mala-gradient-flipped-in-density",
        "mala",
        FlippedDensity,
        "the proposal density has + h grad U where the proposal has - h grad U",
        Kill("detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        "variance",
        source="TuringLang/AdvancedMH.jl#95",
        targets=LINE,
        diagnosis=r"gradient has the wrong sign in the density",
    ),
    planted(
        "mala-proposes-uphill",
        "mala",
        WrongWay,
        "x + h grad U for x - h grad U in the proposal and in its density: the law is right, most is rejected",
        Kill("proposal_generator", "anharmonic", "(E y - x) / h -> f"),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "mala-without-proposal-density",
        "mala",
        NoDensity,
        "accepted as if the proposal were symmetric",
        Kill("balance_for_every_potential", LINE[0], BALANCE),
        "metropolis",
        targets=LINE,
        diagnosis=r"lacks the ratio of proposal densities",
    ),
    planted(
        "mala-density-not-tempered",
        "mala",
        UntemperedDensity,
        "the proposal density lacks the temperature that the energies have",
        Kill("detailed_balance", "anharmonic", BALANCE, {"temperature": 2.0}),
        "metropolis",
        "options",
        source="netket/netket#2254",
        targets=LINE,
        diagnosis=r"proposal densities has the factor 2 .*T",
    ),
    planted(
        "mala-unadjusted",
        "mala",
        Unadjusted,
        "every proposal is accepted, and the law claimed to be exact",
        Kill("defect", "anharmonic", "c_2 = 0"),
        "metropolis",
        "claims",
        targets=LINE,
    ),
    planted(
        "mala-caches-old-gradient",
        "mala",
        CachesOldGradient,
        "the gradient that is carried is not renewed: proposals and densities use that of the start for all steps",
        Kill("end_point_moments", "gaussian-1d-scaled", "E f(y_n) = E f(y_0) under the target"),
        "metropolis",
        "stages",
        "state",
        targets=LINE,
    ),
    planted(
        "hmc-without-kinetic-energy",
        "hmc",
        lambda target, **options: Variant(kinetic=0.0, **options),
        "the acceptance compares potentials only",
        Kill("detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        targets=LINE,
        diagnosis=r"lacks the ratio of proposal densities",
    ),
    planted(
        "hmc-without-last-half-kick",
        "hmc",
        lambda target, **options: Variant(last_kick=0.0, **options),
        "the last half kick of the momentum is missing: the proposal is not reversible",
        Kill("detailed_balance", "anharmonic", BALANCE),
        "metropolis",
        "stages",
        source="improbable-research/keanu#492",
        targets=LINE,
    ),
    planted(
        "hmc-one-step-more",
        "hmc",
        OneMore,
        "num_steps + 1 leapfrog steps: the law is right, the trajectory is not the one that was asked for",
        Kill("proposal_generator", "anharmonic", "(E y - x) / t -> f with t = (L h)^2 / 2"),
        "metropolis",
        "options",
        targets=LINE,
    ),
    planted(
        "hmc-accepts-half",
        "hmc",
        lambda target, **options: Variant(reluctance=math.log(2), **options),
        "accepted with probability min(1, exp(-dH / T)) / 2: the law is right, half of the work is lost",
        Kill("acceptance_limit", "anharmonic", "P(accepted | x, xi) -> 1"),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "hmc-accepts-what-is-not-finite",
        "hmc",
        lambda target, **options: Variant(careless=True, **options),
        "an energy difference that is infinite or not a number is replaced by zero: the chain leaves the support",
        Kill("finite_potential", "anharmonic", "a(x, y) = 0 where U(y) = inf"),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "hmc-energy-not-tempered",
        "hmc",
        lambda target, **options: Variant(energy_temperature=1.0, **options),
        "the energy difference is not divided by the temperature",
        Kill("detailed_balance", "anharmonic", BALANCE, {"temperature": 2.0}),
        "metropolis",
        "options",
        source="netket/netket#2254",
        targets=LINE,
        diagnosis=r"factor 2 .*T",
    ),
    planted(
        "pcn-reference-counted-twice",
        "pcn",
        lambda target, **options: WithReference(3.0 / target.curvature**0.5, **options),
        "accepted by the whole potential, as if the proposal were symmetric: the reference law is counted twice",
        Kill("balance_for_every_potential", LINE[0], BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "pcn-moves-logarithms",
        "pcn",
        lambda target, **options: Logarithms(3.0 / target.curvature**0.5, **options),
        "a walk of log |x| that balances, on all of the line: signs never change, and the chain has two laws",
        Kill("bulk_reached", "gaussian-pytree", "inf x_i < E x_i - 1.5 sd x_i"),
        "state",
        targets=LINE,
        diagnosis=r"never came below",
    ),
    planted(
        "pcn-linear-decay",
        "pcn",
        lambda target, **options: LinearDecay(3.0 / target.curvature**0.5, **options),
        "1 - h T / s^2 for exp(-h T / s^2): the proposal does not keep the reference law",
        Kill("balance_for_every_potential", LINE[0], BALANCE),
        "metropolis",
        targets=LINE,
    ),
    planted(
        "elliptical-slice-of-the-whole-potential",
        "elliptical-slice",
        SliceOfAll,
        "levels of U for those of U - |x|^2 / (2 h): the reference law is counted twice",
        Kill("law_of_runs", "anharmonic", "time averages of f along runs from the target -> pi(f)"),
        "metropolis",
        "variance",
    ),
    planted(
        "barker-without-densities",
        "barker",
        NoSigns,
        "accepted as if the signs were fair",
        Kill("law_of_runs", "anharmonic", "time averages of f along runs from the target -> pi(f)"),
        "metropolis",
    ),
    planted(
        "sgbd-twice-the-slope",
        "sgbd",
        TwiceTheSlope,
        "signs by 2 grad U: the law of temperature T / 2",
        Kill("generator_for_every_potential", LINE[0], "A_1 = L for every smooth U"),
        "variance",
        "limit",
    ),
)
