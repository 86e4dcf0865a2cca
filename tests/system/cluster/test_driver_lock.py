"""A driver that ends without a word is seen to have ended, by real processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from builders import a_spec
from fakes import exporting
from prometheus_client.parser import text_string_to_metric_families

from bench.cluster import driver_lock
from bench.cluster.invocation import QUIET
from bench.cluster.metrics_page import MetricsPage
from bench.model import RunResult, from_json, to_json

WAIT_SECONDS = 30.0
SPEC = a_spec()
# A driver that has begun its run: what it measures is a sleep, and a process of its own outlives it.
DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from bench.cluster import driver
from bench.cluster.invocation import Invocation

def run(spec, experiment, recorder):
    child = subprocess.Popen(["sleep", "60"])
    (Path(os.environ["RAYMETER_RECORDS"]) / "child").write_text(str(child.pid))
    with Invocation(spec=spec, probes=(), recorder=recorder)._silence():
        print("begun", flush=True)
        time.sleep(60)

driver.run = run
sys.exit(driver.main(sys.argv[1]))
"""


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


@contextmanager
def a_driver(records: Path) -> Iterator[subprocess.Popen[str]]:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, to_json(SPEC).decode()],
        env={**os.environ, "RAYMETER_RECORDS": str(records)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == "begun\n"
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait(WAIT_SECONDS)


def end(driver: subprocess.Popen[str], number: signal.Signals) -> None:
    driver.send_signal(number)
    driver.wait(WAIT_SECONDS)


def stands(page: MetricsPage) -> tuple[list[str], list[str]]:
    """The run's status and its phase."""
    samples = [each for family in text_string_to_metric_families(page.text().decode()) for each in family.samples]
    return tuple(  # type: ignore[return-value]
        [each.labels[label] for each in samples if each.name == f"bench_run_{label}" and each.value]
        for label in ("status", "phase")
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, "failed"), (signal.SIGTERM, "stopped")])
def test_the_exporter_shows_no_run_as_running_whose_driver_has_ended(
    records: Path, number: signal.Signals, status: str
) -> None:
    page = MetricsPage(records)
    with a_driver(records) as driver:
        assert stands(page) == (["running"], ["start-up"])
        end(driver, number)
        assert stands(page) == ([status], [])
    assert stands(MetricsPage(records)) == ([status], []), "an exporter that was started anew"
    ended = {
        each.value
        for family in text_string_to_metric_families(page.text().decode())
        for each in family.samples
        if each.name == "bench_run_ended_timestamp_seconds"
    }
    assert len(ended) == 1
    assert abs(ended.pop() - time.time()) < 2 * WAIT_SECONDS


def test_a_driver_that_is_stopped_says_so_in_its_record(records: Path) -> None:
    with a_driver(records) as driver:
        end(driver, signal.SIGTERM)
        assert driver.returncode == 128 + signal.SIGTERM
    result = from_json((records / SPEC.session / "runs" / SPEC.folder / "run.json").read_bytes(), RunResult)
    assert (result.status, result.reasons) == ("stopped", ("its driver was stopped by SIGTERM",))


def test_the_silence_that_a_driver_asked_for_ends_with_it(records: Path) -> None:
    with exporting(records) as exporter_url, a_driver(records) as driver:
        url = f"{exporter_url}/metrics"
        assert requests.get(url, timeout=10).status_code == 503
        end(driver, signal.SIGKILL)
        assert (records / QUIET).exists(), "it was killed, and could not end the silence itself"
        assert requests.get(url, timeout=10).status_code == 200


def test_a_record_without_a_lock_says_nothing_of_its_driver(tmp_path: Path) -> None:
    assert not driver_lock.has_ended(tmp_path)
    assert not driver_lock.has_ended(tmp_path / "nowhere")


def test_a_lock_is_seen_to_be_held_until_it_is_let_go(tmp_path: Path) -> None:
    held = driver_lock.hold(tmp_path)
    assert not driver_lock.has_ended(tmp_path)
    held.close()
    assert driver_lock.has_ended(tmp_path)
