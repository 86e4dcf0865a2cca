"""Makes an ordered Session of a request, and estimates its duration."""

from __future__ import annotations

import itertools
import math
import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from bench import params as parameters
from bench.counts import plural
from bench.errors import BadInput, DoesNotFit, did_you_mean
from bench.experiments import ALL_NAMES, NAMES, Experiment, Profile, load, summary
from bench.identity import describe_revision
from bench.machine.effective_cpus import effective_cpus
from bench.model import Session, Spec, Topology, Value
from bench.options import ClusterOptions, RunRequest, price_of
from bench.params import Parameter
from bench.planning import arms, contrasted, needs, stand_ins
from bench.planning.primary import primary
from bench.studies import Study, StudyRow

MIB = 2**20

# Guesses for a first run, of two cores; `estimate` prefers what earlier runs took.
UP_SECONDS = {"single": 8.0, "multi": 16.0}
DOWN_SECONDS = 1.5
MOST_SAMPLES = 10_000  # of a cell in one run
MOST_BLOCKS = 60  # where a precision is asked for, and no number of blocks
MOST_RUNS = 50_000  # of a session: weeks of work
FEWEST_DAYS = 3  # below them a duration is in hours
QUIET_CHECK_SECONDS = 0.5  # before a block, on an idle machine: one measurement of the quiet check

Levels = Mapping[str, tuple[Value, ...]]
"""The values over which each parameter is varied."""

Effect = tuple[tuple[str, Value], ...]
"""The params of a cell that have an effect beside the others."""

Cell = Mapping[str, Spec]
"""The complete Spec of one cell, by the name of the topology."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What earlier sessions on a target took, in seconds; where one says nothing, a guess takes its place."""

    runs: Mapping[tuple[str, str], float] = field(default_factory=dict)  # of a run, its job with it, by `time_key`
    clusters: Mapping[str, float] = field(default_factory=dict)  # between two runs, where one of this topology comes
    quiet_check: float | None = None  # that a block waited for a quiet machine, in the mean
    slowness: float | None = None  # of this machine, by which guesses are multiplied; None: it was not calibrated


NOTHING_KNOWN = Known()


def experiment(name: str) -> Experiment[Any]:
    """The experiment called `name`. Raises BadInput, naming those there are."""
    if name not in ALL_NAMES:
        close = did_you_mean(name, NAMES)
        new = "" if close else " A new one needs its line in bench/experiments/__init__.py."
        raise BadInput(f"Unknown experiment {name}.", f"{close}Choose from: {', '.join(NAMES)}.{new}")
    return load(name)


def check_experiments(request: RunRequest) -> None:
    """Raise BadInput unless experiments are named, all of them known; where none is, with a line about each."""
    if not request.experiments:
        width = max(map(len, NAMES))
        raise BadInput(
            "No experiment named.",
            f"Name one or more, e.g. `bench run {NAMES[0]} --profile tiny`.",
            details=(
                *("", "Experiments:", *(f"  {name:{width}}  {summary(name).partition(': ')[2]}" for name in NAMES)),
                *("", "`bench list EXPERIMENT` prints its parameters, metrics and profiles."),
            ),
        )
    for name in request.experiments:
        experiment(name)


def profile(name: str, of: str) -> Profile:
    """The profile `name` of the experiment `of`. Raises BadInput, naming those there are."""
    profiles = experiment(of).profiles
    if name not in profiles:
        raise BadInput(
            f"{of} has no profile {name}.", f"{did_you_mean(name, profiles)}Choose from: {', '.join(profiles)}."
        )
    return profiles[name]


