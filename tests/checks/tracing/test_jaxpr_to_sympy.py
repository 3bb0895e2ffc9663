"""From traced programs to SymPy: values against the program itself, derivatives against SymPy's own."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import sympy as sp

from sgmcmc_verification.checks.tracing.jaxpr_to_sympy import (
    Untranslatable,
    coordinate_symbols,
    exact,
    to_sympy,
    vanishes,
)
from sgmcmc_verification.checks.tracing.sympy_proof import evaluator

N = 4
SYMBOLS = coordinate_symbols(tuple(f"z[{i}]" for i in range(N)), (False,) * N)
INDEX = np.array([2, 0, 3])


def _scan(z):
    carry, ys = jax.lax.scan(lambda c, x: (c * x + 1.0, c), 0.5, z)
    return jnp.concatenate([ys, carry[None]])


PROGRAMS = {
    "arithmetic": lambda z: (z[0] + 2.0 * z[1] - z[2] / 3.0) * -z[3],
    "powers": lambda z: jnp.stack(
        [z[0] ** 3, (1.0 + z**2)[1] ** 0.7, jnp.square(z[2]), 1.0 / jnp.sqrt(1.0 + z[3] ** 2)]
    ),
    "rsqrt": lambda z: jax.lax.rsqrt(1.0 + z**2),
    "exponentials": lambda z: jnp.exp(z) + jnp.exp2(z) + jnp.expm1(z) + jnp.log(2.0 + z**2) + jnp.log1p(z**2),
    "hyperbolic": lambda z: jnp.tanh(z) + jnp.sinh(z) + jnp.cosh(z) + jax.nn.sigmoid(z),
    "trigonometric": lambda z: jnp.sin(z) * jnp.cos(z) + jnp.arctan(z),
    "special": lambda z: jax.scipy.special.erf(z) + jax.lax.lgamma(1.0 + z**2) + jax.lax.digamma(1.0 + z**2),
    "abs and sign": lambda z: jnp.abs(z) + jnp.sign(z),
    "max and min": lambda z: jnp.maximum(z, 0.2) + jnp.minimum(z[::-1], z) + jnp.max(z) - jnp.min(z),
    "where": lambda z: jnp.where(z > 0, z, z**2) + jnp.where(jnp.arange(N) < 2, z, 0.0),
    "logsumexp": jax.scipy.special.logsumexp,
    "matrix products": lambda z: jnp.outer(z, z) @ z + jnp.einsum("i,ij->j", z, jnp.arange(16.0).reshape(4, 4)),
    "batched product": lambda z: jnp.einsum(
        "bij,bjk->bik", z.reshape(2, 2, 1) * jnp.ones((2, 2, 2)), jnp.ones((2, 2, 1))
    ),
    "reductions": lambda z: jnp.stack([jnp.sum(z), jnp.prod(z)]),
    "cumulative": lambda z: jnp.cumsum(z) + jnp.cumprod(z) + jnp.flip(z),
    "shapes": lambda z: jnp.swapaxes(z.reshape(2, 2), 0, 1)[:, None] + jnp.tile(z[:2], (2, 1)),
    "blocks": lambda z: jnp.block([[jnp.diag(z[:2]), jnp.zeros((2, 2))], [jnp.eye(2), jnp.full((2, 2), z[3])]]),
    "gather": lambda z: z[INDEX] * z[jnp.array([1, 1, 0])],
    "scatter": lambda z: jnp.zeros(5).at[INDEX].set(z[:3]).at[jnp.array([1, 1])].add(z[2:]),
    "dynamic slices": lambda z: (
        jax.lax.dynamic_slice(z, (1,), (2,)) + jax.lax.dynamic_update_slice(z, z[:1], (2,))[1:3]
    ),
    "pad and split": lambda z: jnp.pad(jnp.concatenate(jnp.split(z, 2)[::-1]), (1, 2), constant_values=0.5),
    "stop gradient": lambda z: jax.lax.stop_gradient(z) * z,
    "jit and custom derivative": lambda z: jax.jit(jax.nn.softplus)(z) + jax.nn.relu(z),
    "scan": _scan,
    "gradient": jax.grad(lambda z: jnp.sum(z**4) + jnp.prod(z) + jax.scipy.special.logsumexp(z)),
    "jacobian": jax.jacfwd(lambda z: jnp.outer(z, jnp.tanh(z[::-1]))),
    "hessian": jax.hessian(lambda z: jnp.sum(jnp.sqrt(1.0 + z**2)) * z[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_translated_program_has_the_values_of_the_program(name):
    program = PROGRAMS[name]
    point = np.array([0.375, -0.8125, 1.25, 0.5625])
    expected = np.asarray(program(jnp.asarray(point)))
    translated = to_sympy(program, SYMBOLS)
    flat = list(translated.ravel()) if expected.ndim else [translated]
    assert np.shape(translated) == expected.shape
    with mpmath.workdps(30):
        values = [float(v) for v in evaluator(SYMBOLS, flat)([mpmath.mpf(v) for v in point])]
    # 64 eps: a few dozen float64 operations on numbers of order one.
    np.testing.assert_allclose(values, expected.ravel(), rtol=64 * np.finfo(float).eps, atol=64 * np.finfo(float).eps)


def test_gradient_of_the_program_is_the_derivative_of_its_translation():
    program = lambda z: jnp.sum(jnp.sqrt(1.0 + z**2)) * jnp.exp(-0.1 * z[0]) + jnp.tanh(z[1]) * z[2] ** 3
    expression, gradient = to_sympy(program, SYMBOLS), to_sympy(jax.grad(program), SYMBOLS)
    assert all(vanishes(g - sp.diff(expression, s)) for g, s in zip(gradient, SYMBOLS, strict=True))
    assert not vanishes(gradient[0] + sp.diff(expression, SYMBOLS[0]))


def test_float_literals_become_the_rationals_that_were_written():
    assert exact(0.1) == sp.Rational(1, 10)
    assert exact(1.0 / 3.0) == sp.Rational(1, 3)
    assert exact(0.123456789) == sp.Rational("0.123456789")
    assert exact(-0.375) == sp.Rational(-3, 8)
    assert exact(float("-inf")) == -sp.oo
    assert float(exact(np.pi)) == np.pi


@pytest.mark.parametrize(
    ("name", "program"),
    [("sort", jnp.sort), ("cholesky", lambda z: jnp.linalg.cholesky(jnp.diag(1 + z**2)))],
)
def test_untranslatable_primitive_is_named(name, program):
    with pytest.raises(Untranslatable, match=name):
        to_sympy(program, SYMBOLS)


def test_index_that_depends_on_the_variables_is_refused():
    with pytest.raises(Untranslatable):
        to_sympy(lambda z: z[jnp.argmax(z)], SYMBOLS)


@pytest.mark.parametrize("zero", [True, False])
def test_vanishes_decides_roots_exponentials_and_trigonometry(zero):
    x, y = SYMBOLS[:2]
    root = sp.sqrt(1 + x**2)
    off = sp.Integer(0) if zero else sp.Rational(1, 10**12)
    for expression in (
        (root - 1) * (root + 1) - x**2,
        1 / (root - x) - (root + x),
        sp.tanh(x) - (sp.exp(2 * x) - 1) / (sp.exp(2 * x) + 1),
        sp.sin(x + y) - sp.sin(x) * sp.cos(y) - sp.cos(x) * sp.sin(y),
        sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1,
        sp.Abs(x) * sp.sign(x) - x,
        sp.exp(x / 2) ** 2 - sp.exp(x),
        sp.sqrt(sp.Abs(x**2 - 1)) ** 4 - (x**2 - 1) ** 2,
    ):
        assert vanishes(expression + off) is zero, expression
