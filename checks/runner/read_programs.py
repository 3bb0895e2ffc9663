"""Samplers in Python as programs of JAX, for sampling: what Python takes hundreds of steps for, those take millions.

A step is read with symbols in place of numbers, all its branches included, and what was read is compared with real
steps to round-off (`checks.proof.hosts`). It then runs on any target whose positions have that shape.
"""

import dataclasses
import functools
from typing import Any

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.proof.hosts.of_sampler import read_on_host
from sgmcmc_verification.checks.proof.potential import any_like
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import is_exact
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.targets.target import Target


@functools.lru_cache(maxsize=64)
def as_program(subject: Subject, target: str) -> Subject | None:
    """The subject with what was read in place of a sampler in Python; None for any other, and for what is not read."""
    law = find_target(target)
    try:
        if not on_host(subject.sampler(law)) or law.terms is not None or not is_exact(subject.estimator(law)):
            return None
        if not (law.manifold.is_linear or law.manifold.is_positive):
            return None
        any_law = any_like(law.example, law.manifold.is_positive)
        read = read_on_host(subject.sampler, Exact(any_law), any_law)
    except RAISED:
        return None

    def build(target: Target, **options: Any) -> Any:
        del target, options  # those that it was read for
        return read

    return dataclasses.replace(subject, row=dataclasses.replace(subject.row, build=build, estimator=Exact))
