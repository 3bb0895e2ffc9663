"""The thermostats, the splittings of underdamped Langevin dynamics, UBU and Leimkuhler-Matthews.

Oracles: the published Gamma; update matrices and plain NumPy loops written from the papers; closed-form variances;
mpmath for the coefficients of the exact flows; the generator of the declared dynamics for the order.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.linalg import expm, solve_discrete_lyapunov

import sgmcmc_verification.samplers.numerics.noise
import sgmcmc_verification.samplers.overdamped.leimkuhler_matthews
import sgmcmc_verification.samplers.thermostats.badodab
import sgmcmc_verification.samplers.underdamped.splitting
from sgmcmc_verification.samplers.dynamics.complete_recipe import fokker_planck_residual
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.claims import Diffusion, StationaryMoments
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.samplers.numerics.ornstein_uhlenbeck import decay_ratio, tanh_excess
from sgmcmc_verification.samplers.overdamped.leimkuhler_matthews import LeimkuhlerMatthews
from sgmcmc_verification.samplers.thermostats.badodab import BADODAB
from sgmcmc_verification.samplers.thermostats.msgnht import MSGNHT
from sgmcmc_verification.samplers.thermostats.sgnht import SGNHT
from sgmcmc_verification.samplers.underdamped.splitting import ABOBA, BAOAB, OABAO, OBABO, LangevinSplitting
from sgmcmc_verification.samplers.underdamped.ubu import BUB, UBU
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(np.float64).eps
WORDS = ("BAOAB", "ABOBA", "OBABO", "OABAO", "UBU", "BUB")
SPLITTINGS = [LangevinSplitting(word, friction=1.7, temperature=0.6) for word in WORDS]
FRESH = [LangevinSplitting(word, friction=1.7, temperature=0.6, fresh_gradients=True) for word in WORDS]
SCALAR = [
    SGNHT(diffusion=1.3, temperature=0.6),
    SGNHT(diffusion=1.3, temperature=0.6, scheme="splitting"),
    BADODAB(diffusion=1.3, temperature=0.6),
    BADODAB(diffusion=1.3, temperature=0.6, thermal_mass=2.5),
]
ELEMENTWISE = [
    MSGNHT(diffusion=1.3, temperature=0.6),
    MSGNHT(diffusion=1.3, temperature=0.6, scheme="splitting"),
]
THERMOSTATS = SCALAR + ELEMENTWISE
MATTHEWS = [LeimkuhlerMatthews(temperature=0.6)]
DYNAMICS = [SPLITTINGS[0], SCALAR[0], *SCALAR[2:], ELEMENTWISE[0], *MATTHEWS]
ALL = SPLITTINGS + FRESH + THERMOSTATS + MATTHEWS


def target_of(potential, example):
    """A target that only has a potential: nothing else is needed here."""
    return Target("test", manifold=None, example=example, potential=potential)


def quadratic(curvature):
    return target_of(lambda x: 0.5 * curvature * jnp.sum(x * x), jnp.zeros(1))


def quartic(size):
    """Not separable, so that a mixed-up coordinate shows."""
    weights = jnp.arange(1.0, size + 1)
    return target_of(lambda x: jnp.sum(weights * x**2) / 2 + jnp.sum(x) ** 4 / 4 + jnp.sin(x[0]), jnp.zeros(size))


def quartic_gradient(x):
    """Its gradient, by hand, in NumPy."""
    gradient = np.arange(1.0, len(x) + 1) * x + np.sum(x) ** 3
    gradient[0] += np.cos(x[0])
    return gradient


@pytest.fixture
def tape(monkeypatch):
    """Make the samplers take their normal draws from a list: `tape(draws)`, then call the step untraced."""
    queue = []

    def normal_like(key, tree):
        del key
        return ravel_pytree(tree)[1](queue.pop(0))

    for module in (
        sgmcmc_verification.samplers.numerics.noise,
        sgmcmc_verification.samplers.underdamped.splitting,
        sgmcmc_verification.samplers.thermostats.badodab,
        sgmcmc_verification.samplers.overdamped.leimkuhler_matthews,
    ):
        monkeypatch.setattr(module, "normal_like", normal_like)

    def load(draws):
        queue[:] = draws
        return queue

    return load


def draws_per_step(sampler):
    """Number of normal vectors in one step, from the definition of the method."""
    if isinstance(sampler, LangevinSplitting):
        return sampler.scheme.count("O") + 2 * sampler.scheme.count("U")
    return 1


def one_step(sampler, tape, estimator, unravel, z, draws, h):
    """z -> z' as flat vectors, with given normal draws; the caches are recomputed by `pack`."""
    packed_noise = [draws[0]] if isinstance(sampler, LeimkuhlerMatthews) else []
    queue = tape([*packed_noise, *draws])
    state = sampler.pack(jax.random.key(0), unravel(z), estimator)
    state = sampler.step(jax.random.key(1), state, h, estimator)
    assert not queue  # the step drew as many normals as its definition says
    return ravel_pytree(sampler.unpack(state))[0]


