"""Runs Prometheus and Grafana beside a cluster of containers; they stay until `down`, through changes of the cluster."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.errors import TargetFailed
from bench.package_data import GRAFANA
from bench.prometheus import boards, scraping
from bench.targets import readiness
from bench.targets.docker import engine
from bench.targets.docker.engine import File
from bench.targets.docker.plan import (
    NODE,
    labels,
    published,
    published_url,
    resource_name,
    service_settings,
)
from bench.targets.steps import Steps

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

PROMETHEUS_IMAGE = "prom/prometheus:v3.13.2"
GRAFANA_IMAGE = "grafana/grafana:12.2.0"
PORTS = {"prometheus": 9090, "grafana": 3000}
DASHBOARDS = "/etc/grafana/dashboards"  # in its container
READY_SECONDS = 60.0
POLL_SECONDS = 0.2

_CONFIG = "io.raymeter.config"
_GRAFANA = {
    "GF_AUTH_ANONYMOUS_ENABLED": "true",
    "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
    # Login is impossible: there is no user, and no password to guess.
    "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
    "GF_AUTH_DISABLE_LOGIN_FORM": "true",
    "GF_AUTH_BASIC_ENABLED": "false",
    "GF_ANALYTICS_REPORTING_ENABLED": "false",
    "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
    "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    "GF_PLUGINS_PREINSTALL_DISABLED": "true",
    "GF_NEWS_NEWS_FEED_ENABLED": "false",
}


@dataclass(frozen=True, kw_only=True)
class Service:
    """What Prometheus or Grafana is made of."""

    name: str
    image: str
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)  # if these change, the container is replaced
    other_files: Mapping[str, File] = field(default_factory=dict)  # these may change while it runs
    is_reloaded: bool = False  # SIGHUP makes it read its other files again

    def settings(self, deployment: str) -> dict[str, Any]:
        """The settings of its container; a label has the hash of everything that it was made of."""
        settings = service_settings(deployment, self.name) | {
            "image": self.image,
            "environment": dict(self.environment),
            "ports": published(self.port),
        }
        made_of = json.dumps(settings, sort_keys=True).encode() + engine.archive(self.files)
        return {**settings, "labels": {**settings["labels"], _CONFIG: hashlib.sha256(made_of).hexdigest()[:16]}}


def services(deployment: str, nodes: Sequence[str]) -> tuple[Service, ...]:
    """The services beside `nodes`."""
    prometheus = Service(
        name="prometheus",
        image=PROMETHEUS_IMAGE,
        port=PORTS["prometheus"],
        other_files=prometheus_files(deployment, nodes),
        is_reloaded=True,
    )
    grafana = Service(
        name="grafana",
        image=GRAFANA_IMAGE,
        port=PORTS["grafana"],
        environment={**_GRAFANA, **boards.environment(f"http://prometheus:{PORTS['prometheus']}", DASHBOARDS)},
        files=grafana_files(),
    )
    return prometheus, grafana


def prometheus_files(deployment: str, nodes: Sequence[str]) -> dict[str, File]:
    """The configuration and alert rules of Prometheus."""
    config = scraping.static_config(scraping.pages(nodes), cluster=resource_name(deployment))
    return {
        "/etc/prometheus/prometheus.yml": File(content=config.encode()),
        "/etc/prometheus/rules.yml": File(content=scraping.rules()),
    }


def grafana_files() -> dict[str, File]:
    """Provisioning and boards by their paths in Grafana's container."""
    return {
        **engine.folder_files(GRAFANA / "provisioning", "/etc/grafana/provisioning"),
        **engine.folder_files(GRAFANA / "dashboards", DASHBOARDS),
    }


def ensure(client: DockerClient, deployment: str, nodes: Sequence[str]) -> None:
    """Let Prometheus and Grafana run and scrape `nodes`; containers that are right are kept."""
    containers = find(client, deployment)
    for service in services(deployment, nodes):
        settings = service.settings(deployment)
        container = containers.get(service.name)
        if container is not None and _is_up_to_date(container, settings):
            if service.is_reloaded:
                with engine.translate_errors(f"a new configuration of {service.name}"):
                    container.put_archive("/", engine.archive(service.other_files))
                    container.kill("HUP")
        else:
            engine.remove(client, {**labels(deployment, "monitoring"), NODE: service.name})
            engine.start(client, settings, aliases=(service.name,), files={**service.files, **service.other_files})


def pull_images(client: DockerClient, deployment: str, nodes: Sequence[str], steps: Steps) -> None:
    """Pull the images of Prometheus and Grafana that the engine does not have. Raises TargetFailed."""
    import docker

    for service in services(deployment, nodes):
        with engine.translate_errors(f"the image {service.image}"):
            try:
                client.images.get(service.image)
            except docker.errors.ImageNotFound:
                with steps.step(f"pulling the image {service.image}", f"image {service.image} pulled"):
                    client.images.pull(service.image)


def wait(client: DockerClient, deployment: str, nodes: Sequence[str]) -> None:
    """Return once Prometheus and Grafana answer. Raises TargetFailed."""
    names = [service.name for service in services(deployment, nodes)]

    def missing(containers: Mapping[str, Container]) -> list[str]:
        addresses = urls(containers)
        return readiness.missing_monitoring({name: addresses[f"{name}_url"] for name in names})

    def raise_for_ended(containers: Mapping[str, Container], late: Sequence[str]) -> None:
        for name in late:
            if name not in containers or containers[name].status != "running":
                raise _does_not_answer(name, containers.get(name))

    readiness.wait_until_ready(
        lambda: find(client, deployment),
        missing=missing,
        raise_for_failure=raise_for_ended,
        timeout_error=lambda containers, late: _does_not_answer(late[0], containers.get(late[0])),
        until=time.monotonic() + READY_SECONDS,
        poll_seconds=POLL_SECONDS,
    )


def _does_not_answer(name: str, container: Container | None) -> TargetFailed:
    status = container.status if container else "removed"
    reason = engine.error_in_log(container) if container else ""
    return TargetFailed(
        f"{name.capitalize()} does not answer; its container is {status}: {reason or 'its log is empty'}."
    )


def find(client: DockerClient, deployment: str) -> dict[str, Container]:
    """The containers of a deployment's services, by name."""
    wanted = engine.by_label(labels(deployment, "monitoring"))
    with engine.translate_errors("a list of its containers"):
        containers = client.containers.list(all=True, filters=wanted, ignore_removed=True)
    return {container.labels[NODE]: container for container in containers}


def urls(containers: Mapping[str, Container]) -> dict[str, str | None]:
    """The services' addresses, by the names of Cluster's fields."""
    return {
        f"{name}_url": (published_url(containers[name].attrs, port) or None) if name in containers else None
        for name, port in PORTS.items()
    }


def _is_up_to_date(container: Container, settings: Mapping[str, Any]) -> bool:
    return container.status == "running" and container.labels.get(_CONFIG) == settings["labels"][_CONFIG]
