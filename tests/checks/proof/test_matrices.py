"""Exponentials and blocks of matrices, long factors under names, and slopes at points."""

from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.scipy.linalg import expm

from sgmcmc_verification.checks.proof import functions
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet, StepRoot
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader import linear_algebra
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.reader.values import objects
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.checks.proof.slopes import Gradients
from sgmcmc_verification.checks.proof.zero import at_random, is_zero, surely_differ
from sgmcmc_verification.samplers.registry import sampler_row

C = ((1.0, 0.5), (0.5, 2.0))


def evaluated(function, order=5) -> Any:
    """The entries of a function of h."""
    space = Space(Ring(), order)
    program = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((), jnp.float64))
    reader = new_reader(space)
    (out,) = reader.closed(program, [objects([space.power_of_step(2)], ())])
    return space, reader.symbols(out)


def test_the_exponential_of_a_matrix_is_its_series():
    with jax.enable_x64(True):
        space, found = evaluated(lambda h: expm(-h * jnp.asarray(C)))
    A = np.array(C)
    for i, j in np.ndindex(2, 2):
        for k, power in ((0, np.eye(2)), (2, -A), (4, A @ A / 2)):
            assert float(found[i, j].coefficient(k).rational or 0) == power[i, j]
        assert found[i, j].precision == space.order + 1


def test_the_exponential_of_a_matrix_that_does_not_vanish_is_not_read():
    with jax.enable_x64(True), pytest.raises(Exception, match="does not vanish"):
        evaluated(lambda h: expm(h + jnp.asarray(C)))


def test_a_stranger_named_expm_is_read_as_what_it_does():
    def stranger(a):
        return a + a

    stranger.__name__ = "expm"
    with jax.enable_x64(True):
        _, found = evaluated(lambda h: jax.jit(stranger)(h * jnp.asarray(C)))
    assert found[0, 0].coefficient(0).rational == 0
    assert found[0, 0].coefficient(2).rational == 2


def test_a_sampler_with_a_matrix_of_friction_is_proved():
    row = sampler_row("sggmc-matrix")
    assert prove(row.build, 2, row.estimator).is_proved


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0])
def test_a_wrong_time_of_the_friction_fails(factor, monkeypatch):
    from sgmcmc_verification.samplers.geodesic import sggmc

    right = sggmc.expm
    monkeypatch.setattr(sggmc, "expm", lambda a: right(factor * a))
    row = sampler_row("sggmc-matrix")
    assert prove(row.build, 2, row.estimator).verdict == "fail"


def test_a_series_that_ends_too_early_is_seen(monkeypatch):
    right = linear_algebra._exponential

    def short(reader, a):
        keep = lambda entry: type(entry)(entry.space, {k: p for k, p in entry.coefficients.items() if k < 4})
        return objects([keep(entry) for entry in right(reader, a).ravel()], a.shape)

    monkeypatch.setattr(linear_algebra, "_exponential", short)
    row = sampler_row("sggmc-matrix")
    assert prove(row.build, 2, row.estimator).verdict != "pass"


def test_a_matrix_in_blocks_has_the_eigenvectors_of_its_blocks():
    """Blocks of places 0, 2 and 1 and 3, whose square root is asked for."""

    def root(h):
        a = jnp.array([[2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 4.0]])
        values, vectors = jnp.linalg.eigh(a + 0 * h)
        root = (vectors * jnp.sqrt(values)) @ vectors.T
        return root @ root.T - a

    with jax.enable_x64(True):
        _, found = evaluated(root)
    assert all(is_zero(entry.coefficient(0)) for entry in found.ravel())


def test_a_block_of_three_rows_is_not_read():
    with jax.enable_x64(True), pytest.raises(Exception, match="3 rows"):
        evaluated(lambda h: jnp.linalg.eigh(jnp.ones((3, 3)) + h)[0])


def test_slopes_at_a_point_are_the_derivatives():
    ring = Ring()
    x, y = (Coordinate(name, i, True) for i, name in enumerate("xy"))
    p, q = ring.generator(x), ring.generator(y)
    variables = [ring.number(x), ring.number(y)]
    jet = ring.generator(Jet("U", (1, 0), (p + q * q, p * q)))
    root = functions.power(ring.one + p * p * q, functions.HALF)
    third = functions.power(ring.one + p + q, functions.Fraction(1, 3))
    named = ring.generator(functions.Abbreviation(p * jet + root))
    half = functions.power(p, functions.HALF)
    log = ring.generator(functions.Applied("log", ring.one + p * q))
    total = (
        jet * root + named * named * third + functions.exponential(-(p * q)) * half + log * ring.generator(StepRoot())
    )
    with mpmath.workdps(40):
        value = at_random(ring, "slopes")
        found = Gradients(ring, value, variables)(total)
        for slope, v in zip(found, variables, strict=True):
            assert abs(slope - value(total.derivative(v))) < 1e-35


def test_long_factors_of_draws_have_names_and_the_same_value():
    from sgmcmc_verification.checks.proof.draws import Draw, History
    from sgmcmc_verification.checks.proof.laws import Normal

    ring = Ring()
    draw = ring.generator(Draw(Normal(), History("step"), 0))
    x = ring.sum(ring.generator(Coordinate(f"x{i}", i)) for i in range(8))
    p = (x * x) * draw + x * draw * draw + ring.one
    random = lambda number: ring.generators[number].kind == "draw"
    short = functions.shortened(p, 10, random)
    assert len(short) < len(p)
    assert short.derivative(next(iter(draw.numbers()))).has("draw")
    with mpmath.workdps(40):
        value = at_random(ring, "names")
        assert abs(value(short - p)) < 1e-35
    assert is_zero(short - p)


def test_polynomials_that_surely_differ_are_not_those_that_are_equal_in_another_form():
    ring = Ring()
    p = ring.generator(Coordinate("x", 0, True))
    root = functions.power(ring.one + p, functions.HALF)
    assert not surely_differ(root * root, ring.one + p)
    assert not surely_differ(p, p + ring.constant(functions.Fraction(1, 10**15)))
    assert surely_differ(root, ring.one + p)
    assert surely_differ(p, p.scaled(2))
