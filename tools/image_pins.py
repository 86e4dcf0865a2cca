"""The pins of images/versions.env, made anew from what a registry says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.errors import TargetFailed

if TYPE_CHECKING:
    from docker import DockerClient

_IMAGE = re.compile(r"^(\w+)_IMAGE=(\S+)$", re.MULTILINE)


def images(text: str) -> dict[str, str]:
    """The images that versions.env names, by the first part of their keys: BASE, GRAFANA."""
    return dict(_IMAGE.findall(text))


def digests(client: DockerClient, named: Mapping[str, str]) -> dict[str, str]:
    """What each image's tag is in its registry now. Raises TargetFailed, before anything is written."""
    import docker

    found = {}
    for key, name in named.items():
        try:
            found[key] = str(client.images.get_registry_data(name).id)
        except docker.errors.APIError as error:
            reason = str(error.explanation or error).strip().rstrip(".")
            raise TargetFailed(
                f"The registry of {name} says no digest: {reason}.",
                "The pins stay as they are; try where it is reached.",
            ) from error
    return found


def with_digests(text: str, found: Mapping[str, str]) -> str:
    """versions.env with a line KEY_DIGEST after each line KEY_IMAGE, in place of the one that was there."""
    lines = [line for line in text.splitlines() if not re.match(r"\w+_DIGEST=", line)]
    pinned = []
    for line in lines:
        pinned.append(line)
        if (match := _IMAGE.match(line)) and match[1] in found:
            pinned.append(f"{match[1]}_DIGEST={found[match[1]]}")
    return "\n".join(pinned) + "\n"
