"""Hosts on one machine: each a network namespace on a bridge, with a view of the files that has no other host's.

All of them, the bridge and the caller live in namespaces of their own (network, mounts, processes), which end with
their first process: the machine's own addresses, routes and mounts are never touched, and nothing stays, however it
ends. Linux, root, util-linux and iproute2; a container needs the capability to administrate (CAP_SYS_ADMIN) and veth
devices.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep

from memoryhub.local.run_with_parent import launch_command

NETWORK, CALLER = "10.77.0.0/24", "10.77.0.1"
NEEDS = {"ip": "iproute2", "unshare": "util-linux", "mount": "mount"}
# Its own folder stays at its path, the other hosts' folders are hidden, and the shared folder is mounted again.
VIEW = """
set -e
root=$1 own=$2 shared=$3; shift 3
mount -t tmpfs tmpfs /mnt
mkdir /mnt/own /mnt/shared
mount --bind "$own" /mnt/own
mount --bind "$shared" /mnt/shared
mount -t tmpfs tmpfs "$root"
mkdir "$own" "$shared"
mount --move /mnt/own "$own"
mount --move /mnt/shared "$shared"
umount /mnt
exec "$@"
"""


def what_is_missing(*more: str) -> str:
    """Return why namespaces cannot be used here, or an empty string. ``more``: further programs needed."""
    if os.getuid() != 0:
        return "Namespaces and bridges are root's to make: run it as root."
    packages = NEEDS | {name: name for name in more}
    missing = [package for program, package in packages.items() if which(program) is None]
    return f"apt-get install {' '.join(missing)}" if missing else ""


def which(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def apart(command: Sequence[str]) -> int:
    """Run the command as the first process of new namespaces and return its status. It dies with this process."""
    alone = [
        which("unshare") or "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        *command,
    ]
    process = subprocess.Popen(launch_command(alone, death_signal=signal.SIGKILL))
    try:
        while True:
            with suppress(KeyboardInterrupt):  # the child receives Ctrl-C as well
                return process.wait()
    finally:
        process.kill()
        process.wait()


class Network:
    """A bridge, and hosts by name. Created inside ``apart``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared = folder, folder / "shared"
        self.shared.mkdir()
        self.hosts: list[Host] = []
        Path("/run/netns").mkdir(exist_ok=True)
        _run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")  # network names that only this process sees
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "hosts", "type", "bridge")
        _run("ip", "addr", "add", f"{CALLER}/24", "dev", "hosts")
        _run("ip", "link", "set", "hosts", "up")

    def host(self, name: str) -> Host:
        host = Host(self, name, f"10.77.0.{len(self.hosts) + 10}")
        self.hosts.append(host)
        return host


class Host:
    def __init__(self, network: Network, name: str, address: str) -> None:
        self.network, self.name, self.address = network, name, address
        self.folder = network.folder / name
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.said = self.folder / "said"
        self.process: subprocess.Popen[bytes] | None = None
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", f"to-{name}", "master", "hosts", "up")
        for words in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            _run("ip", "-n", name, *words.split())

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return the command as this host runs it. It keeps its process id: each step executes the next."""
        view = [str(each) for each in (self.network.folder, self.folder, self.network.shared)]
        return [
            which("ip") or "ip",
            "netns",
            "exec",
            self.name,
            "unshare",
            "--mount",
            "sh",
            "-c",
            VIEW,
            "sh",
            *view,
            *command,
        ]

    def start(self, *command: str, env: Mapping[str, str], code: Path) -> None:
        """Start the command in the background, with its output in ``said``."""
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                self.inside(command), cwd=code, env=env, stdout=output, stderr=output, start_new_session=True
            )

    def stop(self) -> None:
        """Stop it by SIGTERM, as an operator would."""
        assert self.process is not None, "it runs"
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def kill(self) -> None:
        """Send SIGKILL to every process of the host, as if the machine failed."""
        while pids := _run("ip", "netns", "pids", self.name).split():
            for pid in map(int, pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            sleep(0.02)
        if self.process is not None:
            self.process.wait()

    def sees(self) -> list[str]:
        """List the folder of all hosts from this host's view."""
        return _run(*self.inside(["ls", str(self.network.folder)])).split()


def _run(*command: str) -> str:
    done = subprocess.run([which(command[0]) or command[0], *command[1:]], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}. Namespaces cannot be made here.")
    return done.stdout
