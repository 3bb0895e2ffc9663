"""Planted bugs of Nose-Hoover thermostats and of microcanonical dynamics: dimension, noise, volume, what is claimed."""

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.microcanonical.mams import MAMS
from sgmcmc_verification.samplers.microcanonical.mclmc import MCLMC
from sgmcmc_verification.samplers.numerics.noise import injected_noise
from sgmcmc_verification.samplers.thermostats.common import count, squared_norm
from sgmcmc_verification.samplers.thermostats.sgnht import SGNHT


@dataclass(frozen=True)
class WrongDimension(SGNHT):
    """d xi = |r|^2 / (d + 1) - T."""

    def drive(self, momentum):
        return squared_norm(momentum) / (count(momentum) + 1) - self.temperature


@dataclass(frozen=True)
class NotDivided(SGNHT):
    """d xi = |r|^2 - T."""

    def drive(self, momentum):
        return squared_norm(momentum) - self.temperature


@dataclass(frozen=True)
class MeanOfMeans(SGNHT):
    """d xi = the mean over the leaves of their means of r^2, less T."""

    def drive(self, momentum):
        means = [jnp.mean(leaf**2) for leaf in jax.tree.leaves(momentum)]
        return sum(means) / len(means) - self.temperature


@dataclass(frozen=True)
class UnitTemperature(SGNHT):
    """d xi = |r|^2 / d - 1 at every temperature."""

    def drive(self, momentum):
        return squared_norm(momentum) / count(momentum) - 1.0


@dataclass(frozen=True)
class NoiseTimesDiffusion(SGNHT):
    """Noise A sqrt(2 T h) R."""

    def _noise(self, key, momentum, h):
        return injected_noise(key, momentum, 2 * self.diffusion**2 * self.temperature * h)


@dataclass(frozen=True)
class WrongSign(SGNHT):
    """d xi = T - |r|^2 / d."""

    def drive(self, momentum):
        return -super().drive(momentum)


@dataclass(frozen=True)
class ExplicitEuler(SGNHT):
    """theta' = theta + h r and xi' = xi + h (|r|^2 / d - T) with the momentum of before its kick."""

    def step(self, key, state, step_size, estimator):
        after = super().step(key, state, step_size, estimator)
        position, thermostat = self._move(state.position, state.momentum, state.thermostat, step_size)
        return after._replace(position=position, thermostat=thermostat)


@dataclass(frozen=True)
class PrintedHamiltonian(SGNHT):
    """Declares the potential (xi - A)^2 / (2 d) of the thermostat."""

    def dynamics(self, target):
        right, n = super().dynamics(target), target.size

        def H(z):
            xi = z[2 * n] - self.diffusion
            return right.H(z) - 0.5 * (n - 1 / n) * xi**2 / self.temperature

        return dataclasses.replace(right, H=H)


@dataclass(frozen=True)
class FrozenThermostat(SGNHT):
    """xi never moves."""

    def drive(self, momentum):
        return jnp.zeros_like(squared_norm(momentum))


GENERATOR = "(E z' - z) / h -> f"
PLANE, LINE = "gaussian-correlated-2d", "gaussian-1d-scaled"


@dataclass(frozen=True)
class ForceByDimension(MCLMC):
    """The force is grad U / d for grad U / (d - 1): the law of the temperature d / (d - 1), 2 in the plane."""

    def step(self, key, state, step_size, estimator):
        size = count(state.position)
        weaker = lambda held: held._replace(
            gradient=jax.tree.map(lambda g: (g * (size - 1) / size).astype(g.dtype), held.gradient)
        )
        after = super().step(key, weaker(state), step_size, Altered(estimator, lambda e, _: weaker(e)))
        stronger = lambda g: (g * size / (size - 1)).astype(g.dtype)
        return after._replace(gradient=jax.tree.map(stronger, after.gradient))


@dataclass(frozen=True)
class VolumeForgotten(MAMS):
    """log a = (U(x) - U(y)) / T, as if the flow of the directions kept their volume."""

    def trajectory(self, key, state, direction, step_size, estimator):
        end, u, work = super().trajectory(key, state, direction, step_size, estimator)
        return end, u, jnp.zeros_like(work)


