"""The suites of asv: that they cover every sampler, that their numbers are usable, and that a lost order shows."""

import dataclasses
import json
import math
import time
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from asv_runner.discovery import disc_modules, get_benchmark_from_name

from benchmarks import checks_cost, compiling, kills, peers, ratios, subjects
from benchmarks.bias import EXACT, Bias, budget_bias, gradients_a_step
from benchmarks.checks_cost import CheckCost, Compilation, check_cost
from benchmarks.compiling import Compiling, compile_seconds
from benchmarks.loops import logistic_terms
from benchmarks.memory import Memory
from benchmarks.order import RESOLUTION, Defect, Order, defect_coefficient, order_deficit
from benchmarks.steps import SLOW, Steps
from benchmarks.workload import stepper
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.runner.execute import run_check
from sgmcmc_verification.reports.records.jsonl import read
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Diffusion
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.samplers.underdamped.hmc import HMC
from sgmcmc_verification.targets.registry import target

ROOT = Path(__file__).resolve().parents[2]
NAMES = [row.name for row in SAMPLERS]
BENCHMARKS = {
    "order.Order.track_order_deficit": "power of h",
    "order.Defect.track_defect_coefficient": "h^-(p+1), relative to 1 + E|f|",
    "bias.Bias.track_bias_at_budget": "standard deviations",
    "steps.Steps.time_step": "seconds",
    "compiling.Compiling.track_compile_seconds": "seconds",
    "memory.Memory.peakmem_step": "bytes",
    "ratios.Ratios.track_time_ratio": "times the peer's",
    "sam_sample.Sample.time_samples": "seconds",
    "checks_cost.CheckCost.track_compile_seconds": "seconds",
    "checks_cost.CheckCost.track_run_seconds": "seconds",
    "kills.Kills.track_survival_rate": "share of bugs",
    "kills.Kills.track_check_seconds": "seconds",
}


@dataclasses.dataclass(frozen=True)
class Overclaimed(SGLD):
    """Euler's method, which has order 1, with the claim of order 2."""

    @property
    def claims(self):
        return super().claims.amended(dataclasses.replace(super().claims[Diffusion], weak_order=2))


@dataclasses.dataclass(frozen=True)
class Doubled(SGLD):
    """A step of twice the size: another SDE, the time of which runs twice as fast."""

    def step(self, key, state, step_size, estimator):
        return super().step(key, state, 2 * step_size, estimator)


def row(sampler):
    """A row as a registry holds it."""
    return Row("planted", lambda target: sampler, targets=("anharmonic",))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_asv_finds_the_benchmark_with_unit_version_and_timeout(name):
    benchmark = get_benchmark_from_name(str(ROOT / "benchmarks"), name)
    assert benchmark.name == name
    assert benchmark.unit == BENCHMARKS[name]
    # asv hashes the source where no version is set, so that every edit would lose the history.
    assert benchmark.version == "1"
    assert 0 < benchmark.timeout <= 600
    params = {"kills": "hidden_by", "ratios": "case"}
    assert benchmark.param_names == [params.get(name.split(".")[0], "sampler")]


def test_no_benchmark_is_left_out_of_this_file():
    modules = ["order", "bias", "steps", "compiling", "memory", "checks_cost", "kills", "subjects", "workload"]
    modules += ["sam_sample", "loops", "ratios"]
    programs = {"lda", "particles", "peers", "sam", "stein"}  # run by themselves, without asv
    files = {p.stem for p in (ROOT / "benchmarks").glob("*.py")} - {"__init__"} - programs
    assert {f for f in files if not f.startswith("test_")} == set(modules)
    found = set()
    for module in modules:
        for loaded in disc_modules(f"benchmarks.{module}"):
            for value in vars(loaded).values():
                if isinstance(value, type) and value.__module__ == loaded.__name__:
                    methods = [m for m in vars(value) if m.startswith(("track_", "time_", "peakmem_", "mem_"))]
                    found |= {f"{module}.{value.__name__}.{m}" for m in methods}
    assert found == set(BENCHMARKS)


def test_params_cover_every_sampler_row():
    assert list(Steps.params) == NAMES
    assert list(Memory.params) == NAMES
    assert list(Bias.params) == NAMES
    assert list(Compiling.params) == NAMES
    assert sorted((*Order.params, *subjects.NO_ORDER)) == sorted(NAMES)
    assert sorted((*Defect.params, *subjects.NO_DEFECT, *subjects.COSTLY_DEFECT)) == sorted(NAMES)
    assert set(CheckCost.params) <= set(NAMES)
    assert set(SLOW) <= set(NAMES)


@pytest.mark.parametrize("name", sorted(set(subjects.NO_ORDER) - set(subjects.PARTICLES)))
def test_rows_without_an_order_have_none_to_measure(name):
    target = subjects.preferred(sampler_row(name), subjects.SMALL_LAWS)
    assert run_check(name, "local_weak_order", target).verdict == "not-applicable"


