"""The checks themselves, by tier."""
