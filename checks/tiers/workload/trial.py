"""What the tier `workload` runs: trials of a kernel on a posterior whose state has no fixed dimension.

A sampler of a Dirichlet-process mixture, a Gibbs sweep over the words of a document or a sample of topics with a batch
of documents is no step on a `Target`. What they share is a posterior small enough for its expectations to be sums or
integrals, and end points of independent chains. A row of this tier (`checks.tiers.workload.registry`) therefore builds
a `Kernel`, which says by itself how each check is run on it: a `Trial`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from checks.core.candidate import Subject
from checks.core.check import Check
from checks.core.result import Result
from checks.end_points.error_rates import current_fraction, decide_statistically, promise, stage_seed
from checks.statistics.moments import mean_test
from checks.statistics.outcome import Outcome
from checks.tiers.invariance.step_size_limit import limit_test
from targets.target import Target

LAW, LIMIT, JOINT, MEAN = "enumerated_law", "enumerated_limit", "joint_distribution", "unbiased_estimates"
"""The checks of the tier."""
LEAST = 64
"""Chains of the first stage, whatever fraction of them is asked for."""


@dataclass(frozen=True, eq=False)
class Trial:
    """How one check is run on one kernel.

    Attributes:
        run: (seed, n) -> outcomes from n independent chains, the same hypotheses whatever the seed.
        chains: of the first stage at full size.
        promised: the effect that so many chains have to see among the outcomes of `unit`.
        unit: of the outcomes of which this is promised.
        source: what the expected values and the allowance come from.
        steps: of a chain, for the count.
    """

    run: Callable[[int, int], Sequence[Outcome]]
    chains: int
    promised: float
    unit: str
    source: str
    steps: int


class Kernel(Protocol):
    """A kernel on a posterior: what `Row.build` of this tier returns."""

    backend: str

    def trials(self, step_size: float) -> Mapping[str, Trial]:
        """The trials by the name of the check; a check that is not among the keys does not apply."""
        ...


def run_trial(check: Check, subject: Subject, target: Target, seed: int) -> Result:
    """Run the trial of this check and judge it."""
    h = subject.step_size(target)
    trial = kernel_of(subject, target).trials(h)[check.name]
    count = max(LEAST, int(current_fraction() * trial.chains))

    def reason(worst: Outcome) -> str:
        if worst.measured is not None and worst.expected is not None:
            return f"{worst.name} is {worst.measured:.5g}, exact {worst.expected:.5g}"
        return f"{worst.name}: {worst.effect:.3g} {worst.unit}"

    return decide_statistically(
        check, subject, target, lambda stage, n: trial.run(stage_seed(seed, stage), n),
        first_n=count, promised=promise(trial.promised, count, trial.chains), allowance_source=trial.source,
        reason=reason, primary=lambda o: o.unit == trial.unit, steps=trial.steps, step_size=h,
        detail={"chains": count},
    )  # fmt: skip


def kernel_of(subject: Subject, target: Target) -> Kernel:
    """The kernel of a row of this tier on a posterior."""
    return subject.row.build(target, **subject.options)  # pyright: ignore[reportReturnType]


@dataclass(frozen=True, eq=False)
class Moments:
    """Functions with exact expectations, in standard deviations of the posterior.

    Attributes:
        names: of the K functions.
        expected: (K,).
        scale: (K,), their posterior standard deviations.
        error: (K,), numerical errors of `expected`.
    """

    names: Sequence[str]
    expected: np.ndarray
    scale: np.ndarray
    error: np.ndarray

    def law(self, values: np.ndarray) -> list[Outcome]:
        """Tests that the means of values (n, K) are the expected ones."""
        return [
            mean_test(values[:, k], float(self.expected[k]), name=name, unit=UNIT, scale=float(self.scale[k]),
                      allowance=float(self.error[k] / self.scale[k]))
            for k, name in enumerate(self.names)
        ]  # fmt: skip

    def limit(self, values: np.ndarray, order: int) -> list[Outcome]:
        """Tests that the means of values (3, n, K) at h, h/2, h/4 tend to the expected ones, up to terms that vanish.

        Chain i of each step size makes one value of the extrapolated statistic. Chains i may share their start, which
        takes a part of the variance out: the values of different i stay independent.
        """
        return [
            limit_test(values[:, :, k] / self.scale[k], order, float(self.expected[k] / self.scale[k]), name,
                       error=float(self.error[k] / self.scale[k]), unit=UNIT)
            for k, name in enumerate(self.names)
        ]  # fmt: skip


UNIT = "standard deviations"
EXTRAPOLATED = "the correction of order h^(q+1), extrapolated away last"
