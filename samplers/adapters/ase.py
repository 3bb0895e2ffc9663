"""ASE (3.29): its thermostats of molecular dynamics under the interface of this suite.

Common to all: each coordinate of a position is that of an atom which is held on a line (`FixCartesian`), so that the
degrees of freedom of the library are those of the target, and a force is minus the gradient that the estimator gives.
With atoms of mass m and a time step of dt, in the unit-mass variables of this suite r = p / sqrt(m), h = dt / sqrt(m),
and a friction gamma of the library is C / sqrt(m). A temperature T is T / k_B kelvins. The option `fixcm` of the
library, which holds the centre of mass, is off: a target has no centre that the law is free of.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.adapters.common import FEW, Foreign, load
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint, langevin_dynamics
from sgmcmc_verification.samplers.entry import FRICTIONS, Row
from sgmcmc_verification.samplers.estimators.host import HostExact, estimator_key
from sgmcmc_verification.samplers.interface.aliases import Builder, Estimator, EstimatorState, Options, Position
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


class AtomsState(NamedTuple):
    """Position, momentum at unit mass, and the estimator's own state."""

    position: Position
    momentum: Position
    estate: EstimatorState


def flat(tree: Position) -> np.ndarray:
    """All numbers (d,) of a tree; without JAX, whose calls cost more than a step."""
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)])


def shaped(target: Target, numbers: np.ndarray) -> Position:
    """A position from its numbers (d,), of NumPy arrays of the types of the example."""
    leaves, structure = jax.tree.flatten(target.example)
    parts = np.split(numbers, np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
    whole = [part.reshape(np.shape(leaf)).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, whole)


class Potential:
    """A calculator of ASE whose forces are those of an estimator, along the lines of the atoms.

    Args:
        target: whose positions are asked for.
        estimator: of the gradient.
        generator: of the estimator's draws.
        estate: its state, which is moved on.
    """

    def __init__(
        self, target: Target, estimator: Estimator, generator: np.random.Generator, estate: EstimatorState
    ) -> None:
        self.target, self.estimator, self.generator, self.estate = target, estimator, generator, estate

    def get_forces(self, atoms: Foreign) -> np.ndarray:
        """Forces (d, 3) on atoms; zero across their lines."""
        position = shaped(self.target, atoms.get_positions()[:, 0])
        key = estimator_key(self.generator, self.estimator)
        estimate, self.estate = self.estimator.estimate(key, self.estate, position)
        forces = np.zeros((self.target.size, 3))
        forces[:, 0] = -flat(estimate.gradient)
        return forces


class OnLines:
    """A source of random numbers for atoms on lines: what is drawn for the fixed coordinates is 0 and draws nothing.

    Args:
        generator: of the other draws.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def _of(self, draw: Builder, size: Foreign) -> Foreign:
        if size is None or np.ndim(size) == 0:
            return draw(size)
        values = np.zeros(size)
        values[:, 0] = draw(size[0])
        return values

    def standard_normal(self, size: Foreign = None) -> Foreign:
        """Draw standard normals."""
        return self._of(self._generator.standard_normal, size)

    def normal(self, size: Foreign = None) -> Foreign:
        """Draw standard normals."""
        return self._of(self._generator.standard_normal, size)

    def random(self, size: Foreign = None) -> Foreign:
        """Draw uniforms on [0, 1)."""
        return self._of(self._generator.random, size)

    def standard_gamma(self, shape: float) -> float:
        """Draw a gamma variable of unit scale; 0 for the shape 0, whose law has all its mass there."""
        return self._generator.standard_gamma(shape) if shape > 0 else 0.0


@dataclass(frozen=True)
class _Thermostat:
    """init, step, position, unpack and pack of a thermostat, of whose `step` each step is one.

    Args:
        target: gives the shape of a position.
        temperature: T > 0; the law is exp(-(U + |r|^2 / 2) / T).
        mass: m > 0 of every atom; the law of z does not depend on it, if the library has its unit right.
    """

    target: Target
    temperature: float = 1.0
    mass: float = 2.5

    backend = "host"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, *(each.name for each in dataclasses.fields(self) if each.name != "target"))
        load("ase")

    @property
    def kelvins(self) -> float:
        """T / k_B."""
        return self.temperature / load("ase.units").kB

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        """The library's object that moves `atoms`."""
        raise NotImplementedError

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> AtomsState:
        """Start a chain at a position, with a momentum N(0, T)."""
        x = flat(position)
        momentum = math.sqrt(self.temperature) * key.standard_normal(x.shape)
        return self._state(x, momentum, estimator.init(estimator_key(key, estimator), position))

    def _state(self, position: np.ndarray, momentum: np.ndarray, estate: EstimatorState) -> AtomsState:
        return AtomsState(shaped(self.target, position), shaped(self.target, momentum), estate)

    def step(self, key: np.random.Generator, state: AtomsState, step_size: float, estimator: Estimator) -> AtomsState:
        """Take one step."""
        root = math.sqrt(self.mass)
        potential = Potential(self.target, estimator, key, state.estate)
        atoms = self._atoms(state, potential)
        dynamics = self._dynamics(atoms, root * float(step_size))
        dynamics.rng = OnLines(key)
        dynamics.step()
        return self._state(atoms.get_positions()[:, 0], atoms.get_momenta()[:, 0] / root, potential.estate)

    def _atoms(self, state: AtomsState, potential: Potential) -> Foreign:
        """Atoms on lines along the first axis, with the forces of a potential."""
        x, r = flat(state.position), flat(state.momentum)
        columns = lambda values: np.column_stack([values, np.zeros((len(values), 2))])
        atoms = load("ase").Atoms(numbers=[1] * len(x), positions=columns(x))
        atoms.set_masses(np.full(len(x), self.mass))
        atoms.set_momenta(columns(math.sqrt(self.mass) * r))
        lines = load("ase.constraints").FixCartesian(list(range(len(x))), mask=(False, True, True))
        atoms.set_constraint(lines)
        atoms.calc = potential
        return atoms

    def position(self, state: AtomsState) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: AtomsState) -> PhasePoint:
        """Full variable z of a state."""
        return PhasePoint(state.position, state.momentum)

    def pack(self, key: np.random.Generator, z: PhasePoint, estimator: Estimator) -> AtomsState:
        """State with the full variable z; caches are computed anew."""
        return AtomsState(z.position, z.momentum, estimator.init(estimator_key(key, estimator), z.position))


