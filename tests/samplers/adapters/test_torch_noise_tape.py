"""The noise tape for torch feeds every random number of torch, or says that it cannot."""

import math

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tracing.host_branching import ScriptedGenerator, Unintercepted, branches
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.from_step import simple_sampler

torch = pytest.importorskip("torch", reason="needs torch: pip install 'sgmcmc-verification[torch]'")

from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from, numpy_uniforms_from  # noqa: E402 (after the skip)

from_torch = torch.randn_like  # a library may have bound the name long ago
EPS = np.finfo(float).eps
VALUES = np.array([0.3, -1.7])
ZERO, ONE = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)

VALUED = torch.tensor([1.0, 2.0])
NORMAL_DRAWS = {
    "randn": lambda: torch.randn(2),
    "randn, generator": lambda: torch.randn(2, generator=torch.Generator()),
    "randn_like, bound earlier": lambda: from_torch(ZERO),
    "normal, size": lambda: torch.normal(mean=1.0, std=2.0, size=(2,)),
    "normal, tensor mean": lambda: torch.normal(ONE, 2.0),
    "normal, tensor std": lambda: torch.normal(1.0, 2 * ONE),
    "normal, tensors": lambda: torch.normal(ONE, 2 * ONE),
    "normal_": lambda: torch.empty(2).normal_(1.0, 2.0),
    "normal_, keywords": lambda: torch.empty(2).normal_(mean=1.0, std=2.0),
    "distributions": lambda: torch.distributions.Normal(ONE, 2 * ONE).sample(),
    "init": lambda: torch.nn.init.normal_(torch.empty(2), 1.0, 2.0),
    "vmap": lambda: torch.func.vmap(lambda x: x + torch.randn_like(x), randomness="different")(ZERO),
    "inside of a gradient": lambda: torch.func.grad(lambda x: (x * torch.randn_like(x)).sum())(ZERO),
    "compiled by torch.jit": lambda: torch.jit.trace(lambda x: x.clone(), ZERO)(torch.randn(2)),
}
STANDARD = ("randn", "randn, generator", "randn_like, bound earlier", "vmap", "inside of a gradient")

OTHER_DRAWS = {
    "uniform_, bounds": lambda: torch.empty(2).uniform_(-1.0, 1.0),
    "gamma of two shapes": lambda: torch.distributions.Gamma(VALUED, ONE).sample(),
    "multinomial": lambda: torch.multinomial(ONE, 1),
    "cauchy_": lambda: torch.empty(2).cauchy_(),
    "log_normal_": lambda: torch.empty(2).log_normal_(),
    "geometric_": lambda: torch.empty(2).geometric_(0.5),
    "random_": lambda: torch.empty(2).random_(),
    "poisson": lambda: torch.poisson(ONE),
    "binomial": lambda: torch.binomial(ONE, 0.5 * ONE),
    "dirichlet": lambda: torch.distributions.Dirichlet(ONE).sample(),
    "categorical": lambda: torch.distributions.Categorical(ONE).sample(),
    "rrelu": lambda: torch.rrelu(-ONE, training=True),
}


class Numbers(np.random.Generator):
    """NumPy's generator, of which it is said that what becomes of its uniforms is known."""

    uniforms_are_numbers = True


class Nodes(np.random.Generator):
    """A generator that is not known to know what becomes of its uniforms, as one that walks the nodes of a rule."""


FED = {
    "rand": (lambda: torch.rand(3), lambda g: g.uniform(0.0, 1.0, 3)),
    "uniform_": (lambda: torch.empty(3).uniform_(-1.0, 2.0), lambda g: g.uniform(-1.0, 2.0, 3)),
    "uniform_, a word": (lambda: torch.empty(3).uniform_(to=2.0), lambda g: g.uniform(0.0, 2.0, 3)),
    "laplace": (lambda: torch.distributions.Laplace(0.0, 2.0).sample((3,)), lambda g: laplace(g.uniform(-1, 1, 3))),
    "exponential_": (lambda: torch.empty(3).exponential_(2.0), lambda g: g.standard_exponential(3) / 2),
    "gamma": (lambda: torch.distributions.Gamma(3 * torch.ones(3), 2.0).sample(), lambda g: g.standard_gamma(3, 3) / 2),
    "bernoulli": (lambda: torch.bernoulli(0.3 * torch.ones(3)), lambda g: g.binomial(1, 0.3, 3)),
    "bernoulli, a number": (lambda: torch.bernoulli(torch.ones(3), 0.3), lambda g: g.binomial(1, 0.3, 3)),
    "bernoulli_": (lambda: torch.empty(3).bernoulli_(), lambda g: g.binomial(1, 0.5, 3)),
    "randint": (lambda: torch.randint(5, (3,)), lambda g: g.integers(0, 5, 3)),
    "randint, bounds": (lambda: torch.randint(2, 9, (3,)), lambda g: g.integers(2, 9, 3)),
    "randperm": (lambda: torch.randperm(7), lambda g: g.permutation(7)),
}


