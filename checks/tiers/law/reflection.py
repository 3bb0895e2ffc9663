"""Steps that are mirrored at zero, for laws on (0, inf)^n."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, Inconclusive, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.core.start_position import start_position
from sgmcmc_verification.samplers.interface.claims import ReflectsAtZero

STATES = 1 << 16
"""Steps that are compared."""
FARTHEST, NEAREST = 1.0, 1e-4
"""Distances from zero at which they start, in units of the position of `Target.example`."""
CROSSINGS = 20
"""Steps that have to cross zero in every coordinate, for the comparison to say something."""


@statement(
    tier="law",
    equation="theta' = |theta'_free|, and r' = -r'_free where theta'_free < 0",
    targets=everywhere,
    cost=1.0,
    decides="dynamics",
    once=True,
)
def mirror_at_zero(case: Case, seed: int, claim: ReflectsAtZero) -> Finding:
    """A mirrored step is the fold of the step without a mirror: theta -> |theta|, and r changes sign where theta does.

    Continued to negative theta as exp(-U(|theta|)) the target is even, a step without a mirror that commutes with the
    change of sign of (theta, r) keeps it, and the fold of that chain has the target as its law. States are near zero,
    where the other checks of the law have next to no mass on targets whose density vanishes there; noise and
    minibatches of the two steps are the same.
    """
    sampler: Any = case.subject.sampler(case.target)
    estimator, h, d = case.subject.estimator(case.target), case.step_size, case.target.size
    start = sampler.init(jax.random.key(0), start_position(sampler, case.target), estimator)
    example, unravel = ravel_pytree(sampler.unpack(start))

    def ends(other):
        @jax.jit
        @jax.vmap
        def end(key, z):
            state = other.pack(jax.random.key(0), unravel(z), estimator)
            return ravel_pytree(other.unpack(other.step(key, state, h, estimator)))[0]

        return end

    place_key, rest_key, noise_key = jax.random.split(jax.random.key(seed % 2**31), 3)
    levels = jax.random.uniform(place_key, (STATES, d), minval=np.log(NEAREST), maxval=np.log(FARTHEST))
    near = jnp.exp(levels) * jnp.abs(case.target.ravel(case.target.example))
    rest = 3 * jax.random.normal(rest_key, (STATES, example.size - d))
    z = jnp.concatenate([near, rest], axis=1).astype(example.dtype)
    keys = jax.random.split(noise_key, STATES)
    mirrored, free = (np.asarray(ends(s)(keys, z)) for s in (sampler, claim.free))
    crossed = free[:, :d] < 0
    if not np.isfinite(free).all():
        raise Inconclusive("a step from near zero is not finite")
    if crossed.sum(axis=0).min() < CROSSINGS:
        raise Inconclusive(f"fewer than {CROSSINGS} of {STATES} steps cross zero in some coordinate")
    sign = np.where(crossed, -1.0, 1.0)
    folded = free * np.concatenate([sign] * (example.size // d), axis=1)
    effect = float(np.max(np.abs(mirrored - folded) / (np.abs(free) + 1e-3 * np.abs(free).max(axis=0))))
    allowance = 1e4 * float(np.finfo(float).eps)
    return Finding(
        effect=effect,
        tolerance=Tolerance(allowance, "round-off of two compilations"),
        reason=f"largest difference {effect:.3g}, {crossed.any(axis=1).sum()} of {STATES} steps cross zero",
        statistic="mirrored step less the fold of the free one",
        unit="relative",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
        gradients=2 * STATES,
    )
