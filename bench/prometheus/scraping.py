"""Lists the metrics pages of a deployment, and configures Prometheus to scrape them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.package_data import K8S

SCRAPE_SECONDS = 2.0
MONITORING = K8S / "monitoring"  # configuration and rules of every target
PORTS = {"metrics": 8080, "dash-metrics": 44227, "bench-metrics": 8090}
"""Ports of the pages by name: `metrics` on every node; dashboard and exporter on the head only."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """One metrics page, with the labels of its series in Prometheus."""

    job: str
    instance: str  # the node's name
    endpoint: str  # the port's name
    address: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint} of {self.instance}"


def pages(nodes: Sequence[str]) -> tuple[Page, ...]:
    """Every page of a cluster's nodes, of which the head is the first, at addresses with the nodes' names."""
    head = nodes[0]
    of_head = [name for name in PORTS if name != "metrics"]
    pages_of_cluster = [Page(job="ray", instance=node, endpoint="metrics") for node in nodes]
    pages_of_cluster += [
        Page(job="bench" if name == "bench-metrics" else "ray", instance=head, endpoint=name) for name in of_head
    ]
    return tuple(replace(page, address=f"{page.instance}:{PORTS[page.endpoint]}") for page in pages_of_cluster)


def static_config(pages_of_cluster: Sequence[Page], *, cluster: str, own_address: str = "") -> str:
    """The configuration in MONITORING, with these pages in place of discovery.

    `own_address`: where Prometheus scrapes itself, if that is not its usual port.
    """
    import yaml

    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    for job in config["scrape_configs"]:
        if job.pop("kubernetes_sd_configs", None):
            job.pop("relabel_configs")
            job["static_configs"] = [
                {
                    "targets": [page.address],
                    "labels": {"instance": page.instance, "endpoint": page.endpoint, "cluster": cluster},
                }
                for page in pages_of_cluster
                if page.job == job["job_name"]
            ]
        elif own_address:
            job["static_configs"][0]["targets"] = [own_address]
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def rules() -> bytes:
    """The alert rules, which the configuration expects beside itself as rules.yml."""
    return (MONITORING / "rules.yml").read_bytes()
