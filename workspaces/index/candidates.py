"""The two arms of hybrid recall, meaning and words, in one statement; its cost follows the place, not the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db import connection
from django.utils.translation import gettext as _
from psycopg import sql

from memoryhub.database import queries
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import ModelNotLocal
from workspaces.index import words
from workspaces.models import Agent, EmbeddingModel, User, Workspace
from workspaces.models.index import AGENT_PLACES, Kind, kind_numbered
from workspaces.policy import Reach

# Candidates requested from an index: ef_search, which bounds how many rows pgvector's HNSW returns, must not be below.
EF_SEARCH = 400
BITS_OVERSAMPLED = 4  # times as many by the bits alone, ordered by the exact distance afterwards
MOST_DIMENSIONS_OF_HALFVEC_INDEX = 4000  # pgvector's limit; above, an index holds one bit a dimension

_AREA = """
SELECT a.label, a.name, a.base_url, a.dimension,
       (SELECT json_agg(json_build_array(place, kind, model, dimension)) FROM workspaces_vectorindex
        WHERE place = ANY(%(places)s::bigint[])),
       ARRAY(SELECT DISTINCT kind FROM workspaces_placestatistics WHERE place = ANY(%(places)s::bigint[])),
       (SELECT local_only FROM workspaces_workspace WHERE id = %(workspace)s::bigint),
       own.local_only, own.id
FROM workspaces_membership LEFT JOIN workspaces_embeddingmodel a ON a.state = 'active'
LEFT JOIN workspaces_workspace own ON own.default_of_id = %(user)s::bigint
WHERE workspace_id = %(workspace)s::bigint AND user_id = %(user)s::bigint
"""
# One kind's nearest of some places, in the slim table alone; without an index, exactly (docs/recall.md).
_EXACT = """
SELECT ref, embedding <=> %(vector)s::halfvec AS distance
FROM workspaces_passagevector
WHERE live AND model = %(model)s::text AND dimension = %(dimension)s::int
  AND place = ANY(%(scanned)s::bigint[]) AND kind = {kind}
