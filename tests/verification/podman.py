"""Podman with separate storage, which runs the commands of docs/operations.md."""

import os
import re
import resource
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.documented import documented
from tests.stack import ROOT

BASE = re.search(r"^ARG BASE=(\S+)$", (ROOT / "deploy/container/Dockerfile").read_text(), re.MULTILINE)
STAND_INS = Path(__file__).parent / "stand_ins"
# With runc, which also starts containers inside another one, and without limits above those of the current user.
CONTAINERS = """
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/run"
volume_path = "{folder}/volumes"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
STORAGE = """
[storage]
driver = "overlay"
runroot = "{folder}/run/storage"
graphroot = "{folder}/storage"
"""


class Podman:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        files = min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        (folder / "containers.conf").write_text(CONTAINERS.format(folder=folder, files=files))
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        self.env = os.environ | {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "BUILDAH_FORMAT": "docker",  # Podman's own format has no health check
        }

    def __call__(self, *words: str, **env: str) -> str:
        return self._run(["podman", *words], env)

    def documented(self, command: str, *more: str, **env: str) -> str:
        """Run a documented command. ``env`` sets the reader's values; ``more`` are further options."""
        words = documented(command)
        if words[:2] == ["docker", "compose"]:
            words[:2] = ["podman-compose"]
            return self._run([*words, *more], env)
        return self._run(["podman", words[1], *more, *words[2:]], env)  # the command follows the image

    def _run(self, command: list[str], env: dict[str, str]) -> str:
        done = subprocess.run(command, cwd=ROOT, env=self.env | env, capture_output=True, text=True)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout.strip()

    def inspect(self, container: str, what: str) -> str:
        return self("inspect", "--format", what, container)

    def make_base(self) -> None:
        """Build the Dockerfile's base image from Debian's packages, unless it exists."""
        assert BASE is not None
        image, release = BASE[1], BASE[1].rpartition(":")[2].removesuffix("-slim")
        if image in self("images", "--format", "{{.Repository}}:{{.Tag}}"):
            return
        base = self.folder / "base"
        subprocess.run(["debootstrap", "--variant=minbase", release, base], check=True, capture_output=True)
        if bundle := os.environ.get("PIP_CERT"):  # registries are behind a proxy with its own certificate
            shutil.copy(bundle, base / "etc/certificates-here.crt")
            (base / "etc/pip.conf").write_text("[global]\ncert = /etc/certificates-here.crt\n")
        subprocess.run(["tar", "-C", base, "-cf", self.folder / "base.tar", "."], check=True)
        self("import", str(self.folder / "base.tar"), image)
        shutil.rmtree(base)
        (self.folder / "base.tar").unlink()

    def make_stand_ins(self) -> None:
        for name, image in (
            ("postgres", "docker.io/pgvector/pgvector:pg18"),
            ("proxy", "docker.io/library/caddy:2"),
        ):
            file = str(STAND_INS / f"{name}.Containerfile")
            self("build", "--file", file, "--tag", image, str(STAND_INS))

    def remove_containers(self) -> None:
        self("pod", "rm", "--all", "--force", "--time", "2")
        self("rm", "--all", "--force", "--time", "2")
        self("volume", "prune", "--force")
        self("network", "prune", "--force")

    @contextmanager
    def health_checks(self) -> Iterator[None]:
        """Run health checks, which Podman leaves to systemd's timers."""
        over = Event()

        def check() -> None:
            while not over.wait(5):
                for container in self("ps", "--quiet").split():
                    command = ["podman", "healthcheck", "run", container]
                    subprocess.run(command, env=self.env, capture_output=True)

        thread = Thread(target=check)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
