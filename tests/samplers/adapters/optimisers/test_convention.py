"""The convention of an optimiser is that of its formula, derived by hand; wrong ones are told by the mistake they have.

With w' = w - a g - b w + s n in one step, g the gradient of the loss L that is differentiated, the law is exp(-L / tau)
as lr -> 0 if s^2 / (2 a) = tau at every lr, with a prior of precision (b / a) / tau. For the mean over N potentials
that is temperature N tau of their sum. With v' = mu v + u, w' = w + v' a push u moves w by u / (1 - mu) in all: a and s
are those of u divided by 1 - mu.
"""

import inspect
import math
from importlib.util import find_spec
from pathlib import Path

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Row, Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_optax, of_torch
from sgmcmc_verification.samplers.adapters.optimisers.convention import Convention
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.claims import Diffusion
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import decide

FILES = Path(__file__).resolve().parents[3] / "strangers" / "optimisers"
for module in ("torch", "optax"):
    if find_spec(module) is None:
        pytest.skip(f"needs {module}: pip install 'sgmcmc-verification[{module}]'", allow_module_level=True)

torch = pytest.importorskip("torch")
LR, PLANE = 2e-3, "gaussian-correlated-2d"


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def adapted(name, rate="lr", **options):
    file, _, object_name = name.partition(":")
    value = load_object(f"{FILES / file}.py:{object_name}")
    adapt = of_torch if file.startswith("torch") else of_optax
    return adapt(name, value, {rate: LR, **options})


def close(found, expected):
    return math.isclose(found, expected, rel_tol=1e-7)


# name, options, a, b, s^2, N, temperature, and words of the sentence
RIGHT = (
    # g is of the mean: a = lr/2, s^2 = lr/N, tau = 1/N, N tau = 1
    (
        "torch_right:MeanLoss",
        {},
        LR / 2,
        0,
        LR / 50000,
        50000,
        1,
        "at temperature 1 of the summed potential with N = 50,000",
    ),
    # b = wd lr/2 = wd a: precision wd / tau = wd N
    (
        "torch_right:MeanLoss",
        {"num_data": 200, "weight_decay": 0.1},
        *(LR / 2, 0.05 * LR, LR / 200, 200, 1),
        "weight decay 0.1, added to the gradient: the prior N(0, 1/p) of precision p = 20 (0.1 N)",
    ),
    # a = lr, s^2 = 2 lr T
    ("torch_right:SummedLoss", {}, LR, 0, 2 * LR, 1, 1, "drift = lr x the gradient of the summed potential"),
    ("torch_right:SummedLoss", {"temperature": 0.3}, LR, 0, 0.6 * LR, 1, 0.3, "noise variance 0.6 lr a step"),
    # lr sqrt(2 / lr) = sqrt(2 lr)
    ("torch_right:NoisyGradient", {}, LR, 0, 2 * LR, 1, 1, "noise variance 2 lr a step; Langevin at temperature 1"),
    # a = lr / (1 - mu), s^2 = 2 (1 - mu) lr / N / (1 - mu)^2, tau = 1 / N
    ("torch_right:HeavyBall", {}, 2 * LR, 0, 4 * LR / 100, 100, 1, "that momentum 0.5 adds later); Langevin"),
    ("torch_right:Decoupled", {"weight_decay": 0.2}, LR / 2, 0.1 * LR, LR / 50000, 50000, 1, "precision p = 10,000"),
    # eta = 2 T / lr before the rate: lr^2 eta = 2 T lr
    ("optax_right:before", {"temperature": 2.0}, LR, 0, 4 * LR, 1, 2, "Langevin at temperature 2"),
    ("optax_right:after", {}, LR / 2, 0, LR / 1000, 1000, 1, "drift = lr/2 x the gradient of the mean of N = 1,000"),
    ("optax_right:by_hand", {}, LR, 0, 2 * LR, 1, 1, "noise variance 2 lr a step"),
    # lr^2 2 (1 - mu) / lr / (1 - mu)^2
    ("optax_right:heavy_ball", {}, 2 * LR, 0, 4 * LR, 1, 1, "Langevin at temperature 1"),
    ("optax_right:with_prior", {"weight_decay": 0.5}, LR / 2, LR / 4, LR / 100, 100, 1, "precision p = 50 (0.5 N)"),
)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: f"{case[0]}{sorted(case[1])}")
def test_right_ones_have_the_convention_of_their_formula(case):
    name, options, drift, decay, variance, data, temperature, words = case
    _, found, text, _ = adapted(name, "learning_rate" if name.startswith("optax") else "lr", **options)
    assert isinstance(found, Convention)
    assert close(found.reading.drift, drift)
    assert math.isclose(found.reading.decay, decay, rel_tol=1e-7, abs_tol=1e-15)
    assert close(found.reading.variance, variance)
    assert found.data == data
    assert close(found.temperature, temperature)
    assert found.claimed == temperature
    assert math.isclose(found.prior, data / temperature * decay / drift, rel_tol=1e-6)
    assert words in text
    # h is the drift of a step for the summed potential, at every rate
    assert close(found.rate_of(drift / data), LR)
    assert close(found.rate_of(drift / data / 4), LR / 4)


