"""The command palette, and a chat as a file: only what the user may see, as links and as text."""

import json
from typing import Any

import pytest

from chat.models import MessageRole, MessageStatus
from memories.models import Scope
from tests.conftest import Cast
from tests.factories import make_chat, make_document, make_memory, make_message
from tests.signing_in import signed_in
from workspaces.access import default_workspace
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db


def found(person: User, workspace: Any, q: str = "", *, on: str = "") -> str:
    """Return the palette's answer, ``on`` the page with this path."""
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{on}"}
    address = f"/workspaces/{workspace.public_id}/palette/"
    return signed_in(person).get(address, {"q": q}, headers=headers).content.decode()


def test_an_address_that_is_none_shows_no_chat(cast: Cast) -> None:
    for address in ("http://[", "http://[::1", "//x", "chats/%00/"):
        client, headers = signed_in(cast.owner), {"HX-Request": "true", "HX-Current-URL": address}
        for part in ("palette", "chats/list"):
            asked = client.get(f"/workspaces/{cast.workspace.public_id}/{part}/", headers=headers)
            assert (asked.status_code, b"This chat" in asked.content) == (200, False)


def test_chats_memories_and_places_are_found_by_a_few_letters(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Launch plans")
    make_chat(cast.owner, cast.workspace, title="Launch secrets", is_private=True)
    message = make_message(chat, "When does the zebra arrive?")
    make_memory("The launch <is> in May", cast.owner, cast.workspace)
    launch = found(cast.viewer, cast.workspace, "launch")
    assert f'href="/chats/{chat.public_id}/' in launch
    assert "secrets" not in launch
    assert "The launch &lt;is&gt; in May" in launch
    assert "?find=The+launch+%3Cis%3E+in+May" in launch
    assert f"#{message.public_id}" in found(cast.viewer, cast.workspace, "zeb")
    assert "Tidy up" in found(cast.viewer, cast.workspace, "TIDY")
    assert "New chat" not in found(cast.viewer, cast.workspace), "who reads begins none"
    assert "Temporary chat" in found(cast.editor, cast.workspace)
    assert "Invite people" not in found(cast.editor, cast.workspace)
    assert "Invite people" in found(cast.owner, cast.workspace, "invite")
    plan = make_document(cast.owner, cast.workspace, title="Launch <plan>.txt")
    make_document(cast.owner, default_workspace(cast.owner), title="Launch elsewhere.txt")
    documents = found(cast.viewer, cast.workspace, "launch")
    assert f"/documents/{plan.public_id}/" in documents and "Launch &lt;plan&gt;.txt" in documents
    assert "elsewhere" not in documents
    for place in ("Topics", "Review", "New workspace", "Search everything", "Remember something"):
        assert place in found(cast.owner, cast.workspace, place.lower())
    assert "Administration" not in found(cast.owner, cast.workspace)
    assert "Nothing here is called “&lt;x&gt;”" in found(cast.viewer, cast.workspace, "<x>")


def test_what_is_done_with_a_chat_is_offered_on_its_page_to_who_may(cast: Cast) -> None:
    shared = make_chat(cast.owner, cast.workspace, title="Crossings")
    own = make_chat(cast.owner, cast.workspace, is_private=True)
    temporary = make_chat(cast.owner, cast.workspace, is_temporary=True, is_private=True)
    here = f"/chats/{shared.public_id}/"
    assert "Make private" in found(cast.owner, cast.workspace, "secret", on=here)
    assert f'hx-post="{here}mark/"' in found(cast.viewer, cast.workspace, "archive", on=here)
    assert "Make private" not in found(cast.editor, cast.workspace, on=here), "it is another's"
    assert "Share with the workspace" in found(cast.owner, cast.workspace, on=f"/chats/{own.public_id}/")
    for elsewhere in ("/profile/", f"/chats/{temporary.public_id}/", "/chats/chat_nothing/", "/chats//", "/"):
        assert "This chat" not in found(cast.owner, cast.workspace, on=elsewhere), elsewhere
    assert "This chat" not in found(cast.editor, cast.workspace, on=f"/chats/{own.public_id}/"), (
        "not theirs to see"
    )
    assert "data-open-add" in found(cast.editor, cast.workspace, "remember", on=here)
    assert "data-open-add" not in found(cast.viewer, cast.workspace, "remember", on=here)
    assert "data-open-add" not in found(cast.editor, cast.workspace, "remember", on="/profile/"), (
        "no panel there"
    )


def test_personal_memories_of_others_are_not_found(cast: Cast) -> None:
    own = default_workspace(cast.owner)
    own.memberships.create(user=cast.editor, role="editor")
    make_memory("I dream of a boat", cast.owner, own, scope=Scope.USER)
    assert "boat" in found(cast.owner, own, "dream")
    assert "boat" not in found(cast.editor, own, "dream")


def test_a_chat_is_exported_as_it_goes_now(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans & more")
    question = make_message(chat, "When?\n\nSoon?")
    earlier = make_message(chat, "Set aside")
    answer = make_message(chat, "**In May.**", role=MessageRole.ASSISTANT, status=MessageStatus.DONE)
    make_message(chat, "half", role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING)
    earlier.superseded_by = question
    earlier.save()

    def download(kind: str) -> Any:
        return signed_in(cast.viewer).get(f"/chats/{chat.public_id}/export/", {"as": kind})

    def text(response: Any) -> str:
        return b"".join(response).decode()

    markdown = download("md")
    assert markdown["Content-Disposition"].startswith('attachment; filename="plans-more-')
    lines = text(markdown)
    assert lines.startswith("# Plans & more\n\n## olive, ")
    assert "When?\n\nSoon?" in lines
    assert lines.endswith("UTC\n\n**In May.**\n")
    told = json.loads(text(download("json")))
    assert [(each["role"], each["content"]) for each in told["messages"]] == [
        ("user", "When?\n\nSoon?"),
        ("assistant", "**In May.**"),
    ]
    assert told["messages"][1]["id"] == answer.public_id
    assert AuditEvent.objects.filter(verb="exported", target=chat.public_id).count() == 2
    empty = make_chat(cast.owner, cast.workspace, is_private=True)
    assert signed_in(cast.viewer).get(f"/chats/{empty.public_id}/export/").status_code == 404
    told = json.loads(text(signed_in(cast.owner).get(f"/chats/{empty.public_id}/export/", {"as": "json"})))
    assert told["messages"] == []
