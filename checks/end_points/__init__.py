"""Laws of chains at the end of a run, and their comparison with the claim."""
