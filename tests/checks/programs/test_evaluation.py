"""Values of programs by NumPy are those of XLA, of which nothing here is a copy: operations, draws, loops, steps."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.start_position import start_position, start_state
from sgmcmc_verification.checks.programs import arrays, elementwise, indexing, keys, matrices
from sgmcmc_verification.checks.programs.evaluation import OPERATIONS, evaluated, values_of
from sgmcmc_verification.checks.programs.operations import Unsupported, operation_names
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.registry import SAMPLERS

FLOATS = np.array([-2.5, -1.5, -0.75, -0.3, 0.0, 0.2, 0.5, 0.99, 1.5, 2.5, 40.0])
WHOLE = np.array([-7, -2, -1, 0, 1, 2, 5, 31, 33, 1 << 20], np.int64)
MATRIX = np.cos(np.arange(12.0)).reshape(3, 4)
CUBE = np.sin(np.arange(24.0)).reshape(2, 3, 4)

ONE = [
    jnp.abs,
    jnp.arccos,
    jnp.arccosh,
    jnp.arcsin,
    jnp.arcsinh,
    jnp.arctan,
    jnp.arctanh,
    jnp.cbrt,
    jnp.ceil,
    jnp.cos,
    jnp.cosh,
    jnp.exp,
    jnp.exp2,
    jnp.expm1,
    jnp.floor,
    jnp.isfinite,
    jnp.log,
    jnp.log1p,
    jnp.negative,
    jnp.sign,
    jnp.sin,
    jnp.sinh,
    jnp.sqrt,
    jnp.square,
    jnp.tan,
    jnp.tanh,
    lax.rsqrt,
    lax.erf,
    lax.erf_inv,
    lax.erfc,
    lax.lgamma,
    lax.logistic,
    lax.stop_gradient,
    lax.round,
    jnp.round,
    lambda x: x**3,
    lambda x: x**-2,
    lambda x: x**5,
    jnp.copy,
    lambda x: lax.optimization_barrier(x),
    lambda x: jnp.clip(x, -1.0, 2.0) + lax.clamp(x - x - 1, x, x - x + 2),
    lambda x: x.astype(int),
    lambda x: x.astype(np.uint8),
    lambda x: x.astype(np.float32).astype(bool),
    jnp.flip,
]
TWO = [
    jnp.add,
    jnp.subtract,
    jnp.multiply,
    jnp.divide,
    jnp.maximum,
    jnp.minimum,
    jnp.power,
    jnp.arctan2,
    jnp.nextafter,
    lax.rem,
    jnp.equal,
    jnp.not_equal,
    jnp.less,
    jnp.less_equal,
    jnp.greater,
    jnp.greater_equal,
    jnp.mod,
    lambda a, b: jnp.where(a > b, a, b),
    lambda a, b: lax.select_n((a > 0).astype(int) + (b > 0), a, b, a * b),
]
INTEGERS = [
    lax.div,
    lax.rem,
    jnp.bitwise_and,
    jnp.bitwise_or,
    jnp.bitwise_xor,
    lax.shift_left,
    lax.shift_right_logical,
    lax.shift_right_arithmetic,
    jnp.floor_divide,
    lambda a, b: ~a + b,
    lax.max,
    lax.min,
]
SHAPES = [
    lambda x: x.sum(0),
    lambda x: x.prod(1),
    lambda x: x.max((0, 1)),
    lambda x: x.min(-1),
    lambda x: (x > 0).all(0),
    lambda x: (x > 0).any(1),
    lambda x: x.argmax(1),
    lambda x: x.argmin(0),
    lambda x: jnp.cumsum(x, 0),
    lambda x: lax.cumsum(x, 2, reverse=True),
    lambda x: jnp.cumprod(x, 1),
    lambda x: lax.cummax(x, 1),
    lambda x: lax.cummin(x, 0),
    lambda x: x.T,
    lambda x: x.reshape(4, 6),
    lambda x: x[None, :, None],
    lambda x: x[::-1, 1:],
    lambda x: lax.slice(x, (0, 0, 1), (2, 3, 4), (1, 2, 2)),
    lambda x: jnp.concatenate([x, 2 * x], 1),
    lambda x: jnp.broadcast_to(x[:, :1, 2], (5, 2, 1)),
    lambda x: lax.broadcast_in_dim(x[0, 0], (4, 3), (0,)),
    lambda x: jnp.split(x, [1, 3], 2),
    lambda x: jnp.squeeze(x[:1], 0),
    lambda x: jnp.arange(5.0) + x[0, 0, 0],
    lambda x: lax.iota(int, 4),
    lambda x: lax.pad(x, 9.0, ((1, 2, 0), (2, -1, 2), (0, -3, 1))),
    lambda x: lax.pad(x, 9.0, ((-1, 2, 1), (-1, -1, 0), (1, 1, 2))),
    lambda x: lax.pad(x[:, :0], -1.0, ((0, 0, 0), (2, 1, 3), (0, 0, 0))),
    lambda x: (3.0, 2, True),
    lambda x: lax.broadcasted_iota(np.float32, (2, 3), 1),
    lambda x: lax.dynamic_slice(x, (jnp.int32(1), jnp.int32(2), jnp.int32(9)), (1, 2, 2)),
    lambda x: lax.dynamic_update_slice(x, -x[:1, :2, :2], (jnp.int32(-3), jnp.int32(2), jnp.int32(1))),
    lambda x: jnp.einsum("aij,akj->aik", x, 1 + x),
    lambda x: x[0] @ x[1].T,
    lambda x: jnp.tensordot(x, x, ((0, 2), (0, 2))),
    lambda x: jnp.outer(x[0, 0], x[1, 1]),
    lambda x: x[0, 0] @ x[1, 2],
    lambda x: jnp.stack([x, -x], 1),
    lambda x: sum(jnp.unstack(x, axis=1)),
]
AT = jnp.array([[1, -2], [0, 7], [1, 2], [-9, 1]])
"""Indices of which some lie outside, and two are the same."""
INDEXED = [
    lambda x: x[1, jnp.int64(2)],
    lambda x: x[jnp.array([1, 0, 1])],
    lambda x: x[:, jnp.array([2, 0]), 1:3],
    lambda x: x[jnp.array([[0], [1]]), :, jnp.array([3, 1])],
    lambda x: x[:, jnp.array([2, 0]), jnp.array([1, 1])],
    lambda x: x.at[AT[:, 0], AT[:, 1]].get(mode="fill", fill_value=-3.0),
    lambda x: x.at[AT[:, 0], AT[:, 1]].get(mode="fill"),
    lambda x: x.astype(np.int32).at[AT[:, 0], AT[:, 1]].get(mode="fill"),
    lambda x: (x > 0).at[AT[:, 0], AT[:, 1]].get(mode="fill"),
    lambda x: x.at[AT[:, 0], AT[:, 1]].get(mode="clip"),
    lambda x: x.at[AT[:, 0], AT[:, 1]].get(mode="promise_in_bounds", wrap_negative_indices=False)[:0],
    lambda x: jnp.take(x, jnp.array([0, 5, -1]), axis=2),
    lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
    lambda x: jax.vmap(lambda row, i: row[i])(x, jnp.array([2, 1])),
    lambda x: jax.vmap(lambda row, i: lax.dynamic_slice(row, (i, i), (2, 2)), (0, 0))(x, jnp.array([2, -5])),
    lambda x: jax.vmap(lambda row, i: lax.dynamic_update_slice(row, 0 * row[:2, :2], (i, i)))(x, jnp.array([2, 0])),
    lambda x: x.at[0, 1].set(9.0),
    lambda x: x.at[jnp.array([1, 1]), jnp.array([2, 2])].set(jnp.array([[1.0], [2.0]])),
    lambda x: x.at[AT[:, 0], AT[:, 1]].set(5.0, mode="drop"),
    lambda x: x.at[AT[:, 0], AT[:, 1]].set(5.0, mode="clip"),
    lambda x: x.at[:, jnp.array([0, 0, 1])].add(1.5),
    lambda x: x.at[AT[:, 0], AT[:, 1]].add(jnp.arange(16.0).reshape(4, 4)),
    lambda x: x.at[AT[:, 0], AT[:, 1]].subtract(2.0),
    lambda x: x.at[AT[:, 0]].multiply(2.0),
    lambda x: x.at[AT[:, 0]].max(0.1),
    lambda x: x.at[AT[:, 0]].min(0.1),
    lambda x: jax.vmap(lambda row, i: row.at[i].add(1.0))(x, jnp.array([2, 1])),
    lambda x: jax.grad(lambda y: jnp.sum(y[jnp.array([1, 0, 1])] ** 3))(x),
    lambda x: jax.grad(lambda y: jnp.sum(y[:, 1] ** 3))(x),
    lambda x: x.at[jnp.zeros((0,), int)].set(1.0),
    lambda x: jnp.sort(x, axis=1),
    lambda x: jnp.sort(jnp.where(x > 0.5, jnp.nan, -jnp.abs(x)).ravel()),
    lambda x: jnp.argsort(jnp.round(x.ravel())),
    lambda x: jnp.lexsort((x.ravel(), jnp.round(2 * x.ravel()))),
    lambda x: lax.sort((jnp.round(2 * x), x, 2 * x), dimension=2, num_keys=2),
    lambda x: jax.random.permutation(jax.random.key(3), x, axis=1),
    lambda x: jax.random.choice(jax.random.key(3), x.ravel(), (5,), replace=False),
]
PRODUCTS = jnp.einsum("aij,akj->aik", CUBE, CUBE) + jnp.eye(3)
MATRICES = [
    jnp.linalg.cholesky,
    lambda a: jnp.linalg.cholesky(a - 1.9 * jnp.eye(3)),
    lambda a: jax.scipy.linalg.solve_triangular(a[0], a[1]),
    lambda a: jax.scipy.linalg.solve_triangular(a[0], a[1], lower=True, trans=1),
    lambda a: jax.scipy.linalg.solve_triangular(a[0], a[1], unit_diagonal=True, trans="T"),
    lambda a: lax.linalg.triangular_solve(a, a, lower=True),
    lambda a: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a[0]), True), a[1]),
    lambda a: jax.grad(lambda b: jnp.sum(jnp.linalg.cholesky(b) ** 3))(a),
]
LAWS = [
    jax.random.key_data,
    lambda k: jax.random.normal(k, (3, 2)),
    lambda k: jax.random.normal(k, (3,), np.float32),
    lambda k: jax.random.uniform(k, (4,), minval=-1.0),
    lambda k: jax.random.randint(k, (7,), -3, 11),
    lambda k: jax.random.bernoulli(k, 0.3, (9,)),
    lambda k: jax.random.rademacher(k, (9,)),
    lambda k: jax.random.exponential(k, (3,)),
    lambda k: jax.random.gumbel(k, (3,)),
    lambda k: jax.random.laplace(k, (3,)),
    lambda k: jax.random.logistic(k, (3,)),
    lambda k: jax.random.categorical(k, jnp.log(jnp.arange(1.0, 4)), shape=(5,)),
    lambda k: jax.random.truncated_normal(k, -1.0, 2.0, (4,)),
    lambda k: jax.random.key_data(jax.random.split(k, (2, 3))),
    lambda k: jax.random.normal(jax.random.fold_in(k, 7)),
    lambda k: jax.random.bits(k, (4,), np.uint8),
    lambda k: jax.random.bits(k, (4,), np.uint16),
    lambda k: jax.random.bits(k, (4,), np.uint64),
    lambda k: lax.bitcast_convert_type(jax.random.bits(k, (), np.uint32), jnp.float32),
    lambda k: jax.random.bits(k, (8,), np.uint64),  # up to `keys.FEW` blocks by whole numbers of Python
    lambda k: jax.random.bits(k, (9,), np.uint64),
    lambda k: jax.vmap(jax.random.normal)(jax.random.split(k, 4)),
    lambda k: jax.random.key(jnp.int64(-5)),
    lambda k: jax.random.key_data(jax.random.key(jnp.int32(-5))),
    lambda k: jax.random.PRNGKey(jnp.uint32(9)),
    lambda k: jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(k, i)))(jnp.arange(5)),
    lambda k: jax.random.normal(jax.random.PRNGKey(3), (2,)) + jax.random.uniform(jax.random.clone(k)),
    lambda k: jax.random.wrap_key_data(jnp.array([1, 2], np.uint32)),
    lambda k: jax.random.split(k)[::-1].reshape(2, 1),
    lambda k: jnp.where(jnp.array([True, False]), k, jax.random.key(5)),
]


def _turns(x: jax.Array) -> jax.Array:
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x + c[0]), (0, x))[1]


CONTROL = [
    lambda x: lax.scan(lambda c, a: (c * a + 1, c - a), x[0], x),
    lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    lambda x: lax.scan(lambda c, a: (c * a + 1, c - a), x[0], x, reverse=True),
    _turns,
    lambda x: lax.scan(lambda c, _: (c + 1.0, c), x[0], None, length=4),
    jax.vmap(_turns),
    lambda x: lax.scan(lambda c, a: (c, (a, c)), x[0], x[:0]),
    lambda x: lax.fori_loop(0, 7, lambda i, y: y * 0.9 + i, x),
    lambda x: lax.switch(jnp.int32(9), [jnp.sin, jnp.cos, jnp.tanh], x),
    lambda x: jax.grad(lambda y: jnp.sum(y**3))(x),
    lambda x: jax.vmap(lambda y: lax.while_loop(lambda c: c < 9, lambda c: c + jnp.exp(y), y))(x[:4]),
    lambda x: jax.checkpoint(jnp.sin)(x),
    lambda x: jax.nn.softplus(x),
    lambda x: jax.nn.relu(x),
    lambda x: jax.scipy.special.logsumexp(x),
    lambda x: jax.hessian(lambda y: jnp.sum(jnp.tanh(y) ** 2))(x),
    lambda x: lax.scan(lambda k, a: (jax.random.fold_in(k, 1), a * jax.random.normal(k)), jax.random.key(1), x)[1],
]


def same(function, *args, bits: bool = False) -> None:
    """Values by NumPy are those by XLA, in type, shape and up to round-off."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    ours, theirs = values_of(closed, jax.tree.leaves(args)), jax.tree.leaves(jax.jit(function)(*args))
    assert len(ours) == len(theirs) == len(jax.tree.leaves(shape))
    weak = lambda value: getattr(value, "weak_type", False)  # an array of keys has no such word
    for a, b in zip(ours, theirs, strict=True):
        assert (a.dtype, a.shape, weak(a)) == (b.dtype, b.shape, weak(b))
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        exact = bits or not jnp.issubdtype(a.dtype, jnp.inexact)
        rounding = 0.0 if exact else 1e-5 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rounding, atol=rounding)


