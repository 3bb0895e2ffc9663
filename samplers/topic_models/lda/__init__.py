"""Latent Dirichlet allocation: Gibbs sampling of the topics of words, estimators, and runs over large corpora."""
