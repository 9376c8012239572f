"""Whether the configured models can be reached: one small request that asks for nothing to be written."""

from __future__ import annotations

import httpx2
from django.conf import settings

from memoryhub.llm.clients import Endpoint, blocking_client, timeout_of
from memoryhub.llm.errors import EmbedderError
from memoryhub.llm.registry import embedded_endpoint, get_embedder

SECONDS = 2.0


def chat_model_trouble() -> str:
    """Why the chat model cannot be asked; empty if it can. Two seconds at the most."""
    if settings.LLM_BASE_URL:
        return _trouble_at(Endpoint(settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_MODEL))
    if not settings.EMBEDDED_MODEL:
        return "none is set up"
    endpoint = embedded_endpoint()
    return _trouble_at(endpoint) if endpoint else "the embedded one is still starting"


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
    headers = {"Authorization": f"Bearer {endpoint.api_key or 'none'}"}
    try:
        with blocking_client(endpoint) as client:
            asked = client.get(f"{endpoint.base_url}/models", headers=headers, timeout=timeout_of(SECONDS))
        status = asked.status_code
    except httpx2.TimeoutException:
        return "no answer in time"
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return "cannot be reached"
    if status in {401, 403}:
        return "refuses the key"
    return f"answers with an error ({status})" if status >= 500 else ""
