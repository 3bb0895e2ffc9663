"""What a sampler is: the protocols, its claims, and helpers that fill in the rest."""
