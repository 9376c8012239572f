"""The embedded model's server, and how other processes find it."""

import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from memoryhub.llm.model_check import chat_model_trouble
from memoryhub.local.data_folder import make_data_folders
from memoryhub.local.model_server import (
    KEY_VARIABLE,
    MODEL_NAME,
    Endpoint,
    endpoint_file,
    free_port,
    main,
    read_endpoint,
    read_trouble,
    remove_endpoint,
    serve,
    write_endpoint,
)
from memoryhub.local.stack import answers
from tests.memoryhub.local.processes import wait_until

ENDPOINT = Endpoint("http://127.0.0.1:9/v1", "sesame", "a-model")


def test_what_is_written_is_found_by_its_owner_only(data_dir: Path) -> None:
    make_data_folders(data_dir)
    write_endpoint(data_dir, ENDPOINT)
    assert read_endpoint(data_dir) == ENDPOINT
    assert stat.S_IMODE(endpoint_file(data_dir).stat().st_mode) == 0o600
    write_endpoint(data_dir, ENDPOINT)
    assert [path.name for path in (data_dir / "run").iterdir()] == ["model-server.json"]


def test_where_nothing_sensible_is_written_there_is_no_endpoint(data_dir: Path) -> None:
    for content in (None, "", "{", "[]", '{"base_url": "x"}'):
        make_data_folders(data_dir)
        if content is not None:
            endpoint_file(data_dir).write_text(content)
        assert read_endpoint(data_dir) is None, content


def test_a_removed_endpoint_is_gone_and_can_be_removed_again(data_dir: Path) -> None:
    make_data_folders(data_dir)
    write_endpoint(data_dir, ENDPOINT)
    remove_endpoint(data_dir)
    remove_endpoint(data_dir)
    assert read_endpoint(data_dir) is None


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A running model server with the key `sesame`."""
    found = free_port()
    command = [sys.executable, "-m", "memoryhub.local.model_server", "--data-dir", "/nowhere"]
    with subprocess.Popen(
        [*command, "--port", str(found)], env={**os.environ, KEY_VARIABLE: "sesame"}
    ) as process:
        wait_until(lambda: answers("127.0.0.1", found, "/health"), "the model is loaded")
        yield found
        process.kill()


def ask(port: int, path: str, key: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
    request.add_header("Authorization", f"Bearer {key}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        found: dict[str, object] = json.load(answer)
        return found


@pytest.mark.local_model
def test_it_answers_who_has_the_key(port: int) -> None:
    body = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "Say hi"}], "max_tokens": 3}
    assert ask(port, "/v1/chat/completions", "sesame", body)["model"] == MODEL_NAME


@pytest.mark.local_model
def test_it_answers_nobody_else(port: int) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(port, "/v1/models", "open")


def test_without_a_key_it_does_not_start() -> None:
    environment = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    command = [sys.executable, "-m", "memoryhub.local.model_server", "--data-dir", "/nowhere", "--port", "1"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert KEY_VARIABLE in ended.stderr


def test_without_its_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "xllamacpp", None
    )  # importing it raises ImportError, as on a bare Debian
    with pytest.raises(SystemExit, match="apt-get install libgomp1"):
        serve("127.0.0.1", 1, "sesame")


def test_why_it_cannot_be_served_is_known_to_other_processes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Without this the start reported "ready", nothing answered, and /readyz reported "still starting" for ever."""
    make_data_folders(data_dir)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv(KEY_VARIABLE, "sesame")
    monkeypatch.setattr(sys, "argv", ["model_server", "--data-dir", str(data_dir), "--port", "1"])
    with pytest.raises(SystemExit):
        main()
    assert "apt-get install libgomp1" in read_trouble(data_dir)
    settings.DATA_DIR, settings.EMBEDDED_MODEL, settings.LLM_BASE_URL = data_dir, True, None
    assert chat_model_trouble() == "the built-in one cannot be loaded"
