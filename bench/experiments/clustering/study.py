"""Declares what the study of clustering published: 8,000,000 clusterings of a network's weights, from three months to three days.

Its input was 2.1 TB, so a job's is 256 KiB: 4,096 vectors of 16 float32. It names 128 clusters as an example.
"""

from __future__ import annotations

from bench.experiments.clustering import metrics
from bench.experiments.clustering.arms import RAY, SERIAL
from bench.studies import Study, StudyFigure, StudyRow, StudySetting, StudyTable

JOB = {"points": 4_096, "dimensions": 16, "clusters": 128}
HOURS = StudyFigure(name="8,000,000 jobs take", unit="h", metric=metrics.PROJECTED.name)
OF_A_JOB = StudyFigure(name="CPU time of a job", unit="s", metric=metrics.CPU_SECONDS_PER_JOB.name)

STUDY = Study(
    title="8,000,000 clusterings of about a second each",
    settings=(
        StudySetting(name="CPUs", published="16 cores, 32 threads, and further machines", ours="CPUs"),
        StudySetting(name="nodes", published="several machines that pull parts over SSH", ours="nodes"),
        StudySetting(name="jobs", published="8,000,000", param="jobs"),
        StudySetting(name="input", published="2.1 TB in files, binary", param="source"),
        StudySetting(name="kernel", published="Python", param="kernel"),
        StudySetting(
            name="`unique`",
            published="in the export of all inputs, 137 of 311 s; not said of a job",
            always="once a job, over its vectors, with kernel=broadcast-unique",
        ),
    ),
    tables=(
        StudyTable(
            title="Time of all jobs, projected from the rate",
            figures=(HOURS, OF_A_JOB),
            rows=(
                StudyRow(
                    what="one process, `unique` once a job",
                    params={**JOB, "kernel": "broadcast-unique", "part_mib": 64},
                    topology="single",
                    arm=SERIAL.name,
                    published=(("three months: 2,190",), (1.0,)),
                ),
                StudyRow(
                    what="one process, without `unique`",
                    params={**JOB, "kernel": "broadcast", "part_mib": 64},
                    topology="single",
                    arm=SERIAL.name,
                    published=(("the export 45 % faster",), ()),
                ),
                *(
                    StudyRow(
                        what=f"a pool, parts of {part_mib} MiB",
                        params={**JOB, "kernel": "broadcast", "part_mib": part_mib},
                        topology=topology,
                        arm=RAY.name,
                        published=(published, ()),
                    )
                    for topology, published in (
                        ("single", ("three days expected",)),
                        ("multi", (72.0,)),
                    )
                    for part_mib in (64, 128, 256)
                ),
            ),
        ),
    ),
)
