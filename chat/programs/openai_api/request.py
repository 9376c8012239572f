"""Requests of the OpenAI and Anthropic endpoints: parsing, token counts, and both forms of errors."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponseBase
from django.http.request import HttpHeaders
from django.utils.translation import gettext as _
from rest_framework.response import Response

from chat.prompting import context
from chat.prompting.prompt_text import tokens
from memories.writing.drafts import UNSTORABLE
from memoryhub.errors import DomainError, Invalid, NotFound, Unavailable
from memoryhub.llm import errors as llm
from memoryhub.llm.base import INSERTED
from memoryhub.llm.metering import Parts
from memoryhub.localization import grouped
from workspaces.api.exceptions import exception_handler
from workspaces.spending.budgets import BudgetReached

MOST_MESSAGES = 2_000
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
MEMORY = ("on", "read", "off")
# Parameters for MemoryHub, which the model does not receive: in a header such as ``X-MemoryHub-Workspace``, or in
# ``metadata``.
OURS = ("workspace", "assistant", "memory")
# Chat interfaces ask models for titles and tags, with the whole chat in one user message; coding tools ask for a
# summary in the same way. The user did not write such a message.
ERRAND = re.compile(
    r"\s*#+ Task:|.*<chat_history>|\s*Your task is to create a detailed summary of", re.DOTALL
)
ERRAND_BEGINS = 4_000  # characters at the beginning that ERRAND is matched with
# Tags in user messages around text that coding tools add: reminders, open files, outputs of commands, documents.
_TAGS = (
    "system-reminder|environment_details|ide_opened_file|ide_selection|command-name|command-message|command-args|"
    "local-command-stdout|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|document"
)
OF_PROGRAM = re.compile(rf"<({_TAGS})\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL)

Body = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A parsed request. ``body`` is passed to the model, except for the model's name."""

    body: Body
    model: str
    messages: list[Body]
    stream: bool = False
    workspace: str = ""
    assistant: str = ""
    memory: str = "on"  # or "read" (nothing is extracted), or "off" (nothing is recalled either)

    @property
    def question(self) -> int | None:
        """The index in ``messages`` of the user's last text. None without one, or if a program wrote it."""
        for at in range(len(self.messages) - 1, -1, -1):
            if self.messages[at]["role"] == "user" and (text := own_words(self.messages[at])):
                return None if ERRAND.match(text[:ERRAND_BEGINS]) else at
        return None


def read_asked(body: Any, headers: HttpHeaders) -> Asked:
    """Parse a request for a chat completion. Raises Invalid with the name of the field."""
    require_model(body)
    require_tools(body)
    messages = messages_of(body)
    for at, message in enumerate(messages):
        if not _is_message(message):
            raise Invalid(fields={f"messages[{at}]": _("must be a message with a role and content")})
    ours, rest = ours_of(body.get("metadata"), headers)
    passed = {name: value for name, value in body.items() if name != "metadata"}
    if rest:
        passed["metadata"] = rest
    return Asked(passed, body["model"], messages, body.get("stream") is True, **ours)


def messages_of(body: Body) -> list[Any]:
    """Return the list of messages, each of which is still to be checked. Raises Invalid."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= MOST_MESSAGES:
        raise Invalid(fields={"messages": _("must be a list of 1 to %s messages") % grouped(MOST_MESSAGES)})
    return messages


def token_limit(body: Body, name: str) -> int:
    """Return the limit in the field ``name``. Raises Invalid unless it is a whole number from 1."""
    limit = body.get(name)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise Invalid(fields={name: _("must be a whole number from 1")})
    return limit


def require_model(body: Any) -> None:
    """Raise Invalid unless the body is an object with the name of a model."""
    if not isinstance(body, dict):
        raise Invalid(_("Send a JSON object."), fields={"body": _("must be a JSON object")})
    if not isinstance(body.get("model"), str):
        raise Invalid(fields={"model": _("must be the name of a model")})
    if not isinstance(body.get("stream") or False, bool):
        raise Invalid(fields={"stream": _("must be true or false")})


def require_tools(body: Body) -> None:
    """Raise Invalid if the body has tools that are not a list of objects."""
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise Invalid(fields={"tools": _("must be a list of tools")})


def ours_of(metadata: Any, headers: HttpHeaders) -> tuple[dict[str, str], Body]:
    """Return the parameters for MemoryHub by name, and ``metadata`` without them. Raises Invalid for a wrong value.

    Each is read from its header or, if that is missing, from ``metadata``. Missing ones are "", and ``memory`` is "on".
    """
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise Invalid(fields={"metadata": _("must be an object")})
    parameters: dict[str, str] = {}
    for name in OURS:
        value = _header(headers, f"X-MemoryHub-{name}") or metadata.get(f"memoryhub_{name}") or ""
        if not isinstance(value, str) or len(value) > 200 or UNSTORABLE.search(value):
            raise Invalid(fields={f"memoryhub_{name}": _("must be a short text")})
        parameters[name] = value.strip()
    parameters["memory"] = parameters["memory"].lower() or "on"
    if parameters["memory"] not in MEMORY:
        raise Invalid(fields={"memoryhub_memory": _("must be one of %s") % ", ".join(MEMORY)})
    rest = {name: value for name, value in metadata.items() if not str(name).startswith("memoryhub_")}
    return parameters, rest


def _header(headers: HttpHeaders, name: str) -> str:
    """Return a header decoded as UTF-8 if possible. Django decodes headers as Latin-1, but most clients send UTF-8."""
    value = headers.get(name) or ""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def text_of(message: Body) -> str:
    """Return the text of a message, without images and files."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def own_words(message: Body) -> str:
    """Return the text of a user message without the passages that a program marked as its own."""
    return OF_PROGRAM.sub(" ", text_of(message)).strip()


