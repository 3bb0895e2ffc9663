"""All that `pytest checks --sampler REFERENCE` decides, from Python: one conclusion."""

import jax

from checks.core.conclusion import Conclusion, Judged, conclude
from checks.runner.fallback import sample
from checks.runner.plan import make_plan
from checks.runner.proved import decide


def verify(reference: str) -> Conclusion:
    """The conclusion about a sampler, runs included where the deterministic statements leave its law open.

    It switches double precision on.

    Args:
        reference: `sgld`, `library/name`, `package.module:object` or `path/to/file.py:object`.

    Raises:
        BadInput: if there is no such sampler, or it cannot take a step.
    """
    jax.config.update("jax_enable_x64", True)
    plan = make_plan([reference])
    plan.preflight()
    results = [decide(case.statement, case.subject, case.target, case.seed) for case in plan.cases]
    judged = [Judged(result, result.verdict) for result in results]
    row, first = plan.rows[0], plan.cases[0]
    more = sample(first.subject, judged, plan.records[row], first.seed)
    return conclude(row, [*judged, *(Judged(result, result.verdict) for result in more)], plan.records[row])
