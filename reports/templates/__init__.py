"""Templates of all pages, `*.html.j2` (escaped) and `*.md.j2` (not), and the one environment that fills them."""

import functools
from typing import Any

import jinja2


@functools.cache
def environment() -> jinja2.Environment:
    """Strict environment: an unknown name is an error, and a line that holds only a statement leaves nothing."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("reports"),
        autoescape=jinja2.select_autoescape(["html.j2"], default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """Text of a template, filled in, without the last end of line."""
    return environment().get_template(template).render(**values)
