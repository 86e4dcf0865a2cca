"""Finds the files that raymeter has beside its code, the same in a checkout and in an installed wheel.

k8s/       manifests, and the configuration of Prometheus and its rules for every target
grafana/   dashboards, and the provisioning of Grafana
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

FOLDER = Path(str(resources.files(__name__)))
K8S = FOLDER / "k8s"
GRAFANA = FOLDER / "grafana"
