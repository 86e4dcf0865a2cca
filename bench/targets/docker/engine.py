"""Connects to the Docker engine, makes containers with files in them, finds and removes everything with a label."""

from __future__ import annotations

import io
import math
import os
import platform
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import http_client
from bench.errors import BadInput, TargetFailed, error_in_output
from bench.machine.cores import Cpu, read_cpus
from bench.machine.effective_cpus import effective_cpus
from bench.record.files import LOG_LINES

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

DEPLOYMENT = "io.raymeter.deployment"
USER = "io.raymeter.user"  # the id of the user who started it; others' containers are not removed
DEFAULT_SOCKET = "/var/run/docker.sock"
SWEEP_SECONDS = 30.0
_TIMEOUT_SECONDS = 60


class PermissionDenied(TargetFailed):
    """This user may not open the engine's socket."""

    def __init__(self) -> None:
        socket = os.environ.get("DOCKER_HOST", DEFAULT_SOCKET).removeprefix("unix://")
        super().__init__(
            f"Permission denied on the Docker socket {socket}.",
            "Add your user to the socket's group (`sudo usermod -aG docker $USER`) and log in again,"
            " or use another target: --target local.",
        )


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that is put into a container before it starts; `docker inspect` does not show it."""

    content: bytes
    mode: int = 0o644
    owner: int = 0


def connect() -> DockerClient:
    """A client of an engine that answers. Raises TargetFailed or BadInput."""
    import docker
    from docker.constants import MINIMUM_DOCKER_API_VERSION

    host = os.environ.get("DOCKER_HOST", "")
    if host.startswith(("ssh:", "tcp:")) and not any(name in host for name in ("//127.", "//localhost", "//[::1]")):
        raise BadInput(
            f"DOCKER_HOST={host} is another machine, but containers can only be reached at 127.0.0.1.",
            "Run raymeter on that machine, or unset DOCKER_HOST.",
        )
    try:
        with closing(_client(MINIMUM_DOCKER_API_VERSION)) as any_version:
            version = any_version.api.version(api_version=False)["ApiVersion"]
        return _client(version)
    except (docker.errors.DockerException, OSError) as error:
        if _is_denied(error):
            raise PermissionDenied from error
        raise TargetFailed(
            "The Docker engine does not answer.", "Start it, or use another target: task up TARGET=local"
        ) from error


def _client(api_version: str) -> DockerClient:
    """A client that ignores the environment's proxies from its first request on: the engine is on this machine."""
    import docker

    client = docker.from_env(timeout=_TIMEOUT_SECONDS, version=api_version)
    client.api.trust_env = False
    return client


