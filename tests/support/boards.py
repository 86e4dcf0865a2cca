"""What a person would see on the boards: each panel's query, asked through Grafana, for one experiment of a session."""

from __future__ import annotations

import time
from datetime import datetime

from bench.doctor import monitoring
from bench.model import Session
from bench.prometheus import boards as committed
from bench.prometheus.client import Grafana


def empty(grafana_url: str, session: Session, experiment: str) -> list[str]:
    """The panels that show nothing of an experiment, each with its metrics."""
    grafana = Grafana(grafana_url)
    chosen = {"session": session.id, "experiment": experiment}
    begin = datetime.fromisoformat(session.created).timestamp()
    boards = grafana.boards()
    assert set(boards) == {committed.uid(name) for name in committed.NAMES}
    return [
        f"{found}, asked as {found.expr}"
        for board in boards.values()
        for found in monitoring.empty_panels(grafana.source, board, chosen=chosen, begin=begin, end=time.time())
    ]
