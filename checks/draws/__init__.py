"""Draws of any program: problems as folders of plain files, a reader of what came back, and a judge of it."""
