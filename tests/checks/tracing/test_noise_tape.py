"""The noise tape feeds the draws of steps that know nothing of it, and says what it cannot feed.

Oracles: values that are put on the tape and read back; closed-form moments under Gauss-Hermite nodes; the step itself,
run with the key whose draws are put on the tape.
"""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite
from sgmcmc_verification.checks.tracing import noise_tape
from sgmcmc_verification.checks.tracing.noise_tape import INTERCEPTED, Noise, Reader, record
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

EPS = np.finfo(np.float64).eps
KEY = jax.random.key(3)


def noise(normal=(), uniform=(), integer=()):
    return Noise(jnp.asarray(normal, float), jnp.asarray(uniform, float), jnp.asarray(integer, int))


class Transcript(Reader):
    """A tape that lets every draw happen and writes it down in the units of the tape."""

    def __init__(self):
        self.values = {"normal": [], "uniform": [], "integer": []}

    def draw(self, kind, equation, inputs):
        out = core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)
        value = np.ravel(out[0] if kind == "normal" else out[0] - inputs[1])
        self.values[kind].extend(value if kind != "uniform" else value / np.ravel(inputs[2] - inputs[1]))
        return out

    def unknown(self, primitive, inputs):
        raise AssertionError(f"{primitive} is not intercepted")


def transcribe(function, *args):
    """What `function` draws at `args`, as a `Noise`."""
    jaxpr = jax.make_jaxpr(function)(*args)
    transcript = Transcript()
    noise_tape.evaluate(jaxpr.jaxpr, jaxpr.consts, jax.tree.leaves(args), transcript)
    return noise(**transcript.values)


# --- the names that everything rests on ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda key: jax.random.normal(key, (2,)), "_normal"),
        (lambda key: jax.random.uniform(key, (2,)), "_uniform"),
        (lambda key: jax.random.randint(key, (2,), 0, 7), "_randint"),
    ],
    ids=["normal", "uniform", "randint"],
)
def test_jax_still_gives_its_draws_the_names_that_the_tape_intercepts(draw, name):
    equations = jax.make_jaxpr(draw)(KEY).eqns
    names = [e.params["name"] for e in equations if e.primitive.name in ("jit", "pjit")]
    advice = f"jax {jax.__version__} renamed its draw to {names}: it belongs in noise_tape.INTERCEPTED"
    assert names == [name], advice
    assert name in INTERCEPTED, advice
    assert record(draw, KEY).unintercepted == (), advice


def test_jax_still_makes_a_complex_normal_of_two_draws_of_the_name_that_the_tape_intercepts():
    draw = lambda key: jax.random.normal(key, (2,), complex)
    (outer,) = (e for e in jax.make_jaxpr(draw)(KEY).eqns if e.primitive.name in ("jit", "pjit"))
    inner = [e.params["name"] for e in outer.params["jaxpr"].jaxpr.eqns if e.primitive.name in ("jit", "pjit")]
    assert inner.count("_normal_real") == 2
    assert record(draw, KEY).unintercepted == ()


def test_intercepted_names_are_exactly_those_that_are_guarded():
    assert INTERCEPTED == {"_normal": "normal", "_normal_real": "normal", "_uniform": "uniform", "_randint": "integer"}


# --- values arrive where they belong -------------------------------------------------------------------------------


def test_normals_come_out_exactly_and_in_order():
    program = record(lambda key: (jax.random.normal(key, (2, 2)), jax.random.normal(key)), KEY)
    first, second = program(noise([1.5, -2.0, 0.25, 7.0, 9.0]), KEY)
    assert np.array_equal(first, [[1.5, -2.0], [0.25, 7.0]])
    assert second == 9.0


def test_uniforms_are_mapped_to_their_bounds():
    program = record(lambda key: jax.random.uniform(key, (3,), minval=-1.0, maxval=3.0), KEY)
    assert np.array_equal(program(noise(uniform=[0.0, 0.25, 0.5]), KEY), [-1.0, 0.0, 1.0])


def test_uniforms_are_mapped_to_bounds_that_depend_on_the_state():
    program = record(lambda x, key: jax.random.uniform(key, (), minval=x, maxval=2 * x), jnp.asarray(1.0), KEY)
    assert program(noise(uniform=[0.5]), jnp.asarray(4.0), KEY) == 6.0


