"""Why a program failed, as its output says it."""

from __future__ import annotations

import pytest

from bench.errors import TargetFailed, error_in_output

KUSTOMIZE = """E1129 10:47:22.691740   20150 run.go:72] "command failed" err=<
\taccumulating resources: accumulation err='accumulating resources from 'https://github.com/x': Get "https://github.com/x":\
 no such host': failed to run '/usr/bin/git fetch --depth=1 https://github.com/x v1.6.2': fatal: unable to access\
 'https://github.com/x/': Could not resolve host: github.com
\t: exit status 128
 >
"""
KIND = """Creating cluster "a" ...
 • Ensuring node image (kindest/node:v9) 🖼  ...
 ✗ Ensuring node image (kindest/node:v9) 🖼
ERROR: failed to create cluster: failed to pull image "kindest/node:v9": command "docker pull kindest/node:v9" failed with\
 error: exit status 1

Command Output: Error response from daemon: manifest for kindest/node:v9 not found: manifest unknown
"""
KIND_WITH_STACK = f"""{KIND}
Stack Trace:
sigs.k8s.io/kind/pkg/errors.WithStack
\t/src/kind/pkg/errors/errors.go:63
main.main
\t/src/kind/main.go:25
"""
KIND_SAYS = (
    'ERROR: failed to create cluster: failed to pull image "kindest/node:v9": command "docker pull kindest/node:v9" failed'
    " with error: exit status 1 Command Output: Error response from daemon: manifest for kindest/node:v9 not found:"
    " manifest unknown"
)
RAY = """2026-01-01 INFO services.py: View the Ray dashboard
Some Ray subprocesses exited unexpectedly:
  gcs_server [exit code=1]

Remaining processes will be killed.
"""
TRACEBACK = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
    open("a")
FileNotFoundError: [Errno 2] No such file or directory: 'a'
"""


DASHBOARD = """2026-01-01 00:00:01,100\tINFO usage_lib.py:447 -- Usage stats collection is disabled.
2026-01-01 00:00:30,100\tERROR services.py:1431 -- Failed to start the dashboard , return code 1
2026-01-01 00:00:30,101\tERROR services.py:1456 -- Error should be written to 'dashboard.log' or 'dashboard.err'. We are\
 printing the last 20 lines for you. See 'https://docs.ray.io/' to find where the log file is.
2026-01-01 00:00:30,102\tERROR services.py:1476 --\x20
The last 20 lines of /tmp/ray/session_1/logs/dashboard.log (it contains the error message from the dashboard):\x20
2026-01-01 00:00:02,000\tINFO head.py:268 -- Initialize the http server.

2026-01-01 00:00:03,000\tINFO head.py:300 -- The http server listens.
"""
DASHBOARD_SAYS = f"""{DASHBOARD}
Traceback (most recent call last):
  File "dashboard.py", line 1, in main
OSError: [Errno 28] No space left on device
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (KUSTOMIZE, "fatal: unable to access 'https://github.com/x/': Could not resolve host: github.com"),
        (KIND, KIND_SAYS),
        (KIND_WITH_STACK, KIND_SAYS),
        (RAY, "Some Ray subprocesses exited unexpectedly: gcs_server [exit code=1]"),
        (DASHBOARD, "Failed to start the dashboard , return code 1"),
        (DASHBOARD_SAYS, "OSError: [Errno 28] No space left on device"),
        ("These programs failed:\n  one\n  two\n", "These programs failed: one"),
        (TRACEBACK, "FileNotFoundError: [Errno 2] No such file or directory: 'a'"),
        ("Warning: a\nerror: no such thing.\n", "error: no such thing"),
        ("error: broken\n: exit status 1\n>\n", "error: broken"),
        ("error: one\nerror: two\n", "error: one error: two"),
        ("\x1b[31mERROR\x1b[0m: red\n", "ERROR: red"),
        ("permission denied: socket\nsee the manual at https://a.example/\n", "permission denied: socket"),
        ("first\nlast\n", "last"),
        ("Warning: nothing else\n", ""),
        (" >\n", ""),
        ("", ""),
    ],
)
def test_the_reason_is_taken_from_the_output_whole_and_in_one_line(output: str, expected: str) -> None:
    assert error_in_output(output) == expected


def test_of_a_reason_that_is_too_long_both_ends_are_left() -> None:
    reason = error_in_output(f"error: {'x' * 2000} the end")
    assert len(reason) < 1000
    assert reason.startswith("error: x")
    assert " … x" in reason
    assert reason.endswith("x the end")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("It failed: no such host..", "It failed: no such host."),
        ("It failed: is it running?.", "It failed: is it running?"),
        ("Look into ../a, or wait ...", "Look into ../a, or wait ..."),
    ],
)
def test_a_sentence_that_ends_in_another_one_has_one_stop(what: str, message: str) -> None:
    assert str(TargetFailed(what)) == message
