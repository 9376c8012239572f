"""The real embedded model server, for tests of it."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryhub.local import large_model_download, model_server
from memoryhub.local.stack import answers
from tests.memoryhub.local.processes import wait_until

START_SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
LARGE_MODEL = Path(os.environ.get("LARGE_MODEL", large_model_download.model_file(ROOT / "var")))
NEEDS_LARGE_MODEL = pytest.mark.skipif(
    not LARGE_MODEL.is_file() or LARGE_MODEL.stat().st_size != large_model_download.SIZE,
    reason="the larger model is not here: manage.py fetch_model downloads it, LARGE_MODEL names its file",
)


@contextmanager
def running_local_model(data_dir: Path, *, key: str = "") -> Iterator[Path]:
    """Run the server for `data_dir` until the block ends; raise with its log if it does not start."""
    port, key = model_server.free_port(), key or secrets.token_urlsafe()
    log = data_dir / "model-server.log"
    (data_dir / "run").mkdir(exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "memoryhub.local.model_server",
                f"--data-dir={data_dir}",
                f"--port={port}",
            ],
            env={**os.environ, model_server.KEY_VARIABLE: key},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers(model_server.LOOPBACK, port, "/health"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The embedded model server did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.05)
        base_url = f"http://{model_server.LOOPBACK}:{port}/v1"
        model_server.write_endpoint(data_dir, model_server.Endpoint(base_url, key, model_server.MODEL_NAME))
        yield data_dir
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running_large_model(data_dir: Path) -> Iterator[None]:
    """Run the real larger model with its real file, as the supervisor does."""
    (data_dir / "run").mkdir(exist_ok=True)
    large_model_download.folder(data_dir).mkdir()
    large_model_download.model_file(data_dir).symlink_to(LARGE_MODEL.resolve())
    port = model_server.free_port()
    command = [sys.executable, "-m", "memoryhub.local.model_server", "--large", "--anyway"]
    with subprocess.Popen(
        [*command, "--data-dir", str(data_dir), "--port", str(port)],
        env={**os.environ, model_server.KEY_VARIABLE: "sesame"},
    ) as process:
        try:
            wait_until(lambda: answers(model_server.LOOPBACK, port, "/health"), "the larger model is loaded")
            endpoint = model_server.Endpoint(
                f"http://127.0.0.1:{port}/v1", "sesame", large_model_download.NAME
            )
            model_server.write_endpoint(data_dir, endpoint, model_server.LARGE)
            yield
        finally:
            process.kill()
