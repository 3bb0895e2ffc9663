"""The force as a shear, and the motion without one: against closed forms, and where the checks do not apply."""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.order.symplecticity import exact_without_force, force_keeps_volume
from sgmcmc_verification.samplers.interface.claims import Diffusion, ExactFreeMotion, ShearingForce
from sgmcmc_verification.samplers.registry import sampler_row

EXPLICIT = {"friction": 2.0, "temperature": 0.5}


def verdict(name: str, row: str, target: str, **options):
    return execute(find_statement(name), Subject(sampler_row(row), options), target, 1)


def test_the_volume_of_explicit_euler_knows_the_hessian():
    # the same sampler with another momentum that moves the position: of the same order, and only one is symplectic
    law = find_target("double-well")
    right = force_keeps_volume(Case(Subject(sampler_row("sghmc")), law))
    explicit = Case(Subject(sampler_row("sghmc-explicit"), EXPLICIT), law)  # does not claim it
    wrong = force_keeps_volume.function(explicit, ShearingForce())
    assert right.verdict == "pass"
    assert wrong.verdict == "fail"


def test_the_volume_of_a_step_without_curvature_is_that_of_its_friction():
    law = find_target("gaussian-correlated-2d")
    subject = Subject(sampler_row("sghmc"))
    result = force_keeps_volume(Case(subject, law))
    h = subject.step_size(law)
    assert result.measurements["log_volume"] == pytest.approx(2 * np.log(1 - h), abs=1e-8)


def test_the_explicit_scheme_does_not_claim_to_shear():
    assert find_statement("force_keeps_volume").applies_to(Subject(sampler_row("sghmc-explicit"))) == ()


@pytest.mark.parametrize("friction", [0.4, 30.0])
def test_a_splitting_with_the_flow_of_free_motion_is_exact_without_a_force(friction):
    assert verdict("exact_without_force", "ubu", "gaussian-correlated-2d", friction=friction).verdict == "pass"


def test_a_splitting_into_drift_and_refresh_is_not():
    # BAOAB has the exact momentum without a force, not the exact position: its noise comes in one piece
    case = Case(Subject(sampler_row("baoab")), find_target("gaussian-correlated-2d"))  # does not claim it
    claims = case.subject.sampler(case.target).claims
    result = exact_without_force.function(case, ExactFreeMotion(), claims[Diffusion])
    assert result.verdict == "fail"
    assert "covariance" in result.reason
