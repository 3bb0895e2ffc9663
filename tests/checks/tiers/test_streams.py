"""Streams of random numbers, and single precision: verdicts on right and wrong samplers; seeds of the suite itself."""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.chains import end_points
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

SEED = 7


@pytest.mark.parametrize(
    ("name", "check", "on", "fraction"),
    [
        ("sgld-leaves-share-a-key", "streams_independent", "gaussian-pytree", 0.05),
        ("sgld-drift-in-half", "float32_law", "gaussian-1d-scaled", 0.1),
    ],
)
def test_a_planted_bug_fails_and_its_reference_passes(name, check, on, fraction):
    """Further than the check that the bug names."""
    defect = find_defect(name)
    with fraction_of_chains(fraction):
        wrong, right = (execute(find_statement(check), s, on, SEED) for s in (defect.subject, defect.base_subject))
    assert wrong.verdict == "fail", wrong.reason
    assert right.verdict == "pass", right.reason
    assert right.detectable is not None


def test_chains_in_single_precision_are_in_single_precision():
    from sgmcmc_verification.checks.core.precision import in_dtype

    step = step_map(Subject(sampler_row("sgld")), in_dtype(target("gaussian-1d-scaled"), np.float32))
    ends = end_points(step, np.zeros((8, 1)), 0.01, 2, 0)
    assert ends.position.dtype == np.float32


def test_end_points_of_neighbouring_seeds_have_nothing_in_common():
    step = step_map(Subject(sampler_row("sgld")), target("gaussian-1d-scaled"))
    draws = np.concatenate([end_points(step, np.zeros((4096, 1)), 0.01, 1, s).position[:, 0] for s in (3, 4)])
    assert len(np.unique(draws)) == len(draws)
