"""What the numbers mean: pure functions from a Session and its Runs to a Report."""

from bench.analysis.report import Report, build

__all__ = ["Report", "build"]
