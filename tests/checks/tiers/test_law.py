"""The Lyapunov solver and the verdicts of the law tier.

Oracles: the recursion of the moments iterated by hand; scalar fixed points; small samplers that are wrong on purpose.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable, OutOfReach
from sgmcmc_verification.checks.exact_laws.lyapunov import observed, position_law, reachable, stationary_law
from sgmcmc_verification.checks.tiers.law.gaussian import (
    estimate_bias,
    gaussian_limit,
    gradient_noise_limit,
    minibatch_limit,
    stability,
    stationary_covariance,
    whitened_bias,
)
from sgmcmc_verification.checks.tracing.step_map import Affine, step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.overdamped.saga import SAGA
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import subject

EPS = np.finfo(np.float64).eps
LINE, PLANE, DATA = target("gaussian-1d-scaled"), target("gaussian-correlated-2d"), target("tiny-gaussian-data")
SOURCE = Source("welling2011bayesian", "equation (4)")


def run(function, subject, on):
    return function(Case(subject, on))


def reference(name, **options):
    return Subject(sampler_row(name), options)


def euler(drift=1.0, noise=1.0, push=0.0, half=0.0, order=1, law=None, stale=False, step_size=0.1):
    """Euler's method with planted errors; all of them 1, 0 or False is SGLD.

    `push` is a constant drift, `half` a drift that vanishes as sqrt(h), `stale` ignores the estimate it is given.
    """

    def step(key, x, h, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        if stale:
            gradient = jax.grad(PLANE.potential)(x)
        drift_of = -drift * gradient + push + half * jnp.sqrt(h)
        return x + h * drift_of + noise * jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)

    claims = Claims(
        SOURCE,
        StationaryLaw(order=order),
        None if law is None else StationaryMoments(law),
    )
    return Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=step_size))


# --- the solver -----------------------------------------------------------------------------------------------------


def maps(count, size=3, noise=2, radius=0.8, seed=0):
    """Random affine maps with unequal weights, contracting on average."""
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.ones(count))
    out = []
    for w in weights:
        matrix = generator.standard_normal((size, size))
        matrix *= radius / np.linalg.norm(matrix, 2)
        out.append(Affine(matrix, generator.standard_normal((size, noise)), generator.standard_normal(size), float(w)))
    return out


def iterated(branches, steps=2000):
    """Mean and covariance after many steps from a point, by the recursion of the first two raw moments."""
    size = len(branches[0].offset)
    m, second = np.zeros(size), np.zeros((size, size))
    for _ in range(steps):
        new_m, new_second = np.zeros(size), np.zeros((size, size))
        for b in branches:
            cross = b.matrix @ np.outer(m, b.offset)
            new_m += b.weight * (b.matrix @ m + b.offset)
            new_second += b.weight * (
                b.matrix @ second @ b.matrix.T + cross + cross.T + np.outer(b.offset, b.offset) + b.noise @ b.noise.T
            )
        m, second = new_m, new_second
    return m, second - np.outer(m, m)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_fixed_point_is_where_the_recursion_of_the_moments_ends(count):
    branches = maps(count)
    law = stationary_law(branches)
    mean, covariance = iterated(branches)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(law.covariance, covariance, rtol=1e-11, atol=1e-12)


def test_the_radius_of_one_map_is_the_square_of_its_spectral_radius():
    law = stationary_law([Affine(np.diag([0.5, -0.9]), np.eye(2), np.zeros(2), 1.0)])
    assert law.radius == pytest.approx(0.81, rel=10 * EPS)
    assert law.condition == pytest.approx(1 / 0.19, rel=100 * EPS)


def test_the_radius_of_random_maps_is_that_of_second_moments():
    """x' = a x with a = 0 or 1.3, even odds: the mean contracts (0.65), the square too (0.845)."""
    law = stationary_law([Affine(np.array([[a]]), np.eye(1), np.zeros(1), 0.5) for a in (0.0, 1.3)])
    assert law.radius == pytest.approx(1.69 / 2, rel=10 * EPS)
    assert law.covariance[0, 0] == pytest.approx(1 / (1 - 0.845), rel=100 * EPS)


@pytest.mark.parametrize(
    "branches",
    [
        [Affine(np.array([[1.0]]), np.eye(1), np.zeros(1), 1.0)],
        [Affine(np.array([[-1.1]]), np.eye(1), np.zeros(1), 1.0)],
        # the mean contracts (0.75), the square does not (1.125)
        [Affine(np.array([[a]]), np.eye(1), np.zeros(1), 0.5) for a in (0.0, 1.5)],
    ],
    ids=["random walk", "explosive", "explosive in the square only"],
)
def test_without_a_stationary_law_there_is_none(branches):
    law = stationary_law(branches)
    assert law.radius >= 1
    assert np.isnan(law.mean).all()
    assert np.isnan(law.covariance).all()