RUNS = "time averages of f along runs from the target -> pi(f)"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "sgnht-explicit-euler",
        "sgnht",
        ExplicitEuler,
        "position and thermostat move with the old momentum: of order 1 as well, with energies that grow",
        Kill("force_keeps_volume", "double-well", "|det dz' / dz| does not depend on the Hessian of U"),
        "stages",
    ),
    planted(
        "sgnht-wrong-dimension",
        "sgnht",
        WrongDimension,
        "the kinetic energy divided by d + 1 for d: temperature (d + 1) / d, as with an ambient dimension",
        Kill("defect", LINE, "c_1 = 0"),
        "dimension",
        source="a released sampler on the sphere that uses the ambient dimension",
        diagnosis=r"drift of xi: term .* (is halved|has the factor 0\.6667)",
    ),
    planted(
        "sgnht-not-divided-by-dimension",
        "sgnht",
        NotDivided,
        "|r|^2 - T for |r|^2 / d - T: right in one dimension",
        Kill("generator_of_code", PLANE, GENERATOR),
        "dimension",
        diagnosis=r"drift of xi: term .* is counted twice",
    ),
    planted(
        "sgnht-mean-of-means",
        "sgnht",
        MeanOfMeans,
        "the mean of the leaves' means of r^2: right for one array, and for leaves of one size",
        Kill("equal_leaves", LINE, "a coordinate of a leaf of 2 moves what all share as one of a leaf of 7 does"),
        "leaves",
        source="thermostats of torch, written by parameter",
        diagnosis=r"a coordinate of a leaf of 2 .* 3\.5 times",
    ),
    planted(
        "sgnht-unit-temperature",
        "sgnht",
        UnitTemperature,
        "the thermostat is set to temperature 1 whatever the option says",
        Kill("generator_of_code", LINE, GENERATOR, {"temperature": 2.0}),
        "options",
        diagnosis=r"constant .*added to the drift of xi|drift of xi: its constant is halved",
    ),
    planted(
        "sgnht-noise-times-diffusion",
        "sgnht",
        NoiseTimesDiffusion,
        "noise A sqrt(2 T h) R for sqrt(2 A T h) R; the thermostat hides it from the law of the positions",
        Kill("generator_of_code", LINE, "Cov(z') / h -> 2 D", {"diffusion": 2.0}),
        "options",
        diagnosis=r"noise has the factor 2 .*diffusion",
    ),
    planted(
        "sgnht-sign",
        "sgnht",
        WrongSign,
        "the thermostat heats when it should cool",
        Kill("generator_of_code", LINE, GENERATOR),
        "limit",
        diagnosis=r"drift of xi: .*wrong sign",
    ),
    planted(
        "sgnht-frozen-thermostat",
        "sgnht",
        FrozenThermostat,
        "xi stays at A: SGHMC, whose friction does not adapt to gradient noise",
        Kill("local_weak_order", LINE, "E phi(z_h) = phi + h L phi + O(h^2)"),
        "state",
        diagnosis=r"drift of xi: .*is missing",
    ),
    planted(
        "sgnht-printed-hamiltonian",
        "sgnht",
        PrintedHamiltonian,
        "the potential (xi - A)^2 / (2 d) declared for d (xi - A)^2 / 2: right in one dimension",
        Kill("generator_of_code", PLANE, "f = -(D + Q) grad H + Gamma"),
        "claims",
        "dimension",
        source="ma2015complete, the Hamiltonian of SGNHT as printed",
        diagnosis=r"dH/dxi has the factor 4",
    ),
    planted(
        "mclmc-force-by-dimension",
        "mclmc",
        ForceByDimension,
        "grad U / d for grad U / (d - 1)",
        Kill("law_of_runs", "gaussian-correlated-2d", RUNS),
        "dimension",
        "variance",
    ),
    planted(
        "mams-volume-forgotten",
        "mams",
        VolumeForgotten,
        "accepted by the potentials alone: the change of the volume of the directions is missing",
        Kill("law_of_runs", "gaussian-correlated-2d", RUNS),
        "metropolis",
    ),
)
