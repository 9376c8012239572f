"""The whole product, in a network namespace, resolves no name, connects to nothing and writes only to its own folders.

onnxruntime sends its first events 14 and 20 seconds after it is loaded, so the product is watched for longer than that.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx2 as http
import psutil
import pytest

from memoryhub.local import model_server
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment, lend_to
from tests.stack import ROOT, prepared_in, sign_up
from tests.workspaces.documents.samples import SAMPLES

WATCHED_SECONDS = 30
CALLS = (
    "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat"
)
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
INTERNET = re.compile(r"sa_family=AF_INET6?, sin6?_port=htons\((\d+)\).*?\"([0-9a-f.:]+)\"")
LOOPBACK = re.compile(r"127\.|::1$|::ffff:127\.")
# MemoryHub's names, and those of Python's tempfile: of a file, and of its test of writing files.
OWN_TEMPORARY = re.compile(r"memoryhub-[^/]*(/|$)|(tmp)?[a-z0-9_]{8}(/|$)")
NAMED = re.compile(r"(?:AT_FDCWD<([^>]*)>, |\d+<([^>]*)>, )?\"([^\"]*)\"")
CLONE_NEWNET = 0x40000000


KEY = "sesame-of-the-model-that-comes-with-it"
MODEL = {
    "MEMORYHUB_LLM_BASE_URL": "http://127.0.0.1:8081/v1",
    "MEMORYHUB_LLM_MODEL": model_server.MODEL_NAME,
    "MEMORYHUB_LLM_API_KEY": KEY,
    "MEMORYHUB_LLM_CONTEXT_TOKENS": "2048",
    "MEMORYHUB_LLM_MAX_TOKENS": "100",
}


def why_not() -> str:
    missing = [each for each in ("unshare", "ip", "strace") if shutil.which(each) is None]
    if missing:
        return f"not installed here: {', '.join(missing)}"
    tried = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    return "no network namespace can be made here" if tried.returncode else ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


class Watched:
    """`manage.py up` with only a loopback device, and each of its processes traced."""

    def __init__(self, folder: Path) -> None:
        self.data, self.home, self.temporary = folder / "data", folder / "home", folder / "temporary"
        self.trace, self.said = folder / "trace", folder / "said"
        for each in (folder, self.data, self.home, self.temporary):
            each.mkdir(exist_ok=True)
            each.chmod(0o755)
        lend_to(self.data)
        prepared_in(self.data)
        # The built-in model as a separate server: runs refuse it otherwise, as it calls no tools.
        env = environment(self.data, **MODEL, PYTHONDONTWRITEBYTECODE="1")
        env |= {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "ORT_DISABLE_TELEMETRY"):
            env.pop(name, None)
        traced = f"strace -f -qq -y --seccomp-bpf -s 200 -e trace={CALLS} -o {self.trace}"
        model = f"{sys.executable} -m memoryhub.local.model_server --data-dir {self.data} --port 8081"
        model = f"{model_server.KEY_VARIABLE}={KEY} {model}"
        product = f"sh -c '{model} & exec {sys.executable} manage.py up --port 8000'"
        command = ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {traced} {product}"]
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        self._inside = ThreadPoolExecutor(max_workers=1)

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            said = self.said.read_text()
            assert self.process.poll() is None and "did not start" not in said, said[-3000:]
            return "MemoryHub is ready" in said

        wait_until(is_ready, "it is ready", pause=0.5)
        self._inside.submit(self._enter).result()

    def _enter(self) -> None:
        """Enter the product's network namespace, which applies to this thread."""
        with Path(f"/proc/{self.process.pid}/ns/net").open() as namespace:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())

    def inside(self, function: Callable[[], None]) -> None:
        self._inside.submit(function).result()

    def processes(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self) -> None:
        every = self.processes()
        try:
            for each in every:
                if each.ppid() == self.process.pid or "memoryhub.local.model_server" in each.cmdline():
                    each.send_signal(signal.SIGTERM)
            self.process.wait(60)
        finally:
            for each in every:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            self.process.kill()
            self.process.wait()
            self._inside.shutdown()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    product = Watched(tmp_path_factory.mktemp("watched"))
    try:
        product.wait_until_ready()
        began = time.monotonic()
        product.inside(use)
        time.sleep(max(0.0, WATCHED_SECONDS - (time.monotonic() - began)))
        yield product
    finally:
        if product.process.poll() is None:
            product.stop()


