"""Proofs as statements of a run: what they decide, what they stand for, and that numbers are asked all the same."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.conclusion import CONTRADICTS, Judged, Plan, conclude
from sgmcmc_verification.checks.core.lookup import resolve, resolve_object
from sgmcmc_verification.checks.proof import of_subject
from sgmcmc_verification.checks.proof.prove import Proof
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.registry import STATEMENTS, find_statement
from sgmcmc_verification.checks.runner import proved
from sgmcmc_verification.checks.runner.check_sampler import check_sampler
from sgmcmc_verification.checks.runner.execute import PROVED, execute
from sgmcmc_verification.checks.runner.plan import make_plan
from sgmcmc_verification.checks.runner.proved import WITNESSES, decide, is_witness, proof_for
from sgmcmc_verification.checks.tiers.proofs.for_every_potential import part_of_proof
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler

pytestmark = pytest.mark.xdist_group(__name__)  # a fixture of the module is made once

PROOFS = [statement for statement in STATEMENTS if statement.stands_for]
LAW = "invariant_law_for_every_potential"

STRANGERS = """
import jax, jax.numpy as jnp
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def gradient(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].gradient


def noise(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class langevin:
    def step(self, key, x, h, estimator):
        return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * noise(key, x)


class Precise:
    "Draws and gradient in a form of their own, an option, and a state that is a dictionary."

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def init(self, key, position, estimator):
        return {"x": position, "count": jnp.zeros((), int)}

    def step(self, key, state, h, estimator):
        pull = jax.tree.map(lambda g: self.scale * g, gradient(estimator, state["x"]))
        xi = jax.random.normal(key, state["x"].shape, state["x"].dtype)
        new = state["x"] - h * pull + jnp.sqrt(2 * self.scale * h) * xi
        return {"x": new, "count": state["count"] + 1}

    def position(self, state):
        return state["x"]


class temperature_of_two:
    def step(self, key, x, h, estimator):
        return x - h * gradient(estimator, x) + 2 * jnp.sqrt(h) * noise(key, x)


class metric_without_its_divergence:
    def step(self, key, x, h, estimator):
        d = 1 + x**2 / 8
        return x - h * d * gradient(estimator, x) + jnp.sqrt(2 * h * d) * noise(key, x)


class force_of_the_neighbour:
    def step(self, key, x, h, estimator):
        return x - h * jnp.roll(gradient(estimator, x), 1) + jnp.sqrt(2 * h) * noise(key, x)


class explicit_midpoint:
    def step(self, key, x, h, estimator):
        xi = jnp.sqrt(2 * h) * noise(key, x)
        return x - h * gradient(estimator, x + xi) + xi


class claims_order_two(explicit_midpoint):
    claims = Claims(Source("", "none"), StationaryLaw(order=2))


class capped_step:
    "A right one: no step is larger than a cap."

    def step(self, key, x, h, estimator):
        batch, key = jax.random.split(key)
        h = jnp.minimum(h, 0.05)
        g = estimator.estimate(batch, (), x)[0].gradient
        return x - h * g + jnp.sqrt(2 * h) * noise(key, x)


class noisier_in_large_steps:
    def step(self, key, x, h, estimator):
        batch, key = jax.random.split(key)
        heat = jnp.where(h > 0.01, 2.3, 2.0)
        g = estimator.estimate(batch, (), x)[0].gradient
        return x - h * g + jnp.sqrt(heat * h) * noise(key, x)


class noise_shared:
    def step(self, key, x, h, estimator):
        return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(key, (), x.dtype)
"""
WRONG = ("temperature_of_two", "metric_without_its_divergence", "force_of_the_neighbour", "noise_shared")


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """name -> the sampler as a subject, from a file as a user has it."""
    path = tmp_path_factory.mktemp("strangers") / "theirs.py"
    path.write_text(STRANGERS, encoding="utf-8")
    return lambda name: resolve(f"{path}:{name}")[0]


def results_of(subject: Subject) -> dict:
    """Statement -> result of all proofs about a subject."""
    return {p.name: execute(p, subject, p.targets(subject)[0], 0) for p in PROOFS if p.tier in subject.row.tiers}


def test_what_a_proof_stands_for_exists_is_of_the_same_rows_and_is_no_proof_itself():
    names = {statement.name for statement in STATEMENTS}
    assert len(PROOFS) == 4
    for proof in PROOFS:
        assert set(proof.stands_for) <= names
        assert not set(proof.stands_for) & {p.name for p in PROOFS}
        assert not proof.samples
    assert set(WITNESSES) <= {name for proof in PROOFS for name in proof.stands_for}


@pytest.mark.parametrize("name", ["sgld", "baoab", "sgnht"])
def test_the_law_of_a_scheme_is_proved_on_lines_planes_and_trees_at_all_options(name):
    subject = Subject(sampler_row(name))
    found = results_of(subject)
    verdicts = {n: r.verdict for n, r in found.items()}
    balance = verdicts.pop("balance_for_every_potential")
    assert set(verdicts.values()) == {"pass"}, {n: r.reason for n, r in found.items()}
    assert balance == "not-applicable"
    assert {"line", "gaussian", "plane", "pytree"} <= set(found[LAW].meets)
    # the gradient that baoab keeps holds the noise of its last kick: that of a packed state, up to the order
    assert "gradient-noise" in found[LAW].meets
    assert {"line", "plane"} & set(found["generator_for_every_potential"].meets)
    for options in subject.row.variants:
        other = dataclasses.replace(subject, options=options)
        assert results_of(other)[LAW].verdict == "pass"


def test_the_balance_of_a_metropolis_kernel_is_proved_and_has_no_order():
    found = results_of(Subject(sampler_row("mala")))
    assert found["balance_for_every_potential"].verdict == "pass"
    assert {"line", "gaussian", "plane"} <= set(found["balance_for_every_potential"].meets)
    assert found[LAW].verdict == "not-applicable"


@pytest.mark.parametrize(("name", "verdict"), [("sgld-cv", "pass"), ("saga-ld", "pass"), ("sgld", "not-applicable")])
def test_an_estimator_is_unbiased_over_all_batches_where_there_are_batches(name, verdict):
    statement = find_statement("estimator_for_every_potential")
    subject = Subject(sampler_row(name))
    result = execute(statement, subject, subject.row.targets[0], 0)
    assert result.verdict == verdict, result.reason


def test_a_planted_estimator_with_a_bias_is_not_proved():
    from sgmcmc_verification.checks.faults.registry import DEFECTS

    statement = find_statement("estimator_for_every_potential")
    wrong = [d for d in DEFECTS if d.base in ("sgld-cv", "saga-ld", "svrg-ld") and "law" in d.row.tiers]
    found = {d.name: execute(statement, d.subject, d.row.targets[0], 0).verdict for d in wrong}
    # the error of these is in the variance, which no proof of a mean sees
    unbiased = {"saga-table-never-updated", "svrg-never-renewed", "cv-centre-of-another-batch"}
    assert {name for name, verdict in found.items() if verdict == "pass"} == unbiased
    assert sum(verdict == "fail" for verdict in found.values()) >= 5, found


@pytest.mark.parametrize("name", ["langevin", "Precise"])
def test_a_strangers_right_sampler_is_proved_without_a_claim_of_its_own(strangers, name):
    assert results_of(strangers(name))[LAW].verdict == "pass"


@pytest.mark.parametrize("name", WRONG)
def test_a_strangers_wrong_sampler_fails_and_numbers_are_asked_as_well(strangers, name):
    subject = strangers(name)
    result = results_of(subject)[LAW]
    assert result.verdict == "fail", result.reason
    assert not any(proof_for(s, subject, t) for s in STATEMENTS for t in ("anharmonic", "gaussian-correlated-2d"))


def test_a_scheme_fails_at_the_order_that_it_claims_and_passes_without_one(strangers):
    """x - h grad U(x + xi) + xi: the force of a point that the noise has moved, right as h -> 0 only."""
    assert results_of(strangers("explicit_midpoint"))[LAW].verdict == "pass"
    result = results_of(strangers("claims_order_two"))[LAW]
    assert result.verdict == "fail"
    assert "c_2 is not zero" in result.reason


def test_what_cannot_be_read_is_out_of_reach_and_nothing_is_replaced():
    subject = Subject(sampler_row("csgld"))
    found = results_of(subject)
    assert {r.verdict for r in found.values()} <= {"out-of-reach", "not-applicable"}, found
    assert not any(proof_for(s, subject, t) for s in STATEMENTS for t in subject.row.targets)


def test_a_proof_of_a_step_in_numpy_stands_for_what_one_in_jax_stands_for():
    host, jax = Subject(sampler_row("host-sgld")), Subject(sampler_row("sgld"))
    found = results_of(host)
    assert {name: r.verdict for name, r in found.items()} == {name: r.verdict for name, r in results_of(jax).items()}
    of = lambda subject: [proof_for(s, subject, t) for s in STATEMENTS for t in host.row.targets]
    assert of(host) == of(jax)
    assert LAW in of(host)


def test_a_proof_stands_on_one_and_two_numbers_on_more_of_one_program_and_on_data_but_never_on_trees():
    subject = Subject(sampler_row("sgld"))
    defect = find_statement("defect")
    for target in ("anharmonic", "banana", "gaussian-50d", "tiny-gaussian-data"):
        assert proof_for(defect, subject, target) == LAW
    for target in ("gaussian-pytree", "gaussian-matrix"):
        assert proof_for(defect, subject, target) == ""
    assert proof_for(find_statement("closed_state"), subject, "anharmonic") == ""


def scaled(by_size=lambda size: 1.0, by_data=lambda count: 1.0):
    """A function of a Target: SGLD whose noise is multiplied by what its numbers of coordinates and of data make."""

    def build(target):
        more = by_data(target.terms.size if target.terms is not None else 0)

        def step(key, x, h, estimator):
            noise = jnp.sqrt(2 * h) * by_size(x.size) * more * jax.random.normal(key, x.shape, x.dtype)
            return x - h * estimator.estimate(key, (), x)[0].gradient + noise

        return simple_sampler(step)

    return build


def test_a_proof_does_not_stand_where_the_program_of_a_step_is_another_one():
    many, data = "gaussian-50d", "tiny-gaussian-data"
    defect = find_statement("defect")
    for build, stands in [
        (scaled(), {many, data}),
        (scaled(by_size=lambda size: 1.0 if size < 20 else 1.1), {data}),
        (scaled(by_size=lambda size: 1.0 + 0.01 * max(size - 2, 0)), set()),  # a proof of a matrix fails
        (scaled(by_data=lambda count: 1.0 if count < 4 else 1.1), {many}),
        (scaled(by_data=lambda count: jnp.asarray(1.0 + 0.1 * (count > 3))), {many}),
    ]:
        (subject, *_) = resolve_object("mine", build)
        assert {name for name in (many, data) if proof_for(defect, subject, name)} == stands


def test_witnesses_run_at_the_default_options_on_a_gaussian_and_on_another_target():
    plan = make_plan(["sgld"])
    for name in WITNESSES:
        ran = [c for c in plan.cases if c.statement.name == name and is_witness(c.statement, c.subject, c.target)]
        assert {bool(c.subject.options) for c in ran} == {False}
        assert len(ran) == len({proved.cached_target(c.target).gaussian is None for c in ran})
    witnesses = {
        (c.statement.name, proved.cached_target(c.target).gaussian is None)
        for c in plan.cases
        if is_witness(c.statement, c.subject, c.target)
    }
    assert {("gaussian_limit", False), ("defect", True)} <= witnesses


def test_what_a_proof_stands_for_does_not_run_and_says_so_unless_numbers_are_asked_for():
    subject = Subject(sampler_row("sgld"))
    order = find_statement("local_weak_order")
    result = decide(order, subject, "anharmonic", 0)
    assert result.verdict == "not-applicable"
    assert result.reason == f"{PROVED}: weak_order_for_every_potential"
    assert decide(order, subject, "anharmonic", 0, numerics=True).verdict == "pass"


def test_a_comparison_of_the_step_size_stands_for_nothing_and_is_not_examined(strangers):
    """What holds for small h alone: another step above a threshold, right or wrong, is left to numbers."""
    for name in ("capped_step", "noisier_in_large_steps"):
        subject = strangers(name)
        law = execute(find_statement(LAW), subject, "gaussian-1d-scaled", 0)
        assert law.verdict == "pass", law.reason
        assert law.meets == []
        assert law.detail["not examined"].startswith("step sizes at which not ")
        targets = find_statement("defect").targets(subject)
        assert [t for t in targets if proof_for(find_statement("defect"), subject, t)] == []


def test_a_switch_of_the_step_size_is_found_by_numbers_and_a_cap_is_none(strangers):
    names = ("capped_step", "noisier_in_large_steps")
    capped, noisier = (check_sampler(strangers(name).reference).conclusion for name in names)
    assert (capped.law, capped.word) == ("holds", "pass")
    assert [name for name, _ in noisier.violated] == ["step_scale"]


def test_numbers_that_contradict_a_proof_are_an_error_of_the_suite(strangers, monkeypatch):
    """A reader that is wrong says pass; the witness still fails, and the conclusion names both."""
    subject = strangers("temperature_of_two")

    def lie(subject):
        names = [setting.name for setting in of_subject.ASKED]
        shown = (Result("invariant order 1/2", "", "proved"),)
        return {name: Proof("pass", "", shown, (), 0.0, name) for name in names}

    monkeypatch.setattr("sgmcmc_verification.checks.tiers.proofs.for_every_potential.proofs_of", lie)
    proved.settled.cache_clear()
    try:
        law = execute(find_statement(LAW), subject, "gaussian-1d-scaled", 0)
        defect = find_statement("defect")
        stood_for = (t for t in defect.targets(subject) if proof_for(defect, subject, t))
        target = next(t for t in stood_for if is_witness(defect, subject, t))
        witness = decide(defect, subject, target, 0)
    finally:
        proved.settled.cache_clear()
    assert (law.verdict, witness.verdict) == ("pass", "fail")
    assert witness.detail[CONTRADICTS] == LAW
    conclusion = conclude("mine", [Judged(law, "pass"), Judged(witness, "fail")], Plan(2))
    assert conclusion.law == "violated"
    assert conclusion.disagreements == (f"defect on {target} contradicts {LAW}",)


HIDDEN, OTHER = Result("closed state", "", "undecided"), Result("generator", "", "proved")
BROKEN = Result("invariant order 1", "", "violated", "c_1 is not zero", "x")


@pytest.mark.parametrize(
    ("verdict", "results", "word"),
    [
        ("pass", (OTHER,), "pass"),
        ("undecided", (OTHER,), "undecided"),
        ("fail", (OTHER, BROKEN), "pass"),
        ("fail", (OTHER, BROKEN, HIDDEN), "undecided"),
        ("fail", (BROKEN,), "nothing"),
    ],
)
def test_a_part_of_a_proof_passes_only_if_nothing_is_hidden_and_fails_by_itself_alone(verdict, results, word):
    proof = Proof(verdict, "because", results, (), 0.0, "d = 1")
    assert part_of_proof(proof, lambda r: r.statement == "generator")[0] == word


def test_an_unfinished_proof_raises_with_its_reason(strangers):
    subject = strangers("langevin")
    statement = find_statement(LAW)
    case_of = lambda found: lambda subject: {s.name: found for s in of_subject.ASKED}
    with pytest.MonkeyPatch.context() as patch:
        unread = Proof("undecided", "while at my.py:3", (), (), 0.0, "d = 1")
        patch.setattr("sgmcmc_verification.checks.tiers.proofs.for_every_potential.proofs_of", case_of(unread))
        result = execute(statement, subject, "gaussian-1d-scaled", 0)
    assert result.verdict == "out-of-reach"
    assert result.reason == "d = 1: while at my.py:3"


@pytest.mark.release
def test_no_planted_bug_is_lost_to_a_proof():
    """Each is killed by a statement that runs by default: one that no proof stands for, or a witness."""
    from sgmcmc_verification.checks.faults.registry import DEFECTS

    lost = []
    for defect in DEFECTS:
        statement, target = find_statement(defect.killed_by.check), defect.killed_by.target
        subject = defect.subject
        if proof_for(statement, subject, target) and not is_witness(statement, subject, target):
            lost.append(defect.name)
    assert lost == []
