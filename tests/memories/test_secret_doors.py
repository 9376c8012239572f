"""Personal numbers: never stored automatically, and by a person only after confirmation, by every route."""

import json
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.models import MessageRole
from memories.forgetting import remaining_copies
from memories.judging.secret_filter import RULES
from memories.models import Memory, Refusal, SourceType
from memories.writing import changing, gate
from memories.writing.drafts import Draft, without_secrets
from memories.writing.export_lines import read_memory
from memoryhub.errors import SecretRefused, Sensitive
from tests.api import V1, Api, error_of
from tests.bulk import save_memories
from tests.conftest import Cast
from tests.factories import make_chat, make_key_text, make_memory, make_message
from tests.signing_in import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]
CARD = "My card is 4111 1111 1111 1111"
TOKEN = "ghp_" + "aB3d" * 10


def draft(cast: Cast, content: str = CARD, **fields: Any) -> Draft:
    return Draft(content=content, workspace=cast.workspace, author=cast.owner, **fields)


def save(cast: Cast, content: str = CARD, **fields: Any) -> Memory:
    return gate.save_memory(draft(cast, content, **fields), by=cast.owner, now=timezone.now()).memory


# The writer


def test_the_error_says_what_it_looks_like_and_never_the_number(cast: Cast) -> None:
    with pytest.raises(Sensitive) as refused:
        save(cast)
    assert (refused.value.status, refused.value.code, refused.value.kind) == (422, "sensitive", "card")
    assert refused.value.fields == {"content": "looks like a card number"}
    assert "4111" not in json.dumps(refused.value.body())


def test_every_field_is_looked_at_and_key_and_text_together(cast: Cast) -> None:
    for fields in (
        {"content": "Mine", "summary": CARD},
        {"content": "Mine", "tags": ["ok", CARD[:50]]},
        {"content": "Mine", "category": CARD},
        {"content": "Mine", "key": CARD},
        {"content": "4711", "key": "PIN"},
        {"content": "4711", "category": "PIN"},
        {"content": "4711", "tags": ["bank", "PIN"]},
        {"content": "4711", "summary": "my PIN"},
        {"content": "is 4711", "key": "PIN"},
        {"content": "my PIN", "summary": "4711"},
        {"content": "1111 1111", "key": "4111 1111"},
        {"content": "4111 1111", "summary": "1111 1111"},
    ):
        with pytest.raises(Sensitive):
            save(cast, **fields)
        assert save(cast, **fields, confirmed=True).content == fields["content"]


def test_nothing_automatic_may_confirm(cast: Cast) -> None:
    for source in [source for source in SourceType.values if source != SourceType.USER]:
        with pytest.raises(Sensitive):
            save(cast, source_type=source, confirmed=True)
        assert not Memory.objects.exists()


def test_a_credential_cut_in_two_by_fields_is_one(cast: Cast) -> None:
    for fields in (
        {"content": "hunter2", "tags": ["home", "password"]},
        {"content": "Sunshine", "tags": ["password"]},
        {"content": "hunter2!", "category": "password"},
        {"content": "q8Zr2LmX9vT4bN7c", "category": "api_key"},
        {"content": "hunter2", "summary": "password"},
        {"content": "password", "summary": "hunter2"},
        {"content": "is the wifi password", "key": "hunter2x"},
        {"content": "the router at home", "key": "hunter2x", "tags": ["password"]},
    ):
        with pytest.raises(SecretRefused):
            save(cast, **fields, confirmed=True)
        assert not Memory.objects.exists()


def test_labels_beside_talk_are_no_credential(cast: Cast) -> None:
    for fields in (
        {
            "content": "Prefers Bitwarden, not LastPass",
            "tags": ["password", "tools"],
            "category": "preference",
        },
        {"content": "prefers bitwarden over lastpass", "tags": ["password"], "key": "password_manager"},
        {
            "content": "Logs in by OAuth2",
            "tags": ["oauth2", "token", "password"],
            "summary": "Login by OAuth2",
        },
        {"content": "Changed in May 2024", "category": "password"},
        {"content": "Wires pin 13 of the board to the LED", "tags": ["pin", "arduino"], "key": "led"},
    ):
        assert save(cast, **fields).content == fields["content"]


def test_no_spelling_of_an_automatic_source_confirms(cast: Cast) -> None:
    api = Api(base=V1, key=make_key_text(cast.owner, cast.workspace))
    for source in ("Auto_bot", "AUTO_CHAT", " auto_chat", "Model", "IMPORT", "Auto", "auto"):
        refused = api.post("memories", {"value": CARD, "source": source, "confirm": True})
        assert error_of(refused)["code"] == "sensitive"
        if source.lower() != "auto":  # the name in v1
            with pytest.raises(Sensitive):
                save(cast, source_type=source, confirmed=True)
        assert not Memory.objects.exists()