def topologies(cluster: ClusterOptions) -> tuple[Topology, ...]:
    """The topologies asked for, with equal totals. Raises BadInput or DoesNotFit."""
    if cluster.nodes < 2 and cluster.topology != "single":
        raise BadInput(
            f"--nodes must be at least 2 for the topology multi, got {cluster.nodes}.", "Or use --topology single."
        )
    there = effective_cpus()
    cpus = cluster.cpus if cluster.cpus is not None else max(there.whole, 1)
    if cpus < 1:
        raise BadInput(f"--cpus must be at least 1, got {cpus}.")
    if cluster.cpus is None and cluster.topology != "single":
        cpus -= cpus % cluster.nodes
    if cluster.topology != "single" and (cpus < cluster.nodes or cpus % cluster.nodes):
        raise DoesNotFit(
            f"{plural(cluster.cpus, 'CPU') if cluster.cpus else f'The usable CPUs of this machine, {there},'} cannot be divided equally among"
            f" {cluster.nodes} nodes.",
            "Set --cpus to a multiple of --nodes, or use --topology single.",
        )
    for name, mib in (("--memory-mib", cluster.memory_mib), ("--object-store-mib", cluster.object_store_mib)):
        if mib < cluster.nodes:
            raise BadInput(f"{name} must be at least 1 MiB for each node, got {mib}.")
    if cluster.object_store_mib * 10 > cluster.memory_mib * 4:
        raise BadInput(
            f"--object-store-mib {cluster.object_store_mib} is over 40 % of --memory-mib {cluster.memory_mib}.",
            "Lower it or raise --memory-mib: the object store is part of the memory, and workers need the rest.",
        )
    shapes = {"single": 1, "multi": cluster.nodes}
    return tuple(
        Topology(
            name=name,
            nodes=nodes,
            cpus_per_node=cpus // nodes,
            # Whole MiB of the smallest node, so that both topologies have the same in total.
            memory_bytes_per_node=cluster.memory_mib // cluster.nodes * MIB * cluster.nodes // nodes,
            object_store_bytes_per_node=cluster.object_store_mib // cluster.nodes * MIB * cluster.nodes // nodes,
            threads_per_node=cpus // nodes,
            shares=cluster.nodes if nodes == 1 and cpus % cluster.nodes == 0 else 0,
        )
        for name, nodes in shapes.items()
        if cluster.topology in ("both", name)
    )


def chosen_levels(request: RunRequest, of: str) -> Levels:
    """The values chosen for the experiment `of`; `--set` overrides the plan file. Raises BadInput."""
    sets = [*request.sets, *([f"chaos={request.chaos}"] if request.chaos else [])]
    if any(text.startswith("chaos=") for text in sets):
        needs.check_chaos(of)
    return {**request.levels.get(of, {}), **parameters.settings(experiment(of).params, sets)}


def cells(of: str, name: str, chosen: Levels, scale: float = 1.0) -> list[dict[str, Value]]:
    """The params of each cell of a profile, with what was chosen in place of what the profile says.

    Its sizes are shrunk to a share of them, `scale`; what was chosen is left as it is.

    Of cells that differ in nothing that has an effect there is the first: the others would measure the same again, and be
    reported as a comparison.
    """
    return [cell for cell, twin in _combinations(of, name, chosen, scale) if twin is None]


def left_out(request: RunRequest) -> Iterator[str]:
    """In words, which cells of the profiles, and of those that were asked for, are left out."""
    for of in dict.fromkeys(request.experiments):
        yield from _narrowed_away(of, request)
        yield from _twins(of, request)


def _narrowed_away(of: str, request: RunRequest) -> Iterator[str]:
    """The cells of a profile that have other values than the chosen ones, where others of it have these."""
    subject, chosen = experiment(of), chosen_levels(request, of)
    declared = parameters.declared(subject.params)
    kept, dropped = _narrowed(profile(request.profile, of).grids, chosen, declared)
    made = (
        {effect for grid in kept for _, effect in _cells_of(subject, {**grid, **chosen}, chosen)} if dropped else set()
    )
    for name, grid in dropped:
        with suppress(BadInput):  # which a grid raises that does not go together with the chosen values
            if all(effect in made for _, effect in _cells_of(subject, {**grid, **chosen}, chosen)):
                continue  # with the chosen values they are cells that are measured
        count = math.prod(len({**grid, **chosen, name: grid[name]}[other]) for other in {**grid, **chosen})
        own = {
            other: levels
            for other, levels in grid.items()
            if other not in chosen and all(levels != each.get(other, (declared[other].default,)) for each in kept)
        }
        which = " ".join(f"{other}={_listed(levels)}" for other, levels in own.items())
        what, be = plural(count, "cell"), "is" if count == 1 else "are"
        yield (
            f"{of}: {what} of the profile {request.profile}{' with ' if which else ''}{which} {be} left out:"
            f" {name}={_listed(chosen[name])} was chosen, and it is {_listed(grid[name])} there."
        )


