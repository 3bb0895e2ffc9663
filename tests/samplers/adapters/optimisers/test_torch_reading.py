"""What is found out of a class of optimisers of torch: its memory, what settles, and how it treats coordinates."""

import inspect
import math
from typing import get_args

import jax
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.checks.core.candidate import Subject  # noqa: E402
from sgmcmc_verification.checks.core.catalogue import find_target  # noqa: E402
from sgmcmc_verification.checks.runner.execute import execute  # noqa: E402
from sgmcmc_verification.checks.tiers.premises.closed_state import closed_state  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_torch  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.torch_class import ElementwiseSampler  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.torch_reading import TorchProbe, entries_of  # noqa: E402
from sgmcmc_verification.samplers.entry import Row  # noqa: E402
from sgmcmc_verification.samplers.estimators.host import HostExact  # noqa: E402


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Thermostat(torch.optim.Optimizer):
    """SGNHT with a thermostat for each tensor, a scalar of its state; room for noise, and a fixed diagonal."""

    def __init__(self, params, lr=1e-3, num_data=100):
        super().__init__(params, {"lr": lr, "num_data": num_data})

    @torch.no_grad()
    def step(self):
        h, n = self.param_groups[0]["lr"], self.param_groups[0]["num_data"]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["steps"] = torch.zeros(())
                state["momentum"], state["noise"] = torch.randn_like(p), torch.empty_like(p)
                state["xi"], state["rates"] = torch.ones((), dtype=p.dtype), torch.ones_like(p)
            v, xi = state["momentum"], state["xi"]
            state["noise"].normal_().mul_(math.sqrt(2 * h))
            v.add_(-h * n * p.grad - h * xi * v + state["noise"])
            p.add_(state["rates"] * v, alpha=h)
            xi.add_(h * (v.pow(2).mean() - 1))
            state["steps"] += 1


def test_what_an_optimiser_remembers_is_told_from_constants_room_and_counts():
    found = entries_of(TorchProbe(Thermostat, "lr"), 1e-3, {"num_data": 100})
    assert set(found.remembered) == {"momentum", "xi"}
    assert set(found.made) == {"noise", "rates"}
    assert set(found.others) == {"steps"}
    assert found.scalars == ("xi",)


