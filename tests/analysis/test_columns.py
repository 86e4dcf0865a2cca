"""That a run read by the places of its shape says what its samples say."""

from __future__ import annotations

from dataclasses import replace

from analysis.made_up import made_up
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.columns import columns, measured_keys
from bench.model import Interval, Sample

RUN = made_up(cells=1, blocks=1)[1][0]
SAMPLES = st.lists(
    st.builds(
        lambda value, begin, **rest: Sample(
            value=value, reason=None if value is not None else "lost", interval=Interval(begin, begin + 1.5), **rest
        ),
        metric=st.sampled_from(["rate", "time"]),
        arm=st.sampled_from(["ray", "pool"]),
        node=st.sampled_from([None, "head"]),
        point=st.sampled_from(["", "64 KiB"]),
        turn=st.integers(0, 3),
        warmup=st.booleans(),
        step=st.sampled_from([None, 1.0]),
        value=st.one_of(st.none(), st.floats(0, 100)),
        begin=st.floats(0, 100),
    ),
    max_size=12,
)


@settings(max_examples=200)
@given(SAMPLES)
def test_places_are_those_of_the_samples(samples):
    found = columns(replace(RUN, samples=tuple(samples)))
    for key, places in found.shape.places.items():
        mine = [s for s in samples if (s.metric, s.arm, s.node, s.point) == key and s.step is None]
        counted = [s for s in mine if not s.warmup and s.value is not None]
        assert [samples[place] for place in places.timed] == [s for s in mine if not s.warmup]
        assert [found.values[place] for place in places.counted] == [s.value for s in counted]
        assert found.seconds(places.counted) == [s.interval.seconds for s in counted]
        assert places.turns == by_turn(samples, counted)
        assert places.all_turns == by_turn(samples, [s for s in mine if s.value is not None])
    assert set(found.shape.places) == {(s.metric, s.arm, s.node, s.point) for s in samples if s.step is None}
    in_turns = [s for s in samples if s.turn > 0 and not s.warmup]
    assert [samples[place] for place in found.shape.in_turns] == in_turns
    assert found.shape.turns == len({s.turn for s in in_turns})


def by_turn(samples, those):
    """Places in `samples` by turn, in order of turns."""
    turns = sorted({s.turn for s in those if s.turn > 0})
    return tuple(
        (t, tuple(n for n, s in enumerate(samples) if s.turn == t and any(s is one for one in those))) for t in turns
    )


def test_runs_of_one_shape_share_it_and_not_their_values():
    one, other, *_ = [run for run in made_up(cells=1, blocks=3)[1] if run.spec.topology.name == "single"]
    assert columns(one).shape is columns(other).shape
    assert columns(one).values != columns(other).values


def test_a_copy_with_other_samples_is_read_anew():
    assert measured_keys([RUN])
    assert not measured_keys([replace(RUN, samples=())])
