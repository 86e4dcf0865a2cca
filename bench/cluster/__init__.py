"""Runs inside a Ray cluster: driver, probes, recorder, exporter, profiling."""

TIME_HEADER = "X-Raymeter-Time"  # in every response of the exporter: seconds since the epoch by the head's clock
EXPORTER_HEADER = "X-Raymeter-Exporter"  # in every response of the exporter, but not in those of a proxy before it
