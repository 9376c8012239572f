"""A test network with a hostile resolver and metadata services that answer; run in Linux namespaces.

`unshare --net --mount python -m tests.memoryhub.llm.live_network` prints the attempts and their results as JSON. The C
library's resolver, over UDP, and sockets to 8.8.8.8 or 169.254.169.254 on port 80 are real; these addresses belong to
the loopback device, with the test's servers behind them.
"""

import asyncio
import fcntl
import json
import socket
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2

from memoryhub.llm.addresses import AddressRange
from memoryhub.llm.base import Capabilities, Message
from memoryhub.llm.errors import ModelAddressRefused, ModelError, ModelMoved
from memoryhub.llm.http_clients import Endpoint, get
from memoryhub.llm.openai_compatible import OpenAIChatModel

SET_ADDRESS, SET_FLAGS, UP = 0x8916, 0x8914, 0x1 | 0x40
PUBLIC, ELSEWHERE, NOBODY = "8.8.8.8", "8.8.4.4", "9.9.9.9"
INSIDE = ["127.0.0.1", "10.1.2.3"]
METADATA = ["169.254.169.254", "168.63.129.16", "192.0.0.192", "100.100.100.200"]
# The answers to successive queries of a name; the last one repeats.
NAMES: dict[str, list[list[str]]] = {
    "public.example": [[PUBLIC]],
    "elsewhere.example": [[ELSEWHERE]],
    "inside.example": [["127.0.0.1"]],
    **{f"metadata-{number}.example": [[address]] for number, address in enumerate(METADATA)},
    **{f"inside-{number}.example": [[address]] for number, address in enumerate(INSIDE)},
}
CAPABILITIES = Capabilities(has_tools=False, can_extract=True, context_tokens=4096, local=False)
asked: Counter[str] = Counter()
connected: list[str] = []


def make_network() -> None:
    with socket.socket() as control:
        for number, address in enumerate(["127.0.0.1", PUBLIC, ELSEWHERE, NOBODY, *INSIDE[1:], *METADATA]):
            device = f"lo:{number}".encode() if number else b"lo"
            inet = struct.pack("16sHH4s8x", device, socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, SET_ADDRESS, inet)
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH14x", device, UP))
    for path, text in (
        ("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"),
        ("/etc/nsswitch.conf", "hosts: files dns\n"),
    ):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(text)
        subprocess.run(["mount", "--bind", file.name, path], check=True)