def full_variable(sampler, target):
    """An example of z and the map from flat vectors to it."""
    state = sampler.init(jax.random.key(0), target.example, Exact(target))
    return ravel_pytree(sampler.unpack(state))


# dynamics


def published_drift(sampler, d):
    """f(z) as the papers print it, for the quartic target, independent of H, D and Q."""
    T = sampler.temperature
    force = lambda x: -jax.grad(quartic(d).potential)(x)

    def drift(z):
        x, r, xi = z[:d], z[d : 2 * d], z[2 * d :]
        if isinstance(sampler, LeimkuhlerMatthews):
            return force(x)
        if isinstance(sampler, LangevinSplitting):
            return jnp.concatenate([r, force(x) - sampler.friction * r])
        mass = getattr(sampler, "thermal_mass", None) or d
        drive = r * r - T if isinstance(sampler, MSGNHT) else (jnp.sum(r * r, keepdims=True) - d * T) / mass
        return jnp.concatenate([r, force(x) - xi * r, drive])

    return drift


@pytest.mark.parametrize("sampler", DYNAMICS, ids=repr)
def test_published_drift_leaves_the_declared_law_invariant(sampler):
    dynamics, drift = sampler.claims[Diffusion].dynamics(quartic(3)), published_drift(sampler, 3)
    residual = jax.jit(lambda z: fokker_planck_residual(drift, dynamics.D, dynamics.H, z))
    for z in jnp.asarray(np.random.default_rng(0).normal(size=(4, dynamics.dim))):
        # round-off of f . grad H and D grad H . grad H, the terms that cancel
        scale = jnp.sum(jnp.abs(drift(z))) * jnp.sum(jnp.abs(jax.grad(dynamics.H)(z))) + dynamics.dim
        assert abs(float(residual(z))) <= 10 * EPS * float(scale)


@pytest.mark.parametrize("sampler", DYNAMICS, ids=repr)
def test_declared_drift_is_the_published_one(sampler):
    dynamics, drift = sampler.claims[Diffusion].dynamics(quartic(3)), published_drift(sampler, 3)
    for z in jnp.asarray(np.random.default_rng(0).normal(size=(2, dynamics.dim))):
        np.testing.assert_allclose(dynamics.drift(z), drift(z), rtol=100 * EPS, atol=100 * EPS)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (SGNHT(), [0, 0, 0, 0, 0, 0, -1.0]),
        (SGNHT(diffusion=2.0, temperature=0.6), [0, 0, 0, 0, 0, 0, -0.6]),
        (MSGNHT(), [0, 0, 0, 0, 0, 0, -1.0, -1.0, -1.0]),
        (MSGNHT(temperature=0.6), [0, 0, 0, 0, 0, 0, -0.6, -0.6, -0.6]),
        (BADODAB(), [0, 0, 0, 0, 0, 0, -1.0]),
        (BADODAB(temperature=0.6, thermal_mass=1.5), [0, 0, 0, 0, 0, 0, -1.2]),
        (BAOAB(), [0] * 6),
        (LeimkuhlerMatthews(), [0] * 3),
    ],
    ids=repr,
)
def test_gamma_is_the_published_one(sampler, expected):
    dynamics = sampler.claims[Diffusion].dynamics(quartic(3))
    z = jnp.asarray(np.random.default_rng(1).normal(size=dynamics.dim))
    np.testing.assert_allclose(dynamics.gamma(z), expected, atol=8 * EPS)


