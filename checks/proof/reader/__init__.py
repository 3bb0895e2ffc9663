"""A reader of jaxprs over truncated series."""
