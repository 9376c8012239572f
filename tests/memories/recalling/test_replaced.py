"""A newer statement linked to an older one is used in its place, if the user may see it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from memories.models import Memory
from memories.recalling.recall import recall, with_newer
from tests.conftest import Cast
from tests.factories import HERE, make_memory

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
OLDER, NEWER = "The offsite takes place in Lisbon on May 1", "Porto, and a week later"


def test_newer_memory_precedes_the_older_one_and_costs_a_query_only_if_visible(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    cases: list[tuple[dict[str, Any], int, list[str]]] = [
        ({}, 1, [NEWER, OLDER]),
        ({"may_replace": None}, 0, [OLDER]),
        ({"deleted_at": NOW}, 0, [OLDER]),
        ({"expires_at": NOW - timedelta(days=1)}, 0, [OLDER]),
        ({"expires_at": NOW + timedelta(days=1)}, 1, [NEWER, OLDER]),
        ({"content": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "secret_rules": 0}, 2, [OLDER]),
        ({"scope": "user", "owner": "viewer"}, 1, [OLDER]),
    ]
    for changed, queries, expected in cases:
        older = make_memory(OLDER, cast.editor, cast.workspace, now=NOW)
        newer = make_memory(NEWER, cast.editor, cast.workspace, now=NOW)
        values = changed | ({"owner": cast.viewer} if "owner" in changed else {})
        Memory.objects.filter(pk=newer.pk).update(**{"may_replace": older} | values)
        found = recall("Where is the offsite?", cast.workspace, cast.editor, limit=1, policy=HERE, now=NOW)
        assert [item.memory for item in found.items] == [older], changed
        with django_assert_num_queries(queries):
            both = with_newer(found)
        assert [item.memory.content for item in both.items] == expected, changed
        Memory.objects.all().delete()


def test_the_newer_has_at_least_the_score_of_the_older(cast: Cast) -> None:
    older = make_memory(OLDER, cast.editor, cast.workspace, now=NOW)
    newer = make_memory(NEWER, cast.editor, cast.workspace, now=NOW)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older)
    found = recall("Where is the offsite?", cast.workspace, cast.editor, limit=2, policy=HERE, now=NOW)
    assert [item.memory for item in found.items] == [older, newer]
    first, second = with_newer(found).items
    assert (first.memory, second.memory, first.score) == (newer, older, found.items[0].score)
