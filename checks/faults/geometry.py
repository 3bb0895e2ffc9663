"""Planted bugs of samplers on manifolds: flow, projection, dimension, Jacobian, faces."""

from dataclasses import dataclass, replace
from typing import cast

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.geodesic.common import GeodesicState, arrive, projected_noise
from sgmcmc_verification.samplers.geodesic.gmc import GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import SGGMC
from sgmcmc_verification.samplers.riemannian.metrics import PositiveMetric
from sgmcmc_verification.samplers.riemannian.sgrld import SGRLD
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class PlantedSGGMC(SGGMC):
    """A(h/2) B(h/2) O(h) B(h/2) A(h/2), of which a subclass changes one part."""

    def flow(self, x, v, time):
        """A(time)."""
        return self.manifold.geodesic(x, v, time)

    def kick(self, x, force, noise):
        """The increment of the velocity in O(h): P(x) (force + noise)."""
        return self.manifold.tangent(x, force + noise)

    def end(self, x, v):
        """Back to the constraint."""
        return arrive(self.manifold, x, v)

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        h, decay = step_size, jnp.exp(-0.5 * self.friction * step_size)
        x, v = self.flow(state.position, state.velocity, 0.5 * h)
        estimate, estate = estimator.estimate(gradient_key, state.estate, x)
        noise = projected_noise(noise_key, self.manifold, x, self.friction, None, self.temperature, h, None)
        v = decay * (decay * v + self.kick(x, -h * estimate.gradient, noise))
        x, v = self.flow(x, v, 0.5 * h)
        return GeodesicState(*self.end(x, v), estate)


@dataclass(frozen=True)
class Retraction:
    """A sphere whose `geodesic` is x -> (x + t v) / |x + t v|, the velocity projected and brought to its speed."""

    exact: object

    def __getattr__(self, name):
        return getattr(self.exact, name)

    def geodesic(self, point, velocity, time):
        """Right to second order in time."""
        moved = point + time * velocity
        moved = moved / jnp.linalg.norm(moved)
        along = velocity - moved * (moved @ velocity)
        speed = jnp.sqrt(velocity @ velocity)
        return moved, along * speed / jnp.where(speed > 0, jnp.linalg.norm(along), 1)


class Renormalised(PlantedSGGMC):
    """Straight lines, then the position divided by its length."""

    def flow(self, x, v, time):
        return self.manifold.project_roundoff(x + time * v), v


class AmbientNoise(PlantedSGGMC):
    """The noise is not projected in O, the velocity is at the end of the step."""

    def kick(self, x, force, noise):
        return self.manifold.tangent(x, force) + noise


class NeverProjected(AmbientNoise):
    """The noise is not projected, nor is the velocity at the end of the step."""

    def end(self, x, v):
        return self.manifold.project_roundoff(x), v


class AmbientForce(PlantedSGGMC):
    """The gradient is not projected in O, the velocity is at the end of the step."""

    def kick(self, x, force, noise):
        return force + self.manifold.tangent(x, noise)


class NoiseOnALine(PlantedSGGMC):
    """The noise has one direction of the tangent space only, at twice its variance."""

    def kick(self, x, force, noise):
        axis = self.manifold.tangent(x, jnp.roll(x, 1))
        axis = axis / jnp.linalg.norm(axis)
        return self.manifold.tangent(x, force) + jnp.sqrt(2.0) * axis * (axis @ noise)


class HalfSpeed(PlantedSGGMC):
    """The flow runs for half the time: the position moves at half the velocity."""

    def flow(self, x, v, time):
        return super().flow(x, v, 0.5 * time)


class AmbientDimension(GSGNHT):
    """The thermostat compares |v|^2 with the number of ambient coordinates."""

    def _glide(self, x, v, xi, time):
        x, v, xi = super()._glide(x, v, xi, time)
        return x, v, xi + time * (self.manifold.dim - x.size) * self.temperature / self.mass


class PotentialOnly(GMC):
    """The acceptance probability has the potential alone."""

    def kinetic(self, position, momentum):
        return 0.0 * super().kinetic(position, momentum)


class NoiseInThree(PlantedSGGMC):
    """The noise enters the first three ambient coordinates alone."""

    def kick(self, x, force, noise):
        return super().kick(x, force, jnp.where(jnp.arange(x.size) < 3, noise, 0))


class MirrorsFirst(SGRLD):
    """The mirror at zero is there for the first coordinate alone."""

    def step(self, key, state, step_size, estimator):
        free = SGRLD(self.metric, self.temperature, self.compensate).step(key, state, step_size, estimator)
        theta, unravel = ravel_pytree(free.position)
        return free._replace(position=unravel(theta.at[0].set(jnp.abs(theta[0]))))


def without_jacobian(target: Target) -> Exact:
    """The potential of the law on the simplex at theta = x^2, without the Jacobian prod |x_k| of the map."""
    # U_H = U(x^2) - sum log |x_k|
    return Exact(replace(target, potential=lambda x: target.potential(x) + jnp.sum(jnp.log(jnp.abs(x)))))


