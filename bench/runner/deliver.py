"""Sends to the head, through the exporter, what a run needs, and what boards show of the session.

A run needs seeded data sets, and the items that earlier attempts have done.

A data set is sent once per cluster; the other nodes get it from the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import http_client
from bench.cluster.incoming import SESSION_GAUGES
from bench.errors import AuthFailed, TargetFailed
from bench.model import Spec, to_json
from bench.prometheus.session_gauges import Gauge
from bench.record.store import DONE, FILES
from bench.targets import Cluster

REQUEST_SECONDS = 10.0
GAUGES_SECONDS = 5.0  # between two runs
SEND_SECONDS = 300.0
IT_RAN_HERE = 409  # HTTP status if the attempt ran on this head, which therefore has the file


def deliver(path: Path, cluster: Cluster) -> bool:
    """Send the file of a data set to the head of `cluster`, unless the head has it. Returns whether it was sent.

    The name contains the checksum, which the exporter checks: a file of that name is the right one. Raises AuthFailed or TargetFailed.
    """
    try:
        answer = _request("HEAD", f"data/{path.name}", cluster, timeout_seconds=REQUEST_SECONDS)
    except http_client.RequestException as error:
        raise _not_sent(path, error) from error
    if _checked(answer).ok:
        return False
    _put(path, f"data/{path.name}", cluster)
    return True


def send_done_work(path: Path, spec: Spec, cluster: Cluster) -> None:
    """Send `path`, the items that the earlier attempt `spec` has done, to that attempt's folder. Raises AuthFailed or TargetFailed."""
    _put(path, f"runs/{spec.session}/{spec.folder}/{FILES}/{DONE}", cluster, accepted=(IT_RAN_HERE,))


def send_gauges(gauges: Sequence[Gauge], session: str, cluster: Cluster) -> None:
    """Send what the metrics page shows of a whole session. Raises http_client.RequestException, AuthFailed or TargetFailed."""
    answer = _request(
        "PUT",
        f"sessions/{session}/{SESSION_GAUGES}",
        cluster,
        timeout_seconds=GAUGES_SECONDS,
        data=to_json(tuple(gauges)),
    )
    if not _checked(answer).ok:
        raise TargetFailed(
            f"The head refused the values of the session: HTTP {answer.status_code}, {answer.text.strip()}."
        )


def _put(path: Path, to: str, cluster: Cluster, *, accepted: tuple[int, ...] = ()) -> None:
    try:
        with path.open("rb") as file:
            answer = _request("PUT", to, cluster, timeout_seconds=SEND_SECONDS, data=file)
    except http_client.RequestException as error:
        raise _not_sent(path, error) from error
    if not _checked(answer).ok and answer.status_code not in accepted:
        raise TargetFailed(f"The head refused {path.name}: HTTP {answer.status_code}, {answer.text.strip()}.")


def _request(method: str, path: str, cluster: Cluster, **options: Any) -> http_client.Response:
    return http_client.request(method, f"{cluster.exporter_url}/{path}", token=cluster.token, **options)


def _not_sent(path: Path, error: Exception) -> TargetFailed:
    return TargetFailed(f"{path.name} could not be sent to the head ({type(error).__name__}).", "Try `bench status`.")


def _checked(answer: http_client.Response) -> http_client.Response:
    if answer.status_code in (401, 403):
        raise AuthFailed("The exporter refused the token.", "Stand the cluster up again with `bench up`.")
    return answer
