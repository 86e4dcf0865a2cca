"""Draws the pictures of a report that README and docs/ have: `task screenshots -- SESSION`.

Real pages of a real session, by a headless Chromium; look at them before you commit them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE, HIGH = 1200, 1240
DARK = "--blink-settings=preferredColorScheme=0"
SHOTS = {"report-light": ("", ()), "report-dark": ("#short-3", (DARK,))}  # name: where on the page, options


def main(session: str = "latest") -> None:
    """Draw all of them. Raises where there is no Chromium, or no such session."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("There is no Chromium here: install chromium, or google-chrome.")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        subprocess.run(
            [Path(sys.executable).with_name("bench"), "report", session, "--format", "html", "-o", page], check=True
        )
        for name, (where, options) in SHOTS.items():
            shot, frame = Path(folder, "shot.png"), Path(folder, "frame.html")
            # A page that has scrolled comes out empty; a frame in which it has does not.
            frame.write_text(
                f'<body style="margin:0"><iframe src="{page.name}{where}" style="border:0;width:{WIDE}px;height:{HIGH}px">'
            )
            subprocess.run(
                [
                    browser,
                    "--headless=new",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                    f"--user-data-dir={folder}/profile",
                    f"--window-size={WIDE},{HIGH}",
                    f"--screenshot={shot}",
                    *options,
                    frame.as_uri(),
                ],
                check=True,
                capture_output=True,
                timeout=120,
            )
            # A palette makes it a third as large. The default way to choose one loses the colours of small marks.
            Image.open(shot).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
                PICTURES / f"{name}.png", optimize=True
            )
            print(PICTURES / f"{name}.png", (PICTURES / f"{name}.png").stat().st_size // 1024, "KiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
