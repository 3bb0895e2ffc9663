"""A host sampler as one that can be read, or the reason why it cannot."""

from collections.abc import Callable
from typing import Any

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.guard import require_nothing_kept, require_same_step, stand_in
from sgmcmc_verification.checks.proof.hosts.hidden import modules_of
from sgmcmc_verification.checks.proof.hosts.recorded import Recorded
from sgmcmc_verification.checks.proof.hosts.tensors import RecordedTorch, is_of_torch, modules_of_torch
from sgmcmc_verification.checks.proof.traced import Traced
from sgmcmc_verification.samplers.estimators.host import is_exact
from sgmcmc_verification.samplers.interface.capabilities import IsolatedSampler, on_host
from sgmcmc_verification.samplers.interface.claims import ParticleLaw
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


def read_on_host(build: Callable[[Target], Sampler], estimator: Estimator, target: Target) -> Sampler:
    """The record of a host sampler, which was compared with real steps of it.

    Args:
        build: target -> a sampler with `backend == "host"`.
        estimator: of its gradients.
        target: with an uninterpreted potential.

    Raises:
        Unreadable: if it cannot be read, or does something else than what was read.
    """
    gate: list[bool] = []
    sampler = build(stand_in(target, gate))
    gate.append(True)
    if isinstance(sampler, IsolatedSampler):
        raise Unreadable("a sampler in another process")
    if isinstance(sampler.claims.law, ParticleLaw):
        raise Unreadable("interacting particles outside of JAX")
    if "statistics" in sampler.needs and not {"gradient", "potential"} & sampler.needs:
        raise Unreadable("a sampler of the law of its own data, which asks for no potential")
    if on_host(estimator) and not is_exact(estimator):
        raise Unreadable("an estimator outside of JAX other than the exact gradient")
    require_nothing_kept(sampler, target)
    torch = is_of_torch(sampler)
    modules = modules_of(sampler) + (modules_of_torch(sampler) if torch else [])
    modules = list({id(module): module for module in modules}.values())
    record: Any = (RecordedTorch if torch else Recorded)(sampler, modules)
    require_same_step(sampler, Traced.of(record, estimator, target), target, torch)
    return record