@pytest.mark.parametrize("sampler", THERMOSTATS, ids=repr)
def test_only_the_momentum_of_a_thermostat_is_diffused(sampler):
    dynamics = sampler.claims[Diffusion].dynamics(quartic(3))
    diffusion = np.zeros(dynamics.dim)
    diffusion[3:6] = 1.3 * 0.6
    np.testing.assert_allclose(dynamics.D(jnp.ones(dynamics.dim)), np.diag(diffusion), rtol=4 * EPS)


# one step against a transcription in NumPy


def numpy_langevin(word, C, T, x, r, draws, h):
    """A word over A, B, O, U, from the definition of the letters; U by matrix exponentials, not by its formulas."""
    draws = list(draws)
    for letter in word:
        t = h / word.count(letter)
        if letter == "A":
            x = x + t * r
        elif letter == "B":
            r = r - t * quartic_gradient(x)
        elif letter == "O":
            r = np.exp(-C * t) * r + np.sqrt(T * (1 - np.exp(-2 * C * t))) * draws.pop(0)
        else:
            # Van Loan: flow and covariance of d(x, r) = F (x, r) dt + (0, sqrt(2 C T)) dW
            F, S = np.array([[0, 1], [0, -C]]), np.diag([0, 2 * C * T])
            block = expm(t * np.block([[-F, S], [np.zeros((2, 2)), F.T]]))
            flow, covariance = block[2:, 2:].T, block[2:, 2:].T @ block[:2, 2:]
            # momentum noise first, as the definition of N_x given N_r has it
            root = np.linalg.cholesky(covariance[::-1, ::-1])
            first, second = draws.pop(0), draws.pop(0)
            x, r = (
                x + flow[0, 1] * r + root[1, 0] * first + root[1, 1] * second,
                flow[1, 1] * r + root[0, 0] * first,
            )
    return np.concatenate([x, r])


def numpy_thermostat(sampler, x, r, xi, draw, h):
    """Ding's Euler, the symmetric splitting of Chen et al., and BADODAB, transcribed line by line."""
    A, T, d = sampler.diffusion, sampler.temperature, len(x)
    drive = (lambda r: r * r - T) if isinstance(sampler, MSGNHT) else (lambda r: r @ r / d - T)
    if isinstance(sampler, BADODAB):
        mu = sampler.thermal_mass or d
        r = r - h / 2 * quartic_gradient(x)
        x = x + h / 2 * r
        xi = xi + h / 2 / mu * (r @ r - d * T)
        variance = 2 * A * T * h if xi == 0 else A * T * (1 - np.exp(-2 * xi * h)) / xi
        r = np.exp(-xi * h) * r + np.sqrt(variance) * draw
        xi = xi + h / 2 / mu * (r @ r - d * T)
        x = x + h / 2 * r
        r = r - h / 2 * quartic_gradient(x)
    elif sampler.scheme == "euler":
        r = r - h * quartic_gradient(x) - h * xi * r + np.sqrt(2 * A * T * h) * draw
        x = x + h * r
        xi = xi + h * drive(r)
    else:
        x, xi = x + h / 2 * r, xi + h / 2 * drive(r)
        r = np.exp(-xi * h / 2) * r
        r = r - h * quartic_gradient(x) + np.sqrt(2 * A * T * h) * draw
        r = np.exp(-xi * h / 2) * r
        x, xi = x + h / 2 * r, xi + h / 2 * drive(r)
    return np.concatenate([x, r, np.atleast_1d(xi)])


