"""Finds the caveats of a session: rules, grouped by the evidence that they read."""