@dataclass(frozen=True)
class _OfLangevin(_Thermostat):
    """A scheme of weak order 2 for Langevin dynamics.

    Args:
        friction: C > 0.

    Attributes:
        source: of the scheme.
    """

    friction: float = 1.0

    source: ClassVar[Source]

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        C, T = self.friction, self.temperature
        return Claims(
            self.source,
            StationaryLaw(order=2, temperature=T),
            Diffusion(lambda target: langevin_dynamics(target, C, T), weak_order=2),
            conditions=("exact gradient",),
        )


@dataclass(frozen=True)
class Langevin(_OfLangevin):
    """`ase.md.langevin.Langevin`: a scheme of weak order 2 for dx = v dt, dv = (f - C v) dt + sqrt(2 C T) dW.

        v <- v + h (f(x) - C v) / 2 - h^2 C (f(x) - C v) / 8
               + sqrt(h) s xi / 2 - h^(3/2) C s (xi / 8 + eta / (4 sqrt 3)),   s = sqrt(2 C T)
        x' = x + h v + h^(3/2) s eta / (2 sqrt 3)
        v' from v as v from the old one, with f(x') and the same xi and eta

    Source: the module `ase.md.langevin`, which cites vandeneijnden2006second, equation (23).

    Args:
        friction: C > 0.
    """

    source = Source("vandeneijnden2006second", "equation (23)")

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        friction = self.friction / math.sqrt(self.mass)
        kind = load("ase.md.langevin").Langevin
        return kind(atoms, timestep, temperature_K=self.kelvins, friction=friction, fixcm=False)


@dataclass(frozen=True)
class LangevinBAOAB(_OfLangevin):
    """`ase.md.langevinbaoab.LangevinBAOAB` at a fixed cell: the splitting BAOAB, `T_tau` = 1 / C.

    Source: the module `ase.md.langevinbaoab`; leimkuhler2013rational.

    Args:
        friction: C > 0.
    """

    source = Source("leimkuhler2013rational", "the method BAOAB")

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        time = math.sqrt(self.mass) / self.friction
        # its generator is set by the step; one that is given stops the library from asking the system for a seed
        given = np.random.default_rng(0)
        kind = load("ase.md.langevinbaoab").LangevinBAOAB
        return kind(atoms, timestep, temperature_K=self.kelvins, T_tau=time, rng=given)


