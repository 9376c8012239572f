"""Corrections replace memories: read from conversations by the bundled encoder, in eight languages."""

# ruff: noqa: E501, RUF001  messages of other scripts, a case a line
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from chat.models import Chat
from memories import tasks
from memories.models import Memory
from memories.writing import extraction_jobs
from memories.writing.changing import hold_again, restore_memory
from memories.writing.gate import Draft, edit_memory, save_memory
from tests.factories import make_chat, make_message, make_user, make_workspace
from workspaces.models import Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return make_user()


@pytest.fixture
def room(person: User) -> Workspace:
    return make_workspace(owner=person)


def kept(room: Workspace, author: User, *texts: str, **more: object) -> list[Memory]:
    drafts = [Draft(content=text, workspace=room, author=author, **more) for text in texts]
    return [save_memory(draft, by=author, now=timezone.now()).memory for draft in drafts]


def take_turns(
    room: Workspace, person: User, *texts: str, at: datetime | None = None, **chat: object
) -> list[str]:
    """Take these turns in one chat, ``at`` a time or now, and extract from each. Return the live memories."""
    return say_in(make_chat(person, workspace=room, **chat), person, *texts, at=at)


def say_in(here: Chat, person: User, *texts: str, at: datetime | None = None) -> list[str]:
    for text in texts:
        question = make_message(here, text, author=person, created_at=at or timezone.now())
        answer = make_message(here, "Noted.", "assistant", reply_to=question)
        row = extraction_jobs.queue_extraction(
            workspace=here.workspace, user=person, chat_id=here.public_id, message_id=answer.public_id,
            source_type="auto_chat", now=timezone.now(),
        )  # fmt: skip
        tasks.extract_turn(extraction_id=row.pk)
    return live()


def live() -> list[str]:
    now = timezone.now()
    return list(Memory.objects.live(now).not_over(now).order_by("pk").values_list("content", flat=True))


def test_correction_replaces_the_older_memory(room: Workspace, person: User) -> None:
    cases = [
        ("The meeting is on Tuesday", "The launch is on March 3", "Actually the meeting is on Thursday, not Tuesday.", "Thursday"),
        ("I work at Acme as an analyst", "My wife is called Dana", "I left Acme, I'm at Globex now.", "Globex"),
        ("Deploy on Wednesday", "Use tabs in the code", "Scratch that, deploy on Friday.", "Friday"),
        ("Das Treffen ist am Dienstag", "Ich trinke gern Tee", "Das Treffen ist doch am Donnerstag, nicht am Dienstag.", "Donnerstag"),
        ("La reunión es el martes", "Me gusta el té", "En realidad la reunión es el jueves, no el martes.", "jueves"),
        ("La réunion est mardi", "J'aime le thé", "En fait la réunion est jeudi, pas mardi.", "jeudi"),
        ("La riunione è martedì", "Mi piace il tè", "In realtà la riunione è giovedì, non martedì.", "giovedì"),
        ("A reunião é na terça", "Gosto de chá", "Na verdade a reunião é na quinta, não na terça.", "quinta"),
        ("会议是周二", "我喜欢喝茶", "不对，会议是周四，不是周二。", "周四"),
        ("Встреча во вторник", "Я люблю чай", "На самом деле встреча в четверг, а не во вторник.", "четверг"),
    ]  # fmt: skip
    for old, beside, said, new in cases:
        older, _other = kept(room, person, old, beside)
        now_live = take_turns(room, person, said)
        assert old not in now_live and beside in now_live, said
        assert new in now_live[-1], said
        newer = Memory.objects.live(timezone.now()).get(content=now_live[-1])
        assert newer.replaced == older, said
        older.refresh_from_db()
        assert (older.replaced_by, older.deleted_at) == (newer, None), said
        assert [each.action for each in older.revisions.order_by("pk")] == ["create", "replace"], said
        Memory.objects.all().delete()


def test_two_turns_of_a_chat_and_two_sentences_of_a_message(room: Workspace, person: User) -> None:
    assert "Wednesday" not in " ".join(
        take_turns(room, person, "Deploy on Wednesday.", "Scratch that, deploy on Friday.")
    )
    Memory.objects.all().delete()
    found = take_turns(
        room, person, "The demo is on Monday at noon. Sorry, the demo is on Wednesday, not Monday."
    )
    assert len(found) == 1 and "Wednesday" in found[0]


