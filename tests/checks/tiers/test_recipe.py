"""The recipe tier: correct dynamics pass, and every term that is deleted or turned is named.

The deletion test runs over all terms of the examples of this folder, and over one term of the dynamics that each
reference sampler declares.
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks import registry
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.tiers.recipe.complete_recipe import (
    agree,
    autodiff_findings,
    autodiff_recipe,
    broad_points,
    completeness,
    diagnose_drift,
    gamma_terms,
    given_drift,
    symbolic_recipe,
    without_term,
)
from sgmcmc_verification.checks.tracing.jaxpr_to_sympy import Untranslatable
from sgmcmc_verification.checks.tracing.recipe_equations import EQUATIONS
from sgmcmc_verification.checks.tracing.sympy_proof import prove
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Diffusion, Source, StationaryLaw
from sgmcmc_verification.samplers.registry import SAMPLERS
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.registry import target as find_target
from sgmcmc_verification.targets.target import Target
from tests.helpers.dynamics_examples import gsgrhmc, named_dynamics, sghmc, sgrld

STATEMENTS = tuple(check for check in registry.STATEMENTS if check.tier == "recipe")

EXAMPLES = named_dynamics()


DECLARED = (
    *("sgld", "leimkuhler-matthews", "resgld", "csgld-kept", "sgbd", "sghmc", "baoab", "sgnht", "msgnht", "badodab"),
    *("sgrld", "sgrld-reduced-mean", "sgrld-reduced-natural", "sgrld-expanded-natural", "sgrld-non-hessian"),
    *("sgrld-recipe-metric", "sgrhmc", "sgld-reflected", "sghmc-reflected", "sgrhmc-non-hessian"),
    *(
        "sgrhmc-recipe-metric",
        "amagold",
        "makla",
        "mala",
        "mmala",
        "mmala-recipe-metric",
        "recipe-sgrhmc",
        "psgld-frozen",
    ),
    *("psgld-gamma", "sgfs", "scir", "exponential-ou"),
)
"""Rows with dynamics, one for each way of declaring them."""
VARYING = (
    *(
        "sgrld",
        "gsgrhmc",
        "gsgrhmc-1d",
        "sgnht",
        "sgnht-2d",
        "msgnht",
        "msgnht-2d",
        "registry:sgnht",
        "registry:msgnht",
    ),
    *("registry:badodab", "registry:sgrld", "registry:sgrld-reduced-mean", "registry:sgrld-reduced-natural"),
    *("registry:sgrld-expanded-natural", "registry:sgrld-non-hessian", "registry:sgrld-recipe-metric"),
    *("registry:sgrhmc", "registry:sgrhmc-non-hessian", "registry:sgrhmc-recipe-metric", "registry:mmala"),
    *("registry:mmala-recipe-metric", "registry:recipe-sgrhmc", "registry:psgld-gamma", "registry:scir"),
    "registry:exponential-ou",
)
"""Dynamics whose D + Q depends on z, so that Gamma has terms to delete."""
NAMES = [*EXAMPLES, *(f"registry:{name}" for name in DECLARED)]


def largest(row: Row) -> Target:
    """The target of a row with most coordinates."""
    return max(map(find_target, row.targets), key=lambda target: target.size)


def test_every_way_of_declaring_dynamics_has_its_row():
    found, seen = [], set()
    for row in SAMPLERS:
        sampler = row.build(largest(row))
        if Diffusion not in sampler.claims:
            continue
        # langevin_dynamics and its like are shared: one sampler stands for all with the same code.
        metric = type(getattr(sampler, "metric", None)).__name__
        dynamics = sampler.claims[Diffusion].dynamics
        key = (getattr(dynamics, "__func__", dynamics), metric)
        if key not in seen:
            seen.add(key)
            found.append(row.name)
    assert tuple(found) == DECLARED


def on(name: str) -> Target:
    return largest(next(row for row in SAMPLERS if row.name == name.removeprefix("registry:")))


@cache
def dynamics_of(name: str) -> Dynamics:
    if name in EXAMPLES:
        return EXAMPLES[name]
    row = next(row for row in SAMPLERS if row.name == name.removeprefix("registry:"))
    return row.build(on(name)).claims[Diffusion].dynamics(on(name))


@cache
def points_of(name: str) -> np.ndarray:
    dynamics = dynamics_of(name)
    if name in EXAMPLES:
        return np.random.default_rng(1).normal(size=(12, dynamics.dim))
    return broad_points(on(name), dynamics.dim, 12, 1)


def judge(dynamics, drift, points, name="example"):
    return given_drift(drift, dynamics.D, dynamics.H, dynamics, points=points)


@pytest.mark.parametrize("name", VARYING)
def test_a_deleted_gamma_term_fails_by_name(name):
    dynamics = dynamics_of(name)
    terms = gamma_terms(dynamics, points_of(name))
    assert terms
    for term in terms if name in EXAMPLES else terms[-1:]:
        result = judge(dynamics, without_term(dynamics, term), points_of(name))
        assert result.verdict == "fail"
        assert f"drift of {dynamics.names[term.i]}:" in result.reason
        assert term.name(dynamics.names) in result.reason
        assert "is missing" in result.reason
        assert "not stationary" in result.reason


@pytest.mark.parametrize("name", [n for n in NAMES if n not in VARYING])
def test_other_dynamics_have_no_gamma(name):
    assert not gamma_terms(dynamics_of(name), points_of(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_proved_and_the_proof_agrees_with_autodiff(name):
    dynamics, points = EXAMPLES[name], points_of(name)
    findings, symbolic = prove(dynamics, points)
    assert {key: f.status for key, f in findings.items()} == dict.fromkeys(EQUATIONS, "proved")
    assert agree(dynamics, symbolic, points) <= 1.0


@pytest.mark.parametrize("name", [n for n in NAMES if n not in EXAMPLES])
def test_registered_dynamics_pass_and_the_proof_agrees_with_autodiff(name):
    dynamics, points = dynamics_of(name), points_of(name)
    positive = tuple(bool(np.all(points[:, i] > 0)) and "gamma" in on(name).name for i in range(dynamics.dim))
    findings, symbolic = prove(dynamics, points, positive)
    assert "violated" not in {f.status for f in findings.values()}
    assert agree(dynamics, symbolic, points) <= 1.0


# Planted errors -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class WrongGamma(Dynamics):
    """Gamma inside the minus bracket, as equations (6), (9), (14) and (17) of ma2015complete print it."""

    def gamma(self, z):
        return -super().gamma(z)


@dataclasses.dataclass(frozen=True, eq=False)
class Transposed(Dynamics):
    """-(D + Q)^T grad H + Gamma."""

    def drift(self, z):
        return -(self.D(z) + self.Q(z)).T @ jax.grad(self.H)(z) + self.gamma(z)


def planted(kind, base):
    fields = {f.name: getattr(base, f.name) for f in dataclasses.fields(base)}
    shear = jnp.zeros((base.dim, base.dim)).at[0, 1].set(0.01)
    if kind == "gamma":
        return WrongGamma(**fields)
    if kind == "transposed":
        return Transposed(**fields)
    if kind == "skew":
        return Dynamics(**{**fields, "Q": lambda z: base.Q(z) + shear})
    if kind == "symmetric":
        return Dynamics(**{**fields, "D": lambda z: base.D(z) + shear})
    return Dynamics(**{**fields, "D": lambda z: base.D(z) - 0.5 * jnp.eye(base.dim)})


KINDS = {
    "gamma": "gamma",
    "transposed": "drift",
    "skew": "skew",
    "symmetric": "symmetric",
    "indefinite": "semidefinite",
}


def subject_with(make):
    """A subject whose sampler is SGHMC in all but the dynamics that it declares."""

    class Declares(SGHMC):
        @property
        def claims(self):
            return Claims(
                Source("ma2015complete", "a planted error"),
                StationaryLaw(),
                Diffusion(make),
            )

    return Subject(Row("planted", lambda target: Declares(), targets=("gaussian-correlated-2d",)))


@pytest.mark.parametrize("run", [symbolic_recipe, autodiff_recipe])
@pytest.mark.parametrize("kind", KINDS)
def test_planted_error_fails_with_its_equation_named(kind, run):
    subject = subject_with(lambda target: planted(kind, gsgrhmc()))
    result = run(Case(subject, find_target("gaussian-correlated-2d")), 0)
    assert result.verdict == "fail"
    assert EQUATIONS[KINDS[kind]] in result.equation
    assert f"violated: {EQUATIONS[KINDS[kind]]}" in result.reason
    if kind == "gamma":
        assert "wrong sign" in result.reason


@pytest.mark.parametrize("run", [symbolic_recipe, autodiff_recipe])
def test_correct_dynamics_pass(run):
    result = run(Case(subject_with(lambda target: gsgrhmc()), find_target("gaussian-correlated-2d")), 0)
    assert result.verdict == "pass"
    if run is symbolic_recipe:
        assert set(result.measurements.values()) == {"proved"}


def with_drift(change):
    """gSGRHMC with a drift put together from its parts: (slope of D, slope of Q, Gamma) -> drift."""
    base = EXAMPLES["gsgrhmc-1d"]

    def drift(z):
        g = jax.grad(base.H)(z)
        return change(base.D(z) @ g, base.Q(z) @ g, base.gamma(z))

    return base, drift


WRONG = {
    "Gamma inside the minus bracket (printed (6), (9), (14))": (lambda d, q, c: -(d + q + c), ("wrong sign", "Gamma")),
    "Gamma and friction turned (printed (17))": (lambda d, q, c: d - q - c, ("wrong sign", "Gamma", "friction")),
    "Gamma dropped": (lambda d, q, c: -(d + q), ("is missing", "Gamma")),
    "Gamma twice": (lambda d, q, c: -(d + q) + 2 * c, ("is counted twice", "Gamma")),
    "anti-friction": (lambda d, q, c: d - q + c, ("wrong sign", "friction")),
    "no friction": (lambda d, q, c: -q + c, ("is missing", "friction")),
    "friction halved": (lambda d, q, c: -0.5 * d - q + c, ("is halved", "friction")),
    "friction times 1.3": (lambda d, q, c: -1.3 * d - q + c, ("factor 1.3", "friction")),
    "transposed": (lambda d, q, c: -(d - q) + c, ("wrong sign", "Q grad H")),
    "something else": (lambda d, q, c: -(d + q) + c + 0.1, ("no single term",)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_drift_is_named(name):
    change, words = WRONG[name]
    base, drift = with_drift(change)
    result = judge(base, drift, points_of("gsgrhmc-1d"))
    assert result.verdict == "fail"
    assert all(word in result.reason for word in words), result.reason


@pytest.mark.parametrize("name", ["sgrld", "gsgrhmc-1d", "sgnht", "msgnht-2d"])
def test_gamma_of_the_wrong_sign_fails_with_the_sign_named(name):
    dynamics = EXAMPLES[name]
    wrong = lambda z: dynamics.drift(z) - 2 * dynamics.gamma(z)
    result = judge(dynamics, wrong, points_of(name))
    assert result.verdict == "fail"
    assert "has the wrong sign" in result.reason
    assert "Gamma" in result.reason


@pytest.mark.parametrize("name", ["sghmc", "gsgrhmc-1d"])
def test_correct_drift_passes_and_needs_no_dynamics(name):
    dynamics = EXAMPLES[name]
    assert judge(dynamics, dynamics.drift, points_of(name)).verdict == "pass"
    assert given_drift(dynamics.drift, dynamics.D, dynamics.H, points=points_of(name)).verdict == "pass"


def test_other_stationary_drift_is_stationary_but_not_the_declared_one():
    dynamics = sghmc()
    faster = lambda z: dynamics.drift(z) - dynamics.Q(z) @ jax.grad(dynamics.H)(z)
    alone = given_drift(faster, dynamics.D, dynamics.H, points=points_of("sghmc"))
    declared = judge(dynamics, faster, points_of("sghmc"))
    assert alone.verdict == "pass"
    assert declared.verdict == "fail"
    assert declared.measurements["stationary"]
    assert "stationary all the same" in declared.reason


def test_stated_error_of_the_drift_widens_the_allowance_and_no_more():
    dynamics, points = sghmc(), points_of("sghmc")
    off = lambda size: lambda z: dynamics.drift(z) + size * jnp.cos(z)
    kwargs = {"dynamics": dynamics, "points": points, "error": 1e-8}
    assert given_drift(off(1e-9), dynamics.D, dynamics.H, **kwargs).verdict == "pass"
    assert given_drift(off(1e-6), dynamics.D, dynamics.H, **kwargs).verdict == "fail"


def test_diagnosis_of_values_is_empty_without_a_deviation():
    dynamics, points = sgrld(), points_of("sgrld")
    values = np.asarray(jax.vmap(dynamics.drift)(jnp.asarray(points)))
    assert diagnose_drift(dynamics, points, values, 1e-9) == ""
    assert diagnose_drift(dynamics, points, values + np.array([0.1, 0.0]), 1e-9).startswith("; drift of theta[0]: ")


def test_autodiff_findings_in_ten_dimensions_are_round_off():
    dynamics = sghmc(10)
    findings = autodiff_findings(dynamics, np.random.default_rng(0).normal(size=(8, 20)))
    assert {f.status for f in findings.values()} == {"round-off"}


def test_untranslatable_program_is_no_pass():
    base = sghmc(1)
    sorts = Dynamics(lambda z: jnp.sum(jnp.sort(z) ** 2), base.D, base.Q, base.names, base.size)
    with pytest.raises(Untranslatable, match="sort"):
        prove(sorts, points_of("sghmc")[:, :2])


def test_checks_do_not_apply_without_dynamics():
    subject = Subject(Row("none", lambda target: _NoClaims(), targets=("double-well",)))
    for check in STATEMENTS:
        with pytest.raises(NotApplicable):
            check(Case(subject, find_target("double-well")), 0)


class _NoClaims(SGHMC):
    @property
    def claims(self):
        return Claims(
            Source("ma2015complete", "nothing declared"),
            StationaryLaw(),
        )


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_declared_q_is_the_one_that_the_drift_needs(factor):
    base = sghmc(1)

    class Tells(Dynamics):
        """Declares a Q that its drift does not have."""

        def drift(self, z):
            return base.drift(z)

    wrong = lambda target: Tells(base.H, base.D, lambda z: factor * base.Q(z), base.names, base.size)
    result = completeness(Case(subject_with(wrong), find_target("double-well")))
    assert result.verdict == ("pass" if factor == 1.0 else "fail")
    assert ("declared is" in result.reason) == (factor != 1.0)
