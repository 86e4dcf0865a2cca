"""What every test has: its marks carried out, and settings under which nothing leaves this machine or waits for ever."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["chains", "documented_example"]  # fixtures and rules that more than one tier needs

UNIT = Path(__file__).parent / "unit"

# Without it a local `ray.init()` writes a token into the home folder and turns authentication on for what comes after.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
for size in ("COLUMNS", "LINES"):  # of a terminal: pytest's own readline sets them for the processes of pytest-xdist
    os.environ.pop(size, None)
os.environ["RAYMETER_QUIET_CHECK_SECONDS"] = (
    "0"  # no test waits for a machine to be quiet: the tests are what keeps it busy
)

# No deadline: on a busy machine an example may take long, and that is no fault of the code.
settings.register_profile("person", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("person"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "person")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the deployments of whoever runs it."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        choices=sorted(LACKS),
        help="A mark whose tests must run: where its needs are not met they fail and are not skipped.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep out of tests/unit what some machine cannot run."""
    for item in items:
        if UNIT in item.path.parents and (needs := [mark for mark in LACKS if item.get_closest_marker(mark)]):
            raise pytest.UsageError(f"{item.nodeid} needs {' and '.join(needs)}: move it to another tier")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marks ask for what is not here, and say what that is."""
    for mark, lack in LACKS.items():
        if item.get_closest_marker(mark) and (missing := lack()):
            if mark in item.config.getoption("--require"):
                pytest.fail(f"--require {mark}: {missing}", pytrace=False)
            pytest.skip(missing)


@cache
def lacks_root() -> str | None:
    if sys.platform != "linux":
        return "needs Linux, for network namespaces"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    if not shutil.which("tc"):
        return "needs the command tc, of the package iproute2"
    from bench.targets.local import namespaces

    return namespaces.why_unavailable() or None


@cache
def lacks_ray() -> str | None:
    return None if find_spec("ray") else "needs the package ray"


@cache
def lacks_docker() -> str | None:
    if not shutil.which("docker"):
        return "needs the command docker"
    return None if answers("docker", "version") else "needs a Docker engine that answers"


@cache
def lacks_k8s() -> str | None:
    if not shutil.which("kubectl"):
        return "needs the command kubectl"
    if not shutil.which("task"):
        return "needs the command task, of the package go-task-bin"
    if answers("kubectl", "get", "--raw", "/readyz", "--request-timeout=5s"):
        return None
    if shutil.which("kind") and not lacks_docker():
        return None
    return "needs a Kubernetes cluster that answers, or kind and a Docker engine to make one"


@cache
def lacks_browser() -> str | None:
    found = any(shutil.which(command) for command in ("chromium", "chromium-browser", "google-chrome"))
    return None if found else "needs the command chromium, of the package chromium"


@cache
def lacks_prometheus() -> str | None:
    return None if shutil.which("prometheus") else "needs the command prometheus"


@cache
def lacks_promtool() -> str | None:
    return None if shutil.which("promtool") else "needs the command promtool, which comes with Prometheus"


def answers(*command: str) -> bool:
    """Whether `command` succeeds, soon."""
    try:
        return subprocess.run(command, capture_output=True, timeout=15, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


LACKS: dict[str, Callable[[], str | None]] = {
    "root": lacks_root,
    "ray": lacks_ray,
    "docker": lacks_docker,
    "k8s": lacks_k8s,
    "prometheus": lacks_prometheus,
    "promtool": lacks_promtool,
    "browser": lacks_browser,
}