def numpy_step(sampler, z, draws, h):
    d = 3
    if isinstance(sampler, LeimkuhlerMatthews):
        x = z + np.sqrt(sampler.temperature * h / 2) * draws[0]
        return z - h * quartic_gradient(x) + np.sqrt(2 * sampler.temperature * h) * draws[0]
    if isinstance(sampler, LangevinSplitting):
        return numpy_langevin(sampler.scheme, sampler.friction, sampler.temperature, z[:d], z[d:], draws, h)
    xi = z[2 * d :] if isinstance(sampler, MSGNHT) else z[2 * d]
    return numpy_thermostat(sampler, z[:d], z[d : 2 * d], xi, draws[0], h)


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_steps_are_those_of_the_papers_on_given_noise(sampler, tape):
    target, h = quartic(3), 0.05
    rng = np.random.default_rng(3)
    example, unravel = full_variable_untaped(sampler, target, tape)
    z = 0.5 * rng.normal(size=len(example))
    for _ in range(3):
        draws = list(rng.normal(size=(draws_per_step(sampler), 3)))
        actual = one_step(sampler, tape, Exact(target), unravel, jnp.asarray(z), list(map(jnp.asarray, draws)), h)
        # Cholesky of the pair covariance, condition 1 / h^2, is the least accurate oracle
        np.testing.assert_allclose(actual, numpy_step(sampler, z, draws, h), rtol=1000 * EPS / h, atol=100 * EPS)
        z = np.asarray(actual)


def full_variable_untaped(sampler, target, tape):
    """`full_variable` with zeros for the draws of `init` (one of the momentum, one of Leimkuhler-Matthews)."""
    tape([jnp.zeros(target.size)])
    return full_variable(sampler, target)


@pytest.mark.parametrize("sampler", [*SPLITTINGS, *THERMOSTATS], ids=repr)
def test_cached_state_and_repacked_state_step_alike(sampler):
    target = quartic(3)
    estimator = Exact(target)
    state = sampler.init(jax.random.key(5), jnp.asarray([0.3, -0.2, 0.5]), estimator)
    state = sampler.step(jax.random.key(6), state, 0.05, estimator)
    again = sampler.pack(jax.random.key(7), sampler.unpack(state), estimator)
    one, two = (sampler.unpack(sampler.step(jax.random.key(8), s, 0.05, estimator)) for s in (state, again))
    np.testing.assert_array_equal(ravel_pytree(one)[0], ravel_pytree(two)[0])


class Counting:
    """The exact gradient; its state is the number of evaluations so far."""

    def __init__(self, target):
        self.target = target

    def init(self, key, position):
        del key, position
        return 0

    def estimate(self, key, estate, position):
        return Exact(self.target).estimate(key, (), position)[0], estate + 1


@pytest.mark.parametrize("sampler", [*SPLITTINGS, *FRESH, *THERMOSTATS, *MATTHEWS], ids=repr)
def test_gradients_per_step(sampler):
    estimator = Counting(quartic(3))
    state = sampler.init(jax.random.key(0), jnp.ones(3), estimator)
    before = state.estate
    state = sampler.step(jax.random.key(1), state, 0.05, estimator)
    assert state.estate - before == (sampler.scheme.count("B") if getattr(sampler, "fresh_gradients", False) else 1)


# exact law on quadratic targets


def stationary(sampler, tape, h, curvature):
    """Covariance of (x, r) or X on U = curvature x^2 / 2: Jacobians of the code, discrete Lyapunov equation."""
    target = quadratic(curvature)
    example, unravel = full_variable_untaped(sampler, target, tape)
    draws = jnp.zeros((draws_per_step(sampler), 1))

    def step(z, w):
        return one_step(sampler, tape, Exact(target), unravel, z, list(w), h)

    A, B = jax.jacfwd(step, (0, 1))(jnp.zeros_like(example), draws)
    B = B.reshape(len(example), -1)
    return solve_discrete_lyapunov(np.asarray(A), np.asarray(B @ B.T)), A


