"""Exact kernels in Python: balance at pairs of points is decided on the program that was read of their steps."""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NOT_TRACED
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.runner import proved
from sgmcmc_verification.checks.runner.proved import decide
from sgmcmc_verification.checks.runner.read_programs import AS_READ
from sgmcmc_verification.checks.tiers.law.detailed_balance import detailed_balance
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target

PLANE, LINE, MATRIX = "gaussian-correlated-2d", "anharmonic", "gaussian-matrix"


def energy_of(estimator, rng):
    """x -> U(x), a number of Python."""
    return lambda x: float(estimator.estimate(rng, (), x)[0].potential)


def walk(scale, density=lambda rng, x, y, h: 0.0, test=lambda rng, log_ratio: np.log(rng.random()) < log_ratio):
    """Metropolis' test of a step of `scale(x)` standard deviations, the log of the proposal densities added."""

    def step(rng, x, h, estimator):
        U = energy_of(estimator, rng)
        y = x + scale(x) * np.sqrt(2 * h) * rng.standard_normal(x.shape)
        return y if test(rng, U(x) - U(y) + density(rng, x, y, h)) else x

    return step


def correct(scale):
    """The log of the ratio of the densities of two walks whose scale follows the position."""

    def density(rng, x, y, h):
        there, back, square = scale(x), scale(y), np.sum((x - y) ** 2) / (4 * h)
        return square / there**2 - square / back**2 + x.size * np.log(there / back)

    return density


def autoregressive(reference):
    """The proposal that keeps N(0, I), with `reference` times what it says of the ratio."""

    def step(rng, x, h, estimator):
        U, kept = energy_of(estimator, rng), np.exp(-h)
        y = kept * x + np.sqrt(1 - kept**2) * rng.standard_normal(x.shape)
        log_ratio = U(x) - U(y) + reference * (np.sum(y * y) - np.sum(x * x)) / 2
        if np.log(rng.random()) < log_ratio:
            return y
        return x

    return step


def langevin(there):
    """MALA; the density of the way back is taken at the gradient of its start where `there`."""

    def step(rng, x, h, estimator):
        asked = lambda q: estimator.estimate(rng, (), q)[0]
        old = asked(x)
        y = x - h * old.gradient + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        new = asked(y)
        slope = new.gradient if there else old.gradient
        back, forth = np.sum((x - y + h * slope) ** 2), np.sum((y - x + h * old.gradient) ** 2)
        if rng.random() < min(1.0, np.exp(float(old.potential) - float(new.potential) + (forth - back) / (4 * h))):
            return y
        return x

    return step


far = lambda x: 2.0 if np.sum(x * x) > 4 * x.size else 1.0
smooth = lambda x: np.sqrt(1 + np.mean(x * x))
barker = lambda rng, log_ratio: rng.random() < 1 / (1 + np.exp(-log_ratio))
RIGHT = {
    "a walk": walk(lambda x: 1.0),
    "Barker's rule": walk(lambda x: 1.0, test=barker),
    "longer steps far out, with their densities": walk(far, correct(far)),
    "autoregressive": autoregressive(1.0),
    "MALA": langevin(True),
}
WRONG = {
    "longer steps far out": walk(far),
    "a scale that follows the position": walk(smooth),
    "a coordinate too few in the densities": walk(
        smooth, lambda rng, x, y, h: correct(smooth)(rng, x, y, h) - np.log(smooth(x) / smooth(y))
    ),
    "autoregressive, without its reference": autoregressive(0.0),
    "MALA, the way back with the gradient of the way there": langevin(False),
    "a test that is cut at three standard deviations": walk(
        lambda x: 1.0, test=lambda rng, r: np.log(rng.random()) < (r if r > -4 else -4.0)
    ),
}


def subject(step, exact=True) -> Subject:
    """A sampler in Python that says that it is exact, or nothing."""
    claims = Claims(Source("", "own"), ExactLaw()) if exact else None
    return resolve_object("mine", simple_sampler(step, backend="host", claims=claims))[0]


@pytest.mark.parametrize("name", [PLANE, LINE])
@pytest.mark.parametrize("kernel", RIGHT)
def test_a_right_kernel_balances(kernel, name):
    found = decide(detailed_balance, subject(RIGHT[kernel]), name, 3, numerics=True)
    assert found.verdict == "pass", found.reason
    assert AS_READ in found.reason
    assert found.backend == "host"


@pytest.mark.parametrize("kernel", WRONG)
def test_a_wrong_kernel_does_not_balance(kernel):
    found = decide(detailed_balance, subject(WRONG[kernel]), PLANE, 3, numerics=True)
    assert found.verdict == "fail", found.reason
    assert AS_READ in found.reason


def test_it_is_planned_for_exact_kernels_alone():
    assert PLANE in detailed_balance.applies_to(subject(RIGHT["a walk"]))
    assert detailed_balance.applies_to(subject(RIGHT["a walk"], exact=False)) == ()


def test_what_no_symbol_goes_through_and_many_coordinates_are_left_to_sampling():
    text = walk(lambda x: float(f"{1 + 0 * x.ravel()[0]:.3f}"))
    assert decide(detailed_balance, subject(text), PLANE, 3, numerics=True).reason == NOT_TRACED
    assert target(MATRIX).size > proved.FEW
    assert decide(detailed_balance, subject(RIGHT["a walk"]), MATRIX, 3, numerics=True).reason == NOT_TRACED
