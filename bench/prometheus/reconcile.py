"""Compares a run's metrics page with the run's samples."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from bench.model import Sample, Spec

Key = tuple[str, str, str, str]
"""The key of a series within a run: metric, arm, node, point."""


def key_of(sample: Sample) -> Key | None:
    """Return the series of `sample`, None for a trial's row in a table. The curves of all trials share one series.

    So the number of series does not grow with the number of trials.
    """
    if sample.of_many and sample.step is None:
        return None
    return (sample.metric, sample.arm, sample.node or "", "" if sample.of_many else sample.point)


def differences(spec: Spec, samples: Iterable[Sample], page: str) -> list[str]:
    """The differences between the metrics page and the record, one sentence each; empty if they agree."""
    samples = list(samples)
    expected = {
        key: sample.value
        for sample in samples
        if sample.value is not None and not sample.warmup and (key := key_of(sample)) is not None
    }
    shown: dict[Key, float] = {}
    count = 0.0
    for family in text_string_to_metric_families(page):
        for series in family.samples:
            labels = series.labels  # Prometheus drops empty labels
            if (labels.get("session"), labels.get("run")) != (spec.session, spec.folder):
                continue
            if series.name == "bench_sample_value":
                shown[labels["metric"], labels["arm"], labels.get("node", ""), labels.get("point", "")] = series.value
            elif series.name == "bench_run_samples":
                count = series.value
    texts = [
        f"{metric} of {' '.join(filter(None, labels))}: the record has {expected.get(key)}, Prometheus {shown.get(key)}"
        for key in sorted(expected.keys() | shown.keys())
        if expected.get(key) != shown.get(key)
        for metric, *labels in [key]
    ]
    if count != len(samples):
        texts.append(f"the record has {len(samples)} samples, Prometheus {count:.0f}")
    return texts
