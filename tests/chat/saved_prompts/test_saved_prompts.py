"""Saved prompts: owners, permissions and placeholders, on the page and over REST."""

import pytest
from django.utils import timezone

from chat.chats import saved_prompts
from chat.chats.saved_prompts import variables_of
from chat.models import SavedPrompt
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from tests.conftest import Cast
from tests.factories import make_prompt
from tests.signing_in import signed_in
from workspaces.access import default_workspace, get_workspace
from workspaces.actions.workspaces import change_role
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db


def seen_by(user: User, workspace: Workspace) -> Workspace:
    return get_workspace(user, workspace.public_id)


def test_blanks_are_what_stands_in_double_braces() -> None:
    for text, names in (
        ("Write to {{name}} about {{ topic }}, dear {{name}}", ["name", "topic"]),
        ("{{ }}{{}} {one} {{a\nb}} {{{deep}}}", ["deep"]),
        ("Grüße an {{Empfänger}}, {{收件人}}, {{the new one}}", ["Empfänger", "收件人", "the new one"]),
        ("{{" * 4000, []),
        ("{{" + "x" * 41 + "}}", []),
    ):
        assert variables_of(text) == names, text[:40]


def test_whose_they_are_and_who_changes_them(cast: Cast) -> None:
    """Personal prompts belong to their user alone; a workspace's prompts are its members', changed by those with the
    right.
    """
    own = make_prompt(seen_by(cast.viewer, cast.workspace), cast.viewer, name="Mine", personal=True)
    shared = make_prompt(cast.workspace, cast.editor, name="Ours")
    home = default_workspace(cast.viewer)
    assert list(saved_prompts.prompts_for(cast.workspace, cast.viewer)) == [own, shared]
    assert list(saved_prompts.prompts_for(home, cast.viewer)) == [own]
    assert list(saved_prompts.prompts_for(cast.workspace, cast.owner)) == [shared]
    with pytest.raises(Forbidden):
        make_prompt(cast.workspace, cast.viewer, name="For all")
    with pytest.raises(NotFound):
        make_prompt(cast.workspace, cast.stranger, personal=True)
    for person, found, error in (
        (cast.owner, own, NotFound),
        (cast.stranger, own, NotFound),
    ):
        with pytest.raises(error):
            saved_prompts.get_prompt(person, cast.workspace, found.public_id)
    with pytest.raises(Forbidden):
        saved_prompts.delete_prompt(shared, seen_by(cast.viewer, cast.workspace), by=cast.viewer)
    change = {"by": cast.editor, "now": timezone.now()}
    assert (
        saved_prompts.update_prompt(shared, seen_by(cast.editor, cast.workspace), name="Yes", **change).name
        == "Yes"
    )
    change_role(cast.workspace, user=cast.editor, role="viewer", by=cast.owner)
    with pytest.raises(Forbidden):
        saved_prompts.update_prompt(shared, seen_by(cast.editor, cast.workspace), name="No", **change)
    saved_prompts.delete_prompt(shared, seen_by(cast.owner, cast.workspace), by=cast.owner)


def test_what_cannot_be_kept(cast: Cast) -> None:
    make_prompt(cast.workspace, cast.owner)
    for values, field in (
        ({"name": " "}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "Polite  no"}, "name"),
        ({"text": "\n"}, "text"),
        ({"text": "x" * 8001}, "text"),
        ({"text": " ".join(f"{{{{v{at}}}}}" for at in range(21))}, "text"),
    ):
        with pytest.raises(Invalid) as refused:
            make_prompt(cast.workspace, cast.owner, **values)
        assert field in refused.value.fields
        assert SavedPrompt.objects.count() == 1


def test_there_are_no_more_than_somebody_can_look_through(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_prompts, "MOST", 1)
    make_prompt(cast.workspace, cast.owner)
    make_prompt(cast.workspace, cast.owner, personal=True)
    with pytest.raises(Conflict):
        make_prompt(cast.workspace, cast.owner, name="Another")


def test_what_is_typed_finds_names_before_texts_and_stays_data(cast: Cast) -> None:
    make_prompt(cast.workspace, cast.owner, name="Aa <b>", text='"><script>alert(1)</script> {{offer}}')
    make_prompt(cast.workspace, cast.owner, name="Offer", text="Say 100% yes")
    choices = f"/workspaces/{cast.workspace.public_id}/prompts/choices/"
    html = signed_in(cast.viewer).get(choices, {"q": "offer"}).content.decode()
    assert html.index("Offer</bdi>") < html.index("Aa &lt;b&gt;</bdi>")
    assert "<script>" not in html and 'data-saved-prompt="&quot;&gt;&lt;script&gt;' in html
    assert "2 prompts" in html
    assert "No prompt contains “%_”" in signed_in(cast.viewer).get(choices, {"q": "%_"}).content.decode()


def test_over_rest_they_come_go_and_say_their_blanks(cast: Cast) -> None:
    address = f"/chat/api/workspaces/{cast.workspace.public_id}/prompts"
    person, json = signed_in(cast.editor), {"content_type": "application/json"}
    made = person.post(address, {"name": "No", "text": "Decline {{offer}}.", "personal": False}, **json)
    assert (made.status_code, made.json()["variables"], made.json()["personal"]) == (201, ["offer"], False)
    detail = f"{address}/{made.json()['id']}"
    assert person.patch(detail, {"text": "No."}, **json).json()["variables"] == []
    person.post(address, {"name": "Later", "text": "x", "personal": False}, **json)
    listed = signed_in(cast.viewer).get(address).json()["items"]
    assert [each["name"] for each in listed] == ["Later", "No"], "the newest first"
    assert person.post(address, {"name": "No", "text": "x", "owner": "usr_1"}, **json).status_code == 422
    assert person.delete(detail).status_code == 204
    assert person.get(detail).status_code == 404
