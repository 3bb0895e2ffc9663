"""Planted bugs of SVGD: kernel, bandwidth, repulsion."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from checks.defects.defect import Defect, Kill, planted
from samplers.svgd import SVGD, SVGDState, median_bandwidth, squared_distances

Direction = Callable[[jax.Array, jax.Array, Any], jax.Array]
"""(particles (M, d), gradients of U (M, d), bandwidth) -> phi (M, d)."""


def svgd(direction: Direction) -> type[SVGD]:
    """SVGD with another direction."""

    @dataclass(frozen=True)
    class Planted(SVGD):
        def step(self, key, state, step_size, estimator):
            flatten = jax.vmap(lambda x: ravel_pytree(x)[0])
            unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], state.position))[1]
            estimate, estate = jax.vmap(estimator.estimate, (None, 0, 0))(key, state.estate, state.position)
            x = flatten(state.position)
            h = median_bandwidth(squared_distances(x)) if self.bandwidth == "median" else self.bandwidth
            phi = direction(x, flatten(estimate.gradient), h)
            position = jax.vmap(unravel)(x + step_size * phi)
            return SVGDState(position, state.square, state.count + 1, estate)

    return Planted


def stein(kernel, repulsion: Callable[[jax.Array, jax.Array, Any], jax.Array]) -> Direction:
    """(1/M) sum_i [-K_ij grad U(x_i) + `repulsion`(K, differences x_j - x_i, h)_ij]."""

    def direction(x, gradients, h):
        k = kernel(squared_distances(x), h)
        differences = x[None, :, :] - x[:, None, :]
        return (jnp.sum(repulsion(k[..., None], differences, h), axis=0) - k.T @ gradients) / x.shape[0]

    return direction


def gaussian_kernel(distances, h):
    """exp(-|x - y|^2 / (2 h))."""
    return jnp.exp(-distances / (2 * h))


POINT = "E_p[k grad log p + grad k] = 0 at the target"
FALLS = "d KL(q || p) / dt < 0 away from the target"
TARGETS = ("gaussian-1d-scaled", "anharmonic")

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
        "svgd-reversed",
        "svgd",
        svgd(lambda x, g, h: -stein(gaussian_kernel, lambda k, d, b: k * d / b)(x, g, h)),
        "x - h phi for x + h phi: the target is a fixed point still, but a repelling one",
        Kill("divergence_falls", "anharmonic", FALLS),
        "particles",
        targets=TARGETS,
    ),
    planted(
        "svgd-bandwidth-ignored",
        "svgd",
        svgd(lambda x, g, h: stein(gaussian_kernel, lambda k, d, b: k * d / b)(x, g, jnp.ones_like(x[0, 0]))),
        "bandwidth 1 whatever the option says: the fixed point is right",
        Kill("every_option_matters", "gaussian-1d-scaled", "each option changes the kernel"),
        "particles",
        "options",
        targets=TARGETS,
        variants=({"bandwidth": 0.5}, {"bandwidth": 2.0}),
    ),
)
