"""Planted bugs of particle methods: kernel, bandwidth, repulsion, curvature, density, div Q."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.particles.density_gradients import RIDGE, density_gradient, transport_scaling
from sgmcmc_verification.samplers.particles.kernels import gaussian_moments, squared_distances
from sgmcmc_verification.samplers.particles.particle_flow import ParticleFlow, irreversible
from sgmcmc_verification.samplers.particles.parvi import ParVI
from sgmcmc_verification.samplers.particles.psghmc import PSGHMC
from sgmcmc_verification.samplers.particles.rsvgd import RSVGD, functional_gradient, volume_energy
from sgmcmc_verification.samplers.particles.rsvgd_arcsine import ArcsineRSVGD, arcsine_derivatives, zonal_direction
from sgmcmc_verification.samplers.particles.rsvgd_embedded import EmbeddedRSVGD, frames
from sgmcmc_verification.samplers.particles.svgd import SVGD
from sgmcmc_verification.samplers.riemannian.metrics import NonHessian2D, dense

Direction = Callable[[jax.Array, jax.Array, jax.Array, Any], jax.Array]
"""(particles (M, d), gradients of U (M, d), weights (M,), bandwidths) -> phi (M, d)."""


def svgd(direction: Direction) -> type[SVGD]:
    """SVGD with another direction."""

    @dataclass(frozen=True)
    class Planted(SVGD):
        def move(self, particles, gradients, weights, bandwidths):
            return direction(particles, gradients, weights, bandwidths)

    return Planted


def stein(kernel, repulsion: Callable[[jax.Array, jax.Array, Any], jax.Array]) -> Direction:
    """sum_i w_i [-K_ij grad U(x_i) + `repulsion`(K, differences x_j - x_i, h)_ij]."""

    def direction(x, gradients, weights, bandwidths):
        (h,) = bandwidths
        k = kernel(squared_distances(x), h)
        differences = x[None, :, :] - x[:, None, :]
        pushes = repulsion(k[..., None], differences, h)
        return jnp.einsum("i,ija->ja", weights, pushes) - k.T @ (weights[:, None] * gradients)

    return direction


def gaussian_kernel(distances, h):
    """exp(-|x - y|^2 / (2 h))."""
    return jnp.exp(-distances / (2 * h))


def _right(k, d, h):
    return k * d / h


def _transposed(x, gradients, weights, bandwidths):
    """grad U at the particle that is moved, and not at the one that moves it: sum_i w_i K_ij grad U(x_j)."""
    kernel, slope = gaussian_moments(squared_distances(x), bandwidths, 2)
    repulsion = (slope.T @ weights)[:, None] * x - slope.T @ (weights[:, None] * x)
    return repulsion - (kernel.T @ weights)[:, None] * gradients


def _two_kernels(x, gradients, weights, bandwidths):
    """sum_i w_i [-exp(-d_ij / (2 h)) grad U(x_i) + grad_{x_i} (1 + d_ij / h)^(-1/2)]."""
    distances = squared_distances(x)
    push = lambda k, d, h: (1 + distances[..., None] / h) ** -1.5 * d / h
    return stein(gaussian_kernel, push)(x, gradients, weights, bandwidths)


def _first_of_many(x, gradients, weights, bandwidths):
    """The kernels are summed, but the repulsion is that of the first one alone."""
    kernel, _ = gaussian_moments(squared_distances(x), bandwidths, 2)
    _, slope = gaussian_moments(squared_distances(x), bandwidths[:1], 2)
    repulsion = (slope.T @ weights)[:, None] * x - slope.T @ (weights[:, None] * x)
    return repulsion - kernel.T @ (weights[:, None] * gradients)


def _last_left_out(x, gradients, weights, bandwidths):
    """Everything is right but for the last particle, which moves no other one: the sum over i ends too early."""
    weights = weights * (jnp.arange(x.shape[0]) < x.shape[0] - 1)
    return stein(gaussian_kernel, _right)(x, gradients, weights, bandwidths)


def rsvgd(drift: Callable[..., jax.Array], metric: Any = NonHessian2D, **fixed: Any):
    """A builder of RSVGD whose tau is `drift(metric, x, gradient)`."""

    @dataclass(frozen=True, eq=False)
    class Planted(RSVGD):
        def move(self, particles, gradients, weights, bandwidths):
            inverse = jax.vmap(lambda x: dense(self.metric.inverse(x)))(particles)
            tau = jax.vmap(lambda x, g: drift(self.metric, x, g))(particles, gradients)
            return functional_gradient(particles, inverse, tau, weights, bandwidths)

    return lambda target, **options: Planted(metric(), **fixed, **options)


def _without_divergence(metric, x, gradient):
    return -metric.inverse(x) @ gradient


def _volume_added(metric, x, gradient):
    """A Lebesgue density taken for one with respect to the volume: half of grad log |G| too much."""
    volume = -0.5 * jax.grad(lambda y: jnp.linalg.slogdet(metric.inverse(y))[1])(x)
    return metric.inverse(x) @ (volume - gradient) + _divergence(metric, x)


def _divergence(metric, x):
    return jnp.einsum("ijj->i", jax.jacfwd(metric.inverse)(x))


def _right_drift(metric, x, gradient):
    return -metric.inverse(x) @ gradient + _divergence(metric, x)


@dataclass(frozen=True, eq=False)
class CovariantRSVGD(RSVGD):
    """The differential of f in place of its gradient: no G^-1 at the particle that is moved."""

    def move(self, particles, gradients, weights, bandwidths):
        right = super().move(particles, gradients, weights, bandwidths)
        return jnp.linalg.solve(jax.vmap(self.metric.inverse)(particles), right[..., None])[..., 0]


def embedded(curvature: float = 1.0, second: float = 1.0, sign: float = 1.0):
    """A builder of embedded RSVGD with factors of the mean curvature, of the term 2 P b, and of the whole."""

    @dataclass(frozen=True)
    class Planted(EmbeddedRSVGD):
        def velocity(self, particles, gradients, weights):
            count, n, p = frames(self.manifold)
            kappa = self.concentrations(particles)
            points, slopes = (a.reshape(-1, count, n, p) for a in (particles, gradients))
            symmetric = lambda S: 0.5 * (S + jnp.swapaxes(S, -1, -2))
            tangent = lambda X, V: V - X @ symmetric(jnp.swapaxes(X, -1, -2) @ V)
            force = -tangent(points, slopes) - curvature * (n - (p + 1) / 2) * points

            def pair(x, a, y):
                b = kappa[:, None, None] * y
                weight = jnp.exp(jnp.sum(kappa * (jnp.einsum("lap,lap->l", x, y) - p)))
                along = tangent(x, b)
                bracket = jnp.sum(a * b) + jnp.sum(along * b)
                return weight * kappa[:, None, None] * (bracket * x + a + 2 * second * along)

            each = jax.vmap(jax.vmap(pair, (0, 0, None)), (None, None, 0))(points, force, points)
            gradient = sign * jnp.einsum("i,jilap->jlap", weights, each)
            return tangent(points, gradient).reshape(particles.shape)

    return lambda target, **options: Planted(target.manifold, **options)


@dataclass(frozen=True)
class ArcsineChainRule(ArcsineRSVGD):
    """The third derivative of arcsin at rho t, without one of the three factors rho."""

    def velocity(self, particles, gradients, weights):
        first, second, third = arcsine_derivatives(particles @ particles.T, self.scale)
        return zonal_direction(particles, gradients, weights, (first, second, third / self.scale))


def parvi(score: Callable[..., jax.Array]) -> type[ParVI]:
    """ParVI with another estimate of grad log q, `score(particles, weights, bandwidth)`."""

    @dataclass(frozen=True)
    class Planted(ParVI):
        def move(self, particles, gradients, weights, bandwidths):
            return -gradients - score(particles, weights, bandwidths[0])

    return Planted


@dataclass(frozen=True)
class DoubledMedian(ParVI):
    """Twice the bandwidth of the median rule."""

    def move(self, particles, gradients, weights, bandwidths):
        factor = 2 if self.bandwidth == "median" else 1
        return super().move(particles, gradients, weights, (factor * bandwidths[0],))


def _half_blob(x, weights, h):
    """The second term of Blob with 1 / e_j for 1 / e_i."""
    E = jnp.exp(-squared_distances(x) / (2 * h))
    e = E @ weights
    ahead = (E @ (weights[:, None] * x)) / e[:, None] - x
    return 2 * ahead / h


def _regularised_score(x, weights, h):
    """GFSF as the ridge regression of the score, (E W + (rho / M) I) s = -sum_i w_i grad_i E_ij."""
    E = jnp.exp(-squared_distances(x) / (2 * h))
    slopes = ((E @ weights)[:, None] * x - E @ (weights[:, None] * x)) / h
    return jnp.linalg.solve(E * weights + RIDGE / len(x) * jnp.eye(len(x)), -slopes)


def _coupled(scaling: Callable[[jax.Array, jax.Array], jax.Array], slope: float) -> Callable[..., jax.Array]:
    """w-SGLD with other multipliers, `scaling(E, weights)`, and `slope` times the derivative of the plan."""

    def score(x, weights, h):
        E = jnp.exp(-squared_distances(x) / (2 * h))
        u = scaling(E, weights)
        pull = u[:, None] * E * u * (1 - slope * squared_distances(x) / (2 * h))
        return 4 / (x.shape[1] * h) * ((pull @ weights)[:, None] * x - pull @ (weights[:, None] * x))

    return score


def psghmc(field: Callable[..., tuple[jax.Array, jax.Array]], form: str):
    """A builder of pSGHMC with another field, `field(sampler, theta, r, gradients, score_theta, score_r)`."""

    @dataclass(frozen=True)
    class Planted(PSGHMC):
        def field(self, z, gradients, score):
            n = gradients.shape[1]
            return jnp.concatenate(field(self, z[:, n:], gradients, score[:, :n], score[:, n:]), axis=1)

    return lambda target, **options: Planted(form=form, **options)  # pyright: ignore[reportArgumentType]


def _mass_forgotten(s, r, g, a, b):
    return r / s.mass, -g - s.friction * (r + b)


def _time_reversed(s, r, g, a, b):
    return -r / s.mass, g - s.friction * (r / s.mass + b)


def _det_without_diffusion(s, r, g, a, b):
    return r / s.mass, -g - s.friction * r / s.mass


def _fgh_sign(s, r, g, a, b):
    pull = r / s.mass
    return pull + b, -g + a - s.friction * (pull + b)


@dataclass(frozen=True, eq=False)
class FlowWithoutDivergence(ParticleFlow):
    """det without div Q."""

    def field(self, z, gradients, score):
        model = self.dynamics(self.target)

        def one(point, gradient, own):
            return -model.D(point) @ (gradient + own) - model.Q(point) @ gradient

        return jax.vmap(one)(z, gradients, score)


POINT = "E_p[k grad log p + grad k] = 0 at the target"
FALLS = "d KL(q || p) / dt < 0 away from the target"
BALANCE = "sum_j w_j v_j = 0 without a gradient"
CHARTS = "X = G^-1 grad f is the same in every chart"
GAUSSIAN = "dS/dt = -(D + Q) P S - S P (D - Q) + 2 D"
RATE = "d KL / dt = -E_q [grad log(p / q) . D grad log(p / q)]"
TARGETS = ("gaussian-1d-scaled", "anharmonic")
PLANE = "gaussian-correlated-2d"


class Backwards(EmbeddedRSVGD):
    """y_j' = Exp_{y_j}(-h X(y_j))."""

    def step(self, key, state, step_size, estimator):
        return super().step(key, state, -step_size, estimator)


