"""Samplers in Python as programs of JAX, for sampling: what Python takes hundreds of steps for, those take millions.

A step is run on symbols in place of numbers, all its branches included, and what JAX records of it is compared with
real steps to round-off (`checks.proof.hosts`): with the same draws, or, of a step that torch takes, as it is read for a
proof.
"""

import dataclasses
import functools
from typing import Any

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.of_sampler import read_on_host
from sgmcmc_verification.checks.proof.hosts.recorded import Recorded
from sgmcmc_verification.checks.proof.hosts.replay import replayed
from sgmcmc_verification.checks.proof.hosts.tensors import is_of_torch
from sgmcmc_verification.checks.proof.potential import any_like
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import is_exact
from sgmcmc_verification.samplers.interface.capabilities import MappedSampler, on_host
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target

AS_READ = "of its steps as they were read"
"""What is added to the reason of a result about a program in place of a sampler in Python."""


def _of_torch(subject: Subject, law: Target) -> Sampler:
    """The record of a sampler of torch. Raises Unreadable."""
    if law.terms is not None or not (law.manifold.is_linear or law.manifold.is_positive):
        raise Unreadable("a sampler of torch on data, or on another space")
    any_law = any_like(law.example, law.manifold.is_positive)
    return read_on_host(subject.sampler, Exact(any_law), any_law)


def as_read(result: Result) -> Result:
    """A result about a program in place of a sampler in Python, which says so."""
    return dataclasses.replace(result, reason=f"{result.reason} ({AS_READ})", backend="host")


def _read(subject: Subject, law: Target) -> Sampler | Recorded:
    """The program of a sampler in Python on one target. Raises Unreadable, or what the sampler raises."""
    sampler = subject.sampler(law)
    if not on_host(sampler) or isinstance(sampler, MappedSampler) or not is_exact(subject.estimator(law)):
        raise Unreadable("a program already, or one that is given its data in parts")
    return _of_torch(subject, law) if is_of_torch(sampler) else replayed(sampler, law, subject.step_size(law))


@functools.lru_cache(maxsize=64)
def as_program(subject: Subject, target: str) -> Subject | None:
    """The subject with what was read in place of a sampler in Python; None for any other, and for what is not read.

    On another target than this one it is read anew, or raises OutOfReach.
    """
    try:
        read = _read(subject, find_target(target))
    except RAISED:
        return None

    def build(law: Target, **options: Any) -> Any:
        del options  # those of the subject, at which it is read
        if law.name == target:
            return read
        try:
            return _read(subject, law)
        except RAISED as reason:
            raise OutOfReach(f"the step is not read on {law.name}: {one_line(reason)}") from None

    return dataclasses.replace(subject, row=dataclasses.replace(subject.row, build=build, estimator=Exact))
