"""Outside: a seeded data set goes to the head once a cluster, through the exporter. Other nodes have it from the driver."""

from __future__ import annotations

from pathlib import Path

import requests

from bench.errors import AuthFailed, TargetFailed
from bench.targets import Cluster

ASK_SECONDS = 10.0
SEND_SECONDS = 300.0


def deliver(path: Path, cluster: Cluster) -> bool:
    """Have the file of a set on the head of `cluster`; whether it had to be sent.

    Its name has its checksum, which the exporter looks at: what is there is the right one. Raises AuthFailed or TargetFailed.
    """
    url = f"{cluster.exporter_url}/data/{path.name}"
    headers = {"Authorization": f"Bearer {cluster.token}"}
    try:
        if _checked(requests.head(url, headers=headers, timeout=ASK_SECONDS)).ok:
            return False
        with path.open("rb") as file:
            answer = _checked(requests.put(url, data=file, headers=headers, timeout=SEND_SECONDS))
    except requests.RequestException as error:
        raise TargetFailed(
            f"The set {path.name} could not be sent to the head ({type(error).__name__}).", "Try `bench status`."
        ) from error
    if not answer.ok:
        raise TargetFailed(
            f"The head did not take the set {path.name}: HTTP {answer.status_code}, {answer.text.strip()}."
        )
    return True


def _checked(answer: requests.Response) -> requests.Response:
    if answer.status_code in (401, 403):
        raise AuthFailed("The exporter refused the token.", "Stand the cluster up again with `bench up`.")
    return answer
