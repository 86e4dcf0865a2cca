"""Waits until Prometheus and Grafana of a deployment in Kubernetes answer, or their pods fail."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.errors import TargetFailed
from bench.targets import readiness
from bench.targets.k8s import pod_troubles
from bench.targets.k8s.kubectl import Kubectl, Object

READY_SECONDS = 120.0  # their images may have to be pulled
POLL_SECONDS = 1.0  # each poll that finds one missing is a process of kubectl, too


def wait(kubectl: Kubectl, deployment: str, *, prometheus_url: str | None, grafana_url: str | None) -> None:
    """Return when both answer. Raises the error of their pods, or TargetFailed at the deadline."""

    def raise_for_trouble(_late: Sequence[str], late: Sequence[str]) -> None:
        if trouble := pod_troubles.trouble(_pods(kubectl, deployment, late), ()):
            raise trouble.error()

    def timeout_error(_late: Sequence[str], late: Sequence[str]) -> TargetFailed:
        state = pod_troubles.waiting(_pods(kubectl, deployment, late), ())
        return TargetFailed(
            f"{' and '.join(late)} did not answer within {READY_SECONDS:.0f} s. {state}".rstrip(". ") + ".",
            f"See `kubectl get pods --namespace {deployment}`.",
        )

    urls = {"prometheus": prometheus_url, "grafana": grafana_url}
    readiness.wait_until_ready(
        lambda: readiness.missing_monitoring(urls),
        missing=lambda late: late,
        raise_for_failure=raise_for_trouble,
        timeout_error=timeout_error,
        until=time.monotonic() + READY_SECONDS,
        poll_seconds=POLL_SECONDS,
    )


def _pods(kubectl: Kubectl, deployment: str, names: Sequence[str]) -> list[Object]:
    chosen = f"app.kubernetes.io/name in ({','.join(names)})"
    return kubectl.get("pods", "--namespace", deployment, "--selector", chosen)
