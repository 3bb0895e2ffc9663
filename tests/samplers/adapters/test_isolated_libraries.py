"""The libraries behind the bridge are what their adapters say; needs their environments, which one command builds.

Oracles are the formulas of the adapters' docstrings, evaluated in NumPy, and the same library under this process's jax.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from sgmcmc_verification.samplers.adapters import fortuna, jax_sgmc, sgmcmcjax
from sgmcmc_verification.samplers.adapters.isolated.client import Client
from sgmcmc_verification.samplers.adapters.isolated.environments import command, environment, home, is_built, python_of
from sgmcmc_verification.samplers.adapters.isolated.sampler import Bridged
from sgmcmc_verification.targets.euclidean.gaussian import gaussian

EPS = np.finfo(float).eps
PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
LAW = gaussian(np.array([0.5, -1.0]), np.linalg.inv(PRECISION), "plane-of-the-bridge")
H = 0.05


def needs(name):
    return pytest.mark.skipif(not is_built(name), reason=f"the environment of {name} is not built: {command(name)}")


def draws(sampler, rows=6, seed=0):
    rng = np.random.default_rng(seed)
    held = sampler.loaded
    n = sum(int(np.prod(shape, dtype=int)) for shape in held.shapes)
    assert held.escaped == ()
    return rng.normal(size=(rows, n)), rng.normal(size=(rows, held.normals)), rng.normal(size=(rows, 2))


def step(sampler, z, noise, eta, h=H):
    held = sampler.loaded
    integers = np.zeros((len(z), len(held.ranges)), int)
    return sampler.one_step(z, noise, np.full((len(z), held.uniforms), 0.5), integers, eta, h)


def gradient(x, eta):
    return (x - LAW.gaussian.mean) @ PRECISION + eta


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e3 * EPS * (1 + np.abs(expected).max()))


@needs("sgmcmcjax")
@pytest.mark.parametrize("build", [sgmcmcjax.sgld, sgmcmcjax.sgld_cv, sgmcmcjax.sgld_svrg], ids=lambda f: f.__name__)
def test_sgmcmcjax_sgld_is_euler_maruyama_with_dt_equal_h(build):
    sampler = build(LAW)
    z, noise, eta = draws(sampler)
    close(step(sampler, z, noise, eta), z - H * gradient(z, eta) + np.sqrt(2 * H) * noise)


@needs("sgmcmcjax")
def test_sgmcmcjax_sgnht_is_ding_with_a_equal_diffusion_times_h():
    sampler = sgmcmcjax.sgnht(LAW, diffusion=0.7)
    z, noise, eta = draws(sampler)
    x, r, xi = z[:, :2], z[:, 2:4], z[:, 4:]
    new_r = r - H * xi * r - H * gradient(x, eta) + np.sqrt(2 * 0.7 * H) * noise
    new_xi = xi + H * ((new_r**2).sum(axis=1, keepdims=True) / 2 - 1)
    close(step(sampler, z, noise, eta), np.concatenate([x + H * new_r, new_r, new_xi], axis=1))


@needs("sgmcmcjax")
def test_sgmcmcjax_sghmc_takes_the_gradient_at_the_old_position():
    sampler = sgmcmcjax.sghmc(LAW, num_integration_steps=3, friction=0.5)
    z, noise, eta = draws(sampler)
    x, parts = z, np.split(noise, 4, axis=1)
    r = parts[0]
    for shock in parts[1:]:
        force = gradient(x, eta)
        x, r = x + H * r, (1 - 0.5 * H) * r - H * force + np.sqrt(2 * 0.5 * H) * shock
    close(step(sampler, z, noise, eta), x)


@needs("sgmcmcjax")
@pytest.mark.parametrize("name", ["baoab", "badodab", "badodabCV"])
def test_the_palindrome_kernels_of_sgmcmcjax_leave_the_position_where_it_is(name):
    """The finding, at its root: z' = (theta, r - h grad U, xi) with no noise; see reports/findings."""
    build = {"baoab": sgmcmcjax.baoab, "badodab": sgmcmcjax.badodab, "badodabCV": sgmcmcjax.badodab_cv}[name]
    sampler = build(LAW)
    z, noise, eta = draws(sampler)
    expected = z.copy()
    expected[:, 2:4] -= H * gradient(z[:, :2], eta)
    assert sampler.loaded.normals == 0
    close(step(sampler, z, noise, eta), expected)


@needs("sgmcmcjax")
def test_sgmcmcjax_in_its_environment_and_under_this_jax_are_the_same_map(tmp_path):
    """Only the progress bar needs the module that newer versions of jax lack; with a stub of it the library imports."""
    source = next(home("sgmcmcjax").rglob("site-packages/sgmcmcjax/__init__.py"))
    far = tmp_path / "far.py"
    far.write_text(
        f"""
import importlib.util, sys, types
sys.modules["jax.experimental.host_callback"] = types.ModuleType("jax.experimental.host_callback")
import jax.experimental
jax.experimental.host_callback = sys.modules["jax.experimental.host_callback"]
spec = importlib.util.spec_from_file_location(
    "sgmcmcjax", {str(source)!r}, submodule_search_locations=[{str(source.parent)!r}])
sys.modules["sgmcmcjax"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
spec = importlib.util.spec_from_file_location("real_far", {str(environment("sgmcmcjax").far)!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
kernel = real.kernel
versions = lambda: {{"sgmcmcjax": module.__version__}}
""",
        encoding="utf-8",
    )
    with Client(sys.executable, far, name="here") as worker:
        for there in (sgmcmcjax.sgnht(LAW), sgmcmcjax.psgld(LAW)):
            z, noise, eta = draws(there)
            z = np.abs(z)  # a second moment is positive
            here = Bridged(worker, there.kernel, LAW, there.claims, there.options, there.point)
            close(step(here, z, noise, eta), step(there, z, noise, eta))


