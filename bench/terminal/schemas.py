"""What commands answer with `--json`: one envelope, and the name and version of each schema that may be in it."""

from __future__ import annotations

from typing import Any

SCHEMAS = {
    "baseline": (1, "`baseline set` and `baseline rm`: a name, and the session that it is now."),
    "baselines": (1, "`baseline list`: each name's session, and whether it is there."),
    "capsule": (1, "`export`: the path of the capsule, and in words what it has of Prometheus."),
    "comparison": (1, "`compare`: what differs, then every number of both sessions with its verdict."),
    "data-set": (1, "`data seed`: the set, and the file that it is kept in."),
    "data-sets": (1, "`data list`: the data sets, their checksums, and how to get those that are not here."),
    "ended": (1, "`down`: what was ended, in words."),
    "experiments": (1, "`list`: params, metrics, arms and profiles of each experiment, or of the one that was named."),
    "findings": (1, "`doctor`: what was looked at, what was seen, and what to do."),
    "history": (1, "`history`: a metric's value in each session, with its interval."),
    "image": (1, "`image`: its tags, digest, size, and the hash of the code in it."),
    "manifest": (1, "`manifest`: the objects for Kubernetes, as in its YAML."),
    "pilot": (1, "`pilot`: of each cell, where its variance is, and what longer sessions would show."),
    "plan": (2, "`plan`: the session that would run, and how long it would take."),
    "removed": (1, "`rm`: the sessions that are gone."),
    "replay": (1, "`replay`: each verdict of the capsule beside the one here, and the report of what was done here."),
    "report": (1, "`report`, `run` and `resume`: all that the report says."),
    "run": (1, "`show SESSION RUN`: one run: spec, facts, samples and use of the nodes."),
    "runs": (1, "`show`: how each run of a session ended."),
    "selfcheck": (1, "`selfcheck`: each check, and whether it is good."),
    "sessions": (1, "`list sessions`: the sessions, the oldest first."),
    "status": (1, "`status`: of each target, what is up and what is left."),
    "tables": (1, "`export --otava`: the folder, and the table of each series that has a row of the session."),
    "targets": (1, "`list targets`: their names."),
    "try": (1, "`try`: the samples of one local run, the credited work, and what does not match the declarations."),
    "up": (1, "`up`: the cluster that stands."),
    "verified": (1, "`verify`: what was checked of a capsule, and what packed it."),
}
"""Version and content by name. A key that goes or changes its meaning makes a new version; a new key does not."""


def envelope(schema: str, data: Any) -> dict[str, Any]:
    """`data`, with what says what it is."""
    version, _ = SCHEMAS[schema]
    return {"schema": f"raymeter.{schema}", "version": version, "data": data}
