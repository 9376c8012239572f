"""HAProxy with deploy/haproxy/haproxy.cfg in front of ports of this machine."""

import csv
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryhub.local.stack import answers
from tests.memoryhub.local.processes import wait_until
from tests.stack import ROOT, free_port


@dataclass(frozen=True)
class Proxy:
    port: int
    socket: Path

    def tell(self, command: str) -> list[str]:
        """Send a command to the admin socket. Return the lines of the answer."""
        with socket.socket(socket.AF_UNIX) as talk:
            talk.connect(str(self.socket))
            talk.sendall(f"{command}\n".encode())
            return list(talk.makefile())

    def counted(self, what: str) -> int:
        """Return a statistic summed over all non-streaming servers."""
        rows = csv.DictReader(self.tell("show stat"))
        return sum(int(row[what] or 0) for row in rows if row["# pxname"] == "web")


@contextmanager
def proxy_before(ports: Sequence[int], folder: Path) -> Iterator[Proxy]:
    """Run the proxy before one or two hosts; ready once it has found one of them."""
    proxy = Proxy(free_port(), folder / "admin.sock")
    text = (ROOT / "deploy/haproxy/haproxy.cfg").read_text()
    text = text.replace("bind :80", f"bind 127.0.0.1:{proxy.port}", 1)
    text = text.replace("/run/haproxy/admin.sock", str(proxy.socket))
    for number, port in enumerate(ports, start=1):
        text = text.replace(f"web{number}.internal:8000", f"127.0.0.1:{port}")
    (folder / "haproxy.cfg").write_text(re.sub(r"^ +server .*internal.*$", "", text, flags=re.MULTILINE))
    process = subprocess.Popen(["haproxy", "-db", "-q", "-f", str(folder / "haproxy.cfg")])
    try:
        wait_until(lambda: answers("127.0.0.1", proxy.port, "/healthz"), "it finds its hosts")
        yield proxy
    finally:
        process.terminate()
        process.wait(30)
