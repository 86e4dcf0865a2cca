"""Does the window agree with the record: what Prometheus is shown of a run, beside the run's own samples."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from bench.model import Sample, Spec

Key = tuple[str, str, str, str]
"""What tells one series of a run from another: metric, arm, node, point."""


def key_of(sample: Sample) -> Key:
    """The series that `sample` is a value of."""
    return (sample.metric, sample.arm, sample.node or "", sample.point)


def differences(spec: Spec, samples: Iterable[Sample], page: str) -> list[str]:
    """What the metrics page has otherwise than the record, in words; nothing is good."""
    samples = list(samples)
    expected = {key_of(sample): sample.value for sample in samples if sample.value is not None and not sample.warmup}
    shown: dict[Key, float] = {}
    count = 0.0
    for family in text_string_to_metric_families(page):
        for series in family.samples:
            labels = series.labels  # in Prometheus none is empty
            if (labels.get("session"), labels.get("run")) != (spec.session, spec.folder):
                continue
            if series.name == "bench_sample_value":
                shown[labels["metric"], labels["arm"], labels.get("node", ""), labels.get("point", "")] = series.value
            elif series.name == "bench_run_samples":
                count = series.value
    found = [
        f"{metric} of {' '.join(filter(None, where))}: the record has {expected.get(key)}, the window {shown.get(key)}"
        for key in sorted(expected.keys() | shown.keys())
        if expected.get(key) != shown.get(key)
        for metric, *where in [key]
    ]
    if count != len(samples):
        found.append(f"the record has {len(samples)} samples, the window {count:.0f}")
    return found
