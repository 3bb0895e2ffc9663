"""Special functions, quadrature rules and sums that the targets are built of."""
