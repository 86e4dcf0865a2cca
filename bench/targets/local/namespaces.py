"""Makes and removes network namespaces for nodes, joined by a bridge and optionally shaped, by `ip` and `tc`.

The bridge lies in a namespace of its own. In the host's it would be at the mercy of the host's packet filter: a
Docker engine drops what it does not know, bridged frames too.
"""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from filelock import FileLock

from bench.errors import TargetFailed, error_in_output
from bench.targets.link import shaping_command

HOST_OCTET = 254
_FOLDER = Path("/run/netns")
_TRIAL = (
    "ip link set lo up && ip link add left0 type veth peer name right0"
    " && ip link add br0 type bridge && ip link set right0 master br0"
)


def why_unavailable() -> str:
    """Why nodes cannot have namespaces here; empty if they can."""
    missing = [tool for tool in ("ip", "nsenter", "unshare") if not shutil.which(tool)]
    if missing:
        return f"{' and '.join(missing)} not found (packages iproute2 and util-linux)"
    # Being root is not enough: a container's root may not have the capability. A namespace that ends with its command tells.
    trial = _run(["unshare", "--net", "--mount", "sh", "-c", _TRIAL])
    if trial.returncode:
        return f"no right to make them: {_reason(trial)}"
    return ""


def free_subnet(taken: Iterable[str]) -> str:
    """The first free 10.231.X.0/24, outside the networks in `taken`. Raises TargetFailed."""
    networks = [ipaddress.ip_network(network, strict=False) for network in taken if "/0" not in network]
    for third in range(1, 255):
        subnet = ipaddress.ip_network(f"10.231.{third}.0/24")
        if not any(network.version == 4 and subnet.overlaps(network) for network in networks):
            return str(subnet)
    raise TargetFailed(
        "All of 10.231.1.0/24 to 10.231.254.0/24 are in use.", "End other deployments first: bench down."
    )


def address(subnet: str, index: int) -> str:
    """The address of node `index` in `subnet`."""
    return str(ipaddress.ip_network(subnet)[index + 1])


def taken() -> list[str]:
    """The networks to which this host has routes."""
    routes = json.loads(_must(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]")
    return [route["dst"] for route in routes if re.fullmatch(r"[\d./]+", route["dst"])]


def subnet_lock() -> FileLock:
    """The lock that a deployment holds from the choice of a subnet until the host has a route to it."""
    return FileLock("/run/raymeter-subnets.lock", timeout=30)


def names(deployment_id: str, nodes: int) -> tuple[str, ...]:
    """The namespaces of a deployment: those of its nodes, then that of the bridge."""
    return (*(node_name(deployment_id, index) for index in range(nodes)), f"rm-{deployment_id}-lan")


def node_name(deployment_id: str, index: int) -> str:
    """The namespace of node `index`."""
    return f"rm-{deployment_id}-n{index}"


def host_link(deployment_id: str) -> str:
    """The host's end of the link to the bridge; names of links have at most 15 characters."""
    return f"rm{deployment_id}"


def create_lan(deployment_id: str, subnet: str) -> None:
    """Make the bridge, in a namespace of its own, and the host's link to it."""
    lan, link = f"rm-{deployment_id}-lan", host_link(deployment_id)
    _must(["ip", "netns", "add", lan])
    _must(["ip", "link", "add", link, "type", "veth", "peer", "name", "host", "netns", lan])
    _must(["ip", "address", "add", f"{ipaddress.ip_network(subnet)[HOST_OCTET]}/24", "dev", link])
    _must(["ip", "link", "set", link, "up"])
    _batch(lan, ["link add br0 type bridge", "link set br0 up", "link set host master br0", "link set host up"])


def create_node(deployment_id: str, subnet: str, index: int, link_rate: str | None) -> None:
    """Make the namespace of one node, with its eth0 connected to the bridge."""
    lan, node = f"rm-{deployment_id}-lan", node_name(deployment_id, index)
    _must(["ip", "netns", "add", node])
    # IPv6 neighbour discovery would count as traffic of the benchmark.
    _must([*inside(node), "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 2>/dev/null || true"])
    _must(["ip", "-n", lan, "link", "add", f"n{index}", "type", "veth", "peer", "name", "eth0", "netns", node])
    _batch(lan, [f"link set n{index} master br0", f"link set n{index} up"])
    _batch(
        node,
        ["link set lo up", f"address add {address(subnet, index)}/24 dev eth0", "link set eth0 up"],
    )
    if link_rate:
        shape(node, link_rate)


def shape(namespace: str, link_rate: str) -> None:
    """Limit what eth0 of `namespace` sends to `link_rate`."""
    _must([*inside(namespace), *shaping_command(link_rate)])


def inside(namespace: str) -> tuple[str, ...]:
    """The words before a command that run it in `namespace`."""
    # Not `ip netns exec`: it mounts /sys anew, which hides the control groups.
    return ("nsenter", f"--net={_FOLDER / namespace}")


def existing(deployment_id: str, nodes: int) -> list[str]:
    """The namespaces and links of a deployment that exist."""
    remains = [f"namespace {name}" for name in names(deployment_id, nodes) if (_FOLDER / name).exists()]
    if Path("/sys/class/net", host_link(deployment_id)).exists():
        remains.append(f"link {host_link(deployment_id)}")
    return remains


def remove(deployment_id: str, nodes: int) -> None:
    """Remove a deployment's namespaces and links that exist."""
    if Path("/sys/class/net", host_link(deployment_id)).exists():
        _run(["ip", "link", "delete", host_link(deployment_id)])
    for name in names(deployment_id, nodes):
        path = _FOLDER / name
        if path.exists() and _run(["ip", "netns", "delete", name]).returncode:
            # `up` was killed between making the file and the mount: a plain file is left.
            path.unlink(missing_ok=True)


def _batch(namespace: str, commands: Sequence[str]) -> None:
    _must(["ip", "-n", namespace, "-batch", "-"], "\n".join(commands))


def _must(command: Sequence[str], text: str = "") -> str:
    done = _run(command, text)
    if done.returncode:
        raise TargetFailed(f"`{' '.join(command)}` failed: {_reason(done)}.", "Use --isolation loopback instead.")
    return done.stdout


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    return error_in_output(done.stderr) or f"exit code {done.returncode}"
