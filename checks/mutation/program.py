"""The program that a step is: traced, printed and compared, to tell whether a change of its source changes anything."""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.noisy_gradient import with_noise
from sgmcmc_verification.checks.core.precision import in_dtype
from sgmcmc_verification.checks.core.selection import structured_targets, wide
from sgmcmc_verification.checks.core.start_position import start_position
from sgmcmc_verification.checks.runner.execute import cached_target
from sgmcmc_verification.checks.tiers.contract.interface import Shifted
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.targets.target import Target

PREFERRED = ("gaussian-correlated-2d",)
BATCH = 2
"""Data in a batch where the estimator of a row takes all of them."""


class Setting(NamedTuple):
    """Options, the name of a target, whether the gradient is noisy (by minibatches where it can), the precision."""

    options: Mapping[str, Any]
    target: str
    noisy: bool = False
    single: bool = False

    def subject(self, row: Row) -> Subject:
        """The sampler of a row at these options with this estimator."""
        subject, target = Subject(row, dict(self.options)), cached_target(self.target)
        if not self.noisy:
            return subject
        own: Any = row.estimator  # of dataclasses, where they have a batch size
        if (getattr(own(target), "batch_size", None) or 0) <= BATCH:
            return with_noise(subject, target)
        smaller = lambda t: dataclasses.replace(own(t), batch_size=BATCH)
        return Subject(dataclasses.replace(row, estimator=smaller), subject.options)


def main_target(row: Row) -> str:
    """A target of the row of more than one dimension if it has one, else the first."""
    return next((name for name in PREFERRED if name in row.targets), row.targets[0])


@lru_cache(maxsize=64)
def settings(row: Row) -> tuple[Setting, ...]:
    """The defaults and every variant on the main target, the defaults on one with several leaves and with noise."""
    name = main_target(row)
    none: Mapping[str, Any] = {}
    every = [Setting(none, name), *(Setting(v, name) for v in row.variants)]
    every += [Setting(none, other) for other in structured_targets(Subject(row)) if other != name]
    noisy = Setting(none, name, noisy=True)
    if noisy.subject(row).row.estimator is not row.estimator:
        every.append(noisy)
    return tuple(every)


def further_settings(row: Row) -> tuple[Setting, ...]:
    """Settings of changes that show at none of `settings`: matrices, and single precision."""
    none: Mapping[str, Any] = {}
    return (*(Setting(none, name) for name in wide(Subject(row))[:1]), Setting(none, main_target(row), single=True))


def start(sampler: Any, target: Target, estimator: Any) -> Any:
    """A state of `init`."""
    generator = np.random.default_rng(0) if sampler.backend == "host" else jax.random.key(0)
    return sampler.init(generator, start_position(sampler, target), estimator)


def trace(row: Row, setting: Setting) -> Any:
    """Run (host) or trace one step and the reading of the position; the jaxpr, or the numbers of a host step."""
    subject, target = setting.subject(row), cached_target(setting.target)
    if setting.single:
        target = in_dtype(target, jnp.float32)
    sampler, estimator = subject.sampler(target), subject.estimator(target)
    state = start(sampler, target, estimator)
    h = subject.step_size(target)

    def move(key: jax.Array, state: Any, h: jax.Array):
        new = sampler.step(key, state, h, estimator)
        return new, sampler.position(new)

    if sampler.backend == "host":
        seen: list[np.ndarray] = []
        # with other gradients or counts too: those of the row may be zero
        for used in (estimator, Shifted(estimator, 0.731)):
            new = sampler.step(np.random.default_rng(1), start(sampler, target, estimator), h, used)
            found = (getattr(new, "__dict__", new), sampler.position(new))
            seen += [np.asarray(leaf) for leaf in jax.tree.leaves(found)]
        return seen
    return jax.make_jaxpr(move)(jax.random.key(1), state, jnp.asarray(h, jnp.float32 if setting.single else None))


def fingerprint(row: Row, setting: Setting) -> str:
    """The same text for the same traced program: variables are named in order, addresses are taken out."""
    traced = trace(row, setting)
    if isinstance(traced, list):
        text = "".join(repr(leaf.tolist()) for leaf in traced)
    else:
        text = re.sub(r"0x[0-9a-f]+", "", str(traced)) + "".join(_constant(c) for c in traced.consts)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _constant(value: Any) -> str:
    if jnp.issubdtype(jax.typeof(value).dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    return repr(np.asarray(value).tolist())