def test_one_that_ascends_is_handed_the_log_density():
    _, found, text, _ = adapted("torch_right:LogDensity", "epsilon")
    assert close(found.reading.drift, -LR / 2)
    assert close(found.temperature, 1.0)
    assert found.scale == -1.0
    assert text.startswith("uphill, for a log density: drift = lr/2")


WRONG = (
    # s^2 = lr^2: tau = lr / 2
    (
        "torch_wrong:NoRoot",
        {},
        ("no N and temperature", "lr/2 of the summed potential (0.001 here)", "falls to 0", "before"),
    ),
    # s^2 = lr, a = lr: tau = 1/2
    ("torch_wrong:NoTwo", {}, ("temperature 0.5 of the summed potential, not 1", "lacks the factor sqrt(2)")),
    # s^2 = lr / N^2, a = lr/2: N tau = 1/N
    ("torch_wrong:NoData", {"num_data": 100}, ("temperature 0.01", "lacks the factor 10", "N^-1 beside a drift")),
    ("torch_wrong:Reused", {}, ("no law: numbers are drawn in the first step only",)),
    ("torch_wrong:Reseeded", {}, ("no law: every step draws the same numbers",)),
    # b = 0.1 at every lr, a = lr/2, tau = 1/N: precision 0.1 N / (lr / 2) = 10,000 at N = 100
    ("torch_wrong:Shrinks", {"num_data": 100, "weight_decay": 0.1}, ("whatever lr is", "10,000 here", "without bound")),
    (
        "torch_right:Decoupled",
        {"num_data": 100, "weight_decay": 0.1, "prior_precision": 0.1},
        ("precision p = 10 (0.1 N), where 0.1 is claimed",),
    ),
    ("optax_wrong:fixed_noise", {}, ("no N and temperature", "temperature is lr/2", "before the learning rate")),
    ("optax_wrong:no_two", {}, ("temperature 0.5 of the summed potential, not 1",)),
    # the variance of step t goes as t^-0.55
    ("optax_wrong:annealed", {}, ("no law: the variance of the noise anneals",)),
    ("optax_wrong:one_key", {}, ("no law: every step draws the same numbers",)),
    ("optax_wrong:kept_key", {}, ("no law: every step draws the same numbers",)),
)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[0])
def test_wrong_ones_are_told_by_their_mistake(case):
    name, options, words = case
    text = adapted(name, "learning_rate" if name.startswith("optax") else "lr", **options).sentence
    assert all(each in text for each in words), text


def test_a_scheduler_that_does_not_reach_the_noise_is_named():
    class Fixed(torch.optim.SGD):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, lr)
            self.std = math.sqrt(2 / lr)

        def step(self):
            for p in self.param_groups[0]["params"]:
                p.grad.add_(torch.randn_like(p), alpha=self.std)
            super().step()

    found = of_torch("mine", Fixed, {})
    assert "Langevin at temperature 1 of" in found.sentence
    assert "a scheduler changes does not reach all of a step" in found.sentence
    assert "scheduled" in inspect.signature(found.build).parameters


def test_a_generator_that_an_optimiser_keeps_is_not_seeded_anew():
    class Own(torch.optim.Optimizer):
        again = False

        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})
            self.generator = torch.Generator().manual_seed(0)

        @torch.no_grad()
        def step(self):
            if self.again:
                self.generator.manual_seed(0)
            for p in self.param_groups[0]["params"]:
                noise = torch.randn(p.shape, generator=self.generator, dtype=p.dtype)
                p.add_(p.grad, alpha=-self.param_groups[0]["lr"]).add_(noise, alpha=self.defaults["lr"] ** 0.5)

    class Again(Own):
        again = True

    assert of_torch("mine", Own, {}).found.returns == 0
    assert of_torch("mine", Again, {}).found.returns == 1


@pytest.mark.parametrize(("name", "value"), [("prior_precision", 4.0), ("prior_std", 0.5), ("prior_var", 0.25)])
@pytest.mark.parametrize("times", [1.0, 2.0])
def test_an_option_that_is_named_after_the_prior_is_a_claim(name, value, times):
    class Decays(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, **options):
            super().__init__(params, {"lr": lr, **options})

        @torch.no_grad()
        def step(self):
            lr = self.param_groups[0]["lr"]
            for p in self.param_groups[0]["params"]:
                p.add_(p.grad + times * 4.0 * p, alpha=-lr).add_(torch.randn_like(p), alpha=(2 * lr) ** 0.5)

    found = of_torch("mine", Decays, {name: value}).found
    assert found.claimed_prior == pytest.approx(4.0)
    assert found.prior == pytest.approx(times * 4.0)


