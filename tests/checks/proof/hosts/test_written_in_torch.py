"""Samplers that somebody has written in torch: read and proved where their draws are those of the step, else not."""

import math

import jax
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sgmcmc_verification.checks.core.lookup import resolve_object  # noqa: E402
from sgmcmc_verification.checks.proof.of_subject import proofs_of  # noqa: E402
from sgmcmc_verification.checks.proof.settings import LINE, PLANE  # noqa: E402
from sgmcmc_verification.checks.runner.execute import execute  # noqa: E402
from sgmcmc_verification.checks.tiers.proofs.for_every_potential import balance_for_every_potential  # noqa: E402
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator  # noqa: E402
from sgmcmc_verification.checks.tracing.step_map import is_affine  # noqa: E402
from sgmcmc_verification.samplers.estimators.host import HostExact, estimator_key  # noqa: E402
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source  # noqa: E402
from sgmcmc_verification.samplers.simple import simple_sampler  # noqa: E402
from tests.helpers.strangers import target  # noqa: E402


def fresh(rng):
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


def constant(rng):
    return torch.Generator().manual_seed(7)


def twice(rng):
    """Two generators of one seed, the second for the second leaf of the state."""
    seed = int(rng.integers(2**31 - 1))
    torch.randn(3, generator=torch.Generator().manual_seed(seed))
    return torch.Generator().manual_seed(seed)


def by_numpy(rng):
    seed = int(rng.integers(2**63))
    np.random.default_rng(seed)
    return torch.Generator().manual_seed(seed + 1)


def gradient(rng, oracle, x):
    return torch.as_tensor(np.array(oracle.estimate(estimator_key(rng, oracle), (), x.numpy().copy())[0].gradient))


def langevin(generator=fresh, noise=1.0, draw=None):
    """SGLD in place."""
    draw = draw or (lambda x, g: torch.randn(x.shape, generator=g, dtype=x.dtype))

    def step(rng, state, h, oracle):
        x = state["x"]
        xi = draw(x, generator(rng))
        x.sub_(gradient(rng, oracle, x), alpha=float(h)).add_(xi, alpha=noise * math.sqrt(2 * float(h)))
        return state

    init = lambda rng, position, oracle: {"x": torch.tensor(np.array(position))}
    return simple_sampler(step, init=init, position=lambda s: s["x"].numpy().copy(), backend="host")


class Cloud:
    __slots__ = ("momentum", "x")

    def __init__(self, x, momentum):
        self.x, self.momentum = x, momentum

    @property
    def position(self):
        return self.x.detach().cpu().numpy().copy()


class Underdamped:
    """Kick, drift, friction on an object with slots; `heat` multiplies the variance of the noise."""

    backend = "host"

    def __init__(self, heat=1.0, generator=fresh):
        self.heat, self.generator = heat, generator

    def init(self, rng, position, oracle):
        x = torch.tensor(np.array(position))
        return Cloud(x, torch.zeros_like(x).normal_(generator=self.generator(rng)))

    @torch.no_grad()
    def step(self, rng, cloud, step_size, oracle):
        h, p, x = float(step_size), cloud.momentum, cloud.x
        p.sub_(gradient(rng, oracle, x), alpha=h)
        x.add_(p, alpha=h)
        kept = math.exp(-h)
        noise = torch.randn_like(p, generator=self.generator(rng))
        p.mul_(kept).add_(noise, alpha=math.sqrt(self.heat * (1 - kept**2)))
        return cloud


def tensors():
    """SGLD whose state, and position, is a tensor."""
    move = lambda rng, x, h, oracle: (
        x - float(h) * gradient(rng, oracle, x) + math.sqrt(2 * float(h)) * torch.randn_like(x)
    )
    return simple_sampler(move, init=lambda rng, x, oracle: torch.tensor(np.array(x)), backend="host")


def exponential(x):
    return torch.empty_like(x).exponential_()


