"""Failures of servers, and the error that each must become, streaming or not."""

from memoryhub.llm import errors
from tests.fakes.openai_server import Drop, Failure, Reply

NOT_RETRIED: list[tuple[str, Reply, type[errors.ModelError]]] = [
    ("wrong key", Failure(401, "Incorrect API key provided."), errors.ModelRefused),
    ("no rights", Failure(403, "You may not use this model."), errors.ModelRefused),
    ("no credit", Failure(429, "You exceeded your quota.", code="insufficient_quota"), errors.ModelRefused),
    ("payment required", Failure(402, "Top up."), errors.ModelRefused),
    (
        "unknown model",
        Failure(404, "The model does not exist.", code="model_not_found"),
        errors.ModelNotFound,
    ),
    ("busy for long", Failure(429, "Slow down.", headers={"retry-after": "60"}), errors.ModelRateLimited),
    (
        "busy until a date",
        Failure(429, "Slow down.", headers={"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}),
        errors.ModelRateLimited,
    ),
    (
        "OpenAI: too long",
        Failure(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        errors.ModelContextOverflow,
    ),
    (
        "llama.cpp: too long",
        Failure(400, "the request exceeds the available context size", type="exceed_context_size_error"),
        errors.ModelContextOverflow,
    ),
    ("body too large", Failure(413, "Payload too large."), errors.ModelContextOverflow),
    ("filtered", Failure(400, "The prompt was filtered.", code="content_filter"), errors.ContentFiltered),
    ("bad request", Failure(400, "messages must alternate"), errors.ModelBadRequest),
]
RETRIED: list[tuple[str, Reply, type[errors.ModelError]]] = [
    ("busy for a moment", Failure(429, "Slow down.", headers={"retry-after": "0"}), errors.ModelRateLimited),
    ("busy", Failure(429, "Slow down.", headers={"retry-after": "soon"}), errors.ModelRateLimited),
    ("broken", Failure(500, "Internal error."), errors.ModelUnavailable),
    ("starting", Failure(503, "Loading model"), errors.ModelUnavailable),
    ("no answer", Drop(), errors.ModelUnavailable),
]
