"""A sampler of a part of a position, as a sampler of that part: what it is given, and where it fits.

Oracle: derivatives of U_part(part + mean(r - r_0)) + |r - r_0|^2 / 2 by automatic differentiation.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise
from sgmcmc_verification.samplers.interface.claims import Moves
from sgmcmc_verification.samplers.interface.part import Lifted, NoSuchPart, embedding
from sgmcmc_verification.targets.registry import target

LAW = target("gaussian-correlated-2d")
TREE = target("gaussian-pytree")
WHOLES = {
    "mask": (LAW, lambda part: jnp.zeros(5).at[jnp.array([3, 1])].set(part)),
    "leaf": (LAW, lambda part: {"body": jnp.zeros((2, 2)), "last": part}),
    "tree": (TREE, lambda part: (part, jnp.zeros(3))),
}


def flat(tree):
    return jax.flatten_util.ravel_pytree(tree)[0]


@pytest.mark.parametrize("name", sorted(WHOLES))
def test_estimates_are_derivatives_of_the_potential_of_the_whole(name):
    law, whole = WHOLES[name]
    where = embedding(Moves(whole), law.example, host=False)
    rest = where.join(jax.tree.map(jnp.zeros_like, law.example))

    def potential(position):
        part, _ = where.split(position)
        difference = flat(position) - flat(rest)
        kept = flat(whole(jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), law.example)))
        r = jnp.where(jnp.isnan(kept), 0, difference)
        shift = jnp.sum(r) / jnp.sum(~jnp.isnan(kept))
        return law.potential(jax.tree.map(lambda x: x + shift, part)) + jnp.sum(r**2) / 2

    point = jax.tree.map(lambda x: x + 0.3 * jnp.cos(1.0 + jnp.arange(x.size)).reshape(x.shape), rest)
    found, _ = Lifted(Exact(law), where, "jax").estimate(jax.random.key(0), (), point)
    value, gradient = jax.value_and_grad(potential)(point)
    np.testing.assert_allclose(found.potential, value, rtol=1e-13)
    np.testing.assert_allclose(flat(found.gradient), flat(gradient), rtol=1e-12, atol=1e-13)
    slope = jax.jacobian(lambda x: flat(where.seen(*where.split(x))))(point)
    rows = [np.reshape(leaf, (law.size, -1)) for leaf in jax.tree.leaves(slope)]
    np.testing.assert_allclose(where.jacobian(), np.concatenate(rows, axis=1), atol=1e-15)


def test_the_covariance_is_that_of_the_lifted_noise():
    law, whole = WHOLES["mask"]
    where = embedding(Moves(whole), law.example, host=False)
    noise = KnownNoise(law, np.array([[2.0, 0.3], [0.3, 1.0]]))
    position = where.join(law.example)
    found, _ = Lifted(noise, where, "jax").estimate(jax.random.key(0), (), position)
    np.testing.assert_allclose(found.covariance[np.ix_([3, 1], [3, 1])], noise.covariance)
    np.testing.assert_allclose(found.covariance[0, 3], (2.0 + 0.3) / 3)


@pytest.mark.parametrize("host", [False, True], ids=["jax", "host"])
def test_parts_come_back_and_the_rest_is_measured(host):
    make = np if host else jnp
    whole = lambda part: {"a": make.concatenate([make.zeros(2), part]), "b": make.zeros(())}
    where = embedding(Moves(whole), LAW.example, host)
    part = make.asarray([0.7, -1.2])
    position = where.join(part)
    back, rests = where.split(position)
    np.testing.assert_array_equal(back, part)
    assert [rest.shape for rest in rests] == [(2,), (1,)]
    assert not np.any(np.concatenate(rests))
    position["b"] = position["b"] + 0.5
    np.testing.assert_allclose(np.concatenate(where.split(position)[1]), [0, 0, 0.5], atol=1e-15)
    assert np.all(np.abs(flat(jax.tree.map(jnp.asarray, position)))[:2] >= 0.5)  # a rest that is read as zero is seen


@pytest.mark.parametrize(
    ("whole", "error", "match"),
    [
        (lambda part: jnp.zeros(3).at[jnp.arange(3)].set(part), NoSuchPart, "no position"),
        (lambda part: jnp.append(part[:1], 0.0), NoSuchPart, "each number"),
        (lambda part: jnp.append(2 * part + 1, 0.0), ValueError, "as they are"),
        (lambda part: part, ValueError, "nothing beside"),
    ],
    ids=["size", "missing", "changed", "all"],
)
def test_a_part_that_does_not_fit_is_refused(whole, error, match):
    with pytest.raises(error, match=match):
        embedding(Moves(whole), LAW.example, host=False)
