"""The image: what a build is given, what is said when it breaks, and whose code is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import BadInput, TargetFailed
from bench.identity import SOURCE, code_hash, version
from bench.targets import image

ROOT = SOURCE.parent


def test_the_tags_are_explicit_and_the_label_is_the_callers_code() -> None:
    recipe = image.recipe()
    assert recipe.tags == (f"raymeter/ray:{version()}-{code_hash()}", f"raymeter/ray:{version()}")
    assert recipe.labels[image.CODE_HASH] == code_hash()
    assert recipe.labels["org.opencontainers.image.version"] == version()
    assert recipe.arguments["BASE_IMAGE"] == "python:3.11-slim-bookworm"


def test_a_tag_of_ones_own_is_the_only_one() -> None:
    assert image.recipe(tag="registry:5000/me/ray:1").tags == ("registry:5000/me/ray:1",)


@pytest.mark.parametrize("tag", ["ray", "ray:latest", "Ray:1", "ray:1 2", "-ray:1", ""])
def test_a_tag_that_moves_or_is_none_is_refused(tag: str) -> None:
    with pytest.raises(BadInput, match="NAME:VERSION"):
        image.recipe(tag=tag)


def test_an_image_is_built_from_a_checkout_only(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="task image"):
        image.recipe(tmp_path)


def test_the_lock_changes_with_a_pin_and_the_code_hash_with_the_code(tmp_path: Path) -> None:
    for name in ("images", "bench"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "uv.lock", tmp_path)
    same = image.recipe(tmp_path)
    assert same.labels == image.recipe().labels
    (tmp_path / "uv.lock").write_text("ray==0\n")
    (tmp_path / "bench/model.py").write_text("")
    assert image.recipe(tmp_path).labels[image.LOCK] != same.labels[image.LOCK]
    assert code_hash(tmp_path / "bench") == same.labels[image.CODE_HASH]  # kept for this process: code does not change
    fresh = "import sys; from pathlib import Path; from bench.identity import code_hash; print(code_hash(Path(sys.argv[1])))"
    changed = subprocess.check_output([sys.executable, "-c", fresh, str(tmp_path / "bench")], text=True).strip()
    assert changed != same.labels[image.CODE_HASH]


def test_caches_are_no_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "__pycache__").mkdir()
    before = code_hash(tmp_path)
    code_hash.cache_clear()
    (tmp_path / "__pycache__/a.cpython-311.pyc").write_text("2")
    assert code_hash(tmp_path) == before


@pytest.mark.parametrize(
    ("labels", "said"), [({image.CODE_HASH: "0123"}, "the code 0123"), ({}, "no code of raymeter")]
)
def test_other_code_is_refused_with_both_names_and_the_way_out(labels: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=f"{said}.*{code_hash()}.*task image.*--dev"):
        image.check_code("ray:1", labels, is_dev=False)


def test_the_callers_code_passes_and_so_does_any_with_dev() -> None:
    image.check_code("ray:1", {image.CODE_HASH: code_hash()}, is_dev=False)
    image.check_code("ray:1", {}, is_dev=True)
    assert image.digest_fact("sha256:1", is_dev=False) == "sha256:1"
    assert image.digest_fact("sha256:1", is_dev=True) == "sha256:1 with local code"


def test_a_build_that_breaks_says_at_which_step_and_why() -> None:
    said: list[str] = []
    events = [
        {"stream": "Step 1/2 : FROM base\n"},
        {"stream": "Step 2/2 : RUN pip install ray\n"},
        {"stream": "ERROR: No matching distribution found for ray\n"},
        {"error": "The command returned a non-zero code: 1"},
    ]
    with pytest.raises(
        TargetFailed, match=r"Step 2/2 : RUN pip install ray: ERROR: No matching distribution .*code: 1\."
    ):
        image.follow(events, say=said.append)
    assert said == ["Step 1/2 : FROM base", "Step 2/2 : RUN pip install ray"]


def test_the_dockerfile_needs_no_buildkit_and_names_no_architecture() -> None:
    text = (ROOT / image.DOCKERFILE).read_text()
    for word in ("--mount", "<<", "# syntax", "amd64", "arm64", "x86_64", "aarch64", "TARGETARCH"):
        assert word not in text


def test_the_code_comes_after_the_packages() -> None:
    """A change in bench/ makes the last layers anew, and no other."""
    lines = (ROOT / image.DOCKERFILE).read_text().splitlines()
    packages = next(index for index, line in enumerate(lines) if ".ci/setup /opt/venv" in line)
    code = next(index for index, line in enumerate(lines) if line.startswith("COPY bench"))
    arguments = next(index for index, line in enumerate(lines) if line.startswith("ARG LOCK"))
    assert packages < code < arguments