SPHERE = "vmf-s2"
ON_BUNDLE = "f = (v, (dP/dt) v - P (grad U + C v)), D = T P C P"
ORDER = "E phi(z_h) = sum_{j <= 2} h^j L^j phi / j! + O(h^3)"


def _on_sphere(method):
    return lambda target, **options: method(target.manifold, **options)


DEFECTS: tuple[Defect, ...] = (
    planted(
        "sggmc-retraction",
        "sggmc",
        lambda target, **options: SGGMC(cast(Manifold, Retraction(target.manifold)), **options),
        "(x + t v) / |x + t v| for the exponential map: right to second order",
        Kill("geodesic_flow", SPHERE, "P x'' = 0"),
        "manifold",
        "order",
    ),
    planted(
        "sggmc-renormalised",
        "sggmc",
        _on_sphere(Renormalised),
        "a straight line and a division by the length for a geodesic: the velocity does not turn",
        Kill("local_weak_order", SPHERE, ORDER),
        "manifold",
        "order",
    ),
    planted(
        "sggmc-noise-not-projected",
        "sggmc",
        _on_sphere(AmbientNoise),
        "noise of the ambient space in the velocity, projected at the end of the step only: of order 2 still",
        Kill("kinetic_energy", "uniform-s2", "E |v|^2 / m = C h / sinh(C h) for U = 0"),
        "manifold",
        "order",
        targets=(SPHERE,),
    ),
    planted(
        "sggmc-never-projected",
        "sggmc",
        _on_sphere(NeverProjected),
        "noise of the ambient space, and no projection at all",
        Kill("stays_on_the_manifold", SPHERE, "P(x_n) v_n = v_n"),
        "manifold",
    ),
    planted(
        "sggmc-force-not-projected",
        "sggmc",
        _on_sphere(AmbientForce),
        "the gradient in the ambient space moves the velocity, which is projected at the end of the step only",
        Kill("local_weak_order", SPHERE, ORDER),
        "manifold",
        "order",
    ),
    planted(
        "sggmc-noise-on-a-line",
        "sggmc",
        _on_sphere(NoiseOnALine),
        "noise in one direction of the tangent plane, with the right total variance",
        Kill("noise_is_tangent", SPHERE, "rank D = dim"),
        "manifold",
        diagnosis=r"noise has rank 1",
    ),
    planted(
        "sggmc-half-speed",
        "sggmc",
        _on_sphere(HalfSpeed),
        "the flow runs for half the time, the kicks for all of it: the velocity is right, the position is not",
        Kill("manifold_limit", "vmf-s1", "pi_h -> pi as h -> 0 on the tangent bundle"),
        "manifold",
        diagnosis=r"drift of theta",
    ),
    planted(
        "gsgnht-ambient-dimension",
        "gsgnht",
        _on_sphere(AmbientDimension),
        "|v|^2 - n T for |v|^2 - m T, n the ambient dimension: the velocity is too hot",
        Kill("generator_of_code", SPHERE, "d xi = (|v|^2 - m T) / mu dt"),
        "manifold",
        "dimension",
        diagnosis=r"constant .*added to the drift of xi",
    ),
    planted(
        "sggmc-noise-in-three",
        "sggmc",
        _on_sphere(NoiseInThree),
        "noise in the first three ambient coordinates alone: right on S^2",
        Kill("generator_of_code", "vmf-s3", ON_BUNDLE),
        "manifold",
        "dimension",
    ),
    planted(
        "gmc-acceptance-without-kinetic-energy",
        "gmc",
        _on_sphere(PotentialOnly),
        "min(1, exp(U - U')) for min(1, exp(H - H'))",
        Kill("closed_form_marginals", SPHERE, "s(x_n) has the distribution function of pi"),
        "manifold",
        "metropolis",
    ),
    planted(
        "sphere-map-without-jacobian",
        "sggmc",
        _on_sphere(SGGMC),
        "the density on the simplex for the one on the sphere, without prod |x_k|: Dirichlet(alpha - 1/2)",
        Kill("generator_of_code", "dirichlet-sphere", ON_BUNDLE),
        "manifold",
        estimator=without_jacobian,
        diagnosis=r"drift of v",
    ),
    planted(
        "sgrld-mirrors-the-first",
        "sgrld",
        lambda target, **options: MirrorsFirst(PositiveMetric(), reflect=True, **options),
        "the mirror at zero is there for the first coordinate alone: right for one number",
        Kill("equal_coordinates", "gamma", "equal coordinates with equal draws stay equal"),
        "manifold",
        "dimension",
        diagnosis=r"near 0 equal coordinates",
    ),
    planted(
        "sgrld-no-mirror",
        "sgrld",
        lambda target, **options: SGRLD(PositiveMetric(), **options),
        "no mirror at zero: a chain near the boundary leaves the positive numbers",
        Kill("stays_on_the_manifold", "gamma", "x > 0"),
        "manifold",
    ),
)