class KeptNoise(torch.optim.Optimizer):
    """The scheme of Leimkuhler and Matthews, which moves by the draws of two steps."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        h = self.param_groups[0]["lr"]
        for p in self.param_groups[0]["params"]:
            old = self.state[p].setdefault("noise", torch.randn_like(p))
            self.state[p]["noise"] = new = torch.randn_like(p)
            p.add_(-h * p.grad + math.sqrt(h / 2) * (old + new))


def test_a_draw_that_is_kept_for_one_step_is_remembered():
    assert entries_of(TorchProbe(KeptNoise, "lr"), 1e-3, {}).remembered == ("noise",)


def test_a_thermostat_has_no_convention_and_is_not_read_for_long():
    found = of_torch("mine", Thermostat, {"num_data": 100})
    assert "no convention is read" in found.sentence
    assert found.found.rate_of(0.02) == pytest.approx(0.02)
    assert found.found.data == 100


def test_a_long_memory_is_read_at_a_larger_learning_rate():
    class Underdamped(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            h = self.param_groups[0]["lr"]
            for p in self.param_groups[0]["params"]:
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(1 - h).add_(p.grad, alpha=-h).add_(torch.randn_like(p), alpha=math.sqrt(2 * h))
                p.add_(v, alpha=h)

    found = of_torch("mine", Underdamped, {}).found
    assert found.reading.settled
    assert found.rate > 1e-3
    assert found.temperature == pytest.approx(1.0)


def test_coordinates_with_factors_of_their_own_are_told_from_a_preconditioner_of_gradients():
    class Rows(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                rates = self.param_groups[0]["lr"] * torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype).reshape(p.shape)
                p.sub_(rates * p.grad).add_((2 * rates).sqrt() * torch.randn_like(p))

    found = of_torch("mine", Rows, {})
    assert not found.found.alike
    assert "factors of their own" in found.sentence


class Plain(torch.optim.Optimizer):
    """SGLD of a summed loss that leaves parameters without a gradient; `moves_all` and `decays` are what others do."""

    moves_all = False
    decays = ()

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        lr = self.param_groups[0]["lr"]
        for p in self.param_groups[0]["params"]:
            if p.grad is None and not self.moves_all:
                continue
            if p.grad is not None:
                p.add_(p.grad + (0.5 * p if p.ndim in self.decays else 0.0), alpha=-lr)
            p.add_(torch.randn_like(p), alpha=math.sqrt(2 * lr))


@pytest.mark.parametrize("moves_all", [False, True])
def test_a_parameter_without_a_gradient_is_left_or_that_is_said(moves_all):
    found = of_torch("mine", type("Mine", (Plain,), {"moves_all": moves_all}), {})
    assert found.found.idle == ("moved" if moves_all else "kept")
    assert ("without a gradient" in found.sentence) == moves_all


@pytest.mark.parametrize(
    ("decays", "priors", "words"),
    [((1, 2), (0.5, 0.5), "precision p = 0.5"), ((2,), (0.0, 0.5), "matrices alone"), ((1,), (0.5, 0.0), "0 for matr")],
)
def test_a_decay_of_some_leaves_is_their_prior(decays, priors, words):
    found = of_torch("mine", type("Mine", (Plain,), {"decays": decays}), {})
    assert (found.found.prior, found.found.matrix_prior) == pytest.approx(priors)
    assert words in found.sentence
    whole = isinstance(found.build(find_target("gaussian-correlated-2d")), ElementwiseSampler)
    assert whole == (len(decays) == 2)  # many chains are the rows of a matrix


def test_a_memory_that_is_short_at_a_larger_learning_rate_is_read_in_few_steps():
    """exp(-lr) is settled to 1e-10 in 23 / lr steps."""

    class Slow(Plain):
        steps = 0

        @torch.no_grad()
        def step(self):
            Slow.steps += 1
            lr = self.param_groups[0]["lr"]
            for p in self.param_groups[0]["params"]:
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(math.exp(-lr)).add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=math.sqrt(2 * lr))
                p.add_(v, alpha=lr)

    assert of_torch("mine", Slow, {}).found.reading.settled
    assert Slow.steps < 20_000


@pytest.mark.parametrize("adapts", ["before", "after"])
def test_what_is_judged_is_the_step_after_a_burn_in(adapts):
    """A preconditioner that is found in a burn-in and then kept is right; one that starts to move after it is not."""

    class BurnIn(torch.optim.Optimizer):
        least = 0

        def __init__(self, params, lr=1e-3, burn_in=100):
            if burn_in < self.least:
                raise ValueError("burn_in: too few steps")
            super().__init__(params, {"lr": lr, "burn_in": burn_in})

        @torch.no_grad()
        def step(self):
            group = self.param_groups[0]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["steps"], state["square"] = 0, torch.ones_like(p)
                if (state["steps"] < group["burn_in"]) == (adapts == "before"):
                    state["square"].mul_(0.5).addcmul_(p.grad, p.grad, value=0.5)
                state["steps"] += 1
                rate = group["lr"] / (0.1 + state["square"].sqrt())
                p.sub_(rate * p.grad).add_((2 * rate).sqrt() * torch.randn_like(p))

    for kind, options, steps, others in (
        (BurnIn, {}, 0, (0, 8)),
        (BurnIn, {"burn_in": 100}, 100, ()),
        (type("Some", (BurnIn,), {"least": 1}), {}, 8, ()),
    ):
        found = of_torch("mine", kind, options)
        assert f"burn_in = {steps}: what is judged is the step after a burn-in" in found.sentence
        assert ("Langevin at temperature 1 of" in found.sentence) == (adapts == "before")
        offered = inspect.signature(found.build).parameters.get("burn_in")
        assert ((offered.default, *get_args(offered.annotation)) if offered else ()) == others


@pytest.mark.parametrize("kept", ["square", "copy"])
def test_what_a_burn_in_has_learnt_is_in_the_state_of_the_step_after_it(kept):
    """Kept is a copy, or the running mean itself, which goes on: then a state holds more than its numbers."""

    class Frozen(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, burn_in=100):
            super().__init__(params, {"lr": lr, "burn_in": burn_in})

        @torch.no_grad()
        def step(self):
            group = self.param_groups[0]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["steps"], state["square"], state["frozen"] = 0, torch.ones_like(p), None
                state["square"].mul_(0.5).addcmul_(p.grad, p.grad, value=0.5)
                state["steps"] += 1
                if state["steps"] == group["burn_in"]:
                    state["frozen"] = state["square"] if kept == "square" else state["square"].clone()
                metric = torch.ones_like(p) if group["burn_in"] == 0 else state["frozen"]
                rate = group["lr"] / (0.1 + (state["square"] if metric is None else metric).sqrt())
                p.sub_(rate * p.grad).add_((2 * rate).sqrt() * torch.randn_like(p))

    found = of_torch("mine", Frozen, {})
    for steps in (0, 8):
        row = Row("mine", lambda law, steps=steps: found.build(law, burn_in=steps), (), estimator=HostExact)
        result = execute(closed_state, Subject(row), "gaussian-correlated-2d", 0)
        assert result.verdict == ("fail" if (kept, steps) == ("square", 8) else "pass"), result.reason


@pytest.mark.parametrize("every", [1, 7, 500])
def test_draws_of_a_generator_that_is_seeded_again_come_back(every):
    class Resumed(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3):
            super().__init__(params, {"lr": lr})
            self.generator, self.count = torch.Generator(), 0

        @torch.no_grad()
        def step(self):
            if self.count % every == 0:
                self.generator.manual_seed(5 + self.shift())
            self.count += 1
            for p in self.param_groups[0]["params"]:
                noise = torch.randn(p.shape, generator=self.generator, dtype=p.dtype)
                p.add_(p.grad, alpha=-self.defaults["lr"]).add_(noise, alpha=(2 * self.defaults["lr"]) ** 0.5)

        def shift(self):
            return 0

    class Counted(Resumed):
        def shift(self):
            return self.count

    assert of_torch("mine", Counted, {}).found.returns == 0
    found = of_torch("mine", Resumed, {})
    assert found.found.returns == every
    assert ("every step draws" if every == 1 else f"{every} steps later they are the same") in found.sentence
    row = Row("mine", found.build, (), estimator=HostExact)
    if every > 1:
        result = execute(closed_state, Subject(row), "gaussian-correlated-2d", 0)
        assert result.verdict == "fail", result.reason


class Underdamped(torch.optim.Optimizer):
    """A kick, and half drifts around an exact Ornstein-Uhlenbeck step: 1 - exp(-h) is no power of h."""

    def __init__(self, params, lr=1e-2, friction=1.0):
        super().__init__(params, {"lr": lr, "friction": friction})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            h, c = group["lr"], math.exp(-group["friction"] * group["lr"])
            for p in group["params"]:
                v = self.state[p].setdefault("velocity", torch.zeros_like(p))
                v.sub_(p.grad, alpha=h)
                p.add_(v, alpha=h / 2)
                v.mul_(c).add_(torch.randn_like(p), alpha=math.sqrt(1 - c**2))
                p.add_(v, alpha=h / 2)


def test_a_temperature_that_is_the_same_at_all_rates_is_one_whatever_drift_and_noise_are():
    adapted = of_torch("mine", Underdamped, {})
    assert adapted.found.powers["drift"] is None
    assert "Langevin at temperature 1 of the summed potential" in adapted.sentence
    # in the time of the equation, up to a power of two
    scale = adapted.found.rate_of(1.0)
    assert math.log2(scale) == round(math.log2(scale))


class Diverging(torch.optim.Optimizer):
    """SGNHT, whose friction grows under one gradient until a step of it is unstable; each tensor has its own."""

    def __init__(self, params, lr=1e-2):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        h = self.param_groups[0]["lr"]
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["momentum"], state["xi"] = torch.zeros_like(p), torch.ones((), dtype=p.dtype)
            r, xi = state["momentum"], state["xi"]
            r.add_(-h * xi * r - h * p.grad + math.sqrt(2 * h) * torch.randn_like(r))
            p.add_(r, alpha=h)
            xi.add_(h * (r.pow(2).mean() - 1.0))


def test_of_moves_that_diverge_no_convention_is_read():
    adapted = of_torch("mine", Diverging, {})
    assert not adapted.found.reading.settled
    assert adapted.sentence.startswith("no convention is read")
