# ruff: noqa: RUF001  letters that look alike are tested
"""Display names: set on the profile, shown to others, and unique among them."""

import pytest
from django.test import Client
from django.urls import reverse

from memoryhub.errors import Invalid
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message
from workspaces.accounts.account_changes import set_name
from workspaces.models import AuditEvent, User

pytestmark = pytest.mark.django_db
URL = "/profile/name/"


def page_of(user: User, address: str) -> str:
    client = Client()
    client.force_login(user)
    return client.get(address).content.decode()


def test_others_read_it_where_people_are_named(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    make_message(chat, "The ferry leaves at nine", author=cast.editor)
    make_memory("The ferry leaves at nine", cast.editor, cast.workspace)
    client, place = Client(), f"/workspaces/{cast.workspace.public_id}"
    panel = reverse("memories:panel", args=[cast.workspace.public_id])
    client.force_login(cast.editor)
    saved = client.post(URL, {"name": "  Edda   Öst "}, follow=True, headers={"HX-Request": "true"})
    assert "Saved." in saved.content.decode() and '<h1 dir="auto">Edda Öst</h1>' in saved.content.decode()
    for address in (f"/chats/{chat.public_id}/", panel, f"{place}/settings/"):
        shown = page_of(cast.owner, address)
        beside = " (eddie)" if address == panel else ""  # as the source of a memory
        assert f"<bdi>Edda Öst{beside}</bdi>" in shown, address
        assert (cast.editor.username in shown) == (address != f"/chats/{chat.public_id}/"), (
            "who it is, among the members and under a memory"
        )
    assert AuditEvent.objects.get(verb="name_changed").details == {}
    client.post(URL, {"name": ""})
    assert cast.editor.username in page_of(cast.owner, f"/chats/{chat.public_id}/")


def test_none_is_taken_for_somebody_elses_or_hides_something(cast: Cast) -> None:
    for name in (
        "olive",
        "Olive",
        "0live",
        "ol\u0456ve",
        "o\u200dlive",
        "Olive\u202e",
        "a\x00b",
        "\u200d",
        "\u3164",
        "\u2800",
        "x" * 81,
        "a\ud800",
        "Helpdesk: go to https://evil.example",
        "WWW.evil.example",
    ):
        assert cast.owner.username == "olive"
        with pytest.raises(Invalid):
            set_name(cast.stranger, name)
        cast.stranger.refresh_from_db()
        assert cast.stranger.shown_name == cast.stranger.username


def test_people_are_called_as_they_are(cast: Cast) -> None:
    for name in (
        "Olive Owner",
        "O",
        "محمد رضا",
        "علی\u200cرضا",
        "田中 さくら",
        "Zoë O'Brien",
        "Dr.Zoë of hub.example",
        "Ma & <b>Pa</b>",
        "👩🏽 Ada",
    ):
        set_name(cast.owner, name)
        cast.owner.refresh_from_db()
        assert cast.owner.shown_name == name
        assert "<b>Pa</b>" not in page_of(cast.editor, f"/workspaces/{cast.workspace.public_id}/settings/")


def test_nor_is_one_that_somebody_gave_in_a_workspace_of_theirs(cast: Cast) -> None:
    set_name(cast.editor, "Edda Öst")
    for name in ("Edda Öst", "edda ost", "E\u0501da Öst"):
        with pytest.raises(Invalid):
            set_name(cast.viewer, name)
    set_name(cast.editor, "Edda Öst")
    set_name(cast.stranger, "Edda Öst")  # in other workspaces
    set_name(cast.viewer, "Edda Öst (Oslo)")


def test_ones_own_user_name_is_nobody_elses(cast: Cast) -> None:
    set_name(cast.owner, "OLIVE")
    assert cast.owner.shown_name == "OLIVE"


def test_a_name_takes_the_place_of_what_a_directory_said(cast: Cast) -> None:
    cast.owner.first_name, cast.owner.last_name = "Olivia", "Bauer"
    cast.owner.save()
    assert 'value="Olivia Bauer"' in page_of(cast.owner, "/profile/")
    set_name(cast.owner, "Olive Bauer")
    cast.owner.refresh_from_db()
    assert (cast.owner.get_full_name(), cast.owner.username) == ("Olive Bauer", "olive")
    assert Client().post(URL, {"name": "x"}).status_code == 302
