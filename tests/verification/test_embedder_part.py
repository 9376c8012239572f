"""The bundled embedder as a separate part: `up --only embedder`, and web and worker that use it."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from memories.recalling.recall import recall
from memoryhub.llm.bundled_embedder import TwoEncoders
from memoryhub.llm.embedder_server import MOST_BYTES
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.model_check import embedder_trouble
from memoryhub.llm.openai_compatible import EMBEDDING_BATCH, BundledElsewhere
from memoryhub.llm.registry import get_embedder
from tests.conftest import Cast
from tests.factories import HERE, make_memory
from tests.memoryhub.local.processes import is_running, wait_until
from tests.migrated import environment
from tests.stack import ROOT, free_port
from workspaces.index import reembedding
from workspaces.index.embedding import active_model
from workspaces.models import EmbeddingModel, PassageVector

KEY = "sesame of all hosts"
SAID = [
    "The office is in Lisbon",
    "Ich habe früher Klavier gespielt",
    "小白是王芳的猫。",
    "My dog is called Rufus",
]


@dataclass
class Part:
    port: int
    process: subprocess.Popen[bytes]
    said: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def server(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return next(each for each in children if "memoryhub.llm.embedder_server" in each.cmdline())


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Part]:
    """The part started as the docs say, without a database."""
    folder, port = tmp_path_factory.mktemp("embedder"), free_port()
    own = {"MEMORYHUB_EMBEDDING_API_KEY": KEY, "DATABASE_URL": "postgres://nobody@/none"}
    said = folder / "said"
    with said.open("wb") as output:
        command = [sys.executable, "manage.py", "up", "--only", "embedder", "--host", "127.0.0.1"]
        command += ["--port", str(port)]
        env = environment(folder / "data", **own)
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
    found = Part(port, process, said)
    try:
        wait_until(lambda: _is_ready(found), "the embedder is ready")
        server = found.server()
        yield found
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert said.read_text().splitlines()[-1].endswith("| stopped")
        assert not is_running(server)
    finally:
        process.kill()
        process.wait()


def _is_ready(part: Part) -> bool:
    assert part.process.poll() is None, part.said.read_text()[-3000:]
    return "MemoryHub is ready: embedder" in part.said.read_text()


@pytest.fixture
def named(part: Part, settings: Settings) -> Part:
    """The part, named in the settings of web and worker."""
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_MODEL = part.url, TwoEncoders.name
    settings.EMBEDDING_API_KEY = KEY
    return part


def asked(part: Part, path: str, body: bytes | None = None, key: str = KEY) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{part.port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.django_db
def test_its_vectors_are_those_of_the_embedder_in_this_process(named: Part) -> None:
    here, there = TwoEncoders(), get_embedder()
    assert isinstance(there, BundledElsewhere) and there.name == here.name
    many = [f"{text} ({number})" for number in range(20) for text in SAID]
    parts = (
        many[:EMBEDDING_BATCH],
        many[EMBEDDING_BATCH:],
    )  # as sent; other texts of a batch change a vector a little
    np.testing.assert_allclose(there.embed(many), np.concatenate([*map(here.embed, parts)]), atol=1e-6)
    question = ["Where does our office lie?", "office lie"]
    np.testing.assert_allclose(there.embed_question(question), here.embed_question(question), atol=1e-6)
    assert not np.allclose(there.embed(question), there.embed_question(question), atol=1e-2)
    assert there.embed([]).shape == (0, 0)


def test_only_who_has_the_key_is_answered_and_it_listens_on_this_machine_alone(part: Part) -> None:
    assert asked(part, "/health", key="")[0] == 200
    body = json.dumps({"model": TwoEncoders.name, "input": "a"}).encode()
    for key in ("", "another", f"{KEY}s", KEY[:-1], KEY.upper()):
        assert asked(part, "/v1/models", key=key)[0] == 401
        assert asked(part, "/v1/embeddings", body, key=key)[0] == 401
    assert asked(part, "/v1/models")[1]["data"][0]["id"] == TwoEncoders.name
    assert asked(part, "/v1/embeddings", body)[0] == 200
    with pytest.raises(EmbedderError):
        BundledElsewhere(Endpoint(part.url, "another", TwoEncoders.name)).embed(["a"])
    server = part.server()
    assert {each.laddr.ip for each in server.net_connections() if each.status == "LISTEN"} == {"127.0.0.1"}
    assert KEY not in " ".join(server.cmdline())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400), (b"[]", 400), (b"{", 400), (b"[" * 100_000, 400), (b"\xff", 400),
        ({"input": []}, 400), ({"input": [1]}, 400), ({"input": None}, 400), ({"input": ["a"] * 513}, 400),
        ({"input_type": "poem"}, 400), ({"input_type": ["query"]}, 400), ({"encoding_format": "base64"}, 400),
        ({"model": "another"}, 404), ({"model": ["minilm"]}, 404), ({"input": "a" * MOST_BYTES}, 413),
        ({"input": "\ud800 is half a sign"}, 200), ({"input": ["", "a"]}, 200), ({"input_type": "query"}, 200),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_a_sentence(
    part: Part, body: bytes | dict[str, Any], status: int
) -> None:
    if isinstance(body, dict):
        body = json.dumps({"model": TwoEncoders.name, "input": "a"} | body).encode()
    found, said = asked(part, "/v1/embeddings", body)
    assert found == status, said
    assert ("data" in said) if status == 200 else said["error"]["message"]


@pytest.mark.django_db(transaction=True)
def test_an_installation_goes_over_to_it_without_building_anything_anew(
    part: Part, cast: Cast, settings: Settings
) -> None:
    for text in SAID:
        make_memory(text, cast.editor, cast.workspace)
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_MODEL = part.url, TwoEncoders.name
    settings.EMBEDDING_API_KEY = KEY
    assert embedder_trouble() == ""
    assert reembedding.notice_settings() is None
    active = EmbeddingModel.objects.get()
    assert (active.label, active.base_url, active_model()) == (TwoEncoders.name, part.url, TwoEncoders.name)
    make_memory("Our deadline is in March", cast.editor, cast.workspace)
    assert PassageVector.objects.filter(model=TwoEncoders.name).count() == len(SAID) + 1
    for question, answer in (
        ("Where is the office?", SAID[0]),
        ("When is the deadline?", "Our deadline is in March"),
    ):
        found = recall(question, cast.workspace, cast.editor, policy=HERE, now=timezone.now())
        assert found.degraded == "" and found.items[0].memory.content == answer
        assert found.items[0].relevance is not None, "the head knows this space"
    settings.EMBEDDING_BASE_URL, settings.EMBEDDING_MODEL = None, ""
    assert reembedding.notice_settings() is None and EmbeddingModel.objects.get().base_url == ""


@pytest.mark.django_db(transaction=True)
def test_what_stays_on_this_machine_is_not_sent_to_one_elsewhere(
    named: Part, cast: Cast, settings: Settings
) -> None:
    cast.workspace.local_only = True
    cast.workspace.save()
    make_memory(SAID[0], cast.editor, cast.workspace)
    assert (
        recall("Where is the office?", cast.workspace, cast.editor, policy=HERE, now=timezone.now()).degraded
        == ""
    )
    settings.EMBEDDING_LOCAL = False
    found = recall("Where is the office?", cast.workspace, cast.editor, policy=HERE, now=timezone.now())
    assert "another machine" in found.degraded
