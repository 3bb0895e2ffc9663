"""Places in the code of another author: of a step, and those that a text names."""

import functools
from pathlib import Path

import jax
import pytest

from sgmcmc_verification.checks.core.error_origin import place, places_in, source_of

HERE = Path(__file__)
LINE = HERE.read_text(encoding="utf-8").splitlines().index("def step(x):") + 1


def step(x):
    return x.missing


class Sampler:
    step = staticmethod(step)


@functools.wraps(step)
def wrapped(x):
    return step(x)


@pytest.mark.parametrize("function", [step, Sampler.step, Sampler().step, jax.jit(step), wrapped, jax.jit(wrapped)])
def test_a_step_is_placed_at_its_first_line_whatever_wraps_it(function, monkeypatch):
    monkeypatch.chdir(HERE.parent)
    assert source_of(function) == f"{HERE.name}:{LINE}"


@pytest.mark.parametrize("value", [len, 3, None, functools.partial(step)])
def test_what_is_no_function_of_python_has_no_place(value):
    assert source_of(value) == ""


def test_the_place_of_an_error_is_read_again_from_its_text(monkeypatch):
    monkeypatch.chdir(HERE.parent)
    with pytest.raises(AttributeError) as error:
        wrapped(1)
    text = f"cannot be built (AttributeError: no{place(error.value)})"
    assert places_in(text) == [(HERE.name, LINE + 1)]
    assert places_in(source_of(step)) == [(HERE.name, LINE)]
    assert places_in("a ratio of 3:4 at h = 0.1, see mine.py") == []