def test_scratch_that_alone_takes_back_the_last_memory(room: Workspace, person: User) -> None:
    phrases = [
        "Scratch that.",
        "actually, scratch that!",
        "Vergiss, was ich gerade gesagt habe.",
        "Ignora mi último mensaje.",
        "Oublie ce que je viens de dire.",
        "忘了我刚才说的话。",
    ]
    old = "I live in Boston"
    for words in phrases:
        kept(room, person, old)
        assert len(take_turns(room, person, "My sister is called Dana.")) == 2, words
        found = take_turns(room, person, "My brother is called Ted.", words)
        assert found == [old, "My sister is called Dana"], (words, "the last alone, and of this chat")
        gone = Memory.objects.exclude(deleted_at=None).get()
        restore_memory(gone, by=person, now=timezone.now())
        assert gone.content in live(), words
        Memory.objects.all().delete()


@pytest.mark.parametrize("more", [{"pinned": True}, {"key": "ted"}])
def test_it_takes_back_nothing_older_nothing_pinned_and_nothing_of_others(
    room: Workspace, person: User, more: dict[str, object]
) -> None:
    text = "My brother is called Ted"
    assert text in take_turns(room, person, f"{text}.", "Thanks!", "Scratch that.")
    assert text in take_turns(room, person, "That's wrong.")
    other = make_user()
    Membership.objects.create(workspace=room, user=other, role=Role.EDITOR)
    here = make_chat(person, workspace=room)
    asked = make_message(here, "My aunt is called Bea.", author=other)
    kept(room, other, "My aunt is called Bea", source_message_id=asked.public_id, source_type="auto_chat")
    kept(
        room,
        person,
        "My dog is called Rex",
        source_message_id=asked.public_id,
        source_type="auto_chat",
        **more,
    )
    assert {"My aunt is called Bea", "My dog is called Rex"} <= set(say_in(here, person, "Scratch that."))


def test_other_statements_replace_nothing(room: Workspace, person: User) -> None:
    texts = [
        "My friend Rob left Acme, he is at Globex now.",
        "I also do some work for Globex.",
        "Imagine I left Acme and was at Globex now.",
        "Translate: I left Acme, I'm at Globex now.",
        "Acme has a new canteen.",
    ]
    for said in texts:
        unrelated = {"I work at Acme as an analyst", "I live in Boston"}
        kept(room, person, *unrelated)
        assert unrelated <= set(take_turns(room, person, said)), said
        Memory.objects.all().delete()


def test_what_another_said_or_only_its_person_sees_stays(room: Workspace, person: User) -> None:
    other = make_user()
    Membership.objects.create(workspace=room, user=other, role=Role.EDITOR)
    kept(room, other, "I work at Acme as an analyst")
    assert "I work at Acme as an analyst" in take_turns(room, person, "I left Acme, I'm at Globex now.")
    Memory.objects.all().delete()
    kept(room, person, "I work at Acme as an analyst")
    assert "I work at Acme as an analyst" in take_turns(
        room, person, "I left Acme, I'm at Globex now.", is_private=True
    )


