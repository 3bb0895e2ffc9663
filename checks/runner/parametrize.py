"""Checks of samplers as items of somebody's own test file."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sgmcmc_verification.checks.core.compilation import compiled_for_checks
from sgmcmc_verification.checks.runner.check_sampler import decided, plan_for, sampled
from sgmcmc_verification.checks.runner.plan import Plan, PlannedCheck, PlannedSampling
from sgmcmc_verification.checks.runner.report import Report
from sgmcmc_verification.checks.runner.text import Outcome, block


class _Run:
    """The outcomes of one sampler in this process, shared by its items."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._ready = False
        self._found: dict[int, list[Outcome]] = {}

    def outcomes(self, case: PlannedCheck | PlannedSampling) -> list[Outcome]:
        """Those of a check, which runs once."""
        if id(case) not in self._found:
            with compiled_for_checks():
                if not self._ready:
                    self.plan.preflight()
                    self._ready = True
                self._found[id(case)] = [decided(self.plan, each) for each in case.cases]
        return self._found[id(case)]

    def report(self) -> Report:
        """The report from all checks, of which those that did not run yet do so now, and from runs if it needs some."""
        found = [each for case in self.plan.checks for each in self.outcomes(case)]
        with compiled_for_checks():
            first = self.plan.cases[0]
            found += sampled(self.plan, first.subject, [each.judged for each in found], first.seed)
        return Report(self.plan, found, "checks.parametrize_with_checks")


class _Check:
    """One check of one sampler: called with the sampler, it fails with the text of what is wrong."""

    def __init__(self, run: _Run, case: PlannedCheck) -> None:
        self._run, self._case = run, case

    def __call__(self, sampler: Any) -> None:
        del sampler  # it is the one of the item
        wrong = [each for each in self._run.outcomes(self._case) if not each.ok]
        if wrong:
            pytest.fail("\n\n".join(block(each.result, each.expected) for each in wrong), pytrace=False)


class _Conclusion:
    """The conclusion about one sampler: called with the sampler, it fails with the text of the report."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def __call__(self, sampler: Any) -> None:
        del sampler
        report = self._run.report()
        if not report.good:
            pytest.fail(str(report), pytrace=False)


def parametrize_with_checks(
    samplers: Iterable[Any],
    *,
    expected_failures: Callable[[Any], Mapping[str, str]] | str | Path | None = None,
    **given: Any,
) -> pytest.MarkDecorator:
    """Parametrise a test over samplers and the checks that apply to them, with the conclusion as the last item of each.

        @checks.parametrize_with_checks([MySampler(), OtherSampler])
        def test_sampler(sampler, check):
            check(sampler)

    An item fails where a statement does. The conclusion fails where `pytest checks` would: where the law is violated or
    undecided, or the conduct is at fault. Checks that were deselected or ran in another process run for it again.

    Args:
        samplers: objects, classes, functions of a Target, or texts as `--sampler` takes them.
        expected_failures: sampler -> {statement: reason} of what is expected to fail, or a file, as for
            `check_sampler`; one that passes is an error.
        given: other arguments of `check_sampler`: targets, tiers, claims, options, step_size, seed, check_set.

    Raises:
        BadInput: for an object that is no sampler.
    """
    items = []
    for sampler in samplers:
        known = expected_failures(sampler) if callable(expected_failures) else expected_failures
        with compiled_for_checks():
            run = _Run(plan_for(sampler, expected_failures=known, **given))
        for case in run.plan.checks:
            if isinstance(case, PlannedCheck):
                items.append(pytest.param(sampler, _Check(run, case), id=case.id))
        items.append(pytest.param(sampler, _Conclusion(run), id=f"{run.plan.rows[0]}-conclusion"))
    return pytest.mark.parametrize(("sampler", "check"), items)
