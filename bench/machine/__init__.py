"""Reads what this machine is and does: CPUs, control groups, the kernel's counters."""
