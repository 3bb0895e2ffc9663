"""Trials of the tier `workload`, of a kernel on a posterior whose state has no fixed dimension.

A sampler of a Dirichlet-process mixture, a Gibbs sweep over the words of a document or a sample of topics with a batch
of documents is no step on a `Target`. What they share is a posterior small enough for its expectations to be sums or
integrals, and end points of independent chains. A row of this tier (`samplers.topic_models.entries`) therefore builds a
kernel, and `trials`, which dispatches on its type, says how each check is run on it: a `Trial`.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.end_points.error_rates import (
    Sensitivity,
    current_fraction,
    decide_statistically,
    stage_seed,
)
from sgmcmc_verification.checks.end_points.step_size_limit import limit_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.targets.target import Target

LAW, LIMIT, JOINT, MEAN = "enumerated_law", "enumerated_limit", "joint_distribution", "unbiased_estimates"
"""The checks of the tier."""
LEAST = 64
"""Chains of the first stage, whatever fraction of them is asked for."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Run of one check on one kernel.

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


@singledispatch
def trials(kernel: object, step_size: float) -> Mapping[str, Trial]:
    """The trials of a kernel by the name of the check; a check that is not among the keys does not apply."""
    raise TypeError(f"{type(kernel).__name__} is no kernel of the tier workload: no trials are registered for it")


def trials_of(kernel: object, step_size: float) -> Mapping[str, Trial]:
    """`trials`, those of the suite's own kernels registered first, for which Numba has to be loaded."""
    for module in ("dp", "lda", "sam"):
        importlib.import_module(f"sgmcmc_verification.checks.tiers.workload.{module}")
    return trials(kernel, step_size)


def run_trial(name: str, case: Case, seed: int) -> Finding:
    """Run the trial of a check and judge it."""
    h = case.step_size
    trial = trials_of(kernel_of(case.subject, case.target), h)[name]
    count = max(LEAST, int(current_fraction() * trial.chains))

    def reason(worst: Outcome) -> str:
        if worst.measured is not None and worst.expected is not None:
            return f"{worst.name} is {worst.measured:.5g}, exact {worst.expected:.5g}"
        return f"{worst.name}: {worst.effect:.3g} {worst.unit}"

    return decide_statistically(
        lambda stage, n: trial.run(stage_seed(seed, stage), n),
        first_n=count,
        promised=Sensitivity(trial.promised, chains=trial.chains, primary=lambda o: o.unit == trial.unit).of(count),
        allowance_source=trial.source,
        reason=reason,
        steps=trial.steps,
        step_size=h,
        detail={"chains": count},
    )


def on_trial(name: str) -> Callable[[Subject], tuple[str, ...]]:
    """The posteriors of a row of the tier `workload` on which its kernel has a trial for this check."""
    return lambda subject: tuple(
        n for n in subject.row.targets if name in trials_of(kernel_of(subject, find_target(n)), subject.row.step_size)
    )


@statement(
    tier="workload",
    equation="E f(z_n) is the sum or integral over the posterior",
    targets=on_trial(LAW),
    cost=2.0,
    decides="law",
    samples=True,
)
def enumerated_law(case: Case, seed: int) -> Finding:
    """The end points have the exact expectations of the enumerated posterior."""
    return run_trial(LAW, case, seed)


@statement(
    tier="workload",
    equation="E f(z_n) -> its sum or integral over the posterior as h -> 0",
    targets=on_trial(LIMIT),
    cost=6.0,
    decides="law",
    samples=True,
)
def enumerated_limit(case: Case, seed: int) -> Finding:
    """The exact expectations are the limits of those of the end points as h -> 0."""
    return run_trial(LIMIT, case, seed)


@statement(
    tier="workload",
    equation="E of a gradient or a step, over batches and latent variables, is that of all data",
    targets=on_trial(MEAN),
    cost=2.0,
    decides="law",
    samples=True,
)
def unbiased_estimates(case: Case, seed: int) -> Finding:
    """Estimates from minibatches have the expectation of those from all data."""
    return run_trial(MEAN, case, seed)


@statement(
    tier="workload",
    equation="E g(theta_n, y_n) = E g(theta, y) under p(theta) p(y | theta)",
    targets=on_trial(JOINT),
    cost=2.0,
    decides="law",
    samples=True,
    once=True,
)
def joint_distribution(case: Case, seed: int) -> Finding:
    """Geweke's test: alternating with draws of the data, the kernel keeps the joint law of parameters and data."""
    return run_trial(JOINT, case, seed)


def kernel_of(subject: Subject, target: Target) -> object:
    """The kernel of a row of this tier on a posterior."""
    return subject.row.build(target, **subject.options)


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
            mean_test(
                values[:, k],
                float(self.expected[k]),
                name=name,
                unit=UNIT,
                scale=float(self.scale[k]),
                allowance=float(self.error[k] / self.scale[k]),
            )
            for k, name in enumerate(self.names)
        ]

    def limit(self, values: np.ndarray, order: int) -> list[Outcome]:
        """Tests that the means of values (3, n, K) at h, h/2, h/4 tend to the expected ones, up to terms that vanish.

        Chain i of each step size makes one value of the extrapolated statistic. Chains i may share their start, which
        takes a part of the variance out: the values of different i stay independent.
        """
        return [
            limit_test(
                values[:, :, k] / self.scale[k],
                order,
                float(self.expected[k] / self.scale[k]),
                name,
                error=float(self.error[k] / self.scale[k]),
                unit=UNIT,
            )
            for k, name in enumerate(self.names)
        ]


UNIT = "standard deviations"
EXTRAPOLATED = "the correction of order h^(q+1), extrapolated away last"