ORDER BY distance LIMIT %(limit)s::int
"""
# Numbers and the model stand in the text and not in parameters: a partial index is used only where the planner can
# prove its condition.
_OF_INDEX = "live AND model = {model} AND dimension = {dimension} AND place = {place} AND kind = {kind}"
_HALFVEC = f"""
SELECT ref, (embedding::halfvec({{dimension}})) <=> %(vector)s::halfvec({{dimension}}) AS distance
FROM workspaces_passagevector
WHERE {_OF_INDEX}
ORDER BY (embedding::halfvec({{dimension}})) <=> %(vector)s::halfvec({{dimension}}) LIMIT %(limit)s::int
"""  # noqa: S608  constants only
_BITS = f"""
SELECT ref, embedding <=> %(vector)s::halfvec AS distance FROM (
    SELECT ref, embedding FROM workspaces_passagevector
    WHERE {_OF_INDEX}
    ORDER BY (binary_quantize(embedding)::bit({{dimension}}))
             <~> binary_quantize(%(vector)s::halfvec({{dimension}}))::bit({{dimension}}) LIMIT %(oversampled)s::int
) by_bits ORDER BY distance LIMIT %(limit)s::int
"""  # noqa: S608
_BOTH = """
WITH {terms}, near AS (
    SELECT ref, distance FROM ({near}) near ORDER BY distance LIMIT %(limit)s::int
), best AS (
    SELECT ref FROM scores ORDER BY score DESC, ref DESC LIMIT %(limit)s::int
), found AS (
    SELECT ref, min(distance) AS distance
    FROM (SELECT ref, distance FROM near UNION ALL SELECT ref, NULL FROM best) arms GROUP BY ref
)
SELECT f.ref, 1 - f.distance, {share}
FROM found f LEFT JOIN scores s ON s.ref = f.ref
"""
_BOTH_UNCOUNTED = """
WITH {terms}, near AS ({near})
SELECT coalesce(n.ref, s.ref), 1 - n.distance, coalesce(s.share, 0)
FROM near n FULL JOIN scores s ON s.ref = n.ref
"""


class Candidate(NamedTuple):
    """A passage that one of the arms found. ``cosine``: None if only its words match. ``words``: its share of the
    query's word weight.
    """

    kind: int
    ref: int
    cosine: float | None
    words: float


@dataclass(frozen=True)
class SearchArea:
    """Scopes that a person's recall searches: the workspace, their own, and in a chat with an assistant that one's, and
    which of them have vector indexes.

    ``active`` is the model whose vectors are compared (its label, name, address and dimension alone were read); None
    where nothing was ever embedded. ``counted``: the kinds of which a place has enough for counts made beforehand.
    """

    workspace: int
    user: int
    indexed: frozenset[tuple[int, int, str, int]] = frozenset()  # place, kind, model, dimension
    active: EmbeddingModel | None = None
    agent: int | None = None
    counted: frozenset[int] = frozenset()
    local_only: bool = True  # this workspace's texts never leave this machine
    personal: bool = False  # the person's own place is among them
    personal_alone: bool = False  # and the only one of them
    personal_stays: bool = True  # and its texts never leave this machine
    home: int | None = None  # the person's own workspace, in which their personal memories lie

    @property
    def places(self) -> list[int]:
        if self.personal_alone:
            return [-self.user]
        own = [] if self.agent is None else [AGENT_PLACES + self.agent]
        return [self.workspace, *([-self.user] if self.personal else []), *own]

    @property
    def workspaces(self) -> list[int]:
        """Return the workspaces that hold the rows of these scopes."""
        home = [] if self.home is None else [self.home]
        if self.personal_alone:
            return home
        return list({self.workspace, *(home if self.personal else [])})

    def without_what_stays(self) -> SearchArea:
        """Return the area without what stays here, for a model elsewhere in a workspace that allows it."""
        return replace(self, personal=self.personal and not self.personal_stays)

    @property
    def params(self) -> dict[str, Any]:
        return {
            "workspace": self.workspace,
            "user": self.user,
            "agent": self.agent,
            "places": queries.bigints(self.places),
            "workspaces": queries.bigints(self.workspaces),
        }


def search_area(workspace_id: int, user_id: int, agent_id: int | None = None) -> SearchArea | None:
    """Return the widest area that this person may search; None for a non-member. One query."""
    found = queries.rows(_AREA, SearchArea(workspace_id, user_id, agent=agent_id, personal=True).params)
    if not found:
        return None
    label, name, base_url, dimension, indexed, counted, local_only, personal_stays, home = found[0]
    active = EmbeddingModel(label=label, name=name, base_url=base_url, dimension=dimension) if label else None
    return SearchArea(
        workspace_id,
        user_id,
        frozenset(map(tuple, indexed or [])),
        active,
        agent_id,
        frozenset(counted),
        local_only=bool(local_only),
        personal=True,
        personal_stays=bool(personal_stays),
        home=home,
    )


def area_within(reach: Reach, workspace: Workspace, user: User, agent: Agent | None = None) -> SearchArea:
    """Return the area to search for texts that go so far. NotFound for a stranger, ModelNotLocal if none may,
    Invalid for an assistant of another workspace.
    """
    where = search_area(workspace.pk, user.pk, agent.pk if agent else None)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if agent is not None and agent.workspace_id != workspace.pk:
        raise Invalid(fields={"agent_id": _("is not an assistant of this workspace")})
    if reach.leaves:
        if where.local_only:  # switched on since the caller looked
            raise ModelNotLocal
        where = where.without_what_stays()
    return replace(where, personal=where.personal and reach.personal)


def find_candidates(
    query: str,
    embedded: tuple[str, Vectors],
    where: SearchArea,
    limit: int,
    *,
    kinds: tuple[int, ...],
    exact: bool = False,
) -> list[Candidate]:
    """Return the best ``limit`` passages of each arm and kind, unordered, each with its share of the query's words. One
    query a kind.

    Part of a transaction where a place has an index. ``exact``, for measuring, uses none and leaves no word out.
    """
    return [
        candidate
        for number in kinds
        for candidate in _of_kind(kind_numbered(number), query, embedded, where, limit, exact=exact)
    ]


def _of_kind(
    of: Kind, query: str, embedded: tuple[str, Vectors], where: SearchArea, limit: int, *, exact: bool
) -> list[Candidate]:
    model, vector = embedded
    with_index = [
        place
        for place in where.places
        if not exact and (place, of.number, model, len(vector)) in where.indexed
    ]
    given = {
        **where.params,
        "query": query,
        "model": model,
        "vector": queries.halfvec(vector),
        "dimension": len(vector),
        "limit": limit,
        "oversampled": BITS_OVERSAMPLED * limit,
        "scanned": queries.bigints(place for place in where.places if place not in with_index),
        "postings": words.UNBOUNDED if exact else words.POSTINGS,
    }
    arms = [_EXACT.format(kind=of.number)]
    arms += [_by_index(model, len(vector), place, of.number) for place in with_index]
    if with_index:
        by_bits = len(vector) > MOST_DIMENSIONS_OF_HALFVEC_INDEX
        wide = min(1000, BITS_OVERSAMPLED * limit) if by_bits else max(EF_SEARCH, min(1000, limit))
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL hnsw.ef_search = {wide}")
    counted = of.number in where.counted or bool(with_index) or exact
    statement = (_BOTH if counted else _BOTH_UNCOUNTED).format(
        terms=words.terms(of, counted=counted),
        share=words.share(of),
        near=" UNION ALL ".join(f"({arm})" for arm in arms),
    )
    return [
        Candidate(of.number, ref, cosine, min(1.0, share))
        for ref, cosine, share in queries.rows(statement, given)
    ]


def _by_index(model: str, dimension: int, place: int, kind: int) -> str:
    """Return the statement that uses the index of this scope and kind."""
    statement = _HALFVEC if dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    quoted = sql.Literal(model).as_string(None).replace("%", "%%")
    return statement.format(dimension=dimension, place=place, kind=kind, model=quoted)
