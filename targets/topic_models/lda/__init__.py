"""Latent Dirichlet allocation: the model, and a corpus so small that its posterior is a finite sum."""
