"""The table of errors at the usual step size: closed forms, and leading terms beside what is computed."""

import pytest

from sgmcmc_verification.reports.pages import usability


@pytest.fixture(scope="module")
def lines():
    return {name: usability.decide(name, "commit") for name in ("sgld", "mala")}


pytestmark = pytest.mark.xdist_group(__name__)


def test_errors_of_sgld_are_those_of_its_closed_form(lines):
    line = lines["sgld"]
    closed = lambda product: product / 2 / (1 - product / 2)  # k var - 1 at h k
    assert line["exact"]
    assert line["error"] == pytest.approx(closed(2.5 * line["step_size"]), rel=1e-6)
    assert line["leading"] == pytest.approx(2.5 * line["step_size"] / 2, rel=1e-9)
    assert line["limit"] == pytest.approx(2 / 2.5 * (1 - 1 / usability.LARGEST), rel=0.03)
    assert line["limit_ratio"] == pytest.approx(1)


def test_the_leading_term_on_the_quartic_line_is_near_the_error_there(lines):
    line = lines["sgld"]
    assert line["quartic_exact"]
    assert line["quartic_error"] == pytest.approx(line["quartic_leading"], rel=0.05)
    assert line["quartic_error"] != pytest.approx(line["error"], rel=0.5)


def test_a_sampler_without_a_bias_is_named_with_the_reason(lines):
    assert "no law with a bias" in lines["mala"]["reason"]
    page = usability.page(list(lines.values()))
    assert "| sgld | gaussian-1d-scaled | exact |" in page
    assert f"- `mala`: {lines['mala']['reason']}" in page


def test_an_error_that_has_none_is_said_to_be_unstable(lines):
    page = usability.page([lines["sgld"] | {"error": None, "quartic_leading": 1e-17}])
    row = next(row for row in page.splitlines() if row.startswith("| sgld"))
    assert "| unstable |" in row
    assert "| 0% |" in row
