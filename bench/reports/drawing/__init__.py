"""Draws the pictures of a report as SVG, with axes and the colours and shapes of topologies."""