DEFECTS: tuple[Defect, ...] = (
    planted(
        "svgd-repulsion-sign",
        "svgd",
        svgd(stein(gaussian_kernel, lambda k, d, h: -k * d / h)),
        "the gradient of the kernel with the wrong sign: attraction for repulsion",
        Kill("mean_field_fixed_point", "anharmonic", POINT),
        "particles",
        source="activatedgeek/svgd#1",
        targets=TARGETS,
    ),
    planted(
        "svgd-without-repulsion",
        "svgd",
        svgd(stein(gaussian_kernel, lambda k, d, h: 0 * k * d)),
        "no repulsion: the particles fall into the mode",
        Kill("mean_field_fixed_point", "anharmonic", POINT),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-kernel-parenthesis",
        "svgd",
        svgd(stein(lambda d, h: jnp.exp(-d / 2 * h), lambda k, d, h: k * d / h)),
        "exp(-|x - y|^2 / 2 * h) for exp(-|x - y|^2 / (2 h)); the repulsion is that of the latter",
        Kill("mean_field_fixed_point", "anharmonic", POINT),
        "particles",
        source="pyro-ppl/numpyro#1435",
        targets=TARGETS,
    ),
    planted(
        "svgd-repulsion-bandwidth",
        "svgd",
        svgd(stein(gaussian_kernel, lambda k, d, h: k * d / (2 * h))),
        "the gradient of the kernel for the convention exp(-|x - y|^2 / (4 h))",
        Kill("mean_field_fixed_point", "anharmonic", POINT),
        "particles",
        source="pyro-ppl/numpyro#843",
        targets=TARGETS,
    ),
    planted(
        "svgd-kernel-transposed",
        "svgd",
        svgd(_transposed),
        "the gradient of U at the particle that is moved, times the sum of the kernels",
        Kill("weighted_fixed_point", "anharmonic", POINT),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-two-kernels",
        "svgd",
        svgd(_two_kernels),
        "the gradient weighted by the Gaussian kernel, the repulsion that of an inverse multiquadric",
        Kill("velocity_for_every_potential", TARGETS[0], "E_p xi(x, y) = 0 for every smooth U", {"bandwidth": 2.0}),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-reversed",
        "svgd",
        svgd(lambda x, g, w, h: -stein(gaussian_kernel, _right)(x, g, w, h)),
        "x - h phi for x + h phi: the target is a fixed point still, but a repelling one",
        Kill("divergence_falls", "anharmonic", FALLS),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-not-normalised",
        "svgd",
        svgd(lambda x, g, w, h: len(x) * stein(gaussian_kernel, _right)(x, g, w, h)),
        "the sum over the particles for their mean: the fixed point is right, the step grows with their number",
        Kill("kernel_velocity", "anharmonic", "v(y) = sum_i w_i [k grad log p + grad k]"),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-sum-repulsion-of-one",
        "svgd",
        svgd(_first_of_many),
        "a sum of kernels with the repulsion of the first one alone",
        Kill("weighted_fixed_point", "anharmonic", POINT, {"bandwidth": (0.3, 1.0, 10.0)}),
        "particles",
        "options",
        targets=TARGETS,
    ),
    planted(
        "svgd-last-particle-left-out",
        "svgd",
        svgd(_last_left_out),
        "the sum over the particles ends one too early: right in the limit of many",
        Kill("permutation_equivariance", "anharmonic", "step(P z) = P step(z)"),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-repulsion-one-sided",
        "svgd",
        svgd(stein(gaussian_kernel, lambda k, d, h: k * jnp.maximum(d, 0) / h)),
        "particles are pushed upwards only",
        Kill("repulsion_balance", "anharmonic", BALANCE),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-bandwidth-ignored",
        "svgd",
        svgd(lambda x, g, w, h: stein(gaussian_kernel, _right)(x, g, w, (jnp.ones_like(x[0, 0]),))),
        "bandwidth 1 whatever the option says: the fixed point is right",
        Kill("every_option_matters", "gaussian-1d-scaled", "each option changes the kernel"),
        "particles",
        "options",
        targets=TARGETS,
        variants=({"bandwidth": 0.5}, {"bandwidth": 2.0}),
    ),
    # Riemannian
    planted(
        "rsvgd-without-divergence",
        "rsvgd",
        rsvgd(_without_divergence),
        "tau = -G^-1 grad U without div G^-1",
        Kill("weighted_fixed_point", PLANE, POINT),
        "particles",
        "metric",
    ),
    planted(
        "rsvgd-lebesgue-for-volume",
        "rsvgd",
        rsvgd(_volume_added),
        "a Lebesgue density taken for one with respect to the volume: the law is p |G|^1/2",
        Kill("weighted_fixed_point", PLANE, POINT),
        "particles",
        "metric",
        source="the released code of liu2018riemannian for logistic regression",
    ),
    planted(
        "rsvgd-volume-for-lebesgue",
        "rsvgd-volume",
        rsvgd(_right_drift, density="volume"),
        "a density with respect to the volume taken for one with respect to Lebesgue measure: the law is p / |G|^1/2",
        Kill("weighted_fixed_point", PLANE, POINT),
        "particles",
        "metric",
        estimator=volume_energy,
    ),
    planted(
        "rsvgd-differential",
        "rsvgd",
        lambda target, **options: CovariantRSVGD(NonHessian2D(), **options),
        "the differential of f for its gradient: no G^-1 at the particle that is moved; the fixed point is right",
        Kill("coordinate_invariance", PLANE, CHARTS),
        "particles",
        "metric",
    ),
    planted(
        "rsvgd-embedded-step-backwards",
        "rsvgd-embedded",
        lambda target, **options: Backwards(target.manifold, **options),
        "the particles move against their velocity",
        Kill("step_along_velocity", "matrix-langevin-3-2", "d step(z; h) / dh = v(z) at h = 0"),
        "particles",
        "manifold",
    ),
    planted(
        "rsvgd-embedded-without-curvature",
        "rsvgd-embedded",
        embedded(curvature=0.0),
        "the Laplacian of the ambient space along the tangent plane, without the mean curvature",
        Kill("weighted_fixed_point", "vmf-s2", POINT),
        "particles",
        "manifold",
    ),
    planted(
        "rsvgd-embedded-half-term",
        "rsvgd-embedded",
        embedded(second=0.5),
        "P b for 2 P b in the gradient of f",
        Kill("weighted_fixed_point", "vmf-s1", POINT),
        "particles",
        "manifold",
    ),
    planted(
        "rsvgd-embedded-gradient-sign",
        "rsvgd-embedded",
        embedded(sign=-1.0),
        "-X for X: the fixed point is right",
        Kill("coordinate_invariance", "vmf-s1", CHARTS),
        "particles",
        "manifold",
        source="the released code of liu2018riemannian for topic models, which passes grad U for grad log p",
    ),
    planted(
        "rsvgd-arcsine-chain-rule",
        "rsvgd-arcsine",
        lambda target, **options: ArcsineChainRule(target.manifold, **options),
        "rho^2 for rho^3 in the third derivative of arcsin(rho t)",
        Kill("weighted_fixed_point", "vmf-s2", POINT),
        "particles",
        "manifold",
    ),
    # flows
    planted(
        "gfsd-sign",
        "gfsd",
        parvi(lambda x, w, h: -density_gradient("gfsd", x, w, h)),
        "+grad log q for -grad log q: the particles collapse",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "blob-half-twice",
        "blob",
        parvi(_half_blob),
        "1 / e_j for 1 / e_i in the second term of Blob: twice the repulsion of GFSD",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "blob-without-second-term",
        "blob",
        parvi(lambda x, w, h: density_gradient("gfsd", x, w, h)),
        "the first term of Blob alone, which is GFSD: the same limit, but forces without balance",
        Kill("repulsion_balance", "anharmonic", BALANCE),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "blob-bandwidth-root",
        "blob",
        parvi(lambda x, w, h: density_gradient("blob", x, w, h) * jnp.sqrt(h)),
        "divided by the length h^1/2 for the square h",
        Kill("divergence_of_flow", "anharmonic", RATE),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "gfsf-ridge-on-the-score",
        "gfsf",
        parvi(_regularised_score),
        "the ridge draws the score to zero, not the smoothed position to the mean: Stein's identity is off by it",
        Kill("velocity_for_every_potential", TARGETS[0], "E_p xi(x, y) = 0 for every smooth U", {"bandwidth": 0.5}),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "w-sgld-constant-multipliers",
        "w-sgld",
        parvi(_coupled(lambda E, weights: jnp.ones(len(E)), 1.0)),
        "multipliers that are one: a diffusion in a porous medium, whose law is no exp(-U)",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "w-sgld-uphill",
        "w-sgld",
        parvi(lambda x, w, h: -density_gradient("jko", x, w, h)),
        "up the cost of transport, not down: particles within a length scale repel each other, and the cloud collapses",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "w-sgld-fixed-plan",
        "w-sgld",
        parvi(_coupled(transport_scaling, 0.0)),
        "the gradient of the cost at a fixed plan, without its 1 - |x_i - x_j|^2 / lambda: attraction",
        Kill("divergence_of_flow", "anharmonic", RATE),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "w-sgld-is-blob",
        "w-sgld",
        lambda target, **options: parvi(lambda x, w, h: density_gradient("blob", x, w, h))("jko", **options),
        "the estimate of Blob under the name of w-SGLD: all limits are right",
        Kill("density_estimate", "anharmonic", "q^ from its definition"),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "blob-median-not-halved",
        "blob",
        DoubledMedian,
        "the median rule without its 1/2",
        Kill("median_rule", "anharmonic", "h = median |x_i - x_j|^2 / (2 log(M + 1))"),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "psghmc-mass-forgotten",
        "psghmc-det",
        psghmc(_mass_forgotten, "det"),
        "friction C r for C r / S",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN, {"mass": 3.0}),
        "particles",
        "options",
        targets=TARGETS,
    ),
    planted(
        "psghmc-q-transposed",
        "psghmc-det",
        psghmc(_time_reversed, "det"),
        "Q transposed: the divergence falls at the right rate, along another flow",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "psghmc-without-diffusion",
        "psghmc-det",
        psghmc(_det_without_diffusion, "det"),
        "friction without the repulsion of the momenta: the cloud cools down",
        Kill("divergence_of_flow", "anharmonic", RATE),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "psghmc-fgh-sign",
        "psghmc-fgh",
        psghmc(_fgh_sign, "fgh"),
        "+grad_theta log q for -grad_theta log q in dr/dt",
        Kill("gaussian_flow", "gaussian-1d-scaled", GAUSSIAN),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "flow-without-div-q",
        "flow-det",
        lambda target, **options: FlowWithoutDivergence(irreversible, target, **options),
        "D grad log(p / q) + Q grad log p without div Q",
        Kill("divergence_of_flow", PLANE, RATE),
        "particles",
        "metric",
    ),
)