@pytest.mark.parametrize("sampler", [s for s in SPLITTINGS if StationaryMoments in s.claims], ids=repr)
@pytest.mark.parametrize(("h", "curvature"), [(0.5, 1.0), (0.3, 9.0), (0.01, 2.0)])
def test_discrete_law_is_that_of_the_code(sampler, h, curvature, tape):
    covariance, A = stationary(sampler, tape, h, curvature)
    law = sampler.claims[StationaryMoments].values(h, curvature)
    expected = [[law["position"], law["covariance"]], [law["covariance"], law["momentum"]]]
    gap = 1 - max(abs(np.linalg.eigvals(A)))
    np.testing.assert_allclose(covariance, expected, rtol=0, atol=100 * EPS / gap)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("BAOAB", lambda q: (1, 1 - q)),
        ("ABOBA", lambda q: (1, 1 / (1 - q))),
        ("OBABO", lambda q: (1 / (1 - q), 1)),
        ("OABAO", lambda q: (1 - q, 1)),
    ],
)
@pytest.mark.parametrize("friction", [0.3, 4.0])
def test_closed_forms_solve_the_lyapunov_equation_of_the_published_updates(word, expected, friction):
    h, lam, T = 0.4, 2.0, 0.6
    M, S = np.eye(2), np.zeros((2, 2))
    for letter in word:
        t = h / word.count(letter)
        e = math.exp(-friction * t)
        L = {"A": [[1, t], [0, 1]], "B": [[1, 0], [-t * lam, 1]], "O": [[1, 0], [0, e]]}[letter]
        L = np.array(L)
        M, S = L @ M, L @ S @ L.T
        if letter == "O":
            S[1, 1] += T * (1 - e * e)
    law = LangevinSplitting(word, friction, T).claims[StationaryMoments].values(h, lam)
    position, momentum = expected(h * h * lam / 4)
    gap = 1 - max(abs(np.linalg.eigvals(M)))
    covariance = solve_discrete_lyapunov(M, S)
    np.testing.assert_allclose(covariance, np.diag([T * position / lam, T * momentum]), atol=100 * EPS / gap)
    assert law == pytest.approx(
        {"position": T * position / lam, "momentum": T * momentum, "covariance": 0.0}, rel=1e-14
    )


@pytest.mark.parametrize(("cls", "position", "momentum"), [(UBU, -1 / 6, 1 / 12), (BUB, 1 / 12, -1 / 6)])
def test_leading_errors_of_ubu_and_bub_on_a_quadratic_are_the_documented_ones(cls, position, momentum, tape):
    # the relative errors are lambda h^2 (c + c' h + ...): extrapolated once, c + O(h^2)
    lam, T, h = 2.0, 0.6, 0.04

    def coefficients(h):
        covariance, _ = stationary(cls(friction=1.7, temperature=T), tape, h, lam)
        return np.array([lam * covariance[0, 0] / T - 1, covariance[1, 1] / T - 1]) / (lam * h * h)

    raw = [coefficients(h / 2**k) for k in range(3)]
    coarse, fine = 2 * raw[1] - raw[0], 2 * raw[2] - raw[1]
    # the error of `fine` is a third of its distance from `coarse`, up to O(h^3); that distance is small against c
    allowance = np.abs(fine - coarse)
    assert np.all(allowance < 1e-2 * np.abs([position, momentum]))
    assert np.all(np.abs(fine - [position, momentum]) <= allowance)


def test_leimkuhler_matthews_positions_are_exact_on_a_quadratic(tape):
    h, curvature = 0.7, 1.3
    sampler = LeimkuhlerMatthews(temperature=0.6)
    covariance, _ = stationary(sampler, tape, h, curvature)
    # position = X + sqrt(T h / 2) R with R independent of X
    variance = covariance[0, 0] + 0.6 * h / 2
    assert variance == pytest.approx(0.6 / curvature, rel=100 * EPS)
    assert sampler.claims[StationaryMoments].values(h, curvature)["position"] == 0.6 / curvature


def test_leimkuhler_matthews_positions_follow_the_two_step_recursion():
    target, h, T = quartic(3), 0.05, 0.6
    sampler, estimator = LeimkuhlerMatthews(T), Exact(target)
    state = sampler.init(jax.random.key(0), jnp.asarray([0.3, -0.2, 0.5]), estimator)
    np.testing.assert_array_equal(sampler.position(state), [0.3, -0.2, 0.5])
    state = sampler.step(jax.random.key(1), state, h, estimator)
    for n in range(3):
        following = sampler.step(jax.random.key(2 + n), state, h, estimator)
        x, noise = np.asarray(sampler.position(state)), np.asarray(state.noise + following.noise)
        expected = x - h * quartic_gradient(x) + np.sqrt(T * h / 2) * noise
        np.testing.assert_allclose(sampler.position(following), expected, rtol=20 * EPS, atol=20 * EPS)
        state = following


