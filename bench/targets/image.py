"""The image that the targets docker and k8s run: how it is called, built, and told from one of other code."""

from __future__ import annotations

import hashlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import BadInput, TargetFailed, error_in_output
from bench.identity import SOURCE, code_hash, version
from bench.record.files import LOG_LINES
from bench.targets.docker import engine

if TYPE_CHECKING:
    from docker import DockerClient

REPOSITORY = "raymeter/ray"
DOCKERFILE = "images/ray/Dockerfile"
CODE_HASH = "io.raymeter.code-hash"
LOCK = "io.raymeter.lock"
_SILENCE_SECONDS = 1200  # of a build step: uv says nothing while it fetches a gigabyte
_STEP_WIDTH = 100
_TAG = re.compile(r"[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that one build is given."""

    folder: Path
    tags: tuple[str, ...]
    arguments: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Built:
    """What came of it."""

    tags: tuple[str, ...]
    id: str
    size_bytes: int
    seconds: float


def default_tag() -> str:
    """The tag that targets and manifests name: it moves with every build of this version."""
    return f"{REPOSITORY}:{version()}"


def exact_tag() -> str:
    """The tag that only this very code has."""
    return f"{REPOSITORY}:{version()}-{code_hash()}"


def recipe(folder: Path = SOURCE.parent, *, tag: str | None = None) -> Recipe:
    """How to build the image from the checkout in `folder`. Raises BadInput."""
    if not (folder / DOCKERFILE).is_file():
        raise BadInput(
            f"{folder / DOCKERFILE} is not there: an image is built from a checkout.",
            "Get one, and run `task image` in it.",
        )
    if tag is not None and (not _TAG.fullmatch(tag) or tag.endswith(":latest")):
        raise BadInput(
            f"--tag {tag}: an image is named NAME:VERSION here, and never latest.", f"Such as {exact_tag()}."
        )
    versions = pinned(folder)
    base = versions["BASE_IMAGE"] + (f"@{digest}" if (digest := versions.get("BASE_DIGEST")) else "")
    lock = hashlib.sha256((folder / "uv.lock").read_bytes()).hexdigest()[:16]
    return Recipe(
        folder=folder,
        tags=(tag,) if tag else (exact_tag(), default_tag()),
        arguments={"BASE_IMAGE": base, "LOCK": lock},
        labels={
            "org.opencontainers.image.title": "raymeter",
            "org.opencontainers.image.version": version(),
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.base.name": base,
            CODE_HASH: code_hash(folder / "bench"),
            LOCK: lock,
        },
    )


def pinned(folder: Path) -> dict[str, str]:
    """What images/versions.env says."""
    lines = (folder / "images/versions.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def build(client: DockerClient, plan: Recipe, *, say: Callable[[str], None]) -> Built:
    """Build the image, telling `say` of each step. Raises TargetFailed with what the engine says."""
    began = time.monotonic()
    with engine.translate_errors("a build"):
        events = client.api.build(
            path=str(plan.folder),
            dockerfile=DOCKERFILE,
            tag=plan.tags[0],
            buildargs=dict(plan.arguments),
            labels=dict(plan.labels),
            rm=True,
            forcerm=True,
            decode=True,
            timeout=_SILENCE_SECONDS,
        )
        follow(events, say=say)
    image = client.images.get(plan.tags[0])
    for tag in plan.tags[1:]:
        image.tag(tag)
    return Built(tags=plan.tags, id=str(image.id), size_bytes=image.attrs["Size"], seconds=time.monotonic() - began)


def follow(events: Iterable[Mapping[str, Any]], *, say: Callable[[str], None]) -> None:
    """Pass the steps of a build on. Raises TargetFailed for a step that failed, with the reason in its output."""
    step, output = "", deque[str](maxlen=LOG_LINES)
    for event in events:
        text = str(event.get("stream", "")).strip()
        if text.startswith("Step "):
            step = text
            output.clear()
            say(f"{text[:_STEP_WIDTH]}…" if len(text) > _STEP_WIDTH else text)
        elif error := event.get("error"):
            reason = error_in_output("\n".join(output))
            cause = f"{reason}. " if reason and reason not in str(error) else ""
            raise TargetFailed(f"The image was not built. {step[:_STEP_WIDTH]}: {cause}{str(error).strip()}.")
        elif text:
            output += text.splitlines()


def check_code(reference: str, labels: Mapping[str, str], *, is_dev: bool) -> None:
    """Raise BadInput where an image has other code than the caller, who does not send his own."""
    there, here = labels.get(CODE_HASH), code_hash()
    if there != here and not is_dev:
        raise BadInput(
            f"The image {reference} has {f'the code {there}' if there else 'no code of raymeter'},"
            f" and this checkout is {here}.",
            "Build it with `task image`, or send the local code with --dev.",
        )


def digest_fact(identity: str, *, is_dev: bool) -> str:
    """What a record says of the image that it was made with."""
    return f"{identity} with local code" if is_dev else identity
