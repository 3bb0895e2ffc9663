"""The geometry tier, noise-free or nearly so: the constraint, the tangent space, the geodesic flow.

These ask nothing of the law: what a sampler on a manifold has to satisfy at every step, whatever its step size.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.check import Case, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.selection import curved
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.exact_laws.exact_draws import draw_positions
from sgmcmc_verification.checks.numerics.geodesic_dynamics import tangent_frames
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.tracing.one_step_moments import one_step_moments
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, host_ravel, step_map
from sgmcmc_verification.samplers.interface.claims import Composite, FollowsGeodesics, StationaryLaw
from sgmcmc_verification.targets.target import Target

EPS = float(np.finfo(float).eps)
CHAINS, STEPS = 4096, 40
HOST_CHAINS, HOST_STEPS = 4, 50
NUMBERS = 2e7
"""Numbers that a walk may hold, which bounds the chains in high dimensions."""
TIMES = (0.3, -1.1)
"""Lengths of the geodesics that are looked at, of either sign."""
POINTS = 6


def require_curved(target: Target) -> None:
    """Raise NotApplicable on R^n."""
    if target.manifold.is_linear:
        raise NotApplicable("a flat space without constraint")


def has_velocity(step: JaxStep | HostStep) -> bool:
    """True if z = (x, v, ..) with a velocity in ambient coordinates behind the position."""
    return step.size >= 2 * step.target.size and step.target.manifold.dim < step.target.size


def starts(target: Target, temperature: float, seed: int, count: int) -> np.ndarray:
    """Positions (count, d): exact draws, or random points; half of them near a face where there are faces."""
    generator = np.random.default_rng(seed)
    try:
        positions = draw_positions(target, temperature, generator, count)
    except NotApplicable:
        keys = jax.random.split(jax.random.key(seed), count)
        positions = np.asarray(jax.vmap(lambda k: target.ravel(target.manifold.random(k)))(keys))
    if target.manifold.has_boundary:
        positions = positions.copy()
        positions[::2, 0] *= 10.0 ** -(1 + 4 * generator.random(len(positions[::2])))
        project = jax.vmap(lambda x: target.ravel(target.manifold.project_roundoff(target.unravel(x))))
        positions = np.asarray(project(jnp.asarray(positions)))
    return positions


def _walk(step: JaxStep | HostStep, positions: np.ndarray, h: float, seed: int) -> np.ndarray:
    """z, and the position that is let out, after every step from every start: (steps, chains, n + d)."""
    sampler, estimator, target = step.sampler, step.estimator, step.target
    if sampler.backend == "jax":

        def chain(key, x):
            first, later = jax.random.split(key)
            state = sampler.init(first, target.unravel(x), estimator)

            def advance(state, key):
                state = sampler.step(key, state, jnp.asarray(h, x.dtype), estimator)
                seen = [ravel_pytree(sampler.unpack(state))[0], ravel_pytree(sampler.position(state))[0]]
                return state, jnp.concatenate(seen)

            return jax.lax.scan(advance, state, jax.random.split(later, STEPS))[1]

        keys = jax.random.split(jax.random.key(seed), len(positions))
        return np.asarray(jax.jit(jax.vmap(chain, out_axes=1))(keys, jnp.asarray(positions)))
    generator, walks = np.random.default_rng(seed), []
    for x in positions:
        state = sampler.init(generator, jax.tree.map(np.asarray, target.unravel(x)), estimator)
        walk = []
        for _ in range(HOST_STEPS):
            state = sampler.step(generator, state, h, estimator)
            walk.append(np.concatenate([host_ravel(sampler.unpack(state)), host_ravel(sampler.position(state))]))
        walks.append(walk)
    return np.array(walks).transpose(1, 0, 2)


@statement(
    tier="geometry",
    equation="c(x_n) = 0 and P(x_n) v_n = v_n up to round-off",
    targets=curved,
    cost=2.0,
    decides="conduct",
)
def stays_on_the_manifold(case: Case, seed: int) -> Finding:
    """Every position of every chain satisfies the constraint up to round-off, and every velocity is tangent there.

    Half of the chains start near a face of a manifold that has faces.
    """
    require_curved(case.target)
    step, h = step_map(case.subject, case.target), case.step_size
    d, manifold = case.target.size, case.target.manifold
    most = int(max(8, min(CHAINS, NUMBERS / (STEPS * (step.size + d)))))
    count = most if step.sampler.backend == "jax" else HOST_CHAINS
    walk = _walk(step, starts(case.target, step.sampler.claims.temperature, seed % 2**31, count), h, seed % 2**31)
    points = jnp.asarray(walk.reshape(-1, walk.shape[-1]))
    inside = np.asarray(jax.jit(jax.vmap(lambda z: manifold.contains(case.target.unravel(z[-d:]))))(points))
    normal, roundoff = 0.0, 0.0
    if has_velocity(step):

        def parts(z):
            x, v = case.target.unravel(z[:d]), z[d : 2 * d]
            tangent = case.target.ravel(manifold.tangent(x, case.target.unravel(v)))
            return jnp.linalg.norm(v - tangent) / (1 + jnp.linalg.norm(v))

        normal = float(jax.jit(jax.vmap(parts))(points).max())
        roundoff = 1e2 * EPS * (64 + d)
    off = int(np.count_nonzero(~inside))
    effect = float(off) if off else max(0.0, normal - roundoff)
    what = f"{off} of {len(points)} positions are off the manifold"
    if not off and effect:
        what = f"a velocity has a normal part of {normal:.3g} of its length"
    return Finding(
        effect=effect,
        tolerance=Tolerance(0.0, f"the manifold's own round-off; {roundoff:.1e} for a velocity"),
        reason=f"{what} ({walk.shape[1]} chains, {walk.shape[0]} steps; largest normal part {normal:.2g})",
        statistic="positions off the manifold, or the normal part of a velocity",
        unit="count, or relative",
        minimum_detectable_effect=roundoff,
        required_sensitivity=1e-6,
        step_size=h,
        gradients=int(walk.shape[0] * walk.shape[1]),
    )


@statement(
    tier="geometry",
    equation="(I - P) D = 0 and rank D = dim as h -> 0",
    targets=curved,
    cost=1.0,
    decides="dynamics",
    once=True,
)
def noise_is_tangent(case: Case) -> Finding:
    """The diffusion that the code has as h -> 0 is tangent to the manifold, and its rank is the intrinsic dimension.

    From the covariance of one step at a few points, for the position and the velocity together: noise has to enter in
    dim directions, no more (ambient noise), no fewer (a subspace that the chain cannot leave), none of them normal.
    """
    require_curved(case.target)
    step = step_map(case.subject, case.target)
    if Composite in step.sampler.claims:
        raise NotApplicable("a composite step has no generator in the full variable")
    if StationaryLaw not in step.sampler.claims or case.target.manifold.dim == case.target.size:
        raise NotApplicable("needs a diffusion on a curved manifold")
    points = generic_points(step)
    hs, _, squares = one_step_moments(case.subject, case.target, points)
    spread = squares / (2 * hs[:, None, None, None])
    diffusion, error = neville(hs, spread)
    d, m = case.target.size, case.target.manifold.dim
    frames = tangent_frames(case.target, points[:, :d])
    complement = np.eye(d) - frames @ frames.transpose(0, 2, 1)
    scale = float(np.abs(diffusion).max())
    blocks = [slice(0, d)] + ([slice(d, 2 * d)] if has_velocity(step) else [])
    # the normal part has a limit of its own, which is known better than that of the whole where the force is strong
    normal, allowance = 0.0, 1e3 * EPS
    for b in blocks:
        value, blur = neville(hs, complement @ spread[:, :, b, b])
        normal = max(normal, float(np.abs(value).max()) / scale)
        allowance = max(allowance, 10 * float(blur.max()) / scale + 1e3 * EPS)
    sizes = np.linalg.eigvalsh(diffusion) / scale
    rank = np.count_nonzero(sizes > max(1e-6, 1e3 * float(error.max()) / scale), axis=1)
    wrong = int(np.abs(rank - m).max())
    return Finding(
        effect=normal if not wrong else float(max(wrong, normal)),
        tolerance=Tolerance(allowance, "error of the extrapolation to h = 0 and round-off"),
        reason=f"the normal part of D is {normal:.3g} of its size, its rank {rank.tolist()} in {m} dimensions",
        statistic="normal part of D, or the rank less the dimension",
        unit="relative, or a number",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-4,
        step_size=case.step_size,
    )


@statement(
    tier="geometry",
    equation="P x'' = 0, |x'| constant, and the flow runs back",
    targets=curved,
    cost=1.0,
    decides="dynamics",
    once=True,
)
def geodesic_flow(case: Case, seed: int, claim: FollowsGeodesics) -> Finding:
    """The flow that the sampler calls geodesic is one: no tangential acceleration, constant speed, reversible.

    The acceleration is the second derivative of the path by forward-mode differentiation, its tangential part by the
    projection of the target's manifold. A retraction agrees with the exponential map to second order only, and fails.
    """
    require_curved(case.target)
    sampler = case.subject.sampler(case.target)
    manifold = claim.manifold
    temperature, d = sampler.claims.temperature, case.target.size
    base = starts(case.target, temperature, seed % 2**31, 2 * POINTS)[1::2]
    normals = np.random.default_rng(seed % 2**31).standard_normal((POINTS, d))
    ravel, unravel = case.target.ravel, case.target.unravel

    def look(x, u, t):
        start = unravel(x)
        v = case.target.manifold.tangent(start, unravel(u))
        path = lambda s: tuple(map(ravel, manifold.geodesic(start, v, s)))
        (there, velocity), (rate, acceleration) = jax.jvp(path, (t,), (jnp.ones_like(t),))
        end = unravel(there)
        sideways = ravel(case.target.manifold.tangent(end, unravel(acceleration)))
        back = manifold.geodesic(end, unravel(-velocity), t)
        length = jnp.linalg.norm(ravel(v))
        gaps = {
            "speed": jnp.abs(jnp.linalg.norm(velocity) - length) / length,
            "velocity, against the derivative of the path": jnp.linalg.norm(rate - velocity) / length,
            "tangential acceleration": jnp.linalg.norm(sideways) / length**2,
            "way back, position": jnp.linalg.norm(ravel(back[0]) - x),
            "way back, velocity": jnp.linalg.norm(ravel(back[1]) + ravel(v)) / length,
            "constraint": 1.0 - case.target.manifold.contains(end).astype(x.dtype),
        }
        return jax.tree.map(lambda gap: gap / (1 + length * jnp.abs(t)), gaps)

    found: dict[str, float] = {}
    each = jax.jit(jax.vmap(look, (0, 0, None)))
    for t in TIMES:
        for name, gap in each(jnp.asarray(base), jnp.asarray(normals), jnp.asarray(t)).items():
            found[name] = max(found.get(name, 0.0), float(gap.max()))
    worst = max(found, key=lambda name: found[name])
    allowance = 1e3 * EPS * (1 + d)
    return Finding(
        effect=found[worst],
        tolerance=Tolerance(allowance, "round-off"),
        reason=f"largest gap: {worst}, {found[worst]:.3g}",
        statistic="departure from a geodesic",
        unit="relative, over one plus the length",
        minimum_detectable_effect=2 * allowance,
        required_sensitivity=1e-6,
    )
