"""The question that a session asks, and its answer in two plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from bench.analysis.arms import ArmRow
from bench.analysis.cells import CellReport, slowest
from bench.analysis.comparison import Comparison, Verdict, is_enough
from bench.analysis.contrasts import Contrast, Effect, format_value
from bench.analysis.number_format import noun, percent, quantity, ratio, span, times_as, with_interval
from bench.analysis.recommended import sentence as recommended
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.analysis.usage import LIKE_IDLE
from bench.counts import plural
from bench.model import Metric, Session, Topology

MOST_PARAMETERS = 3  # of the sentence about what was varied


def question(session: Session, topologies: Sequence[Topology]) -> str:
    """The question that the session asks."""
    work = " and ".join(session.metrics) or "nothing"
    if not topologies:
        return f"How fast is {work}?"
    if len(topologies) == 1:
        return f"How fast is {work} on {shape(topologies[0])}?"
    return f"Does {work} do better or worse on {shape(topologies[-1])} than on {shape(topologies[0])}?"


def shape(topology: Topology) -> str:
    """multi (2 nodes of 1 CPU)."""
    return f"{topology.name} ({plural(topology.nodes, 'node')} of {plural(topology.cpus_per_node, 'CPU')})"


def answer(cells: Sequence[CellReport], contrasts: Sequence[Contrast] = (), *, noise: str = "") -> tuple[str, ...]:
    """Two sentences for each experiment, of the first that there is something to say in, and settings, where it recommends some.

    What a varied parameter changed; a plain peer that does better; topologies side by side; the ceiling; the network.
    `noise`: why the session gives no verdict at all. Then nothing is said but that, and what the pairs came to: what is
    left of a noisy session, or all that was excluded, supports no statement.
    """
    if not any(_has_values(cell) for cell in cells):
        return ("There is no answer: no run of this session is usable.",)
    sentences: list[str] = []
    for experiment in dict.fromkeys(cell.experiment for cell in cells):
        those = [cell for cell in cells if cell.experiment == experiment and _has_values(cell)]
        brought = _brought([each for each in contrasts if each.experiment == experiment], those)
        if noise:
            sentences.append(brought or _between(those) or f"There is no answer: {noise}.")
            continue
        beside = "" if brought else _between(those)
        found = (
            brought,
            _peers(those),
            beside or ("" if brought else _absolute(those)),
            _ceiling(those),
            _network(those),
        )
        sentences += [sentence for sentence in found if sentence][:2]
        if any(is_enough(side.estimate) for _, row in _headlines(those) for side in row.sides.values()):
            sentences += filter(None, [recommended(those, _last_topology(those))])
    return tuple(dict.fromkeys(sentences))


def _has_values(cell: CellReport) -> bool:
    return cell.headline is not None and any(side.values for side in cell.headline.sides.values())


def _last_topology(cells: Sequence[CellReport]) -> str:
    return next((name for cell in cells if cell.headline for name in reversed(tuple(cell.headline.sides))), "")


def _headlines(cells: Sequence[CellReport]) -> list[tuple[CellReport, MetricRow]]:
    return [(cell, cell.headline) for cell in cells if cell.headline is not None]


def _peers(cells: Sequence[CellReport]) -> str:
    better: list[ArmRow] = []
    worse_cells: set[str] = set()
    topologies: set[str] = set()
    for cell, row in _headlines(cells):
        found = [
            arm
            for arm in cell.arms
            if arm.arm.role == "peer" and arm.metric == row.metric.name and arm.share and arm.subject_is_worse
        ]
        if found:
            best = min(found, key=_share)
            better.append(best)
            topologies |= {arm.topology for arm in found if arm.arm.name == best.arm.name}
            worse_cells.add(cell.cell)
    if not better:
        return ""
    names = " or ".join(dict.fromkeys(arm.arm.name for arm in better))
    where = "" if len(cells) == 1 else f" in {_all_or(len(worse_cells), len(cells))}"
    if topologies < {topology for _, row in _headlines(cells) for topology in row.sides}:
        where = f" on {' and '.join(sorted(topologies))}{where}"
    metric = _headlines(cells)[0][1].metric
    times = span(1 / _share(arm) for arm in better)
    gain = (
        f"reaches {times} times the {noun(metric)}"
        if metric.better == "higher"
        else f"is {times} times as quick by {noun(metric)}"
    )
    return f"{_capital(cells[0].subject)} is not the best way to do this work here: on the same CPUs {names} {gain}{where}."


def _share(arm: ArmRow) -> float:
    return arm.share.value if arm.share else 1.0


def _all_or(some: int, all_: int) -> str:
    if some == all_:
        return "both cells" if all_ == 2 else f"all {all_} cells"
    return f"{some} of {all_} cells"


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _brought(contrasts: Sequence[Contrast], cells: Sequence[CellReport]) -> str:
    """What was varied, and by which factor the headline changed with it; then how topologies compare, in a word."""
    found = [(each, each.headline) for each in contrasts if each.headline and _factors(each.headline)]
    if not found:
        return ""
    changed = _one_change(*found[0]) if len(found) == 1 else _many_changes([each for each, _ in found])
    compared = [row.comparison for _, row in _headlines(cells) if row.comparison and row.comparison.ratio]
    if not compared:
        return f"{changed}."
    return f"{changed}; {compared[0].candidate} beside {compared[0].baseline}: {_counts(compared, len(cells))}."


def _factors(effect: Effect) -> dict[str, Comparison]:
    """By topology, where there is a ratio."""
    return {name: row.comparison for name, row in effect.rows.items() if row.comparison and row.comparison.ratio}


def _one_change(contrast: Contrast, effect: Effect) -> str:
    factors = _factors(effect)
    verdicts = list(map(_verdict, factors.values()))
    are_alike = len(verdicts) == 2 and len(set(verdicts)) == 1 and verdicts[0] in get_args(Verdict)
    parts = [
        f"{with_interval(found.ratio, decimals=2)}{'' if number else f' {times_as(effect.metric)}'} on {topology}"
        f"{'' if are_alike else f' ({_verdict(found)})'}"
        for number, (topology, found) in enumerate(factors.items())
        if found.ratio
    ]
    words = f" (both {'differ' if verdicts[0] == 'differs' else verdicts[0]})" if are_alike else ""
    work = f", for {contrast.work_of_headline}" if contrast.work_of_headline else ""
    work += f", and {contrast.other_units}" if contrast.other_units else ""
    both = effect.interaction
    more = ""
    if both and both.ratio and both.verdict in ("faster", "slower", "differs"):
        more = f": {ratio(both.ratio)} times as much on {both.candidate} as on {both.baseline}"
    why = next((f": {found.why}" for found in factors.values() if found.verdict is None), "")
    told = f"with {contrast.instead}, {noun(effect.metric)} is {' and '.join(parts)}{words}{work}{more}{why}"
    return _capital(f"{contrast.at_once}: {told}" if contrast.at_once else told)


def _many_changes(contrasts: Sequence[Contrast]) -> str:
    """By the parameters that were changed: the least and the greatest factor on each topology, and the verdicts."""
    metric = next(each.headline.metric for each in contrasts if each.headline)
    if len({(each.parameters, each.baseline) for each in contrasts}) == 1 and not contrasts[0].at_once:
        return _capital(f"with {_levels(contrasts)}, {noun(metric)} is {_spans(contrasts)}{_best(contrasts, metric)}")
    parts = []
    for names in list(dict.fromkeys(each.parameters for each in contrasts))[:MOST_PARAMETERS]:
        those = [each for each in contrasts if each.parameters == names]
        together = f"{' and '.join(names)} at once" if len(names) > 1 else names[0]
        parts.append(f"with {together} {_spans(those)}")
    left = len({each.parameters for each in contrasts}) - len(parts)
    more = f"; and {left} more" if left else ""
    return f"{_capital(noun(metric))} by what was varied: {'; '.join(parts)}{more}"


def _levels(contrasts: Sequence[Contrast]) -> str:
    """workers=2 to 20 instead of 1: of one parameter and one baseline."""
    (name,) = contrasts[0].parameters
    values = [each.after[name] for each in contrasts]
    numbers = [value for value in values if isinstance(value, int | float)]
    levels = (
        f"{min(numbers)} to {max(numbers)}" if len(numbers) == len(values) else " or ".join(map(format_value, values))
    )
    return f"{name}={levels} instead of {format_value(contrasts[0].before[name])}"


def _spans(contrasts: Sequence[Contrast]) -> str:
    """1.8 to 3.6 times as high on single and 1.7 to 3.1 on multi (faster), for 2 to 4 times the samples."""
    by_topology: dict[str, list[Comparison]] = {}
    effects = [each.headline for each in contrasts if each.headline]
    for effect in effects:
        for topology, found in _factors(effect).items():
            by_topology.setdefault(topology, []).append(found)
    times = [
        f"{span(found.ratio.value for found in those if found.ratio)}{'' if number else f' {times_as(effects[0].metric)}'} on {topology}"
        for number, (topology, those) in enumerate(by_topology.items())
    ]
    verdicts = Counter(_verdict(found) for those in by_topology.values() for found in those)
    count = sum(verdicts.values())
    words = ", ".join(f"{word} in {n} of {count}" if n < count else word for word, n in verdicts.items())
    work = list(dict.fromkeys(filter(None, (each.work_of_headline for each in contrasts))))
    more = f", for {' or '.join(work)}" if work else ""
    more += "".join(dict.fromkeys(f", and {each.other_units}" for each in contrasts if each.other_units))
    return f"{' and '.join(times)} ({words}){more}"


def _best(contrasts: Sequence[Contrast], metric: Metric) -> str:
    """The level with the best factor on the last topology, where a statement may rest on it."""
    found = {
        each.instead.partition(" instead")[0]: list(_factors(each.headline).items())[-1]
        for each in contrasts
        if each.headline
    }
    enough = {name: (topology, c.ratio) for name, (topology, c) in found.items() if c.ratio and is_enough(c.ratio)}
    if not enough or metric.better is None:
        return ""
    choose = max if metric.better == "higher" else min
    name, (topology, best) = choose(enough.items(), key=lambda item: item[1][1].value)
    return f", at best {with_interval(best, decimals=2)} on {topology} with {name}"


def _between(cells: Sequence[CellReport]) -> str:
    compared = [(row, row.comparison) for _, row in _headlines(cells) if row.comparison and row.comparison.ratio]
    if not compared:
        return _without_ratio(cells)
    row, first = compared[0]
    both = f"{first.candidate} beside {first.baseline}"
    if len(compared) == 1:
        return f"{_capital(both)}: {noun(row.metric)} is {_one(row.metric, first)}."
    counts = _counts([comparison for _, comparison in compared], len(cells))
    values = span(comparison.ratio.value for _, comparison in compared if comparison.ratio)
    worst = slowest(cells)
    at_worst = worst.headline.comparison.ratio if worst.headline and worst.headline.comparison else None
    interval = f", at worst {ratio(at_worst)} in {worst.cell}" if at_worst else ""
    return f"{_capital(both)}: {counts}; {noun(row.metric)} is {values} {times_as(row.metric)}{interval}."


def _counts(compared: Sequence[Comparison], cells: int) -> str:
    """The verdicts, and in how many of the cells each was found."""
    verdicts = Counter(map(_verdict, compared))
    return ", ".join(f"{verdict} in {_all_or(count, cells)}" for verdict, count in verdicts.items())


def _verdict(comparison: Comparison) -> str:
    return comparison.verdict or ("refused" if comparison.refused else "no verdict")


def _one(metric: Metric, comparison: Comparison) -> str:
    times = f"{ratio(comparison.ratio)} {times_as(metric)}" if comparison.ratio else "not known"
    pairs = plural(comparison.pairs, "pair")
    if comparison.refused:
        return f"{times} ({pairs}), and the verdict is refused: {comparison.why}"
    if comparison.verdict is None:
        return f"{times}, without a verdict: {comparison.why}"
    if comparison.verdict == "undecided":
        return f"{times} ({pairs}), which is undecided: {comparison.why}"
    return f"{times} ({pairs}): {comparison.verdict}"


def _without_ratio(cells: Sequence[CellReport]) -> str:
    """Where no pair is left that could be compared."""
    for _, row in _headlines(cells):
        found = row.comparison
        if found and (found.refused or found.verdict == "undecided"):
            word = "refused" if found.refused else "undecided"
            return f"{_capital(found.candidate)} beside {found.baseline}: {word}, {found.why}."
    return ""


def _absolute(cells: Sequence[CellReport]) -> str:
    for cell, row in _headlines(cells):
        for topology, side in row.sides.items():
            if side.estimate:
                value = quantity(row.metric, side.estimate.value)
                more = "" if len(cells) == 1 else f" in the first of {len(cells)} cells"
                return f"On {topology} the {noun(row.metric)} is {value}{more}{_beside(cell, row, topology, cells=len(cells))}."
    return ""


def _beside(cell: CellReport, row: MetricRow, topology: str, *, cells: int) -> str:
    """What the headline may be compared with: the arms that were measured in the same invocations."""
    names = [
        each.arm.name
        for each in cell.arms
        if each.topology == topology and each.metric == row.metric.name and each.arm.role != "subject"
    ]
    if not names:
        return "" if cells > 1 else "; no other cell or arm was measured"
    enough = is_enough(row.sides[topology].estimate)
    needed = "" if enough else f"; a verdict on them needs {FEWEST_FOR_VERDICT} invocations"
    return f"; beside it in the same invocations: {', '.join(names)}{needed}"


def _ceiling(cells: Sequence[CellReport]) -> str:
    shares: dict[str, list[float]] = {}
    names: dict[str, None] = {}
    for cell in cells:
        for arm in cell.ceilings:
            if arm.share and is_enough(arm.share):
                shares.setdefault(arm.topology, []).append(arm.share.value)
                names[arm.arm.name] = None
    if not shares:
        return ""
    parts = [f"{_range(values)} on {topology}" for topology, values in shares.items()]
    return f"{_capital(cells[0].subject)} reaches {' and '.join(parts)} of what the CPUs can do ({' or '.join(names)})."


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _network(cells: Sequence[CellReport]) -> str:
    for cell in cells:
        for row in cell.usage:
            if row.metric.means == "wire bytes":
                sent = [
                    f"{LIKE_IDLE if side.like_idle else quantity(row.metric, side.estimate.value)} on {topology}"
                    for topology, side in row.sides.items()
                    if side.estimate and is_enough(side.estimate)
                ]
                if sent:
                    return f"Each {cell.unit} sent over the network: {', '.join(sent)}."
    return ""
