"""Set-up's first step, in words that any Python understands: find a Python that is new enough, then make .venv."""

from __future__ import print_function

import os
import sys

OLDEST = (3, 11)
NEWER = ("python3.13", "python3.12", "python3.11", "python3.14")


def is_new_enough(command):
    """Whether there is such a command, and it is a Python that will do."""
    import subprocess

    try:
        with open(os.devnull, "w") as nowhere:
            return not subprocess.call(
                [command, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], stdout=nowhere, stderr=nowhere
            )
    except OSError:
        return False


if sys.version_info < OLDEST:
    for newer in NEWER:
        if is_new_enough(newer):
            os.execvp(newer, [newer] + sys.argv)
    print(
        "setup: {0} is Python {1}.{2}, and raymeter needs 3.11 or newer. Install one, then name it: "
        "task PYTHON=/path/to/python3.11 setup".format(sys.executable, *sys.version_info[:2]),
        file=sys.stderr,
    )
    sys.exit(1)

import environment  # noqa: E402  # its syntax is too new for the Python that is refused above

sys.exit(environment.main())