def test_integers_are_mapped_to_their_range():
    program = record(lambda key: jax.random.randint(key, (3,), 2, 7), KEY)
    assert program.ranges == (5, 5, 5)
    assert np.array_equal(program(noise(integer=[0, 3, 4]), KEY), [2, 5, 6])


def test_choice_with_replacement_is_a_draw_of_indices():
    program = record(lambda key: jax.random.choice(key, jnp.array([10.0, 20.0, 30.0]), (2,)), KEY)
    assert program.ranges == (3, 3)
    assert np.array_equal(program(noise(integer=[2, 0]), KEY), [30.0, 10.0])


def test_a_complex_normal_is_two_normals_of_half_the_variance():
    program = record(lambda key: jax.random.normal(key, (2,), complex), KEY)
    assert program.count("normal") == 4
    np.testing.assert_allclose(program(noise([1.0, 2.0, 3.0, 4.0]), KEY), np.array([1 + 3j, 2 + 4j]) / np.sqrt(2))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_precision_of_a_draw_is_kept(dtype):
    program = record(lambda key: jax.random.normal(key, (2,), dtype), KEY)
    assert program(noise([1.0, 2.0]), KEY).dtype == dtype


def test_kinds_do_not_disturb_each_other():
    def step(key):
        a, b, c = jax.random.split(key, 3)
        return jax.random.normal(a), jax.random.uniform(b), jax.random.randint(c, (), 0, 4), jax.random.normal(b)

    program = record(step, KEY)
    assert [program.count(kind) for kind in ("normal", "uniform", "integer")] == [2, 1, 1]
    assert program(noise([5.0, 6.0], [0.5], [3]), KEY) == (5.0, 0.5, 3, 6.0)


@pytest.mark.parametrize(
    ("draw", "fed", "expected"),
    [
        (lambda key: jax.random.bernoulli(key, 0.3, (2,)), [0.29, 0.31], [True, False]),
        (lambda key: jax.random.exponential(key, (2,)), [0.0, 1 - np.exp(-2.0)], [0.0, 2.0]),
        (lambda key: jax.random.rademacher(key, (2,), float), [0.4, 0.6], [1.0, -1.0]),
    ],
    ids=["bernoulli", "exponential", "rademacher"],
)
def test_laws_made_of_a_uniform_are_fed_by_it(draw, fed, expected):
    program = record(draw, KEY)
    assert (program.count("uniform"), program.unintercepted) == (2, ())
    np.testing.assert_allclose(np.asarray(program(noise(uniform=fed), KEY), float), expected, rtol=8 * EPS)


def test_a_correlated_normal_is_fed_by_standard_normals():
    covariance = np.array([[2.0, 0.6], [0.6, 1.0]])
    program = record(lambda key: jax.random.multivariate_normal(key, jnp.ones(2), jnp.asarray(covariance)), KEY)
    nodes, weights = gauss_hermite(2, 3)
    values = jax.vmap(lambda e: program(Noise(e, jnp.zeros(0), jnp.zeros(0, int)), KEY))(jnp.asarray(nodes))
    gap = np.asarray(values) - 1.0
    np.testing.assert_allclose(weights @ gap, 0, atol=100 * EPS)
    np.testing.assert_allclose((weights[:, None] * gap).T @ gap, covariance, rtol=100 * EPS)


# --- what the tape cannot feed is listed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "primitive"),
    [
        (lambda key: jax.random.gamma(key, 2.0, (2,)), "random_gamma"),
        (lambda key: jax.random.beta(key, 2.0, 3.0), "random_gamma"),
        (lambda key: jax.random.dirichlet(key, jnp.ones(3)), "random_gamma"),
        (lambda key: jax.random.t(key, 3.0), "random_gamma"),
        (lambda key: jax.random.choice(key, 5, (2,), replace=False), "random_bits"),
        (lambda key: jax.random.permutation(key, 4), "random_bits"),
        (lambda key: jax.random.bits(key, (2,)), "random_bits"),
        (lambda key: jax.random.poisson(key, 2.0), "while"),
        (lambda key: jax.lax.while_loop(lambda c: c < 1, lambda c: c + jax.random.normal(key), 0.0), "while"),
        (lambda key: jax.lax.cond(key is None, lambda: 0.0, lambda: 0.0) + _in_a_branch(key), "cond"),
    ],
    ids=[
        "gamma",
        "beta",
        "dirichlet",
        "student-t",
        "choice without replacement",
        "permutation",
        "bits",
        "poisson",
        "a draw in a while loop",
        "a draw in a branch",
    ],
)
def test_randomness_that_is_not_fed_is_listed(draw, primitive):
    assert primitive in record(draw, KEY).unintercepted


