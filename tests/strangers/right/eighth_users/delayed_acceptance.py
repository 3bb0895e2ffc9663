"""Delayed acceptance (Christen and Fox, 2005): a quadratic surrogate, anchored where the run starts, screens a walk."""
import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

CURVATURE = 0.25


def surrogate(state, q):
    shift = q - state["anchor"]
    return jnp.sum(state["slope"] * shift) + CURVATURE / 2 * jnp.sum(shift**2)


class DelayedAcceptance:
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        value = estimator.estimate(key, (), position)[0]
        return {"position": position, "energy": value.potential, "anchor": position, "slope": value.gradient}

    def step(self, key, state, step_size, estimator):
        move, screen, batch, final = jax.random.split(key, 4)
        x = state["position"]
        y = x + jnp.sqrt(2 * step_size).astype(x.dtype) * jax.random.normal(move, x.shape, x.dtype)
        cheap = surrogate(state, x) - surrogate(state, y)

        def second_stage(_):
            u_y = estimator.estimate(batch, (), y)[0].potential
            ok = jnp.log(jax.random.uniform(final, dtype=x.dtype)) < state["energy"] - u_y - cheap
            return jnp.where(ok, y, x), jnp.where(ok, u_y, state["energy"])

        promoted = jnp.log(jax.random.uniform(screen, dtype=x.dtype)) < cheap
        position, energy = jax.lax.cond(promoted, second_stage, lambda _: (x, state["energy"]), None)
        return {**state, "position": position, "energy": energy}
