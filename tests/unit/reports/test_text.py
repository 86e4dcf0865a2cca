from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from default_sessions import default_session
from golden_files import check_golden
from made_up import ARMS, METRICS, MULTI, SINGLE, a_facts, made_up

from bench import analysis
from bench.analysis.stats.estimates import Estimate
from bench.experiments import NAMES
from bench.model import IdleLoad, QuietCheck
from bench.reports import as_text
from bench.reports.sections.summary import axis_of, bar

GOLDEN = Path(__file__).with_name("golden")

FEW = {"metrics": (*METRICS[:2], METRICS[-1]), "arms": (ARMS[0], ARMS[2], ARMS[3], ARMS[5])}


def rendered(change=None, *, width=as_text.WIDTH, colour=False, short=False, **shape):
    session, runs = made_up(**shape)
    report = analysis.build(session, change(runs) if change else runs)
    return as_text.render(report, short=short, width=width, colour=colour)


def other_kernel(runs):
    return [replace(r, facts=a_facts(MULTI, kernel="6.19")) if r.spec.topology.name == "multi" else r for r in runs]


def one_invalid(runs):
    return [replace(runs[0], status="invalid", reasons=("worker-1 did 3 % of the work",)), *runs[1:]]


def one_block_disturbed(runs):
    """A block of eight that began on a busy machine, and had a CPU and a half taken by others."""
    quiet = QuietCheck(is_quiet=True, waited_seconds=2.5, busy=0.02, pressure=0.0, boot_id="boot-1")
    busy = QuietCheck(is_quiet=False, waited_seconds=60.0, busy=0.75, pressure=0.4, boot_id="boot-1")

    def disturbed(row):
        return replace(row, host_busy_seconds=row.host_busy_seconds + 1.5 * row.watched_seconds)

    return [
        replace(run, quiet_check=busy, usage=tuple(map(disturbed, run.usage)))
        if run.spec.block == 5
        else replace(run, quiet_check=quiet)
        for run in runs
    ]


def test_what_the_deployment_uses_at_rest_stands_beside_the_quiet_check():
    quiet = QuietCheck(is_quiet=True, waited_seconds=0.0, busy=0.02, pressure=0.0, boot_id="boot-1")

    def said(**kept):
        return " ".join(
            rendered(lambda runs: [replace(run, quiet_check=quiet, **kept) for run in runs], cells=1).split()
        )

    words = "the deployment itself uses 0.250 CPUs at rest beside Ray's nodes, which are not counted as others'"
    assert words in said(idle_load=IdleLoad(cpus=0.25, ray_cpus=0.1))
    assert "the deployment itself" not in said()


