"""Checks the parameters that `--contrast` names against the cells of a session."""

from __future__ import annotations

from bench.errors import BadInput, did_you_mean
from bench.model import Session


def check(session: Session) -> None:
    """Raise BadInput unless each name of `session.contrast` is a parameter in which two of its cells differ."""
    if not session.contrast:
        return
    from bench.analysis.contrasts import asked, cells_of, pairs, varied  # with numpy, which other plans do not need

    cells = [cells_of(session, experiment) for experiment in session.metrics]
    known = {name for each in cells for params in each.values() for name in params}
    different = list(dict.fromkeys(name for each in cells for name in varied(each)))
    hint = f"Varied are: {', '.join(different)}." if different else "Vary one, e.g. --set batch=1,10."
    for names in asked(session):
        words = f"--contrast {'+'.join(names)}"
        for name in names:
            if name not in known:
                raise BadInput(f"{words}: there is no parameter {name}.", f"{did_you_mean(name, known)}{hint}")
            if name not in different:
                raise BadInput(f"{words}: {name} is the same in all cells.", hint)
        if not any(pairs(each, names) for each in cells):
            raise BadInput(f"{words}: no two cells differ in {' and '.join(names)} alone.", hint)