def resolve_for_ever() -> None:
    """Run a DNS server: one question a packet, addresses of NAMES in turn, uncacheable (TTL 0)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        ready.append(True)
        while True:
            packet, sender = server.recvfrom(512)
            labels, at = [], 12
            while packet[at]:
                labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
                at += packet[at] + 1
            question, kind = packet[12 : at + 5], struct.unpack("!H", packet[at + 1 : at + 3])[0]
            found: list[str] = []
            name = ".".join(labels).lower()
            if kind == 1 and name in NAMES:
                turns = NAMES[name]
                found = turns[min(asked[name], len(turns) - 1)]
                asked[name] += 1
            head = packet[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
            body = b"".join(
                struct.pack("!HHHIH", 0xC00C, 1, 1, 0, 4) + socket.inet_aton(each) for each in found
            )
            server.sendto(head + question + body, sender)


class Server(BaseHTTPRequestHandler):
    """Answers with its address, as a chat model would, or redirects as the path says."""

    def do_GET(self) -> None:
        here = self.server.server_address[0]
        connected.append(here)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        moved = dict(part.split("=", 1) for part in self.path.strip("/").split("~") if "=" in part)
        if "to" in moved and here == PUBLIC:
            self.send_response(int(moved["status"]))
            self.send_header("Location", f"http://{moved['to']}/v1/chat/completions")
            body = b""
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            choice = {"index": 0, "message": {"role": "assistant", "content": here}, "finish_reason": "stop"}
            body = json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args: Any) -> None:
        """Keep standard output for the result."""


def ask(url: str, address_range: AddressRange, *, streaming: bool = False) -> dict[str, Any]:
    """Return the answer of the chat model at this address, its error, and connections to forbidden addresses."""
    model = OpenAIChatModel(lambda: Endpoint(url, "k", "m", address_range), CAPABILITIES, timeout=5)
    connected.clear()
    answer, refused = "", ""

    async def stream() -> str:
        return "".join([delta.text async for delta in model.stream([Message("user", "Hi")])])

    try:
        question = [Message("user", "Hi")]
        answer = asyncio.run(stream()) if streaming else model.complete(question)
    except (ModelAddressRefused, ModelMoved) as error:
        refused = error.code
    except ModelError as error:
        refused = f"failed: {error.code}"
    own = {PUBLIC, ELSEWHERE} | (set(INSIDE) if address_range is not AddressRange.PUBLIC else set())
    return {"answer": answer, "refused": refused, "went_to": [each for each in connected if each not in own]}


def controls() -> dict[str, str]:
    """Verify that the network works, and that the attacks succeed without the guard."""
    NAMES["astray.example"] = [[PUBLIC], ["169.254.169.254"]]
    with httpx2.Client(trust_env=False, follow_redirects=True) as unguarded:
        unguarded.get("http://astray.example/")  # the first lookup, as a check would do
        unguarded.headers["Connection"] = "close"
    with httpx2.Client(trust_env=False, follow_redirects=True) as unguarded:
        by_name = unguarded.get("http://astray.example/").json()
        by_redirect = unguarded.get("http://public.example/status=302~to=169.254.169.254/").json()
    guarded = Endpoint("http://public.example", "", "m")
    moved = get(guarded, "/status=302~to=elsewhere.example/", seconds=5).json()
    return {
        "the guarded client reaches a public name": ask("http://public.example/v1", AddressRange.PUBLIC)[
            "answer"
        ],
        "it follows a redirect to another public name": moved["choices"][0]["message"]["content"],
        "an administrator's reaches this machine": ask("http://inside.example/v1", AddressRange.ANYWHERE)[
            "answer"
        ],
        "an unguarded client is led astray by a name": by_name["choices"][0]["message"]["content"],
        "an unguarded client is led astray by a redirect": by_redirect["choices"][0]["message"]["content"],
    }


def attacks() -> dict[str, dict[str, Any]]:
    tried: dict[str, dict[str, Any]] = {}
    for streaming in (False, True):
        how = "streamed" if streaming else "whole"
        for address_range in AddressRange:
            for number in range(len(METADATA)):
                name = f"metadata-{number}.example"
                tried[f"{name} {address_range} {how}"] = ask(
                    f"http://{name}/v1", address_range, streaming=streaming
                )
        for number in range(len(INSIDE)):
            name = f"inside-{number}.example"
            tried[f"{name} {how}"] = ask(f"http://{name}/v1", AddressRange.PUBLIC, streaming=streaming)
        tried |= rebinding(how, streaming)
        tried |= redirects(how, streaming)
    return tried


def rebinding(how: str, streaming: bool) -> dict[str, dict[str, Any]]:
    """Try names that are public at the first lookup and internal at the next, and answers with both."""
    tried = {}
    for address_range, goals in (
        (AddressRange.PUBLIC, [*INSIDE, *METADATA]),
        (AddressRange.ANYWHERE, METADATA),
        (AddressRange.CONFIGURED, METADATA),
    ):
        for goal in goals:
            name = f"rebinding-{goal.replace('.', '-')}-{address_range.value}-{how}.example"
            NAMES[name] = [[PUBLIC], [goal]]
            first = ask(f"http://{name}/v1", address_range)  # a legitimate answer of an allowed address
            second = ask(f"http://{name}/v1", address_range, streaming=streaming)
            second["went_to"] += first["went_to"]
            tried[name] = second
            mixed = f"mixed-{name}"
            NAMES[mixed] = [[goal, PUBLIC]]
            tried[mixed] = ask(f"http://{mixed}/v1", address_range, streaming=streaming)
    lame = f"lame-{how}.example"
    NAMES[lame] = [[NOBODY, "169.254.169.254"]]
    tried[lame] = ask(f"http://{lame}/v1", AddressRange.PUBLIC, streaming=streaming)
    return tried


def redirects(how: str, streaming: bool) -> dict[str, dict[str, Any]]:
    tried = {}
    for address_range in (AddressRange.CONFIGURED, AddressRange.ANYWHERE, AddressRange.PUBLIC):
        for status in (301, 302, 303, 307, 308):
            for goal in ("169.254.169.254", "metadata-1.example", "2852039166"):
                url = f"http://public.example/status={status}~to={goal}"
                tried[f"{status} to {goal} {address_range} {how}"] = ask(
                    url, address_range, streaming=streaming
                )
    return tried


ready: list[bool] = []


def main() -> None:
    make_network()
    Thread(target=resolve_for_ever, daemon=True).start()
    for address in (PUBLIC, ELSEWHERE, *INSIDE, *METADATA):
        server = ThreadingHTTPServer((address, 80), Server)
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    while not ready:
        pass
    result = {"controls": controls(), "attacks": attacks(), "resolver_was_asked": asked.total()}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
