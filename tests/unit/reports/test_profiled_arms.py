"""What a profiler saw of each arm: the share of a function stands arm beside arm, and cell beside cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from made_up import SINGLE
from made_up_changes import ARMS, session_of

from bench import analysis, stacks
from bench.analysis import Report
from bench.experiments.clustering import arms as clustering_arms
from bench.model import Run
from bench.reports import FORMATS
from bench.reports.sections import profiled_arms
from bench.reports.tables import Table

HEAD = stacks.file_name("py-spy", "head")
WITH_UNIQUE = """\
main (w.py);do (ray.py);count_first (k.py);unique (numpy.py);_unique1d (numpy.py) 4400000
main (w.py);do (ray.py);count_first (k.py);_broadcast (k.py) 5600000
main (w.py);serial (peer.py);do (peer.py);count_first (k.py);unique (numpy.py);_unique1d (numpy.py) 900000
main (w.py);serial (peer.py);do (peer.py);count_first (k.py);_broadcast (k.py) 1100000
main (w.py);wait (w.py) 9000000
"""
WITHOUT = """\
main (w.py);do (ray.py);_broadcast (k.py) 5600000
main (w.py);serial (peer.py);do (peer.py);_broadcast (k.py) 1000000
"""


def a_report(*profiles: Mapping[str, str]) -> tuple[Report, Sequence[Run]]:
    """A cell for each of `profiles`, with the subject, a peer in a worker, and a peer that no profiler sees."""
    cells = [({"kernel": f"k{number}"}, {"single": 10.0}) for number, _ in enumerate(profiles)]
    session, runs = session_of(cells, topologies=(SINGLE,), blocks=1)
    ray, pool, empty = ARMS
    seen = (
        replace(ray, profiled_in="do (ray.py)"),
        replace(pool, name="serial", profiled_in="serial (peer.py)"),
        pool,
        empty,
    )
    runs = [replace(run, profiles=of_run) for run, of_run in zip(runs, profiles, strict=True)]
    return analysis.build(replace(session, arms={"work": seen}), runs), runs


def the_table(*profiles: Mapping[str, str]) -> Table:
    report, runs = a_report(*profiles)
    ((section,),) = [chapter.sections for chapter in profiled_arms.chapters(report, runs)]
    assert section.table is not None
    return section.table


def shares(table: Table, function: str) -> dict[tuple[str, str], str]:
    at = [column.head for column in table.columns].index(function)
    return {(row.cells[0].words.partition(" ")[0], row.cells[2].words): row.cells[at].words for row in table.rows}


def test_the_share_of_a_function_stands_arm_by_arm_and_cell_by_cell() -> None:
    table = the_table({HEAD: WITH_UNIQUE}, {HEAD: WITHOUT})
    assert shares(table, "unique") == {
        ("c01", "ray"): "44 %",
        ("c01", "serial"): "45 %",
        ("c02", "ray"): "0 %",
        ("c02", "serial"): "0 %",
    }
    assert shares(table, "_broadcast")["c02", "serial"] == "100 %"
    assert [row.cells[3].words for row in table.rows] == ["10 s", "2 s", "5.6 s", "1 s"]  # what waits is no arm's


def test_callers_of_all_the_work_and_functions_with_equal_shares_have_no_column() -> None:
    heads = [column.head for column in the_table({HEAD: WITH_UNIQUE}, {HEAD: WITHOUT}).columns]
    assert heads == ["cell", "on", "arm", "seen", "_broadcast", "unique"]


def test_workers_of_all_nodes_count_together_and_the_driver_does_not() -> None:
    table = the_table(
        {
            HEAD: WITHOUT,
            stacks.file_name("py-spy", "worker-1"): WITH_UNIQUE,
            stacks.file_name("py-spy", "driver"): WITH_UNIQUE,
        }
    )
    assert [row.cells[3].words for row in table.rows] == ["15.6 s", "3 s"]


def test_an_arm_that_no_profiler_sees_is_named() -> None:
    report, runs = a_report({HEAD: WITHOUT})
    (chapter,) = profiled_arms.chapters(report, runs)
    assert chapter.sections[0].notes == ("arms whose work a profiler does not see in workers of Ray: pool",)
    assert "where the time of each arm went" in FORMATS["html"](report, runs)


def test_without_profiles_or_declared_functions_there_is_no_chapter() -> None:
    report, runs = a_report({}, {})
    assert list(profiled_arms.chapters(report, runs)) == []
    report, runs = a_report({HEAD: WITHOUT})
    assert list(profiled_arms.chapters(replace(report, profiled_in={}), runs)) == []
    assert list(profiled_arms.chapters(report)) == []


def test_of_functions_of_one_name_the_file_is_said() -> None:
    text = "do (ray.py);sort (a.py) 4\ndo (ray.py);sort (b.py) 5\ndo (ray.py);rest (b.py) 1\n"
    assert [column.head for column in the_table({HEAD: text}).columns][4:] == ["sort (b.py)", "sort (a.py)", "rest"]


def test_the_functions_that_clustering_names_are_there() -> None:
    import importlib

    for arm in clustering_arms.ARMS:
        if arm.profiled_in:
            name, _, file = arm.profiled_in.partition(" (")
            module = importlib.import_module(file.removesuffix(".py)").replace("/", "."))
            assert any(callable(getattr(each, name, None)) for each in (module, *vars(module).values())), arm.name
    assert {arm.name for arm in clustering_arms.ARMS if arm.profiled_in} == {"ray", "tasks", "serial"}


def test_what_differs_from_cell_to_cell_stands_before_what_only_takes_more() -> None:
    heavy = "do (ray.py);load (a.py) 60\ndo (ray.py);unique (b.py) 10\ndo (ray.py);other (c.py) 30\n"
    light = "do (ray.py);load (a.py) 60\ndo (ray.py);other (c.py) 40\n"
    heads = [column.head for column in the_table({HEAD: heavy}, {HEAD: light}).columns][4:]
    assert heads == ["other", "unique", "load"]
