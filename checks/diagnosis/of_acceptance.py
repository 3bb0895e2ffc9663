"""The acceptance of a Metropolis kernel as a sum of its parts, with rational coefficients that should all be 1.

log a = (U(x) - U(x')) / T + K(p) - K(p') + log q(z' -> z) - log q(z -> z')  (metropolis1953equation,
hastings1970monte), where U and grad U at each point are independent symbols: each part is seen by itself.
"""

from collections.abc import Mapping
from fractions import Fraction

from sgmcmc_verification.checks.diagnosis.cause import Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.combinations import combination, vanishes
from sgmcmc_verification.checks.diagnosis.step import LONG
from sgmcmc_verification.checks.proof.statements.balance import Kernel, Parts
from sgmcmc_verification.samplers.interface.claims import Diffusion, Reversal
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

POTENTIAL, KINETIC, DENSITY = "the difference of energies", "the kinetic energy", "the ratio of proposal densities"


def of_acceptance(
    sampler: Sampler, target: Target, estimator: Estimator, known: Mapping[str, float]
) -> Diagnosis | None:
    """The part that the acceptance lacks or has too often, or what a rejected proposal leaves behind."""
    claims = sampler.claims
    equation, reversal = claims.get(Diffusion), claims.get(Reversal)
    hamiltonian = equation.dynamics(target).H if equation is not None and reversal is not None else None
    flip = None if reversal is None else reversal.map
    parts = Kernel(sampler, target, estimator, claims.temperature, hamiltonian, flip).parts()
    if parts is None:
        return None
    texts = [text for text in (_ratio(parts, known), _rejection(parts)) if text]
    if not texts:
        return None
    return Diagnosis("acceptance", "; ".join(texts), f"log a = {parts.ratio.text(LONG)}")


def _ratio(parts: Parts, known: Mapping[str, float]) -> str:
    terms = [(POTENTIAL, parts.potential), (KINETIC, parts.rest), (DENSITY, parts.density)]
    there = [(name, p) for name, p in terms if not vanishes([p])]
    found = combination([parts.ratio], [[p] for _, p in there])
    if found is not None:
        pairs = zip((name for name, _ in there), found, strict=True)
        return "; ".join(_words(name, c, known) for name, c in pairs if c != 1)
    wanted = parts.potential + parts.rest + parts.density
    if vanishes([parts.ratio - wanted + parts.cross.scaled(2)]):
        return "the gradient has the wrong sign in the density of the proposal"
    return ""


def _words(name: str, c: Fraction, known: Mapping[str, float]) -> str:
    if c == 0:
        return f"the acceptance lacks {name}"
    if c == -1:
        return f"{name} has the wrong sign in the acceptance"
    return f"{name} has the factor {factor(float(c), known)} in the acceptance"


def _rejection(parts: Parts) -> str:
    if vanishes(parts.rejected):
        return ""
    if vanishes(parts.unmoved):
        return "a rejected proposal leaves the momentum as it is, it has to turn it around"
    if parts.rejected == parts.unmoved:
        return "a rejected proposal does not leave the state where it was"
    return ""
