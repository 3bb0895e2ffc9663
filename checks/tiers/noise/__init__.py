"""Stationary laws under gradient noise."""
