"""Environment of the templates: what it escapes, and what it refuses."""

import jinja2
import pytest

from sgmcmc_verification.reports.templates import environment, render


@pytest.mark.parametrize(("name", "shown"), [("some.html.j2", "a&lt;b"), ("some.md.j2", "a<b")])
def test_html_is_escaped_and_markdown_is_not(name, shown):
    inner = jinja2.DictLoader({name: "{{ text }}"})
    assert environment().overlay(loader=inner).get_template(name).render(text="a<b") == shown


def test_a_name_that_is_not_given_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'rows' is undefined"):
        render("findings.md.j2")


def test_markdown_ends_with_one_end_of_line():
    assert render("findings.md.j2", rows=[]).endswith("---|\n")