def _is_message(message: object) -> bool:
    if not isinstance(message, dict) or INSERTED in message:
        return False
    if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
        return False
    return isinstance(message.get("content"), str | list | None)


def parts_of_body(body: Body) -> Parts:
    """Return the estimated tokens of the request: those of recalled memories, those of tools, and the total."""
    memory = tools = whole = 0
    for message in body["messages"]:
        text = text_of(message)
        size = tokens(text)
        whole += size
        memory += size if INSERTED in message and text.startswith(context.MEMORY) else 0
        tools += size if message.get("role") in {"tool", "function"} else 0
    described = tokens(json.dumps(body["tools"])) if body.get("tools") else 0
    return Parts(memory, 0, tools + described, whole + described)


TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
CODES = {"bad_key": "invalid_api_key", "not_signed_in": "invalid_api_key"}
# Statuses for errors of the model's server. A refused key there is not the client's key, so it is not a 401.
STATUSES: dict[type[Exception], tuple[int, str]] = {
    llm.ModelContextOverflow: (400, "context_length_exceeded"),
    llm.ModelBadRequest: (400, "invalid_request"),
    llm.ContentFiltered: (400, "content_filter"),
    llm.ModelNotLocal: (403, "model_not_local"),
    llm.ModelRateLimited: (429, "rate_limit_exceeded"),
    llm.ModelUnavailable: (503, "model_unavailable"),
    llm.ModelMissing: (503, "model_unavailable"),
    llm.ModelTimeout: (504, "model_timeout"),
    llm.EmbedderBadRequest: (400, "invalid_request"),
    llm.EmbedderUnavailable: (503, "embedder_unavailable"),
}


class ModelMissing(NotFound):
    code = "model_not_found"


SPENT = "insufficient_quota"  # OpenAI's libraries do not retry this code


def body_of(status: int, message: str, code: str, param: str | None = None) -> dict[str, Any]:
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_of(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers for an error of the domain, the model or the embedder."""
    if isinstance(error, BudgetReached):
        body = body_of(error.status, error.message, SPENT)
        return error.status, {"error": {**body["error"], "type": SPENT}}, {}
    if isinstance(error, DomainError):
        status = 400 if error.status == 422 else error.status
        return (
            status,
            body_of(status, error.message, error.code, next(iter(error.fields), None)),
            error.headers(),
        )
    assert isinstance(error, llm.ModelError | llm.EmbedderError)
    status, code = STATUSES.get(type(error), (502, error.code))
    wait = getattr(error, "retry_after", None) or Unavailable.retry_after
    headers = {"Retry-After": str(max(1, round(wait)))} if status in {429, 503} else {}
    param, server_code = getattr(error, "param", None), getattr(error, "server_code", None)
    return status, body_of(status, str(error), server_code or code, param), headers


def openai_exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponseBase | None:
    """Return the response for any exception of a ``/v1`` view, in OpenAI's format."""
    if isinstance(exception, DomainError | llm.ModelError | llm.EmbedderError):
        status, body, headers = error_of(exception)
        return Response(body, status=status, headers=headers)
    response = exception_handler(exception, context)
    if not isinstance(response, Response) or not isinstance(response.data, dict):
        return response
    error = response.data["error"]
    if response.status_code == 422:
        response.status_code = 400
    code = CODES.get(error["code"], error["code"])
    param = next(iter(error.get("fields", ())), None)
    response.data = body_of(response.status_code, error["message"], code, param)
    return response


ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def as_anthropic(status: int, body: dict[str, Any]) -> dict[str, Any]:
    """Return the same error in Anthropic's format.

    The message for a full context begins with "prompt is too long", so that coding tools shorten the conversation.
    """
    error = body["error"]
    kind = "billing_error" if error["code"] == SPENT else ANTHROPIC_TYPES.get(status)
    kind = kind or ("invalid_request_error" if status < 500 else "api_error")
    too_long = "prompt is too long: " if error["code"] == "context_length_exceeded" else ""
    return {"type": "error", "error": {"type": kind, "message": f"{too_long}{error['message']}"}}


def anthropic_exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponseBase | None:
    """Return the response for any exception of a view, in Anthropic's format."""
    response = openai_exception_handler(exception, context)
    if isinstance(response, Response) and isinstance(response.data, dict):
        if response.data["error"]["code"] == SPENT:
            response["X-Should-Retry"] = "false"  # clients would retry a 429
        response.data = as_anthropic(response.status_code, response.data)
    return response
