from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import made_up_breakdown
import pytest
from made_up import SINGLE, made_up

from bench import analysis, reports
from bench.model import Metric, Sample
from bench.reports import sections
from bench.reports.drawing import colours
from tests.unit.analysis.test_sweeps import ACCURACY, GOODPUT, drawn, swept

VOID = {"meta", "br", "hr", "img", "input", "link", "path", "rect", "circle"}
EVIL = "</style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"


class Page(HTMLParser):
    """A page taken apart: its tags with their attributes, and its words; tags that do not fit raise."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words += f" {data} "

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def a_page(change=lambda session, runs: (session, runs), **shape) -> tuple[analysis.Report, str]:
    session, runs = change(*made_up(**shape))
    report = analysis.build(session, runs)
    return report, reports.render("html", report, runs)


def with_everything(session, runs):
    metrics = {"inference": (*session.metrics["inference"], GOODPUT, ACCURACY)}
    return replace(session, metrics=metrics), [drawn(swept(run)) for run in runs]


def test_every_number_of_the_tables_is_on_the_page_as_the_text_has_it():
    report, text = a_page(with_everything, cells=2)
    page, terminal = Page(text).words, reports.render("text", report)
    cells = [
        cell.words
        for chapter in sections.compose(report).chapters
        for section in chapter.sections
        if section.table
        for row in section.table.rows
        for column, cell in zip(section.table.columns, row.cells, strict=True)
        if not column.is_picture
    ]
    assert len(cells) > 300
    assert [words for words in cells if words not in page or words not in terminal] == []


def test_the_page_has_the_order_of_the_default_report():
    report, text = a_page(cells=2)
    content = sections.compose(report)
    short = [section.short.title for section in content.short_sections]
    assert len(short) == 5
    contents = Page(text).words.index(" In detail ")  # the list of contents ends with it
    above, below = Page(text).words[:contents], Page(text).words[contents + 11 :]
    caveats = [words for _, words in content.caveats]
    for words, order in (
        (above, [report.question, *report.answer, content.figures[0].what, *short]),
        (below, [*short, "Caveats", *caveats, "In detail", "inference c01: batch=1", "How it was measured"]),
    ):
        places = [words.index(each) for each in order]
        assert places == sorted(places)


def test_pictures_of_a_cell_come_after_its_first_table_and_before_the_rest():
    page = Page(a_page(cells=1)[1]).words
    assert page.index("could show") < page.index("Throughput of every invocation") < page.index("What ray used for it")


def test_what_is_long_is_folded_and_opens_by_keyboard():
    report, text = a_page(lambda session, runs: (session, runs[1:]), cells=2)
    page, caveats = Page(text), sections.compose(report).caveats
    folded = [names for tag, names in page.tags if tag == "details"]
    assert [names for names in folded if "open" in names] == [{"class": "chapter", "id": "design", "open": None}]
    assert page.count("summary") == len(folded)
    assert len(caveats) > 5
    assert f" {len(caveats) - 5} more " in page.words


def test_a_caption_is_two_sentences_at_most_and_the_rest_is_on_demand():
    session, runs = with_everything(*made_up(cells=2))
    content = sections.compose(analysis.build(session, runs), runs)
    pictures = [picture for chapter in content.chapters for section in chapter.sections for picture in section.draw()]
    assert len(pictures) > 16
    for picture in pictures:
        assert len(re.findall(r"[.!?](?= [A-Z]|$)", picture.caption)) in (1, 2)
        assert len(picture.caption) < 330
        assert picture.caption[:40] == picture.says[:40]
    assert any(picture.caption.endswith(" more.") for picture in pictures)


def test_key_figures_are_numbers_of_the_tables_with_their_units():
    report, text = a_page(cells=2)
    figures = sections.compose(report).figures
    assert [figure.unit for figure in figures] == ["times", "times", "k inputs/s", "times", "µs/input", "B/input"]
    change = report.contrasts[0].headline.rows["multi"].comparison.ratio
    assert figures[0].value == f"{change.value:.2f}"
    assert figures[0].what == "throughput with batch=10 instead of 1, on multi: faster"
    worst = min(report.cells, key=lambda cell: cell.headline.comparison.ratio.value)
    assert figures[1].value == f"{worst.headline.comparison.ratio.value:.3f}"
    assert all(figure.value in Page(text).words for figure in figures)


def test_the_page_asks_nothing_of_a_network_and_runs_nothing():
    _, text = a_page(with_everything, cells=2)
    page = Page(text)
    assert page.count("script") == page.count("link") == page.count("img") == page.count("iframe") == 0
    addresses = [value for _, names in page.tags for name, value in names.items() if name in ("src", "href", "action")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert not re.search(r"url\(|@import", text)
    policy = next(names["content"] for tag, names in page.tags if names.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_a_page_with_dashboards_has_one_address_more_and_it_is_theirs():
    session, runs = made_up()
    page = Page(
        reports.render("html", analysis.build(session, runs), runs, dashboards="http://127.0.0.1:3000/d/x?a=1&b=2")
    )
    addresses = [names["href"] for _, names in page.tags if "href" in names]
    assert [address for address in addresses if not address.startswith("#")] == ["http://127.0.0.1:3000/d/x?a=1&b=2"]
    assert "Dashboards of this session" in page.words


def hostile(session, runs):
    metric = Metric(name=f"m{EVIL}", unit=EVIL, better="higher", kind="size", help=EVIL)
    curve = replace(metric, name=f"c{EVIL}", axis=EVIL)
    arms = tuple(replace(arm, name=f"{arm.name}{EVIL}", help=EVIL) for arm in session.arms["inference"])
    session = replace(
        session,
        command=EVIL,
        target=EVIL,
        metrics={EVIL: (*session.metrics["inference"], metric, curve)},
        arms={EVIL: arms},
        specs=tuple(replace(spec, experiment=EVIL, params={EVIL: EVIL}) for spec in session.specs),
    )

    def renamed(run):
        samples = [replace(s, arm=f"{s.arm}{EVIL}") for s in run.samples]
        first = samples[0]
        more = [
            Sample(**{**vars_of(first), "metric": metric.name, "point": f"{n}{EVIL}", "arm": arms[0].name})
            for n in "ab"
        ]
        more += [Sample(**{**vars_of(first), "metric": curve.name, "step": n, "arm": arms[0].name}) for n in (1.0, 2.0)]
        usage = tuple(replace(row, arm=f"{row.arm}{EVIL}", node=f"{row.node}{EVIL}") for row in run.usage)
        spec = replace(run.spec, experiment=EVIL, params={EVIL: EVIL})
        facts = replace(run.facts, link=EVIL)
        return replace(run, spec=spec, samples=(*samples, *more), usage=usage, facts=facts)

    return session, [renamed(run) for run in runs]


def vars_of(sample):
    return {name: getattr(sample, name) for name in sample.__dataclass_fields__}


def test_names_from_elsewhere_stay_words_wherever_they_come():
    _, text = a_page(hostile, cells=2)
    page = Page(text)
    assert page.count("script") == page.count("img") == 0
    assert page.count("style") == 1
    assert not [names for _, names in page.tags if any(name.startswith("on") for name in names)]
    assert page.count("svg") > 12
    assert page.words.count(EVIL) > 50


def test_every_picture_says_what_it_shows_how_to_read_it_and_where_its_numbers_come_from():
    _, text = a_page(with_everything, cells=2)
    page = Page(text)
    ids = [names["id"] for _, names in page.tags if "id" in names]
    assert len(ids) == len(set(ids))
    pictures = [names for tag, names in page.tags if tag == "svg"]
    assert len(pictures) == page.count("figure") == page.count("desc") > 16
    for names in pictures:
        assert names["role"] == "img"
        assert set(names["aria-labelledby"].split()) <= set(ids)
    assert page.words.count("How to read it") == len(pictures)
    assert page.words.count("From:") > len(pictures)


def test_what_scrolls_can_be_reached_by_keyboard_and_heads_are_heads():
    _, text = a_page(cells=1)
    page = Page(text)
    regions = [names for tag, names in page.tags if names.get("role") == "region"]
    assert len(regions) == page.count("table") + page.count("figure")
    assert all(names["tabindex"] == "0" and names["aria-label"] for names in regions)
    assert all(names.get("scope") in ("col", "row") for tag, names in page.tags if tag == "th")
    assert page.count("h1") == 1


@pytest.mark.parametrize(
    ("shape", "title"),
    [
        ({"cells": 2}, "The headline of every cell"),
        ({"cells": 1}, "Throughput of every invocation"),
        ({"cells": 1}, "Latency by percentile"),
        ({"cells": 1}, "Share of each node: work"),
        ({"cells": 1}, "Goodput point by point"),
        ({"cells": 1}, "Accuracy ratio along iterations"),
        ({"cells": 1}, "Raw samples: throughput"),
        ({"cells": 1}, "Block 1 over time: throughput"),
    ],
)
def test_each_kind_of_picture_is_there_where_there_is_something_to_draw(shape, title):
    _, text = a_page(with_everything, **shape)
    assert title in Page(text).words


def test_one_topology_and_no_run_make_a_page_too():
    _, alone = a_page(cells=1, topologies=(SINGLE,))
    assert "multi" not in Page(alone).words
    _, empty = a_page(lambda session, _: (session, []), cells=2)
    assert Page(empty).count("figure") == 0
    assert "There is no answer" in Page(empty).words


def test_the_network_breakdown_is_drawn_with_each_of_its_parts():
    session, runs = made_up_breakdown.a_session()
    report = analysis.build(session, runs)
    breakdown = report.cells[0].network_breakdown
    page = Page(reports.render("html", report, runs))
    measured = [part.name for part in breakdown.parts if part.seconds]
    assert len(measured) > 3
    assert "Each bar begins where the one above it ended" in page.words
    for name in measured:
        assert f" + {name} " in page.words


def test_topologies_have_the_colours_of_the_boards():
    _, text = a_page(cells=1)
    used = set(re.findall(r"color:(#\w+)", text))
    assert set(colours.TOPOLOGIES.values()) <= used
    assert colours.of_topologies(("single", "wide", "multi")) == {
        "single": colours.TOPOLOGIES["single"],
        "wide": colours.OTHERS[0],
        "multi": colours.TOPOLOGIES["multi"],
    }


def test_ten_thousand_samples_stay_below_two_megabytes():
    def many(session, runs):
        return session, [replace(run, samples=tuple(run.samples) * 40) for run in runs]

    report, text = a_page(many, cells=1, blocks=6)
    assert sum(len(run.samples) for run in many(*made_up(cells=1, blocks=6))[1]) > 10_000
    assert len(text.encode()) < 2_000_000
    assert report.session in text
