"""Export and import of artifacts with every version and their visibility; and hostile lines."""

from typing import Any

import pytest
from django.utils import timezone

from chat.import_export import export
from chat.models import Chat, MessageRole
from memories.recalling.workspace_search import search_workspace
from tests.chat.import_export.test_exchange import (
    empty_installation,
    exported,
    imported_whole,
    lines_of,
    uploaded,
)
from tests.chat.import_export.test_exchange_rules import SECRET, WS, file_of
from tests.conftest import Cast
from tests.factories import (
    HERE,
    add_member,
    make_artifact,
    make_chat,
    make_message,
    make_user,
    make_workspace,
)
from workspaces import artifacts
from workspaces.access import default_workspace
from workspaces.models import Artifact, ArtifactVersion, Workspace
from workspaces.quotas import quota_of

pytestmark = pytest.mark.django_db


def stored_artifacts() -> list[dict[str, Any]]:
    """Return every artifact with its versions, without primary keys."""
    names = ("number", "title", "language", "content", "size", "by__username", "by_model", "created_at")
    return [
        {
            **{name: getattr(each, name) for name in ("public_id", "title", "kind", "language", "content")},
            **{name: getattr(each, name) for name in ("source_chat_id", "source_message_id", "version")},
            **{name: getattr(each, name) for name in ("created_at", "updated_at", "gist")},
            "workspace": each.workspace.name,
            "people": [str(each.created_by), str(each.owner)],
            "versions": list(each.versions.values(*names)),
        }
        for each in Artifact.objects.select_related("workspace", "created_by", "owner").order_by("created_at")
    ]


