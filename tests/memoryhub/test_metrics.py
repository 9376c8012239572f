"""Metrics for Prometheus: contents, permissions, and sums over processes."""

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memoryhub.http import health as metrics_page
from tests.conftest import Cast
from tests.factories import make_memory
from workspaces.models import AuditEvent

pytestmark = pytest.mark.django_db
TOKEN = "a token of some length"


@pytest.fixture
def token(settings: Any) -> str:
    settings.METRICS_TOKEN = TOKEN
    return TOKEN


def scrape(token: str) -> str:
    response = Client().get("/metrics", headers={"authorization": f"Bearer {token}"})
    assert response.status_code == 200
    return response.content.decode()


def value(text: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_without_a_token_set_there_is_nothing(settings: Any) -> None:
    settings.METRICS_TOKEN = ""
    for header in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer x"}):
        assert Client().get("/metrics", headers=header).status_code == 404


def test_only_the_token_opens_it(token: str) -> None:
    for header in ("", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"):
        response = Client().get("/metrics", headers={"authorization": header} if header else {})
        assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer"), header
        assert b"memoryhub_" not in response.content, header


def test_when_the_last_backup_was_made_is_told(token: str) -> None:
    series = "memoryhub_last_backup_timestamp_seconds"
    assert f"{series} 0.0" in scrape(token)
    for days in (2, 1):
        at = timezone.now() - timedelta(days=days)
        AuditEvent.objects.create(verb="backup_made", at=at)
    assert value(scrape(token), series) == pytest.approx(at.timestamp(), abs=1)


def test_requests_are_counted_by_route_not_by_address(token: str, cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    series = 'memoryhub_requests_total{method="GET",route="workspaces:settings",status="200"}'
    before = value(scrape(token), series)
    client.get(f"/workspaces/{cast.workspace.public_id}/settings/")
    client.get(f"/workspaces/{cast.workspace.public_id}/settings/")
    Client().get("/nowhere/kumquat/")
    Client().generic("KUMQUAT", "/accounts/login/")
    text = scrape(token)
    assert value(text, series) == before + 2
    assert 'memoryhub_request_seconds_bucket{le="0.5",route="workspaces:settings"}' in text
    assert 'route="none",status="404"' in text
    assert cast.workspace.public_id not in text and "kumquat" not in text.lower()


def test_the_state_of_queue_and_tables_is_read_at_the_scrape(token: str, cast: Cast) -> None:
    make_memory("The deadline is March 15", cast.owner)
    text = scrape(token)
    assert value(text, "memoryhub_memories") == 1
    for name in ("memoryhub_queue_jobs", "memoryhub_queue_oldest_seconds", "memoryhub_failed_jobs"):
        assert re.search(rf"^{name} \d", text, re.MULTILINE), name


def test_while_the_database_is_away_counters_are_still_served(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert value(scrape(token), "memoryhub_database_up") == 1
    monkeypatch.setattr(metrics_page, "probe_state", lambda alias: None)
    monkeypatch.setattr(metrics_page, "primary_is_away", lambda *, failed: True)
    text = scrape(token)
    assert "memoryhub_database_up 0.0" in text
    assert "memoryhub_requests_total" in text and "memoryhub_memories " not in text


COUNT = "from memoryhub.monitoring import metrics; metrics.THROTTLED.labels('turns').inc(2)"
READ = "from memoryhub.http import health; health._state.collect = list; print(health.exposition().decode())"


def test_processes_add_up(tmp_path: Path) -> None:
    import os

    env = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNT], env=env, check=True)
    done = subprocess.run([sys.executable, "-c", READ], env=env, check=True, capture_output=True, text=True)
    assert value(done.stdout, 'memoryhub_throttled_total{limit="turns"}') == 4
