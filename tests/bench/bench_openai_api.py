"""Measure what ``/v1`` adds to the bare model, and fifty of its streams at once.

    python -m tests.bench.bench_openai_api [--memories 1000] [--turns 40]

As ``bench_turn``: a whole stack with a scripted model over real HTTP, one web process. Every question is a new one,
memory is on, and every turn is noted to be mined.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2 as http

from tests.bench.bench_turn import EVERY, STREAMS, TOKENS, first_token
from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.stack import Web, key_of, running_stack, signed_up


def program(web: Web, memories: int) -> http.Client:
    """Return a client with the API key of a new user with this many memories and memory turned on."""
    person = signed_up(web, "bench")
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    key = key_of(person, workspace)
    for number in range(memories):
        text = (
            f"The deadline of project number {number} is on day {number % 28 + 1} of month {number % 12 + 1}"
        )
        stored = person.post(f"/chat/api/workspaces/{workspace}/memories", json={"content": text})
        assert stored.status_code == 201, stored.text
    headers = {"Authorization": f"Bearer {key}"}
    return http.Client(base_url=web.url, headers=headers, timeout=120)


def asked(question: str, **more: Any) -> dict[str, Any]:
    return {"model": "default", "messages": [{"role": "user", "content": question}], **more}


def measure_overhead(client: http.Client, server: ScriptedOpenAI, *, memories: int, turns: int) -> None:
    server.respond = lambda request: Answer("one ", "two ", "three")
    direct = http.Client(headers={"Authorization": f"Bearer {server.api_key}"})
    for kind, stream in (("to the first token", True), ("whole", False)):
        own = []
        for turn in range(turns + 1):
            body = asked(
                f"When is the deadline of project number {turn * 7 % memories}, {kind}?", stream=stream
            )
            alone = _taken(direct, f"{server.base_url}/chat/completions", body, stream)
            own.append((_taken(client, "/v1/chat/completions", body, stream) - alone) * 1000)
        used = "project number" in json.dumps(server.chat_requests[-1].messages[:-1])
        own = sorted(own[1:])
        print(
            f"{kind}, {memories} memories: /v1 adds p50 {statistics.median(own):.1f} ms, "
            f"p95 {own[int(len(own) * 0.95)]:.1f} ms; memories in it: {'yes' if used else 'no'}"
        )


def _taken(client: http.Client, url: str, body: Any, stream: bool) -> float:
    if stream:
        return first_token(client, url, body, "one")
    begun = time.perf_counter()
    assert client.post(url, json=body).status_code == 200
    return time.perf_counter() - begun


async def measure_streams(web: Web, client: http.Client, server: ScriptedOpenAI) -> None:
    server.respond = lambda request: Answer(*["tok "] * TOKENS, delay=EVERY)
    limits = http.Limits(max_connections=STREAMS)

    async def one(program: http.AsyncClient, number: int) -> int:
        body = asked(f"Count to two hundred, {number}", stream=True)
        async with program.stream("POST", "/v1/chat/completions", json=body) as response:
            return sum(line.count("tok ") for line in [line async for line in response.aiter_lines()])

    async with http.AsyncClient(base_url=web.url, headers=client.headers, timeout=120, limits=limits) as many:
        begun = time.perf_counter()
        tokens = await asyncio.gather(*(one(many, number) for number in range(STREAMS)))
    taken = time.perf_counter() - begun
    print(
        f"{STREAMS} streams at once: {sum(tokens):,} of {STREAMS * TOKENS:,} tokens in {taken:.1f} s "
        f"(the model alone: {TOKENS * EVERY:.1f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=1000, help="in the workspace (1000)")
    parser.add_argument("--turns", type=int, default=40)
    given = parser.parse_args()
    server = ScriptedOpenAI().start()
    env = {"LLM_BASE_URL": server.base_url, "LLM_API_KEY": server.api_key, "LLM_MODEL": server.model}
    env |= {"KEY_RATE": "100000", "TURN_RATE": "100000"}
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-bench-"))
    with running_stack(folder, **{f"MEMORYHUB_{name}": value for name, value in env.items()}) as stack:
        web = stack.web()
        client = program(web, given.memories)
        measure_overhead(client, server, memories=given.memories, turns=given.turns)
        asyncio.run(measure_streams(web, client, server))


if __name__ == "__main__":
    main()
