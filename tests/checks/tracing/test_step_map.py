"""One step as a function of state and noise. Oracles: increments and update matrices written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotAffine, OutOfReach
from sgmcmc_verification.checks.numerics.observables import observable_names, observables
from sgmcmc_verification.checks.numerics.quadrature import noise_rule
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target
from tests.helpers import strangers

EPS = np.finfo(np.float64).eps
LAMBDA, MEAN = 2.5, 0.7  # of the target gaussian-1d-scaled
H, C, T = 0.13, 0.8, 1.0
LINE = target("gaussian-1d-scaled")
THETA = np.array([[0.2], [1.9], [-0.6]])
PHASE = np.array([[0.2, 1.1], [1.9, -0.3], [-0.6, 0.0]])


def subject(name, **options):
    return Subject(sampler_row(name), options)


def local(step, **more):
    return Subject(Row("local", lambda _: simple_sampler(step, **more)))


def close(found, expected, operations=1e3):
    np.testing.assert_allclose(found, expected, rtol=operations * EPS, atol=operations * EPS)


def shock(h=H):
    """Standard deviation of the exact Ornstein-Uhlenbeck noise over half a step."""
    return np.sqrt(1 - np.exp(-C * h))


def by_hand(name):
    """(A, B, c) of z' = A z + B xi + c for a step of size H on U = LAMBDA (x - MEAN)^2 / 2."""
    gradient = np.array([[0, 0], [LAMBDA, 0]])  # of the momentum equation, at the position less its mean
    eye, drift = np.eye(2), np.array([[0, 1], [0, 0]])
    if name == "sghmc":
        kick = eye - H * gradient - H * C * np.diag([0, 1])
        matrix = (eye + H * drift) @ kick
        noise = (eye + H * drift) @ np.array([[0], [np.sqrt(2 * C * H)]])
    elif name == "obabo":
        damp, half = np.diag([1, np.exp(-C * H / 2)]), eye - H / 2 * gradient
        rest = damp @ half @ (eye + H * drift) @ half
        matrix = rest @ damp
        noise = np.stack([rest @ [0, shock()], [0, shock()]], axis=1)
    else:
        raise KeyError(name)
    centre = np.array([MEAN, 0.0])
    return matrix, noise, centre - matrix @ centre


def test_first_and_second_moments_of_the_increment_of_sgld():
    """E dx = -h grad U and E dx^2 = (h grad U)^2 + 2 h T."""
    moments = step_map(subject("sgld", temperature=0.6), LINE).moments(THETA, H)
    gradient = LAMBDA * (THETA - MEAN)
    close(moments.increment, -H * gradient)
    close(moments.square[:, 0], (H * gradient) ** 2 + 2 * H * 0.6)


@pytest.mark.parametrize("name", ["sghmc", "obabo"])
def test_first_and_second_moments_of_the_increment_of_a_momentum_sampler(name):
    """E dz = (A - I) z + c and E dz dz^T = E dz E dz^T + B B^T."""
    matrix, noise, offset = by_hand(name)
    moments = step_map(subject(name, friction=C), LINE).moments(PHASE, H)
    increment = PHASE @ (matrix - np.eye(2)).T + offset
    close(moments.increment, increment)
    close(moments.square, increment[:, :, None] * increment[:, None, :] + noise @ noise.T)


def test_expectations_of_the_observables_are_those_of_a_gaussian():
    """Up to degree 4, and the sines, of the N(x - h grad U, 2 h) that a step of SGLD lands at."""
    moments = step_map(subject("sgld"), LINE).moments(THETA, H)
    m, s = (THETA - H * LAMBDA * (THETA - MEAN))[:, 0], 2 * H
    by_name = dict(zip(observable_names(("x",)), moments.variable.T, strict=True))
    close(by_name["x"], m)
    close(by_name["x^2"], m**2 + s)
    close(by_name["x^3"], m**3 + 3 * m * s)
    close(by_name["x^4"], m**4 + 6 * m**2 * s + 3 * s**2)
    # E sin(w X + b) = sin(w m + b) exp(-w^2 s / 2); in one dimension the waves have |w| = 0.4
    sign = np.sign([np.sqrt(2) % 1 - 0.35, np.sqrt(5) % 1 - 0.45])
    close(by_name["sin(w.z + 0.3)"], np.sin(0.4 * sign[0] * m + 0.3) * np.exp(-0.08 * s))
    close(by_name["sin(w'.z - 1.1)"], np.sin(0.4 * sign[1] * m - 1.1) * np.exp(-0.08 * s))