@dataclass(frozen=True)
class Andersen(_Thermostat):
    """`ase.md.andersen.Andersen`: each velocity is drawn anew with a probability, between a half kick and the drift.

        v <- v + h f(x) / 2;  v_i <- N(0, T) with probability p;  x' = x + h v;  v' = v + h f(x') / 2

    To first order the law of z is exp(-H / T) (1 + h r . f / (2 T)), whatever p is: what is drawn anew lacks the first
    half kick. The law of the positions is of order 2, as that of BAOA is.

    Source: the module `ase.md.andersen`; andersen1980molecular.

    Args:
        probability: p in (0, 1] of a collision, in a step, of each coordinate.
    """

    probability: float = 0.2

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("andersen1980molecular", "the stochastic collisions"),
            StationaryLaw(order=2, temperature=self.temperature),
            Composite(),
            conditions=("exact gradient",),
        )

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        kind = load("ase.md.andersen").Andersen
        return kind(atoms, timestep, self.kelvins, andersen_prob=self.probability, fixcm=False)


def rescaling_dynamics(target: Target, time: float, temperature: float = 1.0) -> Dynamics:
    """H = (U + |r|^2 / 2) / T, D = T / (2 tau) r r^T / |r|^2 on r, Q = T [[0, -I], [I, 0]].

    The kinetic energy K = |r|^2 / 2 of n degrees of freedom follows

        dK = (n T / 2 - K) dt / tau + 2 sqrt(K T / (2 tau)) dW

    Ito's formula for dr = a(r) r dt + sqrt(T / tau) r / |r| dW gives the noise of K, and the drift of the recipe,
    a = ((n - 1) T / |r|^2 - 1) / (2 tau), its drift.

    Source: bussi2007canonical, equation (7).
    """
    n, T = target.size, temperature
    flow = langevin_dynamics(target, 1.0, T)

    def D(z: jax.Array) -> jax.Array:
        r = z[n:]
        along = jnp.ones((1, 1)) if n == 1 else jnp.outer(r, r) / (r @ r)  # on a line it is 1 at r = 0 too
        return jnp.zeros((2 * n, 2 * n), z.dtype).at[n:, n:].set(T / (2 * time) * along)

    return Dynamics(flow.H, D, flow.Q, flow.names, n)


@dataclass(frozen=True)
class Bussi(_Thermostat):
    """`ase.md.bussi.Bussi`: velocities are scaled by the exact law of their kinetic energy, then a leapfrog step.

    Source: the module `ase.md.bussi`; bussi2007canonical, equation (A7). Of equation (A8), the sign of the factor, the
    library takes the positive one always: it matters to the path in one dimension, not to the law.

    Args:
        time: tau > 0, the time constant of the kinetic energy.
    """

    time: float = 1.0

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        tau, T = self.time, self.temperature
        return Claims(
            Source("bussi2007canonical", "equation (A7)"),
            StationaryLaw(order=2, temperature=T),
            Diffusion(lambda target: rescaling_dynamics(target, tau, T), weak_order=1),
            conditions=("exact gradient",),
        )

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        kind = load("ase.md.bussi").Bussi
        return kind(atoms, timestep, temperature_K=self.kelvins, taut=math.sqrt(self.mass) * self.time)


@dataclass(frozen=True)
class Berendsen(_Thermostat):
    """`ase.md.nvtberendsen.NVTBerendsen`: velocities are scaled towards the temperature, without noise.

    Held to the canonical law at T, which the library calls it a thermostat of (NVT); the kinetic energy has too small a
    variance for it, as its literature knows.

    Source: the module `ase.md.nvtberendsen`; berendsen1984molecular.

    Args:
        time: tau > 0, the time constant of the kinetic energy.
    """

    time: float = 1.0

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("berendsen1984molecular", "equation (11)"),
            StationaryLaw(order=1, temperature=self.temperature),
            Composite(),
            conditions=("exact gradient",),
        )

    def _dynamics(self, atoms: Foreign, timestep: float) -> Foreign:
        kind = load("ase.md.nvtberendsen").NVTBerendsen
        tau = math.sqrt(self.mass) * self.time
        return kind(atoms, timestep, temperature_K=self.kelvins, taut=tau, fixcm=False)


def _row(name: str, adapter: Builder, **more: object) -> Row:
    """A row of a thermostat, whose step sizes are those of a momentum."""
    kept: Options = {"targets": FEW, "estimator": HostExact, "step_power": 0.5, **more}
    return Row(name, lambda target, **options: adapter(target, **options), **kept)


TIMES = ({"time": 0.5, "temperature": 0.5}, {"time": 2.0, "temperature": 2.0})
SHARES = ({"probability": 0.5, "temperature": 0.5}, {"probability": 0.1, "temperature": 2.0})

ENTRIES: tuple[Row, ...] = (
    _row("ase/langevin", Langevin, variants=FRICTIONS),
    _row("ase/langevin-baoab", LangevinBAOAB, variants=FRICTIONS),
    _row("ase/andersen", Andersen, variants=SHARES),
    _row("ase/bussi", Bussi, variants=TIMES),
    _row("ase/berendsen", Berendsen, variants=TIMES),
)
