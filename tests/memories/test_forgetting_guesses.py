"""Permanently deleting a guess reveals nothing of others' memories and deletes none of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db.models import Q
from django.test import Client
from django.utils import timezone

from chat.chats.services import forget_chat
from memories.forgetting import remaining_copies
from memories.forgetting.for_good import forget_memories, may_forget
from memories.models import KeptCopy, Memory, Receipt, ReceiptItem, Revision
from memories.writing import gate
from tests.admin_pages import run_action
from tests.api import type_password_again
from tests.conftest import Cast
from tests.factories import make_chat, make_memory
from tests.raw_search import places_with
from tests.rollback import rolled_back
from workspaces.access import default_workspace, role_in
from workspaces.models import Membership, Role, User, Workspace

SECRET = "Heliotrope Marzipan is the name of the merger"
WRONG = "Periwinkle Nougat was the name of the merger"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake_embedder")]


@dataclass
class Home:
    """The owner's own workspace with their personal memories; an editor and a second owner are members."""

    workspace: Workspace
    owner: User
    editor: User
    second: User
    personal: Memory
    shared: Memory


def say(text: str, by: User, workspace: Workspace, **fields: Any) -> Memory:
    """Create a memory that once had the text, whose excerpt quotes it, and whose receipt contains it."""
    now = timezone.now()
    memory = make_memory(text, by, workspace, **fields)
    receipt = Receipt.objects.create(
        message_id=f"msg_{memory.pk:024}", workspace=workspace, user=by, ranking="hybrid", threshold=0.3
    )
    receipt.items.create(memory=memory, position=1, score=0.5, content=f"So: {text}", used=True)
    gate.edit_memory(memory, by=by, now=now, content=f"Number {memory.pk} has nothing to do with it")
    Memory.objects.filter(pk=memory.pk).update(source_excerpt=f"olive: {text}\nAssistant: Noted.")
    return memory


@pytest.fixture
def home(cast: Cast, fake_embedder: object) -> Home:
    workspace = default_workspace(cast.owner)
    for person, role in ((cast.editor, Role.EDITOR), (cast.stranger, Role.OWNER)):
        Membership.objects.create(workspace=workspace, user=person, role=role)
    personal = say(SECRET, cast.owner, workspace, scope="user")
    shared = say(f"Do not tell: {SECRET}!", cast.owner, workspace)
    gone = make_memory(SECRET, cast.owner, workspace)
    gate.delete_memory(gone, by=cast.owner, now=timezone.now())
    before = make_memory("We merge", cast.owner, workspace, summary=SECRET)
    forget_memories([before], by=cast.owner, now=timezone.now(), among=Memory.objects.filter(pk=before.pk))
    KeptCopy.objects.all().delete()
    return Home(workspace, cast.owner, cast.editor, cast.stranger, personal, shared)


def rows_of_others(user: User) -> Any:
    """Return all rows that this user may not delete, with dependent rows."""
    theirs = Memory.objects.exclude(pk__in=Memory.objects.forgettable_by(user).values("pk"))
    rows = theirs.order_by("pk").values_list("pk", "content", "source_excerpt", "deleted_at")
    revisions = Revision.objects.filter(memory__in=theirs).order_by("pk").values_list("pk", "before")
    items = ReceiptItem.objects.filter(memory__in=theirs).order_by("pk").values_list("pk", "content")
    return list(rows), list(revisions), list(items)


def over_rest(home: Home, person: User, text: str) -> dict[str, Any]:
    client = Client()
    client.force_login(person)
    type_password_again(client)
    address = f"/chat/api/workspaces/{home.workspace.public_id}/memories"
    body = {"content": text, "dedupe": "create"}
    made = client.post(address, body, content_type="application/json")
    assert made.status_code == 201, made.content
    done = client.post(f"{address}/{made.json()['id']}/forget", {}, content_type="application/json")
    assert done.status_code == 200, done.content
    return dict(done.json())


GUESSES: dict[str, Callable[[str], str]] = {
    "as it was": str,
    "in capitals": str.upper,
    "a part": lambda text: " ".join(text.split()[:2]),
    "with a dot": lambda text: f"{text}.",
    "more": lambda text: f"{text}, they say",
}


def test_a_right_guess_looks_like_a_wrong_one_and_takes_nothing(home: Home) -> None:
    before = rows_of_others(home.editor)
    for name, guess in rolled_back(GUESSES.items()):
        right, wrong = (over_rest(home, home.editor, guess(text)) for text in (SECRET, WRONG))
        for report in (right, wrong):
            report["recall"].pop(
                "others"
            )  # further results of the same words that the editor may read anyway
            report["removed"].pop("memory_words")  # the words of the texts themselves
        assert right == wrong, name
        assert set(right["removed"]) == {"memories", "memory_embeddings", "revisions"}, name
        assert rows_of_others(home.editor) == before, name


def test_a_guess_in_a_summary_tells_not_that_it_was_forgotten_before(home: Home) -> None:
    made = [
        make_memory(f"About {text[:4]}", home.editor, home.workspace, summary=text)
        for text in (SECRET, WRONG)
    ]
    reports = [forget_memories([each], by=home.editor, now=timezone.now()) for each in made]
    assert [each.tombstones for each in reports] == [2, 2]


def test_a_second_owner_takes_what_is_shared_and_never_what_is_personal(home: Home) -> None:
    twin = make_memory(SECRET, home.second, home.workspace)
    before = rows_of_others(home.second)
    report = forget_memories([twin], by=home.second, now=timezone.now())
    assert rows_of_others(home.second) == before
    assert report.removed["memories"] == 2  # the owner's deleted one, too
    assert report.removed["source excerpts"] == 1
    assert report.removed["earlier versions of other memories"] == 1
    assert report.removed["receipt items"] == 0, "they stood under answers to somebody else"
    home.shared.refresh_from_db()
    assert home.shared.source_excerpt == ""
    assert not home.shared.receipt_items.exclude(content="").exists()
    own = forget_memories(
        [make_memory(SECRET, home.owner, home.workspace)], by=home.owner, now=timezone.now()
    )
    assert (own.removed["source excerpts"], own.removed["receipt items"]) == (1, 1)
    assert places_with(SECRET) == []


