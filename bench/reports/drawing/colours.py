"""The colours of topologies, the same on every board and in every report, and of the levels of a parameter."""

from __future__ import annotations

# Of Okabe and Ito's palette, which people with any kind of colour blindness can tell apart.
TOPOLOGIES = {"single": "#0072B2", "multi": "#E69F00"}
NEUTRAL = "#009E73"
ALARM = "#D55E00"
LEVELS = ("#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#AA4499", "#888888")  # of a parameter, in order
OTHERS = ("#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")  # of topologies with other names, in their order


def of_topologies(names: tuple[str, ...]) -> dict[str, str]:
    """Return a colour for each topology."""
    others = iter(OTHERS * len(names))
    return {name: TOPOLOGIES.get(name) or next(others) for name in names}
