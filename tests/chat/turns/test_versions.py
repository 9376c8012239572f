"""Edited questions and regenerated answers: the replaced versions are kept, shown, and restored."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.import_export.export import export
from chat.models import Chat, Compaction, Message, MessageStatus, ShortTermMemory, ToolCall
from chat.turns.compaction import latest_compaction
from chat.turns.extraction_text import load_turn
from chat.turns.services import (
    begin_turn,
    count_versions,
    edit_message,
    restore_version,
    retry_answer,
    supersede,
    versions_of,
)
from chat.turns.turn import wait_until_idle
from memories.models import Memory, SourceType
from memoryhub.errors import Conflict, Forbidden, Invalid
from tests.api import Api
from tests.chat.import_export.test_exchange import imported_whole
from tests.conftest import Cast
from tests.factories import make_chat, make_memory, make_message, make_user, shown_to
from tests.fakes.openai_server import HOLD, Answer, ScriptedOpenAI
from tests.races import Work
from workspaces.models import User

pytestmark = pytest.mark.django_db(transaction=True)
HTMX = {"HX-Request": "true"}


@pytest.fixture
def chat(scripted_model: ScriptedOpenAI) -> Chat:
    return make_chat(make_user("olive"), title="Deadlines")


def said(chat: Chat) -> list[str]:
    return list(chat.messages.current().values_list("content", flat=True))


def ask(chat: Chat, content: str) -> tuple[Message, Message]:
    turn = begin_turn(chat, content=content, by=chat.created_by, now=timezone.now())
    return _finished(turn.message, turn.answer)


def edit(message: Message, content: str) -> tuple[Message, Message]:
    turn = edit_message(message, content=content, by=message.author or User(), now=timezone.now())
    return _finished(turn.message, turn.answer)


def retry(answer: Message) -> Message:
    return _finished(retry_answer(answer, by=answer.chat.created_by, now=timezone.now()))[0]


def back(message: Message) -> Message:
    return restore_version(message, by=message.chat.created_by, now=timezone.now())


def _finished(*messages: Message) -> Any:
    assert wait_until_idle(10)
    for message in messages:
        message.refresh_from_db()
    return messages


def test_an_edited_question_goes_on_from_there_and_loses_nothing(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("One."), Answer("Two."), Answer("Three."), Answer("Four."))
    ask(chat, "First")
    second, _ = ask(chat, "Second")
    ask(chat, "Third")
    edited, _ = edit(second, "Second, in other words")
    assert said(chat) == ["First", "One.", "Second, in other words", "Four."]
    assert chat.messages.count() == 8
    prompt = [
        part["content"] for part in scripted_model.chat_requests[-1].messages if part["role"] != "system"
    ]
    assert prompt == ["First", "One.", "Second, in other words"]
    (version,) = versions_of(edited, edited.chat.created_by)
    assert [message.content for message in version.messages] == ["Second", "Two.", "Third", "Three."]
    assert count_versions([edited, second]) == {edited.pk: (1, 1)}


def test_versions_gather_at_the_newest_and_each_can_be_brought_back(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(*(Answer(f"Answer {number}.") for number in range(1, 6)))
    first, _ = ask(chat, "One")
    second, _ = edit(first, "Two")
    third, _ = edit(second, "Three")
    assert [version.first.content for version in versions_of(third, third.chat.created_by)] == ["One", "Two"]

    assert back(first) == first
    assert said(chat) == ["One", "Answer 1."]
    assert [version.first.content for version in versions_of(first, first.chat.created_by)] == [
        "Two",
        "Three",
    ]
    ask(chat, "And then")
    back(third)
    assert said(chat) == ["Three", "Answer 3."]
    by = third.chat.created_by
    whole = {version.first.content: len(version.messages) for version in versions_of(third, by)}
    assert whole == {"One": 4, "Two": 2}
    ask(chat, "On from here")
    assert said(chat) == ["Three", "Answer 3.", "On from here", "Answer 5."]
    with pytest.raises(Conflict, match="in use"):
        back(third)


def test_an_answer_given_anew_keeps_the_one_before(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("Red."), Answer("Green."), Answer("Blue."))
    _, red = ask(chat, "Which colour?")
    green = retry(red)
    blue = retry(green)
    assert said(chat) == ["Which colour?", "Blue."]
    assert [version.first.content for version in versions_of(blue, blue.chat.created_by)] == [
        "Red.",
        "Green.",
    ]
    with pytest.raises(Conflict, match="last answer"):
        retry_answer(red, by=chat.created_by, now=timezone.now())
    back(red)
    assert said(chat) == ["Which colour?", "Red."]
    assert [version.first.content for version in versions_of(red, red.chat.created_by)] == ["Green.", "Blue."]


def test_an_answer_the_conversation_went_on_from_stays(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("Red."), Answer("Green."), Answer("Yes."))
    question, red = ask(chat, "Which colour?")
    retry(red)
    ask(chat, "Sure?")
    with pytest.raises(Conflict, match="continued"):
        back(red)
    edited, _ = edit(question, "Which shape?")
    with pytest.raises(Conflict, match="belongs to an earlier version"):
        back(red)
    assert [len(version.messages) for version in versions_of(edited, edited.chat.created_by)] == [4]


def test_only_ones_own_words_are_edited_and_only_when_nothing_is_being_written(
    cast: Cast, scripted_model: ScriptedOpenAI, eventually: Callable[..., None]
) -> None:
    chat = make_chat(cast.owner, cast.workspace)
    question, answer = ask(chat, "First")
    with pytest.raises(Forbidden):
        edit_message(question, content="Mine now", by=cast.editor, now=timezone.now())
    with pytest.raises(Forbidden):
        edit_message(answer, content="Mine now", by=cast.owner, now=timezone.now())
    with pytest.raises(Invalid):
        edit_message(question, content="  ", by=cast.owner, now=timezone.now())
    scripted_model.script(Answer("A ", HOLD, "B"))
    begin_turn(chat, content="Second", by=cast.editor, now=timezone.now())
    with pytest.raises(Conflict) as busy:
        edit_message(question, content="First, better", by=cast.owner, now=timezone.now())
    assert busy.value.code == "busy"
    scripted_model.release()
    assert wait_until_idle(10)
    assert said(chat)[0] == "First" and len(said(chat)) == 4
    edited, _ = edit(question, "First, better")
    with pytest.raises(Conflict):
        edit(question, "First, once more")
    assert said(chat)[0] == edited.content


def test_of_two_edits_at_once_one_wins_and_nothing_is_lost(chat: Chat, monkeypatch: Any) -> None:
    monkeypatch.setattr("chat.turns.turn.start", lambda *args: None)
    question = make_message(chat, "Which?")
    make_message(chat, "This.", role="assistant", reply_to=question)

    def one() -> bool:
        message = Message.objects.select_related("chat", "author").get(pk=question.pk)
        return bool(edit_message(message, content="Which one?", by=chat.created_by, now=timezone.now()))

    works = [Work(one), Work(one)]
    results = [work.end() for work in works]
    assert [result for result in results if result is True] == [True]
    assert [type(result) for result in results if result is not True] == [Conflict]
    assert chat.messages.current().count() == 2
    assert chat.messages.count() == 4


def test_memories_of_what_was_said_before_stay_and_say_where_they_came_from(cast: Cast) -> None:
    chat = make_chat(cast.owner, cast.workspace, title="Plans")
    old = make_message(chat, "The deadline is in May")
    new = make_message(chat, "The deadline is in June")
    supersede(chat.messages.filter(pk=old.pk), first=old, by=new, now=timezone.now())
    memory = make_memory(
        "The deadline is in May",
        cast.owner,
        cast.workspace,
        source_chat_id=chat.public_id,
        source_message_id=old.public_id,
    )
    assert Memory.objects.visible_to(cast.owner).live().filter(pk=memory.pk).exists()
    client = Client()
    client.force_login(cast.owner)
    panel = client.get(reverse("memories:panel", args=[cast.workspace.public_id])).content.decode()
    assert "Edited since" in panel
    page = client.get(reverse("chat:chat", args=[chat.public_id]), {"at": old.public_id}).content.decode()
    assert f'id="versions-{new.public_id}"' in page and 'hx-trigger="load"' in page


def test_what_was_set_aside_is_not_mined_any_more(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("Noted."), Answer("Noted."))
    question, answer = ask(chat, "The deadline is May 3")
    assert load_turn(answer.public_id, SourceType.AUTO_CHAT, None) is not None
    edit(question, "The deadline is May 4")
    assert load_turn(answer.public_id, SourceType.AUTO_CHAT, None) is None


def test_a_title_taken_from_the_first_message_follows_it(chat: Chat, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        "chat.turns.turn.start", lambda *args: Message.objects.update(status=MessageStatus.DONE)
    )
    Chat.objects.update(title="")
    chat.refresh_from_db()
    long = "Plan  a party\nfor "
    first, _ = ask(chat, long + "my sister, who shall not know anything of it")
    second, _ = ask(chat, first.content)
    edit(second, "Never mind")  # the same words as the first, but a version of its own
    chat.refresh_from_db()
    assert chat.title == "Plan a party for my sister, who shall not know anything of…"
    edited, _ = edit(first, long + "a friend")
    chat.refresh_from_db()
    assert (chat.title, edited.chat.title) == ("Plan a party for a friend",) * 2
    assert back(first).chat.title.startswith("Plan a party for my sister")
    chat.refresh_from_db()
    assert chat.title.startswith("Plan a party for my sister")


def test_a_summary_of_what_was_set_aside_is_not_used(chat: Chat) -> None:
    question = make_message(chat, "Once upon a time")
    answer = make_message(chat, "there was", role="assistant", reply_to=question)
    made = Compaction.objects.create(chat=chat, upto=answer, summary="A tale begins")
    assert latest_compaction(chat, shown_to(chat.created_by)) == made
    instead = make_message(chat, "Now")
    supersede(chat.messages.filter(pk__lte=answer.pk), first=question, by=instead, now=timezone.now())
    assert latest_compaction(chat, shown_to(chat.created_by)) is None
    back(question)
    assert latest_compaction(chat, shown_to(chat.created_by)) == made


def test_the_page_edits_shows_earlier_versions_and_brings_them_back(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("**Three** days."), Answer("Four days."))
    Chat.objects.update(title="")
    chat.refresh_from_db()
    question, _ = ask(chat, "How long is it?")
    client = Client(headers=HTMX)
    client.force_login(chat.created_by)

    def url(name: str, message: Message) -> str:
        return reverse(f"chat:{name}", args=[chat.public_id, message.public_id])

    form = client.get(url("edit", question)).content.decode()
    assert "How long is it?</textarea>" in form and "1 later message is kept" in form
    html = client.post(url("edit", question), {"content": "How <long> is that?"}).content.decode()
    assert wait_until_idle(10)
    new = chat.messages.current().earliest("pk")
    assert "How &lt;long&gt; is that?" in html and "1 earlier version" in html
    assert "How &lt;long&gt; is that?</h1>" in html  # the title above, derived from this question
    assert "Three" not in html
    versions = client.get(url("versions", new)).content.decode()
    assert "How long is it?" in versions and "<strong>Three</strong>" in versions
    assert url("back", question) in versions
    html = client.post(url("back", question)).content.decode()
    assert "How long is it?" in html and "How &lt;long&gt;" not in html


def test_over_rest_a_message_is_edited_its_versions_listed_and_one_restored(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("In May."), Answer("In June."))
    question, answer = ask(chat, "When is it?")
    api = Api(chat.created_by)
    place = f"{chat.public_id}/messages"
    refused = api.post(f"{place}/{question.public_id}/edit", {"content": "x", "mod": "chat"})
    assert refused.status_code == 422
    turn = api.post(f"{place}/{question.public_id}/edit", {"content": "When was it?", "stream": False})
    assert turn.status_code == 201
    new = turn.json()["message"]
    assert (new["superseded_by"], turn.json()["answer"]["content"]) == (None, "In June.")
    listed = [item["content"] for item in api.get(place).json()["items"]]
    assert listed == ["When was it?", "In June."]
    found = api.get(f"{place}/{new['id']}/versions").json()["items"]
    assert [(each["content"], each["superseded_by"]) for each in found] == [
        ("When is it?", new["id"]),
        ("In May.", new["id"]),
    ]
    assert len({each["superseded_at"] for each in found}) == 1
    restored = api.post(f"{place}/{answer.public_id}/restore")
    assert (restored.status_code, restored.json()["id"]) == (200, question.public_id)
    assert [item["content"] for item in api.get(place).json()["items"]] == ["When is it?", "In May."]
    assert api.post(f"{place}/{question.public_id}/restore").status_code == 409


def test_a_stopped_answer_is_kept_and_a_failed_one_is_not(chat: Chat, monkeypatch: Any) -> None:
    monkeypatch.setattr("chat.turns.turn.start", lambda *args: None)
    question = make_message(chat, "Go on")
    answer = make_message(chat, "Half", role="assistant", reply_to=question, status=MessageStatus.STOPPED)
    anew = retry_answer(answer, by=chat.created_by, now=timezone.now())
    assert anew.pk != answer.pk and count_versions([anew]) == {anew.pk: (1, 1)}
    Message.objects.filter(pk=anew.pk).update(status=MessageStatus.FAILED, content="Quar")
    anew.refresh_from_db()
    assert retry_answer(anew, by=chat.created_by, now=timezone.now()).pk == anew.pk


def test_earlier_versions_go_out_and_come_in_again(cast: Cast, tmp_path: Any, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    chat = make_chat(cast.owner, cast.workspace, title="Versions")
    first = make_message(chat, "One")
    reply = make_message(chat, "Answer one", role="assistant", reply_to=first)
    second = make_message(chat, "Two")
    supersede(chat.messages.filter(pk__lte=reply.pk), first=first, by=second, now=timezone.now())
    third = make_message(chat, "Three")
    supersede(chat.messages.filter(pk=second.pk), first=second, by=third, now=timezone.now())
    back(first)
    lines = b"".join(export(cast.owner, workspace=cast.workspace, now=timezone.now()))
    chat.delete()
    imported = imported_whole(cast.owner, lines, cast.workspace)
    assert imported.status == "done"
    again = Chat.objects.get(title="Versions")
    assert said(again) == ["One", "Answer one"]
    found = versions_of(again.messages.current().earliest("pk"), again.created_by)
    assert [version.first.content for version in found] == ["Two", "Three"]


def test_what_was_set_aside_is_told_to_no_other_chat(chat: Chat, scripted_model: ScriptedOpenAI) -> None:
    scripted_model.script(Answer("Aardvarks, noted."), Answer("Bees, noted."), Answer("Bees again."))
    Chat.objects.filter(pk=chat.pk).update(memory_enabled=True)
    chat.refresh_from_db()
    question, answer = ask(chat, "I keep aardvarks")
    row = ShortTermMemory.objects.get(chat=chat)
    assert "aardvarks" in str(row.last_said)
    row.summary, row.summarised_in = "On aardvarks", f"{answer.public_id}:1"
    row.save()
    _, bees = edit(question, "I keep bees")
    row.refresh_from_db()
    assert (
        row.last_said == [["User", "I keep bees", chat.created_by_id], ["Assistant", "Bees, noted."]]
        and not row.summary
    )
    retry(bees)
    row.refresh_from_db()
    assert row.last_said == [["User", "I keep bees", chat.created_by_id], ["Assistant", "Bees again."]]
    back(question)
    row.refresh_from_db()
    assert row.last_said == [
        ["User", "I keep aardvarks", chat.created_by_id],
        ["Assistant", "Aardvarks, noted."],
    ]


def test_a_summary_that_a_person_wrote_stays_whatever_is_set_aside(
    chat: Chat, scripted_model: ScriptedOpenAI
) -> None:
    scripted_model.script(Answer("Noted."), Answer("Noted."))
    Chat.objects.filter(pk=chat.pk).update(memory_enabled=True)
    chat.refresh_from_db()
    question, _ = ask(chat, "I keep aardvarks")
    ShortTermMemory.objects.update(summary="What I wrote myself", summarised_by=chat.created_by)
    edit(question, "I keep bees")
    assert ShortTermMemory.objects.get(chat=chat).summary == "What I wrote myself"


def test_outputs_of_what_was_set_aside_are_not_mined(chat: Chat) -> None:
    question = make_message(chat, "Look it up")
    answer = make_message(chat, "Found.", role="assistant", reply_to=question)
    call = ToolCall.objects.create(message=answer, name="look", output="The deadline is May 3. " * 20)
    summary = Compaction.objects.create(chat=chat, upto=answer, summary="The deadline is May 3. " * 20)
    mined = ((call.public_id, SourceType.MODEL), (summary.public_id, SourceType.AUTO_COMPACTION))
    assert all(load_turn(output, kind, None) is not None for output, kind in mined)
    instead = make_message(chat, "Never mind")
    supersede(chat.messages.filter(pk__lte=answer.pk), first=question, by=instead, now=timezone.now())
    assert all(load_turn(output, kind, None) is None for output, kind in mined)
