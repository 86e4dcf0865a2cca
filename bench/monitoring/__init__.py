"""The windows on a run: what Prometheus scrapes, what it says of a run, and whether that agrees with the record."""
