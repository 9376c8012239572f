"""Search over memories, documents, artifacts and messages: ranked together, within what the user may see."""

from typing import Any

import pytest
from django.utils import timezone

from chat.chats.services import delete_chat
from chat.models import Chat, MessageRole, MessageStatus
from chat.tools.base import InChat, ToolCaller
from chat.tools.memory import ToSearch
from chat.tools.memory import search as search_tool
from memories.recalling.workspace_search import search_workspace
from memoryhub.llm.errors import ModelNotLocal
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_artifact, make_chat, make_document, make_memory, make_message
from workspaces.access import get_workspace
from workspaces.data_policy import DataPolicy
from workspaces.models import Role, User, Workspace

pytestmark = pytest.mark.django_db
KEY = "The spare key of the boathouse lies under the blue pot"


def found(cast: Cast, query: str, by: User | None = None, **body: Any) -> list[dict[str, Any]]:
    answer = Api(by or cast.viewer).post(
        f"workspaces/{cast.workspace.public_id}/search", {"query": query, **body}
    )
    assert answer.status_code == 200
    return answer.json()["results"]


def test_everything_is_found_in_one_ranked_list_with_a_floor(cast: Cast) -> None:
    memory = make_memory(KEY, cast.owner, cast.workspace)
    document = make_document(cast.owner, cast.workspace, f"# Keys\n\n{KEY}.\n\n# Bins\n\nBlue on Mondays.")
    artifact = make_artifact(cast.owner, cast.workspace, f"{KEY}!", kind="markdown", title="Keys")
    make_artifact(cast.owner, cast.workspace, "body { color: red }", kind="code", title="Style sheet")
    chat = make_chat(cast.owner, cast.workspace, title="Boathouse")
    for other in ("Good morning", "What is for lunch?", "Soup"):
        make_message(chat, other)
    said = make_message(chat, f"Noted: {KEY.lower()}", role=MessageRole.ASSISTANT)
    all_of_it = found(cast, "Where is the spare key of the boathouse?")
    assert {each["id"]: each["type"] for each in all_of_it} == {
        memory.public_id: "memory",
        document.public_id: "document",
        artifact.public_id: "artifact",
        said.public_id: "message",
    }
    scores = [each["score"] for each in all_of_it]
    assert scores == sorted(scores, reverse=True) and min(scores) >= 0.4
    [message] = [each for each in all_of_it if each["type"] == "message"]
    assert (message["title"], message["chat_id"]) == ("Boathouse", chat.public_id)
    assert {each["type"] for each in found(cast, "spare key", types=["artifact", "message"])} == {
        "artifact",
        "message",
    }
    assert found(cast, "quarterly revenue of the airline") == []
    assert len(found(cast, "spare key", limit=2)) == 2
    for odd in ("", "'", "\\", "a:b & !c | (d)", "':* \\' <->", "the of and", "鍵" * 300, "x" * 399):
        assert isinstance(found(cast, odd), list)


def test_an_artifact_is_found_by_what_it_means_and_by_what_it_says_now(cast: Cast) -> None:
    artifact = make_artifact(
        cast.owner,
        cast.workspace,
        "def mean(numbers):\n    return sum(numbers) / len(numbers)",
        title="Average",
    )
    only = {"types": ["artifact"]}
    assert [each["id"] for each in found(cast, "code for the arithmetic mean of numbers", **only)] == [
        artifact.public_id
    ]
    api, one = Api(cast.editor), f"workspaces/{cast.workspace.public_id}/artifacts/{artifact.public_id}"
    api.patch(one, {"content": "volcanoes of Iceland", "title": "Trip"})
    assert found(cast, "arithmetic mean", **only) == []
    assert [each["title"] for each in found(cast, "volcanoes Iceland", **only)] == ["Trip"]
    api.delete(one)
    assert found(cast, "volcanoes Iceland", **only) == []


def test_nobody_finds_what_they_may_not_see(cast: Cast) -> None:
    owner, word = cast.owner, "heliotrope"
    private = make_chat(owner, cast.workspace, is_private=True)
    temporary = make_chat(owner, cast.workspace, is_temporary=True)
    gone = make_chat(owner, cast.workspace)
    open_to_all = make_chat(owner, cast.workspace)
    elsewhere = make_chat(cast.stranger)
    for chat in (private, temporary, gone, open_to_all, elsewhere):
        make_message(chat, f"The {word} blooms")
    growing = make_message(
        open_to_all, f"{word} streams", role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING
    )
    old = make_message(open_to_all, f"{word} was set aside", role=MessageRole.ASSISTANT)
    old.superseded_by = growing
    old.save()
    delete_chat(gone, by=owner, now=timezone.now())
    mine = make_artifact(owner, cast.workspace, f"{word} plan", title="Mine", personal=True)
    make_artifact(cast.stranger, None, f"{word} elsewhere")

    def ids(by: User, **options: Any) -> set[str]:
        results = search_workspace(
            word, cast.workspace, by, now=timezone.now(), **({"policy": HERE} | options)
        )
        return {each.chat_id or each.id for each in results}

    assert ids(cast.viewer, private_chats=True) == ids(cast.editor) == {open_to_all.public_id}
    assert ids(owner, private_chats=True) == {open_to_all.public_id, private.public_id, mine.public_id}
    assert ids(owner) == {open_to_all.public_id, mine.public_id}
    read_along = DataPolicy(local_only=False, leaves=False, personal=False)
    assert ids(owner, policy=read_along, private_chats=True) == {open_to_all.public_id}
    # Word weights are computed from what the user may see: others' private chats change no score.
    before = [each["score"] for each in found(cast, f"{word} blooms", types=["message"])]
    for _ in range(20):
        make_message(private, f"{word} again, and nothing else")
    assert [each["score"] for each in found(cast, f"{word} blooms", types=["message"])] == before

    Workspace.objects.filter(pk=cast.workspace.pk).update(local_only=True)
    cast.workspace.refresh_from_db()
    for kind in ("artifact", "message"):
        with pytest.raises(ModelNotLocal):
            ids(owner, types=[kind], policy=DataPolicy(local_only=False, leaves=True, personal=True))


def _called(chat: Chat, by: User, *, personal: bool = True) -> ToolCaller:
    question = make_message(chat, "Where is the spare key of the boathouse?")
    answer = make_message(chat, "", role=MessageRole.ASSISTANT)
    policy = DataPolicy(local_only=False, leaves=False, personal=personal)
    workspace = get_workspace(by, chat.workspace.public_id)
    return ToolCaller(by, workspace, Role.OWNER, policy, timezone.now(), turn=InChat(chat, question, answer))


def test_the_tool_finds_no_question_just_asked_and_private_chats_only_where_allowed(cast: Cast) -> None:
    here = make_chat(cast.owner, cast.workspace)
    other = make_message(make_chat(cast.owner, cast.workspace, title="Keys"), KEY)
    private = make_message(make_chat(cast.owner, cast.workspace, is_private=True), f"{KEY}, I think")
    asked = ToSearch(query="spare key of the boathouse", types=["message"])
    said = search_tool(_called(here, cast.owner), asked)
    assert other.public_id in said.text and "“Keys”" in said.text and said.count == 1
    assert private.public_id not in said.text and here.public_id not in said.text
    Workspace.objects.filter(pk=cast.workspace.pk).update(private_short_term=True)
    allowed = search_tool(_called(here, cast.owner), asked)
    # The total number stays hidden from others
    assert private.public_id in allowed.text and allowed.count == 1
    assert private.public_id not in search_tool(_called(here, cast.owner, personal=False), asked).text
