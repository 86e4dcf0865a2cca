"""Where the files of this repository are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"  # modules that tests share; a test's own subprocess puts it on its path