class Cyclical(torch.optim.Optimizer):
    """SGLD on a step size that falls along a line and starts anew, with noise of its own."""

    noise = staticmethod(lambda rate, first: rate)

    def __init__(self, params, lr=LR, cycle=6):
        super().__init__(params, {"lr": lr, "cycle": cycle})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                number = self.state[p].setdefault("step", 0)
                self.state[p]["step"] += 1
                rate = group["lr"] * (1 - 0.9 * (number % group["cycle"]) / group["cycle"])
                p.add_(p.grad, alpha=-rate)
                p.add_(torch.randn_like(p), alpha=math.sqrt(2 * self.noise(rate, group["lr"])))


class SteadyNoise(Cyclical):
    """The same with the noise of the first step of a cycle in each."""

    noise = staticmethod(lambda rate, first: first)


class SilentHalf(Cyclical):
    """The same without noise where the step size is small."""

    noise = staticmethod(lambda rate, first: rate if rate > first / 2 else 0.0)


def decide_on_host(name, found):
    """The finding of a statement on a torch optimiser in the plane."""
    row = Row("mine", found.build, estimator=HostExact, targets=(PLANE,), step_size=0.05)
    return find_statement(name)(Case(Subject(row), target(PLANE)))


def test_a_cycle_of_step_sizes_inside_of_an_optimiser_is_that_of_one_step():
    """Each step of a cycle has the law of the first one, at a learning rate of its own."""
    found = of_torch("cyclical", Cyclical, {"lr": LR})
    reading = found.found.reading
    assert (reading.turn, reading.uniform) == (6, True)
    assert close(reading.drift, LR)
    assert close(found.found.temperature, 1.0)
    assert "turns of 6 steps: each is the first one at another learning rate" in found.sentence
    for statement in ("closed_state", "gaussian_limit"):
        assert decide_on_host(statement, found).verdict == "pass"


@pytest.mark.parametrize(("kind", "temperature"), [(SteadyNoise, 6 / 3.75), (SilentHalf, 3.1 / 3.75)])
def test_noise_that_does_not_follow_a_cycle_has_another_temperature(kind, temperature):
    """Drifts (1, .85, .7, .55, .4, .25) lr sum to 3.75 lr, variances to 12 lr, or 2 (1 + .85 + .7 + .55) lr."""
    found = of_torch("cyclical", kind, {"lr": LR})
    assert (found.found.reading.turn, found.found.reading.uniform) == (6, False)
    assert close(found.found.temperature, temperature)
    assert decide_on_host("gaussian_limit", found).verdict == "fail"


def test_a_scheduler_that_reaches_nothing_changes_no_law():
    class Own(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})
            self.lr = lr

        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                p.add_(p.grad, alpha=-self.lr).add_(torch.randn_like(p), alpha=math.sqrt(2 * self.lr))

    found = of_torch("mine", Own, {})
    assert "a scheduler changes has no effect" in found.sentence
    assert "scheduled" not in inspect.signature(found.build).parameters


@pytest.mark.parametrize("noise", ["followed", "first", "number"])
def test_a_schedule_of_optax_that_does_not_reach_the_noise_is_an_option(noise):
    """The noise by the rate of each step, by that of the first one, or of a function that takes a number alone."""
    import jax.numpy as jnp
    import optax

    def sgld(learning_rate, seed=0):
        rate = learning_rate if callable(learning_rate) else lambda count: learning_rate
        if noise == "number":
            return optax.chain(optax.scale(-learning_rate), optax.add_noise(2 * learning_rate, 0.0, seed))

        def update(updates, state, params=None):
            key, count = state
            key, own = jax.random.split(key)
            h = rate(count)
            scale = jnp.sqrt(2 * (h if noise == "followed" else rate(0)))
            return -h * updates + scale * jax.random.normal(own, updates.shape), (key, count + 1)

        first = lambda params: (jax.random.PRNGKey(seed), jnp.zeros((), jnp.int32))
        return optax.GradientTransformation(first, update)

    found = of_optax("mine", sgld, {})
    assert found.found.schedule == ("in part" if noise == "first" else "followed")
    assert ("scheduled" in inspect.signature(found.build).parameters) == (noise == "first")


