"""Options of samplers that no registry knows."""

import enum
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.options import (
    distant,
    named_values,
    options_of,
    others,
    takes_a_target,
    variants,
)
from sgmcmc_verification.checks.core.third_party import builder, operations, row
from sgmcmc_verification.samplers.interface.claims import StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import complete


@dataclass(frozen=True)
class Langevin:
    """SGLD with options of every kind that can be varied, and some that cannot."""

    temperature: float = 1.0
    repeats: int = 1
    heavy: bool = False
    order: Literal["ab", "ba"] = "ab"
    shift: float = 0.0
    num_data: int = 100
    name: str = "x"
    hook: Any = None
    counted: int = field(default=3, init=False)

    def step(self, key, x, h, estimator):
        for one in jax.random.split(key, self.repeats):
            gradient = estimator.estimate(one, (), x)[0].gradient
            noise = jnp.sqrt(2 * h * self.temperature) * jax.random.normal(one, x.shape)
            x = x - h * gradient + noise
        return x


def of_target(target, rate=2.0, *, clip=None, bound: float = 1e6):
    return Langevin(temperature=rate + bound * target.size)


class Plain:
    def __init__(self, scale=0.5, seed=3):
        self.scale, self.seed = scale, seed

    def step(self, key, x, h, estimator):
        return x


def test_options_of_a_class_an_object_and_a_function():
    assert "counted" not in options_of(Langevin)
    assert options_of(Langevin)["temperature"][0] == 1.0
    assert options_of(Langevin(temperature=3.0))["temperature"][0] == 3.0
    assert {k: v[0] for k, v in options_of(of_target).items()} == {"rate": 2.0, "clip": None, "bound": 1e6}
    assert list(options_of(Plain)) == ["scale", "seed"]
    assert options_of(Plain()) == {}  # an object that is no dataclass shows no options
    assert options_of(3) == {}


@pytest.mark.parametrize(
    ("name", "default", "hint", "values"),
    [
        ("rate", 0.5, float, (1.0, 0.25)),
        ("steps", 3, int, (5, 4)),
        ("flag", False, bool, (True,)),
        ("kind", "a", Literal["a", "b", "c", "d"], ("b", "c")),
        ("shift", 0.0, float, ()),
        ("clip", float("inf"), float, ()),
        ("num_data", 100, int, ()),
        ("seed", 1, int, ()),
        ("text", "x", str, ()),
        ("nothing", None, None, ()),
        ("temperature", None, None, (2.0, 0.5)),
    ],
)
def test_other_values(name, default, hint, values):
    assert others(name, default, hint) == values


def test_two_sets_move_every_option_and_the_rest_is_named():
    found, notes, off = variants(Langevin, lambda options: True)
    assert found == (
        {"temperature": 2.0, "repeats": 3, "heavy": True, "order": "ba"},
        {"temperature": 0.5, "repeats": 2, "heavy": True, "order": "ba"},
        {"shift": 0.5},
    )
    assert off == ("shift",)
    assert [note.split()[2] for note in notes] == ["num_data", "name", "hook"]


def test_what_does_not_work_is_left_out_and_named():
    found, notes, _ = variants(Langevin, lambda options: "heavy" not in options)
    assert all("heavy" not in each for each in found)
    assert any(" heavy " in note for note in notes)


def test_sets_that_do_not_work_together_are_tried_alone():
    found, *_ = variants(Plain, lambda options: len(options) < 2)
    assert found == ({"scale": 1.0}, {"scale": 0.25})
    two = dataclass(frozen=True)(type("Two", (), {"__annotations__": {"a": float, "b": float}, "a": 1.0, "b": 2.0}))
    assert variants(two, lambda options: len(options) < 2)[0] == ({"a": 2.0}, {"b": 2.0 * (2 / 3)})


def test_a_temperature_is_that_of_the_law_unless_claims_say_otherwise():
    default = {"euclidean": ("gaussian-1d-scaled",)}
    mine = row("file.py:Langevin", Langevin, (), default, find_target)
    target = find_target("gaussian-1d-scaled")
    assert [mine.build(target, **o).claims[StationaryLaw].temperature for o in ({}, *mine.variants)] == [
        1.0,
        2.0,
        0.5,
        1.0,
    ]
    assert mine.off == ("shift",)


@dataclass(frozen=True)
class Named:
    """Options whose values are names, compared in each of the ways that people write."""

    noise: str = "normal"
    scheme: str = "euler"
    metric: str = "none"
    table: str = "a"
    title: str = "mine"

    def step(self, key, x, h, estimator):
        if self.noise == "uniform" or self.noise == "laplace":
            x = x + h
        match self.scheme:
            case "heun" | "midpoint":
                x = x + h
        if self.metric in ("rms", "none"):
            x = x + h
        return x + {"a": 1.0, "b": 2.0}[self.table] + (self.title == self.noise)