def _listed(levels: Sequence[Value]) -> str:
    return ",".join(map(str, levels))


def _twins(of: str, request: RunRequest) -> Iterator[str]:
    """The cells that differ from others in nothing that has an effect."""
    same: dict[str, set[tuple[Value, ...]]] = {}  # by the names that differ; grids of a profile may repeat a cell
    for cell, twin in _combinations(of, request.profile, chosen_levels(request, of), request.scale):
        if twin is not None and (names := [name for name in cell if cell[name] != twin[name]]):
            same.setdefault(", ".join(names), set()).add(tuple(cell.values()))
    for differing, those in same.items():
        what = plural(len(those), "cell is", "cells are")
        yield f"{of}: {what} left out: a difference in {differing} alone has no effect there."


def _combinations(
    of: str, name: str, chosen: Levels, scale: float = 1.0
) -> Iterator[tuple[dict[str, Value], dict[str, Value] | None]]:
    """Each combination of values, and the earlier one that has the same effect, if there is one."""
    sizes = _sizes(of, chosen) if scale != 1 else []
    subject = experiment(of)
    grids, _ = _narrowed(profile(name, of).grids, chosen, parameters.declared(subject.params))
    _check_many(sum(math.prod(map(len, {**grid, **chosen}.values())) for grid in grids))
    by_effect: dict[Effect, dict[str, Value]] = {}
    for grid in grids:
        for cell, effect in _cells_of(subject, {**grid, **chosen}, chosen, sizes, scale):
            yield cell, by_effect.get(effect)
            by_effect.setdefault(effect, cell)


def _cells_of(
    subject: Experiment[Any], levels: Levels, chosen: Levels, sizes: Sequence[Parameter] = (), scale: float = 1.0
) -> Iterator[tuple[dict[str, Value], Effect]]:
    """Each combination of `levels`, complete, and those of its values that have an effect."""
    for values in itertools.product(*levels.values()):
        cell = parameters.complete(subject.params, dict(zip(levels, values, strict=True)))
        cell = stand_ins.replaced(subject, cell, chosen)
        cell |= {size.name: parameters.shrink(size, cell[size.name], scale) for size in sizes}
        idle = subject.without_effect(subject.params(**cell))  # Params refuses what does not go together
        yield cell, tuple((name, value) for name, value in cell.items() if name not in idle)


def _sizes(of: str, chosen: Levels) -> list[Parameter]:
    """The parameters of an experiment that `--scale` shrinks. Raises BadInput where there is none."""
    declared = [parameter for parameter in parameters.declared(experiment(of).params).values() if parameter.is_size]
    if not declared:
        raise BadInput(f"--scale: {of} has no parameter that is a size.", "Leave out --scale.")
    if left := [parameter for parameter in declared if parameter.name not in chosen]:
        return left
    names = ", ".join(parameter.name for parameter in declared)
    raise BadInput(f"--scale: {names} of {of} is set already, and is not shrunk.", "Leave out --scale, or the value.")


def _describe_scale(request: RunRequest) -> Iterator[str]:
    """inference inputs 10000 instead of 100000: of each experiment, what `--scale` made of its sizes."""
    if request.scale == 1:
        return
    for of in dict.fromkeys(request.experiments):
        chosen = chosen_levels(request, of)
        before, after = (
            [cell for cell, _ in _combinations(of, request.profile, chosen, scale)] for scale in (1.0, request.scale)
        )
        for size in _sizes(of, chosen):
            pairs = dict.fromkeys((one[size.name], other[size.name]) for one, other in zip(before, after, strict=True))
            changes = ", ".join(f"{other:,} instead of {one:,}" for one, other in pairs)
            yield f"{of} {size.name} {changes}"


