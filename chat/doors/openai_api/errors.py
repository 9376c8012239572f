"""Errors in OpenAI's form, ``{error: {message, type, param, code}}``, and in Anthropic's, ``{type, error: {type,
message}}``.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from rest_framework.response import Response

from memoryhub.errors import DomainError, NotFound, Unavailable
from memoryhub.llm import errors as llm
from workspaces.api.exceptions import exception_handler
from workspaces.spending.budgets import BudgetReached

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
CODES = {"bad_key": "invalid_api_key", "not_signed_in": "invalid_api_key"}
# Whose fault it is: what the model's server wants of us is none of the caller's, whose key is another.
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


SPENT = "insufficient_quota"  # what OpenAI's libraries do not try again


def body_of(status: int, message: str, code: str, param: str | None = None) -> dict[str, Any]:
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_of(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for what we raise ourselves."""
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
    """For the views of ``/v1``: whatever goes wrong, as OpenAI's libraries read it."""
    if isinstance(exception, DomainError | llm.ModelError | llm.EmbedderError):
        status, body, headers = error_of(exception)
        return Response(body, status=status, headers=headers)
    response = exception_handler(exception, context)
    if not isinstance(response, Response) or not isinstance(response.data, dict):
        return response
    said = response.data["error"]
    if response.status_code == 422:
        response.status_code = 400
    code = CODES.get(said["code"], said["code"])
    param = next(iter(said.get("fields", ())), None)
    response.data = body_of(response.status_code, said["message"], code, param)
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
    """The same error in Anthropic's form. Coding tools shorten a conversation at the words "prompt is too long"."""
    said = body["error"]
    kind = "billing_error" if said["code"] == SPENT else ANTHROPIC_TYPES.get(status)
    kind = kind or ("invalid_request_error" if status < 500 else "api_error")
    too_long = "prompt is too long: " if said["code"] == "context_length_exceeded" else ""
    return {"type": "error", "error": {"type": kind, "message": f"{too_long}{said['message']}"}}


def anthropic_exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponseBase | None:
    """Turn every exception into an error response in Anthropic's format."""
    response = openai_exception_handler(exception, context)
    if isinstance(response, Response) and isinstance(response.data, dict):
        if response.data["error"]["code"] == SPENT:
            response["X-Should-Retry"] = "false"  # a rate limit is tried again
        response.data = as_anthropic(response.status_code, response.data)
    return response
