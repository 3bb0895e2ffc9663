"""Programs that are read, against JAX itself at random points; keys, paths and what is refused."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.draws import History, evaluator
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import square_root
from sgmcmc_verification.checks.proof.potential import Coordinate, any_target, uninterpreted
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.reader.interpreter import unknown
from sgmcmc_verification.checks.proof.reader.paths import Option, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.reader.values import meant, objects, scalar
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.checks.proof.oracle import SmoothPotential

N = 4
POINT = np.array([0.7, -0.4, 1.3, 0.2])
INDEX = np.array([2, 0, 3])


def _scan(z):
    carry, ys = jax.lax.scan(lambda c, a: (c * a + 1.0, c), 0.5, z)
    return jnp.concatenate([ys, carry[None]])


def _matrix(z):
    return jnp.outer(z[:3], z[:3]) + jnp.diag(jnp.array([2.0, 3.0, 4.0]))


PROGRAMS = {
    "arithmetic": lambda z: (z[0] + 2.0 * z[1] - z[2] / 3.0) * -z[3],
    "powers": lambda z: jnp.stack([z[0] ** 3, (1.0 + z**2)[1] ** 0.7, jnp.square(z[2]), 1 / jnp.sqrt(1.0 + z[3] ** 2)]),
    "exponentials": lambda z: jnp.exp(z) + jnp.expm1(z) + jnp.log(2.0 + z**2) + jnp.log1p(z**2) + jnp.exp2(z),
    "hyperbolic": lambda z: jnp.tanh(z) + jnp.sinh(z) + jnp.cosh(z) + jax.nn.sigmoid(z),
    "circular": lambda z: jnp.sin(z) + jnp.cos(z) + jnp.tan(z) + jnp.arctan(z) + jax.lax.erf(z),
    "branches": lambda z: jnp.where(z[0] > 0.5, z, 2 * z) + jnp.maximum(z[1], 0.1) + abs(z[1]) + jnp.clip(z[2], -1, 1),
    "sums": lambda z: jnp.stack([jnp.sum(z), jnp.prod(z), jnp.max(z), jnp.mean(z), z @ z]),
    "cumulative": lambda z: jnp.cumsum(z) + jnp.cumprod(z),
    "scan": _scan,
    "while": lambda z: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * z[0]), (0, z[1]))[1],
    "cond": lambda z: jax.lax.cond(z[0] > 0, lambda y: y * 2, lambda y: y * 3, z),
    "gather": lambda z: z[INDEX] + z[jnp.array([[0, 1], [2, 3]])][:, 0].sum(),
    "rows": lambda z: z.reshape(2, 2)[jnp.array([1, 0, 1])].ravel(),
    "columns": lambda z: z.reshape(2, 2)[:, jnp.array([1, 0, 1])].ravel(),
    "diagonal": lambda z: jnp.diag(jnp.outer(z, z)) + jnp.diagonal(jnp.outer(z, z + 1)),
    "dynamic slices": lambda z: jax.lax.dynamic_update_slice(z, jax.lax.dynamic_slice(z, (1,), (2,)) * 2, (2,)),
    "pad": lambda z: jnp.pad(z, (1, 2)) + jax.lax.pad(z, 0.0, ((0, 0, 1),)),
    "scatter": lambda z: z.at[INDEX].add(1.0 + z[:3]).at[0].set(z[1]),
    "moves": lambda z: jnp.concatenate([jnp.flip(z), jnp.tile(z, 2), jnp.roll(z, 1), jnp.stack([z, z]).T.ravel()]),
    "unstack": lambda z: jnp.unstack(z)[2] * jnp.unstack(z.reshape(2, 2), axis=1)[1],
    "products": lambda z: jnp.einsum("ij,jk->ki", z.reshape(2, 2), z.reshape(2, 2)).ravel(),
    "derivatives": lambda z: jax.grad(lambda y: jnp.sum(jnp.sin(y) * y[0] ** 2))(z),
    "vmap": lambda z: jax.vmap(lambda a: a * z[0] + a**2)(z),
    "cholesky": lambda z: jnp.linalg.cholesky(_matrix(z)).ravel(),
    "solve": lambda z: jnp.linalg.solve(_matrix(z) + jnp.triu(jnp.ones((3, 3))), z[:3]),
    "solve triangular": lambda z: jax.scipy.linalg.solve_triangular(_matrix(z), z[:3], lower=True, trans=1),
    "inverse": lambda z: jnp.linalg.inv(_matrix(z)).ravel(),
    "root of 2 x 2": lambda z: _root(jnp.outer(z[:2], z[:2]) + jnp.eye(2)),
}  # fmt: skip


def _root(matrix):
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(values)) @ vectors.T


def read(program, point=POINT, order=0):
    """The value of a program at a point as the reader has it."""
    space = Space(Ring(), order)
    z = [space.ring.generator(Coordinate(f"x{i + 1}", i)) for i in range(len(point))]
    jaxpr = jax.make_jaxpr(program)(jax.ShapeDtypeStruct((len(point),), jnp.float64))

    def run(path):
        reader = new_reader(space, path)
        (out,) = reader.closed(jaxpr, [objects([space.lift(p) for p in z], (len(z),))])
        return reader.symbols(out)

    values = {next(iter(p.numbers())): mpmath.mpf(float(v)) for p, v in zip(z, point, strict=True)}
    value = SmoothPotential(len(point)).value(values, space.ring)
    for path, out in every_path(run):
        if all((value(p) < 0) == negative for p, negative in path.assumed.items()):
            return np.array([float(value(a.constant_term)) for a in out.ravel()]).reshape(out.shape)
    raise AssertionError("no path for the point")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_read_as_jax_runs_it(name):
    got, want = read(PROGRAMS[name]), np.asarray(PROGRAMS[name](jnp.asarray(POINT)))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)  # round-off of the program in double precision


def test_derivatives_of_the_uninterpreted_function_are_those_of_any_function():
    potential = SmoothPotential(2)

    def program(x):
        U = lambda y: uninterpreted(y)
        hessian = jax.hessian(U)(x)
        return jnp.concatenate([U(x)[None], jax.grad(U)(x), hessian.ravel(), jax.jacfwd(jax.hessian(U))(x).ravel()])

    point = np.array([0.3, 0.8])
    orders = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (1, 1), (0, 2)]
    orders += [(3, 0), (2, 1), (2, 1), (1, 2), (2, 1), (1, 2), (1, 2), (0, 3)]
    want = [float(potential.derivative(b, [mpmath.mpf(v) for v in point])) for b in orders]
    np.testing.assert_allclose(read(program, point), want, rtol=1e-12)


def test_batches_of_points_are_read():
    program = lambda z: jax.vmap(jax.grad(lambda y: uninterpreted(y)))(z.reshape(2, 2)).ravel()
    potential = SmoothPotential(2)
    rows = POINT.reshape(2, 2)
    want = [float(potential.derivative(b, [mpmath.mpf(v) for v in row])) for row in rows for b in ((1, 0), (0, 1))]
    space = Space(Ring(), 0)
    z = [space.ring.generator(Coordinate(f"x{i + 1}", i)) for i in range(4)]
    jaxpr = jax.make_jaxpr(program)(jax.ShapeDtypeStruct((4,), jnp.float64))
    (out,) = new_reader(space).closed(jaxpr, [objects([space.lift(p) for p in z], (4,))])
    values = {next(iter(p.numbers())): mpmath.mpf(float(v)) for p, v in zip(z, POINT, strict=True)}
    value = potential.value(values, space.ring)
    np.testing.assert_allclose([float(value(a.constant_term)) for a in out], want, rtol=1e-12)


def test_constants_are_what_their_author_meant():
    ring = Ring()
    assert meant(ring, 0.1).rational == meant(ring, 1.0).rational / 10
    assert meant(ring, 1 / 3).rational * 3 == 1
    assert meant(ring, -(2**0.5)) == -square_root(ring, meant(ring, 2.0).rational)
    assert abs(evaluator(ring, {})(meant(ring, 2 * np.pi)) - 2 * mpmath.pi) < 1e-14
    with pytest.raises(Unreadable, match="NaN"):
        meant(ring, float("nan"))


def histories(program):
    space = Space(Ring(), 0)
    jaxpr = jax.make_jaxpr(program)(jax.eval_shape(lambda: jax.random.key(0)))
    reader = new_reader(space)
    out = reader.closed(jaxpr, [scalar(History("step"))])
    return out, reader


def test_keys_are_known_by_their_history_and_folds_are_splits():
    """In JAX the i-th key of a split and a fold by i have the same bits; so do they here."""
    key = jax.random.key(3)
    data = jax.random.key_data
    for i in range(3):
        assert (data(jax.random.fold_in(key, i)) == data(jax.random.split(key, 3)[i])).all()
    assert (data(jax.random.split(key, 2)[1]) == data(jax.random.split(key, 5)[1])).all()

    (a, b, c), _ = histories(lambda k: (jax.random.split(k, 4)[2], jax.random.fold_in(k, 2), jax.random.split(k)[0]))
    assert a.item() == b.item() == History("step", (2,))
    assert c.item() == History("step", (0,))


def test_reuse_and_constant_keys_are_noted():
    _, reader = histories(lambda k: jax.random.normal(k, (2,)).sum() + jax.random.uniform(k, (3,)).sum())
    assert any("two kinds of draws" in note for note in reader.notes)
    _, reader = histories(lambda k: jax.random.normal(jax.random.key(0), (2,)).sum())
    assert any("same in every step" in note for note in reader.notes)
    _, reader = histories(lambda k: jax.random.normal(k, (2,)).sum() + jax.random.normal(k, (2,)).sum())
    assert not reader.notes  # the same draws, which the expectation knows


def test_a_uniform_draw_keeps_the_interval_that_it_was_found_in():
    """u < 0.3 or u < 0.6: three outcomes, of probabilities 0.3, 0.3 and 0.4."""
    program = lambda k: (lambda u: jnp.where(u < 0.3, 1.0, jnp.where(u < 0.6, 2.0, 3.0)))(jax.random.uniform(k))
    jaxpr = jax.make_jaxpr(program)(jax.eval_shape(lambda: jax.random.key(0)))
    space = Space(Ring(), 0)
    found = {}
    for path, out in every_path(lambda path: new_reader(space, path).closed(jaxpr, [scalar(History("step"))])):
        value = out[0].item().constant_term.rational
        found[value] = found.get(value, 0) + path.weight
    assert {int(k): float(v) for k, v in found.items()} == {1: 0.3, 2: 0.3, 3: 0.4}


def test_all_paths_are_taken_once():
    def run(path):
        first = path.choose([Option("a", None, "A"), Option("b", None, "B")])
        return first + (path.choose([Option("x"), Option("y"), Option("z")]) if first == "a" else "")

    assert [found for _, found in every_path(run)] == ["ax", "ay", "az", "b"]


def test_what_cannot_be_read_names_the_primitive():
    with pytest.raises(Unreadable, match="sort"):
        read(jnp.sort)
    with pytest.raises(Unreadable, match="not smooth"):
        read(jnp.floor)


def test_a_target_of_any_potential_is_a_target():
    target = any_target(3)
    shape = jax.eval_shape(jax.grad(target.potential), target.example)
    assert shape.shape == (3,)


def thrown_away(key, x, h, estimator):
    """SGLD with a diagnostic that divides by zero as h -> 0, and that nobody reads."""
    g = estimator.estimate(key, (), x)[0].gradient
    noise = jnp.sqrt(2 * h) * jax.random.normal(key, x.shape)
    jnp.log(h) * jnp.sum(1 / (x - x))
    return x - h * g + noise


def thrown_in(key, x, h, estimator):
    """The same diagnostic, which decides."""
    g = estimator.estimate(key, (), x)[0].gradient
    noise = jnp.sqrt(2 * h) * jax.random.normal(key, x.shape)
    diagnostic = jnp.log(h) * jnp.sum(1 / (x - x))
    return jnp.where(diagnostic > 0, x, x - h * g + noise)


def test_what_no_output_depends_on_is_not_read_and_what_one_does_is():
    assert prove(simple_sampler(thrown_away), 1).is_proved
    assert prove(simple_sampler(thrown_in), 1).verdict == "undecided"


def test_one_flag_for_all_entries_is_one_branch_and_a_flag_each_is_one_each():
    space = Space(Ring(), 1)
    x = objects([space.lift(space.ring.generator(Coordinate(f"x{i}", i))) for i in range(2)], (2,))

    def outcomes(shape):
        program = jax.make_jaxpr(lambda flag, x: jnp.where(flag, x, -x))(jnp.zeros(shape, bool), jnp.ones(2))

        def run(path):
            (out,) = new_reader(space, path).closed(program, [unknown(jax.ShapeDtypeStruct(shape, bool)), x])
            return tuple(entry.constant_term.text() for entry in out)

        return {found for _, found in every_path(run)}

    assert outcomes(()) == {("x0", "x1"), ("- x0", "- x1")}
    assert len(outcomes((2,))) == 4
