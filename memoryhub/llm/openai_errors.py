"""Conversion of errors of OpenAI-compatible servers to ModelError: each server words the same failure differently."""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import httpx2
import openai
from opentelemetry.trace import Span

from memoryhub.llm import errors
from memoryhub.llm.addresses import AddressRange, AddressRefused
from memoryhub.llm.errors import ModelError
from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.openai_replies import error_text
from memoryhub.monitoring.tracing import failed, model_call
from memoryhub.stored_messages import kept

# All errors that a call may raise. ValueError stands for invalid JSON (JSONDecodeError, UnicodeDecodeError).
VENDOR_ERRORS: Final = (openai.OpenAIError, httpx2.HTTPError, ValueError)

MAX_WAIT_SECONDS = 5.0
RETRY_DELAYS_SECONDS = (0.25, 1.0)

# Messages of OpenAI, Azure, vLLM, llama.cpp, Ollama, LM Studio, and Anthropic's and Mistral's compatible endpoints.
OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context|context (length|size|window)"
    r"|prompt is too long|too many tokens|exceeds? the (available|model'?s) context",
    re.IGNORECASE,
)
FILTERED = re.compile(r"content_filter|content_policy|responsibleai", re.IGNORECASE)
LIMITED = re.compile(r"\b429\b|rate.?limit", re.IGNORECASE)
NO_CREDIT_LEFT = kept("The account of the model's endpoint has no credit left.")
NO_CREDIT = re.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)


def model_error(error: Exception, *, streaming: bool = False) -> errors.ModelError:
    """Convert an error to a ModelError. A lost connection is a ModelCut if the answer had begun (`streaming`)."""
    if isinstance(error, errors.ModelError):
        return error
    if isinstance(error, openai.APIStatusError):
        return _status_error(error)
    if isinstance(error, AddressRefused) or isinstance(error.__cause__, AddressRefused):
        return errors.ModelAddressRefused()
    if isinstance(error.__cause__, httpx2.ConnectTimeout):  # no request was sent yet
        return errors.ModelUnavailable(detail=str(error))
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return errors.ModelTimeout(detail=str(error))
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        detail = f"{error} {error.__cause__ or ''}".strip()
        return errors.ModelCut(detail=detail) if streaming else errors.ModelUnavailable(detail=detail)
    if isinstance(error, openai.APIResponseValidationError | ValueError):
        return errors.ModelBadReply(detail=str(error))
    if isinstance(error, openai.APIError):  # an error event inside a stream that began with status 200
        return _stream_error(error, streaming)
    return errors.ModelBadReply(detail=str(error))


def _status_error(error: openai.APIStatusError) -> errors.ModelError:
    status, detail = error.status_code, error_text(error)
    if 300 <= status < 400:
        return errors.ModelMoved()
    if OVERFLOW.search(detail) or status == 413:
        return errors.ModelContextOverflow(detail=detail)
    if status == 402 or (status == 429 and NO_CREDIT.search(detail)):
        return errors.ModelRefused(NO_CREDIT_LEFT, detail=detail)
    if status in (401, 403) and not FILTERED.search(detail):
        return errors.ModelRefused(detail=detail)
    if status == 429:
        return errors.ModelRateLimited(detail=detail, retry_after=_retry_after(error.response.headers))
    if status == 404:
        return errors.ModelNotFound(detail=detail)
    if status == 408:
        return errors.ModelTimeout(detail=detail)
    if status >= 500:
        return errors.ModelUnavailable(detail=detail, retry_after=_retry_after(error.response.headers))
    if FILTERED.search(detail):
        return errors.ContentFiltered(detail=detail)
    return errors.ModelBadRequest(detail=detail)


def _stream_error(error: openai.APIError, streaming: bool) -> errors.ModelError:
    detail = error_text(error)
    if OVERFLOW.search(detail):
        return errors.ModelContextOverflow(detail=detail)
    if FILTERED.search(detail):
        return errors.ContentFiltered(detail=detail)
    if LIMITED.search(detail):
        return errors.ModelRateLimited(detail=detail)
    return errors.ModelCut(detail=detail) if streaming else errors.ModelUnavailable(detail=detail)


def hide_from_log(failure: errors.ModelError, endpoint: Endpoint) -> errors.ModelError:
    """Make a failure safe to log: without a server's message or, for the operator's own server, without the API key."""
    if endpoint.address_range is not AddressRange.CONFIGURED:
        failure.about_the_text = True
    elif endpoint.api_key:
        failure.detail = failure.detail.replace(endpoint.api_key, "…")
    return failure


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds to wait from a Retry-After header, which holds seconds or a date; None if it is invalid."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def delay_before_retry(
    error: errors.ModelError, attempt: int, *, left: float = math.inf, after_silence: bool = False
) -> float | None:
    """Return the seconds before the next attempt; None if a retry is pointless or would take too long.

    Call it only if no output was passed on yet. `attempt` counts from 0. `left` is the rest of the timeout that all
    attempts share. `after_silence` allows one retry after a timeout; workers do not use it, because their own time
    limit would be exceeded.
    """
    if isinstance(error, errors.ModelTimeout):
        delay = RETRY_DELAYS_SECONDS[0]
        return delay if after_silence and attempt == 0 and delay < left else None
    if attempt >= len(RETRY_DELAYS_SECONDS):
        return None
    if not isinstance(error, errors.ModelUnavailable | errors.ModelRateLimited | errors.ModelCut):
        return None
    delay = RETRY_DELAYS_SECONDS[attempt] if error.retry_after is None else error.retry_after
    return delay if delay <= MAX_WAIT_SECONDS and delay < left else None


def embedder_error(error: errors.ModelError) -> errors.EmbedderError:
    """Convert a ModelError to the matching EmbedderError."""
    kind: type[errors.EmbedderError] = errors.EmbedderBadReply
    match error:
        case (
            errors.ModelUnavailable() | errors.ModelTimeout() | errors.ModelRateLimited() | errors.ModelCut()
        ):
            kind = errors.EmbedderUnavailable
        case errors.ModelRefused() | errors.ModelNotFound():
            kind = errors.EmbedderRefused
        case errors.ModelBadRequest() | errors.ModelContextOverflow() | errors.ContentFiltered():
            kind = errors.EmbedderBadRequest
    return kind(detail=error.detail, retry_after=error.retry_after)


T = TypeVar("T")


def call_with_retries(
    endpoint: Callable[[], Endpoint],
    ask: Callable[[Endpoint, Span, float], T],
    learns: Callable[[Exception], bool],
    failure_of: Callable[[Exception, Endpoint], ModelError],
    *,
    limit: float,
) -> T:
    """Call ``ask`` with an endpoint, the trace span and the seconds left, and return its result. Blocks.

    Retries at once if ``learns`` returns True for the error, and after a delay if the failure is temporary. Raises the
    error that ``failure_of`` returns if no retry is left. All attempts share the timeout of ``limit`` seconds.
    """
    attempt, deadline = 0, time.monotonic() + limit
    while True:
        at = endpoint()
        with model_call(at.model) as call:
            try:
                return ask(at, call, deadline - time.monotonic())
            except VENDOR_ERRORS as error:
                if learns(error):
                    continue
                failure = failure_of(error, at)
                delay = delay_before_retry(failure, attempt, left=deadline - time.monotonic())
                if delay is None:
                    raise failure from error
                failed(call, failure)
        attempt += 1
        time.sleep(delay)
