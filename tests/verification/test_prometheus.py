"""Debian's Prometheus scrapes a web process as documented, and evaluates every rule and every panel."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as http
import yaml

from memoryhub.local.stack import answers
from tests.memoryhub.local.processes import wait_until
from tests.stack import ROOT, Web, free_port, signed_up
from tests.test_deploy import DEPLOY, needs
from tests.verification.conftest import TOKEN, TURN_RATE, Hub

GRAFANA = DEPLOY / "prometheus/grafana.json"


@contextmanager
def prometheus(folder: Path, web: Web) -> Iterator[http.Client]:
    """Run Prometheus with the documented configuration. Yield a client of its HTTP API."""
    text = (ROOT / "docs/operations.md").read_text()
    told = re.search(r"```yaml\n(scrape_configs:.*?)```", text, re.DOTALL)
    assert told is not None
    written = told[1].replace("<the token>", TOKEN).replace("hub.example.org:8000", f"127.0.0.1:{web.port}")
    rules = {"rule_files": [str(DEPLOY / "prometheus/rules.yml")]}
    often = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(yaml.safe_load(written) | rules | often))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
    ]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=said, stderr=said
        )
    try:
        wait_until(partial(answers, "127.0.0.1", port, "/-/ready"), "it is there")
        with http.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=60) as client:
            yield client
    finally:
        process.terminate()
        process.wait(30)


def asked(client: http.Client, expression: str) -> list[Any]:
    answer = client.get("/query", params={"query": expression}).json()
    assert answer["status"] == "success", f"{expression}: {answer}"
    return list(answer["data"]["result"])


def panels() -> list[str]:
    """Return the query of each panel, with Grafana's variables replaced."""
    found = [
        target["expr"] for panel in json.loads(GRAFANA.read_text())["panels"] for target in panel["targets"]
    ]
    return [each.replace("$job", "memoryhub").replace("$__rate_interval", "1m") for each in found]


def some_of_everything(web: Web) -> None:
    """Create data for each panel."""
    person = signed_up(web, "olga")
    place = f"/chat/api/workspaces/{person.get('/chat/api/workspaces').json()['items'][0]['id']}"
    for content, status in (("Cats purr", 201), ("My password is hunter2sGreatSecret", 422)):
        assert person.post(f"{place}/memories", json={"content": content}).status_code == status
    assert person.post(f"{place}/recall", json={"query": "do cats purr?"}).status_code == 200
    chat = person.post("/chat/api/chats", json={}).json()["id"]
    for status in (*[201] * TURN_RATE, 429):
        said = person.post(f"/chat/api/{chat}/messages", json={"content": "Do cats purr?", "stream": False})
        assert said.status_code == status, said.text


@needs("prometheus")
def test_every_rule_is_evaluated_and_every_panel_draws(hub: Hub, tmp_path: Path) -> None:
    web = hub.web()
    some_of_everything(web)
    with prometheus(tmp_path, web) as client:
        wait_until(lambda: asked(client, 'up{job="memoryhub"} == 1'), "it scrapes")
        for expression in panels():
            wait_until(lambda: asked(client, expression), f"{expression} draws")  # noqa: B023  (at once)
        rules = client.get("/rules").json()["data"]["groups"][0]["rules"]
        assert {each["health"] for each in rules} == {"ok"}, rules
        assert {each["name"] for each in rules if each["state"] == "firing"} == set()
        assert len(rules) == (DEPLOY / "prometheus/rules.yml").read_text().count("- alert:")
        web.process.send_signal(signal.SIGSTOP)
        try:
            down = 'ALERTS{alertname="MemoryHubDown", alertstate="pending"}'
            wait_until(lambda: asked(client, down), "that it does not answer is noticed")
        finally:
            web.process.send_signal(signal.SIGCONT)
