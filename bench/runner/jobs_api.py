"""Submits a Spec to Ray's Jobs API over HTTP, and requests the status of its job.

The log is fetched only to show its end to the user. The job's status is a hint; the record says how the run ended.
"""

from __future__ import annotations

import json
import random
import secrets
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

import tenacity

from bench import http_client
from bench.errors import AuthFailed, RunFailed, TargetFailed
from bench.model import Spec, to_json
from bench.runner import pending_tasks

JobStatus = Literal["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]
ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
STATUSES = get_args(JobStatus)
SUBMISSION = "submission"  # key in a job's metadata; its random value identifies this submission of the id
NOT_OF_THE_HEAD = (
    404,
    502,
    503,
    504,
)  # statuses that a submission gets from a proxy before the head, not from the head

TIMEOUT_SECONDS = 10.0
READY_SECONDS = 60.0
LOG_BYTES = 200_000
QUOTE = '"'
PADDING = "RAYMETER_PADDING"
MOST_PADDING_BYTES = 4096


class NotReady(Exception):
    """The head has not confirmed the job: no connection, no response, no agent, or a proxy responded. Try again."""


@dataclass(frozen=True)
class JobsApi:
    """The Jobs API of one cluster."""

    address: str
    token: str = field(repr=False)
    ready_seconds: float = READY_SECONDS

    def submit(
        self,
        spec: Spec,
        *,
        python: str = "python",
        environment: Mapping[str, str] = MappingProxyType({}),
        between_tries: Callable[[], None] = lambda: None,
    ) -> str:
        """Start the driver of `spec`; return the job's id, which is never used again. Raises TargetFailed, RunFailed, AuthFailed.

        Repeated until the head confirms: the id is unique, so the job cannot run twice. If the id exists with this submission's mark,
        an earlier try was accepted and its response lost. `between_tries` raises if no further try could succeed.
        """
        job_id = f"{spec.session}.{spec.folder}"
        body = {
            "submission_id": job_id,
            "entrypoint": f"exec {padded(spec)} {entrypoint(spec, python=python, environment=environment)}",
            "metadata": {"session": spec.session, "run": spec.folder, SUBMISSION: secrets.token_hex(8)},
        }
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(NotReady),
            wait=tenacity.wait_exponential(multiplier=0.2, max=2.0),
            stop=tenacity.stop_after_delay(self.ready_seconds),
            before_sleep=lambda _: between_tries(),
        )
        try:
            for attempt in retrying:
                with attempt:
                    self._post_job(body)
        except tenacity.RetryError as error:
            raise TargetFailed(
                f"The Jobs API at {self.address} took no job for {self.ready_seconds:.0f} s:"
                f" {error.last_attempt.exception()}.",
                "Look at it with `bench doctor`.",
            ) from error
        return job_id

    def _post_job(self, body: dict[str, Any]) -> None:
        try:
            answer = self._ask("POST", "/api/jobs/", json=body)
            if "already exists" in answer.text:
                self._check_is_same(body)
                return
        except http_client.ReadTimeout as error:
            raise NotReady(f"it did not respond within {TIMEOUT_SECONDS:g} s") from error
        except http_client.RequestException as error:
            raise NotReady(f"the connection was refused or dropped ({type(error).__name__})") from error
        if answer.status_code in NOT_OF_THE_HEAD:
            raise NotReady(f"HTTP {answer.status_code} from a proxy before the head: {_end(answer.text)}")
        if answer.status_code == 500 and "agent" in answer.text.lower():
            raise NotReady("it has no agent to run a job yet")
        if not answer.ok:
            raise RunFailed(f"The Jobs API refused the job: HTTP {answer.status_code}, {_end(answer.text)}")

    def _check_is_same(self, body: Mapping[str, Any]) -> None:
        """Raise RunFailed if the job with the id of `body` was submitted by another submission."""
        accepted = self._details(body["submission_id"]).get("metadata") or {}
        if accepted.get(SUBMISSION) != body["metadata"][SUBMISSION]:
            raise RunFailed(
                f"A job {body['submission_id']} exists already.", "A run's id is used once: `bench resume`."
            )

    def status(self, job_id: str) -> tuple[JobStatus, str]:
        """Return the job's status and its message. Raises RequestException if the head itself has not responded."""
        try:
            details = self._details(job_id)
        except http_client.HTTPError as error:
            if error.response is None or error.response.status_code != 404 or self._knows(job_id):
                raise
            return "FAILED", "the head does not know the job: it was restarted"
        code = details.get("driver_exit_code")
        ended_by = "" if code is None else f"\nexit code {code}"
        return cast(JobStatus, details["status"]), (details.get("message") or "") + ended_by

    def _details(self, job_id: str) -> dict[str, Any]:
        """Return the head's details of a job. Raises RequestException if the response is not that of the Jobs API."""
        answer = self._ask("GET", f"/api/jobs/{job_id}")
        answer.raise_for_status()
        details = answer.json()
        if not isinstance(details, dict) or details.get("status") not in STATUSES:
            raise http_client.RequestException("the response is not that of Ray's Jobs API")
        return details

    def _knows(self, job_id: str) -> bool:
        """Whether the head lists the job: a proxy responds 404 too, but has no list. Raises RequestException."""
        answer = self._ask("GET", "/api/jobs/")
        answer.raise_for_status()
        jobs = answer.json()
        if not isinstance(jobs, list):
            raise http_client.RequestException("the response is not that of Ray's Jobs API")
        return any(isinstance(job, dict) and job.get("submission_id") == job_id for job in jobs)

    def raised(self, job_id: str) -> str:
        """Return how many tasks of the job raised an exception, and a description of the first; empty if none did.

        A driver that only waits for a task does not notice its exception. Raises RequestException.
        """
        filters = {
            "state": "FAILED",
            "error_type": "TASK_EXECUTION_EXCEPTION",
            "job_id": self._details(job_id)["job_id"],
        }
        params = [("detail", "1"), ("limit", "10000")]
        for name, value in filters.items():
            params += [("filter_keys", name), ("filter_predicates", "="), ("filter_values", str(value))]
        answer = self._ask("GET", "/api/v0/tasks", params=params)
        answer.raise_for_status()
        return pending_tasks.describe_exception(answer.json()["data"]["result"]["result"])

    def stop(self, job_id: str) -> None:
        """Ask Ray to stop the job."""
        self._ask("POST", f"/api/jobs/{job_id}/stop")

    def log_end(self, job_id: str) -> str:
        """Return the end of the driver's log, for the user. Empty if it cannot be fetched."""
        try:
            answer = self._ask("GET", f"/api/jobs/{job_id}/logs", stream=True)
            if not answer.ok:
                return ""
            # A worker may have printed any amount: only the end is kept.
            end, is_whole = b"", True
            for part in answer.iter_content(65536):
                end, is_whole = (end + part)[-LOG_BYTES:], is_whole and len(end + part) <= LOG_BYTES
            text = end.decode(errors="replace")
            if is_whole:
                return cast(str, json.loads(text)["logs"])
            # The end of a JSON string. A quotation mark at its begin has lost its backslash to the cut.
            return cast(str, json.loads(f'"{text.removesuffix("}").removeprefix(QUOTE)}'))
        except (http_client.RequestException, ValueError, KeyError):
            return ""

    def waiting(self) -> str:
        """Describe what waits for CPUs in the cluster, and what holds them. Empty if nothing waits, or it cannot be fetched."""
        try:
            answers = {
                name: self._ask("GET", f"/api/v0/{name}", params={"detail": "1"}) for name in pending_tasks.LISTS
            }
            return pending_tasks.describe(
                {name: answer.json()["data"]["result"]["result"] for name, answer in answers.items()}
            )
        except (http_client.RequestException, AuthFailed, ValueError, KeyError, TypeError):
            return ""  # it only explains a failure, and must not cause one

    def _ask(self, method: str, path: str, **options: Any) -> http_client.Response:
        answer = http_client.request(
            method, self.address + path, token=self.token, timeout_seconds=TIMEOUT_SECONDS, **options
        )
        if answer.status_code in (401, 403):
            raise AuthFailed(
                f"The cluster at {self.address} refused the token (HTTP {answer.status_code}).",
                "Stand it up again with `bench up`.",
            )
        return answer


def layout(spec: Spec) -> tuple[int, int]:
    """Return the bytes of padding in the driver's environment, and the seed of its hashes, drawn anew for each invocation.

    The size of the environment shifts the stack, and hashes order sets; both change how fast a program runs. Without the draw,
    one such accident would be in every value of an arm (Mytkowicz et al., ASPLOS 2009).
    """
    draw = random.Random(f"{spec.seed}/{spec.folder}")
    return draw.randint(0, MOST_PADDING_BYTES), draw.randrange(2**32)


def padded(spec: Spec) -> str:
    """Return the start of a shell command that applies `layout`. The shell makes the padding: Ray prints the command into the log."""
    padding_bytes, hash_seed = layout(spec)
    return f'env {PADDING}="$(printf %{padding_bytes}s "")" PYTHONHASHSEED={hash_seed}'


def entrypoint(spec: Spec, *, python: str = "python", environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the shell command that runs the driver of `spec`, with environment variables that only the driver gets."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    prefix = ["env", *variables] if variables else []
    return shlex.join([*prefix, python, "-m", "bench.cluster.driver", to_json(spec).decode()])


def _end(text: str) -> str:
    """Return the last line that is not empty, shortened to 300 characters."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "without a message"