def _in_a_branch(key):
    return jax.lax.cond(jax.random.uniform(key) < 0.5, lambda: jax.random.normal(key), lambda: 1.0)


def test_splitting_of_keys_alone_is_no_randomness():
    program = record(lambda key: jax.random.split(jax.random.fold_in(key, 3)), KEY)
    assert (program.draws, program.unintercepted) == ((), ())


def test_integers_whose_bounds_depend_on_the_state_are_refused():
    with pytest.raises(OutOfReach, match="depend on the state"):
        record(lambda n, key: jax.random.randint(key, (2,), 0, n), jnp.asarray(4), KEY)


def test_integers_whose_ranges_differ_between_entries_are_refused():
    with pytest.raises(OutOfReach, match="differ between entries"):
        record(lambda key: jax.random.randint(key, (2,), jnp.array([0, 0]), jnp.array([3, 4])), KEY)


# --- under the transformations of JAX ------------------------------------------------------------------------------


def test_draws_inside_nested_jit_are_fed():
    inner = jax.jit(lambda key, x: x + jax.random.normal(key))
    program = record(jax.jit(lambda key: inner(key, jnp.asarray(1.0)) * 2), KEY)
    assert program(noise([0.5]), KEY) == 3.0


@pytest.mark.parametrize(("reverse", "expected"), [(False, [1.0, 3.0, 6.0]), (True, [6.0, 5.0, 3.0])])
def test_draws_inside_scan_are_fed_in_the_order_of_its_iterations(reverse, expected):
    # running sums of the draws; in reverse the last position is visited first
    def walk(key):
        def body(total, k):
            total = total + jax.random.normal(k)
            return total, total

        return jax.lax.scan(body, 0.0, jax.random.split(key, 3), reverse=reverse)

    program = record(walk, KEY)
    fed = [1.0, 2.0, 3.0] if not reverse else [3.0, 2.0, 1.0]
    last, path = program(noise(fed), KEY)
    assert program.count("normal") == 3
    assert np.array_equal(path, expected)
    assert last == 6.0


def test_draws_inside_a_counted_loop_are_fed():
    program = record(lambda key: jax.lax.fori_loop(0, 3, lambda i, c: 2 * c + _fold_normal(key, i), 0.0), KEY)
    assert program(noise([1.0, 10.0, 100.0]), KEY) == 4 + 20 + 100


def _fold_normal(key, i):
    return jax.random.normal(jax.random.fold_in(key, i))


def test_draws_inside_vmap_are_fed_chain_by_chain():
    program = record(lambda keys: jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys), jax.random.split(KEY, 3))
    fed = np.arange(6.0)
    assert np.array_equal(program(noise(fed), jax.random.split(KEY, 3)), fed.reshape(3, 2))


def test_a_taped_function_can_be_compiled_vectorised_and_differentiated():
    program = record(lambda x, key: jnp.sum(x * jax.random.normal(key, (2,))), jnp.ones(2), KEY)
    of = lambda x, e: program(Noise(e, jnp.zeros(0), jnp.zeros(0, int)), x, KEY)
    e = jnp.array([0.5, -3.0])
    assert jax.jit(of)(jnp.ones(2), e) == -2.5
    assert np.array_equal(jax.vmap(of, (None, 0))(jnp.ones(2), jnp.stack([e, 2 * e])), [-2.5, -5.0])
    assert np.array_equal(jax.grad(of)(jnp.ones(2), e), e)
    assert np.array_equal(jax.grad(of, 1)(jnp.array([4.0, 5.0]), e), [4.0, 5.0])


# --- expectations ---------------------------------------------------------------------------------------------------


