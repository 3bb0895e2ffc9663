"""Posteriors of latent-variable models: LDA, the spherical admixture model, the Dirichlet-process mixture."""
