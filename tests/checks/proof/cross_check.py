"""Does the series equal the program? The step itself on a concrete U at real draws, less the truncated series there.

The remainder has to shrink as s^(N + 1). The program runs on the noise tape, which intercepts the draws in another
way than the reader; the derivatives of U are SymPy's.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.proof.draws import Draw
from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.expansion import coordinates
from sgmcmc_verification.checks.proof.potential import any_target
from sgmcmc_verification.checks.proof.reader.paths import every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.checks.proof.traced import Traced
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.estimators.basic import Exact
from tests.checks.proof.oracle import SmoothPotential

STEP_SIZES = (4e-3, 1e-3)
"""s halves from the first to the second."""


def concrete(x):
    """The potential of the oracle in JAX."""
    return jnp.sum(0.3 * x**4 + 0.5 * x**2 + 0.2 * jnp.sin(x)) + 0.4 * x[0] * x[-1] ** 2 + 1.0


def observed_power(build, dimension, order=3, positive=False, estimator=Exact, seed=3):
    """The power of s with which the remainder shrinks, and its size at the smaller step size."""
    target = any_target(dimension, positive)
    traced = Traced(build(target), estimator(target), target)
    space = Space(Ring(), order + 2)
    z = coordinates(space.ring, traced.size, dimension, positive)
    runs = []

    def run(path):
        reader = new_reader(space, path)
        leaves = traced.packed(reader, [space.lift(p) for p in z])
        step = traced.stepped(reader, leaves, space.power_of_step(2))
        return reader, step

    runs = list(every_path(run))
    rng = np.random.default_rng(seed)
    at = 0.7 + 0.2 * rng.standard_normal(traced.size)
    reader = runs[0][1][0]
    order_of_draws = [(k, use) for k, use in reader.drawn.items() if k.root in ("pack", "step")]
    normals = {k: rng.standard_normal(math.prod(use.shape)) for k, use in order_of_draws}
    values = {next(iter(p.numbers())): mpmath.mpf(v) for p, v in zip(z, at, strict=True)}
    for number, g in enumerate(space.ring.generators):
        if isinstance(g, Draw) and g.history in normals:
            values[number] = mpmath.mpf(normals[g.history][g.place])
    value = SmoothPotential(dimension).value(values, space.ring)
    z_next = next(step.z for path, (_, step) in runs if _is_there(path.assumed, value))
    program, flat = _program(build, dimension, positive, estimator, traced, at), _flat(normals)
    errors = []
    for h in STEP_SIZES:
        noise = Noise(jnp.asarray(flat), jnp.zeros(program.count("uniform")), jnp.zeros(program.count("integer"), int))
        real = np.asarray(program(noise, jnp.asarray(at), jnp.asarray(h)))
        series = [sum(value(p) * mpmath.sqrt(h) ** k for k, p in a.coefficients.items() if k <= order) for a in z_next]
        errors.append(np.abs(real - np.array([float(v) for v in series])).max())
    return math.log2(errors[0] / errors[1]) if errors[1] > 1e-14 else math.inf, errors[1]


def _is_there(assumed, value):
    try:
        return all((value(p) < 0) == negative for p, negative in assumed.items())
    except NotReal:
        return False


def _flat(normals):
    return np.concatenate([*normals.values(), np.zeros(0)])


def _program(build, dimension, positive, estimator, traced, at):
    target = dataclasses.replace(any_target(dimension, positive), potential=lambda x: concrete(jnp.ravel(x)))
    sampler, oracle = build(target), estimator(target)

    def step(z, h):
        state = sampler.pack(jax.random.key(0), traced.unravel(z), oracle)
        return ravel_pytree(sampler.unpack(sampler.step(jax.random.key(1), state, h, oracle)))[0]

    return record(step, jnp.asarray(at), jnp.asarray(0.1))
