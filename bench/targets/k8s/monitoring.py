"""Prometheus and Grafana beside an appliance in Kubernetes: waited for until they answer, or until it is clear that they will not."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.errors import TargetFailed
from bench.targets import readiness
from bench.targets.k8s import pod_troubles
from bench.targets.k8s.kubectl import Kubectl, Object

READY_SECONDS = 120.0  # their images may have to be pulled
POLL_SECONDS = 0.3
LOOK_SECONDS = 5.0  # between two looks at the pods: asking costs more than the answer of a window


def wait(kubectl: Kubectl, appliance: str, *, prometheus_url: str | None, grafana_url: str | None) -> None:
    """Return when both answer. Raises TargetFailed with what is wrong with their pods, or at the deadline."""

    def look(late: Sequence[str]) -> None:
        if found := pod_troubles.trouble(_pods(kubectl, appliance, late), ()):
            raise found.error()

    def too_late(late: Sequence[str]) -> TargetFailed:
        said = pod_troubles.waiting(_pods(kubectl, appliance, late), ())
        return TargetFailed(
            f"After {READY_SECONDS:.0f} s no answer from {' and '.join(late)}. {said}".rstrip(". ") + ".",
            f"See `kubectl get pods --namespace {appliance}`.",
        )

    urls = {"prometheus": prometheus_url, "grafana": grafana_url}
    readiness.wait_until_ready(
        lambda: readiness.missing_monitoring(urls),
        look=look,
        too_late=too_late,
        until=time.monotonic() + READY_SECONDS,
        poll_seconds=POLL_SECONDS,
        look_seconds=LOOK_SECONDS,
    )


def _pods(kubectl: Kubectl, appliance: str, names: Sequence[str]) -> list[Object]:
    chosen = f"app.kubernetes.io/name in ({','.join(names)})"
    return kubectl.get("pods", "--namespace", appliance, "--selector", chosen)
