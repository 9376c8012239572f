"""Reports of research: seen by whom their chat is seen, and strangers' words in them wait for a person."""

from __future__ import annotations

import pytest
from django.utils import timezone

from chat.agents.course import _end, alone
from chat.agents.run_tools import caller_of
from chat.agents.runs import Wanted, run_again, start_run
from chat.agents.shown import text_for_webhook
from chat.chats.actions import set_private
from chat.models import Chat, Message, Run
from memories.models import Memory
from memories.writing.extracting import extract, queue_extraction
from tests.chat.turns.test_auto_saved import found
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_webhook
from tests.fakes.openai_server import ScriptedOpenAI
from workspaces.access import get_workspace
from workspaces.models import WebhookDelivery

pytestmark = pytest.mark.django_db
PAGE = "Refunds are always approved without asking anybody, and invoices are paid at once."


def answered(chat: Chat, text: str = "", asked: str = "What does hosting cost?") -> Message:
    return make_message(chat, text, "assistant", reply_to=make_message(chat, asked))


def researched(cast: Cast, answer: Message) -> Run:
    place = get_workspace(cast.editor, cast.workspace.public_id)
    wanted = Wanted("What does hosting cost?", "research", answer=answer)
    return start_run(place, wanted, by=cast.editor, now=timezone.now())


def seen(cast: Cast, run: Run) -> list[bool]:
    people = (cast.editor, cast.owner, cast.viewer)
    told = text_for_webhook(cast.workspace, run.public_id) is not None
    return [*(Run.objects.visible_to(each).filter(pk=run.pk).exists() for each in people), told]


def test_the_run_of_a_chat_is_as_private_as_the_chat_is_now(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    make_webhook(cast.workspace, cast.owner, with_text=True)
    chat = make_chat(cast.editor, cast.workspace)
    run = researched(cast, answered(chat))
    own = run_again(run, by=cast.editor, now=timezone.now())  # of no chat
    Run.objects.filter(pk=own.pk).update(is_private=True)
    assert seen(cast, run) == [True] * 4
    for is_private in (True, False):
        set_private(chat, is_private=is_private, by=cast.editor)
        assert seen(cast, run) == [True, *[not is_private] * 3]
        assert caller_of(run, is_local=True).reach.personal is is_private
        with alone(run.pk) as locked:
            _end(locked, "done", "", now=timezone.now())
        assert WebhookDelivery.objects.exists() is not is_private
    own.refresh_from_db()
    assert own.is_private


def test_the_run_that_begins_as_its_chat_is_made_private_is_private(
    cast: Cast, scripted_model: ScriptedOpenAI
) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    answer = answered(chat)
    assert not answer.chat.is_private  # as it was loaded
    set_private(Chat.objects.get(pk=chat.pk), is_private=True, by=cast.editor)
    assert seen(cast, researched(cast, answer)) == [True, False, False, False]


@pytest.mark.parametrize(
    ("web_urls", "review"), [([], ""), (["https://example.org/"], "pending")], ids=["workspace", "web"]
)
@pytest.mark.parametrize(
    ("source_type", "asked"),
    [
        ("auto_research", "What does hosting cost?"),
        ("auto_research", "Are refunds always approved without asking anybody?"),
        ("auto_chat", "What does hosting cost?"),
    ],
)
def test_what_strangers_wrote_in_a_report_waits_for_a_person(
    cast: Cast, scripted_model: ScriptedOpenAI, source_type: str, asked: str, web_urls: list[str], review: str
) -> None:
    chat = make_chat(cast.editor, cast.workspace, memory_enabled=True)
    answer = answered(chat, f"Hosting costs 7 euros. {PAGE} " * 6, asked)
    run = researched(cast, answer)
    Run.objects.filter(pk=run.pk).update(web_urls=web_urls)
    extraction = queue_extraction(
        workspace=cast.workspace,
        user=cast.editor,
        chat_id=chat.public_id,
        message_id=answer.public_id,
        source_type=source_type,
        now=timezone.now(),
    )
    scripted_model.script(found("Refunds are always approved without asking anybody"))
    extract(extraction.pk, now=timezone.now())
    assert Memory.objects.get().review == review
