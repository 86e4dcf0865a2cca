"""Draws the pictures of docs/boards.md anew: `DRAW=PROGRAM task pictures:boards`.

A made-up session is played to a real Prometheus in about two minutes, and PROGRAM draws each board from it. Called as
`PROGRAM BOARD.json OUT.png --grafana URL --prometheus URL --from SECONDS --to SECONDS --var NAME=VALUE`, it must lay panels out as
Grafana does. Look at the pictures before you commit them.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from bench.prometheus import boards

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
RUN_SECONDS = 6.0
PRESENT_SECONDS = 20.0
MOST_WIDE = 1400  # of a picture, in pixels
COLOURS = 256
EARLIER = "20260201-100000-inference-made-up"  # a session that has ended before, with other parameters
EVERY = ".*"  # value of a variable with which all are shown


def main() -> None:
    """Play the session and draw every board."""
    draw = os.environ.get("DRAW", "")
    if not draw:
        raise SystemExit("Set DRAW to a program that draws a board: see tools/board_pictures.py.")
    sys.path.insert(0, str(ROOT / "tests/support"))
    made: Any = importlib.import_module("made_up_boards")
    real: Any = importlib.import_module("real_prometheus")
    with tempfile.TemporaryDirectory() as folder:
        records, store, shots = (Path(folder, name) for name in ("records", "prometheus", "shots"))
        for path in (records, store, shots):
            path.mkdir()
        session, earlier = made.board_session(), made.board_session(EARLIER, seed=8, multi=0.95, image_edge=32)
        for block in sorted({run.spec.block for run in earlier.ended}):
            earlier.write_block(records, block)
        with real.a_real_prometheus(store, records) as prometheus:
            prometheus.until(prometheus.is_scraped_often)
            begun = time.time()
            present = made.play(session, records, run_seconds=RUN_SECONDS, present_seconds=PRESENT_SECONDS)
            end = time.time()
            for name in boards.NAMES:
                shot = shots / f"{name}.png"
                url = prometheus.url
                chosen = EVERY if name == boards.SIDE_BY_SIDE else session.session.id
                subprocess.run(
                    [
                        *(draw, boards.FOLDER / f"{name}.json", shot, "--grafana", url, "--prometheus", url),
                        *("--from", str(begun), "--to", str(end), "--var", f"session={chosen}"),
                    ],
                    check=True,
                    timeout=300,
                )
                _keep(shot, PICTURES / f"board-{name}.png")
            present.close("stopped", ())


def _keep(shot: Path, picture: Path) -> None:
    """Keep a picture in few colours and no wider than a page needs."""
    with Image.open(shot) as drawn:
        width = min(drawn.width, MOST_WIDE)
        small = drawn.convert("RGB").resize((width, drawn.height * width // drawn.width), Image.Resampling.LANCZOS)
        small.quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main()
