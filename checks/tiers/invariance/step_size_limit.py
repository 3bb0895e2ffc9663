"""The limit h -> 0 of the law of independent chains, extrapolated with its standard error.

Chains that start from the claimed law and run for a fixed time T = n h end in it up to a bias b(h) = c_q h^q + ..,
q the claimed order, with everything else (friction, steps a refresh, batch fraction) held fixed. The means of three
step sizes h, h/2, h/4 are combined so that the two leading powers cancel; what is left is compared with the exact
expectations. It needs no exact discrete law, so it covers every target with an exact sampler and every sampler that
can be run; it is the only check of the tier for a law that nothing else is known about.
"""

from sgmcmc_verification.checks.core.check import Case, NotApplicable, require_stationary_law, statement
from sgmcmc_verification.checks.core.finding import Finding
from sgmcmc_verification.checks.core.selection import informative
from sgmcmc_verification.checks.end_points.step_size_limit import limit_of_chains, order_of
from sgmcmc_verification.checks.exact_laws.null_law import null_law
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.interface.claims import ExactLaw


def known(step: JaxStep | HostStep, h: float) -> bool:
    """True if the exact discrete law is known, so that nothing has to be extrapolated."""
    try:
        null_law(step, h)
    except NotApplicable:
        return False
    return True


@statement(
    tier="invariance",
    equation="E f(z_n) -> pi(f) as h -> 0 at fixed time and everything else fixed",
    targets=informative,
    cost=5.0,
    decides="law",
    samples=True,
)
def step_size_limit(case: Case, seed: int) -> Finding:
    """With everything else fixed, the law of the position tends to the target as h -> 0, within its standard error."""
    step, h = step_map(case.subject, case.target), case.step_size
    claims = step.sampler.claims
    require_stationary_law(claims)
    if known(step, h) and (case.target.gaussian is not None or ExactLaw in claims):
        raise NotApplicable("the exact discrete law is known here, and the end points are compared with it")
    return limit_of_chains(case.subject, case.target, seed, step, order_of(claims))
