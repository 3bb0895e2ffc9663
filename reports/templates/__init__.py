"""Templates of all pages, `*.html.j2` (escaped) and `*.md.j2` (not), and the one environment that fills them."""

import functools
import operator
import statistics
from collections.abc import Iterable
from typing import Any

import jinja2


def versions(lines: Iterable[dict[str, Any]]) -> str:
    """Libraries of some lines of results with their versions, each once."""
    return ", ".join(sorted({f"{name} {version}" for line in lines for name, version in line["versions"].items()}))


@functools.cache
def environment() -> jinja2.Environment:
    """Strict environment: an unknown name is an error, and a line that holds only a statement leaves nothing."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("sgmcmc_verification.reports"),
        autoescape=jinja2.select_autoescape(["html.j2"], default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(median=statistics.median, versions=versions)
    made.tests["contains"] = operator.contains
    return made


def render(template: str, **values: Any) -> str:
    """Text of a template, filled in; Markdown ends with one end of line."""
    text = environment().get_template(template).render(**values)
    return text.rstrip("\n") + "\n" if template.endswith(".md.j2") else text
