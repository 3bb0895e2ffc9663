"""Samplers in the styles of libraries: BlackJAX, equinox, SGMCMCJax, functools.partial and ravel_pytree, TFP."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler


def _normals(key, tree):
    leaves, form = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return form.unflatten([jax.random.normal(k, a.shape, a.dtype) for k, a in zip(keys, leaves, strict=True)])


def _dot(left, right):
    return sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


# ---------------------------------------------------------------------------------------------------------------------
# BlackJAX: (init, step) of a factory, step gives (state, info). Preconditioned Crank-Nicolson Langevin for a reference
# N(0, s^2): with Phi = U - |x|^2 / (2 s^2), a = e^-h, the proposal is y = a x - (1 - a) s^2 DPhi(x) + sqrt(1 - a^2) s w. From
# |y - a x|^2 - |x - a y|^2 = (1 - a^2) (|y|^2 - |x|^2) the Metropolis-Hastings ratio is rho(x, y) - rho(y, x) with
# rho(x, y) = Phi(x) + (<y - a x, DPhi(x)> + (1 - a) s^2 |DPhi(x)|^2 / 2) / (1 + a). Exact.


class PCNLState(NamedTuple):
    position: Any
    misfit: Any
    misfit_grad: Any


class PCNLInfo(NamedTuple):
    acceptance_rate: Any
    is_accepted: Any


class SamplingAlgorithm(NamedTuple):
    init: Callable
    step: Callable
    claims = Claims(Source("", "own"), ExactLaw())


def pcnl(reference_scale=2.0):
    variance = reference_scale**2

    def init(rng_key, position, estimator):
        estimate = estimator.estimate(rng_key, (), position)[0]
        misfit = estimate.potential - 0.5 * _dot(position, position) / variance
        grad = jax.tree.map(lambda g, x: g - x / variance, estimate.gradient, position)
        return PCNLState(position, misfit, grad)

    def log_flow(kept, start, end):
        along = _dot(jax.tree.map(lambda y, x: y - kept * x, end.position, start.position), start.misfit_grad)
        squared = _dot(start.misfit_grad, start.misfit_grad)
        return start.misfit + (along + 0.5 * (1 - kept) * variance * squared) / (1 + kept)

    def step(rng_key, state, step_size, estimator):
        key_batch, key_move, key_accept = jax.random.split(rng_key, 3)
        kept = jnp.exp(-step_size)
        spread = reference_scale * jnp.sqrt(-jnp.expm1(-2 * step_size))
        proposal = jax.tree.map(
            lambda x, g, w: kept * x - (1 - kept) * variance * g + spread * w,
            state.position,
            state.misfit_grad,
            _normals(key_move, state.position),
        )
        proposed = init(key_batch, proposal, estimator)
        log_ratio = log_flow(kept, state, proposed) - log_flow(kept, proposed, state)
        accepted = jnp.log(jax.random.uniform(key_accept, dtype=log_ratio.dtype)) < log_ratio
        new = jax.tree.map(lambda y, x: jnp.where(accepted, y, x), proposed, state)
        return new, PCNLInfo(jnp.minimum(1, jnp.exp(log_ratio)), accepted)

    return SamplingAlgorithm(init, step)


# ---------------------------------------------------------------------------------------------------------------------
# equinox: modules are frozen dataclasses that are registered as pytrees. Leimkuhler and Matthews' scheme,
# x' = x - h grad U + sqrt(T h / 2) (xi + xi'), where xi' is the draw of the next step's first half: the state keeps the
# fresh draw itself. Stationary law of order 2 (Leimkuhler, Matthews, Tretyakov 2014); exact variance 1/k on Gaussians.


class Module:
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        names = tuple(field.name for field in dataclasses.fields(cls))

        def unflatten(_, children):
            module = object.__new__(cls)
            for name, child in zip(names, children, strict=True):
                object.__setattr__(module, name, child)
            return module

        jax.tree_util.register_pytree_node(cls, lambda m: (tuple(getattr(m, n) for n in names), None), unflatten)


class Walker(Module):
    position: Any
    kick: Any


class AveragedKicks(Module):
    temperature: float = 1.0

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    def init(self, key, position, estimator):
        return Walker(position, _normals(key, position))

    def step(self, key, state, step_size, estimator):
        gradient_key, kick_key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), state.position)[0].gradient
        fresh = _normals(kick_key, state.position)
        averaged = jax.tree.map(lambda old, new: 0.5 * (old + new), state.kick, fresh)
        position = jax.tree.map(
            lambda x, g, k: x - step_size * g + jnp.sqrt(2 * self.temperature * step_size) * k,
            state.position,
            gradient,
            averaged,
        )
        return Walker(position, fresh)


# ---------------------------------------------------------------------------------------------------------------------
# SGMCMCJax: a builder gives init_fn, update and get_params as closures. A thermostat for each leaf (layer): with n_l
# coordinates dxi_l = (|p_l|^2 / n_l - 1) dt, and dp_l = -grad_l U - xi_l p_l + sqrt(2 A) dW, the law
# exp(-U - |p|^2 / 2 - sum_l n_l (xi_l - A)^2 / 2) is kept: -d_p(.. xi p) gives sum_l (xi_l - A) (n_l - |p_l|^2), which the
# thermostats cancel, leaf by leaf. Euler: order 1.


class NoseState(NamedTuple):
    params: Any
    momentum: Any
    xi: Any


def _build_layer_thermostat(a):
    def init_fn(key, params):
        xi = jax.tree.map(lambda leaf: jnp.full((), a, leaf.dtype), params)
        return NoseState(params, _normals(key, params), xi)

    def update(key, state, dt, grad_fn):
        key_data, key_noise = jax.random.split(key)
        momentum = jax.tree.map(
            lambda p, g, xi, w: p - dt * (g + xi * p) + jnp.sqrt(2 * a * dt) * w,
            state.momentum,
            grad_fn(key_data, state.params),
            state.xi,
            _normals(key_noise, state.params),
        )
        params = jax.tree.map(lambda x, p: x + dt * p, state.params, momentum)
        xi = jax.tree.map(lambda xi, p: xi + dt * (jnp.sum(p * p) / p.size - 1), state.xi, momentum)
        return NoseState(params, momentum, xi)

    def get_params(state):
        return state.params

    return init_fn, update, get_params


def layer_thermostat(a=1.0):
    init_fn, update, get_params = _build_layer_thermostat(a)

    def step(key, state, dt, estimator):
        return update(key, state, dt, lambda k, x: estimator.estimate(k, (), x)[0].gradient)

    return simple_sampler(step, init=lambda key, x, estimator: init_fn(key, x), position=get_params)


# ---------------------------------------------------------------------------------------------------------------------
# functools.partial and ravel_pytree: Metropolis within Gibbs, coordinate by coordinate in a fixed order, each proposal
# tested against the position and the energy that the visits before it have left. Each visit keeps exp(-U), so the sweep does.


def _visit(energy, scale, carry, visitor):
    (flat, current), (index, noise, log_uniform) = carry, visitor
    proposal = flat.at[index].add(scale * noise)
    proposed = energy(proposal)
    accepted = log_uniform < current - proposed
    return (jnp.where(accepted, proposal, flat), jnp.where(accepted, proposed, current)), None


def _sweep(key, position, step_size, estimator, *, width):
    batch_key, noise_key, accept_key = jax.random.split(key, 3)
    flat, unravel = ravel_pytree(position)
    energy = lambda q: jnp.asarray(estimator.estimate(batch_key, (), unravel(q))[0].potential, flat.dtype)
    noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
    log_uniform = jnp.log(jax.random.uniform(accept_key, flat.shape, flat.dtype))
    visit = partial(_visit, energy, width * jnp.sqrt(2 * step_size))
    (flat, _), _ = jax.lax.scan(visit, (flat, energy(flat)), (jnp.arange(flat.size), noise, log_uniform))
    return unravel(flat)


coordinate_sweep = simple_sampler(partial(_sweep, width=1.5), claims=Claims(Source("", "own"), ExactLaw()))


# ---------------------------------------------------------------------------------------------------------------------
# TFP: bootstrap_results and one_step(current_state, previous_kernel_results, seed). BAOAB with a mass of its own for each
# coordinate, m_i = 2 - 1 / (1 + i) by the place i in the raveled tree, in the flight x += h p / m and in the variance m of the
# momentum alike. exp(-U - sum p^2 / (2 m)) is kept to second order, as with unit masses.


class KernelResults(NamedTuple):
    momentum: Any  # parts, as those of the position


class MassiveLangevinKernel:
    def __init__(self, gradient_fn, step_size, friction):
        self.gradient_fn, self.step_size, self.friction = gradient_fn, step_size, friction

    @staticmethod
    def masses(state):
        flat, unravel = ravel_pytree(state)
        return unravel(2 - 1 / (1 + jnp.arange(flat.size, dtype=flat.dtype)))

    def _thermal(self, seed, state):
        return jax.tree.map(lambda m, w: jnp.sqrt(m) * w, self.masses(state), _normals(seed, state))

    def bootstrap_results(self, current_state, seed):
        return KernelResults(self._thermal(seed, current_state))

    def _kick(self, seed, state, momentum):
        gradient = self.gradient_fn(seed, state)
        return jax.tree.map(lambda p, g: p - self.step_size / 2 * g, momentum, gradient)

    def _fly(self, state, momentum):
        return jax.tree.map(lambda x, p, m: x + self.step_size / 2 * p / m, state, momentum, self.masses(state))

    def one_step(self, current_state, previous_kernel_results, seed):
        first_seed, noise_seed, last_seed = jax.random.split(seed, 3)
        momentum = self._kick(first_seed, current_state, previous_kernel_results.momentum)
        state = self._fly(current_state, momentum)
        kept = jnp.exp(-self.friction * self.step_size)
        thermal = self._thermal(noise_seed, state)
        momentum = jax.tree.map(lambda p, w: kept * p + jnp.sqrt(1 - kept**2) * w, momentum, thermal)
        state = self._fly(state, momentum)
        return state, KernelResults(self._kick(last_seed, state, momentum))


class ChainState(NamedTuple):
    position: Any
    results: Any


@dataclasses.dataclass(frozen=True)
class MassiveLangevin:
    friction: float = 1.0
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        kernel = MassiveLangevinKernel(None, None, self.friction)
        return ChainState(position, kernel.bootstrap_results(position, key))

    def step(self, key, state, step_size, estimator):
        gradient_fn = lambda seed, x: estimator.estimate(seed, (), x)[0].gradient
        kernel = MassiveLangevinKernel(gradient_fn, step_size, self.friction)
        return ChainState(*kernel.one_step(state.position, state.results, key))
