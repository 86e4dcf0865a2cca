"""Talks to Prometheus: client, scrape configuration, the boards' queries, and reconciliation with the record."""
