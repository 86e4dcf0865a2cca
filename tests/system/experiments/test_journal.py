"""A journal survives processes that are killed while they write it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from outcomes import a_journal
from repository import SUPPORT

from bench.experiments.clustering import split, work
from bench.experiments.clustering.metrics import Account
from bench.record.store import DONE

KILLED = """
import sys, time
from pathlib import Path
import numpy
sys.path.insert(0, sys.argv.pop(1))
from outcomes import a_journal
from bench.experiments.clustering import Params, split, work
from bench.experiments.clustering.params import job_of

folder, earlier = Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]]
job = job_of(Params(job="empty"), 1)
(folder / "executed").touch()
with a_journal(folder, earlier) as journal:
    kept = {each.part for each in journal.done("1/1")}
    print("begun", flush=True)
    for part in split.parts(4_000, 10):
        if part.number not in kept:
            outcome = work.perform(job, part, work.vectors_of(job, part, None), say=print)
            with (folder / "executed").open("a") as file:
                file.write(f"{part.number}\\n")
            journal.append("1/1", [outcome])
            time.sleep(0.001)
"""


def test_after_kill_9_at_fifty_random_moments_every_part_is_done_and_counted_once(tmp_path: Path) -> None:
    draw = random.Random(8)
    earlier: list[str] = []
    code, kills = -1, 0
    while code != 0:
        folder = tmp_path / str(len(earlier))
        folder.mkdir()
        words = [str(SUPPORT), str(folder), *earlier]
        child = subprocess.Popen([sys.executable, "-c", KILLED, *words], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        if kills < 50:
            time.sleep(draw.uniform(0, 0.02))
            child.kill()
            kills += 1
        code = child.wait(timeout=120)
        child.stdout.close()
        assert code in (0, -signal.SIGKILL)
        earlier.append(str(folder / DONE))
    assert kills == 50
    account = Account()
    with a_journal(tmp_path, [Path(each) for each in earlier]) as journal:
        for outcome in journal.done("1/1"):
            account.add(outcome)
    assert (account.jobs, account.squares) == (4_000, work.squares_of(4_000))
    executed = Counter(line for path in earlier for line in (Path(path).parent / "executed").read_text().splitlines())
    assert len(executed) == split.count(4_000, 10)
    assert sum(executed.values()) - len(executed) <= 50  # what was in flight when the process died: one part each time
