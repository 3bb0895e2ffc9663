"""Class 31: schedules whose numbers are not in the program, and counts that are kept where no state is."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _sgld(key, x, h, estimator, scale):
    k1, k2 = jax.random.split(key)
    return x - h * grad(estimator, k1, x) + scale * jnp.sqrt(2 * h) * _normal(k2, x)


class Scheduled(NamedTuple):
    position: Any
    count: Any
    period: Any
    on: Any


def _injected_init(key, x, estimator):
    # as optax.inject_hyperparams does: the numbers of the schedule are part of the state
    return Scheduled(x, jnp.zeros((), jnp.int32), jnp.asarray(50_021, jnp.int32), jnp.asarray(45_000, jnp.int32))


def _injected_step(key, s, h, estimator):
    hot = s.count % s.period >= s.on
    x = _sgld(key, s.position, h, estimator, jnp.where(hot, 10.0, 1.0))
    return s._replace(position=x, count=s.count + 1)


# Exploration: ten times the noise in the last tenth of every 50,021 steps, with both numbers in the state.
schedule_in_state = simple_sampler(_injected_step, init=_injected_init, position=lambda s: s.position)


class Counted(NamedTuple):
    position: Any
    count: Any


def _counted(scale):
    def step(key, s, h, estimator):
        return Counted(_sgld(key, s.position, h, estimator, scale(s.count)), s.count + 1)

    return simple_sampler(
        step, init=lambda key, x, e: Counted(x, jnp.zeros((), jnp.int32)), position=lambda s: s.position
    )


_TABLE = jnp.asarray([0.0 if 26 <= epoch < 38 else 1.0 for epoch in range(64)])

# A table of 64 epochs of 1000 steps each; twelve of them descend without noise.
tabulated_schedule = _counted(lambda n: _TABLE[n // 1000 % 64])

# The count is read as a clock of seconds, and from eight in the evening to midnight there is no noise.
at_night = _counted(lambda n: jnp.where(n // 60 // 60 % 24 >= 20, 0.0, 1.0))


def _host_grad(estimator, rng, x):
    return np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient, x.dtype)


class _Host:
    """SGLD in NumPy with noise multiplied by `scale()`."""

    backend = "host"

    def init(self, rng, position, estimator):
        return np.array(position, copy=True)

    def step(self, rng, x, step_size, estimator):
        noise = np.sqrt(2 * step_size) * self.scale() * rng.standard_normal(x.shape)
        return x - step_size * _host_grad(estimator, rng, x) + noise


@dataclass
class FloatCount(_Host):
    """Counts steps as a float; after 3000 of them the noise is halved."""

    done: float = field(default=0.0, init=False)

    def scale(self):
        self.done += 1.0
        return 1.0 if self.done <= 3e3 else 0.5


class ClassCount(_Host):
    """Counts steps of all samplers of the class; after 3000 of them the noise is halved."""

    count: ClassVar[int] = 0

    def scale(self):
        type(self).count += 1
        return 1.0 if type(self).count <= 3000 else 0.5


@dataclass
class ListCount(_Host):
    """Keeps a history, and halves the noise once it is 3000 steps long."""

    history: list = field(default_factory=list, init=False)

    def scale(self):
        self.history.append(len(self.history))
        return 1.0 if len(self.history) <= 3000 else 0.5


@dataclass
class Window(_Host):
    """Keeps the last 2000 steps, and halves the noise while the window is full."""

    window: deque = field(default_factory=lambda: deque(maxlen=2000), init=False)

    def scale(self):
        self.window.append(0)
        return 0.5 if len(self.window) == self.window.maxlen else 1.0


# A float attribute counts the steps: T = 1/4 from the 3000th on.
host_float_count = FloatCount()

# An attribute of the class counts the steps of all of its objects: T = 1/4 from the 3000th on.
host_class_count = ClassCount()

# The length of a history is the clock: T = 1/4 from the 3000th step on.
host_list_count = ListCount()

# A window that fills up is the clock: T = 1/4 from the 2000th step on.
host_window = Window()