def test_they_go_along_with_all_versions_and_for_whom_they_are(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    said = make_message(chat, "Here it is", role=MessageRole.ASSISTANT)
    source = artifacts.Source(chat.public_id, said.public_id)
    plan = make_artifact(cast.owner, cast.workspace, "water\nthe fern", title="Plan", source=source)
    artifacts.update_artifact(
        plan, content="water\nthe cactus", by=cast.editor, now=timezone.now(), by_model=True
    )
    own = make_artifact(cast.owner, default_workspace(cast.owner), "my diary", kind="markdown", personal=True)
    make_artifact(cast.editor, cast.workspace, "eddie's own", personal=True)
    gone = make_artifact(cast.owner, cast.workspace, "deleted")
    artifacts.delete(gone, by=cast.owner, now=timezone.now())
    assert [line["title"] for line in lines_of(exported(cast.viewer, cast.workspace), "artifact")] == ["Plan"]
    data = exported(cast.owner)
    Artifact.objects.exclude(pk__in=[plan.pk, own.pk]).delete()
    before = stored_artifacts()
    Artifact.objects.all().delete()
    olive, *_ = empty_installation("olive", "eddie")
    done = imported_whole(olive, data)
    assert done.outcomes["artifact"]["new"] == 2
    # An import adds no members: what eddie changed is attributed to the importer.
    before[0]["versions"][0]["by__username"] = "olive"
    assert stored_artifacts() == before
    assert Artifact.objects.get(title="Plan").owner is None
    assert Artifact.objects.get(content="my diary").workspace == default_workspace(olive)
    launch = Workspace.objects.get(pk=Artifact.objects.get(title="Plan").workspace_id)
    assert Chat.objects.get(workspace=launch).public_id == chat.public_id
    found = search_workspace(
        "cactus", launch, olive, limit=5, types=["artifact"], now=timezone.now(), policy=HERE
    )
    assert [each.id for each in found] == [plan.public_id]
    assert imported_whole(olive, data).outcomes["artifact"]["duplicate"] == 2 and stored_artifacts() == before


def test_of_more_than_a_line_holds_the_newest_versions_are_in_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_artifact(cast.owner, cast.workspace, "one " * 50, embedded=False)
    for word in ("two ", "three "):
        artifacts.update_artifact(made, content=word * 50, by=cast.owner, now=timezone.now())
    monkeypatch.setattr(export, "LARGEST_ARTIFACT", 1000)
    [line] = lines_of(exported(cast.owner, cast.workspace), "artifact")
    assert [each["content"].split()[0] for each in line["versions"]] == ["two", "three"]


def version(**fields: Any) -> dict[str, Any]:
    return {"title": "Rows", "content": "rows = []", "language": "python", "by": None, **fields}


def line(**fields: Any) -> dict[str, Any]:
    return {"type": "artifact", "workspace": WS, "kind": "code", "versions": [version()], **fields}


HOSTILE = [
    line(kind="exe"),
    line(kind=["code"]),
    line(versions=None),
    line(versions=[]),
    line(versions="rows"),
    line(versions=[1]),
    line(versions=[version()] * 1001),
    line(versions=[version(content="")]),
    line(versions=[version(content=" \n")]),
    line(versions=[version(content={"a": 1})]),
    line(versions=[version(content="x" * 200_001)]),
    line(versions=[version(content="a\0b")]),
    line(versions=[version(title="x" * 201)]),
    line(versions=[version(title=None)]),
    line(versions=[version(created_at="soon")]),
    line(versions=[version(content=f"key = '{SECRET}'"), version()]),
    line(workspace="ws_" + "B" * 24),
    line(source_chat_id="c" * 41),
    line(id=7),
]


def test_hostile_lines_are_refused_and_say_nothing_of_what_stood_there(cast: Cast) -> None:
    done = imported_whole(cast.stranger, file_of(*HOSTILE))
    assert done.outcomes["artifact"]["refused"] == len(HOSTILE)
    assert not Artifact.objects.exists()
    looked = uploaded(cast.stranger, file_of(*HOSTILE))
    reasons = list(looked.rows.filter(kind="artifact").values_list("reason", flat=True))
    assert len(reasons) == len(HOSTILE) and all(reasons) and SECRET not in "".join(reasons)


def test_nobody_else_is_spoken_for_and_nothing_of_others_is_overwritten(cast: Cast) -> None:
    theirs = make_artifact(cast.owner, cast.workspace, "mine", embedded=False)
    forged = line(
        id=theirs.public_id,
        personal=True,
        created_by="olive",
        source_chat_id=make_chat(cast.owner, cast.workspace).public_id,
        created_at="2999-01-01T00:00:00Z",
        versions=[version(by="olive", by_model="yes", number=9)],
    )
    imported_whole(cast.stranger, file_of(forged, {**forged, "personal": "yes"}))
    theirs.refresh_from_db()
    assert (theirs.content, theirs.version) == ("mine", 1)
    brought = Artifact.objects.exclude(pk=theirs.pk)
    assert brought.count() == 2 and not brought.exclude(created_by=cast.stranger).exists()
    assert brought.get(owner=cast.stranger).workspace == default_workspace(cast.stranger)
    assert not brought.exclude(source_chat_id="", source_message_id="", version=1).exists()
    assert not brought.filter(created_at__gt=timezone.now()).exists()
    made = ArtifactVersion.objects.filter(artifact__in=brought)
    assert {(each.by, each.by_model) for each in made} == {(cast.stranger, False)}


def test_what_an_owner_brings_takes_no_room_of_a_member(cast: Cast) -> None:
    """A version counts against the importer's quota even if it names another author; an administrator's import counts
    against the author's.
    """
    mine = make_workspace(owner=cast.stranger)
    add_member(mine, user=cast.owner, role="viewer", by=cast.stranger)
    root = make_user("root", is_superuser=True)
    for number, (importer, charged) in enumerate(((cast.stranger, cast.stranger), (root, cast.owner))):
        if importer is root:
            add_member(mine, user=root, role="owner", by=cast.stranger)
        content = f"of {importer}"
        brought = line(id=f"art_{number:024}", versions=[version(content=content, by="olive")])
        imported_whole(importer, file_of(brought), mine)
        assert ArtifactVersion.objects.get(content=content).by == charged
    assert quota_of(cast.stranger, "bytes").used == len(f"of {cast.stranger}")
