"""Pointwise detailed balance of a Metropolis kernel, from the code alone: pi(x) k(x, y) = pi(y) k(y, x).

Under the noise tape the step is a function y = F(x, xi) of the normals when the uniform of the accept step is 0 (so
that everything is accepted), and its acceptance probability alpha(x, xi) is the largest uniform that still accepts,
found by bisection. With k(x, y) = N(xi; 0, I) / |det dF/dxi| alpha for y != x, both sides of the equation are numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np

from checks.core.check import Case, Inconclusive, NotApplicable, check
from checks.core.finding import Finding, Tolerance
from checks.core.selection import of_law, planar
from checks.exact_laws.claimed_law_quadrature import generic_points
from checks.tracing.noise_tape import Noise
from checks.tracing.step_map import JaxStep, step_map
from samplers.interface.claims import ExactLaw


def _kernel(step: JaxStep, h: float):
    """(proposal F(x, xi) -> y, log of the proposal density, acceptance(x, xi)), each jitted."""

    def move(x, xi, u):
        return step.program(Noise(xi, jnp.reshape(u, (1,)), jnp.zeros(0, int)), x, jnp.asarray(h))[0]

    def proposal(x, xi):
        return move(x, xi, 0.0)

    def log_density(x, xi):
        _, log_det = jnp.linalg.slogdet(jax.jacfwd(proposal, 1)(x, xi))
        return -0.5 * xi @ xi - log_det

    def acceptance(x, xi):
        y = proposal(x, xi)

        def halve(bounds, _):
            low, high = bounds
            middle = 0.5 * (low + high)
            accepted = jnp.all(move(x, xi, middle) == y)
            return (jnp.where(accepted, middle, low), jnp.where(accepted, high, middle)), None

        (low, high), _ = jax.lax.scan(halve, (jnp.zeros(()), jnp.ones(())), None, length=60)
        return 0.5 * (low + high)

    def invert(x, y, start):
        """xi with F(x, xi) = y by Newton's method."""

        def newton(xi, _):
            return xi - jnp.linalg.solve(jax.jacfwd(proposal, 1)(x, xi), proposal(x, xi) - y), None

        return jax.lax.scan(newton, start, None, length=40)[0]

    return jax.jit(proposal), jax.jit(log_density), jax.jit(acceptance), jax.jit(invert)


@check(
    tier="law",
    equation="pi(x) k(x, y) = pi(y) k(y, x)",
    targets=of_law(ExactLaw, planar),
    cost=0.1,
    decides="law",
    screening=3,
)
def detailed_balance(case: Case) -> Finding:
    """log [pi(x) k(x, y)] - log [pi(y) k(y, x)] = 0 at generic pairs x, y, for proposal density and acceptance.

    Source: metropolis1953equation; hastings1970monte.
    """
    step = step_map(case.subject, case.target)
    if not isinstance(step, JaxStep):
        raise NotApplicable("host samplers are not traced")
    if step.program.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(step.program.unintercepted)}")
    uniforms, normals = step.program.count("uniform"), step.program.count("normal")
    if uniforms != 1:
        raise NotApplicable("not a Metropolis kernel: the step draws no single uniform")
    if case.target.manifold.dim < case.target.size:
        raise NotApplicable("the density of the proposal is with respect to Lebesgue measure: needs a flat space")
    if step.size != case.target.size or normals != case.target.size:
        raise NotApplicable("needs one normal a coordinate, and the position as the full variable")
    temperature, h = step.sampler.claims.temperature, case.step_size
    proposal, log_density, acceptance, invert = _kernel(step, h)
    U = jax.jit(case.target.flat_potential)
    worst, reason, tested, rejecting = 0.0, "all pairs balance", 0, 0
    scale = 1.0
    for x in generic_points(step, 6):
        for k in range(4):
            xi = 1.3 * np.cos(2.7 * k + 1.9 * np.arange(normals) + x.sum())
            y = np.asarray(proposal(jnp.asarray(x), jnp.asarray(xi)))
            back = _reverse_noise(proposal, invert, x, y, xi)
            if back is None:
                continue
            forward, reverse = float(acceptance(x, xi)), float(acceptance(y, back))
            left = -float(U(x)) / temperature + float(log_density(x, xi)) + np.log(forward)
            right = -float(U(y)) / temperature + float(log_density(y, back)) + np.log(reverse)
            tested += 1
            rejecting += forward < 1 - 1e-9 or reverse < 1 - 1e-9
            scale = max(scale, abs(left), abs(right))
            gap = abs(left - right)
            if not gap <= worst:
                worst = gap
                reason = (
                    f"x = {np.round(x, 3).tolist()} -> y = {np.round(y, 3).tolist()}: "
                    f"log pi(x) k(x, y) - log pi(y) k(y, x) = {left - right:.4g}"
                )
    # Bisection leaves 2^-60 in the acceptance, the Newton inverse a few eps times its condition.
    allowance = 1e6 * np.finfo(float).eps * scale
    # a kernel that accepts everything and balances may be right; one that accepts everything and does not is wrong
    if tested < 8 or (not rejecting and worst <= allowance):
        raise Inconclusive(f"only {tested} pairs could be reversed, {rejecting} of them with a rejection")
    return Finding(
        effect=float(worst),
        tolerance=Tolerance(allowance, "round-off of the inverse of the proposal"),
        reason=f"{reason} ({tested} pairs, {rejecting} with a rejection)",
        statistic="largest gap of the logarithms",
        unit="natural logarithm",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
        step_size=h,
    )


def _reverse_noise(proposal, invert, x, y, xi):
    """The noise that takes y back to x, or None where Newton's method does not find it."""
    for start in (-xi, np.zeros_like(xi), xi):
        back = np.asarray(invert(jnp.asarray(y), jnp.asarray(x), jnp.asarray(start)))
        if np.all(np.isfinite(back)) and np.allclose(
            np.asarray(proposal(jnp.asarray(y), jnp.asarray(back))), x, rtol=0, atol=1e-11 * (1 + np.abs(x).max())
        ):
            return back
    return None
