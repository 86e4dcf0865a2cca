"""Names and builds the image of the targets docker and k8s, and checks the code in it."""

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
    """The inputs of one build."""

    folder: Path
    tags: tuple[str, ...]
    arguments: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Built:
    """The result of a build."""

    tags: tuple[str, ...]
    id: str
    size_bytes: int
    seconds: float


def default_tag() -> str:
    """The tag that targets and manifests use; each build of this version moves it."""
    return f"{REPOSITORY}:{version()}"


def exact_tag() -> str:
    """The tag of exactly this code."""
    return f"{REPOSITORY}:{version()}-{code_hash()}"


def recipe(folder: Path = SOURCE.parent, *, tag: str | None = None) -> Recipe:
    """The inputs to build the image from the checkout in `folder`. Raises BadInput."""
    if not (folder / DOCKERFILE).is_file():
        raise BadInput(
            f"{folder / DOCKERFILE} is missing: an image is built from a checkout.",
            "Clone the repository and run `task image` in it.",
        )
    if tag is not None and (not _TAG.fullmatch(tag) or tag.endswith(":latest")):
        raise BadInput(f"--tag must be NAME:VERSION and not latest, got {tag}.", f"Example: {exact_tag()}.")
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
    """The versions in images/versions.env."""
    lines = (folder / "images/versions.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def build(client: DockerClient, plan: Recipe, *, say: Callable[[str], None]) -> Built:
    """Build the image, and report each step to `say`. Raises TargetFailed with the engine's message."""
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
    """Report the steps of a build to `say`. Raises TargetFailed for a step that failed, with the reason from its output."""
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
    """Raise BadInput if an image has other code than this checkout, unless that is sent with --dev."""
    in_image, here = labels.get(CODE_HASH), code_hash()
    if in_image != here and not is_dev:
        raise BadInput(
            f"The image {reference} has {f'the code {in_image}' if in_image else 'no code of raymeter'},"
            f" and this checkout is {here}.",
            "Build it again with `task image`, or send the local code with --dev.",
        )


def digest_fact(identity: str, *, is_dev: bool) -> str:
    """The image as a record names it."""
    return f"{identity} with local code" if is_dev else identity
