"""Shared parts of experiments: placement of actors, worker pool, load, percentiles, time breakdown, fault injection."""
