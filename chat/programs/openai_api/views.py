"""Views of ``/v1`` for API keys, in OpenAI's format, or Anthropic's for ``messages`` and with ``anthropic-version``."""

import base64
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings
from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from chat.programs.openai_api.answering import (
    DEFAULT,
    AnswerStream,
    AsChunks,
    Shape,
    prepare,
    served,
    whole,
)
from chat.programs.openai_api.anthropic_messages import MessageWriter, limit_answer, read_message
from chat.programs.openai_api.request import (
    Asked,
    Body,
    ModelMissing,
    anthropic_exception_handler,
    openai_exception_handler,
    parts_of_body,
    read_asked,
)
from chat.programs.openai_api.responses import Responding, read_response
from chat.prompting.prompt_text import tokens
from memoryhub.database.queries import release_connection
from memoryhub.errors import Invalid, NotFound, TooLarge
from memoryhub.llm.base import Embedder
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.llm.metering import Meter, metered
from memoryhub.llm.registry import embedder_is_local, get_embedder
from memoryhub.localization import grouped
from workspaces.access import get_workspace
from workspaces.api.base import KeyAuthentication, KeyedView
from workspaces.models import ApiKey, Purpose, User, Workspace
from workspaces.quotas import spend
from workspaces.spending.budgets import require_budget
from workspaces.spending.usage_records import Account, Rate, record
from workspaces.views.event_streams import ANSWERS, StreamSlot

MOST_BYTES = 25 * 2**20  # limit of a request, which may contain images
# Paths of older APIs, and their replacements here.
MOVED = {"/v1/completions": "/v1/chat/completions", "/v1/complete": "/v1/messages"}


class ProgramKeyAuthentication(KeyAuthentication):
    """Authentication by a bearer token or by the header ``x-api-key``, as in Anthropic's API."""

    def key_text(self, request: Request) -> str | None:
        text = super().key_text(request)
        return request.headers.get("x-api-key") if text is None else text


class ProgramView(KeyedView):
    """Base view for API keys only, without sessions, because the clients are not browsers."""

    authentication_classes = [ProgramKeyAuthentication]
    any_scope = True  # a read-only key may chat; ``record_turn`` extracts no memories for it
    schema = None  # OpenAI and Anthropic document these APIs

    @property
    def is_anthropic(self) -> bool:
        """Return whether the request comes from a client of Anthropic's API."""
        return "anthropic-version" in self.request.headers

    def get_exception_handler(self) -> Any:
        return anthropic_exception_handler if self.is_anthropic else openai_exception_handler

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        django_request: Any = request._request
        body = django_request.read(MOST_BYTES + 1)  # Django's own limit is too low for images
        if len(body) > MOST_BYTES:
            raise TooLarge(_("The request has more than %s bytes.") % grouped(MOST_BYTES))
        django_request._body = body

    @property
    def api_key(self) -> ApiKey:
        assert self.key is not None, "nobody comes in without one"
        return self.key

    def workspace(self) -> Workspace:
        return get_workspace(self.person, self.api_key.workspace.public_id)

    def answer(
        self, api_request: Asked, shape: Callable[[Body], Shape], *, limited: bool = False
    ) -> HttpResponseBase:
        """Return the model's answer in this format. ``limited``: see ``limit_answer``."""
        slot = StreamSlot(self.person, of=ANSWERS)
        answering = prepare(api_request, self.api_key, now=timezone.now())
        if limited:
            limit_answer(answering)
        if api_request.stream:
            return AnswerStream(answering, shape, slot=slot)
        return Response(whole(answering, shape, slot=slot), headers=answering.headers)

    def model_body(self, name: str) -> dict[str, Any]:
        if self.is_anthropic:
            times = {"created_at": "1970-01-01T00:00:00Z", "lifecycle": "active"}
            return {"type": "model", "id": name, "display_name": name, **times}
        return {"id": name, "object": "model", "created": 0, "owned_by": "memoryhub"}


class ModelList(ProgramView):
    def get(self, request: Request) -> Response:
        workspace = self.workspace()
        names = list(served(workspace, self.person))
        if names:
            names = list(dict.fromkeys([DEFAULT, *names]))
        embedder = get_embedder()
        names += [f"{workspace.name}/{name}" for name in names] + ([embedder.name] if embedder else [])
        models = [self.model_body(name) for name in names]
        if self.is_anthropic:  # a single page with all models
            first, last = (names[0], names[-1]) if names else (None, None)
            return Response({"data": models, "has_more": False, "first_id": first, "last_id": last})
        return Response({"object": "list", "data": models})


