"""Keys: unique in their scope at any time and by every route, and updates keep fields that are not given."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.forgetting.for_good import forget_memories
from memories.models import Memory, Scope
from memories.writing import decide
from memories.writing.changing import restore_memory
from memories.writing.drafts import Draft
from memories.writing.export_lines import read_memory
from memories.writing.gate import delete_memory, edit_memory, save_memory
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import Conflict, Invalid
from tests.admin_pages import run_action, said
from tests.api import V1, Api
from tests.chat.import_export.test_exchange import exported, imported_whole, lines_of
from tests.chat.import_export.test_exchange_rules import file_of, memory
from tests.conftest import Cast
from tests.factories import make_agent, make_key_text, make_memory
from tests.races import Pause, meanwhile

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
SAID, NEARLY = "I prefer answers in bullet points", "I prefer my answers in bullet points"


def save(cast: Cast, content: str, dedupe: str = "key", **fields: Any) -> Any:
    draft = Draft(content=content, workspace=cast.workspace, author=cast.editor, **fields)
    return save_memory(draft, by=cast.editor, now=fields.pop("now", timezone.now()), dedupe=dedupe)


def history(memory: Memory) -> list[tuple[str, dict[str, Any]]]:
    return list(memory.revisions.order_by("id").values_list("action", "before"))


def holders(key: str) -> list[str]:
    return list(Memory.objects.filter(key=key, deleted_at=None).values_list("content", flat=True))


# Fields that are not given


@pytest.mark.parametrize("prefix", ["rest", "v1"])
def test_over_rest_what_is_left_out_is_kept_and_what_is_named_is_set(cast: Cast, prefix: str) -> None:
    if prefix == "v1":
        api, path, text = Api(base=V1, key=make_key_text(cast.editor, cast.workspace)), "memories", "value"
        eight, said = 8, {"category": "event", "expiresAt": "2099-01-01T00:00:00Z"}
    else:
        api, path, text = Api(cast.editor), f"workspaces/{cast.workspace.public_id}/memories", "content"
        eight, said = 0.8, {"category": "event", "expires_at": "2099-01-01T00:00:00Z"}
    first = api.post(path, {text: "Tea", "key": "drink", "importance": eight, "tags": ["hot"], **said}).json()
    kept = api.post(path, {text: "Coffee", "key": "drink"}).json()
    changed = {name for name in first if kept[name] != first[name]} - {"updatedAt", "updated_at"}
    assert changed == {text}
    middle = 0.5 if prefix == "rest" else 5
    named = api.post(path, {text: "Water", "key": "drink", "tags": [], "importance": middle}).json()
    assert (named["tags"], named["importance"], named["category"]) == ([], middle, "event")


# Equal texts with a key


def test_an_equal_text_is_known_where_only_its_owner_or_an_assistant_has_it(cast: Cast) -> None:
    agent = make_agent(cast.owner, cast.workspace)
    fields: list[dict[str, Any]] = [{}, {"scope": Scope.USER}, {"scope": Scope.AGENT, "agent": agent}]
    assert all(save(cast, SAID, key="style", **each).created for each in fields)
    assert not any(save(cast, "Other", key="style", **each).created for each in fields)
    assert len(holders("style")) == 3


# Uniqueness


def test_create_moves_the_key_and_the_older_one_says_where(cast: Cast) -> None:
    first = save(cast, "Tea", key="drink", tags=["hot"]).memory
    forced = save(cast, "Tea", dedupe="create", key="drink").memory
    first.refresh_from_db()
    assert (first.key, first.content, first.tags, forced.key) == (None, "Tea", ["hot"], "drink")
    assert history(first)[-1] == ("key", {"key": "drink", "key_went_to": forced.public_id})
    assert first.deleted_at is None and "drink" not in Memory.objects.get(pk=first.pk).search


def test_a_restored_one_comes_back_without_a_key_that_is_taken_and_says_so(cast: Cast) -> None:
    first = save(cast, "Tea", key="drink").memory
    delete_memory(first, by=cast.editor, now=timezone.now())
    second = save(cast, "Coffee", key="drink").memory
    api = Api(cast.editor)
    answer = api.post(f"workspaces/{cast.workspace.public_id}/memories/{first.public_id}/restore").json()
    assert (answer["key"], answer["lost_key"], answer["content"]) == (None, "drink", "Tea")
    assert history(first)[-1] == ("restore", {"key": "drink", "key_went_to": second.public_id})
    assert holders("drink") == ["Coffee"]


def test_a_restored_one_keeps_a_key_that_is_free(cast: Cast) -> None:
    first = save(cast, "Tea", key="drink").memory
    delete_memory(first, by=cast.editor, now=timezone.now())
    save(cast, "Coffee", key="drink", expires_at=timezone.now() - timedelta(1))
    assert restore_memory(first, by=cast.editor, now=timezone.now()).key == "drink"
    assert holders("drink") == ["Tea"]


def test_an_expired_one_gives_its_key_away(cast: Cast) -> None:
    first = save(cast, "Tea", key="drink", expires_at=timezone.now() - timedelta(1)).memory
    assert save(cast, "Coffee", key="drink").created
    first.refresh_from_db()
    assert first.key is None and history(first)[-1][0] == "key"
    other = make_memory("Water", cast.editor, cast.workspace, key="well", expires_at=NOW)
    mine = save(cast, "Milk").memory
    assert edit_memory(mine, by=cast.editor, now=timezone.now(), key="well").key == "well"
    other.refresh_from_db()
    assert other.key is None
    with pytest.raises(Conflict):
        edit_memory(mine, by=cast.editor, now=timezone.now(), key="drink")


def test_the_database_keeps_it_so_past_every_door(cast: Cast) -> None:
    save(cast, "Tea", key="drink")
    other = save(cast, "Milk").memory
    with pytest.raises(IntegrityError), transaction.atomic():
        Memory.objects.filter(pk=other.pk).update(key="drink")
    Memory.objects.filter(pk=other.pk).update(key="drink", deleted_at=timezone.now())


# Other wordings


def test_what_was_said_otherwise_is_kept_once_and_goes_with_the_memory(cast: Cast) -> None:
    first = save(cast, SAID).memory
    for _ in range(2):
        assert save(cast, NEARLY).duplicate
        assert save(cast, SAID.upper()).duplicate
    assert history(first)[1:] == [("also_said", {"content": NEARLY})]
    forget_memories([first], by=cast.editor, now=timezone.now())
    draft = Draft(NEARLY, cast.workspace, cast.editor, source_type="auto_chat")
    with pytest.raises(WasForgotten):
        save_memory(draft, by=None, now=timezone.now())


def test_the_page_shows_other_wordings_and_an_export_takes_them_along(cast: Cast, client: Client) -> None:
    first = save(cast, SAID, key="style").memory
    save(cast, NEARLY)
    forced = save(cast, "Other", dedupe="create", key="style").memory
    client.force_login(cast.viewer)
    address = reverse("memories:history", args=[cast.workspace.public_id, first.public_id])
    page = " ".join(client.get(address).content.decode().split())
    assert "Also said as" in page and f'history__before"> <bdi>{NEARLY}</bdi> </p>' in page
    line = next(
        each for each in lines_of(exported(cast.owner, cast.workspace)) if each.get("id") == first.public_id
    )
    past = read_memory(line).past.revisions
    assert [(each.action, each.before) for each in past[1:]] == [
        ("also_said", {"content": NEARLY}),
        ("key", {"key": "style", "key_went_to": forced.public_id}),
    ]


def test_a_file_cannot_say_anything_of_where_a_key_went() -> None:
    for note in (5, "x" * 33, "\x00", {"a": "b"}):
        at = "2026-01-01T00:00:00Z"
        revision = {"action": "key", "at": at, "before": {"key": "style", "key_went_to": note}}
        with pytest.raises(Invalid):
            read_memory({"content": SAID, "revisions": [revision]})


def test_two_lines_of_one_export_with_one_key(cast: Cast, tmp_path: Any, settings: Any) -> None:
    """An earlier release could store two; the later one keeps the key, and nothing is lost."""
    settings.DATA_DIR = tmp_path
    lines = [memory("Tea", key="drink"), memory("Coffee", key="drink"), memory("Water", key="drink")]
    imported = imported_whole(cast.owner, file_of(*lines), cast.workspace)
    assert imported.outcomes == imported.foreseen
    assert holders("drink") == ["Water"] and Memory.objects.count() == 3
    went = Memory.objects.get(content="Tea").revisions.get(action="key").before["key_went_to"]
    assert went == Memory.objects.get(content="Coffee").public_id


# Staff


def test_the_admin_adds_by_key_and_says_what_came_back_without_one(cast: Cast, admin_client: Client) -> None:
    first = save(cast, "Tea", key="drink", tags=["hot"]).memory
    form = {"workspace": cast.workspace.pk, "content": "Coffee", "key": "drink", "importance": "0.5"}
    answer = admin_client.post(reverse("admin:memories_memory_add"), form)
    assert answer.status_code == 302, answer.content.decode()
    first.refresh_from_db()
    assert (first.content, first.tags, Memory.objects.count()) == ("Coffee", ["hot"], 1)
    gone = save(cast, "Milk", key="white").memory
    delete_memory(gone, by=cast.editor, now=timezone.now())
    save(cast, "Snow", key="white")
    page: Any = run_action(admin_client, reverse("admin:memories_memory_changelist"), "restore", gone)
    assert f"Came back without a key, since another memory has it by now: {gone.public_id}." in said(page)


# Two at once


@pytest.mark.django_db(transaction=True)
def test_two_equal_keys_at_one_instant_make_one_row(cast: Cast) -> None:
    start, made = threading.Barrier(4), []

    def act(number: int) -> None:
        try:
            start.wait(10)
            made.append(save(cast, f"Statement number {number} about tea", key="drink"))
        except Exception as error:
            made.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(each.created for each in made) == [False, False, False, True]
    assert Memory.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_is_known_goes_while_it_is_to_get_a_key(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    first, pause = save(cast, SAID).memory, Pause()
    monkeypatch.setattr("memories.writing.decide.find_equal", pause.after(decide.find_equal))
    saved = meanwhile(
        pause,
        lambda: save(cast, SAID, key="style"),
        lambda: delete_memory(first, by=cast.editor, now=timezone.now()),
    )
    assert saved.created and holders("style") == [SAID]


@pytest.mark.django_db(transaction=True)
def test_a_key_taken_past_the_queue_is_a_conflict(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = save(cast, "Milk").memory
    gone = save(cast, "Tea", key="drink").memory
    delete_memory(gone, by=cast.editor, now=timezone.now())
    other = Memory.objects.filter(pk=save(cast, "Water").memory.pk)
    acts: dict[str, Callable[[], Any]] = {
        "save": lambda: save(cast, "Coffee", key="drink"),
        "edit": lambda: edit_memory(mine, by=cast.editor, now=timezone.now(), key="drink"),
        "restore": lambda: restore_memory(gone, by=cast.editor, now=timezone.now()),
    }
    for name, act in acts.items():
        pause = Pause()
        with monkeypatch.context() as patch:
            patch.setattr("memories.writing.decide.find_key_owner", pause.after(decide.find_key_owner))
            result = meanwhile(pause, act, lambda: other.update(key="drink") and None)
        assert isinstance(result, Conflict), name
        assert holders("drink") == ["Water"], name
        other.update(key=None)
