"""Kinds of rows that can be found: each app above registers what the index has to know of its tables.

The index imports none of them and names none of their tables: its statements are made of what is registered here. Rows
of a kind are its passages; in the index they are a ``kind`` (the number) and a ``ref`` (the row's key).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import Model, QuerySet

from memoryhub.database import queries


class Passage(Protocol):
    """A row of such a table."""

    pk: Any

    @property
    def place(self) -> int:
        """See ``workspaces.models.kinds``."""


@dataclass(frozen=True)
class Kind:
    """``place``, ``here`` and ``own`` are SQL over the table's own columns, under their bare names.

    The table needs a trigger too, so that nothing deleted is found, however it was deleted (migration 0014)::

        CREATE TRIGGER … AFTER DELETE ON … REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
        EXECUTE FUNCTION workspaces_forget_passages(number, words, place)
    """

    number: int  # stands in every row of the index: never changed, never used again
    name: str  # "memory"
    model: type[Model]  # its rows are ``Passage``s
    place: str
    words: str  # the SQL function (row of the table) → (lexeme text, count float8), made with ``workspaces_words``
    here: str  # true of what is counted with the place %(workspace)s; it should have an index
    own: str = ""  # the same of the person's place, %(user)s; empty where there is nothing personal
    text: str = "content"  # the field that is embedded
    heading: str = ""  # the field that is embedded before it, a line apart
    excerpt: str = ""  # the field with the messages around it, which has a share in the vector
    gone_at: str = (
        "deleted_at"  # the field that takes a row out of use; empty where rows are only ever deleted
    )
    stays: str = "workspace__local_only"  # the lookup that is true of what never leaves this machine
    queue: Callable[[list[int]], object] | None = None  # embeds these in a job of its own; None: the index's

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    @property
    def live(self) -> str:
        """SQL, over a row ``m``."""
        return f"m.{self.gone_at} IS NULL" if self.gone_at else "true"

    def rows(self) -> QuerySet[Any]:
        """Return the rows in use."""
        return self.model._default_manager.filter(**({self.gone_at: None} if self.gone_at else {}))

    def is_live(self, row: Passage) -> bool:
        return not self.gone_at or getattr(row, self.gone_at) is None

    def text_of(self, row: Passage) -> tuple[str, str]:
        """Its text, under its heading, and its excerpt."""
        heading = getattr(row, self.heading) if self.heading else ""
        text = "\n".join(filter(None, (heading, getattr(row, self.text))))
        return text, getattr(row, self.excerpt) if self.excerpt else ""

    @property
    def read(self) -> list[str]:
        """The fields that ``text_of`` reads."""
        return [field for field in (self.heading, self.text, self.excerpt) if field]


def of_places(of: Kind, refs: Iterable[int], *, within: Collection[int] = ()) -> dict[str, str]:
    """``refs`` and ``places``, for a statement about what the index has of these rows: said beforehand, no part of its
    tables is looked at but those that the rows' places are in. One query, of no other part of their own table either
    where it is known ``within`` which workspaces they lie.
    """
    given = {"refs": queries.bigints(refs), "within": queries.bigints(within)}
    statement = _PLACES.format(place=of.place, table=of.table) + (WITHIN if within else "")
    found = queries.rows(statement, given)
    return given | {"places": queries.bigints(place for (place,) in found)}


WITHIN = " AND m.workspace_id = ANY(%(within)s::bigint[])"
_PLACES = "SELECT DISTINCT {place} FROM {table} m WHERE m.id = ANY(%(refs)s::bigint[])"
_kinds: dict[int, Kind] = {}


def register_kind(kind: Kind) -> None:
    if _kinds.setdefault(kind.number, kind) != kind:
        raise ValueError(f"{kind.name} and {_kinds[kind.number].name} have one number")


def kinds() -> list[Kind]:
    return [kind for _, kind in sorted(_kinds.items())]


def kind(number: int) -> Kind:
    return _kinds[number]


def kind_of(row: Passage) -> Kind:
    return next(kind for kind in _kinds.values() if isinstance(row, kind.model))


# Places as numbers: where recall looks for a passage (docs/decisions/0011).

AGENT_PLACES = 2**40  # above every workspace's key: an assistant's place is this and its own key


def place_of(workspace_id: int, *, owner_id: int | None = None, agent_id: int | None = None) -> int:
    """The workspace's key; what is personal: its owner's, negated; an assistant's: ``AGENT_PLACES`` and its key."""
    if owner_id is not None:
        return -owner_id
    return workspace_id if agent_id is None else AGENT_PLACES + agent_id
