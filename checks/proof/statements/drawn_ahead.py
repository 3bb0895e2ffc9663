"""Numbers of a state that were drawn a step ahead: a noisy gradient that the next step uses once more.

A number m' = G(z', xi) that `pack` would make of the new z too, with other draws of the same laws, is one of a packed
state, but for one thing: its draws xi have moved z' as well. Where they are in z' from s^p on and m is in the next step
from s^q on, s = sqrt(h), z' can be replaced in that step by what it would be without xi: with z_0 for it,

    E (A_k f)(z', G(z', xi)) = E int (A_k f)(z_0, G(z_0, xi)) dxi + O(s^p),    A_k of order s^q at the least in m,

and back again. So the law of z is that of steps from packed states, up to a relative O(s^(p + q)) in a step, and the
c_k at powers of s below p + q are those of packed states.
"""

from collections.abc import Sequence

import jax

from sgmcmc_verification.checks.proof.draws import Draw, draws_in
from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.expansion import coordinates
from sgmcmc_verification.checks.proof.functions import all_substituted
from sgmcmc_verification.checks.proof.potential import Memory
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.traced import Stepped, Traced
from sgmcmc_verification.checks.proof.zero import is_zero
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target

AHEAD = "numbers drawn ahead"
EQUATION = "m' = G(z', xi), of the law of pack(z'), and xi is not felt with m up to h^{order}"


def own_draws(step: Stepped, places: Sequence[int]) -> frozenset[int] | None:
    """The draws that numbers of a state are made of beside z'; None unless `pack` makes the same of z' with others."""
    new, packed = ([a for i in places for a in entries[i].polynomials()] for entries in (step.after, step.repacked))
    kinds = [frozenset().union(*map(draws_in, some)) for some in (new, packed)]
    own, others = sorted(kinds[0] - kinds[1]), sorted(kinds[1] - kinds[0])
    if not own or len(own) != len(others):
        return None
    ring = new[0].ring
    if any(_law(ring, a) != _law(ring, b) for a, b in zip(own, others, strict=True)):
        return None
    renamed = {b: ring.generator(ring.generators[a]) for a, b in zip(own, others, strict=True)}
    for i in places:
        a, b = step.after[i].coefficients, step.repacked[i].coefficients
        for k in {*a, *b}:
            if not is_zero(a.get(k, ring.zero) - all_substituted(b.get(k, ring.zero), renamed)):
                return None
    return frozenset(own)


def _law(ring: Ring, number: int) -> object:
    generator = ring.generators[number]
    return generator.law if isinstance(generator, Draw) else None


def drawn_ahead(sampler: Sampler, target: Target, estimator: Estimator, places: frozenset[int], order: int) -> Result:
    """Decide if the c_k up to order + 1/2 are those of packed states, for numbers at places that were drawn ahead."""
    equation, powers = EQUATION.format(order=order), 2 * order + 1
    found: list[str] = []
    with jax.enable_x64(True):
        traced, space = Traced.of(sampler, estimator, target), Space(Ring(), powers)

        def one_path(path: Path) -> None:
            found.append(_felt(traced, target, space, path, sorted(places)))

        try:
            for _ in every_path(one_path):
                pass
        except (Unreadable, PrecisionLost) as error:
            return Result(AHEAD, equation, "undecided", str(error))
    reason = next(filter(None, found), "")
    return Result(AHEAD, equation, "undecided" if reason else "proved", reason)


def _felt(traced: Traced, target: Target, space: Space, path: Path, places: Sequence[int]) -> str:
    """The reason why the draws of a number may be felt with it, on one path; empty if they are not."""
    reader = new_reader(space, path)
    z = coordinates(space.ring, traced.size, traced.dimension, target.manifold.is_positive)
    leaves = traced.packed(reader, [space.lift(p) for p in z])
    entries = traced.inexact(reader, leaves)
    symbols = {i: space.ring.generator(Memory(f"memory {i + 1}")) for i in places}
    known = [space.lift(symbols[i]) if i in symbols else a for i, a in enumerate(entries)]
    step = traced.stepped(reader, traced.with_inexact(leaves, known), space.power_of_step(2))
    own = own_draws(step, places)
    if own is None:
        return "a number that is not what `pack` makes of the new z"
    moved = [*step.z, *(a for i, a in enumerate(step.after) if i not in symbols)]
    numbers = frozenset().union(*(p.numbers() for p in symbols.values()))
    decisions = [*path.assumed, *(decision.difference for decision in path.acceptances)]
    if any(numbers & p.atoms() for p in decisions):
        return "a branch depends on it"
    p, q = (_first_power(moved, some) for some in (own, numbers))
    if p + q <= space.order:
        return f"its draws move z from s^{p} on, and it is in the next step from s^{q} on"
    return ""


def _first_power(entries: Sequence[Series], numbers: frozenset[int]) -> int:
    """The lowest power of s at which one of the generators is met; the precision if there is none."""
    powers = [k for a in entries for k, p in a.coefficients.items() if numbers & p.atoms()]
    return min([*powers, *(a.precision for a in entries), entries[0].space.order + 1])
