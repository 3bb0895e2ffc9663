"""Other values of options: those that keep the law need no run, those that do not are judged, what is open is named."""

import inspect
import math

import jax
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.checks.core.catalogue import find_target  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_torch  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.varied import other_values  # noqa: E402


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class SGHMC(torch.optim.Optimizer):
    """A heavy ball with options of all kinds, and with one mistake that shows at another value of one of them."""

    wrong = ""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0.5,
        num_data=100,
        temperature=1.0,
        prior_std=1.0,
        nesterov=False,
        maximize=False,
    ):
        options = {"lr": lr, "momentum": momentum, "num_data": num_data, "temperature": temperature}
        options |= {"prior_std": prior_std, "nesterov": nesterov, "maximize": maximize}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, mu, n, t = (group[name] for name in ("lr", "momentum", "num_data", "temperature"))
            power = 1 if self.wrong == "prior_std" else 2
            scale = math.sqrt(2 * (0.5 if self.wrong == "momentum" else 1 - mu) * lr * t / n)
            for p in group["params"]:
                sign = -1.0 if group["maximize"] else 1.0
                slope, decay = sign * p.grad, p * t / (n * group["prior_std"] ** power)
                slope = sign * (p.grad + decay) if self.wrong == "maximize" else slope + decay
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(mu).add_(slope, alpha=-lr).add_(torch.randn_like(p), alpha=scale)
                p.add_(v)
                if group["nesterov"] and self.wrong == "nesterov":
                    p.add_(torch.randn_like(p), alpha=scale)


def offered(kind, **options):
    return list(inspect.signature(of_torch("mine", kind, options).build).parameters)[1:]


def test_options_that_keep_the_law_need_no_run():
    assert offered(SGHMC) == []


@pytest.mark.parametrize("name", ["momentum", "prior_std", "nesterov", "maximize"])
def test_an_option_at_whose_other_value_the_law_is_another_one_is_judged(name):
    kind = type("Wrong", (SGHMC,), {"wrong": name})
    assert offered(kind) == [name]
    assert f"at another value of {name} the temperature or the prior is not that" in of_torch("mine", kind, {}).sentence


def test_what_the_user_gives_is_not_varied():
    kind = type("Wrong", (SGHMC,), {"wrong": "momentum"})
    assert offered(kind, momentum=0.5) == []


def test_at_another_value_the_law_is_the_one_of_before():
    """A sign that turns the prior as well as the loss leaves the claim as it was: a precision of 1."""
    kind = type("Wrong", (SGHMC,), {"wrong": "maximize"})
    build = of_torch("mine", kind, {}).build
    sampler = build(find_target("double-well"), maximize=True)
    assert sampler.scale == pytest.approx(-0.01)
    assert sampler.priors[0](1) == pytest.approx(-1.0)
    assert sampler.claims.temperature == 1.0


class Decoupled(torch.optim.Optimizer):
    """A heavy ball with a decay of its own: what prior that is depends on the momentum."""

    def __init__(self, params, lr=1e-3, momentum=0.5, weight_decay=0.1, noise_level=1.0):
        options = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "noise_level": noise_level}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            scale = group["noise_level"] * math.sqrt(2 * (1 - group["momentum"]) * group["lr"])
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["weight_decay"])
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(group["momentum"]).sub_(p.grad, alpha=group["lr"]).add_(torch.randn_like(p), alpha=scale)
                p.add_(v)


def test_a_decay_of_its_own_stays_what_it_is_and_a_factor_of_the_noise_is_named():
    adapted = of_torch("mine", Decoupled, {})
    assert list(inspect.signature(adapted.build).parameters) == ["target"]
    assert adapted.notes == ("the option noise_level at other values than 1.0",)


@pytest.mark.parametrize(
    ("default", "others"),
    [
        (False, (True,)),
        (0.9, (0.45, 0.95)),
        (2.0, (4.0, 1.0)),
        (0.0, (0.5,)),
        (4, (8, 5)),
        ("a", ()),
        ((0.9, 0.99), ()),
    ],
)
def test_other_values_are_values(default, others):
    assert other_values(default) == pytest.approx(others)
