"""The page as a browser without a screen shows it: light, dark, on a telephone, on paper."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from made_up import made_up
from made_up_timelines import with_timelines

from bench import analysis, reports
from bench.reports.drawing import colours

pytestmark = pytest.mark.browser

LIGHT, DARK = (255, 255, 255), (0x14, 0x17, 0x1B)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    session, runs = made_up(cells=1, blocks=6)
    path = tmp_path_factory.mktemp("page") / "report.html"
    report = analysis.build(session, runs)
    path.write_text(reports.render("html", report, [with_timelines(run) for run in runs]))
    return path


def browse(page: Path, profile: Path, *options: str) -> None:
    browser = next(found for command in BROWSERS if (found := shutil.which(command)))
    subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            *options,
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )


def screenshot(page: Path, tmp_path: Path, size: str, *options: str):
    from PIL import Image

    shot = tmp_path / "shot.png"
    browse(page, tmp_path / "profile", f"--screenshot={shot}", f"--window-size={size}", "--hide-scrollbars", *options)
    return Image.open(shot).convert("RGB")


def test_in_daylight_it_is_light_and_has_the_colours_of_both_topologies(page, tmp_path):
    shot = screenshot(page, tmp_path, "1280,4000")
    assert shot.getpixel((2, 2)) == LIGHT
    seen = {colour for _, colour in shot.getcolors(maxcolors=2**24)}
    for colour in colours.TOPOLOGIES.values():
        assert tuple(bytes.fromhex(colour[1:])) in seen


def test_where_dark_is_preferred_it_is_dark_and_its_words_are_light(page, tmp_path):
    shot = screenshot(page, tmp_path, "1280,1200", "--blink-settings=preferredColorScheme=0")
    assert shot.getpixel((2, 2)) == DARK
    assert max(sum(colour) for _, colour in shot.getcolors(maxcolors=2**24)) > 3 * 220


def test_on_a_telephone_nothing_reaches_beyond_the_edge(page, tmp_path):
    telephone = tmp_path / "telephone.html"  # no window of Chromium is as narrow: a frame is
    telephone.write_text(
        f'<body style="margin:0"><iframe src="{page.as_uri()}" style="border:0;width:400px;height:6000px"></iframe>'
    )
    shot = screenshot(telephone, tmp_path, "500,6000")
    edge = shot.crop((392, 0, 400, shot.height))
    assert edge.getcolors() == [(8 * shot.height, LIGHT)]


def test_on_paper_it_is_whole_pages_of_a4(page, tmp_path):
    paper = tmp_path / "report.pdf"
    browse(page, tmp_path / "profile", f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    content = paper.read_bytes()
    assert content.startswith(b"%PDF-")
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", content)
    assert 2 <= len(boxes) <= 8
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(595, 842)}