def test_what_is_not_read_now_or_later_is_left_out():
    # the second reads the first and is read by nothing; the third is a count, the fourth feeds the first
    matrix = np.array([[0.5, 0.0, 0.0, 0.1], [0.2, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.9]])
    noise, readout = np.eye(4)[:, :1], np.array([[1.0, 0.0, 0.0, 0.0]])
    (reduced,), read = observed([Affine(matrix, noise, np.array([0.0, 0.0, 1.0, 0.0]), 1.0)], readout)
    assert np.array_equal(reduced.matrix, [[0.5, 0.1], [0.0, 0.9]])
    assert np.array_equal(read, [[1.0, 0.0]])


def test_a_constant_and_a_count_that_are_read_are_kept():
    for matrix, readout in ((np.array([[0.5, 0.3], [0.0, 1.0]]), [[1.0, 0.0]]), (np.diag([0.5, 1.0]), [[1.0, 1.0]])):
        (kept,), _ = observed([Affine(matrix, np.eye(2)[:, :1], np.array([0.0, 1.0]), 1.0)], np.array(readout))
        assert kept.matrix.shape == (2, 2)


def test_a_kept_quantity_does_not_hide_the_law_of_what_the_chain_reaches():
    """x' = x / 2 + xi and y' = y + x' - x keep y - x: radius 1 on the plane, a law on the line."""
    matrix, noise = np.array([[0.5, 0.0], [-0.5, 1.0]]), np.array([[1.0], [1.0]])
    whole = Affine(matrix, noise, np.zeros(2), 1.0)
    assert stationary_law([whole]).radius >= 1
    (line,), read, shift = reachable([whole], np.eye(2), np.array([0.0, 3.0]))
    law = stationary_law([line])
    np.testing.assert_allclose(shift + read @ law.mean, [0.0, 3.0], atol=1e3 * np.finfo(float).eps)
    np.testing.assert_allclose(read @ law.covariance @ read.T, np.full((2, 2), 4 / 3), rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
def test_an_estimator_with_a_memory_is_unbiased_and_one_that_counts_a_datum_too_many_is_not(replace):
    assert DATA.terms is not None
    bias, allowance = estimate_bias(SAGA(DATA.terms, 2, replace=replace), DATA)
    assert bias <= allowance < 1e-12
    assert estimate_bias(SAGA(DATA.terms._replace(size=6), 2, replace=replace), DATA)[0] > 1e-2


def test_the_bias_is_in_units_of_the_target():
    """Euler's method with a constant push p: mean off by S p, covariance S (I - h P / 2)^-1."""
    assert PLANE.gaussian is not None
    h, precision = 0.05, PLANE.gaussian.precision
    bias, radius, _ = whitened_bias(step_map(euler(push=0.2), PLANE), h, 1.0)
    root = np.linalg.cholesky(precision).T
    np.testing.assert_allclose(bias[:2], root @ np.linalg.solve(precision, [0.2, 0.2]), rtol=1e-10)
    spread = root @ np.linalg.inv(precision @ (np.eye(2) - h * precision / 2)) @ root.T - np.eye(2)
    np.testing.assert_allclose(bias[2:], spread.ravel(), rtol=1e-10, atol=1e-12)
    assert radius == pytest.approx(np.abs(1 - h * np.linalg.eigvalsh(precision)).max() ** 2, rel=1e-10)


def test_the_law_read_out_is_that_of_the_position():
    """The position of Leimkuhler-Matthews is exact, its hidden variable is not."""
    mean, covariance, _ = position_law(step_map(reference("leimkuhler-matthews"), LINE), 0.3)
    assert covariance[0, 0] == pytest.approx(0.4, rel=1e-12)
    assert mean[0] == pytest.approx(0.7, rel=1e-12)


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [LINE, PLANE], ids=lambda t: t.name)
def test_a_right_limit_passes(on):
    result = run(gaussian_limit, euler(), on)
    assert result.verdict == "pass", result.reason
    assert result.measurements["measured_order"] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "wrong",
    [{"noise": np.sqrt(0.5)}, {"noise": 1.001}, {"drift": 1.001}, {"push": 0.01}],
    ids=str,
)
def test_a_wrong_limit_fails(wrong):
    result = run(gaussian_limit, euler(**wrong), PLANE)
    assert result.verdict == "fail", result.reason
    assert "limit of the bias" in result.reason


