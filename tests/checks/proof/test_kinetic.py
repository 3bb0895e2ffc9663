"""Hamiltonians that are solved for: samplers with a momentum that declare nothing."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.expansion import expand
from sgmcmc_verification.checks.proof.potential import any_target
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.simple import simple_sampler


def sampler(mass=1.0, noise=1.0, friction=1.5):
    """Symplectic Euler of the underdamped Langevin equation with a mass, in a dictionary whose momentum is first."""

    def init(key, x, estimator):
        return {"momentum": jnp.zeros_like(x), "position": x}

    def step(key, state, h, estimator):
        x, p = state["position"], state["momentum"]
        g = estimator.estimate(jax.random.key(0), (), x)[0].gradient
        xi = jax.random.normal(key, x.shape, x.dtype)
        p = p - h * g - h * friction * p / mass + noise * jnp.sqrt(2 * friction * h) * xi
        return {"momentum": p, "position": x + h * p / mass}

    pack = lambda key, z, estimator: {"momentum": z["momentum"], "position": z["position"]}
    return simple_sampler(
        step, init=init, position=lambda s: s["position"], unpack=lambda s: dict(s), pack=pack, needs=("gradient",)
    )


@pytest.mark.parametrize("mass", [1.0, 2.0, 0.25])
def test_the_mass_is_found(mass):
    target = any_target(1)
    expansion = expand(sampler(mass), target, Exact(target), 3)
    (region,) = expansion.regions
    p, x = expansion.variables  # the momentum sorts first
    H = region.density.hamiltonian
    assert H.derivative(p).derivative(p).rational == pytest.approx(1 / mass)
    assert str(H.derivative(x)).startswith("U'")
    proof = prove(sampler(mass), 2)
    assert proof.verdict == "pass", str(proof)
    assert any(result.statement == "Hamiltonian" and "solved for" in result.reason for result in proof.results)


def test_what_keeps_no_such_law_is_undecided_and_does_not_fail():
    proof = prove(sampler(noise=0.5), 2)
    assert proof.verdict == "undecided"
    assert "none was found" in proof.reason