def test_a_preconditioner_without_gamma_is_named():
    class Squares(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    kept = (
                        self.state[p].setdefault("v", torch.zeros_like(p)).mul_(0.5).addcmul_(p.grad, p.grad, value=0.5)
                    )
                    scale = 1 / (0.1 + kept.sqrt())
                    p.sub_(group["lr"] * scale * p.grad).add_((2 * group["lr"] * scale).sqrt() * torch.randn_like(p))

    assert "Without the drift Gamma" in of_torch("mine", Squares, {}).sentence


def test_clipped_gradients_and_optimisers_without_noise_are_named():
    import optax

    def clipped(learning_rate):
        return optax.chain(
            optax.clip(10.0), optax.add_noise(2 / learning_rate, 0.0, 0), optax.scale_by_learning_rate(learning_rate)
        )

    assert "clipped or scaled gradients" in of_optax("mine", clipped, {}).sentence
    for text in (of_torch("mine", torch.optim.Adam, {}).sentence, of_optax("mine", optax.sgd, {}).sentence):
        assert "no noise that lasts: an optimiser" in text


def test_optimisers_of_libraries_have_the_conventions_of_their_rows():
    """As `samplers.adapters.torch` states them: tau = sigma^2 / nbeta, gamma and lambda are priors; geoopt ascends."""
    optim = pytest.importorskip("devinterp.optim")
    _, found, text, _ = of_torch("sgld", optim.SGLD, {"nbeta": 30.0, "weight_decay": 3.0})
    assert "Langevin at temperature 1 of the summed potential with N = 30" in text
    assert "decoupled (lr/2 x it): the prior N(0, 1/p) of precision p = 3 (0.1 N)" in text
    assert close(found.rate_of(0.01), 0.02)  # h = lr / 2
    assert "temperature 0.25" in of_torch("sgld", optim.SGLD, {"nbeta": 30.0, "noise_level": 0.5}).sentence
    samplers = pytest.importorskip("geoopt.samplers")
    assert of_torch("rsgld", samplers.RSGLD, {}).sentence.startswith("uphill, for a log density: drift = lr/2 x")
    for kind in (samplers.RHMC, samplers.SGRHMC):
        assert "2 gradients in a step" in of_torch("rhmc", kind, {}).sentence


@pytest.mark.parametrize(("kind", "file"), [("right", "torch_a"), ("wrong", "c41_torch_a")])
def test_a_friction_that_mixes_coordinates_is_read_one_coordinate_at_a_time(kind, file):
    """v' = (1 - c A) v - lr g + sqrt(2 lr c / N) B xi moves w by M = (c A)^-1 in all, A = L L^T with L = 1 + 0.6 S.

    The drift is lr M g, the variance 2 lr c / N (M B B^T M)_ii: it is 2 lr M_ii / N for B = L, and not for B = L^T.
    """
    value = load_object(f"{FILES.parent / kind / 'seventh_users' / file}.py:BandSGHMC")
    _, found, text, _ = of_torch("band", value, {"lr": LR, "num_data": 100})
    assert isinstance(found, Convention)
    lower = np.eye(6) + 0.6 * np.eye(6, k=-1)
    mobility = np.linalg.inv(0.25 * lower @ lower.T)
    factor = lower if kind == "right" else lower.T
    variance = 2 * LR * 0.25 / 100 * mobility @ factor @ factor.T @ mobility
    assert close(found.reading.drift, LR * mobility[2, 2])
    assert close(found.reading.variance, variance[2, 2])
    assert found.reading.linear
    assert (abs(found.temperature - 1) < 1e-7) == (kind == "right")
    assert not text.startswith("uphill")


@pytest.mark.parametrize(("symmetric", "verdict"), [(True, "pass"), (False, "fail")])
def test_a_matrix_that_mixes_coordinates_is_no_langevin_equation_with_unit_diffusion(symmetric, verdict):
    """w' = w - lr A g + sqrt(2 lr) L xi keeps exp(-U) for A = L L^T, and not for A = 1."""

    class Dense(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, num_data=10):
            super().__init__(params, {"lr": lr, "num_data": num_data})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    lower = torch.tril(torch.full((p.numel(), p.numel()), 0.3)).to(p) + 0.7 * torch.eye(p.numel()).to(p)
                    slope = group["num_data"] * p.grad.reshape(-1)
                    drift = lower @ (lower.T @ slope) if symmetric else slope
                    move = (2 * group["lr"]) ** 0.5 * lower @ torch.randn(p.numel(), dtype=p.dtype)
                    p.add_((move - group["lr"] * drift).reshape(p.shape))

    build, found, *_ = of_torch("mine", Dense, {})
    assert not found.reading.independent
    assert Diffusion not in build(target(PLANE)).claims
    assert decide(find_statement("invariant_law_for_every_potential"), build, PLANE).verdict == verdict
