"""Writes docs/results/ from the capsules beside it: `task results`. `--check` fails where a page says anything else.

A page is a template of words (`inference.md.jinja`) in which every number is a question to a capsule. A sentence names the
verdict that it relies on, so that words which the numbers contradict are refused, and not published.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import jinja2
import typer

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Comparison
from bench.analysis.contrasts import Contrast, Effect
from bench.analysis.number_format import ratio, with_interval
from bench.analysis.rows import MetricRow
from bench.capsules import checking
from bench.counts import plural
from bench.errors import BadInput, RecordDamaged, did_you_mean
from bench.model import Metric, Value
from bench.record import store
from bench.reports import as_markdown, tables
from bench.reports.sections import as_in_study, compose, contrasts, summary
from tools import command_line

T = TypeVar("T")
FOLDER = Path("docs/results")
CAPSULES = "capsules"
FINDINGS = "findings"  # what the page of a study and that of its experiment both say
TEMPLATE = ".md.jinja"
QUOTED = re.compile(r"(?P<begin><!-- bench results -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
DAY = 10  # letters of a time that are its date

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail where a page is not what it would be.")]
Folder = Annotated[Path, typer.Option(help="Folder of the templates, with the capsules below it.")]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One session of a capsule that was verified, and what a page may quote of it. `name`: the capsule's, inference-local."""

    name: str
    file: str  # of the capsule
    report: Report

    def change(self, parameter: str, topology: str, verdict: str, metric: str = "", **where: Value) -> str:
        """What a change brought: 9.80 [9.73, 9.94]. Raises BadInput where the record has another verdict."""
        contrast = self._contrast(parameter, where)
        effect = self._effect(contrast, metric)
        row = effect.rows.get(topology)
        if row is None:
            raise self._unknown(f"a change of {parameter} on {topology}", effect.rows)
        return self._said(effect.metric, row.comparison, verdict, f"{contrast.title} on {topology}")

    def interaction(self, parameter: str, verdict: str, **where: Value) -> str:
        """How the factor of a change on several nodes compares with that on one."""
        contrast = self._contrast(parameter, where)
        effect = self._effect(contrast, "")
        return self._said(effect.metric, effect.interaction, verdict, f"the interaction of {contrast.title}")

    def several(self, verdict: str, metric: str = "", **params: Value) -> str:
        """Several nodes beside one, in one cell: 0.72 [0.66, 0.78]."""
        cell = self.cell(**params)
        row = self._row(cell, metric)
        return self._said(row.metric, row.comparison, verdict, f"{cell.title}, several nodes beside one")

    def value(self, topology: str, metric: str = "", **params: Value) -> str:
        """A median with its interval and unit: 15.2 [14.9, 15.5] k inputs/s."""
        row = self._row(self.cell(**params), metric)
        side = row.sides.get(topology)
        if side is None or side.estimate is None:
            raise self._unknown(f"a value of {row.metric.name} on {topology}", row.sides)
        scale = tables.scale_of(row.metric, [side.estimate.value])
        return f"{with_interval(side.estimate, scale)} {scale.unit}".strip()

    def share(self, arm: str, topology: str, verdict: str, metric: str = "", **params: Value) -> str:
        """The subject beside another arm, above 1 where it does better: 0.62 [0.60, 0.64]."""
        cell = self.cell(**params)
        name = self._row(cell, metric).metric.name
        row = self._one(
            [row for row in cell.arms if (row.arm.name, row.topology, row.metric) == (arm, topology, name)],
            f"arm {arm} on {topology}",
            {row.arm.name for row in cell.arms},
        )
        if row.share is None or row.verdict != verdict:
            raise self._contradicted(f"{cell.title} beside {arm} on {topology}", row.verdict, verdict)
        return ratio(row.share)

    def cell(self, **params: Value) -> CellReport:
        """The one cell with these params. Raises BadInput where there is none, or several."""
        return self._one(
            [cell for cell in self.report.cells if params.items() <= cell.params.items()],
            f"cell with {params}",
            [cell.title for cell in self.report.cells],
        )

    @property
    def study(self) -> str:
        """The experiment that repeats the study."""
        (experiment,) = {cell.experiment for cell in self.report.cells}
        return experiment

    @property
    def where(self) -> str:
        """The target and its link, in words: local, link of 100 Mbit/s."""
        rate = self.report.options.get("link_rate")
        return f"{self.report.target}{f', link of {rate}' if rate else ''}"

    @property
    def how(self) -> str:
        """How it was measured, in a line each."""
        report = self.report
        topologies = ", ".join(
            f"{each.name} {plural(each.nodes, 'node')} of {plural(each.cpus_per_node, 'CPU')}"
            for each in report.topologies
        )
        lines = (
            f"target {report.target}, {report.created[:DAY]}, {plural(report.blocks, 'block')}: {topologies}",
            f"link: {report.link or 'no link between nodes'}",
            *([f"scale {report.scale:g}: {'; '.join(report.scaled)}"] if report.scaled else []),
            *report.stand_ins,
            f"repeat it: `{report.command}`",
            f"verify it: `bench verify docs/results/{CAPSULES}/{self.file}` ([capsule]({CAPSULES}/{self.file}))",
        )
        return "\n".join(f"- {line}" for line in lines)

    @property
    def answer(self) -> str:
        """The first sentences of the report, and the caveats that weaken or block its verdicts."""
        lines = [f"> {as_markdown.escaped(sentence)}" for sentence in self.report.answer]
        severe = [caveat for caveat in compose(self.report).caveats if caveat[0] != "note"]
        lines += ["", *(f"- {severity} the verdict: {as_markdown.escaped(words)}" for severity, words in severe)]
        return "\n".join(lines).rstrip()

    @property
    def changes(self) -> str:
        """The table of what each change brought."""
        return _markdown(contrasts.overview([each for each in self.report.contrasts if each.headline]))

    @property
    def headlines(self) -> str:
        """The table of the headline in every cell, on each topology."""
        return _markdown(summary.table(self.report))

    @property
    def beside_the_study(self) -> str:
        """The tables of the study of which the session has a row, with our figures."""
        return "\n\n".join(
            f"{beside.table.title}:\n\n{_markdown(as_in_study.table(beside))}"
            for study in self.report.studies
            for beside in study.tables
            if beside.is_measured
        )

    def _said(self, metric: Metric, found: Comparison | None, verdict: str, what: str) -> str:
        if found is None or found.ratio is None:
            raise self._contradicted(what, None, verdict)
        if (word := tables.verdict(metric, found)) != verdict:
            raise self._contradicted(what, word, verdict)
        return ratio(found.ratio)

    def _contrast(self, parameter: str, where: Mapping[str, Value]) -> Contrast:
        names = tuple(parameter.split("+"))
        fits = [
            each
            for each in self.report.contrasts
            if each.parameters == names and where.items() <= {**each.params, **each.after}.items()
        ]
        return self._one(
            fits, f"change of {parameter} with {dict(where)}", [each.title for each in self.report.contrasts]
        )

    def _effect(self, contrast: Contrast, metric: str) -> Effect:
        fits = [each for each in contrast.effects if (each.metric.name == metric if metric else each.headline)]
        names = [f"{each.metric.name} of {each.arm}" for each in contrast.effects]
        return self._one(fits[:1], f"effect on {metric or 'the headline'}", names)

    def _row(self, cell: CellReport, metric: str) -> MetricRow:
        rows = (*cell.rows, *cell.usage)
        fits = [row for row in rows if (row.metric.name == metric if metric else row.headline)]
        return self._one(fits[:1], f"metric {metric or 'that is the headline'}", [row.metric.name for row in rows])

    def _one(self, fits: Sequence[T], what: str, there_are: Iterable[object]) -> T:
        if len(fits) != 1:
            raise self._unknown(f"{'several' if fits else 'no'} {what}", there_are)
        return fits[0]

    def _unknown(self, what: str, there_are: Iterable[object]) -> BadInput:
        return BadInput(f"{self.name}: {what}.", f"There are: {', '.join(map(str, there_are))}.")

    def _contradicted(self, what: str, found: str | None, said: str) -> BadInput:
        return BadInput(
            f"{self.name}: {what} is {found or 'without a verdict'}, and the page says {said}.", "Correct the page."
        )


