"""Pointwise detailed balance decides Metropolis kernels from their code, whatever the form of the acceptance."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach
from sgmcmc_verification.checks.core.lookup import find_row, resolve_object
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.law.detailed_balance import detailed_balance, pairs_of, step_sizes_of
from sgmcmc_verification.checks.tiers.law.many_pairs import unbalanced
from sgmcmc_verification.checks.tracing.step_map import HIGHEST, JaxStep, step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target
from tests.strangers.right.fresh.gauges import squares

CHECK = detailed_balance
H = 0.25
RIGHT = Path(__file__).parents[2] / "strangers" / "right"


EXACT, TENDS = (Claims(Source("", "none"), law) for law in (ExactLaw(), StationaryLaw(order=1)))


def local(step, claims=EXACT):
    made = simple_sampler(step, needs=("gradient", "potential"), claims=claims)
    return Subject(Row("local", lambda _: made, step_size=H))


def langevin(sign=1.0, drift=1.0, barker=False, energy=1.0, push=0.0, guard=jnp.inf, claims=EXACT):
    """MALA; `sign` of the gradient in the density of the proposal, `energy` the weight of U in the ratio.

    A rejection returns x + `push`; gradients are clipped at `guard` in the density of the way back.
    """

    def step(key, x, h, estimator):
        noise_key, accept_key = jax.random.split(key)
        here = estimator.estimate(key, (), x)[0]
        y = x - drift * h * here.gradient + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)
        there = estimator.estimate(key, (), y)[0]
        log_q = lambda a, g, b: -jnp.sum((b - a + sign * drift * h * g) ** 2) / (4 * h)
        back, forth = log_q(y, jnp.clip(there.gradient, -guard, guard), x), log_q(x, here.gradient, y)
        ratio = energy * (here.potential - there.potential) + back - forth
        probability = jax.nn.sigmoid(ratio) if barker else jnp.exp(jnp.minimum(ratio, 0.0))
        return jnp.where(jax.random.uniform(accept_key) < probability, y, x + push)

    return local(step, claims)


def hamiltonian(kinetic=1.0):
    """Two leapfrog steps; `kinetic` is the weight of the kinetic energy in the acceptance."""

    def step(key, x, h, estimator):
        momentum_key, accept_key = jax.random.split(key)
        r = start = jax.random.normal(momentum_key, x.shape)
        gradient = lambda q: estimator.estimate(key, (), q)[0].gradient
        potential = lambda q: estimator.estimate(key, (), q)[0].potential
        y = x
        for _ in range(2):
            r = r - 0.5 * h * gradient(y)
            y = y + h * r
            r = r - 0.5 * h * gradient(y)
        ratio = potential(x) - potential(y) + kinetic * 0.5 * (jnp.sum(start**2) - jnp.sum(r**2))
        return jnp.where(jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(ratio, 0.0)), y, x)

    return local(step)


def implicit(tolerance, kinetic=1.0):
    """One step of the implicit midpoint rule, solved by an iteration that ends where it moves less than a tolerance."""

    def step(key, x, h, estimator):
        momentum_key, accept_key = jax.random.split(key)
        r = jax.random.normal(momentum_key, x.shape)
        slope = lambda q: estimator.estimate(key, (), q)[0].gradient
        potential = lambda q: estimator.estimate(key, (), q)[0].potential

        def turn(carry):
            y, s, _, turns = carry
            new_y, new_s = x + h * (r + s) / 2, r - h * slope((x + y) / 2)
            return new_y, new_s, jnp.maximum(jnp.abs(new_y - y).max(), jnp.abs(new_s - s).max()), turns + 1

        goes_on = lambda carry: (carry[2] > tolerance) & (carry[3] < 100)
        y, s, *_ = jax.lax.while_loop(goes_on, turn, (x, r, jnp.asarray(jnp.inf), 0))
        ratio = potential(x) - potential(y) + kinetic * 0.5 * (jnp.sum(r**2) - jnp.sum(s**2))
        return jnp.where(jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(ratio, 0.0)), y, x)

    return local(step)


def walk(accept, sizes=lambda x: 1.0, densities=lambda x, y, h: 0.0):
    """Random walk Metropolis that accepts by `accept(log u, fall of U + log q(y, x) - log q(x, y), x, y)`."""

    def step(key, x, h, estimator):
        noise_key, accept_key = jax.random.split(key)
        y = x + jnp.sqrt(2 * h) * sizes(x) * jax.random.normal(noise_key, x.shape)
        potential = lambda q: estimator.estimate(key, (), q)[0].potential
        fall = potential(x) - potential(y) + densities(x, y, h)
        return jnp.where(accept(jnp.log(jax.random.uniform(accept_key)), fall, x, y), y, x)

    return local(step)


def scale(x):
    """Half in a corner, one elsewhere."""
    return jnp.where((x[0] > 2) & (x[1] > 0.5), 0.5, 1.0)


def log_densities(x, y, h):
    """log q(y, x) - log q(x, y) of a walk of steps sqrt(2 h) scale(x) N(0, I)."""
    q = lambda a, b: -jnp.sum((a - b) ** 2) / (4 * h * scale(a) ** 2) - 2 * jnp.log(scale(a))
    return q(y, x) - q(x, y)


IN_A_FEW_PLACES = {
    "a cell that is left and not entered": walk(lambda u, fall, x, y: (u < fall) & ~((y[0] > 2.1) & (y[0] < 2.4))),
    "everything out of a corner": walk(lambda u, fall, x, y: (u < fall) | ((x[0] > 2) & (x[1] > 0.5))),
    "never far uphill": walk(lambda u, fall, x, y: (u < fall) & (fall > -5)),
    "proposals of half the size in a corner": walk(lambda u, fall, x, y: u < fall, scale),
    "at least e^-6": walk(lambda u, fall, x, y: u < jnp.maximum(fall, -6)),
}
EVERYWHERE = {
    "as it should": walk(lambda u, fall, x, y: u < fall),
    "proposals of half the size in a corner, with their densities": walk(
        lambda u, fall, x, y: u < fall, scale, log_densities
    ),
    "by Barker's rule": walk(lambda u, fall, x, y: u < jax.nn.log_sigmoid(fall)),
    "a cell that is neither left nor entered": walk(
        lambda u, fall, x, y: (u < fall) & (((x[0] > 2.1) & (x[0] < 2.4)) == ((y[0] > 2.1) & (y[0] < 2.4)))
    ),
    "no move that changes the energy by more than 5": walk(lambda u, fall, x, y: (u < fall) & (jnp.abs(fall) < 5)),
}


@pytest.mark.parametrize("name", IN_A_FEW_PLACES)
def test_an_acceptance_that_is_another_one_in_a_few_places_fails(name):
    result = detailed_balance(Case(IN_A_FEW_PLACES[name], target("gaussian-correlated-2d")))
    assert result.verdict == "fail", result.reason


@pytest.mark.parametrize("name", EVERYWHERE)
def test_rules_of_acceptance_that_balance_everywhere_pass(name):
    result = detailed_balance(Case(EVERYWHERE[name], target("gaussian-correlated-2d")))
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("name", ["mala", "hmc"])
def test_thousands_of_pairs_are_bounded(name):
    step = step_map(Subject(sampler_row(name)), target("gaussian-correlated-2d"))
    found = unbalanced(step, [0.1, 1.0], 1.0)
    assert found.gap == 0, found.text
    assert found.pairs > 2000


@pytest.mark.parametrize("name", ["hmc", "mala"])
@pytest.mark.parametrize("on", ["anharmonic", "gaussian-correlated-2d"])
def test_the_reference_kernels_balance(name, on):
    result = detailed_balance(Case(Subject(sampler_row(name)), target(on)))
    assert result.verdict == "pass", result.reason


def test_the_reference_kernel_balances_at_another_temperature():
    result = detailed_balance(Case(Subject(sampler_row("mala"), {"temperature": 2.0}), target("anharmonic")))
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize(
    ("kernel", "on"),
    [
        (langevin(), "anharmonic"),
        (hamiltonian(), "anharmonic"),
        (langevin(barker=True), "anharmonic"),
        # the acceptance corrects any proposal whose density it knows
        (langevin(drift=0.5), "anharmonic"),
        (langevin(drift=0.0), "gaussian-correlated-2d"),
    ],
    ids=["MALA", "HMC", "Barker's acceptance", "half the drift", "random walk"],
)
def test_kernels_that_are_reversible_for_other_reasons_pass(kernel, on):
    result = detailed_balance(Case(kernel, target(on)))
    assert result.verdict == "pass", result.reason


WRONG = {
    "MALA, gradient flipped in the density of the proposal": (
        langevin(sign=-1.0),
        "the gradient has the wrong sign in the density of the proposal",
    ),
    "HMC, no kinetic energy": (hamiltonian(kinetic=0.0), ""),
    "energy off by 1e-4": (langevin(energy=1.0001), ""),
    # four digits would call the factor 1
    "energy off by 2e-4": (langevin(energy=1.0002), "the difference of energies has the factor 1.0002"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_acceptance_fails_and_says_of_what_it_is_made(name):
    kernel, words = WRONG[name]
    result = detailed_balance(Case(kernel, target("anharmonic")))
    assert result.verdict == "fail", result.reason
    assert "log pi(x) k(x, y)" in result.reason
    assert words in result.measurements.get("diagnosis", {"text": ""})["text"]


@pytest.mark.parametrize("of_both", [False, True])
def test_a_walk_that_is_mirrored_at_a_face_is_left_to_sampling(of_both):
    """y = |x + sqrt(x) xi| comes from two draws; a density of one of them passed, for the other pairs were dropped."""

    def log_density(x, y):
        ways = [-((z - x) ** 2) / (2 * x) for z in (y, -y)]
        return jnp.sum((jnp.logaddexp(*ways) if of_both else ways[0]) - jnp.log(x) / 2)

    def step(key, x, h, estimator):
        move_key, accept_key = jax.random.split(key)
        potential = lambda q: estimator.estimate(key, (), q)[0].potential
        y = jnp.abs(x + jnp.sqrt(x) * jax.random.normal(move_key, x.shape))
        ratio = potential(x) - potential(y) + log_density(y, x) - log_density(x, y)
        return jnp.where(jnp.log(jax.random.uniform(accept_key)) < ratio, y, x)

    walk = local(step, Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))
    result = execute(CHECK, walk, "half-gaussian", 7)
    assert result.verdict in ("out-of-reach", "inconclusive"), result.reason


def test_what_an_iteration_leaves_at_its_tolerance_is_no_violation():
    result = execute(CHECK, implicit(1e-6), "double-well", 7)
    assert result.verdict == "pass", result.reason
    assert 1e-9 < result.effect < 1e-5
    assert "an iteration of the step" in result.allowance_source


@pytest.mark.parametrize(("tolerance", "kinetic"), [(0.03, 1.0), (1e-6, 0.999), (1e-6, 0.0)])
def test_an_iteration_that_ends_early_or_is_judged_by_another_energy_fails(tolerance, kinetic):
    result = execute(CHECK, implicit(tolerance, kinetic), "double-well", 7)
    assert result.verdict == "fail", result.reason


def test_without_an_iteration_there_is_no_such_tolerance():
    """A ratio of energies that is off by 1e-6 of them."""
    result = execute(CHECK, langevin(energy=1 + 1e-6), "double-well", 7)
    assert result.verdict == "fail", result.reason
    assert result.effect < 1e-5


def test_a_guard_in_the_acceptance_that_binds_far_out_fails():
    result = detailed_balance(Case(langevin(guard=40.0), target("gaussian-correlated-2d")))
    assert result.verdict == "fail", result.reason


def test_a_kernel_that_claims_no_exact_law_is_not_held_to_balance():
    """One of O(h) may reject and lack balance: other statements decide its limit."""
    with pytest.raises(OutOfReach, match="no balance at this step size, and none is claimed"):
        detailed_balance(Case(langevin(energy=1.0001, claims=TENDS), target("anharmonic")))
    # one that balances passes all the same
    result = detailed_balance(Case(langevin(claims=TENDS), target("anharmonic")))
    assert result.verdict == "pass", result.reason


def test_a_rejection_has_to_return_where_the_chain_was():
    result = detailed_balance(Case(langevin(push=1e-9), target("anharmonic")))
    assert result.verdict == "fail", result.reason
    assert "a rejection returns a point 1e-09 away" in result.reason


def test_the_end_of_the_uniform_that_rejects_is_found_where_small_steps_are_all_accepted():
    def step(key, x, h, estimator):
        noise_key, accept_key = jax.random.split(key)
        y = x + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)
        return jnp.where(1 - jax.random.uniform(accept_key) < jnp.where(h > 1e-2, 0.5, 1.0), y, x)

    assert step_map(local(step), target("gaussian-1d-scaled")).accepting == (HIGHEST, 0.0)


def test_exact_kernels_are_examined_where_they_reject():
    """At the usual step size, and where 0.9 and 0.5 of the proposals are accepted."""
    result = detailed_balance(Case(langevin(), target("anharmonic")))
    sizes = result.reason.split("h = ")[-1].strip(")").split(", ")
    assert len(sizes) == 3

    def rare(key, x, h, estimator):
        """Right at step sizes of up to twice the usual one, where hardly anything is rejected."""
        usual = h <= 2 * H / target("anharmonic").curvature
        noise_key, accept_key = jax.random.split(key)
        y = x + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)
        U = lambda q: estimator.estimate(key, (), q)[0].potential
        ratio = jnp.where(usual, 1.0, 0.9) * (U(x) - U(y))
        return jnp.where(jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(ratio, 0.0)), y, x)

    assert detailed_balance(Case(local(rare), target("anharmonic"))).verdict == "fail"


def test_step_sizes_are_those_of_the_mean_acceptance():
    """exp(-h) is 0.9 at h = 0.105 and 0.5 at h = 0.693, to the 2^(1/64) of six bisections."""
    usual, *others = step_sizes_of(lambda h: np.exp(-h), 0.05)
    assert usual == 0.05
    np.testing.assert_allclose(others, [-np.log(0.9), np.log(2)], rtol=2 ** (1 / 64) - 1)
    assert step_sizes_of(lambda h: 1.0, 0.05) == [0.05]


def test_nothing_is_said_of_an_unadjusted_kernel():
    with pytest.raises(NotApplicable, match="no single uniform") as found:
        detailed_balance(Case(Subject(sampler_row("sgld")), target("anharmonic")))
    assert not isinstance(found.value, OutOfReach)
    assert detailed_balance.applies_to(Subject(sampler_row("sgld"))) == ()


def test_randomness_that_escapes_the_tape_is_out_of_reach():
    kernel = local(lambda key, x, h, estimator: x + jax.random.gamma(key, 1.0, x.shape))
    with pytest.raises(OutOfReach, match="random_gamma"):
        detailed_balance(Case(kernel, target("anharmonic")))


def test_density_and_acceptance_of_the_proposal_are_those_of_mala_by_hand():
    """On U = 5 (x - 7/10)^2 / 4: y = x - h U' + sqrt(2 h) xi, density N(y; x - h U', 2 h)."""
    line = target("gaussian-1d-scaled")
    step = step_map(Subject(sampler_row("mala")), line)
    assert isinstance(step, JaxStep)
    h = 0.3
    x, xi = np.array([1.3]), np.array([-1.9])
    U, slope = lambda q: 1.25 * (q - 0.7) ** 2, lambda q: 2.5 * (q - 0.7)
    y = x - h * slope(x) + np.sqrt(2 * h) * xi
    log_q = lambda a, b: -((b - a + h * slope(a)) ** 2) / (4 * h)
    found = pairs_of(step)(jnp.asarray(x)[None], jnp.asarray(xi)[None], jnp.asarray(h))
    np.testing.assert_allclose(found.y[0], y, rtol=1e-14)
    assert found.gap[0] < 1e-12
    assert found.stay[0] == 0
    # up to log sqrt(2 pi), the same on both sides of the balance
    both = np.concatenate([log_q(x, y), log_q(y, x)]) - 0.5 * np.log(2 * h)
    np.testing.assert_allclose(found.density[0], both, rtol=1e-12)
    ratio = (U(x) - U(y) + log_q(y, x) - log_q(x, y))[0]
    assert ratio < 0
    np.testing.assert_allclose(found.acceptance[0], [np.exp(ratio), 1.0], rtol=1e-12)


# What strangers write -----------------------------------------------------------------------------------------------

EXACT_KERNELS = {
    "a long trajectory has another way back": ("metropolis_hamiltonian.py:MassHMC", "detailed_balance", "anharmonic"),
    "accepted once in a million": ("metropolis_langevin.py:pcn", "detailed_balance", "banana"),
    "the metric depends on the position": (
        "metropolis_langevin.py:position_dependent_mala",
        "detailed_balance",
        "gaussian-correlated-2d",
    ),
    "an exponential decides": ("metropolis_langevin.py:CachedMALA", "detailed_balance", "gaussian-50d"),
    "an exponential never rejects what is likelier": (
        "metropolis_langevin.py:CachedMALA",
        "skew_detailed_balance",
        "double-well",
    ),
    "a cached energy is infinite": ("metropolis_hamiltonian.py:MassHMC", "finite_potential", "double-well"),
}


@pytest.mark.parametrize(("name", "check", "where"), EXACT_KERNELS.values(), ids=EXACT_KERNELS)
def test_exact_kernels_of_strangers_are_not_charged_with_round_off_or_with_how_they_accept(name, check, where):
    subject = Subject(find_row(f"{RIGHT}/{name}"))
    result = execute(find_statement(check), subject, where, 7)
    assert result.verdict == "pass", result.reason


def test_a_kernel_with_a_wrong_ratio_fails_on_a_long_trajectory_too():
    """Pairs with another way back are left out; those with one way still show an error of the ratio."""
    result = execute(find_statement("detailed_balance"), hamiltonian(kinetic=0.99), "anharmonic", 7)
    assert result.verdict == "fail"


def test_a_state_of_which_the_position_is_computed_has_a_density_of_its_own():
    """x = y^2 for the state y: pi(x) is not the density of y."""
    (subject, *_) = resolve_object("squares", squares)
    with pytest.raises(OutOfReach, match="computed from the full variable"):
        CHECK(Case(subject, target("gamma")))
