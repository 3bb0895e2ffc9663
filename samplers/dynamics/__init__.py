"""The stochastic differential equations that samplers discretise: H, D, Q, and what follows from them."""
