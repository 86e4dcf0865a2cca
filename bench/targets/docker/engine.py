"""The Docker engine: reach it, make containers with files in them, find and end all that carries a label."""

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
USER = "io.raymeter.user"  # the id of who started it: what another user started is not ours to end
DEFAULT_SOCKET = "/var/run/docker.sock"
SWEEP_SECONDS = 30.0
_TIMEOUT_SECONDS = 60


class PermissionDenied(TargetFailed):
    """The engine may run, and this user may not open its socket."""

    def __init__(self) -> None:
        socket = os.environ.get("DOCKER_HOST", DEFAULT_SOCKET).removeprefix("unix://")
        super().__init__(
            f"Permission denied on the Docker socket {socket}.",
            "Add your user to the socket's group (`sudo usermod -aG docker $USER`) and log in again,"
            " or use another target: --target local.",
        )


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that is put into a container before it starts: seen by no `docker inspect`."""

    content: bytes
    mode: int = 0o644
    owner: int = 0


def connect() -> DockerClient:
    """The engine, which answers. Raises TargetFailed or BadInput."""
    import docker
    from docker.constants import MINIMUM_DOCKER_API_VERSION

    host = os.environ.get("DOCKER_HOST", "")
    if host.startswith(("ssh:", "tcp:")) and not any(name in host for name in ("//127.", "//localhost", "//[::1]")):
        raise BadInput(
            f"DOCKER_HOST={host} is another machine, and containers are reached at 127.0.0.1 only.",
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
    """A client that asks nothing until it ignores the environment's proxies: the engine is on this machine."""
    import docker

    client = docker.from_env(timeout=_TIMEOUT_SECONDS, version=api_version)
    client.api.trust_env = False
    return client


def _is_denied(error: BaseException | None) -> bool:
    """Whether the socket refused this user: the SDK wraps what the system said, more than once."""
    while error is not None:
        if isinstance(error, PermissionError):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn what the engine refuses into one line of ours."""
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        said = str(error.explanation or error).strip().rstrip(".")
        raise TargetFailed(f"The Docker engine refused {what}: {said}.") from error
    except (docker.errors.DockerException, http_client.RequestException) as error:
        raise TargetFailed(f"The Docker engine did not answer while it was asked for {what}: {error}.") from error


def archive(files: Mapping[str, File]) -> bytes:
    """A tar with `files`, by absolute path. Folders that lead to them are made by the engine, or left as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, file in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.uid, entry.gid = len(file.content), file.mode, file.owner, file.owner
            tar.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def folder_files(folder: Path, inside: str) -> dict[str, File]:
    """The files of `folder`, as they are to lie in a container under `inside`; caches left out."""
    return {
        f"{inside}/{path.relative_to(folder).as_posix()}": File(content=path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def start(
    client: DockerClient, settings: Mapping[str, Any], *, aliases: tuple[str, ...] = (), files: Mapping[str, File]
) -> Container:
    """Make a container, put `files` into it, and start it."""
    # The proxies of ~/.docker/config.json are for programs that reach out: nodes talk to one another.
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


def cpus(has: Mapping[str, Any]) -> tuple[Cpu, ...]:
    """The CPUs of the engine's machine, by what it says of itself. Their cores are known where it is this machine."""
    count, here = int(has["NCPU"]), effective_cpus().allowed
    if has.get("KernelVersion") != platform.release() or count not in (len(here), os.cpu_count()):
        return tuple(Cpu(number=number, siblings=(number,)) for number in range(count))
    return read_cpus(here if count == len(here) else range(count))


def running(client: DockerClient, labels: Mapping[str, str]) -> list[Container]:
    """The running containers that carry `labels`. Raises TargetFailed."""
    with translate_errors("a list of what it runs"):
        found: list[Container] = client.containers.list(filters=by_label(labels), ignore_removed=True)
    return found


def cpu_seconds(containers: Sequence[Container]) -> float:
    """CPU time that containers have used since each was started. Raises TargetFailed."""
    with translate_errors("the CPU time of its containers"):
        counted: list[Any] = [each.stats(stream=False, one_shot=True) for each in containers]
    return math.fsum(each["cpu_stats"]["cpu_usage"]["total_usage"] for each in counted) / 1e9


def read_file(container: Container, path: str) -> bytes:
    """A file of a container. Raises TargetFailed."""
    with translate_errors(f"{path} of {container.name}"):
        parts, _ = container.get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as tar:
            file = tar.extractfile(tar.getmembers()[0])
            return file.read() if file else b""


def error_in_log(container: Container) -> str:
    """Why a container failed, as the end of its log says it; empty where it printed nothing."""
    with translate_errors(f"the log of {container.name}"):
        return error_in_output(container.logs(tail=LOG_LINES).decode(errors="replace"))


def by_label(labels: Mapping[str, str]) -> dict[str, str | list[str] | bool]:
    """What the engine is asked with for all that carries `labels`."""
    return {"label": [f"{name}={value}" for name, value in labels.items()]}


def remains(client: DockerClient, labels: Mapping[str, str]) -> list[tuple[str, Any]]:
    """All that carries `labels`, in the order in which it can be removed; each with what it is called."""
    wanted = by_label(labels)
    with translate_errors("a list of what it runs"):
        containers = client.containers.list(all=True, filters=wanted, ignore_removed=True)
        volumes = client.volumes.list(filters=wanted)
        networks = client.networks.list(filters=wanted)
    return [
        *((f"container {each.name}", each) for each in containers),
        *((f"volume {each.name}", each) for each in volumes),
        *((f"network {each.name}", each) for each in networks),
    ]


def remove(client: DockerClient, labels: Mapping[str, str]) -> tuple[str, ...]:
    """End all that carries `labels`; says what that was. Raises TargetFailed where some of it stays."""
    import docker

    ended: dict[str, None] = {}
    deadline = time.monotonic() + SWEEP_SECONDS
    said = ""
    while found := remains(client, labels):
        if time.monotonic() > deadline:
            names = ", ".join(name for name, _ in found)
            raise TargetFailed(f"The Docker engine does not remove {names}: {said}.", "Try again, or restart it.")
        for name, each in found:
            ended[name] = None
            try:
                _remove_one(name, each)
            except docker.errors.NotFound:
                continue
            except docker.errors.APIError as error:  # still in use for a moment, or being removed by another
                said = str(error.explanation or error)
                time.sleep(0.1)
    return tuple(ended)


def _remove_one(name: str, each: Any) -> None:
    if name.startswith("container "):
        each.remove(force=True, v=True)
    elif name.startswith("volume "):
        each.remove(force=True)
    else:
        each.remove()