@pytest.mark.parametrize("place", range(len(ONE)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_one_number(place, dtype):
    same(ONE[place], FLOATS.astype(dtype))


@pytest.mark.parametrize("place", range(len(TWO)))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_two_numbers(place, dtype):
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(FLOATS, FLOATS))
    same(TWO[place], a, b)


@pytest.mark.parametrize("place", range(len(INTEGERS)))
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32])
def test_whole_numbers(place, dtype):
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(WHOLE, WHOLE))
    if INTEGERS[place] in (lax.shift_right_arithmetic,) and dtype == np.uint32:
        a = a >> 1  # of a sign bit XLA and NumPy have different readings in an unsigned number
    same(INTEGERS[place], a, b)


@pytest.mark.parametrize("place", range(len(SHAPES)))
def test_arrays(place):
    same(SHAPES[place], CUBE)


@pytest.mark.parametrize("place", range(len(INDEXED)))
def test_indices(place):
    same(INDEXED[place], CUBE)


@pytest.mark.parametrize("place", range(len(MATRICES)))
def test_matrices(place):
    same(MATRICES[place], PRODUCTS)


@pytest.mark.parametrize("place", range(len(LAWS)))
def test_draws_have_the_same_bits(place):
    for seed in (0, 5, 2**40 + 3):
        same(LAWS[place], jax.random.key(seed))


