"""Hybrid search of passages: the word index with BM25 scores, and a statement that finds candidates by vectors and
words.

The index has one small row per lexeme and passage (docs/decisions/0003). The SQL function ``workspaces_words``
(migration 0019) splits texts and queries into lexemes. In English, these are stems cut to six letters, which match word
forms of other languages as well as their own stemmers do. In scripts without spaces, they are pairs of characters.

``Kind.words`` names the SQL function that counts the lexemes of a row. Each statement covers one kind of passage, so
that a word's rarity does not depend on other kinds. The cost of a recall depends on the size of the scope, not of the
table.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from psycopg import sql

from memoryhub.database import queries
from memoryhub.database.queries import current_connection
from memoryhub.errors import Invalid, NotFound
from memoryhub.llm.base import Vectors
from memoryhub.llm.errors import ModelNotLocal
from workspaces.data_policy import DataPolicy
from workspaces.models import Agent, EmbeddingModel, User, Workspace
from workspaces.models.index import AGENT_PLACES, WITHIN, Kind, of_places

ASKED = "unnest(ARRAY(SELECT lexeme FROM workspaces_words(%(query)s::text))) q(lexeme)"
# BM25 with k1 = 1.2, b = 0.3 and a fixed typical length, so that a weight does not depend on other passages.
K1, B, TYPICAL_LENGTH = 1.2, 0.3, 60.0
COUNTED_AT_MOST = 20_001  # limit for counting a scope's passages; above it the idf hardly changes
POSTINGS = 6_000  # limit of passages that a query's words select; the rarest words come first
UNBOUNDED = 10**9

_INDEX = """
INSERT INTO workspaces_passageword (place, lexeme, kind, ref, weight)
SELECT {place}, w.lexeme, {number}, m.id,
       w.count * {more} / (w.count + {k1} * ({rest} + {b} * w.length / {typical}))
FROM {table} m,
     LATERAL (SELECT lexeme, count, sum(count) OVER () AS length FROM {words}(m)) w
WHERE m.id = ANY(%(refs)s::bigint[]){within} AND {live}
ON CONFLICT (place, lexeme, kind, ref) DO UPDATE SET weight = excluded.weight
"""
_UNINDEX = """
DELETE FROM workspaces_passageword w USING {table} m
WHERE m.id = ANY(%(refs)s::bigint[]){within} AND w.place = {place} AND w.kind = {number} AND w.ref = m.id
  AND w.place = ANY(%(places)s::bigint[])
  AND w.lexeme IN (SELECT lexeme FROM {words}(m))