def _study(of: str, request: RunRequest, specs: Sequence[Spec]) -> Study | None:
    """What was published of an experiment, its cells scaled like those of the session; None where none of these repeats one."""
    study = experiment(of).study
    if study is None:
        return None
    sizes = {size.name: size for size in _sizes(of, {})} if request.scale != 1 else {}

    def scaled(row: StudyRow) -> StudyRow:
        params = {
            name: parameters.shrink(sizes[name], value, request.scale) if name in sizes else value
            for name, value in row.params.items()
        }
        return replace(row, params=params)

    tables = [replace(table, rows=tuple(map(scaled, table.rows))) for table in study.tables]
    own = [spec for spec in specs if spec.experiment == of]
    if not any(row.matches(spec.params) for table in tables for row in table.rows for spec in own):
        return None
    return replace(study, tables=tuple(tables))


def _narrowed(
    grids: Sequence[Levels], chosen: Levels, declared: Mapping[str, Parameter]
) -> tuple[Sequence[Levels], Sequence[tuple[str, Levels]]]:
    """The grids without those that name other values of a parameter than the chosen ones, where some grid has one of these.

    With the chosen value they would do the same work as that grid again. Second, those that are left out, each with the
    parameter.
    """
    dropped: list[tuple[str, Levels]] = []
    for name, values in chosen.items():
        own = {declared[name].default}
        if any(set(values) & set(grid.get(name, own)) for grid in grids):
            dropped += [(name, grid) for grid in grids if name in grid and not set(values) & set(grid[name])]
            grids = [grid for grid in grids if name not in grid or set(values) & set(grid[name])]
    return grids, dropped


def make(request: RunRequest, *, now: datetime | None = None, suffix: str | None = None) -> Session:
    """The Session that does what `request` asks for. Raises BadInput, DoesNotFit or DataMissing before anything starts."""
    check_experiments(request)
    if request.blocks is not None and request.blocks < 1:
        raise BadInput(f"--blocks must be at least 1, got {request.blocks}.")
    if request.samples is not None and not 1 <= request.samples <= MOST_SAMPLES:
        raise BadInput(f"--samples must be from 1 to {MOST_SAMPLES:,}, got {request.samples:,}.")
    if request.precision_share is not None and request.topology != "both":
        raise BadInput("--precision needs a ratio of two topologies.", "Use --topology both.")
    now = now or datetime.now(UTC)
    names = tuple(dict.fromkeys(request.experiments))
    identity = f"{now:%Y%m%d-%H%M%S}-{'-'.join(names)}-{request.profile}-{suffix or secrets.token_hex(2)}"
    arms.check(request)
    shapes = topologies(request)
    cell_specs = [spec for name in names for spec in _cell_specs(request, name, session=identity, topology=shapes[0])]
    if request.profile_with:
        needs.check_profiler(request.profile_with, request.target)
    arms.check_measured(request, cell_specs)
    cell_specs, unfit = _that_fit(request, cell_specs, shapes)
    of_profile = max(profile(request.profile, name).blocks for name in names)
    blocks = request.blocks or (MOST_BLOCKS if request.precision else of_profile)
    _check_many(len(cell_specs) * len(shapes) * blocks)
    complete = [{shape.name: needs.complete(replace(spec, topology=shape)) for shape in shapes} for spec in cell_specs]
    # However it was asked for, as a plan file or on the command line, it is kept in one way.
    asked = replace(
        request,
        experiments=names,
        levels={name: chosen_levels(request, name) for name in names},
        sets=(),
        chaos="",
        price_per_cpu_hour=price_of(request.price_per_cpu_hour) if request.price_per_cpu_hour else "",
    )
    session = Session(
        **{field.name: getattr(asked, field.name) for field in fields(RunRequest)},
        id=identity,
        created=now.isoformat(timespec="seconds"),
        metrics={name: experiment(name).metrics for name in names},
        arms={name: arms.measured(name, cell_specs) for name in names},
        specs=tuple(_ordered(complete, shapes, blocks=blocks, seed=request.seed)),
        revision=describe_revision(),
        primary_cells=primary(request.primary, cell_specs),
        unfit=tuple(unfit),
        scaling={name: parameters.counts_of_workers(experiment(name).params) for name in names},
        amounts={name: parameters.amounts_of_work(experiment(name).params) for name in names},
        changed_units={name: parameters.changed_units(experiment(name).params) for name in names},
        scaled=tuple(_describe_scale(request)),
        stand_ins=tuple(stand_ins.describe(cell_specs, request.profile, asked.levels)),
        unchecked=tuple(filter(None, (arms.unchecked(name, cell_specs, shapes) for name in names))),
        studies={name: found for name in names if (found := _study(name, request, cell_specs))},
    )
    contrasted.check(session)
    return replace(session, specs=_titled(session))


