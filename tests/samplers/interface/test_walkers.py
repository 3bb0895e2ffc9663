"""What stands beside walkers of a state: part of z unless it follows from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.whole_state import whole_state
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import potential

PLANE = target("gaussian-correlated-2d")
WALKERS = 4


class Stretch:
    """Walkers that move along the lines to their neighbours; `layout` says how the state holds them.

    The energy of a walker that has moved is kept with `noisy` times a normal number.
    """

    def __init__(self, layout, xp=np, noisy=0.0):
        self.layout, self.xp, self.noisy = layout, xp, noisy
        self.backend = "host" if xp is np else "jax"

    def held(self, walkers, energies, gradients):
        if self.layout == "lists":
            return {"x": list(walkers), "u": list(energies), "g": list(gradients)}
        if self.layout == "rows":
            return walkers, energies, gradients
        return {"x": walkers[0], "others": walkers[1:], "u": energies[0], "v": energies[1:], "h": gradients[1:]}

    def read(self, state):
        if self.layout == "lists":
            return tuple(map(self.xp.stack, (state["x"], state["u"], state["g"])))
        if self.layout == "rows":
            return state
        both = lambda first, rest: self.xp.concatenate([first[None], rest])
        return both(state["x"], state["others"]), both(self.xp.asarray(state["u"]), state["v"]), None

    def seen(self, estimator, x):
        found, _ = estimator.estimate(None, (), x)
        return found.potential, found.gradient

    def init(self, key, position, estimator):
        draws = key.normal(size=(WALKERS, 2)) if self.xp is np else jax.random.normal(key, (WALKERS, 2))
        walkers = self.xp.concatenate([position[None], position + draws[1:]])
        seen = [self.seen(estimator, x) for x in walkers]
        return self.held(walkers, self.xp.stack([u for u, _ in seen]), self.xp.stack([g for _, g in seen]))

    def position(self, state):
        return state["x"] if self.layout == "apart" else self.read(state)[0][0]

    def step(self, key, state, step_size, estimator):
        walkers, energies, _ = self.read(state)
        if self.xp is np:
            noise, coins = key.normal(size=(WALKERS, 2)), key.random(WALKERS)
        else:
            first, second = jax.random.split(key)
            noise, coins = jax.random.normal(first, (WALKERS, 2)), jax.random.uniform(second, (WALKERS,))
        proposed = walkers + 0.3 * (self.xp.roll(walkers, 1, axis=0) - walkers) + self.xp.sqrt(step_size) * noise
        potentials = self.xp.stack([self.seen(estimator, x)[0] for x in proposed])
        taken = self.xp.log(coins) < energies - potentials
        walkers = self.xp.where(taken[:, None], proposed, walkers)
        energies = self.xp.where(taken, potentials + self.noisy * noise[:, 0], energies)
        return self.held(walkers, energies, self.xp.stack([self.seen(estimator, x)[1] for x in walkers]))


def found_of(candidate):
    sampler, host = complete(candidate), candidate.xp is np
    make_key = np.random.default_rng if host else jax.random.key
    start = sampler.init(make_key(0), candidate.xp.asarray(PLANE.example), Exact(PLANE))
    return start, whole_state(sampler, start, Exact(PLANE), 1.0, make_key)


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("layout", ["lists", "rows", "apart"])
def test_energies_of_walkers_are_made_anew_from_them(layout, xp):
    candidate = Stretch(layout, xp)
    start, found = found_of(candidate)
    z = found.unpack(start)
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(z)) == WALKERS * 2
    moved = jax.tree.map(lambda leaf: leaf + 0.5, z)
    key = np.random.default_rng(1) if xp is np else jax.random.key(1)
    walkers, energies, _ = candidate.read(found.pack(key, moved, Exact(PLANE)))
    assert np.allclose(walkers, candidate.read(start)[0] + 0.5)
    assert np.allclose(energies, [potential(Exact(PLANE), jnp.asarray(x)) for x in walkers])


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_energies_that_do_not_follow_are_part_of_z(layout, xp):
    start, found = found_of(Stretch(layout, xp, noisy=0.1))
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(found.unpack(start))) == WALKERS * (2 + 1)
