"""Errors planted in the reader itself: each is seen by known results, by an oracle, or by the cross-check."""

from fractions import Fraction

import jax.numpy as jnp
import pytest
import sympy as sp

from sgmcmc_verification.checks.proof import series
from sgmcmc_verification.checks.proof.laws import Normal
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader import taylor
from sgmcmc_verification.checks.proof.reader.arithmetic import ARITHMETIC, entrywise
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import EXACT, Series
from sgmcmc_verification.samplers.registry import sampler_row
from tests.checks.proof.cross_check import observed_power
from tests.checks.proof.oracle import to_sympy
from tests.checks.proof.test_known_results import U, coefficients, sgld, x
from tests.checks.proof.test_series import S, X, expected


def holds(name):
    row = sampler_row(name)
    return prove(row.build, 1, row.estimator).verdict == "pass"


def defect_of_euler(polynomial):
    d = [sp.diff(U, x, k) for k in range(5)]
    want = (d[1] ** 2 * d[2] - 2 * d[1] * d[3] - d[2] ** 2 + d[4]) / 2
    return sp.simplify(sp.expand(to_sympy(polynomial) - want)) == 0


def test_a_wrong_fourth_moment_is_seen_by_the_defect_of_euler_and_by_order_two(monkeypatch):
    right = Normal.moment
    assert defect_of_euler(coefficients(sgld, 2)[3])
    monkeypatch.setattr(Normal, "moment", lambda self, k: Fraction(2) if k == 4 else right(self, k))
    assert not defect_of_euler(coefficients(sgld, 2)[3])
    assert not holds("baoab")


def test_a_lost_term_of_taylors_formula_is_seen_by_the_cross_check(monkeypatch):
    row = sampler_row("leimkuhler-matthews")  # its gradient is at a point sqrt(h) away
    right = taylor.multi_indices
    monkeypatch.setattr(taylor, "multi_indices", lambda d, k: right(d, k)[:-1] if k == 2 else right(d, k))
    power, _ = observed_power(row.build, 2, 4)
    assert not power > 4.7
    monkeypatch.undo()
    power, _ = observed_power(row.build, 2, 4)
    assert power > 4.7


def test_a_truncated_exponential_is_seen_by_the_cross_check(monkeypatch):
    right = series.derivatives

    def short(name, a, order):
        found = right(name, a, order)
        return [p if k < 2 else a.ring.zero for k, p in enumerate(found)] if name == "exp" else found

    monkeypatch.setattr(series, "derivatives", short)
    power, _ = observed_power(sampler_row("sgrld-expanded-natural").build, 1, 3)
    ubu, _ = observed_power(sampler_row("baoab").build, 1, 4)
    assert not (power > 3.7 and ubu > 4.7)


def test_a_gradient_of_the_wrong_sign_fails(monkeypatch):
    right = taylor.derivatives_at

    def negated(reader, position, name, order):
        found = right(reader, position, name, order)
        return -found if order == 1 else found

    monkeypatch.setattr(taylor, "derivatives_at", negated)
    assert not holds("sgld")


def test_subtraction_read_as_addition_is_seen_by_the_cross_check(monkeypatch):
    monkeypatch.setitem(ARITHMETIC, "sub", entrywise(lambda a, b: a + b))
    from sgmcmc_verification.checks.proof.reader import primitives

    monkeypatch.setitem(primitives.HANDLERS, "sub", ARITHMETIC["sub"])
    power, _ = observed_power(sampler_row("sgld").build, 1, 3)
    assert not power > 3.7


def test_a_truncated_zero_that_passes_for_zero_is_seen_by_the_oracle_of_series(monkeypatch):
    """The precision of a quotient is forgotten: coefficients that are not known come out as zero."""

    def careless(self, other):
        total = {}
        for i, a in self.coefficients.items():
            for j, b in other.coefficients.items():
                if i + j <= self.space.order:
                    total[i + j] = total.get(i + j, self.space.ring.zero) + a * b
        return Series(self.space, total, EXACT)

    def top_coefficient():
        space = series.Space(Ring(), 5)
        from sgmcmc_verification.checks.proof.potential import Coordinate

        p = space.lift(space.ring.generator(Coordinate("x", 0, positive=True)))
        h = space.power_of_step(2)
        quotient = (series.apply("exp", h * p) - space.one) * series.raised(h, -1)
        return to_sympy(quotient.coefficient(4))  # exact: x^3 / 6

    want = expected((sp.exp(S**2 * X) - 1) / S**2, 4)
    with pytest.raises(series.PrecisionLost):
        top_coefficient()  # the reader asks for more terms and does not guess
    monkeypatch.setattr(Series, "__mul__", careless)
    assert sp.simplify(top_coefficient() - want) != 0


def test_keys_that_are_forgotten_are_seen_by_known_results(monkeypatch):
    """All children of a key taken for one: independent draws become the same one."""
    from sgmcmc_verification.checks.proof.draws import History

    assert holds("msgnht")
    assert holds("ubu")
    monkeypatch.setattr(History, "child", lambda self, index: self)
    assert not holds("ubu")


def test_an_acceptance_read_the_wrong_way_round_fails(monkeypatch):
    from sgmcmc_verification.checks.proof.statements import acceptances

    right = acceptances._compared
    monkeypatch.setattr(acceptances, "_compared", lambda acceptance: (-(found := right(acceptance))[0], found[1]))
    assert not holds("mala")


def test_an_energy_of_another_temperature_fails(monkeypatch):
    from sgmcmc_verification.checks.proof.statements import balance

    right = balance.uninterpreted
    monkeypatch.setattr(balance, "uninterpreted", lambda y: 2 * right(jnp.ravel(y)))
    assert not holds("mala")