class KeepsGradient:
    """BAOAB whose state is a tuple with the gradient: a position is found without one."""

    backend = "host"

    def init(self, rng, position, oracle):
        x = torch.tensor(np.array(position))
        return x, torch.tensor(rng.standard_normal(x.shape)), gradient(rng, oracle, x)

    def position(self, state):
        return state[0].numpy()

    def step(self, rng, state, h, oracle):
        x, p, g = state
        x = x + h / 2 * (p := p - h / 2 * g)
        p = math.exp(-h) * p + math.sqrt(1 - math.exp(-2 * h)) * torch.tensor(rng.standard_normal(x.shape))
        x = x + h / 2 * p
        g = gradient(rng, oracle, x)
        return x, p - h / 2 * g, g


STATE = torch.get_rng_state()


def globally(rng):
    torch.manual_seed(int(rng.integers(2**63)))


def subject_of(sampler):
    (subject, *_) = resolve_object("mine", sampler)
    return subject


def proved(sampler):
    with jax.enable_x64(True):
        found = proofs_of(subject_of(sampler))
        return {setting.name: found[setting.name].verdict for setting in (LINE, PLANE) if setting.name in found}


@pytest.mark.parametrize(
    "right",
    [
        langevin(),
        langevin(draw=lambda x, g: torch.empty_like(x).normal_(0.0, 1.0, generator=g)),
        langevin(draw=lambda x, g: torch.normal(torch.zeros_like(x), 1.0, generator=g)),
        langevin(draw=lambda x, g: (torch.randn_like(x, generator=g) + torch.randn_like(x, generator=g)) / 2**0.5),
        langevin(globally, draw=lambda x, g: torch.randn_like(x)),
        langevin(lambda rng: None, draw=lambda x, g: torch.randn_like(x)),  # nobody seeds the generator of torch
        Underdamped(),
        tensors(),
        langevin(globally, draw=lambda x, g: 3**0.5 * (2 * torch.rand(x.shape, dtype=x.dtype) - 1)),
        langevin(globally, draw=lambda x, g: torch.empty_like(x).uniform_(-(3**0.5), 3**0.5)),
        langevin(globally, draw=lambda x, g: 2.0 * torch.randint(0, 2, x.shape) - 1),
        langevin(globally, draw=lambda x, g: 2 * torch.bernoulli(torch.full_like(x, 0.5)) - 1),
        langevin(globally, draw=lambda x, g: (exponential(x) - exponential(x)) / 2**0.5),
    ],
)
def test_what_draws_from_generators_that_the_step_has_seeded_is_proved(right):
    assert set(proved(right).values()) == {"pass"}


@pytest.mark.parametrize("right", [langevin(), Underdamped(), tensors()])
def test_normal_draws_of_seeded_generators_make_an_affine_step(right):
    assert is_affine(subject_of(right), target("gaussian-correlated-2d"))


def from_numpy(noise=1.0):
    """SGLD with a tensor that shares the memory of a gradient in NumPy."""

    def step(rng, x, h, oracle):
        slope = torch.from_numpy(oracle.estimate(rng, (), x.numpy())[0].gradient)
        return x - h * slope + noise * (2 * h) ** 0.5 * torch.randn_like(x)

    return simple_sampler(step, init=lambda rng, x, oracle: torch.tensor(x), backend="host")


def test_a_position_beside_a_gradient_that_is_kept_is_read():
    assert set(proved(KeepsGradient()).values()) == {"pass"}


def metropolis(ratio=lambda u, v, e: u - v + e, turn=-1.0):
    """Generalised HMC: numbers of Python beside tensors in the ratio; what is rejected is turned."""

    class Horowitz:
        backend = "host"
        claims = Claims(Source("", "own"), ExactLaw())

        def init(self, rng, position, oracle):
            return {"position": np.array(position), "momentum": rng.standard_normal(np.shape(position))}

        def step(self, rng, state, h, oracle):
            torch.manual_seed(int(rng.integers(2**31)))

            def at(q):
                found = oracle.estimate(rng, (), q.numpy())[0]
                return float(found.potential), torch.tensor(found.gradient)

            q, p, c = torch.tensor(state["position"]), torch.tensor(state["momentum"]), math.exp(-h)
            p = c * p + math.sqrt(1 - c**2) * torch.randn_like(p)
            u, g = at(q)
            end = p - h / 2 * g
            there = q + h * end
            v, g = at(there)
            end = end - h / 2 * g
            if torch.rand(1, dtype=q.dtype).log() < ratio(u, v, 0.5 * (p**2).sum() - 0.5 * (end**2).sum()):
                return {"position": there.numpy(), "momentum": end.numpy()}
            return {"position": q.numpy(), "momentum": turn * p.numpy()}

    return Horowitz()


