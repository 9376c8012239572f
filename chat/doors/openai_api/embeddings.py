"""``/v1/embeddings``: the vectors that this installation finds memories by."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from chat.doors.openai_api.errors import ModelMissing
from chat.prompting.text import tokens
from memoryhub.database.locks import release_connection
from memoryhub.errors import Invalid
from memoryhub.languages import grouped
from memoryhub.llm.base import Embedder
from memoryhub.llm.errors import ModelNotLocal
from memoryhub.llm.metering import Meter, metered
from memoryhub.llm.registry import embedder_is_local, get_embedder
from workspaces.models import Purpose, User, Workspace
from workspaces.spending.budgets import require_budget
from workspaces.spending.ledger import record
from workspaces.spending.rates import Account, Rate

MOST_TEXTS = 512
MOST_CHARACTERS = 1_000_000  # of all texts


def embed(body: Any, workspace: Workspace, person: User, *, now: datetime) -> dict[str, Any]:
    """The answer to one request. Blocks. Raises Invalid, ModelMissing, ModelNotLocal, BudgetReached, or an
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
        raise Invalid(
            fields={"input": _("may have at most %(texts)s texts and %(characters)s characters") % most}
        )
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
