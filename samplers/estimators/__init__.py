"""Estimators of the gradient of the potential."""
