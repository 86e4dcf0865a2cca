"""Declares what an experiment is, and lists those there are."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bench import params as parameters
from bench.context import Context
from bench.errors import BadInput
from bench.metrics import conflict
from bench.model import Arm, Metric, Sample, Topology, Value, from_json, to_json
from bench.studies import Study

if TYPE_CHECKING:
    from bench.experiments.toolkit.faults import ToleratedFaults

P = TypeVar("P")
HINT = "docs/extending.md shows an experiment."


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A named choice of cells and of how often each is measured.

    Each grid is a full factorial of the values that it names; the cells are those of all grids, in order, without repeats.
    """

    help: str
    grids: tuple[Mapping[str, tuple[Value, ...]], ...]
    blocks: int
    warmups: int
    samples: int
    sample_seconds: float
    peer_sample_seconds: float | None = None  # of arms beside the subject; None: as long as its own
    deadline_seconds: float = 600.0  # of one run
    arms: tuple[str, ...] = ()  # beside the subject, unless others are asked for; empty: all

    def __post_init__(self) -> None:
        for name in ("blocks", "samples"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} of a profile must be 1 or more, got {getattr(self, name)}.", HINT)


@dataclass(frozen=True, kw_only=True)
class ArmCheck:
    """A check of the subject that is made by what another arm did, and cannot be made where that is not measured."""

    what: str  # is checked, as "that no transport of Ray is faster than a socket"
    needs: tuple[Arm, ...]  # one of them is enough
    between_nodes: bool = False  # it is made only where there are several


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[P]):
    """What an experiment's module declares as EXPERIMENT. Planning asks the optional functions once, for each Spec.

    Raises BadInput where a part of it is not what it must be.
    """

    metrics: tuple[Metric, ...]  # the headline first
    arms: tuple[Arm, ...]  # the subject first
    params: type[P]  # a frozen dataclass; each field is Annotated[type, Meta(...)]
    profiles: Mapping[str, Profile]
    # Of one pass at each point, by the name of every arm that runs: on two cores, before any run has been timed.
    guess_pass_seconds: Callable[[P], Mapping[str, Sequence[float]]]
    run: Callable[[P, Context], Iterator[Sample]]  # one invocation: start, measure in turns, yield samples

    # Before the first turn and after the last, on two cores.
    guess_other_seconds: Callable[[P], float] = lambda _params: 1.0
    # After each measured turn, while nothing is timed: by the name of the arm whose results are evaluated.
    guess_after_seconds: Callable[[P], Mapping[str, float]] = lambda _params: {}
    check_fits: Callable[[P, Topology], None] = lambda _params, _topology: None  # raises DoesNotFit
    check_input: Callable[[P], None] = lambda _params: None  # raises where a file of the user's own is not good
    data_sets: Callable[[P], Collection[str]] = lambda _params: ()  # that a run reads
    ray_settings: Callable[[P], Mapping[str, str]] = lambda _params: {}  # of its nodes, without the RAY_ before them
    # That compute at once; None: their number follows from that of CPUs.
    busy_workers: Callable[[P, Topology], int | None] = lambda _params, _topology: None
    # Parameters that change nothing beside the others.
    without_effect: Callable[[P], Collection[str]] = lambda _params: ()
    # Arms that cannot be measured beside such params.
    impossible_arms: Callable[[P], Collection[Arm]] = lambda _params: ()
    # Checks of the subject that need other arms; of a training that names a `reference` there is one beside these.
    arm_checks: Callable[[P], Sequence[ArmCheck]] = lambda _params: ()
    tolerates: ToleratedFaults | None = None  # without it, any fault makes a run invalid
    faults: Callable[[P], str] = lambda _params: ""  # to inject, as in worker:5+driver:3
    study: Study | None = None  # what was published of it, which reports show beside what was measured
    stand_ins: Mapping[str, str] = field(default_factory=dict)  # data sets used where the user has not added one

    def __post_init__(self) -> None:
        parts: tuple[tuple[str, object, type], ...] = (("metrics", self.metrics, Metric), ("arms", self.arms, Arm))
        for name, values, kind in parts:
            if not isinstance(values, tuple) or not values:
                raise BadInput(f"{name} must be a tuple of {kind.__name__}s: (one,) has a comma.", HINT)
            for value in values:
                try:
                    from_json(to_json(value), kind)
                except ValueError as error:
                    raise BadInput(f"{name} must be {kind.__name__}s: {error}.", HINT) from None
        if self.arms[0].role != "subject":
            raise BadInput(f"The first of the arms must be the subject, and {self.arms[0].name} is not.", HINT)
        if wrong := conflict(self.metrics):
            raise BadInput(f"The metrics do not go together: {wrong}.", HINT)
        self._check_profiles()
        self._check_params()

    def _check_profiles(self) -> None:
        for title, profile in self.profiles.items():
            for name, levels in [each for grid in profile.grids for each in grid.items()]:
                if not isinstance(levels, tuple):
                    raise BadInput(f"Profile {title} must have a tuple of values for {name}: (4,) has a comma.", HINT)
            if unknown := set(profile.arms) - {arm.name for arm in self.arms}:
                raise BadInput(f"Profile {title} names {min(unknown)}, which is no arm.", HINT)

    def _check_params(self) -> None:
        """Raise BadInput where a default or a value of a profile is not one that its parameter may have."""
        try:
            known = parameters.declared(self.params)
        except (TypeError, NameError) as error:  # the second at a type whose import is missing
            raise BadInput(f"params must be a frozen dataclass: {error}.", HINT) from error
        for parameter in known.values():
            parameters.check(parameter, parameter.default)
        for title, profile in self.profiles.items():
            for name, levels in [each for grid in profile.grids for each in grid.items()]:
                if name not in known:
                    raise BadInput(f"Profile {title} varies {name}, which is no parameter.", HINT)
                for level in levels:
                    parameters.check(known[name], level)


