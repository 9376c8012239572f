"""Word index: one small row per lexeme and passage, and BM25 over them (docs/decisions/0003).

The SQL function ``workspaces_words`` (migration 0019) splits texts and queries into lexemes: English stems cut to six
letters, which match word forms of other languages as well as their stemmers do, and pairs of characters in scripts
without spaces. ``Kind.words`` counts the lexemes of a row. Each statement covers one kind, so that a word's rarity does
not depend on other kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from memoryhub.database import queries
from workspaces.models.index import WITHIN, Kind, of_places

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
    """Return the SQL of the query's ``terms`` and the ``scores`` that they give to passages of a kind.

    ``counted``: some scope has cached counts. Then ``share`` converts a score to a share; otherwise ``scores`` holds
    it.
    """
    passages = _live(of)
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


def _live(of: Kind) -> list[str]:
    """Return SQL expressions that count the live passages in the workspace and of the person."""
    return [
        _LIVE.format(table=of.table, live=of.live, where=where, most=COUNTED_AT_MOST)
        for where in (of.here, of.own)
        if where
    ]


def index_words(of: Kind, refs: Sequence[int], *, within: Collection[int] = ()) -> None:
    """Index the words of these passages. Call it in each transaction that changes or restores their text.

    ``within``: the workspaces of the passages, if known (``of_places``).
    """
    numbers = {"more": 1 + K1, "k1": K1, "rest": 1 - B, "b": B, "typical": TYPICAL_LENGTH}
    where = {"table": of.table, "live": of.live, "within": WITHIN if within else ""}
    statement = _INDEX.format(**vars(of), **where, **numbers)
    queries.rows(statement, {"refs": queries.bigints(refs), "within": queries.bigints(within)})


def unindex_words(of: Kind, refs: Sequence[int], *, within: Collection[int] = ()) -> int:
    """Remove the words of these passages.

    Call it before their text changes or they are deleted. Return the number removed.
    """
    statement = _UNINDEX.format(**vars(of), table=of.table, within=WITHIN if within else "")
    return len(queries.rows(statement, of_places(of, refs, within=within)))


def bm25(of: Kind, query: str, params: dict[str, Any], limit: int) -> dict[int, float]:
    """Return by key the share of the query's word weight in a passage, 0 to about 1, for the best ``limit``.

    The share is BM25 divided by the sum of the query's idf, so that different queries are comparable. ``params``: those
    of ``SearchArea.params``.
    """
    statement = _BM25.format(terms=terms(of, counted=True), share=share(of))
    given = {**params, "query": query, "limit": limit, "postings": POSTINGS}
    return {ref: min(1.0, float(share)) for ref, share in queries.rows(statement, given)}