GOLDENS = {
    "two-topologies": (None, {"cells": 2, "blocks": 12}),
    "one-topology": (None, {"cells": 1, "topologies": (SINGLE,)}),
    "refused": (other_kernel, {"cells": 1}),
    "too-few": (one_invalid, {"cells": 1, "blocks": 3, "link": "loopback, no bytes counted"}),
    "excluded": (one_block_disturbed, {"cells": 1, "blocks": 8}),
    "nothing-run": (lambda _: [], {"cells": 1}),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_a_report_reads_like_its_golden_file(name):
    change, shape = GOLDENS[name]
    check_golden(rendered(change, **FEW, **shape), GOLDEN / f"{name}.txt")


@pytest.mark.parametrize("name", GOLDENS)
def test_a_report_in_its_short_form_reads_like_its_golden_file(name):
    change, shape = GOLDENS[name]
    check_golden(rendered(change, short=True, width=80, **FEW, **shape), GOLDEN / f"{name}-short.txt")


@pytest.mark.parametrize("experiment", NAMES)
def test_the_default_report_of_a_default_session_fits_on_one_screen(experiment):
    session, runs = default_session(experiment)
    session = replace(session, id="20260105-100000-tiny-0001", created="2026-01-05T10:00:00+00:00")
    page = as_text.render(analysis.build(session, runs), short=True)
    check_golden(page, GOLDEN / f"default-{experiment}.txt")
    assert len(page.splitlines()) <= 40
    assert max(map(len, page.splitlines())) <= 100


@pytest.mark.parametrize("topologies", [(SINGLE, MULTI), (SINGLE,)])
@pytest.mark.parametrize("cells", [9, 12, 24])
def test_the_default_report_of_many_cells_fits_on_one_screen_with_the_worst_and_the_best(cells, topologies):
    session, runs = made_up(cells=cells, topologies=topologies)
    report = analysis.build(session, runs)
    page = as_text.render(report, short=True)
    assert len(page.splitlines()) <= 40
    shown = re.findall(r"^   (c\d\d|\.\.\.).*", page.split("\n Throughput")[1].split("\n\n")[0], re.MULTILINE)
    between = re.search(r"\.\.\. (\d+) of (\d+) cells between", page)
    assert int(between[1]) + len(shown) - 1 == int(between[2]) == cells

    def standing(cell):
        row = cell.headline
        return row.comparison.ratio.value if row.comparison else row.sides["single"].estimate.value

    ordered = [cell.cell for cell in sorted(report.cells, key=standing)]
    half = len(shown) // 2
    assert shown == [*ordered[:half], "...", *ordered[-half:]]


@pytest.mark.parametrize("shape", [{}, {"blocks": 3}, {"cells": 1}, {"topologies": (SINGLE,)}, {"link": "loopback"}])
@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_lost(width, short, shape):
    page, wide = rendered(width=width, short=short, **shape), rendered(width=400, short=short, **shape)
    assert max(map(len, page.splitlines())) <= width
    if short:  # each caveat is one line there, and cut at its end
        page, wide = (each.partition("\nCaveats")[0] for each in (page, wide))
    drawn = re.compile(r"[-o|+ ]*[-o|+][-o|+]+[-o|+ ]*|\d\.\d\d +\(\| is 1\) +\d\.\d\d")  # left out where room lacks
    numbers = re.compile(r"\d[\d.,]*")
    assert not Counter(numbers.findall(drawn.sub(" ", wide))) - Counter(numbers.findall(page))


def test_each_part_of_a_wide_table_has_the_columns_that_tell_its_rows_apart():
    page = rendered(width=80, cells=1)
    nodes = page.split("Node by node")[1].split("\n\n")[0]
    assert nodes.count("multi   head ") == nodes.count("multi   worker-1 ") == nodes.count("topology  node ") >= 2
    assert page.count(" metric ") >= 2


def test_of_many_nodes_the_busiest_and_the_idlest_are_shown_and_a_count():
    session, runs = made_up(cells=1, blocks=6)

    def more_nodes(run):
        rows = [
            replace(row, node=f"worker-{number}", cpu_seconds=row.cpu_seconds / number)
            for row in run.usage
            if row.node == "worker-1"
            for number in range(1, 7)
        ]
        return replace(run, usage=(*(row for row in run.usage if row.node == "head"), *rows))

    page = as_text.render(analysis.build(session, [more_nodes(run) for run in runs]), short=True)
    nodes = [line.split("  ")[1].strip() for line in page.split("\n Nodes")[1].split("\n\n")[0].splitlines()[1:]]
    assert nodes == ["single head", "multi head", "multi worker-1", "... 4 nodes of multi between", "multi worker-6"]


def test_question_answer_and_caveats_stand_above_the_numbers():
    page = rendered(cells=2)
    places = [
        page.index(word)
        for word in (
            "Does inference",
            "With batch=10",
            "multi beside",
            "Ray is not",
            "Caveats",
            "How it was",
            "inference c01",
        )
    ]
    assert places == sorted(places)
    assert page.index("How to read this") > page.index("inference c02")


@pytest.mark.parametrize("shape", [{}, {"blocks": 3}, {"cells": 0}, {"topologies": (SINGLE,)}])
def test_no_line_is_too_long_for_a_terminal_and_none_is_cut_off(shape):
    page = rendered(**shape)
    assert max(map(len, page.splitlines())) <= as_text.WIDTH
    assert "…" not in page


def all_excluded_but_one(runs):
    """Seven of eight blocks in which others took a CPU and a half."""

    def disturbed(row):
        return replace(row, host_busy_seconds=row.host_busy_seconds + 1.5 * row.watched_seconds)

    return [
        replace(run, usage=tuple(map(disturbed, run.usage))) if run.spec.block > 1 else run for run in one_invalid(runs)
    ]


def test_each_reason_is_written_once():
    page = " ".join(rendered(all_excluded_but_one, cells=2, blocks=8).split())
    assert "7 of 8 blocks excluded for interference, so all is undecided: see Runs (--detail)." in page
    for block in range(2, 9):
        assert page.count(f"block {block} excluded for interference: head of") == 1
    assert page.count("that others held") == 7
    assert page.count("worker-1 did 3 % of the work") == 1
    assert page.count("its calls without the work; no experiment") <= 1


def test_sentences_are_wrapped_where_they_are_asked_to_be():
    page = rendered(cells=1, width=80)
    assert all(len(line) <= 80 for line in page.split("inference c01")[0].splitlines())


def test_colour_changes_nothing_but_colour():
    plain, coloured = rendered(cells=1), rendered(cells=1, colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_the_picture_of_an_interval_has_its_ends_its_estimate_and_1():
    def an_estimate(value, low, high):
        return Estimate(value=value, low=low, high=high, level=0.95, n=6)

    axis = axis_of([an_estimate(1.0, 0.5, 2.0)])
    assert bar(axis, an_estimate(1.0, 0.5, 2.0)) == "--------o--------"
    assert bar(axis, an_estimate(0.6, 0.5, 0.7)) == "--o--   |        "
    assert bar(axis, None) == ""


def test_a_hostile_name_cannot_move_the_cursor():
    session, runs = made_up(cells=1)
    page = as_text.render(analysis.build(replace(session, command="bench \x1b[2J\x1b]0;owned\x07 run\x9b1m"), runs))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", page)
    assert "do it again" in page


def with_a_load(runs):
    """A percentile that no run has, at one point, and the offered load that every run has."""
    found = []
    for run in runs:
        one = next(sample for sample in run.samples if sample.metric == METRICS[1].name and sample.value is not None)
        late = replace(one, value=None, reason="generator late", point="70 % poisson")
        found.append(replace(run, samples=(*run.samples, late)))
    return found


def without_first_results_on_multi(runs):
    """The time to the first result, missing on one of the topologies."""
    return [
        replace(
            run,
            samples=tuple(
                replace(sample, value=None, reason="40 calls; p90 needs 100")
                if sample.metric == "first_result_seconds" and run.spec.topology.name == "multi"
                else sample
                for sample in run.samples
            ),
        )
        for run in runs
    ]


def test_a_metric_without_a_value_on_one_topology_says_why() -> None:
    words = " ".join(rendered(without_first_results_on_multi, cells=1).split())
    assert "no first result on multi: 40 calls; p90 needs 100" in words
    assert "on multi: 40 calls" not in " ".join(rendered(cells=1).split())


def test_a_point_without_a_value_says_why() -> None:
    words = " ".join(rendered(with_a_load, cells=1).split())
    assert re.search(r"not all topologies have [\w ]+ at 70 % poisson: generator late", words)
    assert "not all topologies" not in " ".join(rendered(cells=1).split())
