"""`bench resume`: go on with a session that was stopped."""

from __future__ import annotations

from dataclasses import replace

from bench.commands.run import carry_on, is_precise, left_out
from bench.errors import BadInput
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.record import store
from bench.runner import changed, session_lock
from bench.runner.session import remaining
from bench.targets import create
from bench.terminal.asking import typed_command
from bench.terminal.output import say


def command(session: SessionName, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    """Run exactly what a session lacks: what was never begun, stopped, failed or damaged, or left out when it ended early.

    Says first what has changed since: code, versions. A plan that was changed is refused.

    Example: bench resume latest
    """
    folder = store.find(out, session)
    planned = store.load_session(folder)
    work = remaining(folder, planned)
    say(f"{planned.id}: {len(work.kept)} runs kept, {len(work.again)} again, {len(work.new)} new.")
    if not work.todo:
        raise BadInput(f"{planned.id} lacks nothing.", f"See it with `bench report {planned.id}`.")
    store.check_writable(folder)
    if planned.ended:  # the budget begins anew; who had the precision and asks for the rest wants more
        say(f"It ended early: {planned.ended}.")
        planned = replace(planned, ended="", precision="" if is_precise(folder, planned) else planned.precision)
    say(f"This adds {left_out(folder, planned)}.")
    if differ := changed.since(store.load_runs(folder, planned), is_local=planned.target == "local"):
        say(f"Changed since the earlier runs: {'; '.join(differ)}. To compare like with like, start a new session.")
    target = create(planned.target, planned.options)
    for topology in {spec.topology.name: spec.topology for spec in work.todo}.values():
        target.check(topology)
    with session_lock.alone(planned, folder, typed_command()):
        carry_on(folder, planned, work, target=target, as_json=as_json)
