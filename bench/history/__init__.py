"""Finds, compares and follows sessions over time."""
