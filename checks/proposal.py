"""The proposal of a Metropolis kernel, from the code alone: drift and diffusion of the dynamics that it declares."""

import jax
import jax.numpy as jnp
import numpy as np

from checks.check import Check, NotApplicable
from checks.generator import step_sizes
from checks.quadrature import neville, noise_rule
from checks.result import Result
from checks.rules import generic_points
from checks.stepmap import JaxStep, step_map
from checks.subject import Subject
from checks.tape import Noise
from checks.verdict import decide
from targets.target import Target


def proposal_generator(check: Check, subject: Subject, target: Target, seed: int) -> Result:
    """(E y - x) / h -> f and E (y - x)(y - x)^T / h -> 2 D for the proposal y, which is what a uniform of 0 accepts.

    Every proposal whose density is known gives the right law: one that is not a step of the declared dynamics, with a
    gradient of the wrong sign or without Gamma, is rejected more often instead, which the checks of the law do not see.

    Source: the definition of weak consistency, order 1 (talay1990expansion).
    """
    del seed
    step = step_map(subject, target)
    if not isinstance(step, JaxStep):
        raise NotApplicable("host samplers are not traced")
    claims, counts = step.sampler.claims, step.program.count
    if claims.kind != "exact" or claims.composite or claims.dynamics is None:
        raise NotApplicable("no proposal that is a step of declared dynamics")
    if counts("uniform") != 1 or step.program.unintercepted or any(n > 1 for n in step.program.ranges):
        raise NotApplicable("not a Metropolis kernel with normal draws: the step draws no single uniform")
    points, hs = generic_points(step), step_sizes(subject, target)
    nodes, weights = noise_rule(step.noise_size)

    @jax.jit
    def moments(x, h):
        accepted = lambda xi: step.program(Noise(xi, jnp.zeros(1), jnp.zeros(counts("integer"), int)), x, h)[0]
        moves = jax.vmap(accepted)(jnp.asarray(nodes)) - x
        return weights @ moves, jnp.einsum("k,ka,kb->ab", weights, moves, moves)

    found = [[moments(jnp.asarray(x), h) for x in points] for h in hs]
    rates = [np.array([[np.asarray(m[i]) / h for m in row] for row, h in zip(found, hs, strict=True)]) for i in (0, 1)]
    (drift, drift_error), (square, square_error) = (neville(hs, values) for values in rates)
    dynamics = claims.dynamics(target)
    z = jnp.asarray(points)
    f, D = np.asarray(jax.jit(jax.vmap(dynamics.drift))(z)), np.asarray(jax.jit(jax.vmap(dynamics.D))(z))
    f_scale, d_scale = 1 + np.abs(f).max(), 1 + np.abs(D).max()
    gaps = np.abs(drift - f).max() / f_scale, np.abs(square / 2 - D).max() / d_scale
    roundoff = 100 * float(np.finfo(float).eps) * (1 + np.abs(points).max()) / hs[-1]
    allowance = float(10 * max(drift_error.max() / f_scale, square_error.max() / 2 / d_scale) + roundoff)
    p, i = np.unravel_index(np.argmax(np.abs(drift - f)), f.shape)
    return decide(
        check, subject, target,
        effect=float(max(gaps)), allowance=allowance,
        allowance_source="error of the extrapolation to h = 0 and round-off",
        reason=f"drift of {dynamics.names[i]} at x = {np.round(points[p], 3).tolist()}: the proposal has "
        f"{drift[p, i]:.6g}, the dynamics {f[p, i]:.6g}; largest gap of the diffusion {gaps[1]:.3g}",
        statistic="largest gap of drift and diffusion", unit="relative to the largest entry plus one",
        detectable=2 * allowance, promised=1e-4, step_size=float(hs[0]),
    )  # fmt: skip
