"""Detailed balance up to a reversal of the momentum, path by path: pi(z) k(z, z') = pi(R z') k(R z', R z).

Under the noise tape a proposal is z' = F(z, xi, b) with normals xi and minibatches b. Going back from R z' to R z takes
normals xi' and the minibatches in the opposite order. The map (z, xi) -> (R z', xi') is an involution, and the kernel
that accepts with probability alpha is balanced if

    pi(z) N(xi) alpha(z, xi, b) = pi(z') N(xi') alpha(R z', xi', reversed b) |det d(z', xi') / d(z, xi)|

and if what is rejected becomes R z. Both sides are numbers: xi' comes from Newton's method, its derivatives from the
implicit function theorem. As the draws of gradients stay on the tape, exactness with stochastic gradients is decided
without averaging over them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, OutOfReach, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.obligations import of_target
from sgmcmc_verification.checks.core.selection import everywhere
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points
from sgmcmc_verification.checks.tracing.acceptance import accepted_share, decided
from sgmcmc_verification.checks.tracing.step_map import JaxStep, require_traced, step_map
from sgmcmc_verification.samplers.estimators.basic import FullEnergy, Minibatch
from sgmcmc_verification.samplers.interface.claims import Diffusion, Reversal
from sgmcmc_verification.targets.target import Target

EPS = np.finfo(float).eps
POINTS, DRAWS = 4, 4
"""Points, and draws of the noise at each."""


class Paths:
    """Proposal, acceptance and reversal of a step of size h, as functions of z, normals and integers."""

    def __init__(self, step: JaxStep, h: float, reversal: Reversal):
        self.step, self.h = step, h
        self.reverse = jax.jit(lambda z: ravel_pytree(reversal.map(step.template.unravel(z)))[0])
        move = lambda z, xi, b, share: decided(step, z, xi, b, share, jnp.asarray(h))
        self.rejected = jax.jit(lambda z, xi, b: move(z, xi, b, jnp.ones(())))
        proposal = lambda z, xi, b: move(z, xi, b, jnp.zeros(()))
        self.proposal = jax.jit(proposal)
        self.slopes = jax.jit(lambda z, xi, b: (jax.jacfwd(proposal, 0)(z, xi, b), jax.jacfwd(proposal, 1)(z, xi, b)))
        self.flip = np.asarray(jax.jacfwd(self.reverse)(jnp.zeros(step.size)))

        def acceptance(z, xi, b):
            end, back = proposal(z, xi, b), move(z, xi, b, jnp.ones(()))

            def accepts(share):
                now = move(z, xi, b, share)
                # what is never rejected ends where it is accepted whatever the uniform
                return jnp.sum((now - end) ** 2) <= jnp.sum((now - back) ** 2)

            return accepted_share(accepts)

        self.acceptance = jax.jit(acceptance)

    def way_back(self, start, end, xi, b):
        """Normals that lead from `start` to `end`, or None where Newton's method does not find them."""
        for guess in (xi[::-1], np.zeros_like(xi), -xi[::-1]):
            now = guess
            for _ in range(25):
                gap = np.asarray(self.proposal(start, now, b)) - end
                if not np.all(np.isfinite(gap)):
                    break
                now = now - np.linalg.pinv(np.asarray(self.slopes(start, now, b)[1])) @ gap
                if np.abs(gap).max() < 1e-13 * (1 + np.abs(end).max()):
                    return now
        return None

    def refusal(self, z, xi, b, turned) -> tuple[float, bool]:
        """The distance of what is rejected from R z, 0.0 within round-off, and whether the noise moves it."""
        end, round_off = np.asarray(self.rejected(z, xi, b)), 1e2 * EPS * (1 + np.abs(z).max())
        gap = float(np.abs(end - turned).max())
        if gap <= round_off:
            return 0.0, False
        return gap, bool(np.abs(end - np.asarray(self.rejected(z, -xi, b))).max() > round_off)

    def log_volume(self, z, xi, b, back, xi_back, b_back) -> float:
        """log |det d(z', xi') / d(z, xi)|."""
        forward_z, forward_xi = map(np.asarray, self.slopes(z, xi, b))
        reverse_z, reverse_xi = map(np.asarray, self.slopes(back, xi_back, b_back))
        end = np.concatenate([forward_z, forward_xi], axis=1)
        start = np.concatenate([self.flip, np.zeros((len(z), len(xi)))], axis=1)
        noise = np.linalg.pinv(reverse_xi) @ (start - reverse_z @ self.flip @ end)
        return float(np.linalg.slogdet(np.concatenate([end, noise]))[1])


