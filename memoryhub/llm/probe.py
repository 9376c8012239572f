"""Whether the configured models can be reached: one small request that asks for nothing to be written."""

from __future__ import annotations

import httpx2
from django.conf import settings

from memoryhub.llm.clients import Endpoint, ask_for_models
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import embedded_endpoint, embedded_trouble, get_embedder

SECONDS = 2.0
MOST_LISTED = 1024 * 1024  # bytes of a list of models


def chat_model_trouble() -> str:
    """Why the chat model cannot be asked; empty if it can. Two seconds at the most."""
    if settings.LLM_BASE_URL:
        return _trouble_at(Endpoint(settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_MODEL))
    if not settings.EMBEDDED_MODEL:
        return "none is set up"
    endpoint = embedded_endpoint()
    if endpoint is None:
        return (
            "the built-in one cannot be loaded"
            if embedded_trouble()
            else "the built-in one is still starting"
        )
    return _trouble_at(endpoint)


def embedder_trouble() -> str:
    """Why the embedder cannot be asked; empty if it can, and where none is wanted. The bundled one embeds a word."""
    if settings.EMBEDDING_BASE_URL:
        name = settings.EMBEDDING_MODEL
        return _trouble_at(Endpoint(settings.EMBEDDING_BASE_URL, settings.EMBEDDING_API_KEY, name))
    embedder = get_embedder()
    try:
        if embedder is not None:
            embedder.embed(["ready"])
    except EmbedderError as error:
        return error.code
    return ""


def _trouble_at(endpoint: Endpoint) -> str:
    """Every server of this API lists its models; one that does not know the address is there all the same."""
    try:
        status = ask_for_models(endpoint, seconds=SECONDS).status_code
    except httpx2.TimeoutException:
        return "no answer in time"
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return "cannot be reached"
    if status in {401, 403}:
        return "refuses the key"
    return f"answers with an error ({status})" if status >= 500 else ""


def list_models(endpoint: Endpoint, *, seconds: float) -> list[str] | None:
    """The names that a server gives its models; None where nobody answers, or not as servers of this API do."""
    try:
        asked = ask_for_models(endpoint, seconds=seconds)
        if asked.status_code != 200 or len(asked.content) > MOST_LISTED:
            return None
        rows = asked.json()["data"] or []  # Ollama without a model says null
        return [row["id"] for row in rows if isinstance(row["id"], str)]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError, RecursionError):
        return None
