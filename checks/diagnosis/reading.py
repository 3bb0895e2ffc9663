"""The diagnosis that the polynomials of a step bear out, before any number is asked.

Nothing is compiled: a step is read with an uninterpreted potential, its drift and its covariance at order h are
matched exactly against what they should be. Where that is not possible, or not in one way only, nothing is said.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.diagnosis.cause import Diagnosis
from sgmcmc_verification.checks.diagnosis.combinations import vanishes
from sgmcmc_verification.checks.diagnosis.evidence import known_numbers
from sgmcmc_verification.checks.diagnosis.of_acceptance import of_acceptance
from sgmcmc_verification.checks.diagnosis.of_code import from_the_code
from sgmcmc_verification.checks.diagnosis.of_declared import against_recipe
from sgmcmc_verification.checks.diagnosis.step import Step, flat
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.expansion import NOT_SMALL, Recipe, Region, expand
from sgmcmc_verification.checks.proof.hosts.recorded import as_written
from sgmcmc_verification.checks.proof.memory import remembers
from sgmcmc_verification.checks.proof.of_subject import BATCH, Asked, asked, in_batches, proofs_of
from sgmcmc_verification.checks.proof.operators import Density
from sgmcmc_verification.checks.proof.potential import DATA
from sgmcmc_verification.checks.proof.prove import declared_dynamics, expansion_of, prepared
from sgmcmc_verification.checks.proof.reader.randomness import ONE_KEY, SAME_KEY
from sgmcmc_verification.checks.proof.ring import rings_limited
from sgmcmc_verification.checks.proof.settings import PLANE, TREE, Setting
from sgmcmc_verification.checks.proof.statements.closure import closed_state
from sgmcmc_verification.checks.proof.statements.data import UNBIASED, data_statements
from sgmcmc_verification.checks.proof.statements.exchange import EXCHANGE
from sgmcmc_verification.checks.proof.statements.orders import INVARIANT
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.interface.capabilities import MinibatchEstimator
from sgmcmc_verification.samplers.interface.claims import ExactLaw, Exchange, StationaryLaw
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

SETTINGS = (PLANE, TREE)
"""Positions at which a step is read: two coordinates first, then leaves."""
FIRST, FAR = 2, 6
"""Powers of sqrt(h): of drift and diffusion, and those at which noise or drift are looked for that have another one."""
WORK = 100_000
"""Products of terms, about a second at the most."""
OF_DATA = {
    "N": Fraction(DATA),
    "1/N": Fraction(1, DATA),
    "1/N^2": Fraction(1, DATA**2),
    "n/N": Fraction(BATCH, DATA),
    "N/n": Fraction(DATA, BATCH),
}
POLYNOMIAL = (against_recipe, from_the_code)
"""Polynomials of a step -> a diagnosis or None."""


def read(subject: Subject, with_data: bool) -> Diagnosis | None:
    """The mistake that the polynomials of a step show; None if they show none, or none for sure.

    Args:
        subject: a sampler that a statement has found wrong.
        with_data: it was found so on a target with data; a factor may then be the number of data.
    """
    if subject.row.is_kernel:
        return None
    return _cached(asked(subject), with_data) or _exchange(subject)


def _exchange(subject: Subject) -> Diagnosis | None:
    """The term of the chance of an exchange that is wrong: that of the energies, or the correction for their noise."""
    if Exchange not in subject.sampler(find_target(subject.row.targets[0])).claims:
        return None
    for proof in proofs_of(subject).values():
        for result in proof.results:
            if proof.verdict == "fail" and result.statement == EXCHANGE and result.outcome == "violated":
                energies = "U" in result.polynomial
                term = "the factor of the difference of energies" if energies else "the correction for noisy energies"
                return Diagnosis("acceptance", f"in the chance of an exchange {term} is wrong", result.polynomial)
    return None


def read_order(subject: Subject) -> Diagnosis | None:
    """The loss of an order, where the law is right as h -> 0 and nothing else is known of the mistake."""
    for proof in proofs_of(subject).values():
        for result in proof.results:
            claimed = result.statement.removeprefix(f"{INVARIANT} ")
            if proof.verdict != "fail" or result.outcome != "violated" or claimed != "2":
                continue
            if result.reason.startswith("c_2 "):
                text = "of order 1: the law is right as h -> 0 and wrong by O(h), where order 2 is claimed"
                return Diagnosis("second order", text, f"c_2 = {result.polynomial}")
    return None


@functools.lru_cache(maxsize=64)
def _cached(key: Asked, with_data: bool) -> Diagnosis | None:
    subject = key.subject
    for setting in SETTINGS:
        try:
            with jax.enable_x64(True), rings_limited(WORK):
                found = _read(subject, setting, with_data)
        except Exception:
            continue  # a diagnosis is no verdict: what cannot be read says nothing
        if found is not None:
            return found
    return None


def _read(subject: Subject, setting: Setting, with_data: bool) -> Diagnosis | None:
    target, sampler, estimator = prepared(subject.sampler, setting, lambda law: in_batches(subject.estimator(law)))
    claims = sampler.claims
    known = known_numbers(as_written(sampler), dataclasses.replace(target, terms=None))
    of_data = OF_DATA if with_data else {}
    if isinstance(claims.law, ExactLaw):
        return of_acceptance(sampler, target, estimator, known)
    if not isinstance(claims.law, StationaryLaw):
        return None
    if not closed_state(sampler, target, estimator).holds:
        return None
    if (biased := _biased(estimator, target)) is not None:
        return biased
    try:
        steps = _steps(sampler, target, estimator, FIRST, known, of_data)
    except Unreadable as error:
        small = error.reason.startswith(NOT_SMALL) and _is_position(sampler, target)
        return Diagnosis("power of h", error.reason, error.reason) if small else None
    said = [_said(sampler, target, estimator, step) for step in steps]
    # branches have to agree, or the mistake is in one of them and its name is another matter
    return said[0] if said and len({found and found.text for found in said}) == 1 else None


def _biased(estimator: Estimator, target: Target) -> Diagnosis | None:
    """An estimator whose gradient is not that of U in the mean, by what is left at places other than the position."""
    if not remembers(estimator, target) and not isinstance(estimator, MinibatchEstimator):
        return None
    results, _, _ = data_statements(estimator, target)
    wrong = next((r for r in results if r.statement == UNBIASED and r.outcome == "violated" and not r.region), None)
    if wrong is None or "[" not in wrong.polynomial:
        return None
    text = "the estimate of the gradient is biased: gradients of the data at stored points do not cancel in its mean"
    return Diagnosis("data", text, wrong.polynomial)


def _said(sampler: Sampler, target: Target, estimator: Estimator, step: Step) -> Diagnosis | None:
    if any(note.startswith(SAME_KEY) for note in step.notes):
        return None
    found = _found(sampler, target, estimator, step)
    if found is None or (found.cause != "shared draws" and any(note.startswith(ONE_KEY) for note in step.notes)):
        return None  # draws of one key and two shapes are read as two draws, and may be one
    return dataclasses.replace(found, polynomial=step.text())


def _found(sampler: Sampler, target: Target, estimator: Estimator, step: Step) -> Diagnosis | None:
    if (early := _early(step)) is not None or (early := _late(sampler, target, estimator, step)) is not None:
        return early
    return next((found for hypothesis in POLYNOMIAL if (found := hypothesis(step)) is not None), None)


def _is_position(sampler: Sampler, target: Target) -> bool:
    """True if nothing but the position is declared to move: a momentum may be drawn afresh in every step."""
    dynamics = declared_dynamics(sampler, target)
    return dynamics is not None and dynamics.dim == target.size


def _steps(
    sampler: Sampler,
    target: Target,
    estimator: Estimator,
    order: int,
    known: Mapping[str, float],
    of_data: Mapping[str, Fraction],
) -> list[Step]:
    """The step up to s^order on each part of the state space; none if one of them is not read."""
    dynamics = declared_dynamics(sampler, target)
    T = sampler.claims.temperature
    try:
        expansion, _ = expansion_of(sampler, target, estimator, order)
    except Unreadable:
        if dynamics is not None:
            raise
        expansion = expand(sampler, target, estimator, order, _stand_in(target, T), T)
    if expansion.unread:
        return []
    steps = [_of_region(region, dynamics, target.size) for region in expansion.regions]
    temperature = Fraction(T).limit_denominator(1000)
    return [Step(*step, temperature, known, of_data, expansion.notes) for step in steps if step is not None]


def _of_region(
    region: Region, dynamics: Dynamics | None, size: int
) -> tuple[Region, Recipe | None, Sequence[str], int] | None:
    """A region with what is declared there and names, the position first; None if it is not a part of z."""
    if region.readout is not None:
        return None
    count = len(region.density.variables)
    if dynamics is not None:
        return (region, region.recipe, dynamics.names, size) if dynamics.dim == count else None
    if region.places is None:
        return None
    rest = [i for i in range(count) if i not in region.places]
    names = [name.replace("theta", "x") for name in coordinate_names(size, *(["momentum"] if rest else []))]
    return (_reordered(region, [*region.places, *rest]), None, names, size) if len(names) == count else None


def _stand_in(target: Target, temperature: float) -> Dynamics:
    """Dynamics of the position and a momentum, of which no more than the size is used."""
    d = target.size
    zero = lambda z: jnp.zeros((2 * d, 2 * d), z.dtype)
    H = lambda z: target.flat_potential(z[:d]) / temperature + z[d:] @ z[d:] / 2
    return Dynamics(H, zero, zero, coordinate_names(d, "momentum"), d)


def _reordered(region: Region, order: Sequence[int]) -> Region:
    """A region with the coordinates of the position first."""
    density = Density(region.density.hamiltonian, [region.density.variables[i] for i in order])
    moments = {tuple(index[i] for i in order): row for index, row in region.moments.items()}
    return dataclasses.replace(region, moments=moments, density=density)


def _early(step: Step) -> Diagnosis | None:
    """Drift or noise that is larger than order h."""
    moved = [name for name, p in zip(step.names, step.mean(1), strict=True) if not vanishes([p])]
    if not vanishes(flat(step.spread(1))):
        return Diagnosis("power of h", "the variance of the noise goes like h^(1/2), it should go like h")
    if moved and vanishes(flat(step.diffusion)) and not any(p.has("state") for p in step.mean(1)):
        text = "no noise is drawn: a number of the program times h^(1/2) is in its place, the same in every step"
        return Diagnosis("noise", text)
    if moved:
        return Diagnosis("power of h", f"the mean move of {moved[0]} in a step goes like h^(1/2), it should go like h")
    return None


def _late(sampler: Sampler, target: Target, estimator: Estimator, step: Step) -> Diagnosis | None:
    """Drift or noise that is smaller than order h, or absent, where it should be of that order."""
    if step.recipe is not None and vanishes(list(step.recipe.D.ravel())):
        return None
    quiet = vanishes(flat(step.diffusion))
    still = vanishes([p for i, p in enumerate(step.drift) if i < step.size])
    if not quiet and not still:
        return None
    further = next(iter(_steps(sampler, target, estimator, FAR, step.known, step.of_data)), None)
    if further is None or step.region.conditions:
        return None
    k = next((k for k in range(3, FAR + 1) if not vanishes(flat(further.spread(k)))), None)
    if quiet and k is None:
        return Diagnosis("noise", "no noise reaches the state: a step is deterministic")
    if quiet:
        return Diagnosis("power of h", f"the variance of the noise goes like h^{_power(k)}, it should go like h")
    k = next((k for k in range(3, FAR + 1) if not vanishes(further.mean(k)[: step.size])), None)
    if k is None:
        return None
    text = f"the mean move of {step.names[0]} in a step goes like h^{_power(k)}, it should go like h"
    return Diagnosis("power of h", text)


def _power(k: int | None) -> str:
    power = Fraction(k or 0, 2)
    return str(power) if power.denominator == 1 else f"({power})"