@pytest.mark.parametrize("place", range(len(CONTROL)))
def test_control_flow_and_derivatives(place):
    same(CONTROL[place], FLOATS[:6])


def test_each_rule_is_compared_with_xla():
    """The cases above contain each operation for which there is a rule."""
    k, x = jax.random.key(0), FLOATS
    cases = [
        *((f, (x[:6],)) for f in (*ONE, *CONTROL)),
        *((f, (x, x)) for f in TWO),
        *((f, (WHOLE, WHOLE)) for f in INTEGERS),
        *((f, (CUBE,)) for f in (*SHAPES, *INDEXED)),
        *((f, (PRODUCTS,)) for f in MATRICES),
        *((f, (k,)) for f in LAWS),
    ]
    met = set(itertools.chain.from_iterable(operation_names(jax.make_jaxpr(f)(*args).jaxpr) for f, args in cases))
    rules = {name for module in (elementwise, arrays, indexing, matrices, keys) for name in module.RULES}
    assert rules - met <= {"copy_p"}  # its name in another release


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.linalg.eigh(jnp.diag(x**2))[0],
        lambda x: x.at[jnp.array([0, 1])].apply(jnp.sin),
        lambda x: jax.random.normal(jax.random.key(1, impl="rbg")) + x,
        lambda x: lax.fori_loop(0, OPERATIONS, lambda i, y: y * 0.99, x),
        lambda x: jnp.broadcast_to(x, (1 << 18, 2)).sum(),
        lambda x: lax.broadcast(3.0, (2,)),
    ],
)
def test_what_is_left_to_xla(function):
    x = jnp.asarray([1.0, 2.0])
    closed = jax.make_jaxpr(function)(x)
    with pytest.raises(Unsupported):
        values_of(closed, [x])
    assert np.array_equal(evaluated(function)(x), jax.jit(function)(x))