def use() -> None:
    """Chat, remember, recall, read a document, search and run."""
    person = http.Client(base_url="http://127.0.0.1:8000", timeout=120, follow_redirects=True)
    sign_up(person, "offline")
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    place = f"/chat/api/workspaces/{workspace}"
    chat = person.post("/chat/api/chats", json={"memory_enabled": True}).json()["id"]
    memory = {"content": "The office is in Lisbon"}
    saved = person.post(f"{place}/memories", json=memory)
    assert saved.status_code == 201, saved.text
    asked = person.post(f"/chat/api/{chat}/messages", json={"content": "Where is it?", "stream": False})
    assert asked.status_code == 201, asked.text
    assert person.post(f"{place}/recall", json={"query": "Where is the office?"}).json()["memories"]
    text = {"title": "Rules", "text": "Turn the oven off."}
    document = person.post(f"{place}/documents", json=text).json()["id"]
    reading = f"{place}/documents/{document}"
    wait_until(lambda: person.get(reading).json()["status"] == "ready", "it is read", pause=0.5)
    read_each_kind(person, place)
    assert person.post(f"{place}/search", json={"query": "oven"}).json()["results"]
    run = person.post(f"{place}/runs", json={"objective": "Say hello"})
    assert run.status_code == 202, run.text
    at_work = f"{place}/runs/{run.json()['id']}"
    wait_until(
        lambda: person.get(at_work).json()["status"] not in ("queued", "running"), "it ended", pause=0.5
    )


def read_each_kind(person: http.Client, place: str) -> None:
    """Upload a file for each library that reads documents."""
    samples = {name: content for name, (content, *_said) in SAMPLES.items()}
    samples["old.txt"] = "Die Schlüssel hängen in der Küche, sagt Jürgen. ".encode("latin-1") * 20
    documents = []
    for name, content in samples.items():
        made = person.post(f"{place}/documents", files={"file": (name, content)})
        assert made.status_code == 201, (name, made.text)
        documents.append((name, made.json()["id"]))
    for name, document in documents:
        one = f"{place}/documents/{document}"
        wait_until(
            lambda one=one: person.get(one).json()["status"] not in ("waiting", "reading", "indexing"),
            f"{name} is read",
            pause=0.5,
        )
        assert person.get(one).json()["status"] == "ready", name


def traced(product: Watched) -> Iterator[tuple[str, str]]:
    for line in product.trace.read_text(errors="replace").splitlines():
        if found := re.match(r"\d+\s+(\w+)\((.*)", line):
            yield found[1], found[2]


def test_no_name_is_looked_up_and_nothing_is_connected_to(watched: Watched) -> None:
    connected, elsewhere = set[str](), list[str]()
    for call, rest in traced(watched):
        for port, address in INTERNET.findall(rest):
            connected.add(port)
            if port == "53" or not LOOPBACK.match(address):
                elsewhere.append(f"{call}({rest}")
    assert connected, "calls were traced"
    assert elsewhere == []


def test_nothing_is_written_outside_of_the_data_folder(watched: Watched) -> None:
    names = ("PostgreSQL.", "sem.", "pym-", "memoryhub-")  # Postgres, multiprocessing, and this project
    shared = tuple(f"/dev/shm/{name}" for name in names)
    allowed = (f"{watched.data}/", f"{Path(sys.prefix).resolve()}/", "/dev/null", "/proc/", *shared)
    written, strange = 0, set[str]()
    for call, rest in traced(watched):
        if call in ("connect", "sendto", "sendmsg", "sendmmsg") or " = -1 " in rest:
            continue
        if call in ("open", "openat") and not WRITES.search(rest):
            continue
        for path in paths_in(rest):
            written += 1
            if not path.startswith("/") and (watched.data / "postgres" / path).parent.is_dir():
                continue  # Postgres works in its cluster
            if path.startswith(f"{watched.temporary}/"):
                if OWN_TEMPORARY.match(path.removeprefix(f"{watched.temporary}/")):
                    continue
            elif path.startswith(allowed) or path in (str(watched.data), str(watched.temporary)):
                continue
            strange.add(f"{call}: {path}")
    assert written > 100, "calls were traced"
    assert strange == set()
    assert list(watched.home.iterdir()) == []


def paths_in(rest: str) -> Iterator[str]:
    """Yield the absolute paths of a call; strace names the folder of a relative one."""
    for at_first, folder, path in NAMED.findall(rest):
        yield os.path.normpath(os.path.join(at_first or folder, path))
