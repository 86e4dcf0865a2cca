"""promtool accepts configuration and rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.prometheus.scraping import MONITORING, pages, rules, static_config

NODES = ("head", "worker-1")


@pytest.mark.promtool
@pytest.mark.parametrize("target", ["k8s", "docker"])
def test_promtool_has_nothing_against_configuration_and_rules(target: str, tmp_path: Path) -> None:
    text = (MONITORING / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(
        text if target == "k8s" else static_config(pages(NODES), cluster="made-up")
    )
    (tmp_path / "rules.yml").write_bytes(rules())
    done = subprocess.run(
        ["promtool", "check", "config", "--lint-fatal", tmp_path / "prometheus.yml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 rules found" in done.stdout
