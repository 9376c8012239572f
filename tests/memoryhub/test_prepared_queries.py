"""Prepared querysets return the same as Django's."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import Memory
from memoryhub.database.queries import PreparedQuery
from tests.conftest import Cast
from tests.factories import make_memory
from workspaces.models import Membership, User, Workspace

WORKSPACE = PreparedQuery(
    lambda user, public_id: Workspace.objects.visible_to(User(pk=user)).filter(public_id=public_id),
    user=int,
    public_id=str,
)


def described(workspace: Any, since: Any) -> Any:
    rows = Memory.objects.filter(workspace=workspace, created_at__gt=since)
    return rows.select_related("author", "workspace__connection", "may_replace").order_by("id")


MEMORIES = PreparedQuery(described, workspace=int, since=datetime)


def test_it_gives_what_the_queryset_gives_for_each_of_the_values(cast: Cast) -> None:
    for user in (cast.owner, cast.editor, cast.viewer):
        ready = WORKSPACE.first(user=user.pk, public_id=cast.workspace.public_id)
        plain = Workspace.objects.visible_to(user).get(pk=cast.workspace.pk)
        assert ready is not None
        assert vars(ready) | {"_state": None} == vars(plain) | {"_state": None}  # the role included
        assert not ready._state.adding
        assert WORKSPACE.count(user=user.pk, public_id=cast.workspace.public_id) == 1
    assert WORKSPACE.count(user=cast.stranger.pk, public_id=cast.workspace.public_id) == 0
    assert WORKSPACE.first(user=cast.stranger.pk, public_id=cast.workspace.public_id) is None


def test_relations_and_json_come_as_django_makes_them(cast: Cast) -> None:
    older = make_memory("The house is blue", cast.owner, cast.workspace)
    newer = make_memory("The house is green", cast.owner, cast.workspace)
    Memory.objects.filter(pk=newer.pk).update(may_replace=older, source_details={"a": [1, None]}, author=None)
    since = timezone.now() - timedelta(days=1)
    with CaptureQueriesContext(connection) as logged:
        captured = MEMORIES.all(workspace=cast.workspace.pk, since=since)
    assert len(logged) == 1
    for found in (captured, MEMORIES.all(workspace=cast.workspace.pk, since=since)):
        with CaptureQueriesContext(connection) as more:
            assert [each.pk for each in found] == [older.pk, newer.pk]
            assert found[0].author == cast.owner
            assert found[0].may_replace is None
            assert found[1].author is None
            assert found[1].may_replace == older
            assert found[1].workspace.connection is None
            assert found[1].source_details == {"a": [1, None]}
            assert found[1].created_at == newer.created_at
        assert not more.captured_queries
    assert MEMORIES.all(workspace=cast.workspace.pk, since=timezone.now()) == []
    assert MEMORIES.all(workspace=cast.workspace.pk, since=since, limit=1) == [older]


def test_a_value_that_the_query_does_not_ask_for_is_a_mistake(cast: Cast) -> None:
    ready = PreparedQuery(lambda user: Membership.objects.all(), user=int)
    with pytest.raises(TypeError, match="does not ask for"):
        ready.all(user=cast.owner.pk)


def test_what_the_query_says_itself_stands_in_its_text_so_that_partial_indexes_serve_it(cast: Cast) -> None:
    odd = "100% 'sure' %s"
    memory = make_memory(odd, cast.owner, cast.workspace)
    make_memory("Something else", cast.owner, cast.workspace)
    ready = PreparedQuery(
        lambda workspace: Memory.objects.filter(
            workspace=workspace, content__contains="% 'sure' %", source_type="user"
        ).order_by(),
        workspace=int,
    )
    with CaptureQueriesContext(connection) as captured:
        assert ready.all(workspace=cast.workspace.pk) == [memory]
    assert "'user'" in captured.captured_queries[0]["sql"]
    assert ready.all(workspace=cast.workspace.pk) == [memory]
    assert ready._compiled is not None
    assert ready._compiled.statement.count("%s") == 1
    assert "'user'" in ready._compiled.statement