def stochastic(subject: Subject, target: Target):
    """The row's estimator, and on a sum over data the gradients of minibatches of two beside all of the potential."""
    if target.terms is None:
        return None
    return FullEnergy(Minibatch(target.terms, 2, replace=False), target)


@statement(
    tier="law",
    equation="pi(z) k(z, z') = pi(R z') k(R z', R z), stochastic gradients included",
    targets=everywhere,
    cost=1.0,
    decides="law",
    meets=of_target,
)
def skew_detailed_balance(case: Case, reversal: Reversal, equation: Diffusion) -> Finding:
    """pi(z) k(z, z') = pi(R z') k(R z', R z) along paths of noise, and a rejection leads to R z.

    Where noise moves what is rejected, as it does between two halves of an Ornstein-Uhlenbeck flow, accepted paths
    that do not balance fail, and those that do leave the law to others.

    Source: zhang2020amagold, the theorem on its skew-detailed balance.
    """
    step = require_traced(step_map(case.subject, case.target, stochastic(case.subject, case.target)))
    program = step.program
    if program.unintercepted:
        raise Inconclusive(f"random primitives that the tape cannot feed: {', '.join(program.unintercepted)}")
    normals, h = program.count("normal"), case.step_size
    if program.count("uniform") != 1:
        raise OutOfReach("not a Metropolis kernel: the step draws no single uniform")
    if normals > step.size:
        raise OutOfReach(f"{normals} normals lead to {step.size} coordinates: many ways back from one point")
    paths, H = Paths(step, h, reversal), jax.jit(equation.dynamics(case.target).H)
    ranges = np.array(program.ranges, int)
    worst, reason, tested, rejecting, scale, noisy = 0.0, "all paths balance", 0, 0, 1.0, False
    for i, z in enumerate(generic_points(step, POINTS)):
        for k in range(DRAWS):
            xi = 1.3 * np.cos(2.7 * k + 1.9 * np.arange(normals) + z.sum())
            b = (7 * i + 3 * k + 5 * np.arange(len(ranges))) % np.maximum(ranges, 1)
            turned, forward = np.asarray(paths.reverse(z)), float(paths.acceptance(z, xi, b))
            # what is accepted for every uniform is never rejected
            stay, random = paths.refusal(z, xi, b, turned) if forward < 1 - 1e-9 else (0.0, False)
            noisy = noisy or random
            if stay > worst and not random:
                worst, reason = stay, f"what is rejected is {stay:.3g} away from R z"
            back = np.asarray(paths.reverse(paths.proposal(z, xi, b)))
            xi_back = paths.way_back(back, turned, xi, b[::-1])
            if xi_back is None:
                continue
            tested += 1
            reverse = float(paths.acceptance(back, xi_back, b[::-1]))
            rejecting += forward < 1 - 1e-9 or reverse < 1 - 1e-9
            left = -float(H(z)) - 0.5 * xi @ xi + np.log(forward)
            right = -float(H(back)) - 0.5 * xi_back @ xi_back + np.log(reverse)
            right += paths.log_volume(z, xi, b, back, xi_back, b[::-1])
            scale = max(scale, abs(left), abs(right))
            gap = abs(left - right)
            if not gap <= worst:
                worst = gap
                reason = f"from z = {np.round(z, 3).tolist()} both sides differ by {left - right:.4g} in the logarithm"
    # as for detailed_balance: bisection leaves 2^-60, Newton's method a few eps times its condition
    allowance = 1e6 * EPS * scale
    if tested < 8 or (not rejecting and worst <= allowance):
        raise Inconclusive(f"only {tested} paths could be reversed, {rejecting} of them with a rejection")
    if noisy and worst <= allowance:
        raise OutOfReach("accepted paths balance; noise moves what is rejected too, which has no one way back")
    return Finding(
        effect=float(worst),
        tolerance=Tolerance(float(allowance), "round-off of the way back"),
        reason=f"{reason} ({tested} paths, {rejecting} with a rejection, {len(ranges)} draws of data)",
        statistic="largest gap of the logarithms",
        unit="natural logarithm",
        minimum_detectable_effect=2 * float(allowance),
        required_sensitivity=1e-6,
        step_size=h,
    )