RETURNING 1
"""

# The number of passages: large scopes have a cached count (index.indexes), the others are counted here. Passages of a
# workspace's assistants are included, because excluding them would cost time and hardly change the idf.
_LIVE = "(SELECT count(*) FROM (SELECT 1 FROM {table} m WHERE {live} AND {where} LIMIT {most}) counted)"
_KNOWN = """(SELECT passage_count FROM workspaces_placestatistics
    WHERE place = {place} AND place = ANY(%(places)s::bigint[]) AND kind = {number})"""
# OFFSET 0 forces an index lookup per term. Otherwise, for a scope filled since the last ANALYZE, the planner expects
# one row and would read all its words.
_OF_TERM = """LATERAL (
    SELECT ref, weight FROM workspaces_passageword
    WHERE place = ANY(%(places)s::bigint[]) AND lexeme = t.lexeme AND kind = {number} OFFSET 0
) w"""
# The query's lexemes that occur in at most half of the passages, with their idf. The ``driving`` ones are the rarest,
# up to ``postings`` passages: they select passages. The others only add to the scores of selected passages.
_TERMS = f"""
n AS MATERIALIZED (
    SELECT greatest(1, {{passages}})::float8 AS passages
), frequencies AS (
    SELECT q.lexeme, sum(coalesce(c.passage_count, (
        SELECT count(*) FROM workspaces_passageword w
        WHERE w.place = p.place AND w.place = ANY(%(places)s::bigint[]) AND w.lexeme = q.lexeme AND w.kind = {{number}}
    )))::float8 AS df
    FROM {ASKED}
    CROSS JOIN unnest(%(places)s::bigint[]) p(place)
    LEFT JOIN workspaces_commonword c ON c.place = p.place AND c.lexeme = q.lexeme AND c.kind = {{number}}
    GROUP BY q.lexeme
), terms AS MATERIALIZED (
    SELECT lexeme, ln(1 + (greatest(passages, df) - df + 0.5) / (df + 0.5)) AS idf,
           sum(df) OVER (ORDER BY df, lexeme) <= %(postings)s::bigint AS driving
    FROM frequencies, n WHERE df <= greatest(3, passages / 2)
), scores AS MATERIALIZED (
    SELECT w.ref, sum(t.idf * w.weight) AS score
    FROM terms t CROSS JOIN {_OF_TERM}
    WHERE t.driving GROUP BY w.ref
)"""  # noqa: S608  constants only
# The score of a row ``f`` with its ``scores`` s, divided by the sum of the query's idf: a share from 0 to about 1, so
# that scores of different queries are comparable.
_SHARE = """
coalesce((coalesce(s.score, 0) + coalesce((
    SELECT sum(t.idf * w.weight)
    FROM terms t CROSS JOIN LATERAL (
        SELECT weight FROM workspaces_passageword
        WHERE place = ANY(%(places)s::bigint[]) AND lexeme = t.lexeme AND kind = {number} AND ref = f.ref OFFSET 0
    ) w
    WHERE NOT t.driving
), 0)) / (SELECT nullif(sum(idf), 0) FROM terms), 0)
"""
# The same for scopes without cached counts, which are small: every word is driving, and the simpler statement is
# planned faster. OFFSET 0 makes the count of a word run once instead of at each use.
_TERMS_UNCOUNTED = f"""
n AS MATERIALIZED (SELECT greatest(1, {{passages}})::float8 AS passages), terms AS MATERIALIZED (
    SELECT lexeme, ln(1 + (greatest(passages, df) - df + 0.5) / (df + 0.5)) AS idf
    FROM n, (SELECT q.lexeme, (SELECT count(*) FROM workspaces_passageword w WHERE w.place = ANY(%(places)s::bigint[])
                               AND w.lexeme = q.lexeme AND w.kind = {{number}})::float8 AS df
             FROM {ASKED} OFFSET 0) frequencies
    WHERE df <= greatest(3, passages / 2)
), scores AS MATERIALIZED (
    SELECT w.ref, sum(t.idf * w.weight) / (SELECT nullif(sum(idf), 0) FROM terms) AS share
    FROM terms t CROSS JOIN {_OF_TERM}
    GROUP BY w.ref
)"""  # noqa: S608
_BM25 = """
WITH {terms}
SELECT f.ref, {share} AS share
FROM (SELECT ref, score FROM scores ORDER BY score DESC, ref DESC LIMIT %(limit)s::int) f
JOIN scores s USING (ref)
ORDER BY share DESC, f.ref DESC
"""


@lru_cache
def terms(of: Kind, *, counted: bool) -> str:
    """Return the SQL of a word search's common table expressions, without WITH.

    The last two are ``terms``, the query's lexemes with their idf, and ``scores``, the passages of a kind that contain
    them. ``counted``: use the cached word counts of large scopes. ``scores`` then has a column ``score``, which the SQL
    of ``share`` divides by the sum of the idf. Otherwise it has the finished ``share``.
    """
    passages = [
        _LIVE.format(table=of.table, live=of.live, where=where, most=COUNTED_AT_MOST)
        for where in (of.here, of.own)
        if where
    ]
    if counted:
        at = ("%(workspace)s::bigint", "-(%(user)s::bigint)")
        passages = [
            f"coalesce({_KNOWN.format(place=place, number=of.number)}, {live})"
            for place, live in zip(at, passages, strict=False)
        ]
    statement = _TERMS if counted else _TERMS_UNCOUNTED
    return statement.format(number=of.number, passages=" + ".join(passages))


def share(of: Kind) -> str:
    return _SHARE.format(number=of.number)


def index_words(of: Kind, refs: Sequence[int], *, within: Collection[int] = ()) -> None:
    """Index the words of passages. Call it in each transaction that changes or restores their text.

    ``refs``: primary keys of the passages. ``within``: their workspaces, if known (``of_places``).
    """
    numbers = {"more": 1 + K1, "k1": K1, "rest": 1 - B, "b": B, "typical": TYPICAL_LENGTH}
    where = {"table": of.table, "live": of.live, "within": WITHIN if within else ""}
    statement = _INDEX.format(**vars(of), **where, **numbers)
    queries.rows(statement, {"refs": refs, "within": within})


def unindex_words(of: Kind, refs: Sequence[int], *, within: Collection[int] = ()) -> int:
    """Remove the words of passages from the index. Return the number of rows removed.

    Call it before their text changes or they are deleted. ``refs`` and ``within``: as for ``index_words``.
    """
    statement = _UNINDEX.format(**vars(of), table=of.table, within=WITHIN if within else "")
    return len(queries.rows(statement, of_places(of, refs, within=within)))


def bm25(of: Kind, query: str, params: dict[str, Any], limit: int) -> dict[int, float]:
    """Return the ``limit`` passages that match the query's words best, as {primary key: share}.

    The share is the passage's BM25 score divided by the sum of the query's idf. It is from 0 to 1, so that different
    queries are comparable. ``params``: those of ``SearchArea.params``.
    """
    statement = _BM25.format(terms=terms(of, counted=True), share=share(of))
    values = {**params, "query": query, "limit": limit, "postings": POSTINGS}
    return {ref: min(1.0, float(share)) for ref, share in queries.rows(statement, values)}


# Candidates requested from an index. ef_search limits the rows that pgvector's HNSW returns, so it must not be lower.
EF_SEARCH = 400
BITS_OVERSAMPLED = 4  # factor for candidates by bits, which are then ordered by exact distance
MOST_DIMENSIONS_OF_HALFVEC_INDEX = 4000  # pgvector's limit; above it an index stores one bit per dimension

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
# The nearest passages of one kind in some scopes, by an exact scan without a vector index (docs/recall.md).
_EXACT = """
SELECT ref, embedding <=> %(vector)s::halfvec AS distance
FROM workspaces_passagevector
WHERE live AND model = %(model)s::text AND dimension = %(dimension)s::int
  AND place = ANY(%(scanned)s::bigint[]) AND kind = {kind}