def test_a_right_limit_reached_too_slowly_fails():
    result = run(gaussian_limit, euler(order=2), LINE)
    assert result.verdict == "fail", result.reason
    assert "order 1.00 +- 0.00, claimed 2" in result.reason


def test_a_limit_that_is_not_resolved_does_not_pass():
    """A bias of sqrt(h) is no power series: nothing certifies its limit."""
    result = run(gaussian_limit, euler(half=1.0), LINE)
    assert result.verdict != "pass", result.reason


def test_a_scheme_that_is_stable_at_smaller_steps_has_its_limit_there():
    result = run(gaussian_limit, euler(step_size=2.1), LINE)
    assert result.verdict == "pass", result.reason
    wrong = run(gaussian_limit, euler(step_size=2.1, noise=np.sqrt(0.5)), LINE)
    assert wrong.verdict == "fail", wrong.reason


def test_a_scheme_that_is_stable_at_no_step_size_fails_with_its_radius():
    result = run(gaussian_limit, euler(drift=-1.0), LINE)
    assert result.verdict == "fail"
    assert "no stationary law" in result.reason


def test_the_usual_step_size_is_stable_or_fails():
    good, bad = run(stability, euler(step_size=1.9), LINE), run(stability, euler(step_size=2.1), LINE)
    assert (good.verdict, bad.verdict) == ("pass", "fail")
    assert good.measurements["stability_limit"] == pytest.approx(2 / 2.5, rel=1e-3)


def right_law(h, curvature):
    return {"position": 1 / curvature / (1 - h * curvature / 2)}


def test_the_claimed_closed_form_is_compared():
    assert run(stationary_covariance, euler(law=right_law), LINE).verdict == "pass"
    wrong = run(stationary_covariance, euler(law=lambda h, k: {"position": 1 / k}), LINE)
    assert wrong.verdict == "fail"
    assert "position at h" in wrong.reason
    assert run(stationary_covariance, euler(law=right_law, noise=1 + 1e-8), LINE).verdict == "fail"


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, "pass"), (1 + 1e-4, "fail")])
def test_a_step_size_that_is_rounded_to_single_precision_has_no_other_law(noise, verdict):
    def step(key, x, h, estimator):
        h = jnp.asarray(h, jnp.float32).astype(x.dtype)
        gradient = estimator.estimate(key, (), x)[0].gradient
        return x - h * gradient + noise * jnp.sqrt(2 * h) * jax.random.normal(key, x.shape)

    claims = Claims(SOURCE, StationaryLaw(order=1), StationaryMoments(right_law))
    rounded = Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=0.1))
    assert run(stationary_covariance, rounded, LINE).verdict == verdict


def test_noise_that_is_not_compensated_still_vanishes_with_the_step():
    result = run(gradient_noise_limit, reference("sgld"), PLANE)
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("name", ["sgld", "sghmc", "sghmc-symmetric"])
def test_compensated_noise_leaves_the_limit(name):
    result = run(gradient_noise_limit, reference(name, compensate=True), LINE)
    assert result.verdict == "pass", result.reason


def test_an_estimate_that_is_not_used_is_noticed():
    result = run(gradient_noise_limit, euler(stale=True), PLANE)
    assert result.verdict == "fail"
    assert "not used" in result.reason


def _scaled_minibatch(factor):
    """SGLD that rescales the gradient when it is noisy: the law with exact gradients stays right."""

    def step(key, x, h, estimator):
        gradient_key, noise_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        gradient = gradient if isinstance(estimator, Exact) else factor * gradient
        return x - h * gradient + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape)

    claims = Claims(
        SOURCE,
        StationaryLaw(order=1),
    )
    return Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=0.1))


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "pass"), (2 / 5, "fail")], ids=["right", "mean for sum"])
def test_minibatches_have_to_leave_the_limit(factor, verdict):
    result = run(minibatch_limit, _scaled_minibatch(factor), DATA)
    assert result.verdict == verdict, result.reason


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "pass"), (0.9, "fail")], ids=["right", "scaled"])
def test_known_noise_has_to_leave_the_limit(factor, verdict):
    result = run(gradient_noise_limit, _scaled_minibatch(factor), LINE)
    assert result.verdict == verdict, result.reason


@pytest.mark.parametrize("function", [gaussian_limit, stability, gradient_noise_limit, minibatch_limit])
def test_targets_that_are_not_gaussian_are_left_to_other_checks(function):
    with pytest.raises(NotApplicable):
        run(function, euler(), target("anharmonic"))


def test_closed_forms_are_asked_of_one_dimension_only():
    with pytest.raises(NotApplicable, match="one-dimensional"):
        run(stationary_covariance, reference("sgld"), PLANE)
    with pytest.raises(NotApplicable, match="claims no StationaryMoments"):
        run(stationary_covariance, euler(), LINE)


