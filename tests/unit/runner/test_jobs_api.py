"""A Spec becomes exactly one job, whatever the head does at first."""

from __future__ import annotations

import shlex
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_spec
from fakes import TOKEN, FakeHead, serving

from bench import http_client
from bench.errors import AuthFailed, RunFailed, TargetFailed
from bench.model import to_json
from bench.runner import jobs_api
from bench.runner.jobs_api import JobsApi, entrypoint

NO_AGENT = (500, "RuntimeError: No available agent to submit job, please try again later.")


def test_a_head_without_an_agent_is_asked_again_and_gets_one_job(tmp_path: Path) -> None:
    head = FakeHead(tmp_path, answers=[NO_AGENT, NO_AGENT])
    with serving(head) as address:
        job_id = JobsApi(address, TOKEN).submit(a_spec())
    assert head.accepted == [job_id] == ["s1.b01-single-inference-c01"]


def test_a_refusal_fails_at_once(tmp_path: Path) -> None:
    head = FakeHead(tmp_path, answers=[(400, "runtime_env is bad")])
    with serving(head) as address, pytest.raises(RunFailed, match="HTTP 400, runtime_env is bad"):
        JobsApi(address, TOKEN).submit(a_spec())
    assert head.accepted == []


def test_the_same_run_is_not_submitted_twice(tmp_path: Path) -> None:
    head = FakeHead(tmp_path)
    with serving(head) as address:
        JobsApi(address, TOKEN).submit(a_spec())
        with pytest.raises(RunFailed, match="exists already"):
            JobsApi(address, TOKEN).submit(a_spec())
    assert len(head.accepted) == 1


class SlowHead(FakeHead):
    """It takes the first job, and lets the asker wait for its answer until that one has given up."""

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        is_first = not self.accepted
        answer = super().post(path, body)
        if is_first:
            time.sleep(1.5)
        return answer


def test_a_job_that_was_taken_without_a_word_is_neither_lost_nor_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_api, "TIMEOUT_SECONDS", 0.5)
    head = SlowHead(tmp_path)
    with serving(head) as address:
        job_id = JobsApi(address, TOKEN).submit(a_spec())
    assert head.accepted == [job_id]


class DroppingHead(FakeHead):
    """Something before it answers the first submission in its own way, after the head has accepted the job."""

    first: tuple[int, str] | None = None  # None: the connection is dropped without an answer

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        is_first = not self.accepted
        answer = super().post(path, body)
        if is_first and self.first is None:
            raise ConnectionAbortedError
        return self.first or answer if is_first else answer


@pytest.mark.parametrize("first", [None, (502, "<html>Bad Gateway</html>"), (504, ""), (404, "<html>Not Found</html>")])
def test_a_job_accepted_before_its_connection_dropped_is_the_same_job(
    tmp_path: Path, first: tuple[int, str] | None
) -> None:
    head = DroppingHead(tmp_path)
    head.first = first
    with serving(head) as address:
        job_id = JobsApi(address, TOKEN).submit(a_spec())
    assert head.accepted == [job_id]


def test_a_404_is_a_restarted_head_only_where_the_head_lists_its_jobs_without_it(tmp_path: Path) -> None:
    head = FakeHead(tmp_path)
    with serving(head) as address:
        api = JobsApi(address, TOKEN)
        assert api.status("j") == ("FAILED", "the head does not know the job: it was restarted")
        head.jobs["j"] = "RUNNING"
        assert api.status("j")[0] == "RUNNING"
        of_head, of_proxy = head.get, (404, "<html>404 page not found</html>")
        head.get = lambda path: of_proxy  # type: ignore[method-assign]
        with pytest.raises(http_client.RequestException):
            api.status("j")
        head.get = lambda path: of_head(path) if path == "/api/jobs/" else of_proxy  # type: ignore[method-assign]
        with pytest.raises(http_client.RequestException):
            api.status("j")


@pytest.mark.parametrize("answer", ["<html>Please log in</html>", "[]", '{"status": "well"}'])
def test_a_page_of_somebody_in_between_is_no_status(tmp_path: Path, answer: str) -> None:
    head = FakeHead(tmp_path)
    head.get = lambda path: (200, answer)  # type: ignore[method-assign]
    with serving(head) as address, pytest.raises(http_client.RequestException):
        JobsApi(address, TOKEN).status("j")


@pytest.mark.parametrize("token", ["wrong", ""])
def test_a_wrong_token_has_an_error_of_its_own_that_does_not_show_it(tmp_path: Path, token: str) -> None:
    with serving(FakeHead(tmp_path)) as address, pytest.raises(AuthFailed, match="refused the token") as caught:
        JobsApi(address, token).submit(a_spec())
    assert TOKEN not in str(caught.value)
    assert TOKEN not in repr(JobsApi(address, TOKEN))


