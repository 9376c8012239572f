"""A server of the bundled embedder for other processes and hosts: /v1/embeddings, as in the OpenAI API.

`manage.py up --only embedder` starts it on the socket that the supervisor has opened. The API key is in the environment
(KEY_VARIABLE), never on the command line, where every user could read it.

Besides OpenAI's fields, a request may have ``input_type``: "passage" for texts to store (the default), "query" for
searches, or "question" for a question followed by its shorter variants.
"""

import argparse
import hmac
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from memoryhub.llm.base import Vectors, estimated_tokens
from memoryhub.llm.bundled_embedder import TwoEncoders
from memoryhub.llm.errors import EmbedderError

KEY_VARIABLE = "MEMORYHUB_EMBEDDER_KEY"
MOST_BYTES = 8 * 1024 * 1024  # limit of a request
MOST_TEXTS = 512
AT_ONCE = 200  # connections; more are refused with status 503

Answer = Callable[[Request], Awaitable[JSONResponse]]


def application(embedder: TwoEncoders, key: str) -> Starlette:
    """Return the ASGI application. All paths but ``GET /health`` require the key, which is checked before the body."""
    ways = {
        "passage": embedder.embed,
        "query": embedder.embed_queries,
        "question": embedder.embed_question,
    }

    def for_the_key(answer: Answer) -> Answer:
        async def guarded(request: Request) -> JSONResponse:
            authorization = request.headers.get("authorization", "")
            if not hmac.compare_digest(authorization.encode(), f"Bearer {key}".encode()):
                raise HTTPException(401, "That is not the key of this embedder.")
            return await answer(request)

        return guarded

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def models(request: Request) -> JSONResponse:
        model = {"id": embedder.name, "object": "model", "created": 0, "owned_by": "memoryhub"}
        return JSONResponse({"object": "list", "data": [model]})

    async def embeddings(request: Request) -> JSONResponse:
        body = await _body(request)
        texts = _texts(body.get("input"))
        if body.get("model") != embedder.name:
            raise HTTPException(404, f"There is one model here: {embedder.name}.")
        way = ways.get(str(body.get("input_type", "passage")))
        if way is None:
            raise HTTPException(400, f"input_type must be one of {', '.join(ways)}.")
        if body.get("encoding_format", "float") != "float":
            raise HTTPException(400, "encoding_format must be float.")
        try:
            return await run_in_threadpool(lambda: _shown(embedder.name, texts, way(texts)))
        except EmbedderError as error:
            raise HTTPException(500, str(error)) from error

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/v1/models", for_the_key(models)),
            Route("/v1/embeddings", for_the_key(embeddings), methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refused},
    )


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """Return an error in the form of the OpenAI API."""
    assert isinstance(error, HTTPException)
    kind = "invalid_request_error" if error.status_code < 500 else "server_error"
    return JSONResponse({"error": {"message": error.detail, "type": kind}}, error.status_code, error.headers)


async def _body(request: Request) -> dict[str, Any]:
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > MOST_BYTES:
            raise HTTPException(413, f"A request may have {MOST_BYTES:,} bytes.")
    try:
        body = json.loads(read)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "The body must be a JSON object.")
    return body


def _texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(400, "input must be a text or a list of texts.")
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise HTTPException(400, f"input may be 1 to {MOST_TEXTS} texts.")
    return [text.encode(errors="replace").decode() for text in texts]


def _shown(model: str, texts: list[str], vectors: Vectors) -> JSONResponse:
    rows = [
        {"object": "embedding", "index": at, "embedding": vector}
        for at, vector in enumerate(vectors.tolist())
    ]
    tokens = sum(map(estimated_tokens, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": rows, "model": model, "usage": usage})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="of the socket that it listens on")
    options = parser.parse_args()
    key = os.environ.pop(KEY_VARIABLE, "")
    if not key:
        sys.exit(f"{KEY_VARIABLE} must hold the API key.")
    embedder = TwoEncoders()
    try:
        embedder.embed(["ready"])  # load the model before the server accepts requests
    except EmbedderError as error:
        sys.exit(f"The embedder cannot be loaded: {error} Run `make install`.")
    sys.stdout.write(f"{embedder.name} answers\n")
    sys.stdout.flush()
    uvicorn.run(
        application(embedder, key),
        fd=options.fd,
        limit_concurrency=AT_ONCE,
        timeout_keep_alive=120,  # as long as our own clients keep theirs
        log_level="warning",
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
