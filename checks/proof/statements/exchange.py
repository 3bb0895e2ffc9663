"""Jumps that a step makes with a probability of order h, as an exchange between two chains.

With probability c h a(z), a = E min(1, exp(l)), a step starts from J z, else from z, where J exchanges coordinates:

    E f(z') = f + h (L f + c a (f o J - f)) + O(h^2)

The operator at h keeps exp(-H) if L does and the jumps are balanced, a(z) exp(-H(z)) = a(J z) exp(-H(J z)).
For l = m + N(0, v) with a constant v one has E min(1, exp(l)) = exp(m + v / 2) E min(1, exp(l')) with l' of the mean
-m - v, so that the jumps are balanced if

    m + v / 2 = H(z) - H(J z),

which is Metropolis' rule for v = 0. The step is read at finite h, where both ways are exact; that without a jump is
expanded as any other. Nothing of this is known beyond order 1.

Source: deng2020nonconvex for the exchange; ceperley1999penalty for the noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import jax

from sgmcmc_verification.checks.proof.draws import Draw, Expectation, draws_in
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.expansion import Expansion, Recipe, Region, coordinates
from sgmcmc_verification.checks.proof.functions import Applied
from sgmcmc_verification.checks.proof.laws import Normal, Uniform
from sgmcmc_verification.checks.proof.operators import Density, moments
from sgmcmc_verification.checks.proof.potential import Jet, StepRoot
from sgmcmc_verification.checks.proof.reader.paths import Acceptance, Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.proof.statements.closure import finite_space, finite_step
from sgmcmc_verification.checks.proof.statements.result import Result, of_polynomials
from sgmcmc_verification.checks.proof.traced import Traced, evaluated
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.riemannian.metrics import dense
from sgmcmc_verification.targets.target import Target

EXCHANGE = "exchange"
EQUATION = "m + v / 2 = H(z) - H(J z), J J = 1"
HALF = Fraction(1, 2)

Vector = list[Polynomial]


class Chance(NamedTuple):
    """The probability c s^power min(1, exp(log_ratio)) of a jump."""

    scale: Fraction
    power: int
    log_ratio: Polynomial


@dataclass(frozen=True, eq=False)
class Way:
    """One of the two ways through a step: z after it, and the comparison that led there."""

    z: Vector
    acceptance: Acceptance


def with_jumps(
    sampler: Sampler,
    target: Target,
    estimator: Estimator,
    order: int,
    dynamics: Dynamics,
    temperature: float,
    rate: float,
) -> tuple[Expansion, Result]:
    """The expansion of a step without its jumps, and whether these are balanced and as often as is claimed.

    Args:
        sampler: whose step it is.
        target: with an uninterpreted potential.
        estimator: of its gradient.
        order: highest power of s, at most 3.
        dynamics: the declared SDE between two jumps.
        temperature: T of the position.
        rate: jumps that are tried per unit of time.

    Raises:
        Unreadable: if the step is not of the form of the module.
    """
    if order > 3:
        raise Unreadable("jumps in a step of an order above one")
    with jax.enable_x64(True):
        return _Jumps(sampler, target, estimator, dynamics, temperature, rate).found(order)


class _Jumps:
    def __init__(
        self,
        sampler: Sampler,
        target: Target,
        estimator: Estimator,
        dynamics: Dynamics,
        temperature: float,
        rate: float,
    ) -> None:
        self.traced = Traced.of(sampler, estimator, target)
        if dynamics.dim != self.traced.size:
            raise Unreadable("jumps of a step whose dynamics is not declared for all of z")
        self.space = finite_space(None)
        self.ring = self.space.ring
        self.dynamics, self.temperature, self.rate = dynamics, temperature, rate
        self.z = coordinates(self.ring, self.traced.size, self.traced.dimension, target.manifold.is_positive)
        self.variables = tuple(next(iter(p.numbers())) for p in self.z)
        self.points: list[tuple[Polynomial, ...]] = []
        self.notes: set[str] = set()
        self.limits: set[str] = set()
        self.root = self.ring.number(StepRoot())

    def found(self, order: int) -> tuple[Expansion, Result]:
        """See `with_jumps`."""
        jump, stay, chance = self._ways()
        places = self._exchanged(jump)
        self._require_independent(jump, stay)
        balanced = self._balanced(chance, places)
        increment = [self._series(a - b, order) for a, b in zip(stay.z, self.z, strict=True)]
        own = moments(increment, order, Expectation(self.ring))
        reader = new_reader(self.space, finite=True, points=self.points)
        D, Q = (evaluated(reader, lambda y, m=m: dense(m(y)), self.z) for m in (self.dynamics.D, self.dynamics.Q))
        region = Region((), own, Density(self._energy(self.z), self.variables), Recipe(D, Q), None)
        dimension = self.traced.dimension
        potential = self.ring.generator(Jet("U", (0,) * dimension, tuple(self.z[:dimension])))
        potential = potential.scaled(1 / Fraction(self.temperature).limit_denominator(1000))
        said = tuple(sorted(self.notes)), tuple(sorted(self.limits))
        return Expansion(order, self.ring, self.variables, potential, (region,), (), *said), balanced

    def _ways(self) -> tuple[Way, Way, Chance]:
        """The way with the jump and the one without, and the probability of the jump."""

        def run(path: Path) -> Way:
            reader = new_reader(self.space, path, finite=True, points=self.points)
            reader.small_steps = True
            leaves = self.traced.packed(reader, [self.space.lift(p) for p in self.z])
            step = self.traced.stepped(reader, leaves, finite_step(self.space))
            self.notes |= reader.notes
            self.limits |= reader.limits
            if len(path.acceptances) != 1 or len(path.region) != 1:
                raise Unreadable(f"{len(path.acceptances)} decisions in a step with jumps, not one")
            if any(not a.same(b) for a, b in zip(step.position, step.z, strict=False)):
                raise Unreadable("a position that is not the first part of z")
            return Way([a.constant_term for a in step.z], path.acceptances[0])

        ways = [way for _, way in every_path(run)]
        for jump, stay in (ways, reversed(ways)):
            known = _chance(jump.acceptance, self.root)
            if known is not None:
                return jump, stay, known
        raise Unreadable(f"a rule of jumps that is not known, {ways[0].acceptance.difference.text()} < 0")

    def _exchanged(self, jump: Way) -> list[int]:
        """J: the place of z that each coordinate comes from. The jump has to go there without a drift of order s."""
        expectation, places = Expectation(self.ring), []
        for p in jump.z:
            series = self._series(p, 1)
            at_zero = series.coefficients.get(0, self.ring.zero)
            if at_zero not in self.z:
                raise Unreadable(f"a jump that is no exchange of coordinates, to {at_zero.text(3)}")
            if expectation(series.coefficients.get(1, self.ring.zero)):
                raise Unreadable("a jump with a drift of order s")
            places.append(self.z.index(at_zero))
        if sorted(places) != list(range(len(places))):
            raise Unreadable("a jump that copies a coordinate")
        return places

    def _require_independent(self, jump: Way, stay: Way) -> None:
        """Raises Unreadable if what decides a jump moves z too."""
        moving = frozenset().union(*(draws_in(p) for p in (*jump.z, *stay.z)))
        if moving & draws_in(jump.acceptance.difference):
            raise Unreadable("a draw that decides a jump and is used again")

    def _balanced(self, chance: Chance, places: list[int]) -> Result:
        mean, variance = _gaussian(chance.log_ratio)
        there = [self.z[i] for i in places]
        gain = self._energy(self.z) - self._energy(there)
        again = [places[i] for i in places]
        named = [
            ("m + v / 2 less H(z) - H(J z)", mean + variance.scaled(HALF) - gain),
            ("J J - 1", self.ring.constant(sum(i != j for i, j in enumerate(again)))),
        ]
        if chance.power == 2:
            wanted = Fraction(self.rate).limit_denominator(10_000)
            named.append(("the rate less what is claimed", self.ring.constant(chance.scale - wanted)))
        else:
            named.append(("the power of h less one", self.ring.constant(Fraction(chance.power, 2) - 1)))
        return of_polynomials(EXCHANGE, EQUATION, named)

    def _energy(self, z: Vector) -> Polynomial:
        reader = new_reader(self.space, finite=True, points=self.points)
        return evaluated(reader, self.dynamics.H, z).item()

    def _series(self, p: Polynomial, order: int) -> Series:
        """A polynomial in s as a series."""
        parts: dict[int, list[Polynomial]] = {}
        for factors, value in p.terms():
            power = dict(factors).get(self.root, 0)
            rest = tuple(f for f in factors if f[0] != self.root)
            if any(self.root in self.ring.atoms(number) for number, _ in rest):
                raise Unreadable("a function of the step size in a step with jumps")
            parts.setdefault(power, []).append(self.ring.monomial(rest, value))
        if min(parts, default=0) < 0:
            raise Unreadable("the step does not tend to the identity as h -> 0")
        return Series(Space(self.ring, order), {k: self.ring.sum(terms) for k, terms in parts.items()})


def _chance(acceptance: Acceptance, root: int) -> Chance | None:
    """The probability of the way that a comparison opens, where it is small; None for any other.

    Known are u < c s^k exp(min(l, 0)) and log u < log(c s^k) + min(l, 0) with a uniform draw u.
    """
    g = acceptance.difference if acceptance.holds else -acceptance.difference
    ring = g.ring
    for factors, value in g.terms():
        if value != 1 or len(factors) != 1 or factors[0][1] != 1:
            continue
        rest = ring.monomial(factors) - g
        match ring.generators[factors[0][0]]:
            case Draw(law=Uniform()):
                return _of_product(rest, root)
            case Applied("log", argument) if isinstance(_only(argument), Draw):
                return _of_logarithm(rest, root)
            case _:
                continue
    return None


def _only(p: Polynomial) -> object:
    """The generator that a polynomial is; None for any other polynomial."""
    terms = list(p.terms())
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1 or terms[0][0][0][1] != 1:
        return None
    return p.ring.generators[terms[0][0][0][0]]


def _of_product(p: Polynomial, root: int) -> Chance | None:
    terms = list(p.terms())
    if len(terms) != 1:
        return None
    ((factors, scale),) = terms
    exponents: Mapping[int, int] = dict(factors)
    others = [number for number in exponents if number != root]
    if len(others) != 1 or exponents[others[0]] != 1 or exponents.get(root, 0) <= 0:
        return None
    match p.ring.generators[others[0]]:
        case Applied("exp", argument):
            cut = _only(argument)
            if isinstance(cut, Applied) and cut.name == "min0":
                return Chance(scale, exponents[root], cut.argument)
            return None
        case _:
            return None


def _of_logarithm(p: Polynomial, root: int) -> Chance | None:
    scale, power, ratio = Fraction(1), 0, None
    for factors, value in p.terms():
        generator = p.ring.generators[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 else None
        if not isinstance(generator, Applied) or value != 1:
            return None
        inner = list(generator.argument.terms())
        if generator.name == "min0" and ratio is None:
            ratio = generator.argument
        elif generator.name == "log" and len(inner) == 1 and {n for n, _ in inner[0][0]} <= {root}:
            scale, power = scale * inner[0][1], power + dict(inner[0][0]).get(root, 0)
        else:
            return None
    return Chance(scale, power, ratio) if ratio is not None and power > 0 else None


def _gaussian(p: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The mean and the variance of a polynomial that is linear in normal draws with constant factors."""
    ring, mean, variance = p.ring, p, p.ring.zero
    for number in sorted(draws_in(p)):
        generator, slope = ring.generators[number], p.derivative(number)
        if not isinstance(generator, Draw) or generator.law != Normal() or slope.has("draw") or slope.has("state"):
            raise Unreadable("a ratio of jumps with noise that is not normal, or of a variance that is not constant")
        mean = mean - slope * ring.power(number, 1)
        variance = variance + slope * slope
    return mean, variance