@pytest.mark.parametrize(("fresh", "share"), [(False, 1.0), (True, 0.5)])
def test_baoab_gradient_noise_widens_the_position_as_documented(fresh, share, monkeypatch, tape):
    # the noise of the estimate enters linearly too, so it is taped: one extra draw an estimate
    h, lam, V, C, T = 0.5, 1.5, 2.0, 1.7, 0.6
    sampler, target = BAOAB(friction=C, temperature=T, fresh_gradients=fresh), quadratic(lam)
    noisy = []

    class Noisy(Exact):
        def estimate(self, key, estate, position):
            estimate, estate = super().estimate(key, estate, position)
            return estimate._replace(gradient=estimate.gradient + math.sqrt(V) * noisy.pop(0)), estate

    estimator = Noisy(target)
    augmented = not fresh  # the kept gradient is part of the Markov chain

    def step(z, w):
        noisy[:] = list(w[1:])
        tape([w[0]])
        gradient = z[2:] if augmented else None
        state = sgmcmc_verification.samplers.underdamped.splitting.SplittingState(z[:1], z[1:2], gradient, ())
        state = sampler.step(jax.random.key(0), state, h, estimator)
        return jnp.concatenate([state.position, state.momentum, *([state.gradient] if augmented else [])])

    size = 3 if augmented else 2
    A, B = jax.jacfwd(step, (0, 1))(jnp.zeros(size), jnp.zeros((2 if augmented else 3, 1)))
    covariance = solve_discrete_lyapunov(np.asarray(A), np.asarray(B.reshape(size, -1) @ B.reshape(size, -1).T))
    excess = h * h * V / math.tanh(C * h / 2) / (4 * T * (1 - h * h * lam / 4))
    assert lam * covariance[0, 0] / T == pytest.approx(1 + share * excess, rel=1000 * EPS)


# order of the step


def local_error(sampler, tape, target, order, h):
    """Norm of E phi(step(z)) - sum_{j <= order} h^j L^j phi(z) / j! over points z and plane waves phi."""
    example, unravel = full_variable_untaped(sampler, target, tape)
    dim, noises = len(example), draws_per_step(sampler)
    rng = np.random.default_rng(4)
    points = jnp.asarray(rng.normal(size=(3, dim)))
    waves, phases = jnp.asarray(0.7 * rng.normal(size=(3, dim))), jnp.asarray(rng.normal(size=3))
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    grid = jnp.asarray(list(itertools.product(nodes, repeat=noises)))[:, :, None]
    mass = jnp.asarray([math.prod(w) for w in itertools.product(weights / weights.sum(), repeat=noises)])
    dynamics = sampler.claims[Diffusion].dynamics(target)

    def series(z, wave, phase, h):
        term = lambda y: jnp.sin(wave @ y + phase)
        total, factor = term(z), 1.0
        for j in range(1, order + 1):
            term, factor = dynamics.generator(term), factor * h / j
            total = total + factor * term(z)
        return total

    def expected(z, h):
        ends = jax.vmap(lambda w: one_step(sampler, tape, Exact(target), unravel, z, list(w), h))(grid)
        return mass @ jnp.sin(ends @ waves.T + phases)

    @jax.jit
    def error(h):
        exact = jax.vmap(lambda z: jax.vmap(lambda a, b: series(z, a, b, h))(waves, phases))(points)
        return jnp.linalg.norm(jax.vmap(lambda z: expected(z, h))(points) - exact)

    return float(error(h)), float(error(h / 2))


