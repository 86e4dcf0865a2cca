"""Talks to Prometheus: its client, what it scrapes, what the boards ask, and whether it agrees with the record."""
