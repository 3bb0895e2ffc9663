"""Particle methods: SVGD and its relatives."""
