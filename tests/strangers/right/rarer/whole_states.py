"""States as strangers keep them: lists, nested optimisers, raw keys, rings of the last positions, bits, infos beside
the state, positions that are not found by name. The transitions are SGLD (exp(-U) + O(h)) and semi-implicit SGHMC or
BAOAB (exp(-U) N(0, I) + O(h)); nothing else that is carried is read, unless a comment says so."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def gradient(estimator, key, x):
    """Grad U at x."""
    return estimator.estimate(key, (), x)[0].gradient


def normal(key, x):
    """Normal of the shape of x."""
    return jax.random.normal(key, x.shape, x.dtype)


def langevin(key, x, h, estimator):
    """A step of SGLD."""
    a, b = jax.random.split(key)
    return x - h * gradient(estimator, a, x) + jnp.sqrt(2 * h) * normal(b, x)


def hamiltonian(key, x, v, h, estimator):
    """A step of semi-implicit SGHMC with friction 1."""
    a, b = jax.random.split(key)
    v = v - h * (gradient(estimator, a, x) + v) + jnp.sqrt(2 * h) * normal(b, v)
    return x + h * v, v


class ListState:
    """[velocity, position], a list."""

    def init(self, key, position, estimator):
        return [normal(key, position), position]

    def step(self, key, state, h, estimator):
        v, x = state
        x, v = hamiltonian(key, x, v, h, estimator)
        return [v, x]

    def position(self, state):
        return state[1]


class MuNu(NamedTuple):
    count: Any
    mu: Any
    nu: Any


class Trainer(NamedTuple):
    step: Any
    params: Any
    opt_state: MuNu


class OptimiserLike:
    """SGHMC whose momentum sits in a nested optimiser state, with a logged second moment that is never read."""

    def init(self, key, position, estimator):
        return Trainer(0, position, MuNu(jnp.zeros((), jnp.int32), jnp.zeros_like(position), jnp.zeros_like(position)))

    def step(self, key, state, h, estimator):
        count, mu, nu = state.opt_state
        g = gradient(estimator, jax.random.fold_in(key, 1), state.params)
        x, v = hamiltonian(key, state.params, mu, h, estimator)
        return Trainer(state.step + 1, x, MuNu(count + 1, v, 0.9 * nu + 0.1 * g**2))

    def position(self, state):
        return state.params


class RawKey:
    """A raw uint32 key is kept and split; the key of the call is folded in."""

    def init(self, key, position, estimator):
        return {"x": position, "rng": jax.random.key_data(key)}

    def step(self, key, state, h, estimator):
        mine, use = jax.random.split(jax.random.wrap_key_data(state["rng"]))
        both = jax.random.split(jax.random.fold_in(key, jax.random.bits(use)))
        return {"x": langevin(both[0], state["x"], h, estimator), "rng": jax.random.key_data(mine)}

    def position(self, state):
        return state["x"]


class Ring(NamedTuple):
    position: Any
    history: Any
    pointer: Any


class WithHistory:
    """The last four positions in a ring, for diagnostics alone."""

    def init(self, key, position, estimator):
        return Ring(position, jnp.stack([position] * 4), jnp.zeros((), jnp.int32))

    def step(self, key, state, h, estimator):
        x = langevin(key, state.position, h, estimator)
        return Ring(x, state.history.at[state.pointer].set(x), (state.pointer + 1) % 4)

    def position(self, state):
        return state.position


class WithInfo(NamedTuple):
    accepted: Any
    probability: Any


class ReturnsInfo:
    """MALA that returns (state, info)."""

    needs = ("gradient", "potential")

    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state

    def step(self, key, state, h, estimator):
        return mala(key, state, h, estimator)


def mala(key, x, h, estimator):
    """Metropolis-adjusted Langevin: (position, info)."""
    a, b, c, d = jax.random.split(key, 4)
    here, _ = estimator.estimate(a, (), x)
    y = x - h * here.gradient + jnp.sqrt(2 * h) * normal(b, x)
    there, _ = estimator.estimate(c, (), y)
    forward = jnp.sum((y - x + h * here.gradient) ** 2) / (4 * h)
    backward = jnp.sum((x - y + h * there.gradient) ** 2) / (4 * h)
    rate = jnp.minimum(1.0, jnp.exp(here.potential - there.potential + forward - backward))
    accepted = jax.random.uniform(d, dtype=x.dtype) < rate
    return jnp.where(accepted, y, x), WithInfo(accepted, rate)


class InfoInState(NamedTuple):
    position: Any
    info: WithInfo


class KeepsInfo:
    """The same with the info of the last step in the state."""

    def init(self, key, position, estimator):
        return InfoInState(position, WithInfo(jnp.asarray(True), jnp.asarray(1.0, position.dtype)))

    def step(self, key, state, h, estimator):
        return InfoInState(*mala(key, state.position, h, estimator))

    def position(self, state):
        return state.position


class LoggedStep(NamedTuple):
    x: Any
    h: Any
    energy: Any
    nothing: Any = None


class LogsEverything:
    """Step size, energy and an empty field are carried; the position is the first field."""

    def init(self, key, position, estimator):
        return LoggedStep(position, jnp.zeros((), position.dtype), jnp.zeros((), position.dtype))

    def step(self, key, state, h, estimator):
        estimate, _ = estimator.estimate(jax.random.fold_in(key, 7), (), state.x)
        return LoggedStep(langevin(key, state.x, h, estimator), jnp.asarray(h, state.x.dtype), estimate.potential)

    def position(self, state):
        return state.x


class Welford:
    """Running mean and variance, a counter in floating point; the velocity is called m."""

    claims = Claims(Source("", "SGHMC"), StationaryLaw(order=1))

    def init(self, key, position, estimator):
        zero = jnp.zeros_like(position)
        return {"m": normal(key, position), "mean": zero, "n": jnp.zeros((), position.dtype), "s": zero, "x": position}

    def step(self, key, state, h, estimator):
        x, m = hamiltonian(key, state["x"], state["m"], h, estimator)
        n = state["n"] + 1
        mean = state["mean"] + (x - state["mean"]) / n
        s = state["s"] + (x - state["mean"]) * (x - mean)
        return {"m": m, "mean": mean, "n": n, "s": s, "x": x}

    def position(self, state):
        return state["x"]


class Layers:
    """BAOAB on any tree of layers, velocities in a list of leaves."""

    def init(self, key, position, estimator):
        leaves = jax.tree.leaves(position)
        keys = jax.random.split(key, len(leaves))
        return position, [normal(k, leaf) for k, leaf in zip(keys, leaves)]

    def step(self, key, state, h, estimator):
        params, v = state
        leaves, structure = jax.tree.flatten(params)
        a, b, *keys = jax.random.split(key, 2 + len(leaves))
        kick = lambda k, x: jax.tree.leaves(gradient(estimator, k, jax.tree.unflatten(structure, x)))
        v = [p - h / 2 * g for p, g in zip(v, kick(a, leaves))]
        x = [q + h / 2 * p for q, p in zip(leaves, v)]
        c = jnp.exp(-h)
        v = [c * p + jnp.sqrt(1 - c**2) * normal(k, p) for p, k in zip(v, keys)]
        x = [q + h / 2 * p for q, p in zip(x, v)]
        v = [p - h / 2 * g for p, g in zip(v, kick(b, x))]
        return jax.tree.unflatten(structure, x), v

    def position(self, state):
        return state[0]


class Stacked:
    """Position and velocity are the two rows of one array."""

    def init(self, key, position, estimator):
        return jnp.stack([position, normal(key, position)])

    def step(self, key, state, h, estimator):
        return jnp.stack(hamiltonian(key, state[0], state[1], h, estimator))

    def position(self, state):
        return state[0]


class NoiseAhead:
    """The noise of the next step is drawn at the end of this one, as a pipeline does; the state holds it."""

    def init(self, key, position, estimator):
        return {"noise": normal(key, position), "position": position}

    def step(self, key, state, h, estimator):
        a, b = jax.random.split(key)
        x = state["position"]
        x = x - h * gradient(estimator, a, x) + jnp.sqrt(2 * h) * state["noise"]
        return {"noise": normal(b, x), "position": x}

    def position(self, state):
        return state["position"]


class TwoKeys(NamedTuple):
    params: Any
    momentum: Any
    key: Any
    iteration: Any


class OwnStream:
    """SGHMC on a stream of its own: the key of the call only starts it; a typed key and a counter."""

    def init(self, key, position, estimator):
        a, b = jax.random.split(key)
        return TwoKeys(position, normal(a, position), b, 0)

    def step(self, key, state, h, estimator):
        use = jax.random.fold_in(jax.random.fold_in(key, 3), state.iteration)
        x, v = hamiltonian(use, state.params, state.momentum, h, estimator)
        return TwoKeys(x, v, jax.random.split(state.key)[0], state.iteration + 1)

    def position(self, state):
        return state.params


list_state = ListState()
optimiser_like = OptimiserLike()
raw_key = RawKey()
with_history = WithHistory()
returns_info = ReturnsInfo()
keeps_info = KeepsInfo()
logs_everything = LogsEverything()
welford = Welford()
layers = Layers()
stacked = Stacked()
noise_ahead = NoiseAhead()
own_stream = OwnStream()


def _lambda_state(key, state, h, estimator):
    x, *rest = state
    return (langevin(key, x, h, estimator), *rest)


# A tuple with strings' lengths and Python numbers beside the position.
python_numbers = simple_sampler(
    _lambda_state, init=lambda key, position, estimator: (position, 3, 0.5, True), position=lambda state: state[0]
)