@pytest.mark.parametrize("name", sorted(set(subjects.NO_DEFECT) - set(subjects.PARTICLES)))
def test_rows_without_a_defect_have_none_to_measure(name):
    target = subjects.preferred(sampler_row(name), subjects.SMALL_LAWS)
    result = run_check(name, "defect", target)
    assert result.verdict in ("not-applicable", "out-of-reach", "pass")
    assert "leading_coefficient" not in result.detail


def test_particles_have_neither_order_nor_defect():
    for name in subjects.PARTICLES:
        assert {"generator", "order"} <= set(sampler_row(name).unsupported)


def test_tracked_values_are_plain_finite_floats():
    values = [Order().track_order_deficit("sgld"), Defect().track_defect_coefficient("sgld")]
    assert [type(v) for v in values] == [float, float]
    assert values[0] == RESOLUTION
    assert math.isfinite(values[1])
    assert values[1] > 0


def test_an_order_that_is_lost_is_a_deficit_of_one():
    assert order_deficit(row(Overclaimed())) == pytest.approx(1.0, abs=0.1)
    assert order_deficit(row(SGLD())) == RESOLUTION


def test_a_step_of_another_size_is_a_lost_order_and_another_defect():
    # E phi(z_2h) differs from 1 + h L at first order, so that no order is left of the one that was claimed.
    assert order_deficit(row(Doubled())) == pytest.approx(1.0, abs=0.1)
    # delta_f(2h) = c_2 (2h)^2: four times the coefficient of the same scheme at h.
    ratio = defect_coefficient(row(Doubled())) / defect_coefficient(row(SGLD()))
    assert ratio == pytest.approx(4.0, rel=1e-5)


def test_a_check_that_measures_nothing_fails_the_benchmark():
    with pytest.raises(RuntimeError, match="no weak order of one step is claimed"):
        order_deficit(sampler_row("mala"))


@pytest.mark.parametrize(("name", "shape"), [("sgld", (3, 2)), ("svgd", (7, 2)), ("host-sgld", (2,))])
def test_a_workload_steps_all_chains_in_single_precision(name, shape):
    leaf = jax.tree.leaves(stepper(sampler_row(name), steps=2, chains=3, particles=7)())[0]
    assert leaf.size == math.prod(shape)
    assert bool(jnp.all(jnp.isfinite(leaf)))
    if name != "host-sgld":
        assert leaf.dtype == jnp.float32
        assert len(set(leaf.reshape(shape)[:, 0].tolist())) == shape[0]


def test_the_benchmark_of_time_compiles_nothing_while_it_is_timed():
    steps = Steps()
    steps.setup("sgld")
    listener = Compilation()
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        steps.time_step("sgld")
        assert listener.spans == []
        jax.jit(lambda x: x * 3.25 + 1)(jnp.ones(3))
        assert listener.seconds > 0
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)


def test_the_published_speeds_are_those_of_their_lines():
    lines = read(peers.PUBLISHED)
    assert peers.page(lines) == peers.PUBLISHED.with_suffix(".md").read_text(encoding="utf-8")
    rows = {(row["contestant"], row["chains"]): row for row in lines[1:]}
    assert {name for name, _ in rows} == {peers.OURS, peers.OURS_HMC, *(row[0] for row in peers.PEERS)}
    for row in rows.values():
        if "absent" not in row:
            ours = rows[row["beside"], row["chains"]]
            assert row["processor ratio"] == pytest.approx(row["processor us"] / ours["processor us"])


def test_a_turn_takes_the_step_of_the_library():
    """Other random numbers, but the same SGLD: from 0, Var x_n = 2 h (1 - a^(2 n)) / (1 - a^2) with a = 1 - h."""
    chains, steps, h = 4000, 50, peers.STEP_SIZE
    a = 1 - h
    exact = 2 * h * (1 - a ** (2 * steps)) / (1 - a * a)
    error = 4.9 * math.sqrt(2 / (chains * peers.DIM))  # of a variance, relative, 1e-6 two-sided
    with jax.enable_x64(False):
        ends = {
            "ours": peers.ours(SGLD(), chains, steps)(),
            "BlackJAX": peers.blackjax(chains, steps)(),
            "TFP": peers.tfp(chains, steps)()[0],
        }
    for name, x in ends.items():
        x = jax.tree.leaves(x)[0]
        assert x.shape == (chains, peers.DIM), name
        assert float(jnp.var(x)) == pytest.approx(exact, rel=error), name


@pytest.mark.parametrize("name", ratios.CASES)
def test_both_of_a_ratio_take_their_steps(name):
    chains, steps = 2, 3
    with jax.enable_x64(False):
        both = ratios.CASES[name].pair(logistic_terms(200, ratios.COLUMNS), chains, steps)
        ours, peer = (np.asarray(turn()) for turn in both)
    for x in (ours, peer):
        assert x.shape == (chains, ratios.COLUMNS)
        # N(0, 2 h steps): a gradient of 200 data, of about 20 a coordinate, moves a fiftieth of that
        spread = math.sqrt(2 * ratios.STEP_SIZE * steps)
        assert float(x.std()) == pytest.approx(spread, rel=4.9 / math.sqrt(2 * x.size))
    if name.startswith("runner"):  # the same random numbers; fewer than 50 operations a step
        np.testing.assert_allclose(ours, peer, rtol=0, atol=50 * steps * np.finfo(np.float32).eps * np.abs(peer).max())