def _is_denied(error: BaseException | None) -> bool:
    """Whether the socket refused this user; the SDK wraps the system's error more than once."""
    while error is not None:
        if isinstance(error, PermissionError):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Translate errors of the engine, which was asked for `what`, into TargetFailed."""
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        reason = str(error.explanation or error).strip().rstrip(".")
        raise TargetFailed(f"The Docker engine refused {what}: {reason}.") from error
    except (docker.errors.DockerException, http_client.RequestException) as error:
        raise TargetFailed(f"The Docker engine did not answer a request for {what}: {error}.") from error


def archive(files: Mapping[str, File]) -> bytes:
    """A tar archive of `files`, by absolute path. The engine makes missing folders."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, file in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.uid, entry.gid = len(file.content), file.mode, file.owner, file.owner
            tar.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def folder_files(folder: Path, inside: str) -> dict[str, File]:
    """The files of `folder` by their path in a container below `inside`, without caches."""
    return {
        f"{inside}/{path.relative_to(folder).as_posix()}": File(content=path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def start(
    client: DockerClient, settings: Mapping[str, Any], *, aliases: tuple[str, ...] = (), files: Mapping[str, File]
) -> Container:
    """Make a container, put `files` into it, and start it."""
    # The proxies of ~/.docker/config.json are for requests to other machines; nodes talk to each other.
    options = {**settings, "use_config_proxy": False}
    if "network" in options:
        endpoint = client.api.create_endpoint_config(aliases=list(aliases))
        options["networking_config"] = {options["network"]: endpoint}
    with translate_errors(f"the container {options['name']}"):
        container = client.containers.create(**options)
        if files:
            container.put_archive("/", archive(files))
        container.start()
    return container


def cpus(info: Mapping[str, Any]) -> tuple[Cpu, ...]:
    """The CPUs of the engine's machine, from its own description; with their cores if it is this machine."""
    count, here = int(info["NCPU"]), effective_cpus().allowed
    if info.get("KernelVersion") != platform.release() or count not in (len(here), os.cpu_count()):
        return tuple(Cpu(number=number, siblings=(number,)) for number in range(count))
    return read_cpus(here if count == len(here) else range(count))


def running(client: DockerClient, labels: Mapping[str, str]) -> list[Container]:
    """The running containers with `labels`. Raises TargetFailed."""
    with translate_errors("a list of its containers"):
        containers: list[Container] = client.containers.list(filters=by_label(labels), ignore_removed=True)
    return containers


def cpu_seconds(containers: Sequence[Container]) -> float:
    """CPU time of containers since they were started. Raises TargetFailed."""
    with translate_errors("the CPU time of its containers"):
        all_stats: list[Any] = [stats.stats(stream=False, one_shot=True) for stats in containers]
    return math.fsum(stats["cpu_stats"]["cpu_usage"]["total_usage"] for stats in all_stats) / 1e9


def read_file(container: Container, path: str) -> bytes:
    """A file of a container. Raises TargetFailed."""
    with translate_errors(f"{path} of {container.name}"):
        parts, _ = container.get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as tar:
            file = tar.extractfile(tar.getmembers()[0])
            return file.read() if file else b""


def error_in_log(container: Container) -> str:
    """The reason of a container's failure, from the end of its log; empty if the log is empty."""
    with translate_errors(f"the log of {container.name}"):
        return error_in_output(container.logs(tail=LOG_LINES).decode(errors="replace"))


def by_label(labels: Mapping[str, str]) -> dict[str, str | list[str] | bool]:
    """The filter of the engine's lists for `labels`."""
    return {"label": [f"{name}={value}" for name, value in labels.items()]}


def remains(client: DockerClient, labels: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Everything with `labels`, by name, in the order in which it can be removed."""
    wanted = by_label(labels)
    with translate_errors("a list of its containers"):
        containers = client.containers.list(all=True, filters=wanted, ignore_removed=True)
        volumes = client.volumes.list(filters=wanted)
        networks = client.networks.list(filters=wanted)
    return [
        *((f"container {container.name}", container) for container in containers),
        *((f"volume {volume.name}", volume) for volume in volumes),
        *((f"network {network.name}", network) for network in networks),
    ]


def remove(client: DockerClient, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Remove everything with `labels`, and return the names. Raises TargetFailed if something remains."""
    import docker

    ended: dict[str, None] = {}
    deadline = time.monotonic() + SWEEP_SECONDS
    reason = ""
    while remaining := remains(client, labels):
        if time.monotonic() > deadline:
            names = ", ".join(name for name, _ in remaining)
            raise TargetFailed(f"The Docker engine does not remove {names}: {reason}.", "Try again, or restart it.")
        for name, resource in remaining:
            ended[name] = None
            try:
                _remove_one(name, resource)
            except docker.errors.NotFound:
                continue
            except docker.errors.APIError as error:  # in use for a moment, or being removed by another process
                reason = str(error.explanation or error)
                time.sleep(0.1)
    return tuple(ended)


def _remove_one(name: str, resource: Any) -> None:
    if name.startswith("container "):
        resource.remove(force=True, v=True)
    elif name.startswith("volume "):
        resource.remove(force=True)
    else:
        resource.remove()