def test_names_are_read_off_comparisons_of_the_code():
    assert named_values(Named) == {
        "noise": ("uniform", "laplace"),
        "scheme": ("heun", "midpoint"),
        "metric": ("rms", "none"),
        "table": ("a", "b"),
    }
    first, second = variants(Named, lambda options: True).sets
    assert first == {"noise": "uniform", "scheme": "heun", "metric": "rms", "table": "b"}
    assert second == {"noise": "laplace", "scheme": "midpoint", "metric": "rms", "table": "b"}


TABLE = {"first": 1.0, "second": 2.0}


class Kind(enum.Enum):
    ONE = 1
    TWO = 2
    THREE = 3
    FOUR = 4


@dataclass(frozen=True)
class Chosen:
    """A key of a table of the module, a member of an enumeration, and flags."""

    entry: str = "first"
    kind: Kind = Kind.TWO
    left: bool = False
    right: bool = False
    both: bool = True

    def step(self, key, x, h, estimator):
        return x + TABLE[self.entry]


def test_tables_of_the_module_and_enumerations_are_read_and_every_other_flag_rests_once():
    first, second = variants(Chosen, lambda options: True).sets
    assert first == {"entry": "second", "kind": Kind.ONE, "left": True, "right": True, "both": False}
    assert second == {"entry": "second", "kind": Kind.THREE, "left": True, "both": False}


@pytest.mark.parametrize(
    ("default", "other", "values"),
    [
        (1.0, lambda v: v >= 3, (10.0, 0.5)),
        (1.0, lambda v: v < 0.3, (2.0, 0.1)),
        (1.0, lambda v: v > 1.5, (2.0, 0.5)),
        (3, lambda v: v > 8, (5, 10)),
        (3, lambda v: v > 4, (5, 4)),
        (8, lambda v: v > 12, (10, 24)),
    ],
)
def test_a_number_is_moved_farther_where_the_program_is_another_one(default, other, values):
    program = lambda value: ("add", "mul") if other(value) else ("add",)
    assert distant(default, others("x", default), program) == values
    assert distant(default, others("x", default), lambda value: None) == others("x", default)


def test_a_loop_that_is_written_out_is_no_other_program():
    assert distant(3, (5, 4), lambda value: ("add",) * value) == (5, 4)


def test_one_is_tried_where_its_program_is_no_round_fewer():
    special = lambda value: ("mul",) + ("add",) * (value if value > 1 else 0)
    assert distant(4, (6, 5), special) == (1, 5)
    assert distant(1, (3, 2), special) == (3, 2)
    assert distant(4, (6, 5), lambda value: ("add",) * value if value > 1 else None) == (6, 5)
    assert distant(4, (6, 5), lambda value: ("add",) * value**2) == (6, 5)
    assert distant(4, (6, 5), lambda value: special(value) + ("sin",) * (value > 8)) == (1, 12)


def test_the_operations_of_a_step_are_known_where_it_is_traced():
    target = find_target("gaussian-1d-scaled")
    found = operations(lambda: complete(Langevin()), target)
    assert {"add", "mul", "sqrt"} <= set(found)
    assert operations(lambda: complete(Langevin(shift=object(), order="ba")), target) == found
    assert operations(lambda: None, target) is None


def test_no_source_no_names():
    assert named_values(type("Made", (), {})) == {}


@dataclass(frozen=True)
class Brownian:
    """Three rates, of which a bug may need two that differ."""

    friction: float = 1.0
    temperature: float = 1.0
    speed: float = 1.0


def test_a_float_of_numpy_is_moved_as_one_of_python():
    kind = dataclass(frozen=True)(type("Kind", (), {"__annotations__": {"a": float}, "a": np.float32(0.5)}))
    assert variants(kind, lambda _: True).sets == ({"a": 1.0}, {"a": 0.25})


def test_no_product_and_no_ratio_of_two_rates_stays_what_it_is():
    for values in variants(Brownian, lambda _: True).sets:
        f, t, s = values["friction"], values["temperature"], values["speed"]
        for changed in (f, t, s, f * t, f / t, f * s, f / s, t * s, t / s):
            assert abs(changed - 1) > 0.1


def of_options(scale=1.0):
    return scale


def of_a_target(target=None, scale=1.0):
    return target, scale


def test_a_function_of_options_alone_takes_no_target():
    takes = [takes_a_target(each) for each in (of_options, lambda: None, of_a_target, lambda law, a=1: a, Langevin)]
    assert takes == [False, False, True, True, False]
    assert [*options_of(of_options)] == ["scale"]
    assert [*options_of(of_a_target)] == ["scale"]


class OfTarget(Plain):
    """A sampler that knows its target."""

    def __init__(self, target, scale=0.5):
        super().__init__(scale=scale)
        self.target = target


def test_a_class_whose_first_parameter_is_the_target_is_made_of_it():
    assert [*options_of(OfTarget)] == ["scale"]
    assert (takes_a_target(OfTarget), takes_a_target(Plain)) == (True, False)
    owner = builder("mine", OfTarget)(find_target("double-well"), scale=0.25).step.__self__
    assert (owner.target.name, owner.scale) == ("double-well", 0.25)
