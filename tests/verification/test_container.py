"""The containers of deploy/, built and started by the commands of docs/operations.md. `make container` runs it.

Podman and podman-compose stand in for Docker. Images of a registry are built here: the base from Debian's packages,
PostgreSQL with pgvector from the wheel, the proxy from Debian's Caddy.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as http
import pytest

from tests.stack import ROOT, sign_up
from tests.verification.podman import Podman

FOLDER = os.environ.get("CONTAINERS", "")  # images are stored there until it is removed
NEEDED = ("podman", "podman-compose", "runc", "debootstrap", "iptables")
MISSING = [name for name in NEEDED if shutil.which(name) is None]
PATIENCE_SECONDS = 600
SECRETS = ROOT / "deploy/container/secrets"
HERE = "http://127.0.0.1:8000"
SAID = "The vault opens at nine."
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="make container builds and starts images, which takes minutes"),
    pytest.mark.skipif(bool(FOLDER and MISSING), reason=f"not installed here: {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def built() -> Iterator[Podman]:
    podman = Podman(Path(FOLDER).resolve())
    podman.remove_containers()
    podman.make_base()
    podman.documented("docker build")
    podman.make_stand_ins()
    yield podman


@pytest.fixture
def podman(built: Podman) -> Iterator[Podman]:
    with built.health_checks():
        yield built
    built.remove_containers()


def parts_of(address: str, client: http.Client) -> dict[str, Any]:
    """Return the parts in /readyz, once every part is healthy."""
    end, said = time.monotonic() + PATIENCE_SECONDS, "nothing"
    while time.monotonic() < end:
        try:
            said = client.get(f"{address}/readyz").text
            if json.loads(said)["status"] == "ok":
                return dict(json.loads(said)["parts"])
        except (http.TransportError, ValueError) as error:
            said += f" ({error!r})"[:200]
        time.sleep(2)
    raise AssertionError(f"not ready after {PATIENCE_SECONDS} s, it says {said}")


def remember(client: http.Client) -> str:
    """Sign up and save a memory. Return the address of the workspace."""
    sign_up(client, "olga")
    workspace = client.get("/chat/api/workspaces").json()["items"][0]["id"]
    saved = client.post(f"/chat/api/workspaces/{workspace}/memories", json={"content": SAID})
    assert saved.status_code == 201, saved.text
    return f"/chat/api/workspaces/{workspace}"


def recalled(client: http.Client, workspace: str) -> list[str]:
    answer = client.post(f"{workspace}/recall", json={"query": "When does the vault open?"})
    return [memory["content"] for memory in answer.json()["memories"]]


def assert_unprivileged(podman: Podman, container: str) -> None:
    """Check that the first process is an ordinary user without capabilities, and the root is read-only."""
    status = podman("exec", container, "cat", "/proc/1/status")
    assert re.search(r"^Uid:\t10001\t10001\t10001\t10001$", status, re.MULTILINE)
    assert set(re.findall(r"^Cap\w+:\t(\w+)$", status, re.MULTILINE)) == {"0" * 16}
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    tried = podman("exec", container, "sh", "-c", "touch /opt/memoryhub/here 2>&1 || true")
    assert "Read-only file system" in tried


def stopped_in_order(podman: Podman, container: str) -> str:
    """Stop the container within the minute that compose grants. Return the end of its log."""
    podman("stop", "--time", "60", container)
    assert podman.inspect(container, "{{.State.ExitCode}}") == "0"
    said = podman("logs", container)
    assert said.splitlines()[-1] == "memoryhub | stopped"
    return said


def test_all_in_one_keeps_over_a_restart_what_it_was_told(podman: Podman) -> None:
    podman.documented("container/compose.yaml up", "--detach")
    container = "container_memoryhub_1"
    with http.Client(base_url=HERE, timeout=60, follow_redirects=True) as client:
        assert {"database", "worker", "model", "embedder"} <= parts_of(HERE, client).keys()
        assert_unprivileged(podman, container)
        podman("healthcheck", "run", container)
        workspace = remember(client)
        assert recalled(client, workspace) == [SAID]
        assert "database system is shut down" in stopped_in_order(podman, container)
        podman("start", container)
        parts_of(HERE, client)
        assert recalled(client, workspace) == [SAID]
        stopped_in_order(podman, container)


def test_one_line_starts_it_and_another_container_goes_on_with_what_is_in_the_volume(podman: Podman) -> None:
    workspace = ""
    with http.Client(base_url=HERE, timeout=60, follow_redirects=True) as client:
        for _ in range(2):
            podman.documented("docker run", "--detach", "--name=memoryhub")
            parts_of(HERE, client)
            workspace = workspace or remember(client)
            assert recalled(client, workspace) == [SAID]
            assert podman("exec", "memoryhub", "id", "-u") == "10001"
            tried = podman("exec", "memoryhub", "sh", "-c", "touch /opt/memoryhub/here 2>&1 || true")
            assert "Read-only file system" in tried
            stopped_in_order(podman, "memoryhub")
            podman("rm", "memoryhub")


def test_beside_a_postgres_of_its_own(podman: Podman) -> None:
    up = "container/compose.postgres.yaml up"
    podman.documented(up, "--detach", POSTGRES_PASSWORD="opens-sesame")
    container = "container_memoryhub_1"
    with http.Client(base_url=HERE, timeout=60, follow_redirects=True) as client:
        parts_of(HERE, client)
        assert_unprivileged(podman, container)
        workspace = remember(client)
        rows = "SELECT count(*) FROM memories_memory"
        postgres = ("exec", "container_postgres_1", "psql", "-tA", "-U", "memoryhub", "-c")
        assert podman(*postgres, rows) == "1", "it is kept there, and not in a database inside"
        stopped_in_order(podman, container)
        podman("restart", "container_postgres_1")
        podman("start", container)
        parts_of(HERE, client)
        assert recalled(client, workspace) == [SAID]


@pytest.fixture
def secrets() -> Iterator[None]:
    assert not SECRETS.exists(), f"somebody's: {SECRETS}"
    subprocess.run(["sh", "deploy/container/make-secrets.sh"], cwd=ROOT, check=True)
    yield
    shutil.rmtree(SECRETS)


@pytest.fixture
def model(podman: Podman) -> Iterator[dict[str, str]]:
    """The bundled model in a container that the others reach by name."""
    told = {"BASE_URL": "http://model:8081/v1", "MODEL": "smollm2-135m-instruct", "API_KEY": "of the model"}
    env = [f"--env=MEMORYHUB_LLM_{name}={value}" for name, value in told.items()]
    run = ("run", "--detach", "--name=model", "--network-alias=model", "--read-only", "--tmpfs=/tmp")
    part = ("up", "--only", "model", "--host", "0.0.0.0", "--port", "8081")
    podman("network", "create", "--label=com.docker.compose.project=container", "container_default")
    podman(*run, "--network=container_default", *env, "memoryhub", *part)
    yield {f"LLM_{name}": value for name, value in told.items()}


def test_hosts_behind_a_proxy_with_tls_and_a_replica(
    podman: Podman, model: dict[str, str], secrets: None, tmp_path: Path
) -> None:
    """Two web hosts, a worker, PostgreSQL and its replica; one web host stops without failed requests."""
    up = "container/compose.hosts.yaml up"
    podman.documented(up, "--detach", HUB_NAME="localhost", **model)
    of_caddy = "/data/caddy/pki/authorities/local/root.crt"
    deadline = time.monotonic() + 60
    while "root.crt" not in podman("exec", "container_proxy_1", "sh", "-c", f"ls {of_caddy} 2>&1 || true"):
        assert time.monotonic() < deadline, "Caddy made no certificate"
        time.sleep(1)
    trusted = ssl.create_default_context(cadata=podman("exec", "container_proxy_1", "cat", of_caddy))
    there = "https://localhost"
    client = http.Client(base_url=there, timeout=60, follow_redirects=True, verify=trusted)
    client.headers["Referer"] = f"{there}/"
    with client:
        assert parts_of(there, client)["replica 1"] == {"ok": True, "why": ""}
        for name in ("web_1", "web_2", "worker_1"):
            assert_unprivileged(podman, f"container_{name}")
            podman("healthcheck", "run", f"container_{name}")
        assert client.get("http://localhost/accounts/login/").url.scheme == "https"
        workspace = remember(client)
        brought = client.post(f"{workspace}/documents", files={"file": ("bins.txt", b"The bins go out.")})
        document = f"{workspace}/documents/{brought.json()['id']}"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while client.get(document).json()["status"] != "ready":
            assert time.monotonic() < deadline, "the worker reads what came in by the web host"
            time.sleep(1)
        replica = ("exec", "container_replica_1", "psql", "-tA", "-U", "memoryhub", "-c")
        assert podman(*replica, "SELECT pg_is_in_recovery(), count(*) FROM memories_memory") == "t|1"
        stopped_in_order(podman, "container_web_1")
        for _ in range(10):
            assert recalled(client, workspace) == [SAID]
        stopped_in_order(podman, "container_web_2")
        stopped_in_order(podman, "container_worker_1")
