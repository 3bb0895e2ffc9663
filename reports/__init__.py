"""Results to tables and pages: commands that produce what `reports/published/` keeps. Needs the extra `reports`."""

from importlib.util import find_spec

for _name in ("filelock", "jinja2", "markdown_it", "msgspec", "pandas"):
    if find_spec(_name) is None:
        raise ImportError(f"needs {_name}: pip install 'sgmcmc-verification[reports]'")