@pytest.mark.parametrize("function", [gaussian_limit, stability, stationary_covariance])
@pytest.mark.parametrize("name", ["hmc", "mala"])
def test_a_metropolis_kernel_is_no_linear_recursion(function, name):
    with pytest.raises(OutOfReach, match="uniforms"):
        run(function, reference(name), LINE)


def test_an_estimator_of_the_test_overrides_that_of_the_row():
    step = step_map(reference("sgld"), LINE, KnownNoise(LINE, np.eye(1)))
    assert step.affine(0.1)[0].noise.shape == (1, 2)


class Cyclic:
    """SGLD on two data at a time, in the order of the file, over and over."""

    factor = 1.0

    def __init__(self, data):
        self.terms = data.terms

    def init(self, key, position, estimator):
        return {"count": jnp.zeros((), jnp.int32), "position": position}

    def next_count(self, key, count):
        return (count + 1) % self.terms.size

    def step(self, key, state, step_size, estimator):
        x, count, terms = state["position"], state["count"], self.terms
        key, own = jax.random.split(key)
        batch = jax.tree.map(lambda a: jnp.asarray(a)[(2 * count + jnp.arange(2)) % terms.size], terms.data)
        mean = lambda x: terms.prior(x) + self.factor * terms.size / 2 * self.of_batch(x, batch)
        x = x - step_size * jax.grad(mean)(x) + jnp.sqrt(2 * step_size) * jax.random.normal(key, x.shape, x.dtype)
        return {"count": self.next_count(own, count), "position": x}

    def of_batch(self, x, batch):
        return jnp.sum(jax.vmap(self.terms.datum, (None, 0))(x, batch))


class Halved(Cyclic):
    """The same with half of the weight of the data."""

    factor = 0.5


class Wandering(Cyclic):
    """The same, but the place in the file moves at random."""

    def next_count(self, key, count):
        return (count + jax.random.randint(key, (), 1, 3)) % self.terms.size


def test_data_that_a_count_in_the_state_chooses_in_turn_are_judged_by_the_epoch():
    data = target("tiny-gaussian-data")
    run = lambda kind: minibatch_limit(Case(subject(lambda target: kind(target), data.name), data))
    assert run(Cyclic).verdict == "pass"
    assert run(Halved).verdict == "fail"


def test_data_that_a_count_in_the_state_chooses_at_random_are_left_to_runs():
    data = target("tiny-gaussian-data")
    with pytest.raises(OutOfReach, match="counts"):
        minibatch_limit(Case(subject(lambda target: Wandering(target), data.name), data))


class OnHost:
    """SGLD in Python; with an estimate of a second minibatch whose difference is added in some power of h, or kept."""

    backend = "host"
    needs = frozenset({"gradient"})
    claims = Claims(SOURCE, StationaryLaw(order=1))

    def __init__(self, power=None, kept=False):
        self.power, self.kept = power, kept

    def init(self, generator, position, estimator):
        return {"x": np.array(position), "g": estimator.estimate(generator, (), position)[0].gradient}

    def step(self, generator, state, h, estimator):
        x, kept = state["x"], state["g"]
        first, second = (estimator.estimate(generator, (), x)[0].gradient for _ in range(2))
        more = 0.0 if self.power is None else 0.3 * h**self.power * (first - second)
        x = x - h * (kept if self.kept else first) + more + np.sqrt(2 * h) * generator.standard_normal(x.shape)
        return {"x": x, "g": estimator.estimate(generator, (), x)[0].gradient if self.kept else kept}

    def position(self, state):
        return state["x"]

    def unpack(self, state):
        return state["x"]

    def pack(self, generator, z, estimator):
        gradient = estimator.estimate(generator, (), z)[0].gradient if self.kept else 0 * z
        return {"x": np.array(z), "g": gradient}


def on_host(**parts):
    return Subject(Row("local", lambda _: OnHost(**parts), step_size=0.1))


@pytest.mark.parametrize(("power", "verdict"), [(None, "pass"), (1.0, "pass"), (0.5, "fail"), (0.0, "fail")])
def test_gradient_noise_of_an_affine_step_in_python(power, verdict):
    """Noise that is added as sqrt(h) is a temperature of its own, and as h^0 more than the law; as h it goes by."""
    assert run(gradient_noise_limit, on_host(power=power), PLANE).verdict == verdict


def test_gradient_noise_that_the_state_keeps_is_left_to_runs_in_python():
    with pytest.raises(OutOfReach, match="statistical tier"):
        run(gradient_noise_limit, on_host(kept=True), PLANE)