class ModelDetail(ProgramView):
    def get(self, request: Request, model: str) -> Response:
        workspace = self.workspace()
        models = served(workspace, self.person)
        if model.removeprefix(f"{workspace.name}/") not in ({DEFAULT, *models} if models else ()):
            raise ModelMissing
        return Response(self.model_body(model))


class ChatCompletions(ProgramView):
    def post(self, request: Request) -> HttpResponseBase:
        return self.answer(read_asked(request.data, request.headers), AsChunks)


class Responses(ProgramView):
    """OpenAI's Responses API, stateless: responses are not stored under their ids."""

    def post(self, request: Request) -> HttpResponseBase:
        api_request, repeated = read_response(request.data, request.headers)
        return self.answer(api_request, partial(Responding, api_request.model, repeated))


class MessagesView(ProgramView):
    is_anthropic = True  # also without the header


class Messages(MessagesView):
    """Anthropic's Messages API."""

    def post(self, request: Request) -> HttpResponseBase:
        api_request = read_message(request.data, request.headers)
        return self.answer(api_request, partial(MessageWriter, api_request), limited=True)


class CountTokens(MessagesView):
    """Anthropic's token count, estimated without a call to the model."""

    def post(self, request: Request) -> Response:
        self.workspace()
        api_request = read_message(request.data, request.headers, needs_limit=False)
        parts = parts_of_body({**api_request.body, "messages": api_request.messages})
        return Response({"input_tokens": parts.whole})


class Embeddings(ProgramView):
    def post(self, request: Request) -> Response:
        now = timezone.now()
        spend("turns", self.person, now=now)
        return Response(embed(request.data, self.workspace(), self.person, now=now))


class NoSuchRoute(ProgramView):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if instead := MOVED.get(request.path.rstrip("/")):
            raise NotFound(_("This address is not available here. Use %s.") % instead, code="use_another")
        raise NotFound(_("This address does not exist in this API."))


MOST_TEXTS = 512
MOST_CHARACTERS = 1_000_000  # limit for all texts together


def embed(body: Any, workspace: Workspace, person: User, *, now: datetime) -> dict[str, Any]:
    """Return the body of a response with vectors of the model that searches memories.

    Raises Invalid, ModelMissing, ModelNotLocal if the workspace's data may not leave this machine, BudgetReached, or an
    EmbedderError.
    """
    texts, as_base64 = _read(body)
    embedder = _embedder(body["model"])
    if workspace.local_only and not embedder_is_local():
        raise ModelNotLocal
    rate = Rate(embedder.name, settings.EMBEDDING_PRICE, is_embedded=not settings.EMBEDDING_BASE_URL)
    require_budget(workspace.pk, person.pk, lambda: rate, now=now)
    release_connection()
    with metered(Meter(takes_embeddings=True)) as meter:
        vectors = embedder.embed(texts)
    record(Account(workspace.pk, person.pk, Purpose.PROGRAM, rate), meter, now=now)
    wanted = body.get("dimensions")
    if wanted is not None and wanted != vectors.shape[1]:
        raise Invalid(fields={"dimensions": _("must be %s with this model") % vectors.shape[1]})
    rows = [
        {"object": "embedding", "index": at, "embedding": _shown(vector, as_base64=as_base64)}
        for at, vector in enumerate(vectors)
    ]
    used = sum(tokens(text) for text in texts)
    return {
        "object": "list",
        "data": rows,
        "model": embedder.name,
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _read(body: Any) -> tuple[list[str], bool]:
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise Invalid(fields={"model": _("must be the name of a model")})
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise Invalid(fields={"input": _("must be a text or a list of texts, none of them blank")})
    if not 1 <= len(texts) <= MOST_TEXTS or sum(map(len, texts)) > MOST_CHARACTERS:
        most = {"texts": MOST_TEXTS, "characters": grouped(MOST_CHARACTERS)}
        why = _("may have at most %(texts)s texts and %(characters)s characters") % most
        raise Invalid(fields={"input": why})
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Invalid(fields={"encoding_format": _("must be one of %s") % "float, base64"})
    return [text.encode(errors="replace").decode() for text in texts], encoding == "base64"


def _embedder(wanted: str) -> Embedder:
    embedder = get_embedder()
    if embedder is None:
        raise ModelMissing(_("This installation has no embedding model."))
    if wanted not in {embedder.name, "", "default", "memoryhub"}:
        raise ModelMissing(_("There is no embedding model of this name here. There is: %s.") % embedder.name)
    return embedder


def _shown(vector: Any, *, as_base64: bool) -> str | list[float]:
    if as_base64:
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
    return [float(number) for number in vector]
