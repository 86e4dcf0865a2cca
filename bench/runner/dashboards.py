"""Links sessions to the dashboards of their deployment, while that is up."""

from __future__ import annotations

from bench.errors import BenchError
from bench.prometheus import session_links
from bench.runner import session_lock
from bench.targets import Cluster, Target


def of_newest(cluster: Cluster) -> tuple[str, str]:
    """The newest session that the monitoring of `cluster` has, and the link to it; empty texts without Grafana or session."""
    if cluster.prometheus_url is None or cluster.grafana_url is None:
        return "", ""
    session = session_links.newest(cluster.prometheus_url)
    link = of_session(cluster, session, is_running=is_running(session)) if session else ""
    return (session, link) if link else ("", "")


def side_by_side(cluster: Cluster) -> str:
    """The link to all sessions of the newest one's experiment; empty without Grafana, or with fewer than two sessions."""
    if cluster.prometheus_url is None or cluster.grafana_url is None:
        return ""
    return session_links.side_by_side(cluster.prometheus_url, cluster.grafana_url)


def of_session(cluster: Cluster, session: str, *, is_running: bool) -> str:
    """The link to a session; empty if `cluster` has no Grafana, or its Prometheus does not have the session."""
    if cluster.prometheus_url is None or cluster.grafana_url is None:
        return ""
    return session_links.find(cluster.prometheus_url, cluster.grafana_url, session, is_running=is_running)


def of_target(target: Target, session: str, *, is_running: bool) -> str:
    """The link to a session on the dashboards of `target`; empty if they are not up, or do not have it."""
    try:
        cluster = target.status().cluster
    except BenchError:
        return ""
    return of_session(cluster, session, is_running=is_running) if cluster else ""


def is_running(session: str) -> bool:
    """Whether a process on this machine runs the session."""
    return any(holder.session == session for holder in session_lock.running().values())