@pytest.mark.parametrize("sampler", [*SPLITTINGS, *THERMOSTATS, *MATTHEWS], ids=repr)
def test_local_weak_error_has_the_claimed_order(sampler, tape):
    target = quartic(1)
    order = sampler.claims.weak_order
    coarse, fine = local_error(sampler, tape, target, order, 0.01)
    # the local error is O(h^(order + 1)), not smaller and not larger
    assert round(math.log2(coarse / fine)) == order + 1


# coefficients of exact flows


@pytest.mark.parametrize("y", [0.0, 1e-9, -1e-9, 0.3, -0.3, 0.499999, 0.5, -0.5, 2.0, -2.0, 30.0])
def test_decay_ratio_and_its_derivatives_are_accurate_through_zero(y):
    # |d^k/dy^k int_0^1 exp(-y s) ds| = int s^k exp(-y s) ds: an oracle without cancellation
    function = decay_ratio
    for order in range(4):
        with mpmath.workdps(40):
            exact = float((-1) ** order * mpmath.quad(lambda s, k=order: s**k * mpmath.exp(-mpmath.mpf(y) * s), [0, 1]))
        # a derivative of the closed form divides round-off by |y| >= 1/2
        assert float(function(y)) == pytest.approx(exact, rel=20 * EPS * 8**order)
        function = jax.grad(function)


@pytest.mark.parametrize("y", [0.0, 1e-8, 1e-3, 0.4, 0.999999, 1.0, 3.0, 40.0])
def test_tanh_excess_is_accurate_through_zero(y):
    with mpmath.workdps(60):
        exact = float((y - mpmath.tanh(y)) / mpmath.mpf(y) ** 3) if y else 1 / 3
    assert float(tanh_excess(y)) == pytest.approx(exact, rel=20 * EPS)
    assert np.isfinite(jax.grad(tanh_excess)(y))


def test_pair_noise_of_ubu_has_full_accuracy_in_single_precision(tape):
    # x' = x + Cov / Var N_r * N_r + own noise: the own noise has variance T C t^3 / 6 (1 + O(C t)) as t -> 0
    C, T, t = 1.0, 0.6, 1e-3
    zero, one = jnp.zeros(1, jnp.float32), jnp.ones(1, jnp.float32)
    tape([zero, one])
    position, momentum = sgmcmc_verification.samplers.underdamped.splitting.free_langevin(
        jax.random.key(0), zero, zero, t, C, T
    )
    a = mpmath.mpf(C * t)
    exact = float(mpmath.sqrt(2 * T * (a - 2 * mpmath.tanh(a / 2))) / C)
    assert position.dtype == jnp.float32
    assert float(momentum[0]) == 0.0
    assert float(position[0]) == pytest.approx(exact, rel=10 * float(np.finfo(np.float32).eps))


@pytest.mark.parametrize("xi", [0.0, 1e-300, -2.0])
def test_badodab_is_differentiable_where_the_friction_vanishes_or_is_negative(xi):
    # no force and |r|^2 = d T: the D sub-steps leave xi exactly where it is put
    target = target_of(lambda x: 0.0 * jnp.sum(x), jnp.zeros(2))
    sampler, estimator, h = BADODAB(), Exact(target), 0.1
    _, unravel = full_variable(sampler, target)

    def momentum(xi):
        z = jnp.concatenate([jnp.zeros(2), jnp.ones(2), xi[None]])
        state = sampler.pack(jax.random.key(0), unravel(z), estimator)
        return sampler.step(jax.random.key(1), state, h, estimator).momentum

    value, slope = jax.jvp(momentum, (jnp.asarray(xi),), (jnp.ones(()),))
    draw = (jnp.asarray(value) - math.exp(-h * xi)) / math.sqrt(2 * h * float(decay_ratio(2 * h * xi)))
    # d/dxi of exp(-h xi) + sqrt(2 int_0^h exp(-2 xi s) ds) R
    with mpmath.workdps(40):
        integral = mpmath.quad(lambda s: mpmath.exp(-2 * mpmath.mpf(xi) * s), [0, h])
        derivative = mpmath.quad(lambda s: -2 * s * mpmath.exp(-2 * mpmath.mpf(xi) * s), [0, h])
        factor = float(derivative / mpmath.sqrt(2 * integral))
    expected = -h * math.exp(-h * xi) + factor * draw
    np.testing.assert_allclose(slope, expected, rtol=1000 * EPS)