def test_a_ratio_is_that_of_medians():
    turns = iter([9.0, 1.0, 2.0, 6.0, 1.0, 1.0, 4.0, 1.0])  # ours, the peer's, ...; the first of both compiles
    turn = lambda: (0.0, next(turns))
    assert ratios.ratio(turn, turn, rounds=3) == 2.0


def test_nested_and_overlapping_spans_are_counted_once():
    listener = Compilation([(0.0, 4.0), (1.0, 2.0), (3.0, 5.0), (7.0, 8.0)])
    assert listener.seconds == 6.0
    listener("/jax/some/other/event", 100.0)
    assert listener.seconds == 6.0


def test_bias_at_a_budget_is_that_of_the_exact_law_after_as_many_steps():
    """Euler's method on N(m, 1/k): x_n - m ~ N(a^n (x_0 - m), 2 h (1 - a^(2 n)) / (1 - a^2)), a = 1 - h k."""
    budget, chains = 10, 1 << 14
    planted = dataclasses.replace(row(SGLD()), targets=("gaussian-1d-scaled",))
    gaussian = target("gaussian-1d-scaled")
    k, h = float(gaussian.gaussian.precision[0, 0]), Subject(planted).step_size(gaussian)
    a, mean = 1 - h * k, float(gaussian.gaussian.mean[0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights /= weights.sum()
    shift = a**budget * (float(np.ravel(gaussian.example)[0]) - mean)
    ends = mean + shift + math.sqrt(2 * h * (1 - a ** (2 * budget)) / (1 - a * a)) * nodes
    exact = mean + nodes / math.sqrt(k)
    spread = lambda f: math.sqrt(weights @ (f - weights @ f) ** 2)
    biases, errors = [], []
    for power in (1, 2, 4):
        f, g = exact**power, ends**power
        biases.append(abs(weights @ g - weights @ f) / spread(f))
        kurtosis = weights @ (f - weights @ f) ** 4 / spread(f) ** 4
        # of the mean, and, relative, of the standard deviation that the draws estimate
        errors.append(
            math.hypot(spread(g) / spread(f) / chains**0.5, biases[-1] * math.sqrt((kurtosis - 1) / 4 / EXACT))
        )
    quantile = 4.9  # 1e-6, two-sided
    assert budget_bias(planted, budget, chains) == pytest.approx(max(biases), abs=quantile * max(errors))
    assert max(biases) > 2 * 4 / chains**0.5


@pytest.mark.parametrize("steps", [1, 4])
def test_a_trajectory_pays_for_the_gradient_of_each_of_its_steps(steps):
    hmc = dataclasses.replace(sampler_row("hmc"), build=lambda target: HMC(num_steps=steps))
    assert gradients_a_step(hmc) == steps


def test_a_bug_that_survives_shows_in_the_rate_of_its_classes():
    ours = [d for d in kills.TRIED if d.name in ("sgld-noise-scale-linear", "sgld-noise-in-loss")]
    right = [dataclasses.replace(d, row=dataclasses.replace(sampler_row("sgld"), name=d.name)) for d in ours]
    hidden_by = ours[0].classes[0]
    assert hidden_by in ours[1].classes
    rate = lambda found: kills.Kills().track_survival_rate(found, hidden_by)
    assert rate(kills.tried(ours)) == kills.LEAST
    assert rate(kills.tried([ours[0], right[1]])) == 0.5


def test_what_is_compiled_is_timed_and_what_is_not_is_the_least():
    assert compile_seconds("sgld") > 10 * compiling.LEAST
    assert compile_seconds("host-sgld") >= compiling.LEAST


def test_compiling_and_running_add_up_to_the_wall_clock(monkeypatch):
    plan = checks_cost.make_plan(["sgld"], tiers=["generator"])
    monkeypatch.setattr(checks_cost, "make_plan", lambda names: plan)
    began = time.perf_counter()
    compiling, running = check_cost("sgld")
    wall = time.perf_counter() - began
    assert compiling > 0
    assert running > 0
    assert compiling + running <= wall


def test_the_configuration_has_what_asv_needs():
    config = json.loads((ROOT / "asv.conf.json").read_text(encoding="utf-8"))
    assert config["version"] == 1
    assert config["project"] == "sgmcmc-verification"
    assert (ROOT / config["repo"]).resolve() == ROOT
    assert (ROOT / config["benchmark_dir"] / "__init__.py").is_file()
    # JAX has threads: a forked process can deadlock.
    assert config["launch_method"] == "spawn"
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    for name in ("env_dir", "results_dir", "html_dir"):
        assert config[name].split("/")[0] + "/" in ignored


def test_the_extra_of_asv_installs_what_its_benchmarks_import():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    imports_reports = any(
        "from sgmcmc_verification.reports" in path.read_text(encoding="utf-8")
        for path in (ROOT / "benchmarks").glob("*.py")
    )
    assert imports_reports == ("sgmcmc-verification[reports]" in extras["bench"])