def _titled(session: Session) -> tuple[Spec, ...]:
    """The Specs, each with the title that its cell has in reports and on boards."""
    from bench.analysis.report import titles  # heavy: the command line must start at once

    by_cell = titles(session)
    return tuple(
        replace(spec, cell_title=by_cell[spec.experiment, spec.cell] or "the only cell") for spec in session.specs
    )


def _that_fit(request: RunRequest, specs: Sequence[Spec], shapes: Sequence[Topology]) -> tuple[list[Spec], list[str]]:
    """The cells that the nodes can do, and why each of the others was left out.

    A profile is for machines of all sizes: what is too large in it is left out. Raises DoesNotFit where it was chosen: where
    nothing is left, or a cell that differs only in chosen params fits.
    """
    fitting: list[Spec] = []
    refused: list[tuple[Spec, DoesNotFit]] = []
    for spec in specs:
        try:
            needs.check(spec, shapes, request.target)
            fitting.append(spec)
        except DoesNotFit as error:
            refused.append((spec, error))
    names, of_profile = {spec.experiment for spec in fitting}, [_of_profile(request, spec) for spec in fitting]
    for spec, why in refused:
        if spec.experiment not in names or _of_profile(request, spec) in of_profile:
            raise why
    return fitting, [f"cell {spec.experiment} {spec.cell}: {why.what.rstrip('.')}" for spec, why in refused]


def _of_profile(request: RunRequest, spec: Spec) -> tuple[str, dict[str, Value]]:
    """What a cell has from its profile, and not from the user."""
    chosen = chosen_levels(request, spec.experiment)
    return spec.experiment, {name: value for name, value in spec.params.items() if name not in chosen}


def _check_many(runs: int) -> None:
    """Raise BadInput where a session would have so many runs that its plan alone fills the memory."""
    if runs > MOST_RUNS:
        raise BadInput(
            f"The session would have {runs:,} runs or more; the limit is {MOST_RUNS:,}.",
            "Use fewer --blocks, or fewer values with --set.",
        )


def _cell_specs(request: RunRequest, name: str, *, session: str, topology: Topology) -> list[Spec]:
    chosen = profile(request.profile, name)
    subject = experiment(name)
    samples = request.samples or chosen.samples
    return [
        Spec(
            id="",
            session=session,
            experiment=name,
            cell=f"c{number:02d}",
            params=cell,
            seed=request.seed,
            topology=topology,
            block=0,
            warmups=chosen.warmups,
            samples=samples,
            sample_seconds=chosen.sample_seconds,
            peer_sample_seconds=chosen.peer_sample_seconds,
            arms=tuple(arm.name for arm in arms.of_cell(subject, chosen, request, subject.params(**cell))),
            deadline_seconds=chosen.deadline_seconds * max(1.0, samples / chosen.samples),
            guessed_seconds=0.0,  # `needs.complete` asks the experiment
            profile_with=request.profile_with,
        )
        for number, cell in enumerate(
            cells(name, request.profile, chosen_levels(request, name), request.scale), start=1
        )
    ]


def _ordered(cells: Sequence[Cell], shapes: tuple[Topology, ...], *, blocks: int, seed: int) -> Iterable[Spec]:
    """Blocks in seeded order: of every two, the second turns the first one's topologies round, so that drift cancels.

    Both topologies of a block run the cells in the same order, so that a pair has the same neighbours.
    """
    order = list(shapes)
    for block in range(1, blocks + 1):
        draw = random.Random(f"{seed}/{block}")
        order = order[::-1] if block % 2 == 0 else draw.sample(order, len(order))
        in_turn = _together(draw.sample(cells, len(cells)))
        for topology in order:
            for spec in (cell[topology.name] for cell in in_turn):
                identity = f"b{block:02d}-{topology.name}-{spec.experiment}-{spec.cell}"
                yield replace(spec, id=identity, block=block)


