"""Root conftest: `pytest` puts this folder on sys.path, and `pytest checks` gets its options here."""

pytest_plugins = ["checks.pytest_plugin.plugin"]