def _markdown(found: tables.Table) -> str:
    return "\n".join(as_markdown.table(found))


class Results(dict[str, Result]):
    """All that is published, by the names of the capsules: an unknown one is an error of the page that asks for it."""

    def __missing__(self, name: str) -> Result:
        raise BadInput(f"There is no capsule {name}. {did_you_mean(name, self)}", f"There are: {', '.join(self)}.")


def read(folder: Path) -> Results:
    """Verify every capsule of `folder`: each number of its report is computed again from the raw samples."""
    found = Results()
    for path in sorted((folder / CAPSULES).glob("*.zip")):
        verified = checking.verify(path)
        name = path.name.removesuffix(".capsule.zip")
        found[name] = Result(name=name, file=path.name, report=verified.report)
    return found


def pages(folder: Path, results: Mapping[str, Result]) -> dict[Path, str]:
    """Each page of `folder`, and what pages of experiments quote of it. Raises BadInput where a sentence and the numbers disagree."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701  # Markdown, and what comes from a capsule is escaped where it is quoted
    )

    def written(template: str) -> str:
        return environment.get_template(template).render(results=results)

    found = {
        path.with_name(path.name.removesuffix(".jinja")): written(path.name)
        for path in sorted(folder.glob(f"*{TEMPLATE}"))
    }
    for path in sorted((folder / FINDINGS).glob("*.jinja")):
        page = folder.parent / "experiments" / f"{path.stem}.md"
        found[page] = _quoting(page.read_text(), written(f"{FINDINGS}/{path.name}"))
    return found


def _quoting(page: str, words: str) -> str:
    return QUOTED.sub(lambda match: f"{match['begin']}\n{words.strip()}\n\n{match['end']}", page)


def command(check: Check = False, folder: Folder = FOLDER) -> None:
    """Write the pages of published results from their capsules."""
    if not folder.is_dir():
        raise RecordDamaged(
            f"{folder} is not there.", "Run this in the folder of the project, or name it with --folder."
        )
    for path, text in pages(folder, read(folder)).items():
        if path.is_file() and path.read_text() == text:
            continue
        if check:
            raise RecordDamaged(f"{path} does not say what its capsules say.", "Write it anew with `task results`.")
        store.write_whole(path, text.encode())
        typer.echo(f"{path} was written anew.")


if __name__ == "__main__":
    command_line.run(command)