def test_a_credential_cannot_be_confirmed(cast: Cast) -> None:
    with pytest.raises(SecretRefused) as refused:
        save(cast, f"My card is 4111 1111 1111 1111, the token {TOKEN}", confirmed=True)
    assert refused.value.code == "secret"


def test_an_edit_asks_for_what_it_changes_alone(cast: Cast) -> None:
    memory = save(cast, confirmed=True)
    edit = {"by": cast.owner, "now": timezone.now()}
    assert gate.edit_memory(memory, **edit, content=CARD, category="fact").category == "fact"
    with pytest.raises(Sensitive):
        gate.edit_memory(memory, **edit, content=f"{CARD}, CVV 123")
    assert gate.edit_memory(memory, **edit, content=f"{CARD}, CVV 123", confirmed=True).content.endswith(
        "123"
    )


def test_an_edit_of_half_a_pair_is_looked_at_with_the_other(cast: Cast) -> None:
    memory = save(cast, "by the door", key="PIN")
    edit = {"by": cast.owner, "now": timezone.now()}
    with pytest.raises(Sensitive):
        gate.edit_memory(memory, **edit, content="4711")
    memory = save(cast, "hunter2!x", key="nickname")
    with pytest.raises(SecretRefused) as refused:
        gate.edit_memory(memory, **edit, key="password", confirmed=True)
    assert refused.value.code == "secret"


def test_what_a_program_makes_of_a_confirmed_memory_is_not_confirmed(cast: Cast) -> None:
    memory = save(cast, "About my card", source_message_id="msg_" + "a" * 24)
    with pytest.raises(Sensitive):
        gate.edit_memory(
            memory,
            by=cast.owner,
            now=timezone.now(),
            made_from=memory.source_message_id,
            confirmed=True,
            summary=CARD,
        )


def test_a_confirmed_memory_can_be_deleted_and_restored(cast: Cast) -> None:
    memory = save(cast, confirmed=True)
    gate.delete_memory(memory, by=cast.owner, now=timezone.now())
    assert changing.restore_memory(memory, by=cast.owner, now=timezone.now()).deleted_at is None


def test_an_excerpt_goes_without_the_lines_that_hold_one() -> None:
    assert without_secrets(f"Hello\n{CARD}\nBye") == "Hello\nBye"
    assert without_secrets("my PIN is\n4711") == ""


