"""Sends to the head what a run needs, through the exporter: seeded data sets, and the work that earlier attempts did.

A data set is sent once a cluster; other nodes get it from the driver.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import http_client
from bench.errors import AuthFailed, TargetFailed
from bench.model import Spec
from bench.record.store import DONE, FILES
from bench.targets import Cluster

ASK_SECONDS = 10.0
SEND_SECONDS = 300.0
IT_RAN_HERE = 409  # so the head has the file


def deliver(path: Path, cluster: Cluster) -> bool:
    """Send the file of a data set to the head of `cluster`, unless it is there; whether it was sent.

    Its name contains its checksum, which the exporter checks: a file that is there is the right one. Raises AuthFailed or TargetFailed.
    """
    try:
        answer = _ask("HEAD", f"data/{path.name}", cluster, timeout_seconds=ASK_SECONDS)
    except http_client.RequestException as error:
        raise _not_sent(path, error) from error
    if _checked(answer).ok:
        return False
    _put(path, f"data/{path.name}", cluster)
    return True


def send_done_work(path: Path, spec: Spec, cluster: Cluster) -> None:
    """Send `path`, the work that the earlier attempt `spec` did, to where it was. Raises AuthFailed or TargetFailed."""
    _put(path, f"runs/{spec.session}/{spec.folder}/{FILES}/{DONE}", cluster, fine=(IT_RAN_HERE,))


def _put(path: Path, to: str, cluster: Cluster, *, fine: tuple[int, ...] = ()) -> None:
    try:
        with path.open("rb") as file:
            answer = _ask("PUT", to, cluster, timeout_seconds=SEND_SECONDS, data=file)
    except http_client.RequestException as error:
        raise _not_sent(path, error) from error
    if not _checked(answer).ok and answer.status_code not in fine:
        raise TargetFailed(f"The head did not take {path.name}: HTTP {answer.status_code}, {answer.text.strip()}.")


def _ask(method: str, path: str, cluster: Cluster, **options: Any) -> http_client.Response:
    return http_client.request(method, f"{cluster.exporter_url}/{path}", token=cluster.token, **options)


def _not_sent(path: Path, error: Exception) -> TargetFailed:
    return TargetFailed(f"{path.name} could not be sent to the head ({type(error).__name__}).", "Try `bench status`.")


def _checked(answer: http_client.Response) -> http_client.Response:
    if answer.status_code in (401, 403):
        raise AuthFailed("The exporter refused the token.", "Stand the cluster up again with `bench up`.")
    return answer