def laplace(u):
    return -2 * np.sign(u) * np.log1p(-np.abs(u))


@pytest.mark.parametrize("name", FED)
def test_draws_of_other_laws_are_those_of_the_generator(name):
    drawn, given = FED[name]
    before = torch.get_rng_state()
    with draws_from(Numbers(np.random.PCG64(3))):
        found = drawn()
    np.testing.assert_allclose(found.numpy(), given(np.random.default_rng(3)), rtol=1e-6)
    assert torch.equal(torch.get_rng_state(), before), "torch drew numbers of its own"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NORMAL_DRAWS)
def test_normal_draws_are_the_given_values(name):
    before = torch.get_rng_state()
    with draws_from(ScriptedGenerator(VALUES)) as tape:
        drawn = NORMAL_DRAWS[name]()
    assert tape.generator.used == 2
    expected = VALUES if name in STANDARD or "jit" in name else 1 + 2 * VALUES
    np.testing.assert_allclose(np.asarray(drawn), expected, rtol=4 * EPS)
    assert drawn.dtype == torch.float64
    assert torch.equal(torch.get_rng_state(), before), "torch drew numbers of its own"


@pytest.mark.parametrize("name", OTHER_DRAWS)
def test_any_other_draw_is_named_and_refused(name):
    before = torch.get_rng_state()
    with pytest.raises(Unintercepted, match="torch aten"), draws_from(Nodes(np.random.PCG64(0))):
        OTHER_DRAWS[name]()
    assert torch.equal(torch.get_rng_state(), before), "torch drew numbers of its own"


def test_every_operation_of_torch_that_draws_carries_the_tag_that_the_tape_looks_for():
    """The tape rests on this tag; torch's own list of generators' consumers is the schema argument `generator`."""
    untagged = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in getattr(packet, "overloads", list)():
            operation = getattr(packet, overload)
            takes = any(a.name == "generator" for a in operation._schema.arguments)
            if takes and torch.Tag.nondeterministic_seeded not in operation.tags:
                untagged.add(str(operation))
    composite = {name for name in untagged if _decomposes(name)}
    assert untagged == composite


