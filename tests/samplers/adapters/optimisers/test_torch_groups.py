"""Groups of parameters with options of their own: told from one group, divided and joined, carried and packed."""

import inspect
import math

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.checks.core.catalogue import find_target  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_torch  # noqa: E402
from sgmcmc_verification.samplers.adapters.optimisers.torch_groups import divided, joined  # noqa: E402
from sgmcmc_verification.samplers.estimators.host import HostExact  # noqa: E402


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Momentum(torch.optim.Optimizer):
    """SGHMC with weight decay; what the noise takes from the first group in place of its own is `shared`."""

    shared = ()

    def __init__(self, params, lr=1e-3, momentum=0.5, num_data=100, weight_decay=0.1):
        super().__init__(params, {"lr": lr, "momentum": momentum, "num_data": num_data, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        first = self.param_groups[0]
        for group in self.param_groups:
            noise = {**group, **{name: first[name] for name in self.shared}}
            scale = math.sqrt(2 * (1 - noise["momentum"]) * noise["lr"] / noise["num_data"])
            for p in group["params"]:
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(group["momentum"]).add_(p.grad + noise["weight_decay"] * p, alpha=-group["lr"])
                p.add_(v.add_(torch.randn_like(p), alpha=scale))


def options_of(kind, **options):
    return list(inspect.signature(of_torch("mine", kind, options).build).parameters)[1:]


def test_groups_that_move_as_alone_need_no_run():
    assert options_of(Momentum) == []


@pytest.mark.parametrize("name", ["lr", "momentum", "weight_decay"])
def test_what_a_group_takes_from_another_is_found(name):
    kind = type("Shared", (Momentum,), {"shared": (name,)})
    assert options_of(kind) == ["grouped"]
    assert "of two groups of parameters" in of_torch("mine", kind, {}).sentence


def test_the_weight_decay_of_a_group_is_its_own_prior_but_where_a_prior_is_claimed():
    kind = type("Shared", (Momentum,), {"shared": ("lr",)})
    sampler = of_torch("mine", kind, {}).build(find_target("gaussian-correlated-2d"), grouped=True)
    assert [prior(1) for prior in sampler.priors] == pytest.approx([-10.0, -5.0])
    sampler = of_torch("mine", kind, {"prior_precision": 10.0}).build(
        find_target("gaussian-correlated-2d"), grouped=True
    )
    assert [prior(1) for prior in sampler.priors] == pytest.approx([-10.0, -10.0])


def test_an_optimiser_of_one_group_is_no_fault():
    class Single(Momentum):
        shared = ("lr",)

        def __init__(self, params, lr=1e-3):
            params = list(params)
            if isinstance(params[0], dict):
                raise ValueError("one group of parameters only")
            super().__init__(params, lr)

    assert options_of(Single) == []


def test_leaves_are_joined_as_they_were_divided():
    leaves = [torch.arange(float(math.prod(s))).reshape(s) for s in ((5,), (), (2, 3), (1,), (2, 1))]
    groups = divided(leaves)
    assert [tuple(x.shape) for x in groups[0]] == [(3,), (2, 2), (2, 1)]
    assert [tuple(x.shape) for x in groups[1]] == [(2,), (), (2, 1), (1,)]
    again = joined(groups, [x.shape for x in leaves])
    assert all(torch.equal(a, b) for a, b in zip(again, leaves, strict=True))
    assert len(divided([torch.zeros(1)])) == 1


@pytest.mark.parametrize("target", ["gaussian-correlated-2d", "gaussian-pytree", "gaussian-matrix", "double-well"])
def test_a_whole_state_of_two_groups_goes_on_as_it_was(target):
    """A packed z, and the memory of the run that it came from, take the same next step."""
    law = find_target(target)
    kind = type("Shared", (Momentum,), {"shared": ("lr",)})
    sampler = of_torch("mine", kind, {}).build(law, grouped=True)
    estimator, rng = HostExact(law), np.random.default_rng
    state = sampler.init(rng(0), law.example, estimator)
    for seed in (1, 2, 3):
        state = sampler.step(rng(seed), state, 0.01, estimator)
    again = sampler.pack(rng(0), sampler.unpack(state), estimator)
    ends = [sampler.position(sampler.step(rng(4), s, 0.01, estimator)) for s in (state, again)]
    for a, b in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(sampler.unpack(state).memory))


class OwnStream(torch.optim.Optimizer):
    """Langevin steps whose noise has a generator of its own, seeded by a draw of torch where none is given."""

    def __init__(self, params, lr=1e-3, num_data=100, seed=None):
        super().__init__(params, {"lr": lr, "num_data": num_data})
        self.generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())) if seed is None else seed)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p].setdefault("noise", torch.zeros_like(p))
                fresh = torch.randn(p.shape, generator=self.generator)
                p.add_(p.grad, alpha=-group["lr"]).add_(kept + fresh, alpha=math.sqrt(group["lr"] / 200))
                kept.copy_(fresh)


def test_what_a_constructor_draws_is_none_of_the_draws_of_a_step():
    """A step from a packed state, for which an optimiser is made anew, has the draws that it would have had."""
    law = find_target("gaussian-1d-scaled")
    row = of_torch("mine", OwnStream, {})
    sampler, estimator, x = row.build(law), HostExact(law), np.array([0.4])
    state = sampler.init(np.random.default_rng(0), x, estimator)
    for i in range(3):
        state = sampler.step(np.random.default_rng(i), state, 0.05, estimator)
    again = sampler.pack(np.random.default_rng(9), sampler.unpack(state), estimator)
    ends = [sampler.step(np.random.default_rng(7), each, 0.05, estimator) for each in (state, again)]
    assert np.array_equal(*(sampler.position(end) for end in ends))
