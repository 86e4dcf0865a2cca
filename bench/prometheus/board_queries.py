"""Reads the queries of the boards, finds the metrics in them, and fills in their variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

OF_PROMETHEUS = frozenset({"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS"})
"""Metrics that Prometheus makes itself."""

UNEXPECTED = "No data: "
"""The beginning of what a panel says without data, if every session has data for it."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_MATCHERS = re.compile(r"\{[^}]*\}")
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:(])")
_WORDS = frozenset(
    {"by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "offset", "bool"}
)
_LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+),\s*(?P<label>\w+)\)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One query of a panel."""

    board: str  # the board's title
    panel: str
    expr: str
    is_instant: bool
    may_be_empty: bool = False  # its panel then says why: a session has no caveat, or no such arm

    def __str__(self) -> str:
        return f"{self.board} / {self.panel}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics in the query."""
        return metric_names(self.expr)


def panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All panels of a board that show data, also those in rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def queries(board: Mapping[str, Any]) -> tuple[Query, ...]:
    """All queries of a board's panels."""
    return tuple(
        Query(
            board=board["title"],
            panel=panel["title"],
            expr=target["expr"],
            is_instant=bool(target.get("instant")),
            may_be_empty=not panel["fieldConfig"]["defaults"].get("noValue", UNEXPECTED).startswith(UNEXPECTED),
        )
        for panel in panels(board)
        for target in panel["targets"]
    )


def other_expressions(board: Mapping[str, Any]) -> tuple[Query, ...]:
    """The queries of a board's annotations and variables, which may have no data."""
    annotations = [(entry["name"], entry["expr"]) for entry in board["annotations"].get("list", []) if "expr" in entry]
    variables = [
        (entry["name"], match["selector"])
        for entry in board["templating"]["list"]
        if (match := _LABEL_VALUES.fullmatch(entry["query"]))
    ]
    return tuple(
        Query(board=board["title"], panel=f"{kind} {name}", expr=expr, is_instant=False)
        for kind, expressions in (("annotation", annotations), ("variable", variables))
        for name, expr in expressions
    )


def metric_names(expr: str) -> tuple[str, ...]:
    """The metrics that a PromQL expression names, in order."""
    bare = expr
    for part in (_STRING, _MATCHERS, _RANGE, _GROUPING):
        bare = part.sub(" ", bare)
    return tuple(dict.fromkeys(name for name in _NAME.findall(bare) if name not in _WORDS))


LabelValues = Callable[[str, str], tuple[str, ...]]
"""Gives the values of a label in the series of a selector."""


def variables(board: Mapping[str, Any], label_values: LabelValues, chosen: Mapping[str, str]) -> dict[str, str]:
    """The values of a board's variables when Grafana opens it with some of them `chosen`."""
    definitions: dict[str, str] = {}
    for entry in board["templating"]["list"]:
        name = entry["name"]
        if name in chosen:
            definitions[name] = chosen[name]
        elif entry.get("includeAll"):
            definitions[name] = entry["allValue"]
        elif match := _LABEL_VALUES.fullmatch(entry["query"]):
            newest_first = entry["sort"] == 2
            values = sorted(label_values(match["label"], fill(match["selector"], definitions)), reverse=newest_first)
            definitions[name] = values[0] if values else ""
    return definitions


def fill(expr: str, values: Mapping[str, str], *, range_seconds: float = 3600, scrape_seconds: float = 2) -> str:
    """`expr` with its variables, and Grafana's own, filled in."""
    own = {
        "__range": f"{max(range_seconds, 1):.0f}s",
        "__interval": f"{scrape_seconds:.0f}s",
        "__rate_interval": f"{4 * scrape_seconds:.0f}s",
    }
    every = {**own, **values}
    return re.sub(r"\$(\w+)", lambda match: every.get(match[1], match[0]), expr)