def test_observables_are_what_their_names_say():
    v = np.array([2.0, -3.0])
    by_name = dict(zip(observable_names(("a", "b")), observables(v), strict=True))
    exact = {"a": 2, "b": -3, "a^2": 4, "a*b": -6, "b^2": 9, "a^3": 8, "b^3": -27, "a^4": 16, "b^4": 81}
    assert {name: by_name[name] for name in exact} == exact
    np.testing.assert_allclose(observables(jnp.asarray(v)), observables(v), rtol=8 * EPS)


def test_the_readout_is_that_of_the_position_and_not_of_the_full_variable():
    """Leimkuhler-Matthews has x = X + sqrt(h / 2) R': twice the half-step noise more than X."""
    moments = step_map(subject("leimkuhler-matthews"), LINE).moments(THETA, H)
    names = observable_names(("x",))
    variance = lambda rows: rows[:, names.index("x^2")] - rows[:, names.index("x")] ** 2
    # X' = X - h grad U(X + sqrt(h/2) R) + sqrt(2 h) R: variance 2 h (1 - h lambda / 2)^2
    close(variance(moments.variable), np.full(3, 2 * H * (1 - H * LAMBDA / 2) ** 2))
    close(variance(moments.readout), np.full(3, 2 * H * (1 - H * LAMBDA / 2) ** 2 + H / 2))


def test_many_points_give_the_same_as_one_at_a_time():
    step = step_map(subject("sgld"), LINE)
    points = np.linspace(-2, 2, 300)[:, None]  # more than one block
    close(step.moments(points, H).increment, -H * LAMBDA * (points - MEAN))


def test_the_affine_map_of_sgld():
    (only,) = step_map(subject("sgld", temperature=0.6), LINE).affine(H)
    close(only.matrix, [[1 - H * LAMBDA]])
    close(only.noise, [[np.sqrt(2 * H * 0.6)]])
    close(only.offset, [H * LAMBDA * MEAN])
    assert only.weight == 1.0


def test_the_affine_map_of_baoab_holds_its_cached_gradient():
    """State (x, r, g): r -= h g / 2, x += h r / 2, r = a r + s xi, x += h r / 2, g = lambda (x - m), r -= h g / 2."""
    (only,) = step_map(subject("baoab", friction=C), LINE).affine(H)
    a, s = np.exp(-C * H), np.sqrt(1 - np.exp(-2 * C * H))

    def push(x, r, g, xi, mean):
        r = r - H / 2 * g
        x = x + H / 2 * r
        r = a * r + s * xi
        x = x + H / 2 * r
        g = LAMBDA * (x - mean)
        return np.array([x, r - H / 2 * g, g])

    close(only.matrix, np.stack([push(*e, 0.0, 0.0) for e in np.eye(3)], axis=1))
    close(only.noise[:, 0], push(0.0, 0.0, 0.0, 1.0, 0.0))
    close(only.offset, push(0.0, 0.0, 0.0, 0.0, MEAN))


@pytest.mark.parametrize("name", ["sghmc", "obabo"])
def test_the_affine_map_of_a_momentum_sampler(name):
    (only,) = step_map(subject(name, friction=C), LINE).affine(H)
    matrix, offset, noise = only.matrix[:2, :2], only.offset[:2], only.noise[:2]
    if name == "obabo":  # the third entry of the state is the gradient at x, LAMBDA (x - MEAN)
        matrix = matrix + np.outer(only.matrix[:2, 2], [LAMBDA, 0])
        offset = offset - only.matrix[:2, 2] * LAMBDA * MEAN
    expected = by_hand(name)
    close(matrix, expected[0])
    close(noise @ noise.T, expected[1] @ expected[1].T)
    close(offset, expected[2])


