"""Names that `--list` prints can be given, and are explained."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS
from sgmcmc_verification.checks.runner.listing import LISTS, explanation, listing
from sgmcmc_verification.checks.runner.plan import parse_tiers
from sgmcmc_verification.samplers.interface import claims

ROOT = Path(__file__).resolve().parents[3]


def names(kind):
    found = [line.split()[0] for line in listing(kind)]
    assert len(set(found)) == len(found) > 5
    return found


def test_every_listed_sampler_target_and_tier_is_taken():
    for name in names("samplers"):
        if ":" not in name:
            assert find_row(name).name == name
    for name in names("targets"):
        if ":" not in name and name.startswith("gaussian"):
            assert find_target(name).name == name
    for name in names("tiers"):
        assert parse_tiers([name])


def test_the_registries_are_listed_whole():
    assert names("checks") == [check.name for check in CHECKS]
    assert names("statements") == [statement.name for statement in STATEMENTS]
    own = {name for name, kind in vars(claims).items() if inspect.isclass(kind) and issubclass(kind, claims.Claim)}
    assert own - set(names("claims")) <= {"Claim", "Law"}


@pytest.mark.parametrize("kind", ["checks", "statements", "claims", "tiers"])
def test_every_listed_name_is_explained(kind):
    for name in names(kind):
        if name in ("deterministic", "statistical", "all"):
            continue
        lines = explanation(name)
        assert lines[0].startswith(f"{name}: a ")
        assert len(lines) > 1
        assert all(len(line) <= 130 for line in lines)


def test_an_explanation_has_the_equation_the_claims_and_the_source():
    text = "\n".join(explanation("detailed_balance"))
    for words in ("pi(x) k(x, y) = pi(y) k(y, x)", "ExactLaw", "metropolis1953equation", "a statement of balance"):
        assert words in text
    assert "symbolic_recipe" in "\n".join(explanation("Diffusion"))  # which takes any stochastic equation


@pytest.mark.parametrize(("ask", "word"), [(explanation, "balanse"), (listing, "sampler")])
def test_an_unknown_name_is_one_line_with_the_closest(ask, word):
    with pytest.raises(BadInput) as error:
        ask(word)
    assert "did you mean" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_line_answers_and_stops():
    """As a user types it; a mistake is exit code 4."""
    ask = lambda *words: subprocess.run(
        [sys.executable, "-m", "pytest", "checks", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = ask("--list", "claims")
    assert (found.returncode, found.stdout.splitlines()) == (0, listing("claims"))
    assert ask("--explain", "ExactLaw").stdout.splitlines() == explanation("ExactLaw")
    wrong = ask("--list", "claim")
    assert wrong.returncode == 4
    assert "did you mean 'claims'" in wrong.stderr
    assert set(LISTS) == {"samplers", "checks", "statements", "targets", "tiers", "claims"}