def test_a_refusal_is_counted_as_one_of_its_own_kind(
    cast: Cast, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(Sensitive):
        save(cast, source_type="auto_chat")
    assert [(row.kind, row.source_type) for row in Refusal.objects.all()] == [("sensitive", "auto_chat")]


# Imports, and stored rows


def test_an_import_takes_no_such_line_and_no_such_past(cast: Cast) -> None:
    with pytest.raises(Sensitive):
        save_memories([draft(cast, source_type="import")], by=cast.owner, now=timezone.now())
    line = {"content": "Cats purr", "source_type": "user"}
    assert read_memory(line).draft.content == "Cats purr"
    past = {"action": "edit", "at": "2026-01-01T00:00:00Z", "before": {"content": CARD}}
    for hostile in ({"content": CARD}, {"source_details": {"pin": "4711"}}, {"revisions": [past]}):
        with pytest.raises(Sensitive):
            read_memory(line | hostile)


def test_a_scan_hides_what_something_automatic_stored_and_leaves_what_a_person_wrote(cast: Cast) -> None:
    mine, noticed, edited = (make_memory(f"Row {number}", cast.owner, cast.workspace) for number in range(3))
    gate.edit_memory(edited, by=cast.owner, now=timezone.now(), content="Row 2, edited")
    for memory, source in ((mine, "user"), (noticed, "auto_chat"), (edited, "model")):
        content = f"{CARD} ({memory.pk})"
        Memory.objects.filter(pk=memory.pk).update(
            content=content, source_type=source, secret_rules=RULES - 1
        )
    *_, scanned = remaining_copies.scan(now=timezone.now())
    assert scanned.hidden == [(noticed.public_id, "card")]
    noticed.refresh_from_db()
    restored = changing.restore_memory(noticed, by=cast.owner, now=timezone.now())
    Memory.objects.filter(pk=restored.pk).update(secret_rules=RULES - 1)
    *_, scanned = remaining_copies.scan(now=timezone.now())
    assert scanned.hidden == []


# Over REST


def test_every_door_of_the_api_asks_once(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    message = make_message(chat, CARD)
    ws = f"workspaces/{cast.workspace.public_id}"
    api, program = Api(cast.owner), Api(base=V1, key=make_key_text(cast.owner, cast.workspace))
    doors: list[tuple[Api, str, dict[str, Any]]] = [
        (api, f"{ws}/memories", {"content": CARD, "dedupe": "create"}),
        (api, f"{chat.public_id}/memory", {"messageId": message.public_id}),
        (api, f"{chat.public_id}/memory", {"content": f"{CARD}, gold"}),
        (program, "memories", {"value": CARD, "dedupe": "create"}),
        (program, "memories", {"value": f"{CARD}!", "source": "my-notes", "dedupe": "create"}),
    ]
    for door, path, body in doors:
        before = Memory.objects.count()
        for said in ({}, {"confirm": False}):
            refused = door.post(path, body | said)
            assert (refused.status_code, error_of(refused)["code"]) == (422, "sensitive"), path
        assert Memory.objects.count() == before
        assert door.post(path, body | {"confirm": True}).status_code in (200, 201), path
        for nonsense in ("true", 1, None):
            assert error_of(door.post(path, body | {"confirm": nonsense}))["code"] == "invalid"


def test_a_change_over_rest_asks_too(cast: Cast) -> None:
    memory = make_memory("Cats purr", cast.owner, cast.workspace)
    path = f"workspaces/{cast.workspace.public_id}/memories/{memory.public_id}"
    for api, where, field in (
        (Api(cast.editor), path, "content"),
        (
            Api(base=V1, key=make_key_text(cast.editor, cast.workspace)),
            f"memories/{memory.public_id}",
            "value",
        ),
    ):
        text = f"{CARD} {field}"
        assert error_of(api.patch(where, {field: text}))["code"] == "sensitive"
        assert api.patch(where, {field: text, "confirm": True}).json()[field] == text
    assert Api(cast.viewer).patch(path, {"content": CARD, "confirm": True}).status_code == 403
    assert Api(cast.stranger).patch(path, {"content": CARD, "confirm": True}).status_code == 404


def test_a_proposal_of_a_viewer_asks_the_viewer(cast: Cast) -> None:
    cast.workspace.reviews_proposals = True
    cast.workspace.save()
    path = f"workspaces/{cast.workspace.public_id}/proposals"
    assert error_of(Api(cast.viewer).post(path, {"content": CARD}))["code"] == "sensitive"
    assert Api(cast.viewer).post(path, {"content": CARD, "confirm": True}).status_code == 202


# On pages


def test_the_panels_form_asks_with_one_click_to_save_anyway(cast: Cast) -> None:
    client, add = signed_in(cast.owner), reverse("memories:create", args=[cast.workspace.public_id])
    asked = client.post(add, {"new-content": CARD})
    html = asked.content.decode()
    assert (asked.status_code, asked["HX-Retarget"]) == (422, "this")
    assert "looks like a card number" in html and 'name="confirm"' in html and CARD in html
    assert html.index('type="submit"') < html.index('name="confirm"')  # Enter in a field does not confirm
    assert "Remembered" in client.post(add, {"new-content": CARD, "confirm": "true"}).content.decode()
    assert 'name="confirm"' not in client.post(add, {"new-content": f"token {TOKEN}"}).content.decode()


def test_the_edit_form_asks_and_keeps_what_was_typed(cast: Cast) -> None:
    memory = make_memory("Cats purr", cast.owner, cast.workspace)
    client = signed_in(cast.owner)
    edit = reverse("memories:edit", args=[cast.workspace.public_id, memory.public_id])
    typed = {f"{memory.public_id}-content": CARD, f"{memory.public_id}-category": "fact"}
    asked = client.post(edit, typed)
    assert asked.status_code == 422 and 'name="confirm"' in asked.content.decode()
    memory.refresh_from_db()
    assert memory.content == "Cats purr"
    assert client.post(edit, typed | {"confirm": "true"}).status_code == 200
    memory.refresh_from_db()
    assert memory.content == CARD


def test_remember_this_asks_in_its_place(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    message = make_message(chat, CARD, role=MessageRole.USER)
    client, button = signed_in(cast.owner), reverse("chat:remember", args=[chat.public_id, message.public_id])
    asked = client.post(button)
    assert (asked.status_code, asked["HX-Retarget"]) == (422, "closest .remember-slot")
    assert "Remember anyway" in asked.content.decode() and not Memory.objects.exists()
    assert "Undo" in client.post(button, {"confirm": "true"}).content.decode()
    memory = Memory.objects.get()
    assert memory.content == CARD and "4111" not in memory.source_excerpt
    assert signed_in(cast.stranger).post(button, {"confirm": "true"}).status_code == 404
