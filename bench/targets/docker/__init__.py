"""Containers of one Docker engine, each node one; Prometheus and Grafana beside them."""