def balanced(sampler):
    with jax.enable_x64(True):
        return execute(balance_for_every_potential, subject_of(sampler), "gaussian-1d-scaled", 0).verdict


def test_numbers_of_python_beside_tensors_are_read():
    assert balanced(metropolis()) == "pass"
    assert balanced(metropolis(lambda u, v, e: e - v + u)) == "pass"


@pytest.mark.parametrize("wrong", [metropolis(lambda u, v, e: u - v + e / 2), metropolis(turn=1.0)])
def test_a_wrong_ratio_or_a_momentum_that_is_not_turned_is_not_proved(wrong):
    assert balanced(wrong) == "out-of-reach"  # another momentum than the one that was tried may have a law


def test_an_array_whose_memory_a_tensor_shares_is_read():
    assert set(proved(from_numpy()).values()) == {"pass"}
    assert proved(from_numpy(1.1)).get(PLANE.name) != "pass"


@pytest.mark.parametrize(
    "wrong",
    [
        langevin(noise=1.1),
        langevin(constant),
        langevin(twice),
        langevin(by_numpy),
        langevin(lambda rng: torch.manual_seed(7), draw=lambda x, g: torch.randn_like(x)),
        langevin(lambda rng: torch.set_rng_state(STATE), draw=lambda x, g: torch.randn_like(x)),
        langevin(draw=lambda x, g: torch.randn(1, generator=g, dtype=x.dtype).expand(x.shape)),
        Underdamped(heat=2.0),
        Underdamped(generator=constant),
        langevin(globally, draw=lambda x, g: 2 * torch.rand(x.shape, dtype=x.dtype) - 1),
        langevin(globally, draw=lambda x, g: exponential(x) - 1),  # a third moment: O(h^1/2)
        langevin(globally, draw=lambda x, g: 2.0 * torch.randint(0, 3, x.shape) - 1),
        langevin(globally, draw=lambda x, g: 2 * torch.bernoulli(torch.full_like(x, 0.6)) - 1),
    ],
)
def test_what_is_wrong_or_draws_from_elsewhere_is_not(wrong):
    assert proved(wrong).get(PLANE.name) != "pass"


@pytest.mark.parametrize("elsewhere", [langevin(constant), langevin(twice), langevin(by_numpy)])
def test_no_number_is_computed_from_draws_that_are_not_those_of_the_step(elsewhere):
    assert not is_affine(subject_of(elsewhere), target("gaussian-correlated-2d"))


def test_the_generator_of_torch_is_left_as_it_was_found():
    law, oracle = target("gaussian-correlated-2d"), HostExact(target("gaussian-correlated-2d"))
    sampler = subject_of(langevin(globally, draw=lambda x, g: torch.randn_like(x))).sampler(law)
    state = sampler.init(np.random.default_rng(0), law.example, oracle)
    before = torch.random.get_rng_state()
    after = sampler.step(ScriptedGenerator(np.array([1.0, -2.0])), state, 0.5, oracle)
    assert torch.equal(before, torch.random.get_rng_state())
    gradient = np.asarray(jax.grad(law.potential)(law.example))
    np.testing.assert_allclose(sampler.position(after), np.asarray(law.example) - 0.5 * gradient + [1.0, -2.0])


def test_the_generator_of_torch_follows_that_of_the_step():
    """A step that never seeds it is a function of its generator, two seeds give two steps, and none repeats itself."""
    sampler = subject_of(tensors()).sampler(target("double-well"))
    oracle = HostExact(target("double-well"))

    def path(seed):
        rng = np.random.default_rng(seed)
        state, found = sampler.init(rng, np.array([0.3]), oracle), []
        for _ in range(3):
            state = sampler.step(rng, state, 0.1, oracle)
            found.append(sampler.position(state).item())
        return found

    assert path(1) == path(1) != path(2)
    noise = [b - a for a, b in zip([0.3, *path(1)], path(1), strict=False)]
    assert len(set(noise)) == 3
