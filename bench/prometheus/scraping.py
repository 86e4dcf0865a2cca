"""What Prometheus must scrape of a deployment: the pages that there are, and a configuration with fixed addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

SCRAPE_SECONDS = 2.0
MONITORING = Path(__file__).parents[2] / "k8s/monitoring"  # the configuration and the rules, for every target
PORTS = {"metrics": 8080, "dash-metrics": 44227, "bench-metrics": 8090}
"""The pages of a cluster by the names of their ports: of every node; and of the head alone, dashboard and exporter."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page of metrics: the labels that its series have in Prometheus."""

    job: str
    instance: str  # the node's name
    endpoint: str  # the port's name
    address: str = ""

    def __str__(self) -> str:
        return f"{self.endpoint} of {self.instance}"


def pages(nodes: Sequence[str]) -> tuple[Page, ...]:
    """Every page of a cluster's nodes, the head being the first of `nodes`; addresses by the nodes' names."""
    head = nodes[0]
    of_head = [name for name in PORTS if name != "metrics"]
    found = [Page(job="ray", instance=node, endpoint="metrics") for node in nodes]
    found += [Page(job="bench" if name == "bench-metrics" else "ray", instance=head, endpoint=name) for name in of_head]
    return tuple(replace(page, address=f"{page.instance}:{PORTS[page.endpoint]}") for page in found)


def static_config(found: Sequence[Page], *, cluster: str) -> str:
    """The configuration of k8s/monitoring with `found` in place of what would be discovered."""
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
                for page in found
                if page.job == job["job_name"]
            ]
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def rules() -> bytes:
    """The alert rules, which the configuration looks for beside itself as rules.yml."""
    return (MONITORING / "rules.yml").read_bytes()
