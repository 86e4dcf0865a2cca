"""Pins made anew: digests stand beside their tags, once, and nothing else moves."""

from __future__ import annotations

from types import SimpleNamespace

import docker
import pytest

from bench.errors import TargetFailed
from tools import image_pins

BEFORE = "# why\nRAY_VERSION=1\n\nBASE_IMAGE=python:3.11\nGRAFANA_IMAGE=grafana/grafana:12\n"


def test_digests_stand_after_their_tags_and_are_replaced_and_not_added() -> None:
    assert image_pins.images(BEFORE) == {"BASE": "python:3.11", "GRAFANA": "grafana/grafana:12"}
    once = image_pins.with_digests(BEFORE, {"BASE": "sha256:1", "GRAFANA": "sha256:2"})
    assert once == (
        "# why\nRAY_VERSION=1\n\nBASE_IMAGE=python:3.11\nBASE_DIGEST=sha256:1\n"
        "GRAFANA_IMAGE=grafana/grafana:12\nGRAFANA_DIGEST=sha256:2\n"
    )
    assert image_pins.with_digests(once, {"BASE": "sha256:3", "GRAFANA": "sha256:2"}) == once.replace(
        "sha256:1", "sha256:3"
    )


def test_a_registry_that_does_not_answer_is_one_line_and_nothing_is_written() -> None:
    def refuse(name: str) -> None:
        raise docker.errors.APIError("500", explanation="dial tcp: lookup registry: no such host")

    client = SimpleNamespace(images=SimpleNamespace(get_registry_data=refuse))
    with pytest.raises(TargetFailed, match=r"python:3\.11 says no digest: .*no such host\. The pins stay"):
        image_pins.digests(client, {"BASE": "python:3.11"})  # type: ignore[arg-type]
