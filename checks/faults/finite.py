"""Planted bugs of samplers on finite sets of states."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.finite.common import values_of
from sgmcmc_verification.samplers.finite.gibbs import Gibbs
from sgmcmc_verification.samplers.finite.gibbs_with_gradients import GibbsWithGradients
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.interface.metropolis import accept
from sgmcmc_verification.samplers.underdamped.hmc import MetropolisState, potential_of


class HalfTheField(Gibbs):
    """The law of a spin given the others without the factor 2 of a flip from -1 to 1."""

    def renewed(self, key, state, site, estimator):
        return Gibbs(self.values, 2 * self.temperature).renewed(key, state, site, estimator)


class AllAtOnce(Gibbs):
    """All sites at once are given values by their laws given the others as they were."""

    def step(self, key, state, step_size, estimator):
        sites = range(state.position.size)
        keys = jax.random.split(key, len(sites))
        new = [self.renewed(keys[i], state, jnp.asarray(i), estimator).position[i] for i in sites]
        return PositionState(jnp.stack(new), state.estate)


class LastSiteLeftOut(Gibbs):
    """The number of a site is drawn from 0 .. n - 2."""

    def step(self, key, state, step_size, estimator):
        site_key, renew_key = jax.random.split(key)
        site = jax.random.randint(site_key, (), 0, state.position.size - 1)
        return self.renewed(renew_key, state, site, estimator)


class InOrder(Gibbs):
    """The sites one after the other: the law is kept, and is not in balance with its step."""

    def step(self, key, state, step_size, estimator):
        for i, site_key in enumerate(jax.random.split(key, state.position.size)):
            state = self.renewed(site_key, state, jnp.asarray(i), estimator)
        return state


class NoRatioOfProposals(GibbsWithGradients):
    """Accepted with min(1, exp(U(x) - U(y))), as if the proposal were symmetric."""

    def step(self, key, state, step_size, estimator):
        flip_key, gradient_key, accept_key = jax.random.split(key, 3)
        logits = self.log_proposal(state.position, state.gradient)
        site, value = jnp.divmod(jax.random.categorical(flip_key, logits.ravel()), len(self.values))
        y = state.position.at[site].set(jnp.asarray(self.values)[value])
        estimate, estate = estimator.estimate(gradient_key, state.estate, y)
        end = MetropolisState(y, potential_of(estimate), estimate.gradient, estate)
        return accept(accept_key, (state.potential - end.potential) / self.temperature, end, state)


def _of_values(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda target, **options: method(values_of(target), **options)


STATIONARY = "sum_x pi(x) P(x, y) = pi(y) for every state y"
REACHED = "P^n(x, y) > 0 for all states x, y and all large n"
BALANCE = "pi(x) P(x, y) = pi(y) P(y, x)"

DEFECTS: tuple[Defect, ...] = (
    planted(
        "gibbs-half-the-field",
        "gibbs",
        _of_values(HalfTheField),
        "the law of a spin at twice the temperature: 1 / (1 + exp(-f)) in place of 1 / (1 + exp(-2 f)), f the field",
        Kill("stationary_on_states", "ising-3x3", STATIONARY),
        "finite",
    ),
    planted(
        "gibbs-all-at-once",
        "gibbs",
        _of_values(AllAtOnce),
        "all sites are given values at once, from the others as they were",
        Kill("stationary_on_states", "potts-3", STATIONARY),
        "finite",
        "stages",
    ),
    planted(
        "gibbs-last-site-left-out",
        "gibbs",
        _of_values(LastSiteLeftOut),
        "the number of a site from 0 .. n - 2: the last one keeps its value for ever",
        Kill("every_state_reached", "ising-3x3", REACHED),
        "finite",
        "state",
    ),
    planted(
        "gibbs-in-order",
        "gibbs",
        _of_values(InOrder),
        "a sweep in a fixed order, which is claimed to be reversible",
        Kill("balance_on_states", "potts-3", BALANCE),
        "finite",
        "claims",
    ),
    planted(
        "gibbs-with-gradients-no-ratio",
        "gibbs-with-gradients",
        _of_values(NoRatioOfProposals),
        "the ratio of the proposals is missing: min(1, exp(U(x) - U(y)))",
        Kill("stationary_on_states", "ising-3x3", STATIONARY),
        "finite",
        "metropolis",
    ),
)