def test_errors_of_the_function_are_its_own():
    with pytest.raises(ZeroDivisionError):
        evaluated(lambda x: x / (1 // 0))(1.0)


def test_steps_of_the_rows():
    """Initial states and steps of all samplers on JAX, on their first targets."""
    met = 0
    for row in SAMPLERS:
        subject, target = Subject(row), find_target(row.targets[0])
        sampler, estimator, h = subject.sampler(target), subject.estimator(target), subject.step_size(target)
        if on_host(sampler):
            continue
        start = start_position(sampler, target)
        init = lambda key, of=sampler, at=start, by=estimator: of.init(key, at, by)
        step = lambda key, state, of=sampler, by=estimator, size=h: of.step(key, state, size, by)
        state = jax.jit(init)(jax.random.key(1))
        for function, args in ((init, (jax.random.key(1),)), (step, (jax.random.key(2), state))):
            try:
                same(function, *args)
            except Unsupported:
                continue
            except AssertionError as error:
                raise AssertionError(f"{row.name}: {error}") from None
            met += 1
    assert met > 100


def test_a_state_is_that_of_init():
    """Also where `init` puts values aside, cannot be traced, or runs on the host."""

    class Kept:
        backend = "jax"

        def init(self, key, position, estimator):
            self.scale = 2 * position
            return self.scale + jax.random.normal(key, position.shape)

    class Concrete(Kept):
        def init(self, key, position, estimator):
            return position if float(position[0]) > 0 else -position

    key, position = jax.random.key(3), jnp.asarray([0.5, -2.0])
    for sampler in (Kept(), Concrete()):
        state = start_state(sampler, key, position, None)
        assert np.allclose(state, type(sampler)().init(key, position, None), rtol=1e-14)
    kept = Kept()
    start_state(kept, key, position, None)
    assert np.array_equal(np.asarray(kept.scale), [1.0, -4.0])  # a number, not what a trace left behind


def test_a_program_is_traced_once_for_arguments_of_a_kind():
    seen = []

    def function(x):
        seen.append(x.shape)
        return 2 * x

    run = evaluated(function)
    for values in ([1.0], [2.0], [1.0, 2.0], [3.0]):
        assert np.array_equal(run(np.array(values)), 2 * np.array(values))
    assert seen == [(1,), (2,)]