def test_the_affine_map_follows_the_step_size():
    step = step_map(subject("sgld"), LINE)
    close([step.affine(h)[0].matrix[0, 0] for h in (0.01, 0.3)], [1 - 0.01 * LAMBDA, 1 - 0.3 * LAMBDA])


@pytest.mark.parametrize("name", ["sgld", "baoab", "host-sgld"])
def test_a_step_on_an_anharmonic_target_is_not_affine(name):
    with pytest.raises(OutOfReach, match="not affine"):
        step_map(subject(name), target("anharmonic")).affine(H)


def test_a_metropolis_step_has_neither_moments_nor_an_affine_map():
    step = step_map(subject("mala"), LINE)
    with pytest.raises(OutOfReach, match="uniform"):
        step.affine(H)
    assert isinstance(step, JaxStep)
    with pytest.raises(OutOfReach, match="uniform"):
        step.moments(THETA, H)


def test_randomness_that_escapes_the_tape_is_out_of_reach():
    step = step_map(local(lambda key, x, h, estimator: x + h * jax.random.gamma(key, 2.0, x.shape)), LINE)
    for attempt in (lambda: step.moments(THETA, H), lambda: step.affine(H)):
        with pytest.raises(OutOfReach, match="random_gamma"):
            attempt()


@pytest.mark.parametrize("count", [8, 12, 20])
def test_more_normals_than_a_tensor_rule_can_have_are_integrated_by_a_symmetric_one(count):
    """x' = x + h (sum of n normals)^2: E (x' - x) = n h and E (x' - x)^2 = 3 n^2 h^2, of degree 4 in the noise."""
    step = step_map(local(lambda key, x, h, estimator: x + h * jnp.sum(jax.random.normal(key, (count,))) ** 2), LINE)
    moments = step.moments(THETA, H)
    nodes, weights = noise_rule(count)
    move = H * nodes.sum(axis=1) ** 2
    # round-off of a sum of as many terms, of both signs, each the difference of two positions
    rounded = lambda power: len(nodes) * EPS * np.abs(weights) @ (np.abs(THETA).max() + move) ** power
    np.testing.assert_allclose(moments.increment[:, 0], count * H, rtol=0, atol=rounded(1))
    np.testing.assert_allclose(moments.square[:, 0, 0], 3 * (count * H) ** 2, rtol=0, atol=rounded(2))
    assert rounded(1) < 1e-6 * count * H
    assert rounded(2) < 1e-5 * (count * H) ** 2


def test_too_many_normals_for_quadrature_are_refused():
    step = step_map(local(lambda key, x, h, estimator: x + h * jnp.sum(jax.random.normal(key, (40,)))), LINE)
    with pytest.raises(OutOfReach, match="40 normals"):
        step.moments(THETA, H)


@pytest.mark.parametrize("replace", [True, False])
def test_minibatches_are_enumerated_with_their_probabilities(replace):
    """One affine map a minibatch; its offset is that of the estimate of its data."""
    data = target("tiny-gaussian-data")
    assert data.terms is not None
    maps = step_map(subject("sgld"), data, Minibatch(data.terms, 2, replace)).affine(0.01)
    assert len(maps) == (25 if replace else 10)
    assert sum(m.weight for m in maps) == pytest.approx(1.0, abs=100 * EPS)
    assert data.gaussian is not None
    y, noise_precision = np.asarray(data.terms.data), np.linalg.inv([[1.5, 0.4], [0.4, 0.8]])
    pairs = [(i, j) for i in range(5) for j in range(5)] if replace else [(i, j) for i in range(5) for j in range(i)]
    expected = sorted(tuple(0.01 * 5 / 2 * noise_precision @ (y[i] + y[j])) for i, j in pairs)
    close(sorted(tuple(m.offset) for m in maps), expected)
    for m in maps:
        close(m.matrix, np.eye(2) - 0.01 * data.gaussian.precision)


def test_too_many_minibatches_are_refused():
    step = step_map(local(lambda key, x, h, e: x + h * jax.random.randint(key, (4,), 0, 9).sum()), LINE)
    with pytest.raises(OutOfReach, match="6561 outcomes"):
        step.affine(H)


