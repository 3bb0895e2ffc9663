"""Judge the end points of independent chains against a null law: what the statistical checks have in common."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.end_points.chains import EndPoints
from sgmcmc_verification.checks.end_points.error_rates import Sensitivity, chains_for, decide_statistically, not_finite
from sgmcmc_verification.checks.exact_laws.null_law import NullLaw
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.statistics.distribution import ks_test
from sgmcmc_verification.checks.statistics.moments import mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep

PROJECTIONS = 3
"""Random directions, besides the coordinates, in which joint laws are projected."""


def judge(
    *,
    step: JaxStep | HostStep,
    law: NullLaw,
    ends: Callable[[int, int], EndPoints],
    tests: Callable[[NullLaw, np.ndarray], Sequence[Outcome]],
    num_steps: int,
    step_size: float,
    promised: Sensitivity,
    detail: dict | None = None,
) -> Finding:
    """Run `tests(law, y)` on standardised end points, in stages.

    Args:
        ends: (stage, n) -> the end points of n fresh chains of `step`.
        tests: of y (n, k) in the coordinates of `law`.
        num_steps: of each chain.
        promised: the effect that is to be seen; its unit is that of the primary outcomes.
        detail: numbers for the report.
    """
    count = chains_for(step, promised.chains)

    def run(stage: int, n: int) -> Sequence[Outcome]:
        points = ends(stage, n)
        y = law.standardise(points.variable if law.variable else points.position)
        if not np.isfinite(y).all():
            return [not_finite("end points that are not finite", n, promised.unit)]
        return tests(law, y)

    def reason(worst: Outcome) -> str:
        found = f"{worst.name}: {worst.effect:.3g} {worst.unit}"
        if worst.measured is not None and worst.expected is not None:
            found = f"{worst.name} is {worst.measured:.6g}, expected {worst.expected:.6g}"
        return f"{found} after {num_steps} steps of size {step_size:.4g} ({law.source}; granted {law.granted:.2g})"

    return decide_statistically(
        run,
        first_n=count,
        promised=promised.of(count),
        allowance_source=law.source,
        reason=reason,
        steps=num_steps,
        step_size=step_size,
        detail={"chains": count, "granted": law.granted, "limit_of_code": law.limit, **(detail or {})},
    )


def is_variance(outcome: Outcome) -> bool:
    """True for the outcomes whose detectable effect is promised: relative errors of variances."""
    return outcome.name.endswith("^2") or not np.isfinite(outcome.effect)


def names(law: NullLaw) -> tuple[str, ...]:
    """Names of the observables of the standardised coordinates."""
    return observable_names(tuple(f"y[{i}]" for i in range(law.size)))


def moment_tests(law: NullLaw, y: np.ndarray) -> list[Outcome]:
    """z tests of means, second to fourth moments and waves of y (n, k)."""
    return _tests(law, np.asarray(observables(y)), len(law.expectations))


def second_moment_tests(law: NullLaw, y: np.ndarray) -> list[Outcome]:
    """z tests of means and second moments of y (n, k), where no more of its law is known."""
    i, j = np.triu_indices(law.size)
    return _tests(law, np.concatenate([y, y[:, i] * y[:, j]], axis=1), law.size + len(i))


def _tests(law: NullLaw, values: np.ndarray, count: int) -> list[Outcome]:
    return [
        # numerical error of the null law, relative to the size of f
        mean_test(values[:, k], float(mu), name=name, unit="standardised", allowance=law.error)
        for k, (name, mu) in enumerate(zip(names(law)[:count], law.expectations[:count], strict=True))
    ]


def directions(law: NullLaw) -> list[tuple[str, np.ndarray]]:
    """The coordinates of y and a few fixed random directions, where the law of the projection is known."""
    size = law.size
    axes = [(f"y[{i}]", np.eye(size)[i]) for i in range(size)]
    if size > 1:
        raw = np.random.default_rng(size).standard_normal((PROJECTIONS, size))
        axes += [(f"projection {i}", a / np.linalg.norm(a)) for i, a in enumerate(raw)]
    return [(name, a) for name, a in axes if law.cdf(a) is not None]


def levels(law: NullLaw, y: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """(name, u) with u uniform under the null, for each direction."""
    for name, a in directions(law):
        cdf = law.cdf(a)
        assert cdf is not None  # `directions` keeps no other
        yield name, np.clip(cdf(y @ a), 0.0, 1.0)


def ks_tests(law: NullLaw, y: np.ndarray) -> list[Outcome]:
    """Kolmogorov-Smirnov distances of the marginals and of projections of y (n, k)."""
    return [ks_test(u, name=name, allowance=law.cdf_error) for name, u in levels(law, y)]
