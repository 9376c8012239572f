"""Measure what MemoryHub adds to a turn, and what fifty streams at once do to its pages.

    python -m tests.bench.bench_turn [--memories 1000] [--turns 40]

Starts a whole stack in a temporary folder with a scripted model over real HTTP, one web process, and prints:
time to the first token and tokens of the prompt, through the product and from the model directly (memory on, each
turn in a new chat with a question never asked before), and the time pages take while STREAMS answers are written and
read at once.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import httpx2 as http

from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.stack import Web, running_stack, signed_up

STREAMS = 50
TOKENS, EVERY = 200, 0.05  # each of the fifty: twenty tokens a second for ten seconds


def first_token(client: http.Client, url: str, body: object, marker: str) -> float:
    """Return the seconds until the first line with ``marker`` is received."""
    begun, taken = time.perf_counter(), None
    with client.stream("POST", url, json=body) as response:
        for line in response.iter_lines():
            if taken is None and marker in line:
                taken = time.perf_counter() - begun
    assert taken is not None, "no token came"
    return taken


def prompt_tokens(body: object) -> int:
    """Estimate the tokens of a request's messages or tools: four bytes each, as in English."""
    return len(json.dumps(body).encode()) // 4


def measure_first_token(web: Web, server: ScriptedOpenAI, *, memories: int, turns: int) -> None:
    person = signed_up(web, "bench")
    workspace = person.get("/chat/api/workspaces").json()["items"][0]["id"]
    for number in range(memories):
        text = (
            f"The deadline of project number {number} is on day {number % 28 + 1} of month {number % 12 + 1}"
        )
        stored = person.post(f"/chat/api/workspaces/{workspace}/memories", json={"content": text})
        assert stored.status_code == 201, stored.text
        print(f"\rstored {number + 1} of {memories}", end="", flush=True)
    server.respond = lambda request: Answer("one ", "two ", "three")
    direct = http.Client(headers={"Authorization": f"Bearer {server.api_key}"})
    alone, through = [], []
    for turn in range(turns):
        question = f"When is the deadline of project number {turn * 7 % memories}?"
        body = {"model": server.model, "stream": True, "messages": [{"role": "user", "content": question}]}
        chat = person.post("/chat/api/chats", json={"memory_enabled": True}).json()["id"]
        alone.append(first_token(direct, f"{server.base_url}/chat/completions", body, "one"))
        send = {"content": question, "stream": True}
        through.append(first_token(person, f"/chat/api/{chat}/messages", send, "event: token"))
        print(f"\rturn {turn + 1} of {turns}", end="", flush=True)
    own = [(b - a) * 1000 for a, b in zip(alone, through, strict=True)][1:]
    print(f"\rtime to first token, {memories} memories, memory on, {len(own)} turns")
    print(f"  model alone       p50 {statistics.median(alone) * 1000:6.1f} ms")
    print(f"  through the hub   p50 {statistics.median(through) * 1000:6.1f} ms")
    print(
        f"  the hub's own     p50 {statistics.median(own):6.1f} ms   p95 {sorted(own)[int(len(own) * 0.95)]:6.1f} ms"
    )
    asked = server.chat_requests[-1].body
    used = "project number" in json.dumps([m for m in asked["messages"] if m["content"] != question])
    print(
        f"about {prompt_tokens(body['messages'])} tokens of prompt alone, {prompt_tokens(asked['messages'])} through "
        f"the hub and {prompt_tokens(asked.get('tools', []))} of tools; memories in it: {'yes' if used else 'no'}"
    )


async def _one_stream(client: http.AsyncClient, chat: str) -> int:
    tokens = 0
    body = {"content": "Count to two hundred", "stream": True}
    async with client.stream("POST", f"/chat/api/{chat}/messages", json=body) as response:
        text = ""
        async for line in response.aiter_lines():
            if line.startswith("data: ") and '"text"' in line:
                text += json.loads(line[6:]).get("text", "")
        tokens = text.count("tok ")
    return tokens


async def measure_streams(web: Web, server: ScriptedOpenAI) -> None:
    person = signed_up(web, "crowd")
    chats = [person.post("/chat/api/chats", json={}).json()["id"] for _ in range(STREAMS)]
    server.respond = lambda request: Answer(*["tok "] * TOKENS, delay=EVERY)
    pages = ["/", f"/chats/{chats[0]}/", "/chat/api/workspaces", "/profile/"]
    taken: list[float] = []
    limits = http.Limits(max_connections=STREAMS + 10)
    async with http.AsyncClient(
        base_url=web.url, cookies=person.cookies, headers=person.headers, timeout=120, limits=limits
    ) as client:
        begun = time.perf_counter()
        streams = [asyncio.create_task(_one_stream(client, chat)) for chat in chats]
        await asyncio.sleep(1)
        while not all(stream.done() for stream in streams):
            for page in pages:
                before = time.perf_counter()
                response = await client.get(page, follow_redirects=True)
                assert response.status_code == 200, (page, response.status_code)
                taken.append(time.perf_counter() - before)
            await asyncio.sleep(0.1)
        received = await asyncio.gather(*streams)
    whole = time.perf_counter() - begun
    print(
        f"{STREAMS} streams at once on one web process, {TOKENS} tokens each, one every {EVERY * 1000:.0f} ms"
    )
    print(f"  tokens received   {sum(received):,} of {STREAMS * TOKENS:,}")
    print(f"  all done after    {whole:.1f} s (the model alone: {TOKENS * EVERY:.1f} s)")
    slowest = max(taken) * 1000
    print(
        f"  {len(taken)} pages meanwhile  p50 {statistics.median(taken) * 1000:.0f} ms   slowest {slowest:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=1000, help="in the workspace (1000)")
    parser.add_argument("--turns", type=int, default=40)
    asked = parser.parse_args()
    server = ScriptedOpenAI().start()
    model = {"BASE_URL": server.base_url, "API_KEY": server.api_key, "MODEL": server.model}
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-bench-"))
    with running_stack(folder, **{f"MEMORYHUB_LLM_{name}": value for name, value in model.items()}) as stack:
        web = stack.web()
        measure_first_token(web, server, memories=asked.memories, turns=asked.turns)
        asyncio.run(measure_streams(web, server))
    server.stop()


if __name__ == "__main__":
    main()
