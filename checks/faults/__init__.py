"""Planted bugs: samplers that are wrong in a known way, each with the check that has to say so."""