@needs("jax-sgmc")
def test_jax_sgmc_sgld_and_obabo_are_their_formulas():
    sampler = jax_sgmc.sgld(LAW, temperature=2.0)
    z, noise, eta = draws(sampler)
    close(step(sampler, z, noise, eta), z - H * gradient(z, eta) + np.sqrt(4 * H) * noise)
    sampler = jax_sgmc.obabo(LAW, friction=0.8, temperature=2.0)
    z, noise, eta = draws(sampler)
    keep = np.exp(-0.8 * H / 2)
    x, r = z[:, :2], keep * z[:, 2:] + np.sqrt(2 * (1 - keep**2)) * noise[:, :2]
    r = r - H / 2 * gradient(x, eta)
    x = x + H * r
    r = keep * (r - H / 2 * gradient(x, eta)) + np.sqrt(2 * (1 - keep**2)) * noise[:, 2:]
    close(step(sampler, z, noise, eta), np.concatenate([x, r], axis=1))


@needs("jax-sgmc")
def test_jax_sgmc_sghmc_multiplies_its_noise_by_the_friction_and_not_by_its_root():
    """The finding, at its root; see reports/findings."""
    sampler = jax_sgmc.sghmc(LAW, integration_steps=2, friction=4.0)
    z, noise, eta = draws(sampler)
    x, r = z, noise[:, :2]
    for shock in (noise[:, 2:4], noise[:, 4:]):
        x = x + H * r
        r = (1 - 4.0 * H) * r - H * gradient(x, eta) + 4.0 * np.sqrt(2 * H) * shock
    close(step(sampler, z, noise, eta), x)


def fortuna_step(z, noise, eta, decay, s):
    """m' = a m + sqrt(s) g + sqrt(2 (1 - a)) xi, theta' = theta + sqrt(s) m', on (theta, m)."""
    m = decay * z[:, 2:] - np.sqrt(s) * gradient(z[:, :2], eta) + np.sqrt(2 * (1 - decay)) * noise
    return np.concatenate([z[:, :2] + np.sqrt(s) * m, m], axis=1)


@needs("fortuna")
def test_fortuna_sghmc_is_semi_implicit_with_s_equal_h_squared_and_no_momentum_kept_is_sgld():
    sampler = fortuna.sghmc(LAW, friction=0.8)
    z, noise, eta = draws(sampler)
    close(step(sampler, z, noise, eta), fortuna_step(z, noise, eta, 1 - 0.8 * H, H * H))
    for sampler in (fortuna.sgld(LAW), fortuna.cyclical_sgld(LAW)):
        z, noise, eta = draws(sampler)
        close(step(sampler, z, noise, eta), z - H * gradient(z, eta) + np.sqrt(2 * H) * noise)


@needs("fortuna")
def test_fortuna_resamples_the_momentum_as_zero():
    """The finding, at its root; see reports/findings."""
    sampler = fortuna.sghmc_resampled(LAW, integration_steps=3, friction=0.8)
    z, noise, eta = draws(sampler)
    assert noise.shape[1] == 3 * 2  # no draw for the momentum
    point = np.concatenate([z, np.zeros_like(z)], axis=1)
    for shock in np.split(noise, 3, axis=1):
        point = fortuna_step(point, shock, eta, 1 - 0.8 * H, H * H)
    close(step(sampler, z, noise, eta), point[:, :2])


@needs("fortuna")
def test_fortuna_preconditions_by_the_moving_average_without_the_divergence():
    sampler = fortuna.sgld_rms(LAW, alpha=0.6, eps=0.1)
    z, noise, eta = draws(sampler)
    z = np.abs(z)  # a second moment is positive
    g = gradient(z[:, :2], eta)
    v = 0.6 * z[:, 2:] + 0.4 * g**2
    G = 1 / (0.1 + np.sqrt(v))
    close(
        step(sampler, z, noise, eta),
        np.concatenate([z[:, :2] - H * G * g + np.sqrt(2 * H * G) * noise, v], axis=1),
    )


CYCLES = """
import json, jax, jax.numpy as jnp
from fortuna.prob_model.posterior.sgmcmc.cyclical_sgld import cyclical_sgld_callback, cyclical_sgld_integrator
from fortuna.prob_model.posterior.sgmcmc.sgmcmc_preconditioner import identity_preconditioner
ends = []
for seed in (0, 1):
    integrator = cyclical_sgld_integrator.cyclical_sgld_integrator(
        jax.random.PRNGKey(seed), 0.1, 8, 0.25, identity_preconditioner())
    state, ends = integrator.init(jnp.zeros(())), [*ends, []]
    for _ in range(16):
        update, state = integrator.update(jnp.ones(()), state)
        ends[-1].append(float(update))
callback = cyclical_sgld_callback.CyclicalSGLDSamplingCallback(2, 8, 4, 1, 8, 0.25, None, None, 1)
sampled = [k for k in range(1, 17) if ends[0][k - 1] != ends[1][k - 1]]
print(json.dumps([sampled, [k for k in range(1, 17) if callback._do_sample(k, 0)]]))
"""


@needs("fortuna")
def test_fortuna_records_the_steps_of_a_cycle_that_come_one_before_those_with_noise():
    """The finding, at its root: steps are numbered from 1, and two keys tell which have noise; see reports/findings."""
    done = subprocess.run([python_of("fortuna"), "-c", CYCLES], capture_output=True, text=True, check=True)
    sampled, recorded = json.loads(done.stdout.splitlines()[-1])
    assert sampled == [*range(3, 9), *range(11, 17)]
    assert recorded == [k - 1 for k in sampled]
