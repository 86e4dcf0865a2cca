"""Makes the folder of Tune's checkpoints, and checks that every node sees it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.context import NodeSlot
from bench.errors import BadInput
from bench.experiments.toolkit.placement import get_in_time, on

SHARED_SECONDS = 30.0


@contextmanager
def storage(path: str, nodes: Sequence[NodeSlot], *, is_shared: bool) -> Iterator[Path]:
    """A folder for what Tune keeps, gone afterwards. Raises BadInput where it must be shared by `nodes` and is not."""
    try:
        if path:
            Path(path).mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="raymeter-tune-", dir=path or None))
    except OSError as error:
        raise BadInput(f"checkpoint_path={path}: it cannot be written to ({error.strerror}).") from error
    try:
        if is_shared:
            check_shared(folder, nodes)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_shared(folder: Path, nodes: Sequence[NodeSlot]) -> None:
    """Raise BadInput unless what every node writes into `folder` is there for this one to read."""
    import ray

    def write(name: str) -> bool:
        try:
            (folder / name).write_text(name)
        except OSError:
            return False
        return True

    task = ray.remote(num_cpus=0, max_retries=0)(write)
    wrote = get_in_time(
        [task.options(scheduling_strategy=on(node)).remote(node.name) for node in nodes],
        SHARED_SECONDS,
        "Nodes that write",
    )
    for node, done in zip(nodes, wrote, strict=True):
        token = folder / node.name
        if not done or not token.is_file() or token.read_text() != node.name:
            raise BadInput(
                f"checkpoint_path: what {node.name} writes into {folder.parent} is not there on {nodes[0].name}.",
                "Checkpoints need a folder that all nodes share: name one with --set checkpoint_path=PATH.",
            )
        token.unlink()