_MODULES = {
    "inference": "bench.experiments.inference",
    "parameter-server": "bench.experiments.parameter_server",
    "network": "bench.experiments.network",
    "core-rates": "bench.experiments.core_rates",
    "granularity": "bench.experiments.granularity",
    "tune-overhead": "bench.experiments.tune_overhead",
    "tune": "bench.experiments.tune",
    "clustering": "bench.experiments.clustering",
    "clustering-kernels": "bench.experiments.clustering_kernels",
    "clustering-files": "bench.experiments.clustering_files",
}
NAMES = tuple(_MODULES)
_OWN_MODULES = {
    "selfcheck": "bench.experiments.selfcheck"
}  # of raymeter itself: in no list, run by a command of its own
ALL_NAMES = (*NAMES, *_OWN_MODULES)


def load(name: str) -> Experiment[Any]:
    """The experiment called `name`; its frameworks are not imported before it runs.

    Raises KeyError if there is none, and BadInput where its module declares none.
    """
    module = _module(name)
    if not isinstance(vars(module).get("EXPERIMENT"), Experiment):
        raise BadInput(f"{module.__name__} must declare EXPERIMENT = Experiment(...).", HINT)
    return cast(Experiment[Any], module.EXPERIMENT)


def summary(name: str) -> str:
    """The first line of its module: its title, a colon, and what it does. Raises BadInput where it has none."""
    module = _module(name)
    found = (module.__doc__ or "").strip().partition("\n")[0]
    if ": " not in found:
        raise BadInput(f"{module.__name__} must begin with its title, a colon and what it does, got {found!r}.", HINT)
    return found


def _module(name: str) -> ModuleType:
    """The module of an experiment. Raises BadInput, with the line, where Python or a declaration refuses it."""
    path = (_MODULES | _OWN_MODULES)[name]
    try:
        return import_module(path)
    except SyntaxError as error:
        raise BadInput(f"{error.filename}, line {error.lineno}: {error.msg}.", HINT) from error
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "<frozen" not in frame.filename]
        own = next((frame for frame in frames if path.replace(".", "/") in frame.filename), frames[-1])
        wrong = error.__cause__
        line = wrong.line if isinstance(wrong, parameters.BadDeclaration) else ""
        what = error.what if isinstance(error, BadInput) else f"{_kind_of(error)}{error}."
        raise BadInput(f"{line or f'{own.filename}, line {own.lineno}'}: {what}", HINT) from error


def _kind_of(error: Exception) -> str:
    """The name of an error whose message does not say what is wrong, such as that of a missing key."""
    return "" if isinstance(error, TypeError | ValueError | NameError | ImportError) else f"{type(error).__name__}: "
