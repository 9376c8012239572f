"""Tombstones, by which permanently forgotten texts are recognized without being stored, and counts of refused memories.

A tombstone is the HMAC of a text, normalized by ``essence``, for one scope (docs/decisions/0012). The HMAC's key is
stored outside of the database, so that someone who can read only the database cannot test guesses.
"""

import hashlib
import hmac
import logging
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils.translation import gettext_lazy as later

from memories.judging.duplicates import normalise
from memories.models import Memory, SourceType, Tombstone
from memories.writing.drafts import Draft
from memoryhub.database import queries
from memoryhub.errors import Conflict, DomainError, Invalid, SecretRefused, Sensitive
from memoryhub.monitoring import metrics
from workspaces.models import User

_LIFT = "DELETE FROM memories_tombstone WHERE digest = %(digest)s AND place = ANY(%(places)s::bigint[])"
MEANT = frozenset("%#")  # punctuation that changes the meaning: 5 %, C#


class WasForgotten(Conflict):
    """The error that a program wants to save a text that was permanently forgotten in this scope."""

    code = "forgotten"
    default_message = later("Not saved: this was forgotten for good here.")


def essence(text: str) -> str:
    """Return the text without case, width, spacing, punctuation and invisible characters, so that copies match.

    Punctuation inside a number is kept: ``3.5`` is not ``35``.
    """
    folded = normalise(text)
    signs = []
    for at, sign in enumerate(folded):
        group = unicodedata.category(sign)[0]
        inside_a_number = folded[at - 1 : at].isdigit() and folded[at + 1 : at + 2].isdigit()
        if group in "LNMS" or sign in MEANT or (group == "P" and inside_a_number):
            signs.append(sign)
    return "".join(signs) or folded


def digest(text: str) -> str:
    return hmac.new(settings.FORGET_KEY.encode(), essence(text).encode(), hashlib.sha256).hexdigest()


def add_tombstones(texts: Iterable[tuple[int, str]], *, now: datetime) -> int:
    """Store tombstones for these (scope number, text) pairs. Return their number, with those that already existed."""
    wanted = {(place, digest(text)) for place, text in texts if text}
    Tombstone.objects.bulk_create(
        [Tombstone(place=place, digest=text_digest, created_at=now) for place, text_digest in sorted(wanted)],
        ignore_conflicts=True,
    )
    return len(wanted)


def forgotten(drafts: Sequence[Draft], *, by: User | None) -> list[bool]:
    """Return for each draft whether a tombstone forbids that ``by`` (None: a job) stores it. One query."""
    return forgotten_texts([(draft, draft.content) for draft in drafts], by=by)


def forgotten_texts(draft_texts: Sequence[tuple[Draft, str]], *, by: User | None) -> list[bool]:
    """Return for each (draft, text) whether a tombstone forbids storing this text with the draft. One query."""
    digests = [{(place, digest(text)) for place in _places(draft, by)} for draft, text in draft_texts]
    there = _there(set().union(*digests))
    return [bool(pairs & there) for pairs in digests]


def forbids(draft: Draft, *, by: User | None) -> bool:
    """Return whether a tombstone forbids storing the draft. If a person saves it, delete the tombstone instead.

    Call this in the transaction that stores the draft, after ``one_writer_at_a_time``. One query.
    """
    if by is None or draft.is_automatic or draft.source_type == SourceType.IMPORT:
        return forgotten([draft], by=by)[0]
    if not draft.waits_for_review:  # otherwise approving it lifts the tombstone
        _lift(_places(draft, by), draft.content)
    return False


def forbids_restore(memory: Memory, *, by: User | None) -> bool:
    """Return whether a tombstone forbids restoring the memory. A person who restores it deletes the tombstone."""
    if by is None:
        return bool(_there({(memory.place, digest(memory.content))}))
    _lift([memory.place], memory.content)
    return False


def check_edit(memory: Memory, changes: Mapping[str, Any], *, by: User | None) -> None:
    """Raise WasForgotten if a program gives a memory a forgotten text. A person's edit deletes the tombstones."""
    for text in filter(None, (changes.get("content"), changes.get("summary"))):
        if by is not None:
            _lift([memory.place], text)
        elif _there({(memory.place, digest(text))}):
            raise WasForgotten


def _lift(places: Collection[int], text: str) -> None:
    queries.rows(_LIFT, {"places": places, "digest": digest(text)})


def _places(draft: Draft, by: User | None) -> set[int]:
    """Return the scopes whose tombstones forbid this draft.

    The author's personal scope counts unless somebody else saves, who must not learn what the author forgot.
    """
    author = draft.author if by in (None, draft.author) else None
    return {draft.place, draft.workspace.pk} | ({-author.pk} if author else set())


def _there(wanted: set[tuple[int, str]]) -> set[tuple[int, str]]:
    if not wanted:
        return set()
    places, digests = {place for place, _ in wanted}, {digest for _, digest in wanted}
    tombstones = Tombstone.objects.filter(place__in=places, digest__in=digests)
    return wanted & set(tombstones.values_list("place", "digest"))


logger = logging.getLogger(__name__)
OTHER_SOURCE = "other"
_QUICK = "SET LOCAL lock_timeout = '250ms'"
_COUNT = """
INSERT INTO memories_refusal (day, workspace_id, source_type, kind, number) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (workspace_id, day, source_type, kind) DO UPDATE SET number = memories_refusal.number + excluded.number
"""


@contextmanager
def counted(workspace_id: int, source_type: str, now: datetime) -> Iterator[None]:
    """Count a refusal raised inside the ``with`` block, and let it propagate."""
    try:
        yield
    except (Invalid, WasForgotten) as refusal:
        count_refusals([refusal], workspace_id, source_type, now)
        raise


def count_refusals(
    refusals: Iterable[DomainError], workspace_id: int, source_type: str, now: datetime
) -> None:
    """Count refusals, inside a transaction after its commit, so that no lock is held until then.

    Never raises and waits at most 250 ms for a lock, because losing a count is better than failing the caller.
    """
    kinds: Counter[str] = Counter()
    for refusal in refusals:
        metrics.REFUSED.labels(refusal.code).inc()
        kinds[kind_of(refusal)] += 1
    source = source_type if source_type in SourceType.values else OTHER_SOURCE  # labels may be any text
    day = now.astimezone(UTC).date()
    for kind, number in kinds.items():
        transaction.on_commit(partial(_count, day, workspace_id, source, kind, number), robust=True)


def kind_of(refusal: DomainError) -> str:
    """Return the kind of a refused credential, and of other refusals the error's code, such as "forgotten"."""
    if isinstance(refusal, SecretRefused) and not isinstance(refusal, Sensitive):
        return refusal.kind or refusal.code
    return refusal.code


def _count(day: date, workspace_id: int, source: str, kind: str, number: int) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_QUICK)
            cursor.execute(_COUNT, [day, workspace_id, source, kind, number])
    except DatabaseError as error:
        logger.warning("A refusal was not counted: %s", type(error).__name__)
