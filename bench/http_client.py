"""Sends every HTTP request to raymeter's own nodes, Prometheus and Grafana, and takes no setting from the environment.

By default an HTTP library obeys HTTP_PROXY, ALL_PROXY and ~/.netrc. A proxy does not reach addresses that exist on this
machine only, and it would be given the bearer token of a cluster that runs whatever it is told. Nothing else in `bench`
may import an HTTP client: the linter's list of banned imports in pyproject.toml keeps them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

Response = requests.Response
RequestException = requests.RequestException
ConnectionError = requests.ConnectionError  # noqa: A001 - as requests calls it
HTTPError = requests.HTTPError
ReadTimeout = requests.ReadTimeout


def request(
    method: str,
    url: str,
    *,
    token: str = "",
    timeout_seconds: float,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Response:
    """The answer of `url`, asked directly. Raises RequestException; `options` are those of requests."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, headers=sent, timeout=timeout_seconds, **options)


def get(url: str, *, token: str = "", timeout_seconds: float, **options: Any) -> Response:
    """As `request`, with the method GET."""
    return request("GET", url, token=token, timeout_seconds=timeout_seconds, **options)
