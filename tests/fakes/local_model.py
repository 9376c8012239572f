"""The real embedded model server, for the tests that are about it."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryhub.local import model_server

START_SECONDS = 60


@contextmanager
def running_local_model(data_dir: Path, *, key: str = "") -> Iterator[Path]:
    """Runs the server for `data_dir` until the block ends; raises with its log where it does not start."""
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
        while not model_server.is_ready(port):
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
