"""Statistics of published results by statsmodels: fits of orders, adjusted p-values, power."""
