"""The thermostats of ASE: the library's own step with the stated conventions, by given draws.

Oracles: formulas written out in NumPy; moments of a chi-square; the library called plainly, with an atom that moves in
three dimensions.
"""

import math
from importlib.util import find_spec

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator
from sgmcmc_verification.samplers.adapters import ase as adapter
from sgmcmc_verification.samplers.dynamics.underdamped import PhasePoint
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.targets.registry import target as find_target

if find_spec("ase") is None:
    pytest.skip("needs ase: pip install 'sgmcmc-verification[ase]'", allow_module_level=True)

PLANE = find_target("gaussian-correlated-2d")
H, T, C, MASS = 0.03, 0.7, 1.3, 2.5
X, R = np.array([0.4, -1.1]), np.array([0.9, 0.2])
NORMALS = np.array([0.3, -1.7, 0.8, 1.1])
EPS = np.finfo(float).eps
EXACT = HostExact(PLANE)


def force(x):
    return -PLANE.gaussian.precision @ (np.asarray(x) - PLANE.gaussian.mean)


def after(sampler, generator, z=(X, R)):
    """z after a step, (4,)."""
    state = sampler.step(generator, sampler.pack(generator, PhasePoint(*z), EXACT), H, EXACT)
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(sampler.unpack(state))])


@pytest.mark.parametrize("mass", [1.0, MASS])
def test_langevin_is_the_stated_step_whatever_the_mass(mass):
    sampler, s = adapter.Langevin(PLANE, T, mass, C), math.sqrt(2 * C * T)
    xi, eta = NORMALS[:2], NORMALS[2:]
    noise = math.sqrt(H) * s * xi / 2 - H**1.5 * C * s * (xi / 8 + eta / (4 * math.sqrt(3)))
    kick = lambda v, x: v + (H / 2 - H**2 * C / 8) * (force(x) - C * v) + noise
    v = kick(R, X)
    x = X + H * v + H**1.5 * s * eta / (2 * math.sqrt(3))
    generator = ScriptedGenerator(NORMALS)
    # the library reads its velocity back from two positions, whose rounding it divides by h
    np.testing.assert_allclose(
        after(sampler, generator), np.concatenate([x, kick(v, x)]), rtol=0, atol=100 * EPS * 2 / H
    )
    assert generator.used == 4


@pytest.mark.parametrize("mass", [1.0, MASS])
def test_the_splitting_is_baoab(mass):
    generator = ScriptedGenerator(NORMALS)
    decay = math.exp(-C * H)
    v = R + H / 2 * force(X)
    x = X + H / 2 * v
    v = decay * v + math.sqrt(T * (1 - decay**2)) * NORMALS[:2]
    x = x + H / 2 * v
    found = after(adapter.LangevinBAOAB(PLANE, T, mass, C), generator)
    np.testing.assert_allclose(found, np.concatenate([x, v + H / 2 * force(x)]), rtol=0, atol=100 * EPS)
    assert generator.used == 2


def test_the_scale_of_the_velocities_has_the_law_of_the_kinetic_energy():
    """The kinetic energy after long times is T / 2 chi^2 of d degrees of freedom: its moments by 20,000 scalings."""
    sampler = adapter.Bussi(PLANE, T, MASS, 1e-3)  # the step forgets the energy: h is 30 time constants
    generator = np.random.default_rng(5)
    state = sampler.pack(generator, PhasePoint(X, R), EXACT)
    atoms = sampler._atoms(state, adapter.Potential(PLANE, EXACT, generator, ()))
    dynamics = sampler._dynamics(atoms, math.sqrt(MASS) * H)
    dynamics.rng = adapter.OnLines(generator)
    kinetic = atoms.get_kinetic_energy()
    assert kinetic == pytest.approx(R @ R / 2)
    scaled = np.array([kinetic * dynamics.calculate_alpha(kinetic) ** 2 for _ in range(20_000)])
    # of T / 2 chi^2_2: mean T, variance T^2, fourth central moment 9 T^4
    assert abs(scaled.mean() - T) < 6 * T / math.sqrt(20_000)
    assert abs(scaled.var() - T**2) < 6 * T**2 * math.sqrt(8 / 20_000)


def test_a_scaling_moves_along_the_momentum_and_berendsens_is_no_draw():
    for sampler in (adapter.Bussi(PLANE, T, 1.0, 0.5), adapter.Berendsen(PLANE, T, 1.0, 0.5)):
        found = after(sampler, np.random.default_rng(2))
        # the first half kick is taken off: x' - x = h (alpha r + h f / 2)
        along = (found[:2] - X) / H - H / 2 * force(X)
        assert abs(along[0] * R[1] - along[1] * R[0]) < 1e4 * EPS / H
    alpha = math.sqrt(1 + (T / (R @ R / 2) - 1) * H / 0.5)
    np.testing.assert_allclose(along, alpha * R, rtol=0, atol=1e4 * EPS / H)


def test_collisions_are_of_a_coordinate_each_and_before_the_drift():
    sampler = adapter.Andersen(PLANE, T, 1.0, 0.3)

    class Given:
        """Uniforms in order: of the angle, of the radius, of the collision, for two coordinates each."""

        def __init__(self):
            self.rows = iter([[0.1, 0.2], [0.6, 0.7], [0.9, 0.1]])

        def random(self, size):
            return np.array(next(self.rows))

    drawn = math.sqrt(T) * math.cos(2 * math.pi * 0.2) * math.sqrt(-2 * math.log(1 - 0.7))
    v = R + H / 2 * force(X)
    v[1] = drawn
    x = X + H * v
    # the library reads its velocity back from two positions
    np.testing.assert_allclose(
        after(sampler, Given()), np.concatenate([x, v + H / 2 * force(x)]), rtol=0, atol=100 * EPS * 2 / H
    )


def test_atoms_on_lines_move_as_one_in_space_does():
    """The library's own step on one atom with three coordinates, and on two on lines with the first two draws."""
    from ase import Atoms, units
    from ase.constraints import FixCartesian
    from ase.md.langevinbaoab import LangevinBAOAB

    class Springs:
        def get_forces(self, atoms):
            return -atoms.get_positions()

    atoms = Atoms(numbers=[1], positions=[[0.3, -0.2, 0.5]], momenta=[[0.1, 0.4, -0.6]], masses=[1.0], calculator=None)
    atoms.calc = Springs()
    moved = LangevinBAOAB(atoms, H, temperature_K=T / units.kB, T_tau=1 / C, rng=np.random.default_rng(3))
    moved.step()

    alone = Atoms(
        numbers=[1, 1], positions=[[0.3, 0, 0], [-0.2, 0, 0]], momenta=[[0.1, 0, 0], [0.4, 0, 0]], masses=[1, 1]
    )

    alone.set_constraint(FixCartesian([0, 1], mask=(False, True, True)))
    alone.calc = Springs()
    lines = LangevinBAOAB(alone, H, temperature_K=T / units.kB, T_tau=1 / C, rng=np.random.default_rng(0))
    lines.rng = adapter.OnLines(np.random.default_rng(3))
    lines.step()
    np.testing.assert_allclose(alone.get_positions()[:, 0], atoms.get_positions()[0, :2], rtol=0, atol=100 * EPS)
    np.testing.assert_allclose(alone.get_momenta()[:, 0], atoms.get_momenta()[0, :2], rtol=0, atol=100 * EPS)
    assert np.abs(alone.get_positions()[:, 1:]).max() == 0
