"""The command line `pytest checks`."""
