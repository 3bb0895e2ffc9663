"""An optimiser of torch or optax as a function of a Target that returns a sampler, with the sentence about it."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from sgmcmc_verification.samplers.adapters.common import Foreign, load, sgld_claims
from sgmcmc_verification.samplers.adapters.optimisers.arguments import Arguments, split
from sgmcmc_verification.samplers.adapters.optimisers.convention import Convention, solve
from sgmcmc_verification.samplers.adapters.optimisers.reading import SAME, Probe, takes
from sgmcmc_verification.samplers.adapters.optimisers.sentence import sentence
from sgmcmc_verification.samplers.adapters.optimisers.varied import convention_at, varied
from sgmcmc_verification.samplers.interface.aliases import Options
from sgmcmc_verification.samplers.interface.claims import Claims, Composite, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.sampler import Sampler
from sgmcmc_verification.targets.target import Target

Builder = Callable[..., Sampler]
Chosen = tuple[tuple[str, Foreign], ...]
"""Options and their values."""
BURN_IN = 8
"""Steps of a burn-in that is tried where none is given."""


class Adapted(NamedTuple):
    """Builder of the sampler on a target, the convention that was read, that in words, and what is not examined."""

    build: Builder
    found: Convention
    sentence: str
    notes: tuple[str, ...] = ()


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
    from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import Optimiser, check_class, needs_closure

    kind = check_class(reference, value)
    arguments = split(reference, kind, options, 1)
    probe = torch_reading.TorchProbe(kind, arguments.name, arguments.burn_in)
    arguments, lengths = _burn_ins(probe, arguments)
    rate, given = arguments.rate, arguments.given
    found = solve(probe, rate, arguments.values, arguments.asked, given)
    second = torch_reading.second_group(probe, found, probe.optimiser(given))
    others = varied(probe, found, arguments)
    found = dataclasses.replace(
        found,
        returns=torch_reading.return_of(probe, rate, given),
        schedule=torch_reading.schedule_of(probe, rate, given),
        apart=second is None,
        idle=torch_reading.without_gradient(probe, found.rate, given),
        burn_in=arguments.burn_in,
        moved=others.moved,
        alike=torch_reading.treats_alike(probe, rate, given),
    )

    @functools.cache
    def at(chosen: Chosen) -> tuple[Convention, Convention, torch_reading.Entries, Foreign]:
        """The conventions of both groups, the entries that are kept and the class of the sampler at some options."""
        own = dict(chosen)
        made_with = {**given, **own}
        there = beside = convention_at(probe, found, arguments, own)
        if second is not None:
            values, group = {**arguments.values, **own, **second.second}, {**made_with, **second.second}
            beside = solve(probe, there.rate, values, arguments.asked, group)
        alike = torch_reading.treats_alike(probe, rate, made_with) if own else found.alike
        entries = torch_reading.entries_of(probe, rate, made_with, there.reading.turn)
        elementwise = (
            there.reading.independent
            and alike
            and not entries.scalars
            and torch_reading.moves_matrices_as_vectors(probe, there.rate, made_with)
        )
        return there, beside, entries, torch_class.ElementwiseSampler if elementwise else torch_class.OptimiserSampler

    def build(target: Target, *, scheduled: bool = False, grouped: bool = False, **chosen: Foreign) -> Sampler:
        there, beside, entries, sampler = at(tuple(chosen.items()))
        turn, renewed = there.reading.turn, False
        if turn > 1 and there.reading.uniform and not entries.remembered:  # nothing but the number of a step
            turn, renewed = 1, True
        claims = claims_of(there, bool(entries.remembered) or there.reading.gradients > 1 or turn > 1 or grouped)
        priors = (there.second_derivative, beside.second_derivative)[: 1 + grouped]
        own = second.second if second and grouped else {}
        made_with = {**given, **chosen}
        optimiser = Optimiser(kind, arguments.name, made_with, own, scheduled, arguments.burn_in)
        tests = there.reading.others > 0 and needs_closure(kind)
        drawn = (found.returns, tests, turn, renewed)
        return sampler(target, optimiser, there.rate_of, there.scale, priors, claims, entries, *drawn)

    # what a scheduler changes in part, and groups that do not move apart, are options, whose law is judged
    flags = {"scheduled": found.schedule == "in part", "grouped": second is not None}
    offered = {name: (False, True) for name, counts in flags.items() if counts} | lengths | others.judged
    return Adapted(_with_options(build, offered), found, sentence(found), others.notes)


def _with_options(build: Builder, offered: Mapping[str, tuple[Foreign, ...]]) -> Builder:
    """The builder with some options, of which the default and other values are given, as its only ones."""

    def built(target: Target, **options: Foreign) -> Sampler:
        return build(target, **{name: value for name, value in options.items() if value != offered[name][0]})

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("target", kind)]
    for name, (default, *others) in offered.items():
        hint = bool if isinstance(default, bool) else Literal[*others]
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=hint))
    vars(built)["__signature__"] = inspect.Signature(parameters)
    return built


def _burn_ins(probe: Probe, arguments: Arguments) -> tuple[Arguments, dict[str, tuple[Foreign, ...]]]:
    """The arguments with a burn-in that is given, else with none, else with a short one; and what else to try of it."""
    name = arguments.burn_in
    if not name or name in arguments.given:
        return arguments, {}
    none, short = arguments.burning_in(0), arguments.burning_in(BURN_IN)
    taken = [each for each in (none, short) if takes(probe, arguments.rate, each.given)]
    if not taken:
        return arguments._replace(burn_in=""), {}
    return taken[0], {name: (0, BURN_IN)} if len(taken) > 1 else {}


def of_optax(reference: str, value: Foreign, options: Options) -> Adapted:
    """Adapt a function of a learning rate that returns a transformation of gradients; otherwise as `of_torch`."""
    load("optax")
    from sgmcmc_verification.samplers.adapters.optimisers import optax_function as optax

    function = optax.check_function(reference, value)
    arguments = split(reference, function, options, 0)
    probe = optax.OptaxProbe(function, arguments.name, arguments.burn_in)
    arguments, lengths = _burn_ins(probe, arguments)
    rate, given = arguments.rate, arguments.given
    found = solve(probe, rate, arguments.values, arguments.asked, given)
    others = varied(probe, found, arguments)
    transformation = optax.Transformation(function, arguments.name, given, burn_in=arguments.burn_in)
    keys = optax.keys_of(transformation, rate)
    found = dataclasses.replace(
        found,
        returns=int(bool(found.reading.draws) and keys == "kept"),
        schedule=optax.schedule_of(probe, found.rate, given),
        burn_in=arguments.burn_in,
        moved=others.moved,
    )

    at = functools.cache(lambda chosen: convention_at(probe, found, arguments, dict(chosen)))

    def build(target: Target, *, scheduled: bool = False, **chosen: Foreign) -> Sampler:
        del target
        there = at(tuple(chosen.items()))
        made = dataclasses.replace(transformation, options={**given, **chosen}, scheduled=scheduled)
        claims = claims_of(there, abs(there.reading.ratio) > SAME)
        return optax.optax_sampler(made, there.rate_of, there.scale, there.second_derivative, claims, keys)

    # a schedule that changes a part of the step is an option, whose law is judged
    offered = ({"scheduled": (False, True)} if found.schedule == "in part" else {}) | lengths | others.judged
    return Adapted(_with_options(build, offered), found, sentence(found), others.notes)


def claims_of(found: Convention, remembers: bool) -> Claims:
    """The claims of SGLD for a step without memory that mixes no coordinates, else a law alone."""
    reading = found.reading
    if reading.linear and reading.even_noise and reading.independent and not (remembers or reading.others):
        return sgld_claims(found.claimed)
    source = Source("welling2011bayesian", "equation (4)")
    return Claims(
        source, StationaryLaw(order=1, temperature=found.claimed), Composite(), conditions=("exact gradient",)
    )
