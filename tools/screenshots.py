"""Renews the report that README shows, as text and as pictures: `task screenshots -- SESSION`.

Real pages of a real session, drawn by a headless Chromium; look at them before you commit them. `--out FOLDER` goes after it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
README = ROOT / "README.md"
REPORT = re.compile(r"(?<=<!-- report -->\n\n```text\n).*?(?=```\n\n<!-- end of report -->)", re.DOTALL)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE, HIGH = 1200, 1240
DARK = "--blink-settings=preferredColorScheme=0"
SHOTS = {"report-light": ("", ()), "report-dark": ("#short-3", (DARK,))}  # name: where on the page, options


def main(session: str = "latest", *options: str) -> None:
    """Draw all pictures and write the text. Raises where there is no Chromium, or no such session."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("There is no Chromium here: install chromium, or google-chrome.")
    with tempfile.TemporaryDirectory() as folder:
        page, text = Path(folder, "report.html"), Path(folder, "report.txt")
        report: list[str | Path] = [Path(sys.executable).with_name("bench"), "report", session, *options]
        subprocess.run([*report, "--format", "html", "-o", page], check=True)
        subprocess.run([*report, "-o", text], check=True)
        README.write_text(with_report(README.read_text(), text.read_text()))
        for name, (where, browser_options) in SHOTS.items():
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
                    *browser_options,
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


def with_report(readme: str, report: str) -> str:
    """`readme` with `report` between its marks. Raises where it has none."""
    if not REPORT.search(readme):
        raise ValueError("The README has no place for a report.")
    return REPORT.sub(lambda _: report, readme, count=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
