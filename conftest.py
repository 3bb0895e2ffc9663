"""Root conftest: `pytest` puts this folder on sys.path, and `pytest checks` gets its options here."""

from checks.core.compilation import limit_threads

limit_threads()

pytest_plugins = ["checks.pytest_plugin.plugin"]