# structure, dtype, options


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_single_precision_pytrees_keep_their_structure_and_dtype(sampler):
    example = {"a": jnp.zeros((2, 2), jnp.float32), "b": jnp.ones(3, jnp.float32), "c": jnp.ones((), jnp.float32)}
    target = target_of(lambda x: sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(x)) / 2, example)
    estimator = Exact(target)
    assert isinstance(sampler, Sampler)
    with jax.numpy_dtype_promotion("strict"):
        state = sampler.init(jax.random.key(0), example, estimator)
        step = jax.jit(lambda key, state, h: sampler.step(key, state, h, estimator))
        following = step(jax.random.key(1), state, 0.1)
        packed = sampler.pack(jax.random.key(2), sampler.unpack(following), estimator)
        outputs = [following, packed, sampler.unpack(following), sampler.position(following)]
    describe = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)
    assert describe(following) == describe(state) == describe(packed)
    assert describe(outputs[3]) == describe(example)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(outputs))
    moved = jax.tree.map(lambda a, b: bool(jnp.all(a != b)), outputs[3], example)
    assert all(jax.tree.leaves(moved))


@pytest.mark.parametrize("sampler", ALL, ids=repr)
def test_leaves_of_equal_shape_get_independent_noise(sampler):
    example = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
    target = target_of(lambda x: (jnp.sum(x["a"] ** 2) + jnp.sum(x["b"] ** 2)) / 2, example)
    estimator = Exact(target)
    state = sampler.init(jax.random.key(0), example, estimator)
    state = sampler.step(jax.random.key(1), state, 0.1, estimator)
    values = ravel_pytree(sampler.position(state))[0]
    assert len(set(np.asarray(values).tolist())) == 4


@pytest.mark.parametrize("sampler", [*SPLITTINGS, *THERMOSTATS, *MATTHEWS], ids=repr)
def test_gradient_noise_reaches_the_step(sampler):
    target = quartic(2)
    ends = []
    for V in (1.0, 4.0):
        estimator = KnownNoise(target, V * np.eye(2))
        state = sampler.init(jax.random.key(0), jnp.ones(2), estimator)
        for n in range(2):
            state = sampler.step(jax.random.key(n), state, 0.1, estimator)
        ends.append(sampler.position(state))
    assert bool(jnp.all(ends[0] != ends[1]))


@pytest.mark.parametrize(("cls", "word"), list(zip((BAOAB, ABOBA, OBABO, OABAO, UBU, BUB), WORDS, strict=True)))
def test_named_splittings_are_the_words(cls, word):
    sampler = cls(friction=2.0, temperature=0.5, fresh_gradients=True)
    assert sampler.scheme == word
    assert (sampler.friction, sampler.temperature, sampler.fresh_gradients) == (2.0, 0.5, True)
    assert cls(2.0).friction == 2.0


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: LangevinSplitting("BAB"), "scheme"),
        (lambda: BAOAB(friction=0.0), "friction"),
        (lambda: UBU(temperature=-1.0), "temperature"),
        (lambda: SGNHT(diffusion=0.0), "diffusion"),
        (lambda: SGNHT(temperature=0.0), "temperature"),
        (lambda: SGNHT(scheme="leapfrog"), "scheme"),
        (lambda: MSGNHT(diffusion=-1.0), "diffusion"),
        (lambda: MSGNHT(scheme="leapfrog"), "scheme"),
        (lambda: BADODAB(diffusion=0.0), "diffusion"),
        (lambda: BADODAB(temperature=0.0), "temperature"),
        (lambda: BADODAB(thermal_mass=0.0), "thermal_mass"),
        (lambda: LeimkuhlerMatthews(temperature=0.0), "temperature"),
        (lambda: BAOAB(friction=float("nan")), "friction"),
    ],
)
def test_bad_options_are_named(build, argument):
    with pytest.raises(ValueError, match=f"^{argument}:"):
        build()
