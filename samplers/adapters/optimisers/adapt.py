"""An optimiser of torch or optax as a function of a Target that returns a sampler, with the sentence about it."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign, load, sgld_claims
from sgmcmc_verification.samplers.adapters.optimisers.arguments import Arguments, split
from sgmcmc_verification.samplers.adapters.optimisers.convention import Convention, solve
from sgmcmc_verification.samplers.adapters.optimisers.reading import GRADIENT, POSITION, SAME, Probe
from sgmcmc_verification.samplers.adapters.optimisers.sentence import sentence
from sgmcmc_verification.samplers.interface.aliases import Options
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target

Builder = Callable[..., Sampler]


class Adapted(NamedTuple):
    """Builder of the sampler on a target, the convention that was read, and that in words."""

    build: Builder
    found: Convention
    sentence: str


def of_torch(reference: str, value: Foreign, options: Options) -> Adapted:
    """Adapt a class of optimisers.

    Args:
        reference: for messages.
        value: the class.
        options: of its constructor, and of the law.

    Raises:
        MissingLibrary: without torch.
        Refused: if it is no such class, or an option is wrong.
        Unintercepted: if it draws what cannot be read.
        Exception: whatever the optimiser raises.
    """
    load("torch")
    from sgmcmc_verification.samplers.adapters.optimisers import torch_class, torch_reading
    from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import Optimiser, check_class

    kind = check_class(reference, value)
    arguments = split(reference, kind, options, 1)
    probe = torch_reading.TorchProbe(kind, arguments.name)
    arguments = _past_burn_in(probe, arguments)
    rate, given = arguments.rate, arguments.given
    found = solve(probe, rate, arguments.values, arguments.asked, given)
    optimiser = Optimiser(kind, arguments.name, given)
    second, of_second = torch_reading.second_group(probe, found, optimiser), found
    if second is not None:
        own = second.second
        of_second = solve(probe, found.rate, {**arguments.values, **own}, arguments.asked, {**given, **own})
    found = dataclasses.replace(
        found,
        frozen=torch_reading.reseeds(probe, rate, given),
        schedule=torch_reading.schedule_of(probe, rate, given),
        alike=torch_reading.treats_alike(probe, rate, given),
        apart=second is None,
        idle=torch_reading.without_gradient(probe, found.rate, given),
        burn_in=arguments.burn_in,
    )
    entries = torch_reading.entries_of(probe, rate, given)
    elementwise = (
        found.reading.independent
        and found.alike
        and not entries.scalars
        and torch_reading.moves_matrices_as_vectors(probe, found.rate, given)
    )
    sampler: Foreign = torch_class.ElementwiseSampler if elementwise else torch_class.OptimiserSampler

    def build(target: Target, scheduled: bool = False, grouped: bool = False) -> Sampler:
        claims = claims_of(found, bool(entries.remembered) or found.reading.gradients > 1 or grouped)
        priors = (found.second_derivative, of_second.second_derivative)[: 1 + grouped]
        chosen = dataclasses.replace(second if second and grouped else optimiser, scheduled=scheduled)
        return sampler(target, chosen, found.rate_of, found.scale, priors, claims, entries, found.frozen)

    # what a scheduler changes in part, and groups that do not move apart, are options, whose law is judged
    in_part = found.schedule == "in part"
    offered: dict[tuple[bool, bool], Builder] = {
        (False, False): lambda target: build(target),
        (True, False): lambda target, scheduled=False: build(target, scheduled=scheduled),
        (False, True): lambda target, grouped=False: build(target, grouped=grouped),
        (True, True): build,
    }
    return Adapted(offered[in_part, second is not None], found, sentence(found))


def _past_burn_in(probe: Probe, arguments: Arguments) -> Arguments:
    """The arguments without a burn-in, where an optimiser takes steps without one."""
    if not arguments.burn_in:
        return arguments
    without = arguments.without_burn_in()
    try:
        memory = probe.start(arguments.rate, without.given)
        after, memory, _ = probe.step(memory, POSITION, GRADIENT, lambda _: 1.0)
        after, _, _ = probe.step(memory, after, GRADIENT, lambda _: 1.0)
    except Exception:
        return arguments._replace(burn_in="")
    return without if np.all(np.isfinite(after)) else arguments._replace(burn_in="")


def of_optax(reference: str, value: Foreign, options: Options) -> Adapted:
    """Adapt a function of a learning rate that returns a transformation of gradients; otherwise as `of_torch`."""
    load("optax")
    from sgmcmc_verification.samplers.adapters.optimisers import optax_function as optax

    function = optax.check_function(reference, value)
    arguments = split(reference, function, options, 0)
    probe = optax.OptaxProbe(function, arguments.name)
    arguments = _past_burn_in(probe, arguments)
    found = solve(probe, arguments.rate, arguments.values, arguments.asked, arguments.given)
    transformation = optax.Transformation(function, arguments.name, arguments.given)
    keys = optax.keys_of(transformation, arguments.rate)
    found = dataclasses.replace(
        found,
        frozen=bool(found.reading.draws) and keys == "kept",
        schedule=optax.schedule_of(probe, found.rate, arguments.given),
        burn_in=arguments.burn_in,
    )

    def build(target: Target, scheduled: bool = False) -> Sampler:
        chosen = dataclasses.replace(transformation, scheduled=scheduled)
        claims = claims_of(found, abs(found.reading.ratio) > SAME)
        return optax.optax_sampler(chosen, found.rate_of, found.scale, found.second_derivative, claims, keys)

    # a schedule that changes a part of the step is an option, whose law is judged
    builder = build if found.schedule == "in part" else lambda target: build(target)
    return Adapted(builder, found, sentence(found))


def claims_of(found: Convention, remembers: bool) -> Claims:
    """The claims of SGLD for a step without memory, else a law alone."""
    reading = found.reading
    if reading.linear and reading.even_noise and not remembers:
        return sgld_claims(found.claimed)
    source = Source("welling2011bayesian", "equation (4)")
    return Claims(
        source, StationaryLaw(order=1, temperature=found.claimed), Composite(), conditions=("exact gradient",)
    )
