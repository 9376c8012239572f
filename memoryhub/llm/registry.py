"""The models of the settings and of connections, created once per process."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.module_loading import import_string

from memoryhub.llm.base import Capabilities, ChatModel, Embedder
from memoryhub.llm.bundled_embedder import OnnxEmbedder, TwoEncoders
from memoryhub.llm.e5 import MultilingualEncoder, States
from memoryhub.llm.errors import EmbedderError, ModelMissing, ModelUnavailable
from memoryhub.llm.http_clients import Endpoint
from memoryhub.stored_messages import kept

EMBEDDED_CAPABILITIES = Capabilities(
    has_tools=False,
    can_extract=False,
    context_tokens=2048,
    local=True,
    sees=False,
    needs_help=True,
    writes_on=True,
)
# The larger built-in model. It has no tools, since it got only 24 of 40 requests with tools right, and no extraction,
# since rules extract better (docs/figures.md).
LARGE_CAPABILITIES = replace(
    EMBEDDED_CAPABILITIES,
    answers_well=True,
    context_tokens=8192,
    answer_tokens=1024,
    history_tokens=3000,
    needs_help=False,
)
LARGE_NAME = "qwen2.5-coder-1.5b-instruct"  # as in memoryhub.local.large_model_download
EMBEDDED_NOT_READY = kept("The built-in model is still starting.", "Try again in a few seconds.")

# fmt: off
CHAT_SETTINGS = (
    "LLM_BASE_URL", "LLM_API_KEY", "LLM_MODEL", "LLM_HAS_TOOLS", "LLM_CAN_EXTRACT", "LLM_CONTEXT_TOKENS",
    "LLM_TIMEOUT", "LLM_LOCAL", "LLM_SEES", "EMBEDDED_MODEL", "DATA_DIR",
)
# fmt: on
EMBEDDING_SETTINGS = ("EMBEDDING_BASE_URL", "EMBEDDING_API_KEY", "EMBEDDING_MODEL")

_lock = threading.Lock()
_chat: tuple[tuple[Any, ...], ChatModel] | None = None
_embedder: tuple[tuple[Any, ...], Embedder | None] | None = None
_earlier: dict[Endpoint, Embedder] = {}
_connected: OrderedDict[str, tuple[Endpoint, Capabilities, ChatModel]] = OrderedDict()
_of_the_parent: list[object] = []
MOST_CONNECTED = 200  # limit of cached clients; the least recently used is dropped


def get_chat_model() -> ChatModel:
    """Return the configured chat model. The first call in a process takes half a second to import the client."""
    global _chat
    wanted = (*_values(CHAT_SETTINGS), _large_answers())
    with _lock:
        if _chat is None or _chat[0] != wanted:
            _chat = (wanted, _make_chat_model())
        return _chat[1]


def chat_model_at(key: str, endpoint: Endpoint, capabilities: Capabilities) -> ChatModel:
    """Return the model at this endpoint, cached by ``key`` and created again when endpoint or capabilities change.

    The caller reads the connection from the database each time, so a change takes effect in every process at once. An
    answer that is being streamed continues with its old client.
    """
    from memoryhub.llm.openai_compatible import OpenAIChatModel

    with _lock:
        known = _connected.get(key)
        if known is None or known[:2] != (endpoint, capabilities):
            model = OpenAIChatModel(lambda: endpoint, capabilities, timeout=settings.LLM_TIMEOUT)
            known = endpoint, capabilities, model
        _connected[key] = known
        _connected.move_to_end(key)
        while len(_connected) > MOST_CONNECTED:
            _connected.popitem(last=False)
        return known[2]


def get_embedder() -> Embedder | None:
    """Return the configured embedder; None if EMBEDDING_MODEL is "none", so that search uses words only."""
    global _embedder
    wanted = _values(EMBEDDING_SETTINGS)
    with _lock:
        if _embedder is None or _embedder[0] != wanted:
            _embedder = (wanted, _make_embedder())
        return _embedder[1]


def embedder_is_local(base_url: str | None = None) -> bool:
    """Return whether texts to embed stay on this machine, with the configured embedder or an earlier one."""
    address = settings.EMBEDDING_BASE_URL if base_url is None else base_url
    if not address:  # the bundled one
        return True
    if settings.EMBEDDING_LOCAL is not None and address == settings.EMBEDDING_BASE_URL:
        return bool(settings.EMBEDDING_LOCAL)
    return Endpoint(address, "", "").is_on_this_machine


def get_earlier_embedder(name: str, base_url: str) -> Embedder | None:
    """Return the embedder that earlier settings configured, or None if it can no longer be used.

    The configured API key is sent only to the configured host. Other hosts get EMBEDDING_PREVIOUS_API_KEY.
    """
    bundled: dict[str, Callable[[], Embedder]] = {each.name: each for each in (OnnxEmbedder, TwoEncoders)}
    if not base_url:
        if name not in bundled:
            return None
        endpoint = Endpoint("", "", name)
    else:
        same_host = urlsplit(base_url)[:2] == urlsplit(settings.EMBEDDING_BASE_URL or "")[:2]
        key = settings.EMBEDDING_API_KEY if same_host else settings.EMBEDDING_PREVIOUS_API_KEY
        endpoint = Endpoint(base_url, key, name)
    with _lock:
        if endpoint not in _earlier:
            _earlier[endpoint] = _embedder_at(endpoint) if base_url else bundled[name]()
        return _earlier[endpoint]


def _forget_after_fork() -> None:
    """Reset the models in a forked worker, where the parent's sockets and embedder threads do not exist.

    References to the parent's objects are kept, because destroying an inference session would wait for threads that
    exist only in the parent.
    """
    global _lock, _chat, _embedder, _earlier, _connected
    _lock = threading.Lock()
    _of_the_parent.extend((_chat, _embedder, _earlier, _connected))
    _chat = _embedder = None
    _earlier, _connected = {}, OrderedDict()


os.register_at_fork(after_in_child=_forget_after_fork)


def _values(names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(settings, name) for name in names)


def _make_chat_model() -> ChatModel:
    from memoryhub.llm.openai_compatible import OpenAIChatModel  # slow to import; not every command needs it

    if settings.LLM_BASE_URL:
        endpoint = Endpoint(settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_MODEL)
        capabilities = Capabilities(
            has_tools=settings.LLM_HAS_TOOLS,
            can_extract=settings.LLM_CAN_EXTRACT,
            context_tokens=settings.LLM_CONTEXT_TOKENS,
            sees=settings.LLM_SEES,
            local=endpoint.is_on_this_machine if settings.LLM_LOCAL is None else settings.LLM_LOCAL,
        )
        return OpenAIChatModel(lambda: endpoint, capabilities, timeout=settings.LLM_TIMEOUT)
    if settings.EMBEDDED_MODEL:
        return OpenAIChatModel(
            embedded_endpoint,
            LARGE_CAPABILITIES if _large_answers() else EMBEDDED_CAPABILITIES,
            timeout=settings.LLM_TIMEOUT,
            not_ready=lambda: ModelUnavailable(EMBEDDED_NOT_READY),
        )
    return OpenAIChatModel(lambda: None, EMBEDDED_CAPABILITIES, not_ready=ModelMissing)


def _large_answers() -> bool:
    """Return whether the larger built-in model is running."""
    if not settings.EMBEDDED_MODEL:
        return False
    endpoint = embedded_endpoint()
    return endpoint is not None and endpoint.model == LARGE_NAME


def embedded_trouble() -> str:
    """Return a sentence that says why the built-in model cannot run here; empty if no problem is known."""
    # By dotted path, because this package and memoryhub.local may not import each other.
    return str(import_string("memoryhub.local.model_server.read_trouble")(settings.DATA_DIR))


def embedded_endpoint() -> Endpoint | None:
    """Return the address of the embedded server. It is read for every call, because a restart may change it."""
    server = import_string("memoryhub.local.model_server.read_endpoint")(settings.DATA_DIR)
    return Endpoint(server.base_url, server.api_key, server.model) if server else None


def _make_embedder() -> Embedder | None:
    if settings.EMBEDDING_MODEL == "none":
        return None
    if settings.EMBEDDING_BASE_URL:
        return _embedder_at(Endpoint(*_values(EMBEDDING_SETTINGS)))
    return TwoEncoders()


def _embedder_at(endpoint: Endpoint) -> Embedder:
    from memoryhub.llm.openai_compatible import BundledElsewhere, OpenAIEmbedder

    return (BundledElsewhere if endpoint.model == TwoEncoders.name else OpenAIEmbedder)(endpoint)


KEPT = 256  # cached texts of some 40 kB each, so that a text compared with several others is encoded once

logger = logging.getLogger(__name__)
_reader_lock = threading.Lock()
_reader: Reader | None = None
_is_missing = False


class Reader:
    def __init__(self, encoder: MultilingualEncoder) -> None:
        self.encoder = encoder
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, States] = OrderedDict()

    def states(self, texts: Sequence[str]) -> list[States]:
        """Return the hidden states of each text's pieces, from a cache of recent texts. Raises EmbedderError."""
        with self._lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known |= dict(zip(missing, self.encoder.states(missing), strict=True))
            with self._lock:
                for text in missing[-KEPT:]:
                    self._recent[text] = known[text]
                while len(self._recent) > KEPT:
                    self._recent.popitem(last=False)
        return [known[text] for text in texts]


def get_reader() -> Reader | None:
    """Return the encoder with which statements are compared token by token. It is loaded on first use.

    Loading takes a second, and 100 MB if another model embeds. If the weights are missing or altered, it returns None
    until the process restarts, and callers compare nothing.
    """
    global _reader, _is_missing
    with _reader_lock:
        if _reader is None and not _is_missing:
            own = getattr(get_embedder(), "multilingual", None)
            encoder = own if isinstance(own, MultilingualEncoder) else MultilingualEncoder()
            try:
                encoder.load()
                _reader = Reader(encoder)
            except EmbedderError as error:
                logger.warning("Statements are not compared word by word: %s (%s)", error, error.code)
                _is_missing = True
        return _reader
