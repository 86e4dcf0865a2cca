"""Puts the answers of `--json` into one envelope with the name and version of their schema."""

from __future__ import annotations

from typing import Any

SCHEMAS = {
    "baseline": (1, "`baseline set` and `baseline rm`: a name and its session."),
    "baselines": (1, "`baseline list`: each name's session, and whether it exists."),
    "capsule": (1, "`export`: the path of the capsule, and a sentence about its series of Prometheus."),
    "comparison": (1, "`compare`: conditions that differ, then every number of both sessions with its verdict."),
    "data-set": (1, "`data seed`: the data set and its file."),
    "data-sets": (2, "`data list`: the data sets, their checksums, and how to get the missing ones."),
    "ended": (1, "`down`: sentences about what was stopped."),
    "experiments": (1, "`list`: params, metrics, arms and profiles of each experiment, or of the named one."),
    "findings": (1, "`doctor`: what was checked, what was found, and what to do."),
    "history": (1, "`history`: a metric's value in each session, with its interval."),
    "image": (1, "`image`: its tags, digest, size, and the hash of the code in it."),
    "manifest": (1, "`manifest`: the objects for Kubernetes, as in its YAML."),
    "pilot": (1, "`pilot`: for each cell, where its variance is, and what longer sessions would show."),
    "plan": (2, "`plan`: the session that would run, and how long it would take."),
    "removed": (1, "`rm`: the deleted sessions."),
    "replay": (1, "`replay`: each verdict of the capsule and of this machine, and the report of the new session."),
    "report": (1, "`report`, `run` and `resume`: the whole report."),
    "run": (1, "`show SESSION RUN`: the spec, facts, samples and resource use of one run."),
    "runs": (1, "`show`: how each run of a session ended."),
    "selfcheck": (1, "`selfcheck`: each check and its result."),
    "sessions": (1, "`list sessions`: the sessions, the oldest first."),
    "status": (
        1,
        "`status`: for each target, what is up, what remains of a crash, and the newest session with its dashboards.",
    ),
    "tables": (1, "`export --otava`: the folder, and the table of each series that has a row of the session."),
    "targets": (1, "`list targets`: their names."),
    "try": (1, "`try`: the samples of one local run, the credited work, and what does not match the declarations."),
    "up": (1, "`up`: the running cluster."),
    "verified": (1, "`verify`: what was checked in a capsule, and which raymeter packed it."),
}
"""Version and content by name. A key that goes or changes its meaning makes a new version; a new key does not."""


def envelope(schema: str, data: Any) -> dict[str, Any]:
    """`data` with the name and version of its schema."""
    version, _ = SCHEMAS[schema]
    return {"schema": f"raymeter.{schema}", "version": version, "data": data}