def test_expectations_of_a_taped_function_equal_closed_forms():
    """E exp(a X + b Y) = exp((a^2 + b^2) / 2) and E X^4 = 3."""
    a, b = 0.7, -0.4

    def function(key):
        x, y = jax.random.normal(key), jax.random.normal(jax.random.fold_in(key, 1))
        return jnp.exp(a * x + b * y), x**4

    program = record(jax.jit(function), KEY)
    nodes, weights = gauss_hermite(2, 20)
    values = jax.vmap(lambda e: jnp.stack(program(Noise(e, jnp.zeros(0), jnp.zeros(0, int)), KEY)))(jnp.asarray(nodes))
    np.testing.assert_allclose(weights @ np.asarray(values), [np.exp((a**2 + b**2) / 2), 3.0], rtol=1e3 * EPS)


# --- whole samplers, ours and another library's -------------------------------------------------------------------


def _step(row, subject_target):
    sampler, estimator = row.build(subject_target), Exact(subject_target)
    state = sampler.init(jax.random.key(1), jax.tree.map(jnp.asarray, subject_target.example), estimator)
    return lambda key, state: sampler.step(key, state, jnp.asarray(0.1), estimator), state


OURS = [sampler_row(name) for name in ("sgld", "baoab", "badodab", "hmc")]
THEIRS = [row for row in ADAPTERS if row.name in ("blackjax/sgld", "blackjax/sghmc", "blackjax/sgnht")]
# A loop is compiled as a whole where the tape runs its iterations one by one: equal up to rounding only.
LOOPS = ("hmc", "blackjax/sghmc")


@pytest.mark.parametrize("row", [*OURS, *THEIRS], ids=lambda row: row.name)
def test_fed_with_the_draws_of_a_key_the_step_is_the_step_of_that_key(row):
    step, state = _step(row, target("gaussian-pytree" if row.name in ("sgld", "blackjax/sgld") else "anharmonic"))
    program = record(step, KEY, state)
    assert program.unintercepted == ()
    assert program.count("normal") >= 1
    other = jax.random.key(99)
    real = step(KEY, state)
    # the key that the program is given no longer matters
    replayed = program(transcribe(step, KEY, state), other, state)
    assert jax.tree.structure(real) == jax.tree.structure(replayed)
    if row.name in LOOPS:
        np.testing.assert_allclose(ravel_pytree(replayed)[0], ravel_pytree(real)[0], rtol=100 * EPS)
    else:
        assert np.array_equal(ravel_pytree(real)[0], ravel_pytree(replayed)[0])
    moved = program(noise(np.ones(program.count("normal")), np.ones(program.count("uniform")) / 2), other, state)
    assert not np.array_equal(ravel_pytree(real)[0], ravel_pytree(moved)[0])


def test_the_step_of_another_library_is_the_formula_of_its_paper():
    """theta' = theta - h grad U + sqrt(2 h) xi for the fed xi, in BlackJAX's own compiled code."""
    kernel = blackjax.sgld(lambda x, batch: -x + batch)
    program = record(jax.jit(lambda key, x: kernel.step(key, x, jnp.zeros(2), 0.1)), KEY, jnp.ones(2))
    assert (program.count("normal"), program.unintercepted) == (2, ())
    xi = np.array([0.3, -1.7])
    np.testing.assert_allclose(
        np.asarray(program(noise(xi), KEY, jnp.array([2.0, -1.0]))),
        0.9 * np.array([2.0, -1.0]) + np.sqrt(0.2) * xi,
        rtol=8 * EPS,
    )


def test_the_trajectory_of_another_library_draws_once_an_inner_iteration():
    """BlackJAX's SGHMC with L iterations of two coordinates: 2 (L + 1) normals, the momentum among them."""
    row = next(row for row in ADAPTERS if row.name == "blackjax/sghmc")
    plane = target("gaussian-correlated-2d")
    sampler, estimator = row.build(plane, num_integration_steps=4), Exact(plane)
    state = sampler.init(KEY, jnp.asarray(plane.example), estimator)
    program = record(lambda key, s: sampler.step(key, s, 0.1, estimator), KEY, state)
    assert (program.count("normal"), program.unintercepted) == (10, ())
