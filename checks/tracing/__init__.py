"""A step as a function of state and noise."""
