"""Optimisers of torch that draw a coin or test a proposal: no temperature is read, and the checks judge the law."""

import math

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.checks import run_check  # noqa: E402
from sgmcmc_verification.checks.core.catalogue import find_target  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_torch  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.torch_class import ElementwiseSampler  # noqa: E402
from sgmcmc_verification.samplers.estimators.host import HostExact  # noqa: E402

HERE = __file__
LAW = "invariant_law_for_every_potential"


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class MALA(torch.optim.Optimizer):
    """Metropolis-adjusted Langevin steps of the summed loss; `slip` leaves out the densities of the proposals."""

    slip = False

    def __init__(self, params, lr=1e-2):
        super().__init__(params, {"lr": lr})

    def _evaluated(self, closure):
        for p in self.param_groups[0]["params"]:
            p.grad = None
        with torch.enable_grad():
            loss = closure()
        return loss.item(), [p.grad.clone() for p in self.param_groups[0]["params"]]

    def step(self, closure):
        params, h = self.param_groups[0]["params"], self.param_groups[0]["lr"]
        old = [p.data.clone() for p in params]
        u, g = self._evaluated(closure)
        with torch.no_grad():
            for p, slope in zip(params, g, strict=True):
                p.add_(slope, alpha=-h).add_(torch.randn_like(p), alpha=math.sqrt(2 * h))
        v, k = self._evaluated(closure)
        with torch.no_grad():
            forth = sum(((p - x + h * s) ** 2).sum() for p, x, s in zip(params, old, g, strict=True))
            back = sum(((x - p + h * s) ** 2).sum() for p, x, s in zip(params, old, k, strict=True))
            ratio = u - v + (0.0 if self.slip else float(forth - back) / (4 * h))
            if math.log(torch.rand(()).item()) >= ratio:
                for p, x in zip(params, old, strict=True):
                    p.copy_(x)


class Slipped(MALA):
    """Without the densities of the proposals."""

    slip = True


class Uniform(torch.optim.Optimizer):
    """SGLD whose noise is uniform, of `factor` / 12 times lr / N."""

    factor = 24.0

    def __init__(self, params, lr=1e-3, num_data=100):
        super().__init__(params, {"lr": lr, "num_data": num_data})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            scale = math.sqrt(self.factor * group["lr"] / group["num_data"])
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"]).add_(torch.rand_like(p) - 0.5, alpha=scale)


class Narrow(Uniform):
    """Of half the variance."""

    factor = 12.0


class Coins(Uniform):
    """Noise of signs."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                signs = 2.0 * torch.bernoulli(torch.full_like(p, 0.5)) - 1.0
                p.add_(p.grad, alpha=-group["lr"]).add_(signs, alpha=math.sqrt(2 * group["lr"] / group["num_data"]))


@pytest.mark.parametrize("kind", [MALA, Uniform, Coins])
def test_no_temperature_is_read_and_the_drift_is(kind):
    adapted = of_torch("mine", kind, {})
    assert adapted.found.reading.others == 1
    assert adapted.found.reading.drift == pytest.approx(adapted.found.rate)
    assert "it draws from other laws than the normal one" in adapted.sentence
    assert "noise variance" not in adapted.sentence


def test_a_test_of_a_whole_step_moves_no_coordinate_by_itself():
    law = find_target("gaussian-correlated-2d")
    samplers = [of_torch("mine", kind, {}).build(law) for kind in (MALA, Uniform)]
    assert [isinstance(sampler, ElementwiseSampler) for sampler in samplers] == [False, True]
    assert [set(sampler.needs) for sampler in samplers] == [{"gradient", "potential"}, {"gradient"}]


def test_with_a_generator_of_numpy_uniforms_are_numbers():
    law = find_target("gaussian-correlated-2d")
    sampler, rng = of_torch("mine", MALA, {}).build(law), np.random.default_rng(1)
    state = sampler.init(rng, law.example, HostExact(law))
    ends = [sampler.position(sampler.step(rng, state, h, HostExact(law))) for h in np.geomspace(0.001, 1.0, 30)]
    stayed = [np.array_equal(end, law.example) for end in ends]
    assert any(stayed)
    assert not all(stayed)


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [(MALA, "pass"), (Slipped, "out-of-reach"), (Uniform, "pass"), (Narrow, "fail"), (Coins, "pass")],
)
def test_the_law_is_proved_or_violated(kind, verdict):
    """Of a kernel that does not claim to be exact a wrong ratio is told, and runs decide."""
    found = run_check(f"torch:{HERE}:{kind.__name__}", LAW)
    assert found.verdict == verdict, found.reason
    assert ("balance: log a less what it should be is not zero" in found.reason) == (kind is Slipped)