@pytest.mark.parametrize("more", [{"pinned": True}, {"key": "meeting"}])
def test_what_is_pinned_or_has_a_key_is_asked_about(
    room: Workspace, person: User, more: dict[str, object]
) -> None:
    [older] = kept(room, person, "The meeting is on Tuesday", **more)
    assert len(take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday.")) == 2
    newer = Memory.objects.order_by("pk").last()
    assert newer is not None and newer.may_replace == older and newer.replaced is None


def test_undo_on_the_card_brings_it_back(room: Workspace, person: User, client: Client) -> None:
    [older] = kept(room, person, "The meeting is on Tuesday")
    take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday.")
    client.force_login(person)
    panel = reverse("memories:panel", args=[room.public_id])
    undo = reverse("memories:replace", args=[room.public_id, Memory.objects.get(replaces=older).public_id])
    answer, page = {"keep": "older"}, client.get(panel).content.decode()
    assert undo in page and "Undo" in page and date_format(timezone.now(), "DATE_FORMAT") in page
    stranger = Client()
    stranger.force_login(make_user())
    assert stranger.post(undo, answer).status_code == 404
    assert client.post(undo, answer).status_code == 200
    assert "The meeting is on Tuesday" in live()
    page = client.get(panel).content.decode()
    assert "Undo" not in page and "Older memory" in page


def test_what_is_forgotten_meanwhile_replaces_nothing(
    room: Workspace, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted between reading and the transaction."""
    [older] = kept(room, person, "The meeting is on Tuesday")
    find = extraction_jobs.replaced_by

    def and_forget(*args: object, **named: object) -> object:
        found = find(*args, **named)  # type: ignore[arg-type]
        assert found
        Memory.objects.filter(pk=older.pk).delete()
        return found

    monkeypatch.setattr(extraction_jobs, "replaced_by", and_forget)
    assert len(take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday.")) == 1
    assert Memory.objects.get().may_replace is None


@pytest.mark.parametrize("meanwhile", [{"pinned": True}, {"content": "My brother is called Tad"}])
def test_what_is_changed_meanwhile_is_not_taken_back(
    room: Workspace, person: User, monkeypatch: pytest.MonkeyPatch, meanwhile: dict[str, object]
) -> None:
    """It is changed between reading and the transaction."""
    find = extraction_jobs.taken_back

    def and_change(*args: object, **named: object) -> Memory | None:
        found: Memory | None = find(*args, **named)  # type: ignore[arg-type]
        if found:
            edit_memory(Memory.objects.get(pk=found.pk), by=person, now=timezone.now(), **meanwhile)
        return found

    monkeypatch.setattr(extraction_jobs, "taken_back", and_change)
    take_turns(room, person, "My brother is called Ted.", "Scratch that.")
    [stays] = Memory.objects.live(timezone.now())
    assert [getattr(stays, name) for name in meanwhile] == [*meanwhile.values()]


def test_a_replaced_one_that_was_brought_back_is_replaced_again(room: Workspace, person: User) -> None:
    [older] = kept(room, person, "The meeting is on Tuesday")
    take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday.")
    hold_again(Memory.objects.get(replaces=older), by=person, now=timezone.now())
    assert "The meeting is on Tuesday" in live()
    assert "The meeting is on Tuesday" not in take_turns(
        room, person, "No, the meeting is on Thursday, not on Tuesday."
    )


def test_an_old_message_that_is_mined_late_corrects_nothing_newer(room: Workspace, person: User) -> None:
    kept(room, person, "The meeting is on Friday")
    then = timezone.now() - timedelta(days=3)
    now = take_turns(room, person, "Actually the meeting is on Thursday, not Friday.", at=then)
    assert "The meeting is on Friday" in now


def test_what_somebody_else_has_edited_is_theirs_too(room: Workspace, person: User) -> None:
    [older] = kept(room, person, "The meeting is on Tuesday")
    edit_memory(
        older, by=make_user(), now=timezone.now(), content="The meeting is on Tuesday at nine in room 4"
    )
    assert len(take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday.")) == 2


@pytest.mark.parametrize("role", [None, Role.VIEWER])
def test_who_may_not_write_here_any_more_replaces_nothing(
    room: Workspace, person: User, role: Role | None
) -> None:
    """A memory of a closed account is not replaced by one without an author either."""
    gone = make_user()
    kept(room, gone, "The meeting is on Tuesday")
    kept(room, person, "The meeting is on Tuesday in room 4")
    gone.delete()
    Membership.objects.filter(user=person).delete()
    if role is not None:
        Membership.objects.create(user=person, workspace=room, role=role)
    before = live()
    assert set(before) <= set(take_turns(room, person, "Actually the meeting is on Thursday, not Tuesday."))


def test_a_newer_one_takes_the_place_of_one_alone(room: Workspace, person: User) -> None:
    first, second, newer = kept(room, person, "I live in Oslo", "My dog is called Rex", "I live in Bergen")
    for older in (first, second):
        extraction_jobs.supersede(older, by=newer, now=timezone.now())
    newer.refresh_from_db()
    assert newer.may_replace == first and live() == ["My dog is called Rex", "I live in Bergen"]