def test_five_histories_of_the_owner_stay_when_an_editor_forgets_a_phrase(cast: Cast) -> None:
    for number in range(5):
        say(f"The deadline is March {number}", cast.owner, cast.workspace)
    before = rows_of_others(cast.editor)
    report = forget_memories(
        [make_memory("deadline is March", cast.editor, cast.workspace)], by=cast.editor, now=timezone.now()
    )
    assert rows_of_others(cast.editor) == before
    assert set(report.removed) <= {"memories", "memory embeddings", "memory words", "revisions"}


def test_how_often_others_recalled_it_is_not_counted(cast: Cast) -> None:
    guess = make_memory("Who asks about a divorce?", cast.editor, cast.workspace)
    for number, person in enumerate([cast.owner, cast.owner, cast.editor]):
        receipt = Receipt.objects.create(
            message_id=f"msg_{number:024}",
            workspace=cast.workspace,
            user=person,
            ranking="hybrid",
            threshold=0.3,
        )
        receipt.items.create(memory=guess, position=1, score=0.5, content=guess.content, used=True)
    report = forget_memories([guess], by=cast.editor, now=timezone.now())
    assert report.removed["receipt items"] == 1
    assert not ReceiptItem.objects.exists()


def test_ones_own_copies_elsewhere_go_too(home: Home) -> None:
    own = say(SECRET, home.editor, default_workspace(home.editor), scope="user")
    make_memory("Not personal", home.editor, default_workspace(home.editor), source_excerpt=SECRET)
    twin = make_memory(SECRET, home.editor, home.workspace)
    forget_memories([twin], by=home.editor, now=timezone.now())
    own.refresh_from_db()
    assert own.source_excerpt == ""
    assert not Revision.objects.filter(memory=own).filter(before__content=SECRET).exists()
    assert Memory.objects.filter(source_excerpt=SECRET).count() == 1, "another workspace's is another matter"


def test_more_texts_than_are_looked_for_touch_no_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaining_copies, "LOOKED_FOR", 4)
    before = rows_of_others(home.editor)
    guesses = [make_memory(f"{SECRET} {n}", home.editor, home.workspace) for n in range(4)]
    forget_memories(
        [*guesses, make_memory(SECRET, home.editor, home.workspace)], by=home.editor, now=timezone.now()
    )
    assert rows_of_others(home.editor) == before


def test_a_chat_forgotten_with_its_memories_tells_nothing_of_others_either(home: Home) -> None:
    chat = make_chat(home.editor, home.workspace)
    Memory.objects.filter(pk=home.personal.pk).update(source_chat_id=chat.public_id)
    make_memory(SECRET, home.editor, home.workspace, source_chat_id=chat.public_id)
    report = forget_chat(chat, by=home.editor, now=timezone.now(), memories=True)
    assert report.removed["memories"] == 1
    assert not {"source excerpts", "receipt items", "earlier versions of other memories"} & set(
        report.removed
    )
    home.personal.refresh_from_db()
    assert home.personal.source_excerpt == "", "the chat's own words go with it"
    assert Revision.objects.filter(memory=home.personal, before__content=SECRET).exists()
    assert Memory.objects.filter(pk=home.shared.pk).exclude(source_excerpt="").exists()


def test_a_chats_words_go_from_the_histories_of_its_memories_too(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    memory = make_memory(
        "Larch", cast.owner, cast.workspace, source_chat_id=chat.public_id, source_excerpt=SECRET
    )
    gate.edit_memory(memory, by=cast.owner, now=timezone.now(), content="Larch is a wood")
    assert places_with(SECRET)
    forget_chat(chat, by=cast.owner, now=timezone.now())
    assert places_with(SECRET) == []
    assert Revision.objects.filter(memory=memory, before__content="Larch").exists()


def test_staff_take_what_they_may_read(home: Home, client: Client, django_user_model: Any) -> None:
    staff = django_user_model.objects.create_user("stella", password="x", is_staff=True)
    staff.user_permissions.set(
        Permission.objects.filter(codename__in=["view_memory", "delete_memory", "change_memory"])
    )
    personal = [row for row in rows_of_others(home.second)[1] if SECRET in str(row)]
    twin = make_memory(SECRET, home.editor, home.workspace)
    client.force_login(staff)
    type_password_again(client)
    run_action(client, "/admin/memories/memory/", "forget_for_good", twin)
    assert not Memory.objects.filter(pk=twin.pk).exists()
    assert [row for row in rows_of_others(home.second)[1] if SECRET in str(row)] == personal
    assert not Memory.objects.filter(owner=None).filter(Q(source_excerpt__contains=SECRET)).exists()


def test_forgettable_is_what_may_be_forgotten_one_by_one(home: Home, cast: Cast) -> None:
    by_viewer = make_memory("By a viewer, then an editor", cast.viewer, home.workspace)
    everybody = [home.owner, home.editor, home.second, cast.viewer]
    for person in everybody:
        one_by_one = {
            memory.pk
            for memory in Memory.objects.all()
            if may_forget(memory, person, role_in(person, memory.workspace))
        }
        assert one_by_one == set(Memory.objects.forgettable_by(person).values_list("pk", flat=True))
    assert by_viewer.pk not in Memory.objects.forgettable_by(cast.viewer).values_list("pk", flat=True)
