"""A personal data export: complete, only the user's own data, and only after their password."""

import io
import json
import zipfile
from typing import Any

import pytest
from django.test import Client

from chat.import_export.personal_copy import ABOUT, HIDDEN
from tests.api import Api, error_of, type_password_again
from tests.conftest import Cast
from tests.factories import make_asset, make_chat, make_connection, make_key_text, make_memory
from workspaces.models import Membership, SignIn, User

pytestmark = pytest.mark.django_db

# Tables that refer to a user and are not in ``ABOUT``, with the reason.
_EXPORTED = "in the export"
_OF_OTHERS = "shared, in the export or on its page; who made it is one of its fields"
_NOTE = "a count or a note that goes by itself within days"
LEFT_OUT = {
    **dict.fromkeys(
        (
            "workspaces.PersonPicture",
            "workspaces.Workspace",
            "workspaces.Agent",
            "workspaces.Document",
            "workspaces.DocumentPassage",
            "workspaces.DocumentVersion",
            "workspaces.Artifact",
            "workspaces.ArtifactVersion",
            "memories.Memory",
            "memories.Revision",
            "memories.Receipt",
            "chat.Chat",
            "chat.Message",
            "chat.Chat_personal_of",
        ),
        _EXPORTED,
    ),
    "memories.Asset": "in the copy, with its file",
    **dict.fromkeys(("memories.KeptAsIs", "chat.RunStep", "workspaces.Retention"), _OF_OTHERS),
    "chat.ShortTermMemory": "made of their chats anew as they chat",
    "workspaces.Spent": _NOTE,
    "workspaces.DoneRequest": _NOTE,
    "workspaces.OAuthCode": _NOTE,
    "memories.Extraction": _NOTE,
    "admin.LogEntry": "in the audit log as well",
    "workspaces.User_groups": "rights of staff, which the audit log tells of",
    "workspaces.User_user_permissions": "rights of staff, which the audit log tells of",
}


def fetched(person: User) -> dict[str, bytes]:
    """Return the files of the ZIP over REST."""
    api = Api(person)
    type_password_again(api.client)
    answer = api.get("account/copy")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_a_copy_holds_the_export_what_is_kept_about_them_and_their_files(cast: Cast) -> None:
    memory = make_memory("The kiln is hot at noon", cast.owner, cast.workspace)
    asset = make_asset(memory, name="../kiln.txt", content=b"900 degrees")
    SignIn.objects.create(user=cast.owner, session_key="s" * 32, device="Firefox on Linux")
    files = fetched(cast.owner)
    [attached] = [name for name in files if name.startswith("files/")]
    assert files[attached] == b"900 degrees"
    assert attached.startswith(f"files/{asset.public_id}-") and "/" not in attached.removeprefix("files/")
    exported = lines(files["memoryhub.jsonl"])
    assert exported[0]["type"] == "memoryhub"
    assert "The kiln is hot at noon" in [line.get("content") for line in exported]
    about = lines(files["about-you.jsonl"])
    kinds = {line["table"]: line for line in about}
    assert kinds["workspaces.User"]["username"] == "olive"
    assert kinds["workspaces.AuditEvent"]["verb"] == "exported"
    assert "Firefox on Linux" in [line.get("device") for line in about]
    assert b"memoryhub.jsonl" in files["README.txt"]


def test_a_copy_holds_nothing_that_opens_something_and_no_keys_of_rows(cast: Cast) -> None:
    key = make_key_text(cast.owner, cast.workspace)
    make_connection(cast.owner, api_key="sk-kumquat")
    session = SignIn.objects.create(user=cast.owner, session_key="k" * 32)
    about = fetched(cast.owner)["about-you.jsonl"].decode()
    for secret in (key, "kumquat", session.session_key, cast.owner.password, "sealed", "hash"):
        assert secret not in about
    person = next(line for line in lines(about.encode()) if line["table"] == "workspaces.User")
    assert "id" not in person and person["public_id"] == cast.owner.public_id


def test_a_copy_holds_nothing_of_others_and_nothing_of_where_they_are_no_more(cast: Cast) -> None:
    make_memory("Secretly mine", cast.editor, cast.workspace, scope="user")
    make_chat(cast.editor, cast.workspace, title="Kumquat plans", is_private=True)
    make_memory("The kettle is green", cast.owner, cast.workspace)
    before = b"".join(fetched(cast.viewer).values())
    assert b"kettle" in before
    assert not any(word in before for word in (b"Secretly", b"Kumquat"))
    Membership.objects.filter(user=cast.viewer, workspace=cast.workspace).delete()
    assert b"kettle" not in b"".join(fetched(cast.viewer).values())


def test_who_sits_down_at_an_open_browser_is_asked_for_the_password(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    for page in ("/profile/copy/", "/profile/copy/?download"):
        answer = client.get(page)
        assert (answer.status_code, answer["Location"].split("?")[0]) == (302, "/accounts/reauthenticate/")
    answer = Api(cast.owner).get("account/copy")
    assert (answer.status_code, error_of(answer)["code"]) == (403, "reauthenticate")


def test_the_page_leads_to_the_same_copy(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner)
    type_password_again(client)
    assert 'href="?download"' in client.get("/profile/copy/").content.decode()
    answer = client.get("/profile/copy/?download")
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert set(archive.namelist()) == set(fetched(cast.owner))


def test_every_table_that_names_a_person_is_in_the_copy_or_left_out_for_a_reason() -> None:
    """A new table fails here until it is added to the copy or excluded with a reason."""
    named = {"workspaces.User"}
    for relation in User._meta.get_fields(include_hidden=True):
        if relation.auto_created and not relation.concrete and relation.one_to_many | relation.one_to_one:  # type: ignore[operator,union-attr]
            named.add(relation.related_model._meta.label)  # type: ignore[union-attr]
    assert named == ABOUT.keys() | LEFT_OUT.keys()
    assert not ABOUT.keys() & LEFT_OUT.keys()
    assert {"password", "key_hash", "session_key", "sealed_key", "sealed_secret", "token_hash"} <= HIDDEN
