"""Writes and reads checkpoints: weights and momentum after so many iterations, and nothing that a reader must trust."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bench.errors import BadInput
from bench.experiments.parameter_server.server import Checkpoint


def write(folder: Path, name: str, checkpoint: Checkpoint) -> Path:
    """Keep `checkpoint` in a file of its own, whole or not at all."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"checkpoint-{name}-{checkpoint.iteration}.npz"
    draft = path.with_suffix(".part")
    with draft.open("wb") as file:
        np.savez(
            file,
            iteration=np.int64(checkpoint.iteration),
            state=checkpoint.state,
            velocity=checkpoint.velocity,
        )
    return draft.replace(path)


def read(path: Path, *, length: int, parameters: int) -> Checkpoint:
    """The checkpoint in a file. Raises BadInput where it is none, or one of another network."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            iteration, state, velocity = int(file["iteration"]), file["state"], file["velocity"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} is no checkpoint: {error}.", "Give one that an earlier run wrote.") from error
    wrong = [array.dtype != np.float32 or array.ndim != 1 for array in (state, velocity)]
    if any(wrong) or len(state) != length or len(velocity) != parameters or iteration < 0:
        raise BadInput(
            f"{path} is a checkpoint of another network: {len(state)} numbers, and {length} are needed.",
            "Give the same model as it was made with.",
        )
    return Checkpoint(iteration, state, velocity)
