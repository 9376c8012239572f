"""The examples in docs/api.md, run unchanged against a live server and a scripted model."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from memories.models import Memory
from tests.factories import make_key_text, make_user
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from workspaces.models import User

DOCS = (Path(__file__).parent.parent / "docs" / "api.md").read_text()
ADDRESS = "http://127.0.0.1:8000"
# A browser's part for the JavaScript example: relative addresses, the cookie jar, and a session.
BROWSER = """
const base = "%s", jar = {};
const ask = async (path, options = {}) => {
  const headers = { ...options.headers, cookie: Object.entries(jar).map((pair) => pair.join("=")).join("; ") };
  const answer = await realFetch(base + path, { redirect: "manual", ...options, headers });
  for (const cookie of answer.headers.getSetCookie()) {
    const [name, value] = cookie.split(";")[0].split("=");
    jar[name] = value;
  }
  return answer;
};
const realFetch = globalThis.fetch;
await ask("/accounts/login/");
const form = { login: "maria", password: "correct horse battery", csrfmiddlewaretoken: jar.csrftoken };
await ask("/accounts/login/", { method: "POST", body: new URLSearchParams(form) });
globalThis.fetch = ask;
globalThis.document = { cookie: `csrftoken=${jar.csrftoken}` };
"""


@pytest.fixture
def server(transactional_db: None, live_server: LiveServer, scripted_model: ScriptedOpenAI) -> str:
    make_user("maria")
    scripted_model.respond = lambda request: Answer("It is due on ", "March 15.")
    return live_server.url


def example(language: str, under: str = "## From sign-in to recall") -> str:
    """Return the first example in this language below the heading."""
    match = re.search(rf"{under}\n.*?```{language}\n(.*?)```", DOCS, re.DOTALL)
    assert match, language
    return match[1]


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def remembered() -> list[tuple[str, str]]:
    return list(Memory.objects.values_list("content", "source_type"))


FACT = "The project deadline is March 15, 2026"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_curl_example(server: str, tmp_path: Path) -> None:
    script = "set -eu\n" + example("sh").replace(ADDRESS, server)
    printed = run(["bash", "-c", script], tmp_path)
    assert '"duplicate":false' in printed
    assert 'event: token\ndata: {"text": ' in printed
    assert '"content": "It is due on March 15."' in printed
    assert '"score_parts":' in printed
    assert remembered() == [(FACT, "user")]


def test_the_python_example(server: str, tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", example("python").replace(ADDRESS, server)], tmp_path)
    assert printed.startswith("It is due on March 15.")
    assert printed.endswith(f" {FACT}\n")
    assert remembered() == [(FACT, "user")]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_javascript_example(server: str, tmp_path: Path) -> None:
    script = tmp_path / "example.mjs"
    script.write_text(BROWSER % server + example("js"))
    printed = run(["node", str(script)], tmp_path)
    assert "It is due on March 15." in printed
    assert FACT in printed
    assert remembered() == [(FACT, "user")]


def with_key(text: str, server: str) -> str:
    key = make_key_text(User.objects.get(username="maria"))
    return text.replace(ADDRESS, server).replace("mh_your_key", key)


def test_the_python_example_of_nodes_and_files(server: str, tmp_path: Path) -> None:
    script = with_key(example("python", "### Nodes and files, in Python"), server)
    assert run([sys.executable, "-c", script], tmp_path) == "Apollo 1 Launch in spring\n"


TWICE = "## Retrying safely, two editors, search"
LAUNCH = "The launch is on April 9, 2026"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_curl_example_of_two_editors(server: str, tmp_path: Path) -> None:
    printed = run(["bash", "-c", "set -eu\n" + with_key(example("sh", TWICE), server)], tmp_path)
    assert '"code":"stale"' in printed
    assert f'"type":"memory","id":"{Memory.objects.get().public_id}","text":"{LAUNCH}"' in printed
    assert remembered() == [(LAUNCH, "user")]


def test_the_python_example_of_two_editors(server: str, tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", with_key(example("python", TWICE), server)], tmp_path)
    assert printed == f"409 stale\nmemory {LAUNCH}\n"
    assert remembered() == [(LAUNCH, "user")]


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_javascript_example_of_two_editors(server: str, tmp_path: Path) -> None:
    script = tmp_path / "example.mjs"
    script.write_text(with_key(example("js", TWICE), server))
    printed = run(["node", str(script)], tmp_path)
    assert "409 stale" in printed
    assert LAUNCH in printed
    assert remembered() == [(LAUNCH, "user")]