def _decomposes(name: str) -> bool:
    """True for an operation made of others that are tagged: the dispatcher shows the tape those."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        f"aten::{name.removeprefix('aten.').removesuffix('.default')}", "CompositeImplicitAutograd"
    )


def test_expectations_are_exact():
    def step(generator):
        with draws_from(generator):
            x = torch.randn(2)
            return np.array([x[0] ** 4, x[0] ** 2 * x[1] ** 2, x[0] * x[1], torch.exp(0.5 * x[0])])

    found = sum(w * v for w, v in branches(step, points=9))
    np.testing.assert_allclose(found, [3.0, 1.0, 0.0, math.exp(0.125)], rtol=1e-9, atol=100 * EPS)  # the rule of exp


@pytest.mark.parametrize(
    ("compare", "chance"),
    [
        (lambda u: u < 0.3, 0.3),
        (lambda u: u <= 0.3, 0.3),
        (lambda u: u > 0.3, 0.7),
        (lambda u: torch.ge(torch.tensor(0.3), u), 0.3),
        (lambda u: u < torch.tensor([0.3, 0.3]), 0.3),
        (lambda u: torch.lt(u, 1.7), 1.0),
        (lambda u: u < -0.1, 0.0),
        (lambda u: u.log() < math.log(0.3), 0.3),
        (lambda u: torch.log(u) >= math.log(0.3), 0.7),
        (lambda u: u.log() < 800.0, 1.0),
        (lambda u: -u.log() > torch.tensor(-math.log(0.3)), 0.3),
        (lambda u: -u > -0.3, 0.3),
        (lambda u: u[:, None].squeeze(-1).log() < math.log(0.3), 0.3),
        (lambda u: u.neg().neg().to(torch.float32) < 0.3, 0.3),
    ],
)
def test_a_uniform_that_is_compared_is_a_coin(compare, chance):
    def toss(generator):
        with draws_from(generator):
            return torch.where(compare(torch.rand(2)), 1.0, 0.0).numpy()

    pairs = list(branches(toss, points=3))
    np.testing.assert_allclose(sum(w * v for w, v in pairs), [chance] * 2, rtol=8 * EPS)
    np.testing.assert_allclose(sum(w * v[0] * v[1] for w, v in pairs), chance**2, rtol=8 * EPS)


@pytest.mark.parametrize(
    "use",
    [
        lambda u: u + 1,
        lambda u: u.log().sum(),
        lambda u: u[0].log() < -1,
        lambda u: (u.log() < -1) & (u < 0.7),
        lambda u: u.exp(),
        lambda u: (u < 0.5) & (u < 0.7),
        lambda u: u < torch.rand(2),
    ],
)
def test_a_uniform_that_is_used_otherwise_is_refused(use):
    with pytest.raises(Unintercepted, match="uniform"), draws_from(Nodes(np.random.PCG64(0))):
        use(torch.rand(2))


def test_a_uniform_of_numpys_own_generator_is_a_number():
    with draws_from(np.random.default_rng(3)):
        found = torch.rand(2).log()
    assert np.array_equal(found, np.log(np.random.default_rng(3).uniform(0.0, 1.0, 2)))


def test_a_uniform_of_numpy_is_a_coin_and_numpy_is_put_back():
    legacy = np.random  # as a library calls it
    rand = legacy.rand

    def toss(generator):
        with numpy_uniforms_from(generator):
            return float(legacy.rand(1) >= 0.3), float(legacy.rand() < 0.3)

    found = sum(w * np.array(v) for w, v in branches(toss, points=3))
    np.testing.assert_allclose(found, [0.7, 0.3], rtol=8 * EPS)
    with pytest.raises(Unintercepted, match="numpy"), numpy_uniforms_from(np.random.default_rng(0)):
        legacy.rand(1) + 1
    assert legacy.rand is rand


def test_the_default_dtype_is_put_back_also_after_an_error():
    before = torch.get_default_dtype()
    with pytest.raises(ZeroDivisionError), draws_from(np.random.default_rng(0)):
        1 / (torch.empty(1).dtype != torch.float64)
    assert torch.get_default_dtype() == before


def test_an_ordinary_generator_makes_torch_reproducible():
    def draw(seed):
        with draws_from(np.random.default_rng(seed)):
            return torch.randn(3).numpy()

    assert np.array_equal(draw(1), draw(1))
    assert not np.array_equal(draw(1), draw(2))


def test_a_step_with_a_draw_that_cannot_be_fed_is_inconclusive():
    def step(rng, position, step_size, estimator):
        del step_size, estimator
        with draws_from(rng):
            return position + torch.empty(1).cauchy_().numpy()

    sampler = simple_sampler(step, backend="host")
    subject = Subject(Row("coin", lambda target: sampler, estimator=HostExact))
    (movement,) = (check for check in STATEMENTS if check.name == "movement")
    result = execute(movement, subject, "gaussian-1d-scaled", seed=0)
    assert (result.verdict, "cauchy" in result.reason) == ("inconclusive", True), result.reason


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def again():
    torch.manual_seed(5)
    return torch.randn(3)


SAME = {
    "two generators of one seed": lambda: (torch.randn(3, generator=seeded(5)), torch.randn(3, generator=seeded(5))),
    "torch's own, seeded twice": lambda: (again(), again()),
    "uniforms": lambda: (torch.rand(3, generator=seeded(5)), torch.rand(3, generator=seeded(5))),
}
OTHERS = {
    "two seeds": lambda: (torch.randn(3, generator=seeded(5)), torch.randn(3, generator=seeded(6))),
    "one generator": lambda: both_of(seeded(5)),
    "torch's own, never seeded": lambda: (torch.randn(3), torch.randn(3)),
    "two seeds that torch drew": lambda: tuple(
        torch.randn(3, generator=seeded(int(torch.randint(2**62, ())))) for _ in range(2)
    ),
    "seeds counted on from one": lambda: counted_on(int(torch.randint(2**62, ()))),
}


def both_of(generator):
    return torch.randn(3, generator=generator), torch.randn(3, generator=generator)


def counted_on(seed):
    return tuple(torch.randn(3, generator=seeded(seed + i)) for i in range(1, 3))


@pytest.mark.parametrize("same", [*SAME, *OTHERS])
def test_a_place_of_a_stream_has_one_number(same):
    given, before = torch.get_rng_state(), {**SAME, **OTHERS}[same]
    for generator in (np.random.default_rng(0), ScriptedGenerator(np.arange(6.0)) if "uniform" not in same else None):
        if generator is not None:
            with draws_from(generator):
                first, second = before()
            assert torch.equal(first, second) == (same in SAME)
    torch.set_rng_state(given)


def test_a_generator_that_was_given_is_left_as_it_was_and_goes_on_within_a_step():
    mine = seeded(7)
    before = mine.get_state()
    with draws_from(ScriptedGenerator(np.arange(4.0))) as tape:
        torch.randn(2, generator=mine), torch.randn(2, generator=mine)
    assert tape.generator.used == 4
    assert torch.equal(mine.get_state(), before)


def test_the_same_numbers_in_another_shape_and_a_seed_that_is_used_as_a_number_are_refused():
    with pytest.raises(Unintercepted, match="in another way"), draws_from(np.random.default_rng(0)):
        torch.randn(2, generator=seeded(3)), torch.randn(3, generator=seeded(3))
    with pytest.raises(Unintercepted, match="for no generator"), draws_from(ScriptedGenerator(VALUES)):
        torch.randint(2**62, ())
