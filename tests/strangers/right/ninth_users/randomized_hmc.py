"""HMC with a random number of leapfrog steps ("randomised HMC", Bou-Rabee and Sanz-Serna 2017, with a Metropolis test).

    p ~ N(0, I),   n = 1 + min(floor(E m), cap),  E ~ Exp(1) (so that n - 1 is geometric, cut off),
    (y, q) = leapfrog^n(x, p),   accepted with min(1, exp(H(x, p) - H(y, q)))

Right: n does not depend on (x, p), so that the kernel is a mixture of HMC kernels, each of which is reversible for exp(-U):
leapfrog^n preserves volume and is reversed by p -> -p.  Exact at every step size.        Object: hmc (an instance of RandomizedHMC)
"""
import dataclasses

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

tree_map = jax.tree.map


def tree_dot(a, b):
    return sum(jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))


@dataclasses.dataclass(frozen=True)
class RandomizedHMC:
    mean_steps: float = 4.0
    cap: int = 24

    claims = Claims(Source("", "own"), ExactLaw())

    def step(self, key, position, step_size, estimator):
        key_p, key_n, key_a, key_e = jax.random.split(key, 4)
        leaves, treedef = jax.tree.flatten(position)
        dtype = leaves[0].dtype
        normals = [
            jax.random.normal(jax.random.fold_in(key_p, i), leaf.shape, leaf.dtype) for i, leaf in enumerate(leaves)
        ]
        p = treedef.unflatten(normals)
        n = 1 + jnp.minimum(jnp.floor(jax.random.exponential(key_n) * self.mean_steps).astype(int), self.cap)

        def energy_and_force(x):
            out, _ = estimator.estimate(key_e, (), x)
            return out.potential, out.gradient

        def half_kick(p, g):
            return tree_map(lambda a, b: a - (step_size / 2 * b).astype(a.dtype), p, g)

        def body(_, carry):
            x, p, _, g = carry
            p = half_kick(p, g)
            x = tree_map(lambda a, b: a + (step_size * b).astype(a.dtype), x, p)
            u, g = energy_and_force(x)
            return x, half_kick(p, g), u, g

        u0, g0 = energy_and_force(position)
        y, q, u1, _ = jax.lax.fori_loop(0, n, body, (position, p, u0, g0))
        log_ratio = u0 - u1 + (tree_dot(p, p) - tree_dot(q, q)) / 2
        ok = jnp.log(jax.random.uniform(key_a, (), dtype)) < log_ratio
        return tree_map(lambda new, old: jnp.where(ok, new, old), y, position)


hmc = RandomizedHMC()