def test_a_head_that_is_not_there_ends_in_a_line_within_the_deadline() -> None:
    with pytest.raises(TargetFailed, match="took no job"):
        JobsApi("http://127.0.0.1:9", TOKEN, ready_seconds=0.5).submit(a_spec())


def test_a_log_without_end_is_cut(tmp_path: Path) -> None:
    head = FakeHead(tmp_path, log="x" * 5_000_000 + "the last words")
    head.jobs["j"] = "FAILED"
    with serving(head) as address:
        end = JobsApi(address, TOKEN).log_end("j")
    assert len(end) <= 200_000
    assert end.endswith("the last words")


@pytest.mark.parametrize("length", [10, *range(jobs_api.LOG_BYTES - 8, jobs_api.LOG_BYTES + 8)])
def test_a_log_is_what_was_printed_wherever_it_is_cut(tmp_path: Path, length: int) -> None:
    last = '{"a": "\x1b[36mred"}\n'
    head = FakeHead(tmp_path, log='""""' + "x" * (length - 4) + last)
    head.jobs["j"] = "FAILED"
    with serving(head) as address:
        end = JobsApi(address, TOKEN).log_end("j")
    assert end.endswith(f"xxx{last}")


def test_a_driver_is_told_in_its_environment_what_a_shell_leaves_as_it_is(tmp_path: Path) -> None:
    told = {"A": "1", "IMAGES": '{"head": "sha256:1 with local code"}'}
    shown = tmp_path / "python"
    shown.write_text('#!/bin/sh\nprintf "%s|%s|%s" "$A" "$IMAGES" "$3"\n')
    shown.chmod(0o755)
    command = f"exec {entrypoint(a_spec(), python=str(shown), environment=told)}"
    said = subprocess.check_output(["/bin/sh", "-c", command], text=True, timeout=10)
    assert said.split("|") == ["1", told["IMAGES"], to_json(a_spec()).decode()]
    assert shlex.split(entrypoint(a_spec()))[:3] == ["python", "-m", "bench.cluster.driver"]


def test_the_environment_has_another_size_and_other_hashes_in_every_invocation_and_the_same_if_it_is_done_again() -> (
    None
):
    specs = [a_spec(id=f"b{block:02d}-{name}", block=block) for block in range(1, 30) for name in ("single", "multi")]
    layouts = [jobs_api.layout(spec) for spec in specs]
    assert layouts == [jobs_api.layout(spec) for spec in specs]
    sizes = [padding_bytes for padding_bytes, _ in layouts]
    assert (min(sizes) < 400, 3700 < max(sizes) <= 4096, len({hash_seed for _, hash_seed in layouts})) == (
        True,
        True,
        len(specs),
    )
    assert jobs_api.layout(replace(specs[0], seed=8)) != layouts[0]


def test_the_driver_is_started_with_them(tmp_path: Path) -> None:
    head = FakeHead(tmp_path)
    with serving(head) as address:
        JobsApi(address, TOKEN).submit(a_spec())
    (body,) = head.bodies
    assert len(body["entrypoint"]) < 200 + len(to_json(a_spec()))  # Ray prints it into the log that users read
    shown = tmp_path / "python"
    shown.write_text(f'#!/bin/sh\nprintf "%s|%s" "${{#{jobs_api.PADDING}}}" "$PYTHONHASHSEED"\n')
    shown.chmod(0o755)
    for shell in ("/bin/sh", "/bin/bash"):
        told = subprocess.check_output(
            [shell, "-c", body["entrypoint"]], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, text=True, timeout=10
        )
        assert told == "{}|{}".format(*jobs_api.layout(a_spec()))


@pytest.mark.parametrize("padding_bytes", [0, 1, jobs_api.MOST_PADDING_BYTES])
def test_a_driver_may_have_no_padding_and_the_most(padding_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_api, "layout", lambda _: (padding_bytes, 1))
    command = f"{jobs_api.padded(a_spec())} sh -c 'echo ${{#{jobs_api.PADDING}}}'"
    assert subprocess.check_output(["/bin/sh", "-c", command], text=True, timeout=10) == f"{padding_bytes}\n"


def test_between_tries_the_caller_may_see_that_none_can_succeed() -> None:
    def hopeless() -> None:
        raise TargetFailed("no worker starts.")

    with pytest.raises(TargetFailed, match=r"^no worker starts\.$"):
        JobsApi("http://127.0.0.1:9", TOKEN).submit(a_spec(), between_tries=hopeless)