def _together(cells: Sequence[Cell]) -> list[Cell]:
    """The same order, but what Ray's settings are the same for stays together: each set of them takes a cluster of its own."""
    settings = [_ray_settings(cell) for cell in cells]
    return sorted(cells, key=lambda cell: settings.index(_ray_settings(cell)))


def _ray_settings(cell: Cell) -> Mapping[str, str]:
    """Those of a cell, which are the same on every topology."""
    return next(iter(cell.values())).ray_settings


def refusals(session: Session) -> list[str]:
    """The cells and blocks that will not run, each with the reason: the estimate does not count them."""
    refused = [*session.unfit, *(f"{dropped}: the budget is too small" for dropped in session.dropped)]
    return (
        [f"Refused ({len(refused)}), not run and not part of the estimate", *(f"  {each}" for each in refused)]
        if refused
        else []
    )


def estimate_seconds(session: Session, known: Known = NOTHING_KNOWN) -> float:
    """How long the session will take: the wait before each block, each cluster's start and end, and each run.

    `known` has what they took in earlier sessions; the rest is a guess from the Spec.
    """
    return sum_seconds(session.specs, known)


def sum_seconds(specs: Iterable[Spec], known: Known) -> float:
    """How long `specs` of a session will take, with the waits and the clusters that they need."""
    specs = tuple(specs)
    clusters = {(spec.block, spec.topology.name, tuple(sorted(spec.ray_settings.items()))) for spec in specs}
    waits = len({spec.block for spec in specs}) * (
        QUIET_CHECK_SECONDS if known.quiet_check is None else known.quiet_check
    )
    around = sum(cluster_seconds(topology, known) for _, topology, _ in clusters)
    return waits + around + sum(run_seconds(spec, known) for spec in specs)


def cluster_seconds(topology: str, known: Known) -> float:
    """Seconds to stop one cluster and start one of `topology`."""
    took = known.clusters.get(topology)
    guess = UP_SECONDS.get(topology, UP_SECONDS["multi"]) + DOWN_SECONDS
    return _scaled(guess, known) if took is None else took


def run_seconds(spec: Spec, known: Known) -> float:
    """How long one run will take: as in earlier sessions, or else by a guess."""
    return known.runs[time_key(spec)] if is_known(spec, known) else _scaled(spec.guessed_seconds, known)


def is_known(spec: Spec, known: Known) -> bool:
    """Whether such a run was measured in an earlier session."""
    return time_key(spec) in known.runs


def _scaled(guess_seconds: float, known: Known) -> float:
    return guess_seconds * (known.slowness or 1.0)


def time_key(spec: Spec) -> tuple[str, str]:
    """By what a run's time is known: its topology with the CPUs that it has, and what is run there."""
    topology = spec.topology
    return f"{topology.name}, {topology.nodes} x {topology.cpus_per_node} CPUs", run_key(spec)


def run_key(spec: Spec) -> str:
    """What two runs have in common that take equally long: all but session, block, topology and seed."""
    fields = ",".join(f"{name}={value}" for name, value in sorted(spec.params.items()))
    profiled = f" by {spec.profile_with}" if spec.profile_with else ""
    peers = "" if spec.peer_sample_seconds is None else f"/{spec.peer_sample_seconds:g}"
    repeats = f"x{spec.samples}+{spec.warmups}@{spec.sample_seconds:g}{peers}"
    measured = ",".join(spec.arms)
    return f"{spec.experiment}({fields})[{measured}]{repeats}{profiled}"


def format_duration(seconds: float) -> str:
    """4 s, 3 min, 1 h 20 min, 5 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = math.ceil(seconds / 60)
    if minutes >= FEWEST_DAYS * 24 * 60:
        return f"{minutes / 60 / 24:,.0f} days"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
