"""Reads what a node uses: an actor on each node, and the kernel's counters."""
