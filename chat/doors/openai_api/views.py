"""``/v1``: views for keys alone. Each reads what was asked, makes one call, and answers in OpenAI's form."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from chat.doors.openai_api.answering import AnswerStream, AsChunks, prepare, whole
from chat.doors.openai_api.embeddings import embed
from chat.doors.openai_api.errors import ModelMissing, openai_exception_handler
from chat.doors.openai_api.program_request import read_asked
from chat.doors.openai_api.responding import Responding
from chat.doors.openai_api.responses_reading import read_response
from chat.doors.openai_api.served import served
from memoryhub.errors import NotFound, TooLarge
from memoryhub.languages import grouped
from memoryhub.llm.registry import get_embedder
from workspaces.access import get_workspace
from workspaces.event_streams import ANSWERS, Place
from workspaces.models import ApiKey, Workspace
from workspaces.rest.keys import KeyAuthentication, KeyedView
from workspaces.throttles import spend

MOST_BYTES = 25 * 2**20  # of a request: pictures come in it


class OpenAIView(KeyedView):
    """A key and nothing else: what speaks this is no browser."""

    authentication_classes = [KeyAuthentication]
    any_scope = True  # what a key that only reads must not do is mining, which is asked for each turn
    schema = None  # it is another's API

    def get_exception_handler(self) -> Any:
        return openai_exception_handler

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        django_request: Any = request._request
        body = django_request.read(MOST_BYTES + 1)  # Django's own limit is for bodies without pictures
        if len(body) > MOST_BYTES:
            raise TooLarge(_("The request has more than %s bytes.") % grouped(MOST_BYTES))
        django_request._body = body

    @property
    def api_key(self) -> ApiKey:
        assert self.key is not None, "nobody comes in without one"
        return self.key

    def workspace(self) -> Workspace:
        return get_workspace(self.person, self.api_key.workspace.public_id)


class ModelList(OpenAIView):
    def get(self, request: Request) -> Response:
        workspace = self.workspace()
        names = list(served(workspace, self.person))
        embedder = get_embedder()
        names += [f"{workspace.name}/{name}" for name in names] + ([embedder.name] if embedder else [])
        return Response({"object": "list", "data": [_model(name) for name in names]})


class ModelDetail(OpenAIView):
    def get(self, request: Request, model: str) -> Response:
        workspace = self.workspace()
        if model.removeprefix(f"{workspace.name}/") not in served(workspace, self.person):
            raise ModelMissing
        return Response(_model(model))


class ChatCompletions(OpenAIView):
    def post(self, request: Request) -> HttpResponseBase:
        asked = read_asked(request.data, request.headers)
        place = Place(self.person, of=ANSWERS)
        answering = prepare(asked, self.api_key, now=timezone.now())
        if asked.stream:
            return AnswerStream(answering, AsChunks, place=place)
        return Response(whole(answering, place), headers=answering.headers)


class Responses(OpenAIView):
    """The newer form of the same, stateless: nothing is stored under the ids that it gives."""

    def post(self, request: Request) -> HttpResponseBase:
        asked, repeated = read_response(request.data, request.headers)
        place = Place(self.person, of=ANSWERS)
        answering = prepare(asked, self.api_key, now=timezone.now())
        if asked.stream:
            return AnswerStream(answering, partial(Responding, asked.model, repeated), place=place)
        reply = whole(answering, place)
        said = Responding(asked.model, repeated, answering.note).whole(reply)
        return Response(said, headers=answering.headers)


class Embeddings(OpenAIView):
    def post(self, request: Request) -> Response:
        now = timezone.now()
        spend("turns", self.person, now=now)
        return Response(embed(request.data, self.workspace(), self.person, now=now))


class NoSuchRoute(OpenAIView):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound(_("This address does not exist in this API."))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "memoryhub"}
