"""Prometheus and Grafana beside an appliance in Kubernetes: waited for until they answer, or until it is clear that they will not."""

from __future__ import annotations

import time

from bench.errors import TargetFailed
from bench.targets.k8s import pod_troubles
from bench.targets.k8s.kubectl import Kubectl, Object
from bench.targets.readiness import get

READY_SECONDS = 120.0  # their images may have to be pulled
POLL_SECONDS = 0.3
LOOK_SECONDS = 5.0  # between two looks at the pods: asking costs more than the answer of a window
HEALTH = {"prometheus": "/-/ready", "grafana": "/api/health"}


def wait(kubectl: Kubectl, appliance: str, *, prometheus_url: str | None, grafana_url: str | None) -> None:
    """Return when both answer. Raises TargetFailed with what is wrong with their pods, or at the deadline."""
    urls = {"prometheus": prometheus_url, "grafana": grafana_url}
    until = time.monotonic() + READY_SECONDS
    look_at = time.monotonic() + LOOK_SECONDS
    while late := [name for name, url in urls.items() if not _answers(name, url)]:
        if time.monotonic() > look_at:
            found = pod_troubles.trouble(_pods(kubectl, appliance, late), ())
            if found is not None:
                raise found.error()
            look_at = time.monotonic() + LOOK_SECONDS
        if time.monotonic() > until:
            said = pod_troubles.waiting(_pods(kubectl, appliance, late), ())
            raise TargetFailed(
                f"After {READY_SECONDS:.0f} s no answer from {' and '.join(late)}. {said}".rstrip(". ") + ".",
                f"See `kubectl get pods --namespace {appliance}`.",
            )
        time.sleep(POLL_SECONDS)


def _answers(name: str, url: str | None) -> bool:
    return url is not None and get(f"{url}{HEALTH[name]}", timeout_seconds=2.0)[0] == 200


def _pods(kubectl: Kubectl, appliance: str, names: list[str]) -> list[Object]:
    chosen = f"app.kubernetes.io/name in ({','.join(names)})"
    return kubectl.get("pods", "--namespace", appliance, "--selector", chosen)
