"""Flows of particles with an estimate of their own density, as strangers write them, and wrong ones."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.statements import marginal_flow
from sgmcmc_verification.checks.proof.statements.flow import MULTIPLIERS
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from sgmcmc_verification.samplers.dynamics.overdamped import overdamped_dynamics
from sgmcmc_verification.samplers.interface.claims import Claims, DensityEstimate, MarginalFlow, ParticleLaw, Source
from sgmcmc_verification.samplers.particles.common import ParticleMixin
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.target import Target

distances = lambda x: jnp.sum((x[:, None] - x[None]) ** 2, -1)


@dataclass(frozen=True)
class Flow(ParticleMixin):
    """Particles with an estimate of their density, in two dimensions."""

    field: Callable[..., jax.Array]
    dynamics: Callable[[Target], Dynamics] = lambda target: overdamped_dynamics(target, 1.0)
    density: str = "gfsd"
    form: str = "det"
    bandwidth: float = 0.5
    ridge: float = 0.1

    @property
    def claims(self) -> Claims:
        estimate = DensityEstimate(self, self.form)
        return Claims(Source("", "none"), ParticleLaw(), estimate, MarginalFlow(self.dynamics))

    def move(self, particles, gradients, weights, bandwidths):
        return self.field(particles, gradients)


def smoothed(x, h=0.5):
    """grad log of the kernel density, written out."""
    E = jnp.exp(-distances(x) / (2 * h))
    return (E @ x / E.sum(0)[:, None] - x) / h


def functional_of(x, h=0.5):
    """grad_j sum_k log e_k, written out."""
    E = jnp.exp(-distances(x) / (2 * h))
    e = E.sum(0)
    ahead = x[:, None] - x[None]
    return jnp.einsum("ij,ija,ij->ja", E, ahead, 1 / e[None, :] + 1 / e[:, None]) / h


def of_test_functions(x, h=0.5, ridge=0.1, slope=-1.0):
    """The solution of sum_i E_ij s_i + ridge s_j = slope sum_i grad_i E_ij + ridge (x_j - mean) / h, written out."""
    E = jnp.exp(-distances(x) / (2 * h))
    slopes = jnp.einsum("ij,ija->ja", E, x[None] - x[:, None]) / h
    return jnp.linalg.inv(E + ridge * jnp.eye(len(x))) @ (slope * slopes + ridge * (x - x.mean(0)) / h)


def of_transport(x, h=0.5, sweeps=40, factor=4.0):
    """(4 / (d h)) sum_i P_ij (1 - |x_i - x_j|^2 / (2 h)) (x_j - x_i) / M, the multipliers by damped sweeps."""
    E = jnp.exp(-distances(x) / (2 * h)) / len(x)
    u = jax.lax.rsqrt(E @ jnp.ones(len(x)))
    u, _ = jax.lax.scan(lambda u, _: (jnp.sqrt(u / (E @ u)), None), u, length=sweeps)
    pull = u[:, None] * E * u * (1 - distances(x) / (2 * h))
    return factor / (x.shape[1] * h) * jnp.einsum("ij,ija->ja", pull, x[None] - x[:, None])


def given(D, Q, H=1.0):
    def dynamics(target):
        return Dynamics(lambda z: H * target.flat_potential(z), D, Q, coordinate_names(2), 2)

    return dynamics


TURN = jnp.array([[0.0, -1.0], [1.0, 0.0]])
stretch = lambda z: jnp.diag(jnp.array([2.0, 0.5]))
turning = lambda z: jnp.sin(z[0] + 2 * z[1]) * TURN
div_of_turning = lambda x: jnp.cos(x[:, :1] + 2 * x[:, 1:]) * jnp.array([-2.0, 1.0])
rotated = jax.vmap(lambda z, v: turning(z) @ v)
constant = lambda matrix: lambda z: jnp.asarray(matrix)

FLOWS = {
    "smoothed density": Flow(lambda x, g: -g - smoothed(x)),
    "smoothed functional": Flow(lambda x, g: -g - functional_of(x), density="blob"),
    "stretched": Flow(lambda x, g: -(g + smoothed(x)) @ stretch(0), given(stretch, constant(0 * TURN))),
    "turning, det": Flow(
        lambda x, g: -g - smoothed(x) - rotated(x, g) + div_of_turning(x), given(constant(jnp.eye(2)), turning)
    ),
    "turning, fgh": Flow(
        lambda x, g: -g - smoothed(x) - rotated(x, g + smoothed(x)), given(constant(jnp.eye(2)), turning), form="fgh"
    ),
    "test functions": Flow(lambda x, g: -g - of_test_functions(x), density="gfsf"),
    "transport": Flow(lambda x, g: -g - of_transport(x), density="jko"),
    "another width": Flow(lambda x, g: -g - smoothed(x, 2.0), bandwidth=2.0),
}
WRONG_FLOWS = {
    "collapse": Flow(lambda x, g: -g + smoothed(x)),
    "half the estimate": Flow(lambda x, g: -g - smoothed(x) / 2),
    "estimate of another name": Flow(lambda x, g: -g - functional_of(x)),
    "width for its root": Flow(lambda x, g: -g - smoothed(x, 0.25)),
    "without div Q": Flow(lambda x, g: -g - smoothed(x) - rotated(x, g), given(constant(jnp.eye(2)), turning)),
    "det for fgh": Flow(FLOWS["turning, det"].field, given(constant(jnp.eye(2)), turning), form="fgh"),
    "Q is not skew": Flow(lambda x, g: -2 * g - smoothed(x), given(constant(jnp.eye(2)), constant(jnp.eye(2)))),
    "uphill": Flow(lambda x, g: g - smoothed(x)),
    "test functions without a ridge": Flow(lambda x, g: -g - of_test_functions(x, ridge=0.0), density="gfsf"),
    "test functions with the slopes of the other argument": Flow(
        lambda x, g: -g - of_test_functions(x, slope=1.0), density="gfsf"
    ),
    "half the transport": Flow(lambda x, g: -g - of_transport(x, factor=2.0), density="jko"),
    "multipliers after one sweep": Flow(lambda x, g: -g - of_transport(x, sweeps=1), density="jko"),
}


@pytest.mark.parametrize("name", FLOWS)
def test_right_flows_are_shown(name):
    proof = prove(FLOWS[name], 2)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("name", WRONG_FLOWS)
def test_wrong_flows_fail(name):
    proof = prove(WRONG_FLOWS[name], 2)
    assert proof.verdict == "fail", str(proof)


def test_a_flow_to_another_law_or_with_another_estimate_is_left_open():
    twice = Flow(lambda x, g: -2 * g - smoothed(x), given(constant(jnp.eye(2)), constant(0 * TURN), 2.0))
    assert prove(twice, 2).verdict == "undecided"
    assert prove(Flow(lambda x, g: -g - smoothed(x), density="kernel"), 2).verdict == "undecided"


@pytest.mark.parametrize(
    "name", ["gfsd", "gfsf", "blob", "w-sgld", "flow-det", "flow-fgh", "psghmc-det", "psghmc-fgh", "flow-hamiltonian"]
)
def test_our_own_flows_are_shown(name):
    proof = prove(sampler_row(name).build, 2)
    assert proof.verdict == "pass", str(proof)


def test_a_flow_that_grows_is_not_proved():
    grows = Flow(lambda x, g: g + smoothed(x), given(constant(-jnp.eye(2)), constant(0 * TURN)))
    assert prove(grows, 2).verdict == "undecided"


def test_multipliers_that_do_not_solve_their_equations_are_seen(monkeypatch):
    few = lambda E, weights: jax.lax.rsqrt(E @ weights)
    monkeypatch.setattr(marginal_flow, "transport_scaling", few)
    proof = prove(Flow(lambda x, g: -g - of_transport(x, sweeps=0), density="jko"), 1)
    assert proof.verdict == "fail"
    assert [r.statement for r in proof.results if r.outcome == "violated"] == [MULTIPLIERS]


def test_the_transport_of_two_particles_has_multipliers_in_closed_form():
    """u = (2 / (1 + E_12))^1/2 for both."""
    x = jnp.array([[0.3], [-0.9]])
    u = marginal_flow.multipliers_of(x, 0.7)
    assert jnp.allclose(u, jnp.sqrt(2 / (1 + jnp.exp(-1.44 / 1.4))), rtol=1e-10)
    assert jnp.allclose(marginal_flow.residuals_of(x, 0.7), 0, atol=1e-10)
