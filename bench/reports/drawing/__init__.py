"""Draws the pictures of a report: SVG, axes, the look of topologies."""
