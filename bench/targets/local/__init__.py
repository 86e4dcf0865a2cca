"""Processes of this machine: each node in a network namespace of its own, or all on loopback."""