ORDER BY distance LIMIT %(limit)s::int
"""
# Numbers and the model are literals instead of parameters, because the planner uses a partial index only if it can
# prove the index's condition.
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
    """A passage found by vectors or words.

    ``ref``: its primary key. ``cosine``: None if only words match. ``words``: its share of the query's word weight
    (``bm25``).
    """

    kind: int
    ref: int
    cosine: float | None
    words: float


@dataclass(frozen=True)
class SearchArea:
    """The scopes of the index that a user's recall searches, and which of them have vector indexes.

    The scopes are the workspace, the user's own scope and, in a chat with an assistant, the assistant's. ``active``:
    the model whose vectors are compared, loaded with label, name, address and dimension only; None if nothing was
    embedded yet. ``counted``: the kinds with cached counts for at least one scope.
    """

    workspace: int
    user: int
    indexed: frozenset[tuple[int, int, str, int]] = frozenset()  # place, kind, model, dimension
    active: EmbeddingModel | None = None
    agent: int | None = None
    counted: frozenset[int] = frozenset()
    local_only: bool = True  # texts of this workspace never leave this machine
    personal: bool = False  # the person's own scope is searched too
    personal_alone: bool = False  # only the person's own scope is searched
    personal_stays: bool = True  # texts of the person's own scope never leave this machine
    home: int | None = None  # the person's own workspace, which stores their personal memories

    @cached_property
    def places(self) -> list[int]:
        if self.personal_alone:
            return [-self.user]
        own = [] if self.agent is None else [AGENT_PLACES + self.agent]
        return [self.workspace, *([-self.user] if self.personal else []), *own]

    @cached_property
    def workspaces(self) -> list[int]:
        """Return the primary keys of the workspaces whose rows these scopes contain.

        Besides the workspace it can be the user's personal workspace, which stores the rows of the user's own scope.
        """
        home = [] if self.home is None else [self.home]
        if self.personal_alone:
            return home
        return list({self.workspace, *(home if self.personal else [])})

    @cached_property
    def params(self) -> dict[str, Any]:
        return {
            "workspace": self.workspace,
            "user": self.user,
            "agent": self.agent,
            "places": self.places,
            "workspaces": self.workspaces,
        }


def search_area(workspace_id: int, user_id: int, agent_id: int | None = None) -> SearchArea | None:
    """Return all scopes that this user may search, or None if the user is not a member. One query."""
    rows = queries.rows(_AREA, SearchArea(workspace_id, user_id, agent=agent_id, personal=True).params)
    if not rows:
        return None
    label, name, base_url, dimension, indexed, counted, local_only, personal_stays, home = rows[0]
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


def area_within(
    policy: DataPolicy, workspace: Workspace, user: User, agent: Agent | None = None
) -> SearchArea:
    """Return the scopes that this user may search under ``policy``.

    Raises NotFound if the user is not a member, Invalid for an assistant of another workspace, and ModelNotLocal if
    results go to a remote model but the workspace is local-only.
    """
    where = search_area(workspace.pk, user.pk, agent.pk if agent else None)
    if where is None:
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))
    if agent is not None and agent.workspace_id != workspace.pk:
        raise Invalid(fields={"agent_id": _("is not an assistant of this workspace")})
    if policy.leaves and where.local_only:  # turned on since the caller checked
        raise ModelNotLocal
    own_stays = policy.leaves and where.personal_stays
    return replace(where, personal=where.personal and policy.personal and not own_stays)


def find_candidates(
    of: Kind,
    query: str,
    embedded: tuple[str, Vectors],
    where: SearchArea,
    limit: int,
    *,
    exact: bool = False,
) -> list[Candidate]:
    """Return the ``limit`` best passages of a kind by vector and as many by words, unordered. One query.

    ``embedded``: label of the model and vector of the query. ``exact``: use no index and no limits, for measuring. Call
    it in a transaction if a scope has a vector index.
    """
    model, vector = embedded
    with_index = [
        place
        for place in where.places
        if not exact and (place, of.number, model, len(vector)) in where.indexed
    ]
    params = {
        **where.params,
        "query": query,
        "model": model,
        "vector": vector,
        "dimension": len(vector),
        "limit": limit,
        "oversampled": BITS_OVERSAMPLED * limit,
        "scanned": [place for place in where.places if place not in with_index],
        "postings": UNBOUNDED if exact else POSTINGS,
    }
    arms = [_EXACT.format(kind=of.number)]
    arms += [_by_index(model, len(vector), place, of.number) for place in with_index]
    if with_index:
        by_bits = len(vector) > MOST_DIMENSIONS_OF_HALFVEC_INDEX
        wide = min(1000, BITS_OVERSAMPLED * limit) if by_bits else max(EF_SEARCH, min(1000, limit))
        with current_connection().cursor() as cursor:
            cursor.execute(f"SET LOCAL hnsw.ef_search = {wide}")
    counted = of.number in where.counted or bool(with_index) or exact
    statement = (_BOTH if counted else _BOTH_UNCOUNTED).format(
        terms=terms(of, counted=counted),
        share=share(of),
        near=" UNION ALL ".join(f"({arm})" for arm in arms),
    )
    return [
        Candidate(of.number, ref, cosine, min(1.0, share))
        for ref, cosine, share in queries.rows(statement, params)
    ]


def _by_index(model: str, dimension: int, place: int, kind: int) -> str:
    """Return the SQL that searches the vector index of this scope (``place``) and kind."""
    statement = _HALFVEC if dimension <= MOST_DIMENSIONS_OF_HALFVEC_INDEX else _BITS
    quoted = sql.Literal(model).as_string(None).replace("%", "%%")
    return statement.format(dimension=dimension, place=place, kind=kind, model=quoted)
