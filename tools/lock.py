"""Renews uv.lock after a change of the dependencies, with the same build of PyTorch: `task lock`.

PyTorch's own index is not asked: a stand-in serves what uv.lock has of it, so that this works where only the package index is
reached. A new version of PyTorch takes `uv lock --upgrade-package torch`, where its index is reached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer

from bench.errors import BadInput
from bench.record import store
from tools import command_line

ROOT = Path(__file__).resolve().parent.parent
INDEX = "https://download.pytorch.org/whl/cpu"
LOCK = "uv.lock"

Options = Annotated[list[str] | None, typer.Argument(help="Options of `uv lock`.", show_default=False)]


def command(options: Options = None) -> None:
    """Renew uv.lock, with PyTorch as it is."""
    lock = (ROOT / LOCK).read_text()
    with stand_in(pages(lock)) as address, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copy(ROOT / "README.md", folder)
        shutil.copy(ROOT / "LICENSE", folder)
        (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text().replace(INDEX, address))
        (folder / LOCK).write_text(lock.replace(INDEX, address))
        done = subprocess.run([Path(sys.executable).with_name("uv"), "lock", *(options or [])], cwd=folder, check=False)
        if done.returncode:
            raise BadInput("uv found no versions that fit together.", "Change the dependencies in pyproject.toml.")
        store.write_whole(ROOT / LOCK, (folder / LOCK).read_bytes().replace(address.encode(), INDEX.encode()))


def pages(lock: str) -> dict[str, str]:
    """What the stand-in serves, by path: the list of PyTorch's wheels in `lock`, and the metadata of each."""
    packages = tomllib.loads(lock)["package"]
    wheels = [
        (wheel["url"].removeprefix(INDEX), wheel["hash"].replace(":", "="))
        for package in packages
        if package["source"].get("registry") == INDEX
        for wheel in package["wheels"]
    ]
    metadata = distribution("torch").read_text("METADATA") or ""
    version = next(package["version"] for package in packages if package["source"].get("registry") == INDEX)
    listed = "\n".join(
        f'<a href="/whl/cpu{path}#{digest}" data-core-metadata="true">{unquote(path.rpartition("/")[2])}</a>'
        for path, digest in wheels
    )
    ours = re.sub("^Version: .*$", f"Version: {version}", metadata, count=1, flags=re.MULTILINE)
    return {"/whl/cpu/torch": listed, **{f"/whl/cpu{path}.metadata": ours for path, _ in wheels}}


@contextmanager
def stand_in(content: dict[str, str]) -> Iterator[str]:
    """An index of packages on this machine that serves `content`; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content.get(self.path.rstrip("/"))
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/plain" if self.path.endswith(".metadata") else "text/html")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/whl/cpu"
        finally:
            server.shutdown()


if __name__ == "__main__":
    command_line.run(command)