@pytest.mark.parametrize("name", ["gaussian-1d-scaled", "anharmonic"])
def test_the_host_sampler_has_the_moments_of_its_jax_twin(name):
    ours, host = step_map(subject("sgld"), target(name)), step_map(subject("host-sgld"), target(name))
    assert isinstance(host, HostStep)
    for a, b in zip(ours.moments(THETA, H), host.moments(THETA, H), strict=True):
        close(a, b)


def test_the_host_sampler_has_the_affine_map_of_its_jax_twin():
    plane = target("gaussian-correlated-2d")
    ours, host = step_map(subject("sgld"), plane), step_map(subject("host-sgld"), plane)
    for a, b in zip(ours.affine(0.1)[0], host.affine(0.1)[0], strict=True):
        close(a, b)
    for a, b in zip(ours.readout_at(0.1), host.readout_at(0.1), strict=True):
        close(a, b)
    close(ours.unpacking(), host.unpacking())


def test_a_test_that_rejects_before_its_coin_leaves_no_affine_map():
    """Moves by less than two are rejected without a draw, as by a reversibility test: at small noise nothing moves."""

    def step(rng, x, h, estimator):
        p = rng.standard_normal(x.shape)
        return x + np.sqrt(2 * h) * p if np.sum(p * p) > 4 and rng.random() < 0.5 else x

    host = Subject(Row("local", lambda _: simple_sampler(step, backend="host")))
    with pytest.raises(NotAffine, match="do not enter"):
        step_map(host, LINE).affine(0.1)


def test_a_bend_far_out_is_seen_of_a_step_in_python():
    """x' = x - h min(x, 1.4): beyond the unit steps from which a map is fitted, but for the generic points."""
    step = lambda rng, x, h, estimator: x - h * np.minimum(x, 1.4) + h * rng.standard_normal(x.shape)
    host = Subject(Row("local", lambda _: simple_sampler(step, backend="host")))
    with pytest.raises(NotAffine):
        step_map(host, LINE).affine(0.1)


def test_noise_is_integrated_by_the_rule_and_not_by_a_sample():
    """E exp(a xi) to the precision of the rule: 12 points are exact to degree 23."""
    step = step_map(local(lambda key, x, h, estimator: jnp.exp(h * jax.random.normal(key, x.shape))), LINE)
    moments = step.moments(np.zeros((1, 1)), 0.5)
    assert moments.increment[0, 0] == pytest.approx(np.exp(0.125), rel=1e-12)
    assert len(noise_rule(1)[0]) == 12


class Pooled:
    """SGLD whose noise is a row, at random, of a pool that the state keeps."""

    def init(self, key, position, estimator):
        return {"pool": jax.random.normal(key, (3000, position.size)), "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        x, row = state["x"], state["pool"][jax.random.randint(key, (), 0, 2)]
        g = estimator.estimate(key, (), x)[0].gradient
        return {**state, "x": x - step_size * g + jnp.sqrt(2 * step_size) * row}


def test_a_state_of_very_many_numbers_has_no_matrix():
    """Of 12,850 numbers it took ten gigabytes, and the process was killed."""
    with pytest.raises(OutOfReach, match="3001 numbers, too many"):
        step_map(strangers.subject(Pooled(), LINE.name), LINE).affine(0.01)


@pytest.mark.parametrize(("draws", "paths"), [(1, 6), (2, 17), (3, 45)])
def test_the_steps_of_a_host_sampler_from_one_point_are_counted(draws, paths):
    """Six nodes for one normal draw; from two on those of a rule of degree seven, 1 + 4 n + 4 n (n - 1) + ..."""

    def step(rng, x, h, estimator):
        return x + np.sqrt(h) * sum(rng.standard_normal(x.shape) for _ in range(draws))

    host = step_map(Subject(Row("local", lambda _: simple_sampler(step, backend="host"))), LINE)
    assert host.paths(np.zeros(1), 0.1, 100) == paths
    assert host.paths(np.zeros(1), 0.1, 3) == (3 if draws == 1 else paths)
