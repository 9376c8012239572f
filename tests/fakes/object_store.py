"""An S3-compatible store in a process of its own (moto), and a client of it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from tests.stack import free_port

KEY, SECRET = "one", "two"


@contextmanager
def running_store() -> Iterator[str]:
    """Run the store. Yield its address."""
    port = free_port()
    command = [
        sys.executable,
        "-c",
        "from moto.server import main; main()",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "the store did not come up"
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def empty_bucket(address: str, bucket: str) -> Any:
    """Create an empty bucket. Return a client of the store."""
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=bucket)
    for key in keys_in(client, bucket):
        client.delete_object(Bucket=bucket, Key=key)
    return client


def keys_in(client: Any, bucket: str) -> list[str]:
    return [each["Key"] for each in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
