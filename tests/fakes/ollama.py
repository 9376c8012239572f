"""A fake Ollama server, with the differences between its OpenAI API and OpenAI's own.

From https://docs.ollama.com/api/openai-compatibility, and from middleware/openai.go and openai/openai.go of its source:
any key is accepted; models have a tag and are listed with any capabilities, or as ``null`` if none was pulled; a
missing capability is reported when it is used; every chunk has a role and a text, a tool call is sent complete, and
``tool_choice`` is ignored.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.fakes.openai_server import (
    USAGE,
    Answer,
    Failure,
    Received,
    Reply,
    ScriptedOpenAI,
    head,
    write_event,
)

CHAT, EMBEDDER = "llama3.2:latest", "nomic-embed-text:latest"
PULLED_AT = 1_760_000_000


class Ollama(ScriptedOpenAI):
    model = CHAT

    def __init__(self) -> None:
        self.models: dict[str, set[str]] = {CHAT: {"completion", "tools"}, EMBEDDER: {"embedding"}}
        super().__init__()

    def _choose(self, request: Received) -> Reply | dict[str, Any]:
        if request.path == "/v1/models":
            rows = [
                {"id": name, "object": "model", "created": PULLED_AT, "owned_by": "library"}
                for name in self.models
            ]
            return {"object": "list", "data": rows or None}
        if request.path != "/v1/chat/completions":
            return super()._choose(request)
        name = request.body["model"]
        can = self.models.get(name)
        if can is None:
            return Failure(404, f"model '{name}' not found", type="not_found_error")
        if "completion" not in can:
            return Failure(400, f'"{name}" does not support chat', type="invalid_request_error")
        if request.tool_names and "tools" not in can:
            short = name.removesuffix(":latest")
            refusal = f"registry.ollama.ai/library/{short} does not support tools"
            return Failure(400, refusal, type="invalid_request_error")
        return self._script.popleft() if self._script else self.respond(request)

    async def _stream(self, reply: Answer, writer: asyncio.StreamWriter, options: Mapping[str, Any]) -> bool:
        def send(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> None:
            said = {"role": "assistant", "content": "", **delta}
            choice = {"index": 0, "delta": said, "finish_reason": finish_reason}
            about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": PULLED_AT}
            about |= {"model": self.model, "system_fingerprint": "fp_ollama", "choices": [choice]}
            write_event(writer, json.dumps(about | more))

        writer.write(head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
        async for piece in self._pieces(reply):
            send({"content": piece})
            await writer.drain()
        for index, call in enumerate(reply.calls):
            function = {"name": call.name, "arguments": call.text}
            whole = {
                "id": call.id or f"call_{index}",
                "index": index,
                "type": "function",
                "function": function,
            }
            send({"tool_calls": [whole]})
        send({}, reply.finish_reason)
        if options.get("include_usage"):
            send({}, choices=[], usage=USAGE)
        write_event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
